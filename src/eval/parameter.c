// Assignments to parameters. Numbers are written, never recorded; what the tape still holds keeps
// the numbers that it was made of, so a write then is an error: whoever meant a step of training
// would get gradients of numbers that are gone.
#include "eval/parameter.h"

#include "tensor/parameter.h"
#include "value/convert.h"

bool value_is_parameter(Value value) {
    return value.kind == VALUE_TENSOR && value.as.tensor->learnable;
}

Status parameter_prepare_write(const Tensor *parameter, Value *value) {
    if (value->kind == VALUE_TENSOR) {
        Tensor *detached;
        TRY(tape_detach(value->as.tensor, &detached));
        value_release(*value);
        *value = value_tensor(detached);
    }
    if (!tape_parameter_held(parameter)) return STATUS_OK;
    (void)fail(STATUS_GRADIENT, "this parameter cannot be written: the tape holds it for a "
                                "gradient that is still to come");
    return fail_help("write before it is used or after backward(loss); sgd_step(p, g, lr) and "
                     "set_values(p, values) write at any time");
}

Status parameter_write(Tensor *parameter, Value *value, const char *what) {
    if (value->kind == VALUE_TENSOR && value->as.tensor == parameter) return STATUS_OK;
    TRY(parameter_prepare_write(parameter, value));
    SCOPED_TENSOR(numbers);
    TRY(value_to_tensor(*value, what, &numbers));
    return tape_parameter_assign(parameter, numbers);
}
