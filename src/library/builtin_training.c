// Gradients in scripts: parameters, backward, single steps. The tape is in tensor/gradient/tape.h.
#include <math.h>
#include <string.h>

#include "device/foretell.h"
#include "eval/code.h"
#include "eval/parameter.h"
#include "learn/learn.h"
#include "tensor/create.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "tensor/parameter.h"
#include "tensor/random.h"
#include "value/convert.h"
#include "value/print.h"

Value builtin_learnable(BuiltinCall *call) {
    Tensor *x, *parameter;
    TRY_VALUE(value_to_tensor(call->arguments[0], "learnable: x", &x));
    Status status = tape_parameter_new(x, &parameter);
    tensor_release(x);
    return status == STATUS_OK ? value_tensor(parameter) : value_fail();
}

Value builtin_backward(BuiltinCall *call) {
    if (learn_running()) {
        TRY_VALUE(learn_backward(call->arguments[0]));
        return value_none();
    }
    SCOPED_TENSOR(loss);
    TRY_VALUE(value_to_tensor(call->arguments[0], "backward: loss", &loss));
    Status status = tape_backward(loss, NULL);
    return status == STATUS_OK ? value_none() : value_fail();
}

Value builtin_each_piece(BuiltinCall *call) {
    return learn_each_piece(call->interp, call->arguments[0], call->arguments[1]);
}

Value builtin_grad(BuiltinCall *call) {
    Value x = call->arguments[0];
    Tensor *parameter = NULL;
    if (x.kind == VALUE_TENSOR || value_is_handle_tensor(x))
        TRY_VALUE(value_to_tensor(x, "grad: x", &parameter));
    bool learns = parameter && parameter->learnable;
    Tensor *gradient = learns ? tape_gradient(parameter) : NULL;
    Value result = gradient ? value_tensor(tensor_retain(gradient)) : value_none();
    tensor_release(parameter);
    if (learns) return result;
    (void)fail(STATUS_TYPE, "grad takes a learnable tensor or a function, not %s",
               value_text(x).text);
    fail_help("learnable(x) makes a parameter; grad(f, x) differentiates f at x");
    return value_fail();
}

Value builtin_zero_grad(BuiltinCall *call) {
    if (call->arguments[0].kind == VALUE_HANDLE) return builtin_optimizer_zero(call);
    tape_zero_gradients();
    return value_none();
}

Value builtin_detach(BuiltinCall *call) {
    Tensor *x, *detached;
    TRY_VALUE(value_to_tensor(call->arguments[0], "detach: x", &x));
    Status status = tape_detach(x, &detached);
    tensor_release(x);
    return status == STATUS_OK ? value_tensor(detached) : value_fail();
}

Value builtin_clip_grad_norm(BuiltinCall *call) {
    double limit, norm = 0;
    TRY_VALUE(value_to_double(call->arguments[0], "clip_grad_norm: limit", &limit));
    if (!(limit > 0))
        return value_failed(
            fail(STATUS_VALUE, "clip_grad_norm: limit is %g; it must be positive", limit));
    TensorArray parameters;
    tape_parameters(&parameters);
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    Status status = tape_clip_gradient_norm(parameters.items, parameters.count, limit, &norm);
    tensor_array_release(&parameters);
    TRY_VALUE(status);
    bool unknown = foretelling() && foretell_reads() != reads;
    return unknown ? value_measured(VALUE_FLOAT, origin_current.at) : value_float(norm);
}

Value builtin_is_training(BuiltinCall *call) {
    (void)call;
    return value_bool(random_is_training());
}

// --- single steps

// A parameter takes over what was computed for it; anything else is replaced by it.
static Status give_updated(Value given, Tensor *updated, Value *out) {
    if (given.kind != VALUE_TENSOR || !given.as.tensor->learnable) {
        *out = value_tensor(updated);
        return STATUS_OK;
    }
    Status status = tape_parameter_assign(given.as.tensor, updated);
    tensor_release(updated);
    if (status == STATUS_OK) *out = value_retain(given);
    return status;
}

Value builtin_set_values(BuiltinCall *call) {
    Value p = call->arguments[0];
    Tensor *values;
    if (!value_is_parameter(p)) {
        fail_kind("set_values: p", "a parameter", p);
        return value_fail();
    }
    TRY_VALUE(value_to_tensor(call->arguments[1], "set_values: values", &values));
    Status status = tape_parameter_assign(p.as.tensor, values);
    tensor_release(values);
    return status == STATUS_OK ? value_retain(p) : value_fail();
}

