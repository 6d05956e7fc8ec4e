// Making, sharing and releasing tensors. Knows no operation.
#include "device/walk.h"
#include "tensor/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "device/foretell.h"
#include "tensor/gradient/record.h"
#include "tensor/scalar.h"
#include "tensor/state.h"
#include "tensor/tensor.h"

Tensors *tensors_new(void) {
    Tensors *tensors = memory_allocate_zeroed(1, sizeof *tensors);
    tensors->precision = DTYPE_COUNT;
    tensors->training = (RandomTraining){.dropout = 0.5};
    return tensors;
}

void tensors_free(Tensors *tensors) {
    while (tensors->spare) {
        Tensor *next = (Tensor *)(void *)tensors->spare->device;
        free(tensors->spare);
        tensors->spare = next;
    }
    free(tensors);
}

static Tensor *tensor_allocate(void) {
    Tensors *tensors = tensors_state();
    Tensor *tensor = tensors->spare;
    if (LIKELY(tensor != NULL))
        tensors->spare = (Tensor *)(void *)tensor->device;
    else
        tensor = memory_allocate(sizeof *tensor);
    tensor->counted.refs = 1;
    tensor->view.buffer = NULL;
    tensor->view.offset = 0;
    tensor->host = NULL;
    tensor->learnable = false;
    tensor->node = NULL;
    tensor->origin = origin_current;
    return tensor;
}

// Fills in dims and row-major strides; false when elements or bytes are more than can be addressed.
// Sizes of 0 do not excuse the others: their strides must exist as well.
static bool view_lay_out(TensorView *view, DType dtype, const Shape *shape, size_t *bytes) {
    const DTypeInfo *info = &dtype_info[dtype];
    ASSERT(shape->rank >= 0 && shape->rank <= RANK_MAX);
    int64_t stride = 1, total;
    bool empty = false;
    view->dtype = dtype;
    view->rank = shape->rank;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t size = shape->dims[i];
        view->dims[i] = size;
        view->strides[i] = stride;
        if (size == 0) empty = true;
        if (UNLIKELY(__builtin_mul_overflow(stride, size ? size : 1, &stride))) return false;
    }
    int64_t blocks = info->block_elements == 1 ? stride : stride / info->block_elements;
    if (UNLIKELY(__builtin_mul_overflow(blocks, info->block_bytes, &total))) return false;
    *bytes = empty ? 0 : (size_t)total;
    return true;
}

static Status check_shape(DType dtype, const Shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (UNLIKELY(shape->dims[i] < 0))
            return fail(STATUS_SHAPE, "cannot make %s: a size cannot be negative",
                        type_name(dtype, shape).text);
    int block = dtype_info[dtype].block_elements;
    if (block > 1 && (shape->rank == 0 || shape->dims[shape->rank - 1] % block != 0))
        return fail(STATUS_SHAPE, "cannot make %s: the last size must be a multiple of %d",
                    type_name(dtype, shape).text, block);
    return STATUS_OK;
}

static Status fail_too_large(DType dtype, const Shape *shape) {
    return fail(STATUS_SHAPE, "cannot make %s: its size does not fit in 64 bits",
                type_name(dtype, shape).text);
}

Status tensor_new(Device *device, DType dtype, const Shape *shape, Tensor **out) {
    TRY(check_shape(dtype, shape));
    Tensor *tensor = tensor_allocate();
    tensor->device = device;
    size_t bytes;
    Status status = STATUS_OK;
    if (UNLIKELY(!view_lay_out(&tensor->view, dtype, shape, &bytes))) {
        status = fail_too_large(dtype, shape);
    } else {
        BufferLabel label;
        label.dtype = dtype;
        label.rank = shape->rank;
        for (int i = 0; i < shape->rank; i++) label.dims[i] = shape->dims[i];
        status = buffer_new(device, bytes, &label, &tensor->view.buffer);
    }
    if (UNLIKELY(status != STATUS_OK)) {
        tensor->view.buffer = NULL;
        tensor_release(tensor);
        return status;
    }
    *out = tensor;
    return STATUS_OK;
}

static Status literal_new(bool is_float, const Shape *shape, DType dtype, Tensor **out,
                          size_t *count) {
    ASSERT(!dtype_is_quant(dtype));
    TRY(check_shape(dtype, shape));
    Device *device;
    TRY(device_default(&device));
    Tensor *tensor = tensor_allocate();
    tensor->device = device;
    size_t bytes;
    if (!view_lay_out(&tensor->view, dtype, shape, &bytes)) {
        tensor_release(tensor);
        return fail_too_large(dtype, shape);
    }
    *count = (size_t)tensor_count(tensor);
    // One block: the numbers follow.
    tensor->host = memory_allocate(sizeof *tensor->host + *count * sizeof(int64_t));
    tensor->host->is_float = is_float;
    tensor->host->unknown = false;
    tensor->host->as.integers = (int64_t *)(void *)(tensor->host + 1);
    *out = tensor;
    return STATUS_OK;
}

Status tensor_from_integers(const int64_t *values, const Shape *shape, DType dtype, Tensor **out) {
    size_t count;
    TRY(literal_new(false, shape, dtype, out, &count));
    if (count) memcpy((*out)->host->as.integers, values, count * sizeof *values);
    return STATUS_OK;
}

Status tensor_from_floats(const double *values, const Shape *shape, DType dtype, Tensor **out) {
    size_t count;
    TRY(literal_new(true, shape, dtype, out, &count));
    if (count) memcpy((*out)->host->as.floats, values, count * sizeof *values);
    return STATUS_OK;
}

