// GATHER, and what it shares with SCATTER: walking a view whose place along one dim comes from an
// index. The dim is walked with stride 0 and the index adds the rest.
#include "device/cpu/gather.h"

#include <stdatomic.h>
#include <string.h>

#include "device/cpu/cast.h"
#include "device/cpu/convert.h"

void index_read(const IndexedDim *indexed, const char *index, int64_t stride, int64_t count,
                int64_t *out) {
    int64_t step = stride / (int64_t)dtype_size(indexed->index_dtype);
    cpu_convert()->load[COMPUTE_I64][indexed->index_dtype](out, index, step, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = out[i] < 0 ? out[i] + indexed->size : out[i];
        out[i] = at;
        if (UNLIKELY(at < 0 || at >= indexed->size)) {
            atomic_store_explicit(indexed->out_of_range, true, memory_order_relaxed);
            out[i] = 0;
        }
    }
}

Status index_failure(const KernelCall *call, int64_t size) {
    return fail(STATUS_INDEX, "%s: an index is out of range for a dimension of size %lld",
                call->op_name, (long long)size);
}

typedef struct Gather {
    IndexedDim indexed;
    CastRow cast;
} Gather;

// Views: out, source with stride 0 along the dim, index.
static void gather_row(void *context, char *const *pointers, const int64_t *strides,
                       int64_t count) {
    const Gather *gather = context;
    const IndexedDim *indexed = &gather->indexed;
    int64_t places[CAST_CHUNK];
    if (strides[2] == 0) {
        index_read(indexed, pointers[2], 0, 1, places);
        const char *from = pointers[1] + places[0] * indexed->stride;
        cast_row(gather->cast, &(RowCopy){pointers[0], strides[0], from, strides[1], count});
        return;
    }
    for (int64_t at = 0; at < count; at += CAST_CHUNK) {
        int64_t n = count - at < CAST_CHUNK ? count - at : CAST_CHUNK;
        index_read(indexed, pointers[2] + at * strides[2], strides[2], n, places);
        char *to = pointers[0] + at * strides[0];
        const char *from = pointers[1] + at * strides[1];
        for (int64_t i = 0; i < n; i++)
            cast_row(gather->cast, &(RowCopy){to + i * strides[0], strides[0],
                                              from + i * strides[1] + places[i] * indexed->stride,
                                              strides[1], 1});
    }
}

// The same for elements that only move: the size is chosen once a row.
#define GATHER_ELEMENTS(T)                                                                         \
    static void gather_row_##T(void *context, char *const *pointers, const int64_t *strides,       \
                               int64_t count) {                                                    \
        const Gather *gather = context;                                                            \
        if (strides[2] == 0) {                                                                     \
            gather_row(context, pointers, strides, count);                                         \
            return;                                                                                \
        }                                                                                          \
        int64_t places[CAST_CHUNK], stride = gather->indexed.stride;                               \
        for (int64_t at = 0; at < count; at += CAST_CHUNK) {                                       \
            int64_t n = count - at < CAST_CHUNK ? count - at : CAST_CHUNK;                         \
            index_read(&gather->indexed, pointers[2] + at * strides[2], strides[2], n, places);    \
            char *to = pointers[0] + at * strides[0];                                              \
            const char *from = pointers[1] + at * strides[1];                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                *(T *)(void *)(to + i * strides[0]) =                                              \
                    *(const T *)(const void *)(from + i * strides[1] + places[i] * stride);        \
        }                                                                                          \
    }
GATHER_ELEMENTS(uint8_t)
GATHER_ELEMENTS(uint16_t)
GATHER_ELEMENTS(uint32_t)
GATHER_ELEMENTS(uint64_t)

static IterateRow gather_function(CastRow cast) {
    if (cast.from != cast.to) return gather_row;
    size_t size = dtype_size(cast.to);
    if (size == 1) return gather_row_uint8_t;
    if (size == 2) return gather_row_uint16_t;
    return size == 4 ? gather_row_uint32_t : gather_row_uint64_t;
}

// --- rows of a quantised matrix ------------------------------------------------------------------

typedef struct QuantGather {
    IndexedDim indexed;
    TensorView out, in, index; // out and in are one slice
    int64_t out_stride;        // bytes between slices of the output
} QuantGather;

static void gather_slices(void *context, int64_t begin, int64_t end) {
    const QuantGather *gather = context;
    const DTypeInfo *info = &dtype_info[gather->in.dtype];
    int64_t index_stride =
        gather->index.strides[0] * (int64_t)dtype_size(gather->indexed.index_dtype);
    for (int64_t j = begin; j < end; j++) {
        int64_t place;
        const char *index = cpu_pointer(&gather->index);
        index_read(&gather->indexed, index + j * index_stride, 0, 1, &place);
        TensorView out = gather->out, in = gather->in;
        out.offset += (size_t)(j * gather->out_stride);
        in.offset +=
            (size_t)(place * gather->indexed.stride / info->block_elements * info->block_bytes);
        copy_quantised(&out, &in);
    }
}

static TensorView slice_of_first_dim(const TensorView *view) {
    TensorView slice = *view;
    slice.rank--;
    memmove(slice.dims, slice.dims + 1, (size_t)slice.rank * sizeof *slice.dims);
    memmove(slice.strides, slice.strides + 1, (size_t)slice.rank * sizeof *slice.strides);
    return slice;
}

