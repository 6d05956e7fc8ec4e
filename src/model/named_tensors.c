// What all readers and writers of tensor files share.
#include "model/named_tensors.h"

#include <stdlib.h>

#include "tensor/op.h"

void named_tensors_add(NamedTensors *tensors, const char *name, Tensor *tensor) {
    VECTOR_PUSH(tensors, ((NamedTensor){memory_copy_string(name, strlen(name)), tensor}));
}

Tensor *named_tensors_find(const NamedTensors *tensors, const char *name) {
    for (size_t i = 0; i < tensors->count; i++)
        if (strcmp(tensors->items[i].name, name) == 0) return tensors->items[i].tensor;
    return NULL;
}

void named_tensors_free(NamedTensors *tensors) {
    while (tensors->count > 0) {
        NamedTensor *last = &tensors->items[--tensors->count];
        tensor_release(last->tensor);
        free(last->name);
    }
    VECTOR_FREE(tensors);
}

bool stored_bytes(DType dtype, const Shape *shape, size_t *out) {
    size_t bytes = dtype_size(dtype);
    *out = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0) return true;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(bytes, (size_t)shape->dims[i], &bytes)) return false;
    *out = bytes;
    return bytes <= INT64_MAX;
}

Status stored_new(DType dtype, const Shape *shape, Tensor **out) {
    Device *device;
    TRY(device_default(&device));
    return tensor_new(device, dtype == DTYPE_BOOL ? DTYPE_UINT8 : dtype, shape, out);
}

Status stored_finish(Tensor *stored, DType dtype, Tensor **out) {
    Status status = tensor_cast(stored, dtype, out);
    tensor_release(stored);
    return status;
}

Status stored_download(Tensor *tensor, void **out, size_t *length) {
    Tensor *dense;
    TRY(tensor_contiguous(tensor, &dense));
    const DTypeInfo *info = &dtype_info[tensor_dtype(dense)];
    size_t bytes = (size_t)(tensor_count(dense) / info->block_elements) * (size_t)info->block_bytes;
    void *numbers = memory_allocate(bytes + 1);
    Status status = STATUS_OK;
    if (bytes > 0) status = buffer_download(dense->view.buffer, dense->view.offset, numbers, bytes);
    tensor_release(dense);
    if (status != STATUS_OK) {
        free(numbers);
        return status;
    }
    *out = numbers;
    *length = bytes;
    return STATUS_OK;
}
