// Program blocks at run time. A name's value is made when it is asked for, from the values it
// depends on, and kept until one of these or a variable outside changes. Names that depend on each
// other are made together, from nothing, until a round changes none of them.
#include "equation/program.h"

#include <math.h>

#include "device/foretell.h"
#include "equation/named.h"
#include "equation/semiring.h"
#include "eval/invoke.h"
#include "tensor/compose.h"
#include "tensor/index.h"
#include "tensor/join.h"

static void release_program(void *payload) {
    ProgramHandle *program = payload;
    for (int i = 0; i < program->part_count; i++) {
        value_release(program->parts[i].function);
        value_release(program->parts[i].inputs);
        value_release(program->parts[i].seen);
    }
    for (int i = 0; i < program->name_count; i++) value_release(program->names[i].value);
    heap_free(program->parts);
    heap_free(program->names);
    heap_free(program);
}

// --- what has changed

// What tells a later reading of a variable from this one: nothing does for what can change inside.
static Value witness_of(Value value) {
    if (value_is_handle_tensor(value)) {
        const HandleTensor *tensor = value.as.handle->type->tensor;
        if (!tensor->version) return value_list(0); // like nothing seen before
        Value pair = value_tuple(2);
        list_push(pair.as.list, value_int((int64_t)(intptr_t)value.as.handle->payload));
        list_push(pair.as.list, value_int((int64_t)tensor->version(value.as.handle)));
        return pair;
    }
    return value_retain(value);
}

static bool same_witness(Value before, Value now) {
    if (before.kind != now.kind) return false;
    switch (now.kind) {
    case VALUE_TENSOR:
        return before.as.tensor == now.as.tensor && !now.as.tensor->learnable &&
               !now.as.tensor->node;
    case VALUE_TUPLE: {
        const List *x = before.as.list, *y = now.as.list;
        bool same = x->count == y->count;
        for (size_t i = 0; same && i < x->count; i++) same = same_witness(x->items[i], y->items[i]);
        return same;
    }
    case VALUE_INT:
    case VALUE_BOOL: return before.as.integer == now.as.integer;
    case VALUE_FLOAT: return memcmp(&before.as.number, &now.as.number, sizeof(double)) == 0;
    case VALUE_STRING: return string_equals(before.as.string, now.as.string);
    case VALUE_NONE: return true;
    case VALUE_FUNCTION:
    case VALUE_BUILTIN: return before.as.pointer == now.as.pointer;
    default: return false;
    }
}

// Reads what a part depends on: variables outside, and the values of names of other components.
static Value read_inputs(ProgramHandle *program, const Part *part) {
    Value given = interp_call(program->interp, part->inputs, NULL, 0);
    if (failed(given)) return given;
    ASSERT(given.kind == VALUE_LIST || given.kind == VALUE_TUPLE);
    Value seen = value_tuple(given.as.list->count);
    for (size_t i = 0; i < given.as.list->count; i++)
        list_push(seen.as.list, witness_of(given.as.list->items[i]));
    value_release(given);
    for (int i = 0; i < part->parameter_count; i++) {
        const Made *made = &program->names[part->parameters[i]];
        if (made->component != program->names[part->target].component)
            list_push(seen.as.list, value_retain(made->value));
    }
    return seen;
}

static Status read_component(ProgramHandle *program, int component, Value *seen, bool *same) {
    *same = true;
    for (int i = 0; i < program->part_count; i++) {
        const Part *part = &program->parts[i];
        ASSERT(part->target >= 0 && part->target < program->name_count);
        const Made *made = &program->names[part->target];
        if (made->component != component) continue;
        seen[i] = read_inputs(program, part);
        if (failed(seen[i])) {
            seen[i] = value_none();
            return error_current()->code;
        }
        *same &= made->value.kind != VALUE_ABSENT && same_witness(part->seen, seen[i]);
    }
    return STATUS_OK;
}

// --- one name

static Value call_part(const ProgramHandle *program, const Part *part, const Value *values) {
    Value arguments[part->parameter_count + 1];
    for (int i = 0; i < part->parameter_count; i++) arguments[i] = values[part->parameters[i]];
    return interp_call(program->interp, part->function, arguments, (size_t)part->parameter_count);
}

static bool is_bools(Value value) {
    return value.kind == VALUE_BOOL ||
           (value.kind == VALUE_TENSOR && tensor_dtype(value.as.tensor) == DTYPE_BOOL);
}

