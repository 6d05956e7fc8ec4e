// A tensor buffer: an arena on the default device from which a script takes tensors one after the
// other. Slots never overlap; when the arena is rewound, tensors that are still held move out.
#ifndef MODEL_TENSOR_BUFFER_H
#define MODEL_TENSOR_BUFFER_H

#include "tensor/tensor.h"

typedef struct TensorBuffer TensorBuffer;

// STATUS_VALUE for a size below 0, STATUS_MEMORY when the device has not that much.
Status tensor_buffer_new(int64_t bytes, TensorBuffer **out) MUST_USE;
void tensor_buffer_release(TensorBuffer *buffer); // its tensors live on
// A tensor of that shape with every element `value`. STATUS_MEMORY with the numbers when full.
Status tensor_buffer_take(TensorBuffer *buffer, DType dtype, const Shape *shape, double value,
                          Tensor **out) MUST_USE;
size_t tensor_buffer_bytes(const TensorBuffer *buffer);
size_t tensor_buffer_used(const TensorBuffer *buffer);
// Back to where `used` was; what was taken since and is still held gets memory of its own.
Status tensor_buffer_rewind(TensorBuffer *buffer, size_t used) MUST_USE;

#endif