Tensor *tensor_view_of(Tensor *source, const TensorView *view) {
    Tensor *tensor = tensor_allocate();
    Buffer *buffer = source->view.buffer;
    ASSERT(buffer != NULL);
    tensor->view = *view;
    tensor->view.buffer = buffer_retain(buffer);
    tensor->device = source->device;
    ASSERT(tensor->view.rank <= RANK_MAX && view_fits(&tensor->view));
    return tensor;
}

Tensor *tensor_from_buffer(Buffer *buffer, size_t offset, DType dtype, const Shape *shape) {
    Tensor *tensor = tensor_allocate();
    size_t bytes;
    ASSERT(view_lay_out(&tensor->view, dtype, shape, &bytes));
    ASSERT(offset <= buffer->bytes && bytes <= buffer->bytes - offset);
    tensor->view.buffer = buffer;
    tensor->view.offset = offset;
    tensor->device = buffer->device;
    return tensor;
}

Tensor *tensor_retain(Tensor *tensor) {
    ASSERT(tensor->counted.refs > 0);
    tensor->counted.refs++;
    return tensor;
}

void tensor_release(Tensor *tensor) {
    if (tensor && --tensor->counted.refs <= 0) tensor_destroy(tensor);
}

static void forget_host(Tensor *tensor) {
    free(tensor->host);
    tensor->host = NULL;
}

void tensor_destroy(Tensor *tensor) {
    ASSERT(tensor->counted.refs == 0); // -1: released once more than retained
    if (UNLIKELY(tensor->host != NULL)) forget_host(tensor);
    if (UNLIKELY(tensor->node != NULL)) tape_leave(tensor);
    buffer_release(tensor->view.buffer);
    Tensors *tensors = tensors_state();
    tensor->device = (Device *)(void *)tensors->spare;
    tensors->spare = tensor;
}

static int64_t clamp_integer(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : (value > high ? high : value);
}

// Writes one number as an element. Ints wrap to their dtype; floats truncate and saturate.
static void store_number(void *bytes, DType dtype, const HostNumbers *numbers, size_t index) {
    bool is_float = numbers->is_float;
    double number = is_float ? numbers->as.floats[index] : (double)numbers->as.integers[index];
    int64_t integer = is_float ? integer_from_double(number) : numbers->as.integers[index];
    switch (dtype) {
    case DTYPE_BOOL: ((uint8_t *)bytes)[index] = is_float ? number != 0 : integer != 0; return;
    case DTYPE_UINT8:
        ((uint8_t *)bytes)[index] =
            (uint8_t)(is_float ? clamp_integer(integer, 0, UINT8_MAX) : integer);
        return;
    case DTYPE_INT8:
        ((int8_t *)bytes)[index] =
            (int8_t)(is_float ? clamp_integer(integer, INT8_MIN, INT8_MAX) : integer);
        return;
    case DTYPE_INT16:
        ((int16_t *)bytes)[index] =
            (int16_t)(is_float ? clamp_integer(integer, INT16_MIN, INT16_MAX) : integer);
        return;
    case DTYPE_INT32:
        ((int32_t *)bytes)[index] =
            (int32_t)(is_float ? clamp_integer(integer, INT32_MIN, INT32_MAX) : integer);
        return;
    case DTYPE_INT64: ((int64_t *)bytes)[index] = integer; return;
    case DTYPE_FLOAT16: ((uint16_t *)bytes)[index] = half_from_float((float)number); return;
    case DTYPE_BFLOAT16: ((uint16_t *)bytes)[index] = bfloat_from_float((float)number); return;
    case DTYPE_FLOAT32: ((float *)bytes)[index] = is_float ? (float)number : (float)integer; return;
    default: ((double *)bytes)[index] = number; return;
    }
}

Status tensor_materialize(Tensor *tensor) {
    if (LIKELY(tensor->view.buffer != NULL)) return STATUS_OK;
    ASSERT(tensor->host != NULL);
    size_t count = (size_t)tensor_count(tensor);
    DType dtype = tensor->view.dtype;
    size_t bytes = count * dtype_size(dtype);
    BufferLabel label = {.dtype = dtype, .rank = tensor->view.rank};
    memcpy(label.dims, tensor->view.dims, (size_t)label.rank * sizeof *label.dims);
    Buffer *buffer;
    TRY(buffer_new(tensor->device, bytes, &label, &buffer));
    void *elements = memory_allocate(bytes);
    for (size_t i = 0; i < count; i++) store_number(elements, dtype, tensor->host, i);
    Status status = bytes ? buffer_upload(buffer, 0, elements, bytes) : STATUS_OK;
    free(elements);
    if (status != STATUS_OK) {
        buffer_release(buffer);
        return status;
    }
    if (UNLIKELY(tensor->host->unknown)) foretell_forget(buffer);
    tensor->view.buffer = buffer;
    return STATUS_OK;
}

void tensor_forget(Tensor *tensor) {
    ASSERT(foretelling() && (tensor->host || tensor->view.buffer));
    if (tensor->host) tensor->host->unknown = true;
    if (tensor->view.buffer) foretell_forget(tensor->view.buffer);
}

Status tensor_from_host(const Tensor *literal, DType dtype, Tensor **out) {
    Shape shape = tensor_shape(literal);
    const HostNumbers *host = literal->host;
    ASSERT(host != NULL);
    Tensor *converted;
    TRY(host->is_float ? tensor_from_floats(host->as.floats, &shape, dtype, &converted)
                       : tensor_from_integers(host->as.integers, &shape, dtype, &converted));
    converted->host->unknown = host->unknown;
    Status status = tensor_materialize(converted);
    if (status != STATUS_OK) {
        tensor_release(converted);
        return status;
    }
    forget_host(converted);
    *out = converted;
    return STATUS_OK;
}
