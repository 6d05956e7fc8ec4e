// Rows of views as contiguous numbers: merging of dims, and loads and stores across them.
#include "device/cpu/row.h"

static Status finish(const TensorView *view, CpuCompute compute, const char *op_name, Row *row) {
    const ConvertTable *convert = cpu_convert();
    row->load = convert->load[compute][view->dtype];
    row->store = convert->store[compute][view->dtype];
    if (!row->load) {
        fail(STATUS_DTYPE, "%s cannot read %s", op_name, dtype_name(view->dtype));
        return fail_help("convert it first: x as float32");
    }
    row->size = (int64_t)dtype_size(view->dtype);
    row->number_size = (int64_t)compute_bytes(compute);
    row->native = view->dtype == compute_dtype(compute);
    row->direct = row->rank == 1 && (row->strides[0] == 1 || row->count <= 1) && row->native;
    return STATUS_OK;
}

Status row_prepare(const TensorView *view, int trailing, CpuCompute compute, const char *op_name,
                   Row *out) {
    Row *row = out;
    row->rank = 0;
    row->count = 1;
    for (int d = view->rank - trailing; d < view->rank; d++) {
        int64_t dim = view->dims[d], stride = view->strides[d];
        row->count *= dim;
        if (dim == 1) continue;
        int last = row->rank - 1;
        if (last >= 0 && row->strides[last] == stride * dim) {
            row->dims[last] *= dim;
            row->strides[last] = stride;
        } else {
            row->dims[row->rank] = dim;
            row->strides[row->rank++] = stride;
        }
    }
    if (row->rank == 0) {
        row->dims[0] = row->strides[0] = 1;
        row->rank = 1;
    }
    return finish(view, compute, op_name, row);
}

Status row_prepare_unordered(const TensorView *view, int trailing, CpuCompute compute,
                             const char *op_name, Row *out) {
    TensorView inner = *view;
    inner.rank = trailing;
    for (int d = 0; d < trailing; d++) {
        inner.dims[d] = view->dims[view->rank - trailing + d];
        inner.strides[d] = view->strides[view->rank - trailing + d];
    }
    if (dtype_is_quant(view->dtype) || view_count(&inner) == 0)
        return row_prepare(view, trailing, compute, op_name, out);
    Iteration iteration;
    iterate_prepare(&iteration, 1, (const TensorView *const[]){&inner});
    out->rank = iteration.walk.rank;
    out->count = iteration.rows * iteration.count;
    for (int d = 0; d < iteration.walk.rank; d++) {
        out->dims[d] = iteration.walk.dims[d];
        out->strides[d] = iteration.walk.strides[0][d] / (int64_t)dtype_size(view->dtype);
    }
    return finish(view, compute, op_name, out);
}

typedef struct Piece {
    int64_t first, count;
} Piece;

// One call of load or store per run of the last dim that the piece touches.
static void walk_piece(const Row *row, char *base, Piece piece, char *numbers, bool storing) {
    int last = row->rank - 1;
    int64_t length = row->dims[last], stride = row->strides[last];
    for (int64_t done = 0; done < piece.count;) {
        int64_t at = piece.first + done, inside = at % length, index = at / length;
        int64_t offset = inside * stride;
        for (int d = last - 1; d >= 0; d--) {
            offset += index % row->dims[d] * row->strides[d];
            index /= row->dims[d];
        }
        int64_t left = piece.count - done, run = length - inside < left ? length - inside : left;
        char *stored = base + offset * row->size, *number = numbers + done * row->number_size;
        if (storing)
            row->store(stored, stride, number, run);
        else
            row->load(number, stored, stride, run);
        done += run;
    }
}

const void *row_read(const Row *row, const char *base, int64_t first, int64_t count, void *buffer) {
    if (row->direct) return base + first * row->size;
    walk_piece(row, (char *)base, (Piece){first, count}, buffer, false);
    return buffer;
}

void *row_target(const Row *row, char *base, int64_t first, void *buffer) {
    return row->direct ? base + first * row->size : buffer;
}

void row_write(const Row *row, char *base, int64_t first, int64_t count, const void *buffer) {
    if (!row->direct) walk_piece(row, base, (Piece){first, count}, (void *)buffer, true);
}

void rows_prepare(Iteration *iteration, int n_views, const TensorView *const *views, int leading) {
    TensorView outer[WALK_VIEWS_MAX];
    const TensorView *pointers[WALK_VIEWS_MAX];
    ASSERT(n_views <= WALK_VIEWS_MAX);
    for (int v = 0; v < n_views; v++) {
        outer[v] = *views[v];
        outer[v].rank = leading;
        pointers[v] = &outer[v];
    }
    iterate_prepare(iteration, n_views, pointers);
}

int64_t rows_offset(const Iteration *iteration, int v, int64_t index) {
    int64_t offset = 0;
    for (int d = iteration->walk.rank - 1; d > 0; d--) {
        offset += index % iteration->walk.dims[d] * iteration->walk.strides[v][d];
        index /= iteration->walk.dims[d];
    }
    return offset + index * iteration->walk.strides[v][0];
}
