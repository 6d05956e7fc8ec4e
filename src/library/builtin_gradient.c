// Differentiating functions: grad(f, x), functions with a gradient of their own, and the comparison
// with differences.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/foretell.h"
#include "eval/code.h"
#include "eval/invoke.h"
#include "library/callable.h"
#include "tensor/create.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/custom.h"
#include "tensor/gradient/tape.h"
#include "tensor/parameter.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/items.h"
#include "value/print.h"

// --- what is differentiated: arguments, under identities that the tape follows

enum { DEPTH_MAX = 64 }; // of lists

typedef struct Watched {
    VECTOR(Tensor *) targets; // retained
} Watched;

static void release_watched(Watched *watched) {
    for (size_t i = 0; i < watched->targets.count; i++) tensor_release(watched->targets.items[i]);
    VECTOR_FREE(&watched->targets);
}

static Value watch_tensor(Watched *watched, Tensor *x) {
    if (!dtype_is_float(tensor_dtype(x))) {
        (void)fail(STATUS_DTYPE, "grad differentiates with respect to floats, but this is %s",
                   tensor_type_name(x).text);
        fail_help("`x as float32` makes floats of it");
        return value_fail();
    }
    Tensor *target;
    TRY_VALUE(tape_watch(x, &target));
    VECTOR_PUSH(&watched->targets, target);
    return value_tensor(tensor_retain(target));
}

static Value watch(Watched *watched, Value x, int depth);

static Value watch_list(Watched *watched, Value x, int depth) {
    size_t count = x.as.list->count;
    Value list = x.kind == VALUE_LIST ? value_list(count) : value_tuple(count);
    for (size_t i = 0; i < count; i++) {
        Value item = watch(watched, x.as.list->items[i], depth + 1);
        if (failed(item)) {
            value_release(list);
            return item;
        }
        list_push(list.as.list, item);
    }
    return list;
}

// In dictionaries and structs floats are differentiated; what else there is stays as it is.
static bool is_differentiated(Value part) {
    bool container = part.kind == VALUE_LIST || part.kind == VALUE_TUPLE ||
                     part.kind == VALUE_DICT || part.kind == VALUE_STRUCT;
    return container || part.kind == VALUE_FLOAT ||
           (part.kind == VALUE_TENSOR && dtype_is_float(tensor_dtype(part.as.tensor)));
}

static Value watch_part(Watched *watched, Value part, int depth) {
    return is_differentiated(part) ? watch(watched, part, depth + 1) : value_retain(part);
}

static Value watch_dict(Watched *watched, const Dict *dict, int depth) {
    Value copy = value_dict();
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        Value part = watch_part(watched, item, depth);
        if (failed(part)) {
            value_release(copy);
            return part;
        }
        dict_set(copy.as.dict, value_retain(key), part);
    }
    return copy;
}

// A struct of the same type; not a thing of its own, so that nothing is dropped with it.
static Value struct_like(const Instance *instance) {
    Value copy = value_struct(instance->type);
    copy.as.instance->dropped = true;
    return copy;
}

static Value watch_struct(Watched *watched, const Instance *instance, int depth) {
    Value copy = struct_like(instance);
    for (size_t i = 0; i < instance->type->field_count; i++) {
        Value part = watch_part(watched, instance->fields[i], depth);
        if (failed(part)) {
            value_release(copy);
            return part;
        }
        copy.as.instance->fields[i] = part;
    }
    return copy;
}

static Value watch_container(Watched *watched, Value x, int depth) {
    if (depth == DEPTH_MAX)
        return value_failed(
            fail(STATUS_DEPTH, "grad: the argument is nested more than %d deep, or contains itself",
                 DEPTH_MAX));
    if (x.kind == VALUE_DICT) return watch_dict(watched, x.as.dict, depth);
    if (x.kind == VALUE_STRUCT) return watch_struct(watched, x.as.instance, depth);
    return watch_list(watched, x, depth);
}

