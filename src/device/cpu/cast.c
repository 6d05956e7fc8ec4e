// Rows of numbers moved, filled and cast: one small loop per element size, casts by way of the type
// that both dtypes go through exactly.
#include "device/cpu/cast.h"

#include <string.h>

#include "device/cpu/convert.h"
#include "device/cpu/iterate.h"
#include "device/cpu/map.h"
#include "device/cpu/quant.h"

enum { ROW_BYTES_MIN = 1 << 10, ROW_BYTES_MAX = 1 << 18 }; // of row_copy

static void move_row(size_t size, const RowCopy *copy);

// Every number of `from` is exact in the type; and it is the one that vectorises best.
static CpuCompute cast_by(CastRow cast) {
    if (dtype_is_float(cast.from) || cast.from == DTYPE_INT64) return compute_of(cast.from);
    if (cast.to != DTYPE_FLOAT16 && cast.to != DTYPE_BFLOAT16) return COMPUTE_I32;
    return cast.from == DTYPE_INT32 ? COMPUTE_F64 : COMPUTE_F32;
}

void cast_row(CastRow cast, const RowCopy *copy) {
    size_t to_size = dtype_size(cast.to), from_size = dtype_size(cast.from);
    if (cast.from == cast.to) {
        move_row(to_size, copy);
        return;
    }
    CpuCompute compute = cast_by(cast);
    ConvertLoad load = cpu_convert()->load[compute][cast.from];
    ConvertStore store = cpu_convert()->store[compute][cast.to];
    int64_t to_step = copy->to_stride / (int64_t)to_size;
    int64_t from_step = copy->from_stride / (int64_t)from_size;
    int64_t numbers[CAST_CHUNK];
    for (int64_t at = 0; at < copy->count; at += CAST_CHUNK) {
        int64_t left = copy->count - at, n = left < CAST_CHUNK ? left : CAST_CHUNK;
        load(numbers, (const char *)copy->from + at * copy->from_stride, from_step, n);
        store((char *)copy->to + at * copy->to_stride, to_step, numbers, n);
    }
}

#define MOVE_LOOP(T)                                                                               \
    for (int64_t i = 0; i < count; i++)                                                            \
    *(T *)(void *)(to + i * to_stride) = *(const T *)(const void *)(from + i * from_stride)

static void copy_bytes(char *to, const char *from, size_t bytes) {
    if (bytes >= ROW_BYTES_MIN && bytes <= ROW_BYTES_MAX)
        CPU_CHOOSE(row_copy)(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

// Elements of `size` bytes (1, 2, 4 or 8) as they are.
static void move_row(size_t size, const RowCopy *copy) {
    char *to = copy->to;
    const char *from = copy->from;
    int64_t to_stride = copy->to_stride, from_stride = copy->from_stride, count = copy->count;
    if (to_stride == (int64_t)size && from_stride == (int64_t)size)
        copy_bytes(to, from, (size_t)count * size);
    else if (from_stride == 0 && count > 0)
        fill_row(size, to, to_stride, from, count);
    else if (size == 1)
        MOVE_LOOP(uint8_t);
    else if (size == 2)
        MOVE_LOOP(uint16_t);
    else if (size == 4)
        MOVE_LOOP(uint32_t);
    else
        MOVE_LOOP(uint64_t);
}

#define FILL_LOOP(T)                                                                               \
    do {                                                                                           \
        T element;                                                                                 \
        memcpy(&element, value, sizeof element);                                                   \
        if (to_stride == (int64_t)sizeof(T)) {                                                     \
            T *elements = (T *)(void *)to;                                                         \
            for (int64_t i = 0; i < count; i++) elements[i] = element;                             \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++) *(T *)(void *)(to + i * to_stride) = element;      \
        }                                                                                          \
    } while (0)

static bool all_bytes_equal(const unsigned char *bytes, size_t size) {
    for (size_t i = 1; i < size; i++)
        if (bytes[i] != bytes[0]) return false;
    return true;
}

void fill_row(size_t size, char *to, int64_t to_stride, const void *value, int64_t count) {
    const unsigned char *bytes = value;
    if (to_stride == (int64_t)size && all_bytes_equal(bytes, size))
        memset(to, bytes[0], (size_t)count * size);
    else if (size == 1)
        FILL_LOOP(uint8_t);
    else if (size == 2)
        FILL_LOOP(uint16_t);
    else if (size == 4)
        FILL_LOOP(uint32_t);
    else
        FILL_LOOP(uint64_t);
}

void cast_scalar(const Scalar *scalar, DType dtype, void *out) {
    CpuCompute compute = scalar->dtype == DTYPE_FLOAT64 ? COMPUTE_F64 : COMPUTE_I64;
    cpu_convert()->store[compute][dtype](out, 1, &scalar->as, 1);
}

// --- quantised -----------------------------------------------------------------------------------

typedef struct QuantRows {
    const TensorView *out, *in;
    int dim; // along which blocks lie
} QuantRows;

// The dim whose stride is 1; a dim of one element never is, since blocks are longer.
static int block_dim(const TensorView *view) {
    for (int d = view->rank - 1; d >= 0; d--)
        if (view->strides[d] == 1 && view->dims[d] > 1) return d;
    return -1;
}

static void dequantise_row(const QuantRows *rows, const char *from, char *to) {
    const DTypeInfo *info = &dtype_info[rows->in->dtype];
    float numbers[CAST_CHUNK];
    CastRow cast = {DTYPE_FLOAT32, rows->out->dtype};
    int64_t count = rows->in->dims[rows->dim];
    int64_t stride = rows->out->strides[rows->dim] * (int64_t)dtype_size(rows->out->dtype);
    for (int64_t at = 0; at < count; at += CAST_CHUNK) {
        int64_t n = count - at < CAST_CHUNK ? count - at : CAST_CHUNK;
        quant_dequantize(rows->in->dtype, from + at / info->block_elements * info->block_bytes,
                         numbers, n);
        cast_row(cast, &(RowCopy){to + at * stride, stride, numbers, sizeof(float), n});
    }
}

static void dequantise_rows(void *context, int64_t begin, int64_t end) {
    const QuantRows *rows = context;
    const TensorView *out = rows->out, *in = rows->in;
    const DTypeInfo *info = &dtype_info[in->dtype];
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, in_at = 0, out_at = 0;
        for (int d = in->rank - 1; d >= 0; d--) {
            if (d == rows->dim) continue;
            int64_t at = rest % in->dims[d];
            rest /= in->dims[d];
            in_at += at * in->strides[d];
            out_at += at * out->strides[d];
        }
        const char *from = cpu_pointer(in);
        char *to = cpu_pointer(out);
        dequantise_row(rows, from + in_at / info->block_elements * info->block_bytes,
                       to + out_at * (int64_t)dtype_size(out->dtype));
    }
}

void copy_quantised(const TensorView *out, const TensorView *in) {
    QuantRows rows = {out, in, block_dim(in)};
    int64_t total = view_count(in);
    if (total == 0) return;
    ASSERT(rows.dim >= 0);
    int64_t count = in->dims[rows.dim];
    cpu_parallel(total / count, count < 16384 ? 16384 / count : 1, dequantise_rows, &rows);
}
