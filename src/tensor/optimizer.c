// Optimizers: which settings each takes, the state of its parameters, and the call of the kernel
// that has the formulas.
#include "tensor/optimizer.h"

#include <math.h>
#include <stdlib.h>

#include "base/key_index.h"
#include "base/memory.h"
#include "device/work.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

// What an optimizer keeps for one parameter, or for a part of it.
typedef struct Slot {
    Tensor *parameter;    // counted
    Tensor *state;        // [rows, count]; of a 16-bit parameter the last row is its float32 copy
    int64_t first, count; // the elements that it moves
    bool is_part;         // others move the rest, of which there may be none
    Tensor *place;        // counted: where these elements lie; NULL: in the parameter
    int64_t steps;
} Slot;

typedef VECTOR(Slot) SlotVector;

struct Optimizer {
    OptimizerSettings settings;
    SlotVector slots;
    KeyIndex *places; // of the slots, by parameter
    TensorArray own;  // what it is for, when `has_own`
    bool has_own;
    VECTOR(OptimizerGroup) groups;
    OptimizerParts parts;
    size_t next; // parameters come in the same order every time
};

static int rows_momentum(const OptimizerSettings *s) {
    return s->momentum != 0;
}
static int rows_adam(const OptimizerSettings *s) {
    return s->amsgrad ? 3 : 2;
}
static int rows_rmsprop(const OptimizerSettings *s) {
    return 1 + s->centered + (s->momentum != 0);
}
static int rows_one(const OptimizerSettings *s) {
    (void)s;
    return 1;
}

static const struct {
    const char *name;
    int (*rows)(const OptimizerSettings *settings);
} rules[OPTIMIZER_COUNT] = {
    [OPTIMIZER_sgd] = {"sgd", rows_momentum},    [OPTIMIZER_adam] = {"adam", rows_adam},
    [OPTIMIZER_adamw] = {"adamw", rows_adam},    [OPTIMIZER_rmsprop] = {"rmsprop", rows_rmsprop},
    [OPTIMIZER_adagrad] = {"adagrad", rows_one}, [OPTIMIZER_lion] = {"lion", rows_one},
};

// Numbers among the settings, and the smallest number that is too large for each.
static const struct {
    const char *name;
    size_t offset;
    double limit;
} numbers[] = {
#define NUMBER(name, limit)                                                                        \
    { #name, offsetof(OptimizerSettings, name), limit }
    NUMBER(lr, INFINITY),
    NUMBER(weight_decay, INFINITY),
    NUMBER(beta1, 1),
    NUMBER(beta2, 1),
    NUMBER(epsilon, INFINITY),
    NUMBER(momentum, INFINITY),
    NUMBER(dampening, INFINITY),
    NUMBER(alpha, 1),
    NUMBER(lr_decay, INFINITY),
    NUMBER(initial, INFINITY),
#undef NUMBER
};
enum { NUMBER_COUNT = sizeof numbers / sizeof *numbers };

static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    {"nesterov", offsetof(OptimizerSettings, nesterov)},
    {"amsgrad", offsetof(OptimizerSettings, amsgrad)},
    {"centered", offsetof(OptimizerSettings, centered)},
};
enum { FLAG_COUNT = sizeof flags / sizeof *flags };

static double number_get(const OptimizerSettings *settings, size_t index) {
    double value;
    memcpy(&value, (const char *)settings + numbers[index].offset, sizeof value);
    return value;
}

bool optimizer_setting_set(OptimizerSettings *settings, const char *name, double value) {
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            memcpy((char *)settings + numbers[i].offset, &value, sizeof value);
            return true;
        }
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (strcmp(flags[i].name, name) == 0) {
            *(bool *)((char *)settings + flags[i].offset) = value != 0;
            return true;
        }
    return false;
}