// x * a + y * b
static Status blend(Tensor *x, double a, Tensor *y, double b, Tensor **out) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    TRY(compose_with_number(OP_mul, x, a, &left));
    TRY(compose_with_number(OP_mul, y, b, &right));
    return op_binary(OP_add, op_donated(left), op_tensor(right), out);
}

static Status take_tensors(const BuiltinCall *call, const char *const *names, int count,
                           Tensor **tensors) {
    for (int i = 0; i < count; i++) TRY(value_to_tensor(call->arguments[i], names[i], &tensors[i]));
    return STATUS_OK;
}

Value builtin_sgd_step(BuiltinCall *call) {
    static const char *const names[] = {"sgd_step: p", "sgd_step: g"};
    Tensor *tensors[2] = {NULL}, *updated = NULL;
    double lr = 0;
    bool recording = tape_set_enabled(false);
    Status status = take_tensors(call, names, 2, tensors);
    if (status == STATUS_OK) status = value_to_double(call->arguments[2], "sgd_step: lr", &lr);
    if (status == STATUS_OK) status = blend(tensors[0], 1, tensors[1], -lr, &updated);
    Value result = value_fail();
    if (status == STATUS_OK) status = give_updated(call->arguments[0], updated, &result);
    for (int i = 0; i < 2; i++) tensor_release(tensors[i]);
    tape_set_enabled(recording);
    return status == STATUS_OK ? result : value_fail();
}

typedef struct Adam {
    double lr, b1, b2, eps;
    int64_t t; // 0: no correction
} Adam;

static Status read_adam(const BuiltinCall *call, Adam *adam) {
    TRY(value_to_double(call->arguments[4], "adam_step: lr", &adam->lr));
    TRY(value_to_double(call->arguments[5], "adam_step: b1", &adam->b1));
    TRY(value_to_double(call->arguments[6], "adam_step: b2", &adam->b2));
    TRY(value_to_double(call->arguments[7], "adam_step: eps", &adam->eps));
    if (call->arguments[8].kind == VALUE_ABSENT) return STATUS_OK;
    TRY(value_to_int(call->arguments[8], "adam_step: t", &adam->t));
    if (adam->t >= 1) return STATUS_OK;
    return fail(STATUS_VALUE, "adam_step: t is %lld; steps are numbered from 1",
                (long long)adam->t);
}

// tensors: p, g, m, v; updated: p, m, v.
static Status adam_update(const Adam *adam, Tensor *const *tensors, Tensor **updated) {
    SCOPED_TENSOR(square);
    SCOPED_TENSOR(scaled);
    SCOPED_TENSOR(root);
    SCOPED_TENSOR(divisor);
    SCOPED_TENSOR(step);
    double first = 1, second = 1;
    if (adam->t > 0) {
        first = 1 - pow(adam->b1, (double)adam->t);
        second = 1 - pow(adam->b2, (double)adam->t);
    }
    TRY(blend(tensors[2], adam->b1, tensors[1], 1 - adam->b1, &updated[1]));
    TRY(op_unary(OP_square, tensors[1], &square));
    TRY(blend(tensors[3], adam->b2, square, 1 - adam->b2, &updated[2]));
    TRY(compose_with_number(OP_div, updated[2], second, &scaled));
    TRY(op_unary(OP_sqrt, scaled, &root));
    TRY(compose_with_number(OP_add, root, adam->eps, &divisor));
    TRY(op_binary(OP_div, op_tensor(updated[1]), op_tensor(divisor), &step));
    return blend(tensors[0], 1, step, -adam->lr / first, &updated[0]);
}

Value builtin_adam_step(BuiltinCall *call) {
    static const char *const names[] = {"adam_step: p", "adam_step: g", "adam_step: m",
                                        "adam_step: v"};
    Tensor *tensors[4] = {NULL}, *updated[3] = {NULL};
    Adam adam = {0};
    bool recording = tape_set_enabled(false);
    Status status = take_tensors(call, names, 4, tensors);
    if (status == STATUS_OK) status = read_adam(call, &adam);
    if (status == STATUS_OK) status = adam_update(&adam, tensors, updated);
    Value p = value_fail(), result = value_fail();
    if (status == STATUS_OK) {
        status = give_updated(call->arguments[0], updated[0], &p);
        updated[0] = NULL;
    }
    if (status == STATUS_OK) {
        result = value_tuple(3);
        list_push(result.as.list, p);
        for (int i = 1; i < 3; i++) list_push(result.as.list, value_tensor(updated[i]));
        updated[1] = updated[2] = NULL;
    }
    for (int i = 0; i < 4; i++) tensor_release(tensors[i]);
    for (int i = 0; i < 3; i++) tensor_release(updated[i]);
    tape_set_enabled(recording);
    return result;
}