// A plain number becomes a rank-0 tensor of float64, containers hold what is in them.
static Value watch(Watched *watched, Value x, int depth) {
    x = value_look(x);
    double number = x.kind == VALUE_INT ? (double)x.as.integer : x.as.number;
    Shape scalar = {0};
    switch ((ValueKind)x.kind) {
    case VALUE_TENSOR: return watch_tensor(watched, x.as.tensor);
    case VALUE_INT:
    case VALUE_FLOAT: {
        SCOPED_TENSOR(tensor);
        TRY_VALUE(tensor_from_floats(&number, &scalar, DTYPE_FLOAT64, &tensor));
        return watch_tensor(watched, tensor);
    }
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_STRUCT: return watch_container(watched, x, depth);
    default:
        return value_failed(
            fail(STATUS_TYPE,
                 "grad differentiates with respect to tensors, numbers, and lists, dictionaries "
                 "and structs of them, not %s",
                 value_text(x).text));
    }
}

// The gradients in the form of what was watched; `next` counts them.
static Value arrange(Value x, Tensor **gradients, size_t *next);

static Value arrange_part(Value part, Tensor **gradients, size_t *next) {
    return is_differentiated(part) ? arrange(part, gradients, next) : value_retain(part);
}

static Value arrange_dict(const Dict *dict, Tensor **gradients, size_t *next) {
    Value copy = value_dict();
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        dict_set(copy.as.dict, value_retain(key), arrange_part(item, gradients, next));
    }
    return copy;
}

static Value arrange_struct(const Instance *instance, Tensor **gradients, size_t *next) {
    Value copy = struct_like(instance);
    for (size_t i = 0; i < instance->type->field_count; i++)
        copy.as.instance->fields[i] = arrange_part(instance->fields[i], gradients, next);
    return copy;
}

static Value arrange(Value x, Tensor **gradients, size_t *next) {
    if (x.kind == VALUE_DICT) return arrange_dict(x.as.dict, gradients, next);
    if (x.kind == VALUE_STRUCT) return arrange_struct(x.as.instance, gradients, next);
    if (x.kind != VALUE_LIST && x.kind != VALUE_TUPLE) {
        Tensor *gradient = gradients[*next];
        gradients[(*next)++] = NULL;
        return value_tensor(gradient);
    }
    size_t count = x.as.list->count;
    Value list = x.kind == VALUE_LIST ? value_list(count) : value_tuple(count);
    for (size_t i = 0; i < count; i++)
        list_push(list.as.list, arrange(x.as.list->items[i], gradients, next));
    return list;
}

// --- with respect to which arguments

typedef struct Choice {
    size_t items[PARAMETERS_MAX], count;
    bool several; // a list was given: a list is the result
} Choice;

static Status choose_name(Value function, const String *name, size_t count, size_t *out) {
    const FunctionCode *code = function.kind == VALUE_FUNCTION ? function.as.function->code : NULL;
    for (int i = 0; code && i < code->parameter_count && (size_t)i < count; i++)
        if (strcmp(code->parameters[i].name, name->bytes) == 0) {
            *out = (size_t)i;
            return STATUS_OK;
        }
    return fail(STATUS_NAME, "grad: wrt names `%s`, which is not an argument of the function",
                name->bytes);
}

static Status choose_one(Value function, Value wrt, size_t count, Choice *choice) {
    if (choice->count == PARAMETERS_MAX)
        return fail(STATUS_VALUE, "grad: wrt takes at most %d arguments", PARAMETERS_MAX);
    size_t *index = &choice->items[choice->count++];
    if (wrt.kind == VALUE_STRING) return choose_name(function, wrt.as.string, count, index);
    int64_t number;
    TRY(value_to_int(wrt, "grad: wrt", &number));
    if (number < 0 || (uint64_t)number >= count)
        return fail(STATUS_INDEX, "grad: wrt is %lld, but the function is given %zu arguments",
                    (long long)number, count);
    *index = (size_t)number;
    return STATUS_OK;
}

static Status choose(Value function, Value wrt, size_t count, Choice *choice) {
    *choice = (Choice){.count = 0};
    if (wrt.kind == VALUE_ABSENT) wrt = value_int(0);
    if (wrt.kind == VALUE_STRING || value_is_number(wrt))
        return choose_one(function, wrt, count, choice);
    SCOPED_VALUE(items) = value_to_items(wrt, "grad: wrt");
    if (failed(items)) return error_current()->code;
    choice->several = true;
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++)
        status = choose_one(function, items.as.list->items[i], count, choice);
    return status;
}

// --- grad(f, x)

static Status check_result(Value result, Tensor **out) {
    TRY(value_to_tensor(result, "the result of the function", out));
    if (tensor_count(*out) == 1 && dtype_is_float(tensor_dtype(*out))) return STATUS_OK;
    Status status =
        fail(STATUS_SHAPE, "grad needs a function that gives one floating-point number, not %s",
             tensor_type_name(*out).text);
    tensor_release_of(out);
    return status;
}