// Makes one tensor as long as the other along the dimensions that equations give parts of.
static Status fit_parts(const ProgramHandle *program, const Made *made, Value *left,
                        const Value *right) {
    if (left->kind != VALUE_TENSOR || right->kind != VALUE_TENSOR) return STATUS_OK;
    int rank = tensor_rank(left->as.tensor);
    if (rank != tensor_rank(right->as.tensor)) return STATUS_OK;
    for (int dim = 0; dim < rank; dim++) {
        int64_t more = right->as.tensor->view.dims[dim] - left->as.tensor->view.dims[dim];
        if (!(made->growing >> dim & 1) || more <= 0) continue;
        Tensor *longer;
        TRY(named_pad(left->as.tensor, dim, (int64_t[]){0, more}, semiring_zero(program->semiring),
                      &longer));
        value_release(*left);
        *left = value_tensor(longer);
    }
    return STATUS_OK;
}

// What two equations with one left side give together; takes both.
static Value sum_parts(const ProgramHandle *program, const Made *made, Value left, Value right,
                       Span span) {
    Status status = fit_parts(program, made, &left, &right);
    if (status == STATUS_OK) status = fit_parts(program, made, &right, &left);
    if (status != STATUS_OK) {
        value_release(left);
        value_release(right);
        return fail_at(span);
    }
    Operands operands = {.left = left, .right = right, .span = span};
    bool bools = is_bools(left) && is_bools(right);
    Semiring semiring = program->semiring;
    if (semiring_adds(semiring)) return semiring_add(semiring, &operands);
    Value sum = operator_apply(NULL, OPERATOR_ADD, &operands);
    return bools && !failed(sum) ? semiring_holds(sum) : sum;
}

// The value behind the elements that an update gives is as before.
static Status add_rest(const Made *made, Value *value, const Value *before) {
    if (value->kind != VALUE_TENSOR || before->kind != VALUE_TENSOR) return STATUS_OK;
    Shape old = tensor_shape(before->as.tensor);
    for (int dim = 0; dim < old.rank && old.rank == tensor_rank(value->as.tensor); dim++) {
        Shape shape = tensor_shape(value->as.tensor);
        if (!(made->growing >> dim & 1) || shape.dims[dim] >= old.dims[dim]) continue;
        IndexItem items[RANK_MAX];
        for (int i = 0; i < old.rank; i++)
            items[i] = (IndexItem){.kind = INDEX_SLICE,
                                   .has_start = i == dim,
                                   .start = shape.dims[dim],
                                   .has_stop = i != dim,
                                   .stop = shape.dims[i]};
        SCOPED_TENSOR(rest);
        TRY(index_get(before->as.tensor, items, old.rank, &rest));
        Tensor *both;
        TRY(tensor_concat((Tensor *[]){value->as.tensor, rest}, 2, dim, &both));
        value_release(*value);
        *value = value_tensor(both);
    }
    return STATUS_OK;
}

// The sum of a name's equations where the names have these values; none: no value yet. `first`:
// equations that cannot tell sizes yet are left out, if any can.
static Value make_value(const ProgramHandle *program, int name, const Value *values, bool first) {
    Value sum = value_absent();
    bool refused = false;
    for (int i = 0; i < program->part_count; i++) {
        const Part *part = &program->parts[i];
        if (part->target != name) continue;
        Value value = call_part(program, part, values);
        bool later = failed(value) && first && error_current()->code == STATUS_SHAPE;
        refused |= later;
        if (later) trace_clear(program->interp);
        if (later) continue;
        if (!failed(value) && sum.kind != VALUE_ABSENT)
            value = sum_parts(program, &program->names[name], sum, value, part->span);
        else if (failed(value))
            value_release(sum);
        if (failed(value)) return value;
        sum = value;
    }
    const Made *made = &program->names[name];
    if (sum.kind == VALUE_ABSENT || made->before < 0)
        return refused && sum.kind == VALUE_ABSENT ? value_fail() : sum;
    if (add_rest(made, &sum, &values[made->before]) == STATUS_OK) return sum;
    value_release(sum);
    return value_fail();
}

// --- fixed points

typedef struct Settling {
    ProgramHandle *program;
    int component;
    bool loops;
    Value *values; // by name, as they are now; of other components theirs
    int *order;    // of the names: as the first round could make them, each from what it needs
    int made;
    bool lengthens; // a tensor that goes on has become longer in this round
} Settling;

static bool is_member(const Settling *settling, int name) {
    return settling->program->names[name].component == settling->component;
}

