// Where tensors meet the other kinds of value: making them, asking about them, taking them apart.
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/output.h"
#include "eval/access.h"
#include "ranks/ranks.h"
#include "tensor/gradient/backward.h"
#include "tensor/join.h"
#include "tensor/op.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/items.h"

// Replaces *tensor (a reference) by the result of a conversion of it.
static Status replace_tensor(Tensor **tensor, Status status, Tensor *converted) {
    tensor_release(*tensor);
    *tensor = status == STATUS_OK ? converted : NULL;
    return status;
}

Value builtin_tensor(BuiltinCall *call) {
    Tensor *tensor, *converted = NULL;
    TRY_VALUE(value_to_tensor(call->arguments[0], "tensor: x", &tensor));
    if (call->arguments[1].kind == VALUE_DTYPE) {
        DType dtype = (DType)call->arguments[1].as.integer;
        Status cast = tensor_cast(tensor, dtype, &converted);
        TRY_VALUE(replace_tensor(&tensor, cast, converted));
    }
    if (call->arguments[2].kind == VALUE_ABSENT) return value_tensor(tensor);
    Device *device;
    Status status = value_to_device(call->arguments[2], "device", &device);
    if (status == STATUS_OK) status = tensor_to_device(tensor, device, &converted);
    TRY_VALUE(replace_tensor(&tensor, status, converted));
    return value_tensor(tensor);
}

static Value sizes_of(Value x) {
    Shape shape = {0};
    bool number = x.kind == VALUE_INT || x.kind == VALUE_FLOAT || x.kind == VALUE_BOOL;
    if (x.kind == VALUE_TENSOR || value_is_handle_tensor(x)) {
        SCOPED_TENSOR(tensor);
        TRY_VALUE(value_to_tensor(x, "shape: x", &tensor));
        shape = tensor_shape_told(tensor);
    } else if (!number) {
        shape.rank = 1;
        if (value_length(x, &shape.dims[0]) != STATUS_OK) {
            fail_kind("shape: x", "a tensor or a list", x);
            return value_fail();
        }
    }
    Value list = value_list(0);
    for (int i = 0; i < shape.rank; i++) list_push(list.as.list, value_int(shape.dims[i]));
    return list;
}

Value builtin_shape(BuiltinCall *call) {
    return sizes_of(call->arguments[0]);
}

// Calls `ask` with the first argument as a tensor.
static Value ask_tensor(const BuiltinCall *call, Value (*ask)(const Tensor *tensor)) {
    SCOPED_TENSOR(tensor);
    TRY_VALUE(value_to_tensor(call->arguments[0], "x", &tensor));
    return ask(tensor);
}

static Value ask_rank(const Tensor *tensor) {
    return value_int(tensor_rank(tensor));
}

static Value ask_numel(const Tensor *tensor) {
    Shape shape = tensor_shape_told(tensor);
    return value_int(shape_count(&shape));
}

static Value ask_dtype(const Tensor *tensor) {
    return (Value){.kind = VALUE_DTYPE, .as.integer = tensor_dtype(tensor)};
}

static Value ask_device(const Tensor *tensor) {
    return value_cstring(tensor->device->name);
}

Value builtin_rank(BuiltinCall *call) {
    if (call->arguments[0].kind == VALUE_ABSENT) return value_int(ranks_own());
    return ask_tensor(call, ask_rank);
}

Value builtin_numel(BuiltinCall *call) {
    return ask_tensor(call, ask_numel);
}

Value builtin_dtype(BuiltinCall *call) {
    return ask_tensor(call, ask_dtype);
}

Value builtin_device(BuiltinCall *call) {
    return ask_tensor(call, ask_device);
}

// --- to lists

Value builtin_to_list(BuiltinCall *call) {
    Value x = call->arguments[0];
    if (x.kind != VALUE_TENSOR) return value_to_items(x, "to_list: x");
    tape_note_read("to_list", x.as.tensor);
    if (tensor_rank(x.as.tensor) > 0) return tensor_to_list(x.as.tensor);
    fail_kind("to_list: x", "a tensor with elements", x);
    fail_help("a rank-0 tensor is a number: float(x)");
    return value_fail();
}

