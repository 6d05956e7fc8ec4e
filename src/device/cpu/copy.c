// COPY, FILL and ARANGE: numbers put where they are wanted.
#include <string.h>

#include "device/cpu/cast.h"
#include "device/cpu/convert.h"
#include "device/cpu/iterate.h"
#include "device/cpu/transpose.h"

typedef struct FillContext {
    size_t size;
    unsigned char value[8];
} FillContext;

static void fill_rows(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    const FillContext *fill = context;
    fill_row(fill->size, pointers[0], strides[0], fill->value, count);
}

Status cpu_kernel_FILL(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    FillContext fill = {.size = dtype_size(out->dtype)};
    if (fill.size == 0)
        return fail(STATUS_DTYPE, "%s cannot write %s", call->op_name, dtype_name(out->dtype));
    cast_scalar(&call->inputs[0].scalar, out->dtype, fill.value);
    Iteration iteration;
    iterate_prepare(&iteration, 1, &out);
    iterate_run(&iteration, fill_rows, &fill);
    return STATUS_OK;
}

static void copy_rows(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    const CastRow *cast = context;
    cast_row(*cast, &(RowCopy){pointers[0], strides[0], pointers[1], strides[1], count});
}

// Blocks as they are, which needs no idea of what is in them.
static Status copy_blocks(const KernelCall *call, const TensorView *out, const TensorView *in) {
    if (out->dtype != in->dtype || !view_is_contiguous(out) || !view_is_contiguous(in)) {
        fail(STATUS_DTYPE, "%s cannot write %s from %s", call->op_name, dtype_name(out->dtype),
             dtype_name(in->dtype));
        return fail_help("quantised tensors are read, not computed; use a float dtype");
    }
    const DTypeInfo *info = &dtype_info[in->dtype];
    memcpy(cpu_pointer(out), cpu_pointer(in),
           (size_t)(view_count(in) / info->block_elements) * (size_t)info->block_bytes);
    return STATUS_OK;
}

Status cpu_kernel_COPY(const KernelCall *call) {
    const TensorView *out = call->outputs[0], *in = call->inputs[0].view;
    ASSERT(out->rank == in->rank);
    if (dtype_is_quant(out->dtype)) return copy_blocks(call, out, in);
    if (dtype_is_quant(in->dtype)) {
        copy_quantised(out, in);
        return STATUS_OK;
    }
    const TensorView *views[] = {out, in};
    CastRow cast = {in->dtype, out->dtype};
    Iteration iteration;
    iterate_prepare(&iteration, 2, views);
    if (cast.from != cast.to || !transpose_run(&iteration, dtype_size(out->dtype)))
        iterate_run(&iteration, copy_rows, &cast);
    return STATUS_OK;
}

// --- arange --------------------------------------------------------------------------------------

static void arange_floats(void *context, int64_t begin, int64_t end) {
    const KernelCall *call = context;
    const TensorView *out = call->outputs[0];
    const double *scalars = call->options.scalars;
    ConvertStore store = cpu_convert()->store[COMPUTE_F64][out->dtype];
    size_t size = dtype_size(out->dtype);
    double numbers[CAST_CHUNK];
    for (int64_t at = begin; at < end; at += CAST_CHUNK) {
        int64_t n = end - at < CAST_CHUNK ? end - at : CAST_CHUNK;
        for (int64_t i = 0; i < n; i++) numbers[i] = scalars[0] + (double)(at + i) * scalars[1];
        store((char *)cpu_pointer(out) + (size_t)at * size, 1, numbers, n);
    }
}

// Unsigned, because integers wrap.
static void arange_integers(void *context, int64_t begin, int64_t end) {
    const KernelCall *call = context;
    const TensorView *out = call->outputs[0];
    uint64_t start = (uint64_t)call->options.integers[0];
    uint64_t step = (uint64_t)call->options.integers[1];
    ConvertStore store = cpu_convert()->store[COMPUTE_I64][out->dtype];
    size_t size = dtype_size(out->dtype);
    uint64_t numbers[CAST_CHUNK];
    for (int64_t at = begin; at < end; at += CAST_CHUNK) {
        int64_t n = end - at < CAST_CHUNK ? end - at : CAST_CHUNK;
        for (int64_t i = 0; i < n; i++) numbers[i] = start + (uint64_t)(at + i) * step;
        store((char *)cpu_pointer(out) + (size_t)at * size, 1, numbers, n);
    }
}

Status cpu_kernel_ARANGE(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    ASSERT(out->rank == 1);
    if (dtype_is_quant(out->dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s", call->op_name, dtype_name(out->dtype));
    KernelCall copy = *call;
    cpu_parallel(view_count(out), 16384,
                 dtype_is_float(out->dtype) ? arange_floats : arange_integers, &copy);
    return STATUS_OK;
}