bool optimizer_setting_get(const OptimizerSettings *settings, size_t index, const char **name,
                           double *value) {
    if (index >= NUMBER_COUNT + FLAG_COUNT) return false;
    bool number = index < NUMBER_COUNT;
    *name = number ? numbers[index].name : flags[index - NUMBER_COUNT].name;
    *value = number ? number_get(settings, index)
                    : *(const bool *)((const char *)settings + flags[index - NUMBER_COUNT].offset);
    return true;
}

static Status check_number(const OptimizerSettings *settings, size_t index, double value) {
    const char *optimizer = rules[settings->id].name, *name = numbers[index].name;
    if (value >= 0 && value < numbers[index].limit) return STATUS_OK;
    if (isinf(numbers[index].limit))
        return fail(STATUS_VALUE, "%s: %s is %g; it must be a number from 0 on", optimizer, name,
                    value);
    return fail(STATUS_VALUE, "%s: %s is %g; it must be from 0 to less than %g", optimizer, name,
                value, numbers[index].limit);
}

Status optimizer_new(const OptimizerSettings *settings, Optimizer **out) {
    ASSERT((unsigned)settings->id < OPTIMIZER_COUNT);
    for (size_t i = 0; i < NUMBER_COUNT; i++)
        TRY(check_number(settings, i, number_get(settings, i)));
    if (settings->nesterov && (settings->momentum == 0 || settings->dampening != 0)) {
        (void)fail(STATUS_VALUE, "%s: nesterov needs a momentum and no dampening",
                   rules[settings->id].name);
        return fail_help("for example momentum: 0.9");
    }
    Optimizer *optimizer = memory_allocate_zeroed(1, sizeof *optimizer);
    optimizer->settings = *settings;
    optimizer->places = key_index_new();
    *out = optimizer;
    return STATUS_OK;
}

void optimizer_free(Optimizer *optimizer) {
    while (optimizer->slots.count > 0) {
        Slot *slot = &optimizer->slots.items[--optimizer->slots.count];
        tensor_release(slot->state);
        tensor_release(slot->place);
        tensor_release(slot->parameter);
    }
    VECTOR_FREE(&optimizer->slots);
    key_index_free(optimizer->places);
    optimizer_clear_groups(optimizer);
    optimizer_set_parts(optimizer, NULL);
    tensor_array_release(&optimizer->own);
    free(optimizer);
}

const char *optimizer_name(const Optimizer *optimizer) {
    return rules[optimizer->settings.id].name;
}

double optimizer_rate(const Optimizer *optimizer) {
    return optimizer->settings.lr;
}

Status optimizer_set_rate(Optimizer *optimizer, double lr) {
    TRY(check_number(&optimizer->settings, 0, lr));
    optimizer->settings.lr = lr;
    return STATUS_OK;
}

static const OptimizerPart *part_of(const Optimizer *optimizer, const Tensor *parameter) {
    for (size_t i = 0; i < optimizer->parts.count; i++)
        if (optimizer->parts.items[i].parameter == parameter) return &optimizer->parts.items[i];
    return NULL;
}

static Slot *slot_find(Optimizer *optimizer, Tensor *parameter) {
    size_t count = optimizer->slots.count, at = optimizer->next < count ? optimizer->next : 0;
    bool is_next = count > 0 && optimizer->slots.items[at].parameter == parameter;
    if (is_next || key_index_find(optimizer->places, &parameter, sizeof parameter, &at)) {
        optimizer->next = at + 1;
        return &optimizer->slots.items[at];
    }
    Slot slot = {.parameter = tensor_retain(parameter), .count = tensor_count(parameter)};
    const OptimizerPart *part = part_of(optimizer, parameter);
    if (part) {
        slot.first = part->first;
        slot.count = part->count;
        slot.is_part = true;
        slot.place = part->place ? tensor_retain(part->place) : NULL;
    }
    ASSERT(key_index_count(optimizer->places) == count);
    key_index_add(optimizer->places, &parameter, sizeof parameter);
    VECTOR_PUSH(&optimizer->slots, slot);
    optimizer->next = count + 1;
    return &optimizer->slots.items[count];
}