// --- pieces

static Value take_pieces(TensorArray *pieces) {
    Value list = value_list(pieces->count);
    for (size_t i = 0; i < pieces->count; i++)
        list_push(list.as.list, value_tensor(tensor_retain(pieces->items[i])));
    tensor_array_release(pieces);
    return list;
}

Value builtin_split_tensor(BuiltinCall *call) {
    int64_t *sizes;
    size_t count;
    TRY_VALUE(value_to_ints(call->arguments[1], "split: size", &sizes, &count));
    Tensor *tensor;
    TensorArray pieces = {0};
    Status status = value_to_tensor(call->arguments[0], "split: x", &tensor);
    if (status == STATUS_OK) {
        status = tensor_split(tensor, sizes, count, call->arguments[2].as.integer, &pieces);
        tensor_release(tensor);
    }
    free(sizes);
    return status == STATUS_OK ? take_pieces(&pieces) : value_fail();
}

Value builtin_chunk(BuiltinCall *call) {
    SCOPED_TENSOR(tensor);
    TensorArray pieces = {0};
    TRY_VALUE(value_to_tensor(call->arguments[0], "chunk: x", &tensor));
    Status status =
        tensor_chunk(tensor, call->arguments[1].as.integer, call->arguments[2].as.integer, &pieces);
    return status == STATUS_OK ? take_pieces(&pieces) : value_fail();
}

// --- looking at logits

// The last row of a matrix, the vector itself otherwise; [n].
static Status last_row(Tensor *logits, Tensor **out) {
    if (tensor_rank(logits) == 1) {
        *out = tensor_retain(logits);
        return STATUS_OK;
    }
    if (tensor_rank(logits) == 2) return tensor_select(logits, 0, -1, out);
    return fail_kind("print_top_k: logits", "a vector or a matrix", value_tensor(logits));
}

static Status read_probabilities(Tensor *logits, int64_t k, double *probabilities, int64_t *ids) {
    Tensor *all, *largest[2];
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    TRY(op_with(OP_softmax, &logits, 1, &attributes, &all));
    attributes.given |= ATTRIBUTE_BIT(k);
    attributes.k = k;
    Status status = op_with(OP_topk, &all, 1, &attributes, largest);
    tensor_release(all);
    TRY(status);
    status = tensor_read_floats(largest[0], probabilities);
    if (status == STATUS_OK) status = tensor_read_integers(largest[1], ids);
    tensor_release(largest[0]);
    tensor_release(largest[1]);
    return status;
}

static Status print_largest(Tensor *row, int64_t k) {
    int64_t count = tensor_count(row);
    if (k < 0)
        return fail(STATUS_VALUE, "print_top_k: k must not be negative, but it is %lld",
                    (long long)k);
    if (k > count) k = count;
    SCOPED_MEMORY double *probabilities = memory_allocate_zeroed((size_t)k, sizeof *probabilities);
    SCOPED_MEMORY int64_t *ids = memory_allocate_zeroed((size_t)k, sizeof *ids);
    Status status = read_probabilities(row, k, probabilities, ids);
    for (int64_t i = 0; status == STATUS_OK && i < k; i++)
        fprintf(output_stream(), "%3lld. id %-8lld %.4f\n", (long long)i + 1, (long long)ids[i],
                probabilities[i]);
    return status;
}

Value builtin_print_top_k(BuiltinCall *call) {
    Tensor *logits, *row;
    TRY_VALUE(value_to_tensor(call->arguments[0], "print_top_k: logits", &logits));
    Status status = last_row(logits, &row);
    tensor_release(logits);
    TRY_VALUE(status);
    status = print_largest(row, call->arguments[1].as.integer);
    tensor_release(row);
    return status == STATUS_OK ? value_none() : value_fail();
}
