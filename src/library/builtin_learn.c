// Optimizers and schedulers as values: made from the arguments of their rows, which carry the names
// of the settings.
#include <stdlib.h>

#include "base/memory.h"
#include "tensor/optimizer.h"
#include "tensor/scheduler.h"
#include "value/convert.h"
#include "value/handles.h"

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
    for (int i = 0; i < call->row->signature.count && status == STATUS_OK; i++) {
        const char *name = call->row->signature.params[i].name;
        double value;
        if (setting_value(call->arguments[i], name, &value, &status))
            ASSERT(optimizer_setting_set(&settings, name, value));
    }
    Optimizer *optimizer;
    if (status != STATUS_OK || optimizer_new(&settings, &optimizer) != STATUS_OK)
        return value_fail();
    return value_handle(&handle_optimizer, optimizer);
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

Value builtin_set_lr(BuiltinCall *call) {
    void *optimizer;
    double lr;
    TRY_VALUE(value_to_handle(call->arguments[0], &handle_optimizer, "optimizer", &optimizer));
    TRY_VALUE(value_to_double(call->arguments[1], "lr", &lr));
    TRY_VALUE(optimizer_set_rate(optimizer, lr));
    return value_none();
}
