// Values to named tensors and texts, and back.
#include "value/archive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/source.h"
#include "tensor/op.h"
#include "tensor/optimizer.h"
#include "tensor/parameter.h"
#include "tensor/scheduler.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/print.h"

static bool is_handle(Value value, const HandleType *type) {
    return value.kind == VALUE_HANDLE && value.as.handle->type == type;
}

static const char *part_name(Text *text, const char *name, const char *part) {
    text_clear(text);
    text_format(text, "%s.%s", name, part);
    return text_get(text);
}

Status archive_find(const Archive *archive, const char *name, Tensor **out) {
    *out = named_tensors_find(&archive->tensors, name);
    if (*out) return STATUS_OK;
    const char *type = named_tensors_unread(&archive->tensors, name);
    if (type) return named_tensors_fail_unread(archive->path, name, type);
    return fail(STATUS_NAME, "%s has no tensor `%s`", archive->path, name);
}

void archive_free(Archive *archive) {
    value_release(archive->ready);
    parameters_free(&archive->parameters);
    named_tensors_free(&archive->tensors);
}

Status archive_add_parameters(Archive *archive, const char *name, Value value) {
    return parameters_add(&archive->parameters, name, value);
}

// --- adding

static Status fail_unnamed(const char *name, const Tensor *parameter) {
    SourcePlace place = source_find(parameter->origin.at);
    (void)fail(STATUS_NAME, "`%s` has moved a parameter %s that is not among what is saved%s%s",
               name, tensor_type_name(parameter).text, place.file ? ", of " : "",
               place.file ? place.file->name : "");
    return fail_help("its moments go by its name: save it in the same call");
}

static Status fail_in_parts(const char *name, const OptimizerState *state) {
    (void)fail(STATUS_VALUE, "`%s` has the state of %lld of the %lld elements of a parameter %s",
               name, (long long)state->count, (long long)tensor_count(state->parameter),
               tensor_type_name(state->parameter).text);
    return fail_help("the other ranks have the rest: `save` of the learn block writes all of it");
}

static Status add_state(Archive *archive, const char *name, const OptimizerState *state) {
    ASSERT(state->parameter != NULL && state->steps >= 0); // a file says -1 where it has none
    const char *parameter = parameters_name(&archive->parameters, state->parameter);
    if (!parameter) return fail_unnamed(name, state->parameter);
    if (state->is_part && !archive->in_parts) return fail_in_parts(name, state);
    SCOPED_TEXT(text);
    Shape none = {0};
    Tensor *steps;
    Status status = tensor_from_integers(&state->steps, &none, DTYPE_INT64, &steps);
    text_format(&text, "%s.steps.%s", name, parameter);
    if (status == STATUS_OK) named_tensors_add(&archive->tensors, text_get(&text), steps);
    text_clear(&text);
    text_format(&text, "%s.state.%s", name, parameter);
    if (status == STATUS_OK && state->state && !state->is_part)
        named_tensors_add(&archive->tensors, text_get(&text), tensor_retain(state->state));
    return status;
}

void archive_add_parts(Archive *archive, const char *name, const Optimizer *optimizer) {
    SCOPED_TEXT(text);
    for (size_t i = 0; i < optimizer_count(optimizer); i++) {
        OptimizerState state = optimizer_state(optimizer, i);
        const char *parameter = parameters_name(&archive->parameters, state.parameter);
        if (!parameter || !state.state || !state.is_part) continue;
        text_clear(&text);
        text_format(&text, "%s.part.%s.%lld", name, parameter, (long long)state.first);
        named_tensors_add(&archive->tensors, text_get(&text), tensor_retain(state.state));
    }
}

static Status add_optimizer(Archive *archive, const char *name, const Optimizer *optimizer) {
    SCOPED_TEXT(text);
    const char *setting;
    double value;
    named_tensors_add_text(&archive->tensors, name, optimizer_name(optimizer));
    for (size_t i = 0; optimizer_setting_get(optimizer_settings(optimizer), i, &setting, &value);
         i++) {
        char number[NUMBER_TEXT_MAX];
        number_format_float(value, NUMBER_DOUBLE, number);
        if (value != 0)
            named_tensors_add_text(&archive->tensors, part_name(&text, name, setting), number);
    }
    Status status = STATUS_OK;
    for (size_t i = 0; i < optimizer_count(optimizer) && status == STATUS_OK; i++) {
        OptimizerState state = optimizer_state(optimizer, i);
        status = add_state(archive, name, &state);
    }
    return status;
}