static void release_parts(Optimizer *optimizer) {
    while (optimizer->parts.count > 0) {
        OptimizerPart *part = &optimizer->parts.items[--optimizer->parts.count];
        tensor_release(part->parameter);
        tensor_release(part->place);
    }
    VECTOR_FREE(&optimizer->parts);
}

void optimizer_set_parts(Optimizer *optimizer, const OptimizerParts *parts) {
    OptimizerParts taken = {0};
    for (size_t i = 0; parts && i < parts->count; i++) {
        OptimizerPart part = parts->items[i];
        ASSERT(part.first >= 0 && part.first + part.count <= tensor_count(part.parameter));
        ASSERT(!part.place || tensor_count(part.place) == part.count);
        tensor_retain(part.parameter);
        if (part.place) tensor_retain(part.place);
        VECTOR_PUSH(&taken, part);
    }
    release_parts(optimizer);
    optimizer->parts = taken;
    for (size_t i = 0; i < optimizer->slots.count; i++) {
        Slot *slot = &optimizer->slots.items[i];
        const OptimizerPart *part = part_of(optimizer, slot->parameter);
        Tensor *before = slot->place;
        slot->place = part && part->place ? tensor_retain(part->place) : NULL;
        tensor_release(before);
    }
}

static DType working_dtype(const Tensor *parameter) {
    return tensor_dtype(parameter) == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

static bool has_copy(const Tensor *parameter) {
    return tensor_dtype(parameter) != working_dtype(parameter);
}

// Some elements of what lies in memory one after the other.
static TensorView elements_of(const TensorView *all, int64_t first, int64_t count) {
    TensorView view = *all;
    view.rank = 1;
    view.dims[0] = count;
    view.strides[0] = 1;
    view.offset += (size_t)first * dtype_size(view.dtype);
    return view;
}

static TensorView slot_row(const Slot *slot, int row) {
    ASSERT(row >= 0 && row < slot->state->view.dims[0]);
    return elements_of(&slot->state->view, row * slot->count, slot->count);
}

static TensorView slot_target(const Slot *slot) {
    if (slot->place) return elements_of(&slot->place->view, 0, slot->count);
    ASSERT(tensor_is_contiguous(slot->parameter));
    return elements_of(&slot->parameter->view, slot->first, slot->count);
}

static int state_rows(const Optimizer *optimizer, const Tensor *parameter) {
    return rules[optimizer->settings.id].rows(&optimizer->settings) + has_copy(parameter);
}

static Status state_new(const Optimizer *optimizer, Slot *slot) {
    Tensor *parameter = slot->parameter;
    int rows = state_rows(optimizer, parameter);
    if (rows == 0) return STATUS_OK;
    Shape shape = {.rank = 2, .dims = {rows, slot->count}};
    SCOPED_TENSOR(state);
    TRY(tensor_new(parameter->device, working_dtype(parameter), &shape, &state));
    buffer_note_purpose(state->view.buffer, PURPOSE_OPTIMIZER);
    Scalar initial = {.dtype = DTYPE_FLOAT64, .as.f = optimizer->settings.initial};
    TRY(op_fill_view(&state->view, initial, "optimizer"));
    if (has_copy(parameter)) {
        TensorView copy = elements_of(&state->view, (rows - 1) * slot->count, slot->count);
        TensorView target = slot_target(slot);
        TRY(op_copy_view(&target, &copy, "optimizer"));
    }
    return compose_give(&state, &slot->state);
}

void optimizer_set_parameters(Optimizer *optimizer, TensorArray *parameters) {
    tensor_array_release(&optimizer->own);
    optimizer->own = *parameters;
    optimizer->has_own = true;
    *parameters = (TensorArray){0};
}

const TensorArray *optimizer_parameters(const Optimizer *optimizer) {
    return optimizer->has_own ? &optimizer->own : NULL;
}

void optimizer_add_group(Optimizer *optimizer, const OptimizerGroup *group) {
    VECTOR_PUSH(&optimizer->groups, *group);
}

void optimizer_set_group_rate(Optimizer *optimizer, size_t group, double lr) {
    ASSERT(group < optimizer->groups.count);
    optimizer->groups.items[group].lr = lr;
}

void optimizer_clear_groups(Optimizer *optimizer) {
    for (size_t i = 0; i < optimizer->groups.count; i++)
        tensor_array_release(&optimizer->groups.items[i].parameters);
    VECTOR_FREE(&optimizer->groups);
}

const OptimizerGroup *optimizer_group_of(const Optimizer *optimizer, const Tensor *parameter) {
    for (size_t i = 0; i < optimizer->groups.count; i++) {
        const OptimizerGroup *group = &optimizer->groups.items[i];
        for (size_t j = 0; j < group->parameters.count; j++)
            if (group->parameters.items[j] == parameter) return group;
    }
    return NULL;
}

// The settings that hold for a parameter: of its group, where they are given there.
static OptimizerSettings settings_of(const Optimizer *optimizer, const Tensor *parameter) {
    OptimizerSettings settings = optimizer->settings;
    const OptimizerGroup *group = optimizer_group_of(optimizer, parameter);
    if (group && !isnan(group->lr)) settings.lr = group->lr;
    if (group && !isnan(group->weight_decay)) settings.weight_decay = group->weight_decay;
    return settings;
}

static double correction(double beta, int64_t steps) {
    return 1 - pow(beta, (double)steps);
}

static bool keeps_means(OptimizerId id) {
    return id == OPTIMIZER_adam || id == OPTIMIZER_adamw;
}

static Status run_step(const Optimizer *optimizer, const Slot *slot, const TensorView *target,
                       const TensorView *gradient) {
    ASSERT(slot->steps > 0);
    const OptimizerSettings settings = settings_of(optimizer, slot->parameter), *s = &settings;
    const double given[] = {
        s->lr,      s->weight_decay, s->beta1,    s->id == OPTIMIZER_rmsprop ? s->alpha : s->beta2,
        s->epsilon, s->momentum,     s->dampening};
    bool means = keeps_means(s->id), rows = rules[s->id].rows(s) > 0;
    ASSERT(!rows || slot->state != NULL);
    KernelCall kernel = {.kernel = KERNEL_OPTIMIZER,
                         .n_inputs = 1 + (int)(sizeof given / sizeof *given),
                         .n_outputs = rows ? 2 : 1,
                         .op_name = optimizer_name(optimizer)};
    kernel.inputs[0].view = gradient;
    for (int i = 1; i < kernel.n_inputs; i++)
        kernel.inputs[i].scalar = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = given[i - 1]};
    kernel.outputs[0] = target;
    kernel.outputs[1] = rows ? &slot->state->view : NULL;
    kernel.options = (KernelOptions){
        .op = (int)s->id,
        .flag = s->nesterov || s->amsgrad || s->centered,
        .scalars = {means ? correction(s->beta1, slot->steps)
                          : 1 + (double)(slot->steps - 1) * s->lr_decay,
                    means ? correction(s->beta2, slot->steps) : 1},
        .integers = {slot->steps == 1},
    };
    return op_run_kernel(&kernel);
}