// The largest change, with infinities that stay counted as none.
static Status tensor_change(Tensor *before, Tensor *after, double *out) {
    SCOPED_TENSOR(same);
    SCOPED_TENSOR(difference);
    SCOPED_TENSOR(size);
    SCOPED_TENSOR(changes);
    SCOPED_TENSOR(zero);
    SCOPED_TENSOR(largest);
    Tensor *both[] = {after, before};
    *out = 0.0;
    if (tensor_count(after) == 0) return STATUS_OK;
    TRY(op_with(OP_eq, both, 2, NULL, &same));
    TRY(compose_floating(after, &size));
    both[0] = size;
    TRY(op_with(OP_sub, both, 2, NULL, &difference));
    TRY(op_with(OP_abs, &difference, 1, NULL, &changes));
    TRY(op_with(OP_zeros_like, &changes, 1, NULL, &zero));
    Tensor *choice[] = {same, zero, changes};
    SCOPED_TENSOR(counted);
    TRY(op_with(OP_where, choice, 3, NULL, &counted));
    TRY(op_with(OP_max_along, &counted, 1, NULL, &largest));
    Scalar scalar;
    uint64_t reads = foretell_reads();
    TRY(tensor_read_scalar(largest, &scalar));
    bool known = foretell_reads() == reads; // else it settles in an unknown number of rounds
    *out = known ? scalar_double(scalar) : 0.0;
    return STATUS_OK;
}

static Status value_change(Value before, Value after, double *out) {
    SCOPED_TENSOR(first);
    SCOPED_TENSOR(second);
    TRY(value_to_tensor(before, "a value of a program", &first));
    TRY(value_to_tensor(after, "a value of a program", &second));
    Shape x = tensor_shape(first), y = tensor_shape(second);
    bool same = x.rank == y.rank && memcmp(x.dims, y.dims, (size_t)x.rank * sizeof *x.dims) == 0;
    *out = INFINITY;
    return same ? tensor_change(first, second, out) : STATUS_OK;
}

// The first values: of names whose sizes others tell, these come first.
static Status first_round(Settling *settling) {
    const ProgramHandle *program = settling->program;
    bool progress = true, complete = false;
    while (!complete) {
        complete = true;
        progress = false;
        for (int i = 0; i < program->name_count; i++) {
            if (!is_member(settling, i) || settling->values[i].kind != VALUE_NONE) continue;
            Value value = make_value(program, i, settling->values, settling->loops);
            if (failed(value) && error_current()->code != STATUS_SHAPE)
                return error_current()->code;
            complete &= !failed(value);
            progress |= !failed(value);
            if (failed(value)) continue;
            settling->values[i] = value;
            settling->order[settling->made++] = i;
        }
        if (!complete && !progress) return error_current()->code;
    }
    return STATUS_OK;
}

static bool is_longer(const Value *value, const Value *before) {
    if (value->kind != VALUE_TENSOR || before->kind != VALUE_TENSOR) return false;
    Shape now = tensor_shape(value->as.tensor), old = tensor_shape(before->as.tensor);
    bool longer = false;
    for (int i = 0; i < now.rank && now.rank == old.rank; i++) longer |= now.dims[i] > old.dims[i];
    return longer;
}

// Each name is made from the latest values: what lies behind each other in a row is gone through in
// one round.
static Status next_round(Settling *settling, double *largest, int *most) {
    ASSERT(settling->made > 0);
    *largest = -1.0;
    settling->lengthens = false;
    for (int k = 0; k < settling->made; k++) {
        int name = settling->order[k];
        double change = 0.0;
        Value before = settling->values[name];
        Value value = make_value(settling->program, name, settling->values, false);
        if (failed(value)) return error_current()->code;
        Status status = value_change(before, value, &change);
        settling->lengthens |= settling->program->names[name].growing && is_longer(&value, &before);
        settling->values[name] = value;
        value_release(before);
        TRY(status);
        if (change > *largest || isnan(change)) {
            *largest = change;
            *most = name;
        }
    }
    return STATUS_OK;
}