static Status gather_quantised(const KernelCall *call, IndexedDim indexed) {
    const TensorView *out = call->outputs[0], *in = call->inputs[0].view;
    if (call->options.op != 0 || call->options.dim != 0 || dtype_is_quant(out->dtype))
        return fail(STATUS_DTYPE, "%s takes only whole rows of %s, and gives floats", call->op_name,
                    dtype_name(in->dtype));
    indexed.stride = in->strides[0];
    QuantGather gather = {indexed, slice_of_first_dim(out), slice_of_first_dim(in),
                          *call->inputs[1].view, out->strides[0] * (int64_t)dtype_size(out->dtype)};
    int64_t slices = view_count(&gather.index), slice_count = view_count(&gather.in);
    if (slice_count > 0)
        cpu_parallel(slices, slice_count < 16384 ? 16384 / slice_count : 1, gather_slices, &gather);
    return atomic_load(indexed.out_of_range) ? index_failure(call, indexed.size) : STATUS_OK;
}

// --- whole rows that lie together ----------------------------------------------------------------

typedef struct RowGather {
    IndexedDim indexed;
    const char *from, *index;
    char *to;
    int64_t index_stride;
    size_t bytes; // of a row
} RowGather;

// Which row comes is known a few rows ahead; a processor that sees only addresses waits for each.
static void gather_rows(void *context, int64_t begin, int64_t end) {
    enum { AHEAD = 4, LINE_BYTES = 64, FETCHED_BYTES = 512 };
    const RowGather *rows = context;
    int64_t places[CAST_CHUNK], stride = rows->indexed.stride;
    ASSERT(begin <= end && rows->bytes > 0);
    size_t fetched = rows->bytes < FETCHED_BYTES ? rows->bytes : FETCHED_BYTES;
    for (int64_t at = begin; at < end; at += CAST_CHUNK) {
        int64_t n = end - at < CAST_CHUNK ? end - at : CAST_CHUNK;
        const char *index = rows->index + at * rows->index_stride;
        index_read(&rows->indexed, index, rows->index_stride, n, places);
        for (int64_t i = 0; i < n; i++) {
            const char *later = rows->from + places[i + AHEAD < n ? i + AHEAD : n - 1] * stride;
            for (size_t byte = 0; byte < fetched; byte += LINE_BYTES)
                __builtin_prefetch(later + byte);
            memcpy(rows->to + (size_t)(at + i) * rows->bytes, rows->from + places[i] * stride,
                   rows->bytes);
        }
    }
}

static bool gathers_rows(const KernelCall *call) {
    const TensorView *out = call->outputs[0], *in = call->inputs[0].view;
    if (call->options.op != 0 || call->options.dim != 0 || in->rank < 2 ||
        in->dtype != out->dtype || call->inputs[1].view->rank != 1)
        return false;
    TensorView row = slice_of_first_dim(in);
    return view_is_contiguous(&row) && view_is_contiguous(out);
}

static void gather_whole(const KernelCall *call, IndexedDim indexed) {
    const TensorView *out = call->outputs[0], *index = call->inputs[1].view;
    int64_t count = out->dims[0], numbers = view_count(out) / count;
    ASSERT(count == index->dims[0] && numbers > 0);
    RowGather rows = {.indexed = indexed,
                      .from = cpu_pointer(call->inputs[0].view),
                      .index = cpu_pointer(index),
                      .to = cpu_pointer(out),
                      .index_stride = index->strides[0] * (int64_t)dtype_size(index->dtype),
                      .bytes = (size_t)numbers * dtype_size(out->dtype)};
    cpu_parallel(count, numbers < 16384 ? 16384 / numbers : 1, gather_rows, &rows);
}

Status cpu_kernel_GATHER(const KernelCall *call) {
    const TensorView *out = call->outputs[0], *index = call->inputs[1].view;
    TensorView in = *call->inputs[0].view;
    int dim = call->options.dim;
    ASSERT(dim >= 0 && dim < in.rank);
    atomic_bool out_of_range = false;
    IndexedDim indexed = {in.dims[dim], in.strides[dim] * (int64_t)dtype_size(in.dtype),
                          index->dtype, &out_of_range};
    if (view_count(out) == 0) return STATUS_OK;
    if (dtype_is_quant(in.dtype)) return gather_quantised(call, indexed);
    if (gathers_rows(call)) {
        gather_whole(call, indexed);
        return atomic_load(&out_of_range) ? index_failure(call, indexed.size) : STATUS_OK;
    }
    TensorView expanded = call->options.op == 0 ? view_expand_index(index, out, dim) : *index;
    memcpy(in.dims, out->dims, sizeof in.dims);
    in.strides[dim] = 0;
    const TensorView *views[] = {out, &in, &expanded};
    Gather gather = {indexed, {in.dtype, out->dtype}};
    Iteration iteration;
    iterate_prepare(&iteration, 3, views);
    iterate_run(&iteration, gather_function(gather.cast), &gather);
    return atomic_load(&out_of_range) ? index_failure(call, indexed.size) : STATUS_OK;
}
