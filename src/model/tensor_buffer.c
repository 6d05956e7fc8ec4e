// The arena keeps a reference to every tensor it gave out, so it knows which ones are still held.
#include "model/tensor_buffer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "tensor/op.h"

enum { SLOT_ALIGNMENT = 64 };

typedef struct Slot {
    Tensor *tensor;
    size_t begin;
} Slot;

struct TensorBuffer {
    Buffer *memory;
    size_t bytes, used;
    VECTOR(Slot) slots;
};

static Status make_memory(TensorBuffer *buffer, Device *device) {
    BufferLabel label = {.dtype = DTYPE_UINT8, .rank = -1};
    return buffer_new(device, buffer->bytes, &label, &buffer->memory);
}

Status tensor_buffer_new(int64_t bytes, TensorBuffer **out) {
    if (bytes < 0)
        return fail(STATUS_VALUE, "a tensor buffer cannot have %lld bytes", (long long)bytes);
    Device *device;
    TRY(device_default(&device));
    TensorBuffer *buffer = memory_allocate_zeroed(1, sizeof *buffer);
    buffer->bytes = (size_t)bytes;
    Status status = make_memory(buffer, device);
    if (status == STATUS_OK)
        *out = buffer;
    else
        free(buffer);
    return status;
}

void tensor_buffer_release(TensorBuffer *buffer) {
    for (size_t i = 0; i < buffer->slots.count; i++) tensor_release(buffer->slots.items[i].tensor);
    VECTOR_FREE(&buffer->slots);
    buffer_release(buffer->memory);
    free(buffer);
}

size_t tensor_buffer_bytes(const TensorBuffer *buffer) {
    return buffer->bytes;
}

size_t tensor_buffer_used(const TensorBuffer *buffer) {
    return buffer->used;
}

// The bytes of a tensor; false when no machine has so many.
static bool slot_bytes(DType dtype, const Shape *shape, size_t *out) {
    *out = (size_t)dtype_info[dtype].block_bytes;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(*out, (size_t)shape->dims[i], out)) return false;
    return true;
}

static Status check_shape(DType dtype, const Shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return fail(STATUS_SHAPE, "dimension %d of the shape is %lld; it must not be negative",
                        i, (long long)shape->dims[i]);
    if (!dtype_is_quant(dtype)) return STATUS_OK;
    return fail(STATUS_DTYPE, "%s is a type of read-only weights; it cannot be made",
                dtype_name(dtype));
}

Status tensor_buffer_take(TensorBuffer *buffer, DType dtype, const Shape *shape, double value,
                          Tensor **out) {
    size_t bytes = 0, left = buffer->bytes - buffer->used;
    TRY(check_shape(dtype, shape));
    if (!slot_bytes(dtype, shape, &bytes) || bytes > left) {
        (void)fail(STATUS_MEMORY, "the tensor buffer is full: %zu bytes asked for, %zu of %zu left",
                   bytes, left, buffer->bytes);
        return fail_help("make it larger, or reset() it when its tensors are no longer needed");
    }
    Tensor *tensor = tensor_from_buffer(buffer_retain(buffer->memory), buffer->used, dtype, shape);
    Status status = STATUS_OK;
    if (bytes > 0)
        status = op_fill_view(&tensor->view, (Scalar){.dtype = DTYPE_FLOAT64, .as.f = value},
                              "tensor buffer");
    if (status != STATUS_OK) {
        tensor_release(tensor);
        return status;
    }
    VECTOR_PUSH(&buffer->slots, ((Slot){tensor_retain(tensor), buffer->used}));
    size_t padded = (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    buffer->used += padded < left ? padded : left;
    ASSERT(buffer->used <= buffer->bytes);
    *out = tensor;
    return STATUS_OK;
}

// Gives a tensor memory of its own, with the same contents.
static Status move_out(Tensor *tensor) {
    Shape shape = tensor_shape(tensor);
    SCOPED_TENSOR(copy);
    TRY(tensor_new(tensor->device, tensor_dtype(tensor), &shape, &copy));
    Status status = STATUS_OK;
    if (tensor_count(tensor) > 0)
        status = op_copy_view(&tensor->view, &copy->view, "tensor buffer");
    if (status == STATUS_OK) {
        buffer_release(tensor->view.buffer);
        tensor->view = copy->view;
        buffer_retain(tensor->view.buffer);
    }
    return status;
}

// Whether views of what was given out, next to the slots that are left, still read the memory.
static bool has_views(const TensorBuffer *buffer) {
    int holders = atomic_load_explicit(&buffer->memory->refs, memory_order_acquire);
    return (size_t)holders > 1 + buffer->slots.count;
}

Status tensor_buffer_rewind(TensorBuffer *buffer, size_t used) {
    size_t begin = buffer->used;
    while (buffer->slots.count > 0) {
        Slot *slot = &buffer->slots.items[buffer->slots.count - 1];
        if (slot->begin < used) break;
        if (slot->tensor->counted.refs > 1) TRY(move_out(slot->tensor));
        begin = slot->begin;
        tensor_release(slot->tensor);
        buffer->slots.count--;
    }
    // Views keep the memory as it is: the arena gets another, or goes on behind what they may read
    // while tensors from before the mark are in it.
    if (has_views(buffer) && buffer->slots.count > 0) return STATUS_OK;
    if (has_views(buffer)) {
        Buffer *old = buffer->memory;
        TRY(make_memory(buffer, old->device));
        buffer_release(old);
    }
    buffer->used = begin;
    return STATUS_OK;
}