// What is differentiated; `value` takes what the function gives, unless it is NULL.
typedef struct Task {
    Interp *interp;
    Value function, wrt;
    const Value *arguments;
    size_t count;
    Value *value;
} Task;

// Calls the function on the watched arguments and differentiates what it gives.
static Status gradients_at(const Task *task, const Value *watching, const Watched *watched,
                           Tensor **gradients) {
    bool recording = tape_set_enabled(true);
    tape_forget_reads();
    Value result = interp_call(task->interp, task->function, watching, task->count);
    tape_set_enabled(recording);
    if (failed(result)) return error_current()->code;
    Tensor *loss;
    Status status = check_result(result, &loss);
    if (status == STATUS_OK) {
        status = tape_gradients_of(loss, watched->targets.items, watched->targets.count, gradients);
        tensor_release(loss);
    }
    tape_forget_reads();
    if (status == STATUS_OK && task->value)
        *task->value = result;
    else
        value_release(result);
    return status;
}

static Value arrange_all(const Value *arguments, const Choice *choice, Tensor **gradients) {
    size_t next = 0;
    if (!choice->several) return arrange(arguments[choice->items[0]], gradients, &next);
    Value list = value_list(choice->count);
    for (size_t i = 0; i < choice->count; i++)
        list_push(list.as.list, arrange(arguments[choice->items[i]], gradients, &next));
    return list;
}

static Value differentiate(const Task *task) {
    Choice choice;
    size_t count = task->count;
    const Value *arguments = task->arguments;
    TRY_VALUE(choose(task->function, task->wrt, count, &choice));
    Value watching[count];
    for (size_t i = 0; i < count; i++) watching[i] = value_retain(arguments[i]);
    Watched watched = {0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < choice.count && status == STATUS_OK; i++) {
        Value *place = &watching[choice.items[i]];
        Value value = watch(&watched, *place, 0);
        if (failed(value)) {
            status = error_current()->code;
        } else {
            value_release(*place);
            *place = value;
        }
    }
    size_t targets = watched.targets.count;
    Tensor **gradients = memory_allocate_zeroed(targets + 1, sizeof *gradients);
    if (status == STATUS_OK) status = gradients_at(task, watching, &watched, gradients);
    Value result = status == STATUS_OK ? arrange_all(arguments, &choice, gradients) : value_fail();
    free(gradients);
    release_watched(&watched);
    for (size_t i = 0; i < count; i++) value_release(watching[i]);
    return result;
}

// (f(x), gradient)
static Value differentiate_with_value(Task task) {
    Value value = value_none();
    task.value = &value;
    Value gradient = differentiate(&task);
    if (failed(gradient)) return gradient;
    Value pair = value_tuple(2);
    list_push(pair.as.list, value);
    list_push(pair.as.list, gradient);
    return pair;
}

static Value fail_no_arguments(void) {
    return value_failed(
        fail(STATUS_ARITY, "the gradient of a function takes the function's arguments"));
}

static Value call_derivative(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Callable *pair = handle->payload;
    Task task = {interp, pair->first, pair->second, arguments, count, NULL};
    return count > 0 ? differentiate(&task) : fail_no_arguments();
}

static Value call_with_value(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Callable *pair = handle->payload;
    Task task = {interp, pair->first, pair->second, arguments, count, NULL};
    return count > 0 ? differentiate_with_value(task) : fail_no_arguments();
}

static const HandleType derivative_type = CALLABLE_TYPE(call_derivative);
static const HandleType with_value_type = CALLABLE_TYPE(call_with_value);

Value builtin_grad_of(BuiltinCall *call) {
    Task task = {call->interp, call->arguments[0], call->arguments[2],
                 call->rest,   call->rest_count,   NULL};
    if (task.count == 0) return callable_new(&derivative_type, task.function, task.wrt);
    return differentiate(&task);
}

Value builtin_value_and_grad(BuiltinCall *call) {
    Task task = {call->interp, call->arguments[0], call->arguments[2],
                 call->rest,   call->rest_count,   NULL};
    if (task.count == 0) return callable_new(&with_value_type, task.function, task.wrt);
    return differentiate_with_value(task);
}

// --- custom_grad