static Status fail_part(const Optimizer *optimizer, const Slot *slot) {
    (void)fail(STATUS_VALUE, "%s has the state of %lld of the %lld elements of a parameter %s",
               optimizer_name(optimizer), (long long)slot->count,
               (long long)tensor_count(slot->parameter), tensor_type_name(slot->parameter).text);
    return fail_help("the other ranks have the rest: learn blocks with `shard` step it");
}

// Everything that a step of this parameter needs: its own buffer, its state, and its gradient as
// the kernel reads it.
static Status prepare(Optimizer *optimizer, Tensor *parameter, Tensor *gradient, Tensor **out) {
    SCOPED_TENSOR(cast);
    Slot *slot = slot_find(optimizer, parameter);
    if (tensor_count(gradient) != slot->count) return fail_part(optimizer, slot);
    if (!slot->place) TRY(tape_parameter_unshare(parameter));
    if (!slot->state && slot->count > 0) TRY(state_new(optimizer, slot));
    TRY(tensor_cast(gradient, working_dtype(parameter), &cast));
    return tensor_contiguous(cast, out);
}

static Status step_slot(const Optimizer *optimizer, Slot *slot, Tensor *gradient) {
    ASSERT(tensor_count(gradient) == slot->count);
    slot->steps++;
    if (slot->count == 0) return STATUS_OK;
    TensorView along = elements_of(&gradient->view, 0, slot->count), target = slot_target(slot);
    if (!has_copy(slot->parameter)) return run_step(optimizer, slot, &target, &along);
    TensorView copy = slot_row(slot, (int)slot->state->view.dims[0] - 1);
    TRY(run_step(optimizer, slot, &copy, &along));
    return op_copy_view(&copy, &target, "optimizer");
}

