// Writes tensors' numbers, converted on the way.
#include "model/tensor_write.h"

#include <stdlib.h>

#include "base/file_replace.h"
#include "model/named_tensors.h"
#include "model/quantise.h"
#include "tensor/op.h"

size_t tensor_stored_bytes(const Shape *shape, DType dtype) {
    size_t elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= (size_t)shape->dims[i];
    const DTypeInfo *info = &dtype_info[dtype];
    return elements / (size_t)info->block_elements * (size_t)info->block_bytes;
}

static Status write_plain(FILE *stream, Tensor *tensor) {
    SCOPED_MEMORY void *numbers = NULL;
    size_t bytes = 0;
    TRY(stored_download(tensor, &numbers, &bytes));
    return stream_write(stream, numbers, bytes);
}

// float32 numbers as blocks.
static Status write_quantised(FILE *stream, Tensor *tensor, DType stored, const char *name) {
    Shape shape = tensor_shape(tensor);
    SCOPED_MEMORY void *numbers = NULL;
    size_t length = 0, bytes = tensor_stored_bytes(&shape, stored);
    TRY(stored_download(tensor, &numbers, &length));
    SCOPED_MEMORY uint8_t *blocks = memory_allocate(bytes + 1);
    return quantise_row(stored, numbers, tensor_count(tensor), blocks)
               ? stream_write(stream, blocks, bytes)
               : fail(STATUS_VALUE,
                      "tensor `%s` has numbers that %s cannot hold: nan, inf or too large", name,
                      dtype_name(stored));
}

Status tensor_write(FILE *stream, Tensor *tensor, DType stored, const char *name) {
    bool quantise = quantise_can(stored) && tensor_dtype(tensor) != stored;
    SCOPED_TENSOR(converted);
    TRY(tensor_cast(tensor, quantise ? DTYPE_FLOAT32 : stored, &converted));
    return quantise ? write_quantised(stream, converted, stored, name)
                    : write_plain(stream, converted);
}
