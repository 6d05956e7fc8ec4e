// Optimizers and schedulers as values: made from the arguments of their rows, which carry the names
// of the settings.
#include <stdlib.h>

#include "base/memory.h"
#include "tensor/join.h"
#include "tensor/optimizer.h"
#include "tensor/parameter.h"
#include "tensor/scheduler.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/walk.h"

static void optimizer_payload_release(void *payload) {
    optimizer_free(payload);
}

static Status optimizer_get_field(Handle *handle, const char *name, Value *out) {
    if (strcmp(name, "lr") != 0)
        return fail(STATUS_NAME, "an optimizer has no field `%s`; it has lr", name);
    *out = value_float(optimizer_rate(handle->payload));
    return STATUS_OK;
}

static void optimizer_print(Handle *handle, Text *out) {
    text_format(out, "<%s, lr %g>", optimizer_name(handle->payload),
                optimizer_rate(handle->payload));
}

const HandleType handle_optimizer = {.name = "optimizer",
                                     .release = optimizer_payload_release,
                                     .get_field = optimizer_get_field,
                                     .print = optimizer_print};

static void scheduler_print(Handle *handle, Text *out) {
    text_format(out, "<scheduler %s>", scheduler_name(handle->payload));
}

const HandleType handle_scheduler = {
    .name = "scheduler", .release = free, .print = scheduler_print};

// An argument as the number that settings are: bools are 0 and 1. False: it was not given.
static bool setting_value(Value argument, const char *name, double *out, Status *status) {
    if (argument.kind == VALUE_ABSENT || argument.kind == VALUE_NONE) return false;
    bool flag;
    if (argument.kind == VALUE_BOOL) {
        *status = value_to_bool(argument, name, &flag);
        *out = *status == STATUS_OK && flag;
    } else {
        *status = value_to_double(argument, name, out);
    }
    return *status == STATUS_OK;
}

static Value make_optimizer(const BuiltinCall *call, OptimizerId id) {
    OptimizerSettings settings = {.id = id};
    Status status = STATUS_OK;
    int last = call->row->signature.count - 1; // params
    for (int i = 0; i < last && status == STATUS_OK; i++) {
        const char *name = call->row->signature.params[i].name;
        double value;
        if (setting_value(call->arguments[i], name, &value, &status))
            ASSERT(optimizer_setting_set(&settings, name, value));
    }
    Optimizer *optimizer;
    if (status != STATUS_OK || optimizer_new(&settings, &optimizer) != STATUS_OK)
        return value_fail();
    Value result = value_handle(&handle_optimizer, optimizer);
    if (call->arguments[last].kind == VALUE_ABSENT) return result;
    TensorArray parameters;
    if (parameters_of(call->arguments[last], optimizer_name(optimizer), "params", &parameters) !=
        STATUS_OK) {
        value_release(result);
        return value_fail();
    }
    optimizer_set_parameters(optimizer, &parameters);
    return result;
}

static Value make_scheduler(const BuiltinCall *call, SchedulerId id) {
    Scheduler scheduler = {.id = id};
    Status status = STATUS_OK;
    for (int i = 0; i < call->row->signature.count && status == STATUS_OK; i++) {
        const char *name = call->row->signature.params[i].name;
        double value;
        if (setting_value(call->arguments[i], name, &value, &status))
            ASSERT(scheduler_setting_set(&scheduler, name, value));
    }
    if (status != STATUS_OK || scheduler_check(&scheduler) != STATUS_OK) return value_fail();
    Scheduler *kept = memory_allocate(sizeof *kept);
    *kept = scheduler;
    return value_handle(&handle_scheduler, kept);
}

#define OPTIMIZER(id, signature, doc)                                                              \
    Value builtin_##id(BuiltinCall *call) {                                                        \
        return make_optimizer(call, OPTIMIZER_##id);                                               \
    }
#include "catalog/optimizers.def"
#undef OPTIMIZER

#define SCHEDULER(id, signature, doc)                                                              \
    Value builtin_scheduler_##id(BuiltinCall *call) {                                              \
        return make_scheduler(call, SCHEDULER_##id);                                               \
    }
#include "catalog/schedulers.def"
#undef SCHEDULER

// Those that an optimizer is for, new references.
static void list_parameters(const Optimizer *optimizer, TensorArray *out) {
    const TensorArray *own = optimizer_parameters(optimizer);
    if (!own) {
        tape_parameters(out);
        return;
    }
    *out = (TensorArray){memory_allocate((own->count + 1) * sizeof *out->items), own->count};
    for (size_t i = 0; i < own->count; i++) out->items[i] = tensor_retain(own->items[i]);
}

Value builtin_optimizer_step(BuiltinCall *call) {
    Optimizer *optimizer = call->arguments[0].as.handle->payload;
    TensorArray parameters;
    list_parameters(optimizer, &parameters);
    SCOPED_MEMORY Tensor **gradients = memory_allocate((parameters.count + 1) * sizeof *gradients);
    for (size_t i = 0; i < parameters.count; i++) gradients[i] = tape_gradient(parameters.items[i]);
    Status status = optimizer_refresh(optimizer);
    if (status == STATUS_OK)
        status = optimizer_step(optimizer, parameters.items, gradients, parameters.count);
    tensor_array_release(&parameters);
    return status == STATUS_OK ? value_none() : value_fail();
}

Value builtin_optimizer_zero(BuiltinCall *call) {
    TensorArray parameters;
    list_parameters(call->arguments[0].as.handle->payload, &parameters);
    for (size_t i = 0; i < parameters.count; i++) tape_set_gradient(parameters.items[i], NULL);
    tensor_array_release(&parameters);
    return value_none();
}

Value builtin_parameters(BuiltinCall *call) {
    ParameterList list = {0};
    Status status = parameters_add(&list, "", call->arguments[0]);
    Value dict = value_dict();
    for (size_t i = 0; i < list.count; i++)
        dict_set_word(dict.as.dict, list.items[i].name,
                      value_tensor(tensor_retain(list.items[i].tensor)));
    parameters_free(&list);
    if (status == STATUS_OK) return dict;
    value_release(dict);
    return value_fail();
}

Value builtin_set_lr(BuiltinCall *call) {
    void *optimizer;
    double lr;
    TRY_VALUE(value_to_handle(call->arguments[0], &handle_optimizer, "optimizer", &optimizer));
    TRY_VALUE(value_to_double(call->arguments[1], "lr", &lr));
    TRY_VALUE(optimizer_set_rate(optimizer, lr));
    return value_none();
}