Status optimizer_step(Optimizer *optimizer, Tensor *const *parameters, Tensor *const *gradients,
                      size_t count) {
    SCOPED_MEMORY Tensor **ready = memory_allocate_zeroed(count + 1, sizeof *ready);
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (gradients[i] && tensor_count(parameters[i]) > 0)
            status = prepare(optimizer, parameters[i], gradients[i], &ready[i]);
    bool held = device_hold_interrupts(true); // parameters are those of a complete step
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (ready[i]) status = step_slot(optimizer, slot_find(optimizer, parameters[i]), ready[i]);
    device_hold_interrupts(held);
    tape_set_enabled(enabled);
    for (size_t i = 0; i < count; i++) tensor_release(ready[i]);
    return status;
}

// Where the copy still rounds to the parameter it is the more exact of the two.
static Status refresh_slot(Slot *slot) {
    Tensor *parameter = slot->parameter;
    SCOPED_TENSOR(rounded);
    SCOPED_TENSOR(same);
    SCOPED_TENSOR(wide);
    SCOPED_TENSOR(merged);
    TensorView row = slot_row(slot, (int)slot->state->view.dims[0] - 1);
    TensorView target = slot_target(slot);
    SCOPED_TENSOR(copy);
    SCOPED_TENSOR(now);
    copy = tensor_view_of(slot->state, &row);
    now = tensor_view_of(slot->place ? slot->place : parameter, &target);
    TRY(tensor_cast(copy, tensor_dtype(parameter), &rounded));
    TRY(op_binary(OP_eq, op_tensor(rounded), op_tensor(now), &same));
    TRY(tensor_cast(now, DTYPE_FLOAT32, &wide));
    TRY(op_ternary(OP_where, op_tensor(same), op_tensor(copy), op_tensor(wide), &merged));
    return op_copy_view(&merged->view, &row, "optimizer");
}

Status optimizer_refresh(Optimizer *optimizer) {
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < optimizer->slots.count && status == STATUS_OK; i++) {
        Slot *slot = &optimizer->slots.items[i];
        if (slot->state && has_copy(slot->parameter)) status = refresh_slot(slot);
    }
    tape_set_enabled(enabled);
    return status;
}

size_t optimizer_count(const Optimizer *optimizer) {
    return optimizer->slots.count;
}

OptimizerState optimizer_state(const Optimizer *optimizer, size_t index) {
    ASSERT(index < optimizer->slots.count);
    const Slot *slot = &optimizer->slots.items[index];
    return (OptimizerState){slot->parameter, slot->state, slot->steps,
                            slot->first,     slot->count, slot->is_part};
}

const OptimizerSettings *optimizer_settings(const Optimizer *optimizer) {
    return &optimizer->settings;
}

