// Derivatives of functions of one tensor, as matrices and along vectors.
#include <stdlib.h>

#include "base/memory.h"
#include "eval/code.h"
#include "eval/invoke.h"
#include "tensor/compose.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/tape.h"
#include "tensor/index.h"
#include "tensor/join.h"
#include "tensor/parameter.h"
#include "value/convert.h"

// f at x: x under an identity of its own, and f's result as a tensor of floats.
typedef struct Point {
    Tensor *x, *y;
} Point;

static void release_point(Point *point) {
    tensor_release(point->x);
    tensor_release(point->y);
}

static Status evaluate(const BuiltinCall *call, Tensor *x, Point *out) {
    if (!dtype_is_float(tensor_dtype(x)))
        return fail(STATUS_DTYPE, "%s differentiates with respect to floats, but x is %s",
                    call->row->signature.name, tensor_type_name(x).text);
    TRY(tape_watch(x, &out->x));
    Value argument = value_tensor(tensor_retain(out->x));
    Value result = interp_call(call->interp, call->arguments[0], &argument, 1);
    value_release(argument);
    if (failed(result)) return error_current()->code;
    Status status = value_to_tensor(result, "the result of the function", &out->y);
    value_release(result);
    TRY(status);
    if (dtype_is_float(tensor_dtype(out->y))) return STATUS_OK;
    return fail(STATUS_DTYPE, "%s needs a function that gives floats, not %s",
                call->row->signature.name, tensor_type_name(out->y).text);
}

static Status check_shape(const BuiltinCall *call, const Tensor *v, const Tensor *like) {
    Shape have = tensor_shape(v), want = tensor_shape(like);
    bool same = have.rank == want.rank;
    for (int i = 0; i < have.rank && same; i++) same = have.dims[i] == want.dims[i];
    if (same) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: v is %s, but it must have the shape of %s",
                call->row->signature.name, tensor_type_name(v).text, tensor_type_name(like).text);
}

static Value pair_of(Tensor *y, Tensor *derivative) {
    Value pair = value_tuple(2);
    list_push(pair.as.list, value_tensor(tensor_retain(y)));
    list_push(pair.as.list, value_tensor(tensor_retain(derivative)));
    return pair;
}

// --- along vectors

typedef Status (*Derive)(const BuiltinCall *call, const Point *point, Tensor *v, Tensor **out);

static Status derive_back(const BuiltinCall *call, const Point *point, Tensor *v, Tensor **out) {
    SCOPED_TENSOR(up);
    TRY(check_shape(call, v, point->y));
    TRY(tensor_cast(v, tensor_dtype(point->y), &up));
    return tape_gradients_along(point->y, up, &point->x, 1, out);
}

// The gradient along u is linear in u: its own derivative, along v, is that of f along v.
static Status derive_forward(const BuiltinCall *call, const Point *point, Tensor *v, Tensor **out) {
    SCOPED_TENSOR(zeros);
    SCOPED_TENSOR(u);
    SCOPED_TENSOR(gradient);
    SCOPED_TENSOR(up);
    TRY(check_shape(call, v, point->x));
    TRY(tensor_cast(v, tensor_dtype(point->x), &up));
    TRY(op_unary(OP_zeros_like, point->y, &zeros));
    TRY(tape_watch(zeros, &u));
    TRY(tape_gradients_along(point->y, u, &point->x, 1, &gradient));
    return tape_gradients_along(gradient, up, &u, 1, out);
}

static Value derive_along(BuiltinCall *call, Derive derive) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(derivative);
    Point point = {0};
    bool recording = tape_set_enabled(true);
    Status status = value_to_tensor(call->arguments[1], "x", &x);
    if (status == STATUS_OK) status = value_to_tensor(call->arguments[2], "v", &v);
    if (status == STATUS_OK) status = evaluate(call, x, &point);
    if (status == STATUS_OK) status = derive(call, &point, v, &derivative);
    tape_set_enabled(recording);
    Value result = status == STATUS_OK ? pair_of(point.y, derivative) : value_fail();
    release_point(&point);
    return result;
}

