// Tensors read back to the host as doubles or integers. Every read waits for the device.
#include "tensor/op.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/convert.h"
#include "device/foretell.h"
#include "tensor/scalar.h"

// Elements that lie one behind the other as doubles, or as integers.
static void to_floats(double *out, const void *elements, DType dtype, size_t count) {
    cpu_convert()->load[COMPUTE_F64][dtype](out, elements, 1, (int64_t)count);
}

static void to_integers(int64_t *out, const void *elements, DType dtype, size_t count) {
    cpu_convert()->load[COMPUTE_I64][dtype](out, elements, 1, (int64_t)count);
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
    to_floats(out, elements, dtype, count);
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
    to_integers(out, elements, dtype, count);
    free(elements);
    return STATUS_OK;
}

// --- what is shown

// Reads some places of each dimension: all, or `edge` at both ends of those that have more.
typedef struct EdgeReader {
    const TensorView *view;
    int64_t edge;
    size_t size; // of an element
    char *out;   // where the next one goes
} EdgeReader;

static int64_t place_count(const EdgeReader *reader, int dim) {
    return edge_count(reader->view->dims[dim], reader->edge);
}

static int64_t place_at(const EdgeReader *reader, int dim, int64_t i) {
    return i < reader->edge ? i : reader->view->dims[dim] - place_count(reader, dim) + i;
}

static void pick(EdgeReader *reader, int dim, const char *at) {
    if (dim == reader->view->rank) {
        memcpy(reader->out, at, reader->size);
        reader->out += reader->size;
        return;
    }
    int64_t step = reader->view->strides[dim] * (int64_t)reader->size;
    for (int64_t i = 0; i < place_count(reader, dim); i++)
        pick(reader, dim + 1, at + place_at(reader, dim, i) * step);
}

enum { PART_BYTES_MAX = 1 << 16 };

// How far the elements lie from the first one, in elements.
typedef struct Extent {
    int64_t low, high;
} Extent;

static Extent extent_of(const TensorView *view, int dim) {
    Extent extent = {0, 0};
    for (int i = dim; i < view->rank; i++) {
        int64_t most = (view->dims[i] - 1) * view->strides[i];
        *(most < 0 ? &extent.low : &extent.high) += most;
    }
    return extent;
}

// All that lies between, where that is little; else each place by itself.
static Status read_from(EdgeReader *reader, int dim, int64_t first) {
    const TensorView *view = reader->view;
    int64_t size = (int64_t)reader->size;
    Extent extent = extent_of(view, dim);
    if (extent.high - extent.low < PART_BYTES_MAX / size) {
        size_t offset = view->offset + (size_t)((first + extent.low) * size);
        size_t bytes = (size_t)((extent.high - extent.low + 1) * size);
        SCOPED_MEMORY char *part = memory_allocate(bytes);
        TRY(buffer_download(view->buffer, offset, part, bytes));
        pick(reader, dim, part - extent.low * size);
        return STATUS_OK;
    }
    for (int64_t i = 0; i < place_count(reader, dim); i++)
        TRY(read_from(reader, dim + 1, first + place_at(reader, dim, i) * view->strides[dim]));
    return STATUS_OK;
}

Status tensor_read_edges(Tensor *tensor, int64_t edge, size_t count, double *floats,
                         int64_t *integers) {
    ASSERT(!dtype_is_quant(tensor->view.dtype) && count > 0 && !floats != !integers);
    const HostNumbers *host = tensor->host;
    DType dtype = !host ? tensor->view.dtype : host->is_float ? DTYPE_FLOAT64 : DTYPE_INT64;
    SCOPED_MEMORY char *elements = memory_allocate(count * dtype_size(dtype));
    EdgeReader reader = {&tensor->view, edge, dtype_size(dtype), elements};
    if (host && UNLIKELY(host->unknown)) foretell_look(origin_current.at);
    if (host)
        pick(&reader, 0, (const char *)host->as.integers);
    else
        TRY(read_from(&reader, 0, 0));
    ASSERT(reader.out == elements + count * dtype_size(dtype));
    if (floats) to_floats(floats, elements, dtype, count);
    if (integers) to_integers(integers, elements, dtype, count);
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
        out->dtype = DTYPE_FLOAT64;
        to_floats(&out->as.f, bytes, dtype, 1);
    } else {
        out->dtype = dtype == DTYPE_BOOL ? DTYPE_BOOL : DTYPE_INT64;
        to_integers(&out->as.i, bytes, dtype, 1);
    }
    return STATUS_OK;
}