// What the tape keeps: the function, and the arguments that are not tensors.
typedef struct CustomGradient {
    Value backward;
    size_t count;
    Value arguments[TAPE_CUSTOM_INPUTS]; // ABSENT: the next tensor
} CustomGradient;

static void release_custom(void *data) {
    CustomGradient *custom = data;
    value_release(custom->backward);
    for (size_t i = 0; i < custom->count; i++) value_release(custom->arguments[i]);
    heap_free(custom);
}

static Status take_gradient(Value given, const Tensor *input, Tensor **out) {
    if (given.kind == VALUE_NONE) return STATUS_OK;
    TRY(value_to_tensor(given, "custom_grad: a gradient", out));
    Shape have = tensor_shape(*out), need = tensor_shape(input);
    bool same = have.rank == need.rank;
    for (int i = 0; same && i < have.rank; i++) same = have.dims[i] == need.dims[i];
    if (same || have.rank == 0) return STATUS_OK;
    Status status = fail(STATUS_SHAPE, "custom_grad: the gradient of %s cannot be %s",
                         tensor_type_name(input).text, tensor_type_name(*out).text);
    tensor_release_of(out);
    return status;
}

static Status share_gradients(const CustomGradient *custom, Value given, Tensor *const *inputs,
                              Tensor **gradients) {
    bool several = given.kind == VALUE_TUPLE || given.kind == VALUE_LIST;
    size_t count = several ? given.as.list->count : 1;
    if (count != custom->count)
        return fail(STATUS_ARITY, "custom_grad: backward gave %zu gradients for %zu arguments",
                    count, custom->count);
    for (size_t i = 0, next = 0; i < count; i++) {
        if (custom->arguments[i].kind != VALUE_ABSENT) continue;
        Value gradient = several ? given.as.list->items[i] : given;
        TRY(take_gradient(gradient, inputs[next], &gradients[next]));
        next++;
    }
    return STATUS_OK;
}

static Status run_custom(void *data, Tensor *const *inputs, int n_inputs, Tensor *up,
                         Tensor **gradients) {
    const CustomGradient *custom = data;
    Value arguments[TAPE_CUSTOM_INPUTS + 1];
    int next = 0;
    for (size_t i = 0; i < custom->count; i++) {
        bool tensor = custom->arguments[i].kind == VALUE_ABSENT && next < n_inputs;
        arguments[i] = tensor ? (Value){.kind = VALUE_TENSOR, .as.tensor = inputs[next++]}
                              : custom->arguments[i];
    }
    arguments[custom->count] = (Value){.kind = VALUE_TENSOR, .as.tensor = up};
    SCOPED_VALUE(given) =
        interp_call(interp_running(), custom->backward, arguments, custom->count + 1);
    if (failed(given)) return error_current()->code;
    return share_gradients(custom, given, inputs, gradients);
}

static void record_custom(Value backward, const Value *arguments, size_t count, Tensor **output) {
    CustomGradient *custom = heap_allocate_rooted(sizeof *custom);
    Tensor *inputs[TAPE_CUSTOM_INPUTS];
    int n_inputs = 0;
    custom->backward = value_retain(backward);
    custom->count = count;
    for (size_t i = 0; i < count; i++) {
        bool tensor = arguments[i].kind == VALUE_TENSOR;
        if (tensor) inputs[n_inputs++] = arguments[i].as.tensor;
        custom->arguments[i] = tensor ? value_absent() : value_retain(arguments[i]);
    }
    TapeCustom entry = {.run = run_custom, .release = release_custom, .data = custom};
    tape_record_custom(&entry, inputs, n_inputs, output);
}

static Value call_custom(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Callable *pair = handle->payload;
    if (count > TAPE_CUSTOM_INPUTS)
        return value_failed(fail(STATUS_ARITY,
                                 "a function of custom_grad takes at most %d arguments",
                                 TAPE_CUSTOM_INPUTS));
    bool recording = tape_set_enabled(false);
    Value result = interp_call(interp, pair->first, arguments, count);
    tape_set_enabled(recording);
    if (failed(result)) return result;
    Tensor *output;
    Status status = value_to_tensor(result, "custom_grad: the result of f", &output);
    value_release(result);
    TRY_VALUE(status);
    record_custom(pair->second, arguments, count, &output);
    return value_tensor(output);
}

static const HandleType custom_type = CALLABLE_TYPE(call_custom);

Value builtin_custom_grad(BuiltinCall *call) {
    return callable_new(&custom_type, call->arguments[0], call->arguments[1]);
}

