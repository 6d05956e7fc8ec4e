// Tensor buffers: arenas that a script makes its tensors in.
#include "eval/bind.h"
#include "model/tensor_buffer.h"
#include "tensor/op.h"
#include "value/handles.h"

static void buffer_payload_release(void *payload) {
    tensor_buffer_release(payload);
}

static void buffer_print(Handle *handle, Text *out) {
    text_format(out, "<buffer, %zu of %zu bytes used>", tensor_buffer_used(handle->payload),
                tensor_buffer_bytes(handle->payload));
}

const HandleType handle_buffer = {
    .name = "buffer", .release = buffer_payload_release, .print = buffer_print};

Value builtin_buffer_new(BuiltinCall *call) {
    int64_t bytes;
    TensorBuffer *buffer;
    if (value_to_int(call->arguments[0], "bytes", &bytes) != STATUS_OK ||
        tensor_buffer_new(bytes, &buffer) != STATUS_OK)
        return value_fail();
    return value_handle(&handle_buffer, buffer);
}

static TensorBuffer *buffer_argument(const BuiltinCall *call) {
    return call->arguments[0].as.handle->payload; // binding has checked the kind
}

static Value take(const BuiltinCall *call, DType dtype, double value) {
    Shape shape;
    Tensor *tensor;
    if (value_to_shape(call->arguments[1], "shape", &shape) != STATUS_OK ||
        tensor_buffer_take(buffer_argument(call), dtype, &shape, value, &tensor) != STATUS_OK)
        return value_fail();
    return value_tensor(tensor);
}

Value builtin_buffer_zeros(BuiltinCall *call) {
    return take(call, (DType)call->arguments[2].as.integer, 0);
}

Value builtin_buffer_ones(BuiltinCall *call) {
    return take(call, (DType)call->arguments[2].as.integer, 1);
}

static Status dtype_of_size(int64_t size, DType *out) {
    *out = size == 2 ? DTYPE_FLOAT16 : size == 8 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    if (size == 2 || size == 4 || size == 8) return STATUS_OK;
    return fail(STATUS_VALUE, "an element has 2, 4 or 8 bytes, not %lld", (long long)size);
}

Value builtin_buffer_alloc(BuiltinCall *call) {
    int64_t count, size;
    DType dtype;
    if (value_to_int(call->arguments[2], "count", &count) != STATUS_OK ||
        value_to_int(call->arguments[3], "size", &size) != STATUS_OK ||
        dtype_of_size(size, &dtype) != STATUS_OK)
        return value_fail();
    if (count < 1)
        return value_failed(
            fail(STATUS_VALUE, "count is %lld; it must be at least 1", (long long)count));
    if (count == 1) return take(call, dtype, 0);
    size_t bytes = tensor_buffer_bytes(buffer_argument(call));
    if ((uint64_t)count > bytes)
        return value_failed(fail(STATUS_VALUE,
                                 "count is %lld; a buffer of %zu bytes cannot hold so many",
                                 (long long)count, bytes));
    Value list = value_list(0);
    for (int64_t i = 0; i < count; i++) {
        Value tensor = take(call, dtype, 0);
        if (tensor.kind == VALUE_FAIL) {
            value_release(list);
            return tensor;
        }
        list_push(list.as.list, tensor);
    }
    return list;
}

Value builtin_buffer_used(BuiltinCall *call) {
    return value_int((int64_t)tensor_buffer_used(buffer_argument(call)));
}

Value builtin_buffer_capacity(BuiltinCall *call) {
    return value_int((int64_t)tensor_buffer_bytes(buffer_argument(call)));
}

Value builtin_buffer_reset(BuiltinCall *call) {
    if (tensor_buffer_rewind(buffer_argument(call), 0) != STATUS_OK) return value_fail();
    return value_retain(call->arguments[0]);
}

Value builtin_create_cache(BuiltinCall *call) {
    int64_t rows;
    Shape shape;
    if (value_to_int(call->arguments[0], "max_len", &rows) != STATUS_OK ||
        value_to_shape(call->arguments[1], "shape", &shape) != STATUS_OK)
        return value_fail();
    SCOPED_VALUE(dims) = value_list((size_t)shape.rank + 1);
    list_push(dims.as.list, value_int(rows));
    for (int i = 0; i < shape.rank; i++) list_push(dims.as.list, value_int(shape.dims[i]));
    Value arguments[] = {dims, call->arguments[2]};
    return interp_call_builtin(call->interp, catalog_find("zeros", 5), arguments, 2);
}