static Status check_state(const Optimizer *optimizer, const OptimizerState *given) {
    const Tensor *parameter = given->parameter;
    int64_t rows = state_rows(optimizer, parameter), elements = tensor_count(parameter);
    Shape shape =
        given->state ? tensor_shape(given->state) : (Shape){.rank = 2, .dims = {0, given->count}};
    if (given->steps < 0)
        return fail(STATUS_FORMAT, "%s: a restored parameter has made %lld steps",
                    optimizer_name(optimizer), (long long)given->steps);
    bool fits = given->first >= 0 && given->count >= 0 && given->first <= elements - given->count;
    if (fits && shape.rank == 2 && shape.dims[0] == rows && shape.dims[1] == given->count)
        return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: the restored state %s does not belong to a parameter %s",
                optimizer_name(optimizer), type_name(DTYPE_FLOAT32, &shape).text,
                tensor_type_name(parameter).text);
}

// The columns of a state that are given go where the slot has them.
static Status take_columns(Slot *slot, const OptimizerState *given) {
    int64_t slot_end = slot->first + slot->count, given_end = given->first + given->count;
    int64_t begin = slot->first > given->first ? slot->first : given->first;
    int64_t end = slot_end < given_end ? slot_end : given_end;
    if (begin >= end) return STATUS_OK;
    SCOPED_TENSOR(columns);
    SCOPED_TENSOR(cast);
    SCOPED_TENSOR(place);
    TRY(tensor_slice(given->state, 1, begin - given->first, end - given->first, &columns));
    TRY(tensor_cast(columns, working_dtype(slot->parameter), &cast));
    if (end - begin == slot->count) {
        // The one that is given may belong to an optimizer that goes on.
        TRY(tensor_clone(cast, &place));
        tensor_release(slot->state);
        return compose_give(&place, &slot->state);
    }
    Shape shape = {.rank = 2, .dims = {given->state->view.dims[0], slot->count}};
    if (!slot->state)
        TRY(tensor_new(slot->parameter->device, working_dtype(slot->parameter), &shape,
                       &slot->state));
    TRY(tensor_slice(slot->state, 1, begin - slot->first, end - slot->first, &place));
    return op_copy(cast, place);
}

Status optimizer_restore(Optimizer *optimizer, const OptimizerState *given) {
    TRY(check_state(optimizer, given));
    Slot *slot = slot_find(optimizer, given->parameter);
    slot->steps = given->steps;
    return given->state ? take_columns(slot, given) : STATUS_OK;
}

const OptimizerParts *optimizer_parts(const Optimizer *optimizer) {
    return &optimizer->parts;
}

Status optimizer_cut(Optimizer *optimizer, const OptimizerParts *parts) {
    optimizer_set_parts(optimizer, parts);
    for (size_t i = 0; i < optimizer->slots.count; i++) {
        Slot *slot = &optimizer->slots.items[i], cut = *slot;
        for (size_t j = 0; j < parts->count; j++) {
            if (parts->items[j].parameter != slot->parameter) continue;
            cut.first = parts->items[j].first;
            cut.count = parts->items[j].count;
            cut.is_part = true;
        }
        slot->is_part = cut.is_part;
        if (cut.first == slot->first && cut.count == slot->count) continue;
        bool inside =
            cut.first >= slot->first && cut.first + cut.count <= slot->first + slot->count;
        if (!inside) return fail_part(optimizer, slot);
        OptimizerState all = optimizer_state(optimizer, i);
        cut.state = NULL;
        if (all.state) TRY(take_columns(&cut, &all));
        tensor_release(slot->state);
        *slot = cut;
    }
    return STATUS_OK;
}

void optimizer_exchange(Optimizer *a, Optimizer *b) {
    SlotVector slots = a->slots;
    KeyIndex *places = a->places;
    OptimizerSettings settings = a->settings;
    a->slots = b->slots;
    a->places = b->places;
    a->settings = b->settings;
    b->slots = slots;
    b->places = places;
    b->settings = settings;
    a->next = b->next = 0;
}