static Status add_scheduler(Archive *archive, const char *name, const Scheduler *scheduler) {
    double place[SCHEDULER_PLACE];
    Shape shape = {.rank = 1, .dims = {SCHEDULER_PLACE}};
    Tensor *tensor;
    scheduler_place(scheduler, place);
    named_tensors_add_text(&archive->tensors, name, scheduler_name(scheduler));
    if (!scheduler->begun) return STATUS_OK;
    TRY(tensor_from_floats(place, &shape, DTYPE_FLOAT64, &tensor));
    named_tensors_add(&archive->tensors, name, tensor);
    return STATUS_OK;
}

// Numbers so that they come back exactly.
static void add_plain(Archive *archive, const char *name, Value value) {
    char text[NUMBER_TEXT_MAX];
    value = value_look(value);
    ASSERT(value.kind <= VALUE_STRING); // is_plain
    switch ((ValueKind)value.kind) {
    case VALUE_STRING:
        named_tensors_add_text(&archive->tensors, name, value.as.string->bytes);
        return;
    case VALUE_BOOL: snprintf(text, sizeof text, "%s", value.as.integer ? "true" : "false"); break;
    case VALUE_INT: snprintf(text, sizeof text, "%lld", (long long)value.as.integer); break;
    case VALUE_FLOAT: number_format_float(value.as.number, NUMBER_DOUBLE, text); break;
    default: snprintf(text, sizeof text, "none"); break;
    }
    named_tensors_add_text(&archive->tensors, name, text);
}

static bool is_plain(Value value) {
    return value.kind == VALUE_STRING || value_is_plain_number(value) || value.kind == VALUE_NONE;
}

// Code is not data: functions, types and ranges of dtypes come from the program that loads.
static bool is_code(Value value) {
    return value.kind == VALUE_FUNCTION || value.kind == VALUE_BUILTIN ||
           value.kind == VALUE_DTYPE || value.kind == VALUE_TYPE || value.kind == VALUE_ABSENT;
}

// The arguments of a program may be any bytes.
static bool is_text(const char *name, Value value) {
    return named_text_fits(name, strlen(name)) &&
           (value.kind != VALUE_STRING ||
            named_text_fits(value.as.string->bytes, value.as.string->length));
}

static Status fail_part(const char *name, Value value) {
    return fail(STATUS_TYPE, "`%s` is %s, which a file of tensors cannot hold", name,
                value_text(value).text);
}

static Status add_part(void *context, const char *name, Value *part) {
    Archive *archive = context;
    if (part->kind == VALUE_TENSOR) {
        named_tensors_add(&archive->tensors, name, tensor_retain(part->as.tensor));
        return STATUS_OK;
    }
    if (is_handle(*part, &handle_optimizer))
        return add_optimizer(archive, name, part->as.handle->payload);
    if (is_handle(*part, &handle_scheduler))
        return add_scheduler(archive, name, part->as.handle->payload);
    if (part->kind == VALUE_STRING) string_end(part->as.string);
    if (is_plain(*part) && is_text(name, *part))
        add_plain(archive, name, *part);
    else if (!is_code(*part))
        return fail_part(name, *part);
    return STATUS_OK;
}

Status archive_add(Archive *archive, const char *name, Value value) {
    return value_walk(&value, name, add_part, archive);
}

// --- what a file holds for a part: a new value, or ABSENT where the part stays

static Status check_kind(const Archive *archive, const char *name, const char *is) {
    const char *was = named_tensors_text(&archive->tensors, name);
    if (!was)
        return fail(STATUS_NAME, "%s has no state of an optimizer or scheduler `%s`", archive->path,
                    name);
    if (strcmp(was, is) == 0) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: `%s` was %s and cannot become %s", archive->path, name, was, is);
}

static Status read_steps(const Archive *archive, const char *name, const char *parameter,
                         int64_t *out) {
    SCOPED_TEXT(text);
    text_format(&text, "%s.steps.%s", name, parameter);
    Tensor *steps = named_tensors_find(&archive->tensors, text_get(&text));
    Status status = STATUS_OK;
    *out = -1;
    if (steps && (tensor_count(steps) != 1 || dtype_is_float(tensor_dtype(steps))))
        status =
            fail(STATUS_FORMAT, "%s: `%s` is not a count of steps", archive->path, text_get(&text));
    else if (steps)
        status = tensor_read_integers(steps, out);
    return status;
}

