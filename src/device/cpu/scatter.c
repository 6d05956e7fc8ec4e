// SCATTER: every place that does not lie along the dim is one thread's alone, and along the dim the
// source is taken in order, so that places named twice give the same result on any number of
// threads.
#include <string.h>

#include "device/cpu/cast.h"
#include "device/cpu/gather.h"

enum {
    LOOK_STEPS = 1 << 12, // along the dim, until one looks for an interrupt
    NARROW = 6            // rows of fewer elements are walked along the dim, column by column
};

typedef struct Scatter Scatter;
// Numbers of out's dtype to `count` places: place i is to + i * to_stride + places[i] * stride, or
// without the last part when `places` is NULL.
typedef struct ScatterPiece {
    char *to;
    int64_t to_stride;
    const char *from;
    const int64_t *places;
    int64_t count;
} ScatterPiece;
typedef void (*ScatterElements)(const Scatter *scatter, const ScatterPiece *piece);

struct Scatter {
    IndexedDim indexed;
    CastRow cast;
    bool adds;
    int64_t length;                      // how many indexes there are along the dim
    int64_t index_stride, source_stride; // along the dim, in bytes
    ScatterElements elements;
};

#define SCATTER_ELEMENTS(name, T, statement)                                                       \
    static void name##_##T(const Scatter *scatter, const ScatterPiece *piece) {                    \
        const T *source = (const T *)(const void *)piece->from;                                    \
        const int64_t *places = piece->places;                                                     \
        int64_t stride = scatter->indexed.stride, to_stride = piece->to_stride;                    \
        int64_t count = piece->count;                                                              \
        char *to = piece->to;                                                                      \
        if (!places && to_stride == (int64_t)sizeof(T)) {                                          \
            T *target = (T *)(void *)to;                                                           \
            for (int64_t i = 0; i < count; i++, target++) statement;                               \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            int64_t place = places ? places[i] * stride : 0;                                       \
            T *target = (T *)(void *)(to + i * to_stride + place);                                 \
            statement;                                                                             \
        }                                                                                          \
    }
SCATTER_ELEMENTS(assign, uint8_t, *target = source[i])
SCATTER_ELEMENTS(assign, uint16_t, *target = source[i])
SCATTER_ELEMENTS(assign, uint32_t, *target = source[i])
SCATTER_ELEMENTS(assign, uint64_t, *target = source[i])
SCATTER_ELEMENTS(either, uint8_t, *target = *target || source[i])
SCATTER_ELEMENTS(add, uint8_t, *target = (uint8_t)(*target + source[i]))
SCATTER_ELEMENTS(add, uint16_t, *target = (uint16_t)(*target + source[i]))
SCATTER_ELEMENTS(add, uint32_t, *target += source[i])
SCATTER_ELEMENTS(add, uint64_t, *target += source[i])
SCATTER_ELEMENTS(add, float, *target += source[i])
SCATTER_ELEMENTS(add, double, *target += source[i])

static ScatterElements elements_function(bool add, DType dtype) {
    static const ScatterElements adds[DTYPE_COUNT] = {
        [DTYPE_BOOL] = either_uint8_t, [DTYPE_UINT8] = add_uint8_t,  [DTYPE_INT8] = add_uint8_t,
        [DTYPE_INT16] = add_uint16_t,  [DTYPE_INT32] = add_uint32_t, [DTYPE_INT64] = add_uint64_t,
        [DTYPE_FLOAT32] = add_float,   [DTYPE_FLOAT64] = add_double,
    };
    if (add) return adds[dtype];
    size_t size = dtype_size(dtype);
    if (size == 1) return assign_uint8_t;
    if (size == 2) return assign_uint16_t;
    return size == 4 ? assign_uint32_t : assign_uint64_t;
}

typedef struct ScatterRow {
    char *to;
    const char *from, *index;
    const int64_t *strides; // of out, source, index
    int64_t count;
} ScatterRow;

// All elements of the row go to the same place along the dim.
static bool is_slice(const ScatterRow *row) {
    return row->strides[2] == 0;
}

static void scatter_step(const Scatter *scatter, const ScatterRow *row) {
    int64_t places[CAST_CHUNK];
    uint64_t numbers[CAST_CHUNK];
    int64_t size = (int64_t)dtype_size(scatter->cast.to);
    char *to = row->to;
    if (is_slice(row)) {
        index_read(&scatter->indexed, row->index, 0, 1, places);
        to += places[0] * scatter->indexed.stride;
        if (!scatter->adds) {
            cast_row(scatter->cast,
                     &(RowCopy){to, row->strides[0], row->from, row->strides[1], row->count});
            return;
        }
    }
    for (int64_t at = 0; at < row->count; at += CAST_CHUNK) {
        int64_t n = row->count - at < CAST_CHUNK ? row->count - at : CAST_CHUNK;
        if (!is_slice(row))
            index_read(&scatter->indexed, row->index + at * row->strides[2], row->strides[2], n,
                       places);
        const char *from = row->from + at * row->strides[1];
        if (scatter->cast.from != scatter->cast.to || row->strides[1] != size) {
            cast_row(scatter->cast, &(RowCopy){numbers, size, from, row->strides[1], n});
            from = (const char *)numbers;
        }
        ScatterPiece piece = {to + at * row->strides[0], row->strides[0], from,
                              is_slice(row) ? NULL : places, n};
        scatter->elements(scatter, &piece);
    }
}