// --- gradcheck

typedef struct Check {
    Interp *interp;
    Value function;
    Shape shape;
    size_t count;
    double *numbers, *gradient;
    double eps, tolerance;
    bool unknown, unknown_x; // only a run has what is compared, and x (device/foretell.h)
} Check;

// What is only compared decides nothing.
static Status read_compared(Check *check, Tensor *tensor, double *out) {
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_checks();
    Status status = tensor_read_floats(tensor, out);
    foretell_ignore_reads(before);
    check->unknown |= foretell_reads() != reads;
    return status;
}

static Status argument_of(const Check *check, Tensor **out) {
    TRY(tensor_from_floats(check->numbers, &check->shape, DTYPE_FLOAT64, out));
    if (check->unknown_x) tensor_forget(*out);
    return STATUS_OK;
}

static Status sum_result(Value result, Tensor **out) {
    SCOPED_TENSOR(all);
    TRY(value_to_tensor(result, "gradcheck: the result of f", &all));
    return op_unary(OP_sum, all, out);
}

static Status value_at(Check *check, double *out) {
    Tensor *x, *sum;
    TRY(argument_of(check, &x));
    Value argument = value_tensor(x);
    Value result = interp_call(check->interp, check->function, &argument, 1);
    value_release(argument);
    if (failed(result)) return error_current()->code;
    Status status = sum_result(result, &sum);
    value_release(result);
    TRY(status);
    status = read_compared(check, sum, out);
    tensor_release(sum);
    return status;
}

static Status compute_gradient(Check *check) {
    Tensor *x, *watched, *sum, *gradient;
    TRY(argument_of(check, &x));
    Status status = tape_watch(x, &watched);
    tensor_release(x);
    TRY(status);
    Value argument = value_tensor(watched);
    bool recording = tape_set_enabled(true);
    Value result = interp_call(check->interp, check->function, &argument, 1);
    status = failed(result) ? error_current()->code : sum_result(result, &sum);
    if (!failed(result)) value_release(result);
    tape_set_enabled(recording);
    if (status == STATUS_OK) {
        status = tape_gradients_of(sum, &watched, 1, &gradient);
        tensor_release(sum);
    }
    value_release(argument);
    TRY(status);
    status = read_compared(check, gradient, check->gradient);
    tensor_release(gradient);
    return status;
}

static Status compare_element(Check *check, size_t index) {
    double x = check->numbers[index], step = check->eps * fmax(1, fabs(x)), above, below;
    check->numbers[index] = x + step;
    TRY(value_at(check, &above));
    check->numbers[index] = x - step;
    TRY(value_at(check, &below));
    check->numbers[index] = x;
    double difference = (above - below) / (2 * step), gradient = check->gradient[index];
    double allowed = check->tolerance * fmax(1, fmax(fabs(difference), fabs(gradient)));
    bool passed_over = check->unknown && !foretell_attempts();
    if (passed_over || fabs(difference - gradient) <= allowed) return STATUS_OK;
    return fail(STATUS_ASSERT,
                "gradcheck: at element %zu, where x is %g, the gradient is %g, but differences "
                "give %g",
                index, number_shown(x), number_shown(gradient), number_shown(difference));
}

static Status run_check(Check *check, Tensor *x) {
    TRY(read_compared(check, x, check->numbers));
    check->unknown_x = check->unknown;
    TRY(compute_gradient(check));
    for (size_t i = 0; i < check->count; i++) TRY(compare_element(check, i));
    return STATUS_OK;
}

Value builtin_gradcheck(BuiltinCall *call) {
    SCOPED_TENSOR(x);
    Check check = {.interp = call->interp, .function = call->arguments[0]};
    TRY_VALUE(value_to_double(call->arguments[2], "gradcheck: eps", &check.eps));
    TRY_VALUE(value_to_double(call->arguments[3], "gradcheck: tolerance", &check.tolerance));
    TRY_VALUE(value_to_tensor(call->arguments[1], "gradcheck: x", &x));
    check.shape = tensor_shape(x);
    check.count = (size_t)tensor_count(x);
    check.numbers = memory_allocate(check.count * sizeof(double));
    check.gradient = memory_allocate(check.count * sizeof(double));
    Status status = run_check(&check, x);
    free(check.numbers);
    free(check.gradient);
    return status == STATUS_OK ? value_bool(true) : value_fail();
}