// Those of a state that are in parts, each behind the number of its first element; how many
// elements they are of.
static Status restore_parts(const Archive *archive, const char *prefix, OptimizerState *state,
                            Optimizer *out, int64_t *elements) {
    size_t length = strlen(prefix);
    for (size_t i = 0; i < archive->tensors.count; i++) {
        const NamedTensor *one = &archive->tensors.items[i];
        char *end;
        if (strncmp(one->name, prefix, length) != 0) continue;
        state->first = strtoll(one->name + length, &end, 10);
        if (*end || end == one->name + length || tensor_rank(one->tensor) != 2) continue;
        state->state = one->tensor;
        state->count = one->tensor->view.dims[1];
        TRY(optimizer_restore(out, state));
        *elements += state->count;
    }
    return STATUS_OK;
}

static Status fail_incomplete(const Archive *archive, const NamedParameter *one, int64_t elements) {
    return fail(STATUS_FORMAT, "%s: the moments of `%s` are of %lld elements, not of %lld",
                archive->path, one->name, (long long)elements,
                (long long)tensor_count(one->tensor));
}

// The state of one parameter, where the file has one.
static Status restore_one(const Archive *archive, const char *name, const NamedParameter *one,
                          Optimizer *out) {
    int64_t elements = 0;
    OptimizerState state = {.parameter = one->tensor, .count = tensor_count(one->tensor)};
    TRY(read_steps(archive, name, one->name, &state.steps));
    if (state.steps < 0) return STATUS_OK;
    SCOPED_TEXT(text);
    text_format(&text, "%s.state.%s", name, one->name);
    state.state = named_tensors_find(&archive->tensors, text_get(&text));
    text_clear(&text);
    text_format(&text, "%s.part.%s.", name, one->name);
    Status status = STATUS_OK;
    if (!state.state) status = restore_parts(archive, text_get(&text), &state, out, &elements);
    TRY(status);
    if (elements == 0) return optimizer_restore(out, &state);
    if (elements == tensor_count(one->tensor)) return STATUS_OK;
    return fail_incomplete(archive, one, elements);
}

// Moments of a parameter that nothing takes would be lost.
static Status check_all_taken(const Archive *archive, const char *name) {
    SCOPED_TEXT(text);
    text_format(&text, "%s.steps.", name);
    Status status = STATUS_OK;
    for (size_t i = 0; i < archive->tensors.count && status == STATUS_OK; i++) {
        const char *full = archive->tensors.items[i].name;
        if (strncmp(full, text_get(&text), text.length) != 0) continue;
        if (parameters_find(&archive->parameters, full + text.length)) continue;
        status = fail(STATUS_NAME, "%s has moments of `%s`, which is not among what is loaded",
                      archive->path, full + text.length);
    }
    return status;
}

// As the file has them: a number that is not there is 0.
static void read_settings(const Archive *archive, const char *name, OptimizerSettings *out) {
    SCOPED_TEXT(text);
    const char *setting;
    double value;
    for (size_t i = 0; optimizer_setting_get(out, i, &setting, &value); i++) {
        const char *number = named_tensors_text(&archive->tensors, part_name(&text, name, setting));
        (void)optimizer_setting_set(out, setting, number ? strtod(number, NULL) : 0);
    }
}

static Status ready_optimizer(const Archive *archive, const char *name, Value given, Value *out) {
    ASSERT(is_handle(given, &handle_optimizer));
    const Optimizer *optimizer = given.as.handle->payload;
    OptimizerSettings settings = *optimizer_settings(optimizer);
    Optimizer *like;
    TRY(check_kind(archive, name, optimizer_name(optimizer)));
    TRY(check_all_taken(archive, name));
    read_settings(archive, name, &settings);
    TRY(optimizer_new(&settings, &like));
    *out = value_handle(&handle_optimizer, like);
    optimizer_set_parts(like, optimizer_parts(optimizer));
    for (size_t i = 0; i < archive->parameters.count; i++)
        TRY(restore_one(archive, name, &archive->parameters.items[i], like));
    return STATUS_OK;
}

static Status ready_scheduler(const Archive *archive, const char *name, Value given, Value *out) {
    ASSERT(is_handle(given, &handle_scheduler));
    const Scheduler *scheduler = given.as.handle->payload;
    double place[SCHEDULER_PLACE];
    TRY(check_kind(archive, name, scheduler_name(scheduler)));
    Scheduler *like = memory_allocate(sizeof *like);
    *like = *scheduler;
    like->begun = false;
    *out = value_handle(&handle_scheduler, like);
    Tensor *tensor = named_tensors_find(&archive->tensors, name);
    if (!tensor) return STATUS_OK;
    if (tensor_count(tensor) != SCHEDULER_PLACE)
        return fail(STATUS_FORMAT, "%s: `%s` is not the place of a scheduler", archive->path, name);
    TRY(tensor_read_floats(tensor, place));
    scheduler_set_place(like, place);
    return STATUS_OK;
}