Value builtin_vjp(BuiltinCall *call) {
    return derive_along(call, derive_back);
}

Value builtin_jvp(BuiltinCall *call) {
    return derive_along(call, derive_forward);
}

// --- matrices

// The gradient of element `index` of y.
static Status derive_element(const Point *point, int64_t index, Tensor **out) {
    SCOPED_TENSOR(flat);
    SCOPED_TENSOR(up);
    Shape shape = tensor_shape(point->y), row = {.rank = 1, .dims = {tensor_count(point->y)}};
    TRY(op_unary(OP_zeros_like, point->y, &up));
    TRY(tensor_reshape(up, &row, &flat));
    tensor_release(up);
    up = NULL;
    IndexItem item = {.kind = INDEX_INTEGER, .integer = index};
    TRY(index_set(&flat, &item, 1, op_float(1), true));
    TRY(tensor_reshape(flat, &shape, &up));
    return tape_gradients_along(point->y, up, &point->x, 1, out);
}

// The gradients of all elements, in the shape of y and then of x.
static Status derive_all(const BuiltinCall *call, const Point *point, Tensor **out) {
    Shape shape = tensor_shape(point->y), inner = tensor_shape(point->x);
    int64_t count = tensor_count(point->y);
    if (shape.rank + inner.rank > RANK_MAX)
        return fail(STATUS_SHAPE, "%s: %s by %s has more than %d dimensions",
                    call->row->signature.name, tensor_type_name(point->y).text,
                    tensor_type_name(point->x).text, RANK_MAX);
    for (int i = 0; i < inner.rank; i++) shape.dims[shape.rank++] = inner.dims[i];
    if (count == 0) {
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
        return op_with(OP_zeros, NULL, 0, &attributes, out);
    }
    SCOPED_MEMORY Tensor **rows = memory_allocate_zeroed((size_t)count, sizeof *rows);
    Status status = STATUS_OK;
    for (int64_t i = 0; i < count && status == STATUS_OK; i++)
        status = derive_element(point, i, &rows[i]);
    SCOPED_TENSOR(stacked);
    if (status == STATUS_OK) status = tensor_stack(rows, (size_t)count, 0, &stacked);
    for (int64_t i = 0; i < count; i++) tensor_release(rows[i]);
    return status == STATUS_OK ? tensor_reshape(stacked, &shape, out) : status;
}

static Status jacobian_at(const BuiltinCall *call, Tensor *x, Tensor **out) {
    Point point = {0};
    Status status = evaluate(call, x, &point);
    if (status == STATUS_OK) status = derive_all(call, &point, out);
    release_point(&point);
    return status;
}

// The gradient's own derivatives.
static Status hessian_at(const BuiltinCall *call, Tensor *x, Tensor **out) {
    Point outer = {0}, inner = {0};
    Status status = tape_watch(x, &outer.x);
    if (status == STATUS_OK) status = evaluate(call, outer.x, &inner);
    if (status == STATUS_OK && tensor_count(inner.y) != 1)
        status = fail(STATUS_SHAPE, "hessian needs a function that gives one number, not %s",
                      tensor_type_name(inner.y).text);
    SCOPED_TENSOR(up);
    if (status == STATUS_OK) status = op_unary(OP_ones_like, inner.y, &up);
    if (status == STATUS_OK) status = tape_gradients_along(inner.y, up, &inner.x, 1, &outer.y);
    if (status == STATUS_OK) status = derive_all(call, &outer, out);
    release_point(&inner);
    release_point(&outer);
    return status;
}

static Value derive_matrix(BuiltinCall *call,
                           Status (*at)(const BuiltinCall *call, Tensor *x, Tensor **out)) {
    SCOPED_TENSOR(x);
    Tensor *result = NULL;
    TRY_VALUE(value_to_tensor(call->arguments[1], "x", &x));
    bool recording = tape_set_enabled(true);
    Status status = at(call, x, &result);
    tape_set_enabled(recording);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}

Value builtin_jacobian(BuiltinCall *call) {
    return derive_matrix(call, jacobian_at);
}

Value builtin_hessian(BuiltinCall *call) {
    return derive_matrix(call, hessian_at);
}
