// Tensors read back to the host as doubles or integers. Every read waits for the device.
#include "tensor/op.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "device/foretell.h"
#include "tensor/scalar.h"

static double load_float(const void *bytes, DType dtype, size_t index) {
    switch (dtype) {
    case DTYPE_BOOL:
    case DTYPE_UINT8: return ((const uint8_t *)bytes)[index];
    case DTYPE_INT8: return ((const int8_t *)bytes)[index];
    case DTYPE_INT16: return ((const int16_t *)bytes)[index];
    case DTYPE_INT32: return ((const int32_t *)bytes)[index];
    case DTYPE_INT64: return (double)((const int64_t *)bytes)[index];
    case DTYPE_FLOAT16: return (double)half_to_float(((const uint16_t *)bytes)[index]);
    case DTYPE_BFLOAT16: return (double)bfloat_to_float(((const uint16_t *)bytes)[index]);
    case DTYPE_FLOAT32: return (double)((const float *)bytes)[index];
    default: return ((const double *)bytes)[index];
    }
}

static int64_t load_integer(const void *bytes, DType dtype, size_t index) {
    if (dtype == DTYPE_INT64) return ((const int64_t *)bytes)[index];
    return integer_from_double(load_float(bytes, dtype, index));
}

// The elements in row-major order, in the tensor's own dtype (quantised ones as float32), malloc'd.
static Status download_elements(Tensor *tensor, void **out, DType *dtype) {
    Tensor *plain;
    TRY(tensor_cast(tensor, dtype_is_quant(tensor->view.dtype) ? DTYPE_FLOAT32 : tensor->view.dtype,
                    &plain));
    Tensor *contiguous;
    Status status = tensor_contiguous(plain, &contiguous);
    tensor_release(plain);
    TRY(status);
    *dtype = contiguous->view.dtype;
    ASSERT(!dtype_is_quant(*dtype));
    size_t bytes = (size_t)tensor_count(contiguous) * dtype_size(*dtype);
    *out = memory_allocate(bytes);
    if (bytes)
        status = buffer_download(contiguous->view.buffer, contiguous->view.offset, *out, bytes);
    tensor_release(contiguous);
    if (status != STATUS_OK) memory_free_of(out);
    return status;
}

Status tensor_read_floats(Tensor *tensor, double *out) {
    size_t count = (size_t)tensor_count(tensor);
    const HostNumbers *host = tensor->host;
    if (host) {
        if (UNLIKELY(host->unknown)) foretell_look(origin_current.at);
        for (size_t i = 0; i < count; i++)
            out[i] = host->is_float ? host->as.floats[i] : (double)host->as.integers[i];
        return STATUS_OK;
    }
    void *elements;
    DType dtype;
    TRY(download_elements(tensor, &elements, &dtype));
    for (size_t i = 0; i < count; i++) out[i] = load_float(elements, dtype, i);
    free(elements);
    return STATUS_OK;
}

Status tensor_read_integers(Tensor *tensor, int64_t *out) {
    size_t count = (size_t)tensor_count(tensor);
    const HostNumbers *host = tensor->host;
    if (host) {
        if (UNLIKELY(host->unknown)) foretell_look(origin_current.at);
        for (size_t i = 0; i < count; i++)
            out[i] =
                host->is_float ? integer_from_double(host->as.floats[i]) : host->as.integers[i];
        return STATUS_OK;
    }
    void *elements;
    DType dtype;
    TRY(download_elements(tensor, &elements, &dtype));
    for (size_t i = 0; i < count; i++) out[i] = load_integer(elements, dtype, i);
    free(elements);
    return STATUS_OK;
}

Status tensor_read_bools(Tensor *tensor, uint8_t *out) {
    ASSERT(tensor->view.dtype == DTYPE_BOOL);
    void *elements;
    DType dtype;
    TRY(tensor_materialize(tensor));
    TRY(download_elements(tensor, &elements, &dtype));
    memcpy(out, elements, (size_t)tensor_count(tensor));
    free(elements);
    return STATUS_OK;
}

Status tensor_read_scalar(Tensor *tensor, Scalar *out) {
    if (tensor_count(tensor) != 1)
        return fail(STATUS_SHAPE, "wanted one number, but this is %s",
                    tensor_type_name(tensor).text);
    DType dtype = tensor->view.dtype;
    out->unknown = false;
    if (tensor->host) {
        if (dtype_is_float(dtype)) {
            out->dtype = DTYPE_FLOAT64;
            return tensor_read_floats(tensor, &out->as.f);
        }
        out->dtype = dtype == DTYPE_BOOL ? DTYPE_BOOL : DTYPE_INT64;
        return tensor_read_integers(tensor, &out->as.i);
    }
    _Alignas(8) char bytes[8];
    ASSERT(dtype_size(dtype) <= sizeof bytes);
    TRY(buffer_download(tensor->view.buffer, tensor->view.offset, bytes, dtype_size(dtype)));
    if (dtype_is_float(dtype)) {
        *out = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = load_float(bytes, dtype, 0)};
    } else {
        out->dtype = dtype == DTYPE_BOOL ? DTYPE_BOOL : DTYPE_INT64;
        out->as.i = load_integer(bytes, dtype, 0);
    }
    return STATUS_OK;
}