static Status ready_tensor(const Archive *archive, const char *name, Tensor *given, Value *out) {
    Tensor *stored, *cast, *dense;
    TRY(archive_find(archive, name, &stored));
    Shape have = tensor_shape(stored), want = tensor_shape(given);
    bool same = have.rank == want.rank;
    for (int i = 0; i < have.rank && same; i++) same = have.dims[i] == want.dims[i];
    if (!same)
        return fail(STATUS_SHAPE, "%s: tensor `%s` is %s, not %s", archive->path, name,
                    tensor_type_name(stored).text, tensor_type_name(given).text);
    TRY(tensor_cast(stored, tensor_dtype(given), &cast));
    Status status = tensor_contiguous(cast, &dense);
    tensor_release(cast);
    TRY(status);
    *out = value_tensor(dense);
    return STATUS_OK;
}

static Status fail_plain(const Archive *archive, const char *name, const char *text, Value given) {
    return fail(STATUS_FORMAT, "%s: `%s` is \"%.40s\", but it must be of kind %s", archive->path,
                name, text, value_kind_name(given));
}

// Files of others have none: the value stays then.
static Status ready_plain(const Archive *archive, const char *name, Value given, Value *out) {
    const char *text = named_tensors_text(&archive->tensors, name);
    char *end = NULL;
    given.kind = value_kind_in_run(given);
    if (!text || given.kind == VALUE_NONE) return STATUS_OK;
    if (given.kind == VALUE_STRING) {
        *out = value_cstring(text);
        return STATUS_OK;
    }
    if (given.kind == VALUE_INT)
        *out = value_int(strtoll(text, &end, 10));
    else if (given.kind == VALUE_FLOAT)
        *out = value_float(strtod(text, &end));
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *out = value_bool(*text == 't');
    bool whole = given.kind == VALUE_BOOL ? out->kind == VALUE_BOOL : end > text && !*end;
    return whole ? STATUS_OK : fail_plain(archive, name, text, given);
}

static Status prepare_part(void *context, const char *name, Value *part) {
    Archive *archive = context;
    Value ready = value_absent();
    Status status = STATUS_OK;
    if (part->kind == VALUE_TENSOR)
        status = ready_tensor(archive, name, part->as.tensor, &ready);
    else if (is_handle(*part, &handle_optimizer))
        status = ready_optimizer(archive, name, *part, &ready);
    else if (is_handle(*part, &handle_scheduler))
        status = ready_scheduler(archive, name, *part, &ready);
    else if (is_plain(*part))
        status = ready_plain(archive, name, *part, &ready);
    List *list = archive->ready.as.list;
    size_t before = list->count;
    list_push(list, ready);
    // Without memory for it nothing is given: the walk that gives counts on one for each part.
    if (status == STATUS_OK && list->count == before) status = memory_exhausted();
    return status;
}

Status archive_prepare(Archive *archive, const char *name, Value value) {
    if (archive->ready.kind != VALUE_LIST) archive->ready = value_list(0);
    return value_walk(&value, name, prepare_part, archive);
}

// --- giving it

static Status give_part(void *context, const char *name, Value *part) {
    Archive *archive = context;
    (void)name;
    ASSERT(archive->taken < archive->ready.as.list->count);
    Value ready = archive->ready.as.list->items[archive->taken++];
    if (ready.kind == VALUE_ABSENT) return STATUS_OK;
    ASSERT(ready.kind != VALUE_HANDLE || part->kind == VALUE_HANDLE); // the walk that prepared it
    ASSERT((ready.kind == VALUE_TENSOR) == (part->kind == VALUE_TENSOR));
    if (is_handle(ready, &handle_optimizer)) {
        optimizer_exchange(part->as.handle->payload, ready.as.handle->payload);
    } else if (is_handle(ready, &handle_scheduler)) {
        *(Scheduler *)part->as.handle->payload = *(const Scheduler *)ready.as.handle->payload;
    } else if (part->kind == VALUE_TENSOR && part->as.tensor->learnable) {
        return tape_parameter_assign(part->as.tensor, ready.as.tensor);
    } else {
        Value old = *part;
        *part = value_retain(ready);
        value_release(old);
    }
    return STATUS_OK;
}

void archive_give(Archive *archive, Value value) {
    Status status = value_walk(&value, "", give_part, archive);
    ASSERT(status == STATUS_OK); // shapes and dtypes fit, and the walk has been gone before
}