static Status settle(Settling *settling) {
    const ProgramHandle *program = settling->program;
    double change = INFINITY;
    int most = 0;
    TRY(first_round(settling));
    for (int64_t i = 0; i < program->iterations_max; i++) {
        if (interp_interrupts()) {
            (void)interp_fail_interrupted((Span){0, 0});
            return error_current()->code;
        }
        TRY(next_round(settling, &change, &most));
        if (change <= program->tolerance) return STATUS_OK;
    }
    if (settling->lengthens) {
        fail(STATUS_VALUE, "%s.%s has no end: nothing says how many steps it has", program->name,
             program->names[most].name);
        return fail_help("a tensor with the index of the step says it, as `rate` does in "
                         "`X[t+1] = X[t] * rate[t]`");
    }
    fail(STATUS_VALUE, "%s.%s has not settled in %lld iterations: it still changes by %g",
         program->name, program->names[most].name, (long long)program->iterations_max, change);
    return fail_help("max_iterations: and tolerance: of the program say when it ends");
}

// --- asking

// What a name is before its first round: a number, or a tensor whose sizes are not known yet.
static Value nothing_of(const ProgramHandle *program, int name) {
    const Made *made = &program->names[name];
    if (!made->loops || !made->scalar) return value_none();
    return value_float(semiring_zero(program->semiring));
}

static Status make_component(ProgramHandle *program, int component) {
    int count = program->name_count;
    Value values[count + 1];
    int order[count + 1];
    Settling settling = {program, component, false, values, order, 0, false};
    for (int i = 0; i < count; i++) {
        bool member = program->names[i].component == component;
        settling.loops |= member && program->names[i].loops;
        values[i] = member ? nothing_of(program, i) : value_retain(program->names[i].value);
        if (member && values[i].kind != VALUE_NONE) order[settling.made++] = i;
    }
    Status status = settling.loops ? settle(&settling) : first_round(&settling);
    for (int i = 0; i < count; i++) {
        if (status == STATUS_OK && is_member(&settling, i)) {
            value_release(program->names[i].value);
            program->names[i].value = values[i];
        } else {
            value_release(values[i]);
        }
    }
    return status;
}

static Status ensure_component(ProgramHandle *program, int component);

static Status ensure_needed(ProgramHandle *program, int component) {
    for (int i = 0; i < program->part_count; i++) {
        const Part *part = &program->parts[i];
        if (program->names[part->target].component != component) continue;
        for (int j = 0; j < part->parameter_count; j++) {
            int needed = program->names[part->parameters[j]].component;
            if (needed != component) TRY(ensure_component(program, needed));
        }
    }
    return STATUS_OK;
}

static Status ensure_component(ProgramHandle *program, int component) {
    ASSERT(component >= 0 && component < program->name_count);
    int count = program->part_count;
    Value seen[count + 1];
    bool same;
    if (program->names[component].busy)
        return fail(STATUS_VALUE, "%s.%s is asked for while it is being made", program->name,
                    program->names[component].name);
    for (int i = 0; i < count; i++) seen[i] = value_none();
    program->names[component].busy = true;
    Status status = ensure_needed(program, component);
    if (status == STATUS_OK) status = read_component(program, component, seen, &same);
    if (status == STATUS_OK && !same) status = make_component(program, component);
    for (int i = 0; i < count; i++) {
        Part *part = &program->parts[i];
        bool member = program->names[part->target].component == component;
        if (member && status == STATUS_OK) {
            value_release(part->seen);
            part->seen = seen[i];
        } else {
            value_release(seen[i]);
        }
    }
    program->names[component].busy = false;
    return status;
}

static Status fail_no_name(const ProgramHandle *program, const char *name) {
    const char *names[program->name_count + 1];
    for (int i = 0; i < program->named; i++) names[i] = program->names[i].name;
    const char *near = catalog_nearest(name, names, (size_t)program->named);
    fail(STATUS_NAME, "the program %s has no equation for `%s`", program->name, name);
    return near ? fail_help("did you mean `%s`?", near) : STATUS_NAME;
}

static Status get_name(Handle *handle, const char *name, Value *out) {
    ProgramHandle *program = handle->payload;
    for (int i = 0; i < program->name_count; i++) {
        if (strcmp(program->names[i].name, name) != 0) continue;
        value_retain((Value){.kind = VALUE_HANDLE, .as.handle = handle});
        Status status = ensure_component(program, program->names[i].component);
        *out = status == STATUS_OK ? value_retain(program->names[i].value) : value_none();
        value_release((Value){.kind = VALUE_HANDLE, .as.handle = handle});
        return status;
    }
    return fail_no_name(program, name);
}

static void print_program(Handle *handle, Text *out) {
    text_format(out, "<program %s>", ((const ProgramHandle *)handle->payload)->name);
}

const HandleType handle_program = {
    .name = "program", .release = release_program, .get_field = get_name, .print = print_program};