static void scatter_columns(const Scatter *scatter, const ScatterRow *row) {
    const int64_t along[] = {0, scatter->source_stride, scatter->index_stride};
    for (int64_t i = 0; i < row->count; i++) {
        ScatterRow column = {row->to + i * row->strides[0], row->from + i * row->strides[1],
                             row->index + i * row->strides[2], along, 0};
        for (int64_t left = scatter->length; left > 0; left -= column.count) {
            if (cpu_interrupted()) return;
            column.count = left < LOOK_STEPS ? left : LOOK_STEPS;
            scatter_step(scatter, &column);
            column.from += column.count * along[1];
            column.index += column.count * along[2];
        }
    }
}

// Views: out with the dim left out, source and index with the dim left out.
static void scatter_row(void *context, char *const *pointers, const int64_t *strides,
                        int64_t count) {
    const Scatter *scatter = context;
    if (count < NARROW) {
        scatter_columns(scatter,
                        &(ScatterRow){pointers[0], pointers[1], pointers[2], strides, count});
        return;
    }
    for (int64_t j = 0; j < scatter->length; j++) {
        if (UNLIKELY(j % LOOK_STEPS == 0) && cpu_interrupted()) return;
        ScatterRow row = {pointers[0], pointers[1] + j * scatter->source_stride,
                          pointers[2] + j * scatter->index_stride, strides, count};
        scatter_step(scatter, &row);
    }
}

static Status scatter_into(const KernelCall *call, const TensorView *target) {
    TensorView out = *target, source = *call->inputs[0].view;
    const TensorView *index = call->inputs[1].view;
    int dim = call->options.dim;
    TensorView places =
        call->options.integers[0] == 1 ? view_expand_index(index, &source, dim) : *index;
    if (view_count(&places) == 0) return STATUS_OK;
    atomic_bool out_of_range = false;
    Scatter scatter = {
        .indexed = {out.dims[dim], out.strides[dim] * (int64_t)dtype_size(out.dtype), places.dtype,
                    &out_of_range},
        .cast = {source.dtype, out.dtype},
        .adds = call->options.op == 1,
        .length = places.dims[dim],
        .index_stride = places.strides[dim] * (int64_t)dtype_size(places.dtype),
        .source_stride = source.strides[dim] * (int64_t)dtype_size(source.dtype),
        .elements = elements_function(call->options.op == 1, out.dtype),
    };
    places.dims[dim] = 1;
    memcpy(out.dims, places.dims, sizeof out.dims);
    memcpy(source.dims, places.dims, sizeof source.dims);
    const TensorView *views[] = {&out, &source, &places};
    Iteration iteration;
    iterate_prepare(&iteration, 3, views);
    iterate_divide(&iteration, scatter.length);
    iterate_run(&iteration, scatter_row, &scatter);
    return atomic_load(&out_of_range) ? index_failure(call, scatter.indexed.size) : STATUS_OK;
}

// Sums of 16-bit floats are kept in float32 and rounded once.
static Status scatter_add_halves(const KernelCall *call, const TensorView *out) {
    TensorView wide = *out;
    wide.dtype = DTYPE_FLOAT32;
    wide.offset = 0;
    int64_t count = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        wide.strides[d] = count;
        count *= out->dims[d];
    }
    BufferLabel label = {.dtype = DTYPE_FLOAT32, .rank = out->rank};
    memcpy(label.dims, out->dims, sizeof label.dims);
    TRY(buffer_new(out->buffer->device, (size_t)count * sizeof(float), &label, &wide.buffer));
    KernelCall copy = {.kernel = KERNEL_COPY,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = out}},
                       .outputs = {&wide},
                       .op_name = call->op_name};
    bool foretold = cpu_is_foretold(out);
    Status status = foretold ? STATUS_OK : cpu_kernel_COPY(&copy);
    if (status == STATUS_OK && !foretold) status = scatter_into(call, &wide);
    copy.inputs[0].view = &wide;
    copy.outputs[0] = out;
    if (status == STATUS_OK && !foretold) status = cpu_kernel_COPY(&copy);
    buffer_release(wide.buffer);
    return status;
}

Status cpu_kernel_SCATTER(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    if (dtype_is_quant(out->dtype) || dtype_is_quant(call->inputs[0].view->dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s from %s", call->op_name,
                    dtype_name(out->dtype), dtype_name(call->inputs[0].view->dtype));
    bool half = out->dtype == DTYPE_FLOAT16 || out->dtype == DTYPE_BFLOAT16;
    if (half && call->options.op == 1) return scatter_add_halves(call, out);
    return scatter_into(call, out);
}
