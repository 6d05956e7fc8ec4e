// Functions run step by step, for each row, and again: scan, vmap, checkpoint.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/access.h"
#include "eval/code.h"
#include "eval/invoke.h"
#include "library/callable.h"
#include "tensor/join.h"
#include "tensor/precision.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/items.h"
#include "value/print.h"

// --- results, stacked part by part

// The results of all steps, of which there is one at least; what they hold is borrowed.
typedef struct Steps {
    const char *name;
    const Value *items;
    size_t count;
    int depth; // of containers around them
} Steps;

enum { NESTING_MAX = 64 };

static Status check_depth(int depth) {
    if (depth < NESTING_MAX) return STATUS_OK;
    return fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself");
}

static Value stack_steps(const Steps *steps);

static Status fail_unlike(const Steps *steps, Value other) {
    return fail(STATUS_TYPE, "%s: the results are stacked, but one is %s and another %s",
                steps->name, value_text(steps->items[0]).text, value_text(other).text);
}

static bool is_number_or_tensor(Value value) {
    return value.kind == VALUE_TENSOR || value_is_plain_number(value);
}

static Value stack_tensors(const Steps *steps) {
    Tensor **tensors = memory_allocate_zeroed(steps->count, sizeof *tensors), *result;
    Status status = STATUS_OK;
    for (size_t i = 0; i < steps->count && status == STATUS_OK; i++) {
        bool stacks = is_number_or_tensor(steps->items[i]);
        status = stacks ? value_to_tensor(steps->items[i], steps->name, &tensors[i])
                        : fail_unlike(steps, steps->items[i]);
    }
    if (status == STATUS_OK) status = tensor_stack(tensors, steps->count, 0, &result);
    for (size_t i = 0; i < steps->count; i++) tensor_release(tensors[i]);
    free(tensors);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}

// Part `index` of a result, borrowed; ABSENT where it has none.
static Value part_at(Value value, Value key, size_t index) {
    switch ((ValueKind)value.kind) {
    case VALUE_DICT: return dict_get(value.as.dict, key);
    case VALUE_STRUCT: return value.as.instance->fields[index];
    default: return value.as.list->items[index];
    }
}

static size_t part_count(Value value) {
    switch ((ValueKind)value.kind) {
    case VALUE_DICT: return dict_count(value.as.dict);
    case VALUE_STRUCT: return value.as.instance->type->field_count;
    default: return value.as.list->count;
    }
}

static bool is_alike(Value a, Value b) {
    if (a.kind != b.kind || part_count(a) != part_count(b)) return false;
    return a.kind != VALUE_STRUCT || a.as.instance->type == b.as.instance->type;
}

// Stacks one part of all results.
static Value stack_part(const Steps *steps, Value key, size_t index) {
    Value *parts = heap_allocate_rooted(steps->count * sizeof *parts);
    Value result = value_none();
    for (size_t i = 0; i < steps->count && !failed(result); i++) {
        parts[i] = part_at(steps->items[i], key, index);
        bool there = parts[i].kind != VALUE_ABSENT;
        if (!there && fail_unlike(steps, steps->items[i]) != STATUS_OK) result = value_fail();
    }
    if (!failed(result))
        result = stack_steps(&(Steps){steps->name, parts, steps->count, steps->depth + 1});
    heap_free(parts);
    return result;
}

static Value empty_like(Value value, size_t count) {
    switch ((ValueKind)value.kind) {
    case VALUE_DICT: return value_dict();
    case VALUE_STRUCT: {
        Value copy = value_struct(value.as.instance->type);
        copy.as.instance->dropped = true; // not a thing of its own: nothing is dropped with it
        return copy;
    }
    case VALUE_TUPLE: return value_tuple(count);
    default: return value_list(count);
    }
}

static void put_part(Value whole, Value key, size_t index, Value part) {
    if (whole.kind == VALUE_DICT)
        dict_set(whole.as.dict, value_retain(key), part);
    else if (whole.kind == VALUE_STRUCT)
        whole.as.instance->fields[index] = part;
    else
        list_push(whole.as.list, part);
}

static Value stack_containers(const Steps *steps) {
    Value first = steps->items[0];
    TRY_VALUE(check_depth(steps->depth));
    for (size_t i = 1; i < steps->count; i++)
        if (!is_alike(first, steps->items[i])) TRY_VALUE(fail_unlike(steps, steps->items[i]));
    size_t count = part_count(first);
    Value whole = empty_like(first, count);
    for (size_t i = 0; i < count; i++) {
        Value key = value_none(), item;
        if (first.kind == VALUE_DICT) dict_entry(first.as.dict, i, &key, &item);
        Value part = stack_part(steps, key, i);
        if (failed(part)) {
            value_release(whole);
            return part;
        }
        put_part(whole, key, i, part);
    }
    return whole;
}

// Numbers and tensors get a dimension 0 of steps; what else there is in structs stays that of the
// first.
static Value stack_steps(const Steps *steps) {
    Value first = steps->items[0];
    if (is_number_or_tensor(first)) return stack_tensors(steps);
    switch ((ValueKind)first.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_STRUCT: return stack_containers(steps);
    default:
        for (size_t i = 1; i < steps->count; i++)
            if (steps->items[i].kind != first.kind) TRY_VALUE(fail_unlike(steps, steps->items[i]));
        return value_retain(first);
    }
}

static void release_values(Value *values, size_t count) {
    for (size_t i = 0; i < count; i++) value_release(values[i]);
    heap_free(values);
}

// --- scan

static Status fail_steps(Value xs) {
    return fail_kind("scan: xs",
                     "a tensor of rank 1 or more, a list of steps, or a tuple or dictionary "
                     "of them",
                     xs);
}

static Status steps_of(Value xs, int depth, int64_t *count);

static Status same_steps(Value part, int depth, int64_t *count) {
    int64_t own;
    TRY(steps_of(part, depth, &own));
    if (*count >= 0 && own != *count)
        return fail(STATUS_SHAPE, "scan: one part of xs has %lld steps, another %lld",
                    (long long)*count, (long long)own);
    *count = own;
    return STATUS_OK;
}

static Status steps_of_parts(Value xs, int depth, int64_t *count) {
    *count = -1;
    TRY(check_depth(depth));
    for (size_t i = 0; i < part_count(xs); i++) {
        Value key = value_none(), item;
        if (xs.kind == VALUE_DICT) dict_entry(xs.as.dict, i, &key, &item);
        TRY(same_steps(part_at(xs, key, i), depth + 1, count));
    }
    return *count >= 0 ? STATUS_OK : fail(STATUS_VALUE, "scan: xs has no parts");
}

static Status steps_of(Value xs, int depth, int64_t *count) {
    if (xs.kind == VALUE_TUPLE || xs.kind == VALUE_DICT) return steps_of_parts(xs, depth, count);
    bool tensor = xs.kind == VALUE_TENSOR && tensor_rank(xs.as.tensor) > 0;
    return xs.kind == VALUE_LIST || tensor ? value_length(xs, count) : fail_steps(xs);
}

static Value step_at(Value xs, int depth, int64_t index) {
    if (xs.kind == VALUE_TENSOR) {
        const TensorView *view = &xs.as.tensor->view;
        bool there = view->rank > 0 && index < view->dims[0];
        return there ? tensor_element(xs.as.tensor, index) : value_none();
    }
    if (xs.kind == VALUE_LIST) {
        bool there = (uint64_t)index < xs.as.list->count;
        return there ? value_retain(xs.as.list->items[index]) : value_none();
    }
    // What f does may have put something else there.
    if (xs.kind != VALUE_TUPLE && xs.kind != VALUE_DICT) TRY_VALUE(fail_steps(xs));
    TRY_VALUE(check_depth(depth));
    size_t count = part_count(xs);
    Value step = empty_like(xs, count);
    for (size_t i = 0; i < count; i++) {
        Value key = value_none(), item;
        if (xs.kind == VALUE_DICT) dict_entry(xs.as.dict, i, &key, &item);
        Value part = step_at(part_at(xs, key, i), depth + 1, index);
        if (failed(part)) {
            value_release(step);
            return part;
        }
        put_part(step, key, i, part);
    }
    return step;
}

// Calls f(state, x), which replaces the state; the result comes back.
static Value run_step(const BuiltinCall *call, Value *state, int64_t index) {
    Value x = step_at(call->arguments[2], 0, index);
    if (failed(x)) return x;
    Value arguments[2] = {*state, x};
    SCOPED_VALUE(pair) = interp_call(call->interp, call->arguments[0], arguments, 2);
    value_release(x);
    if (failed(pair)) return pair;
    if (pair.kind != VALUE_TUPLE || pair.as.list->count != 2) {
        (void)fail_kind("scan: what f gives", "a tuple of the next state and a result", pair);
        return value_fail();
    }
    value_release(*state);
    *state = value_retain(pair.as.list->items[0]);
    return value_retain(pair.as.list->items[1]);
}

Value builtin_scan(BuiltinCall *call) {
    int64_t count;
    TRY_VALUE(steps_of(call->arguments[2], 0, &count));
    Value *results = heap_allocate_rooted(((size_t)count + 1) * sizeof *results);
    Value state = value_retain(call->arguments[1]), stacked = value_none();
    size_t made = 0;
    while (made < (size_t)count && !failed(stacked)) {
        Value result = run_step(call, &state, (int64_t)made);
        if (failed(result))
            stacked = result;
        else
            results[made++] = result;
    }
    if (!failed(stacked))
        stacked = made ? stack_steps(&(Steps){"scan", results, made, 0}) : value_list(0);
    release_values(results, made);
    if (failed(stacked)) {
        value_release(state);
        return stacked;
    }
    Value pair = value_tuple(2);
    list_push(pair.as.list, state);
    list_push(pair.as.list, stacked);
    return pair;
}

// --- vmap

typedef struct Mapping {
    bool mapped[PARAMETERS_MAX];
    int64_t dims[PARAMETERS_MAX];
    const Value *arguments;
    size_t count;
    int64_t places; // -1: not known yet
} Mapping;

static Status map_argument(Mapping *mapping, size_t index, Value dim) {
    Value argument = mapping->arguments[index];
    int at;
    mapping->mapped[index] = dim.kind != VALUE_NONE;
    if (dim.kind == VALUE_NONE) return STATUS_OK;
    TRY(value_to_int(dim, "vmap: dims", &mapping->dims[index]));
    if (argument.kind != VALUE_TENSOR) {
        (void)fail(STATUS_TYPE, "vmap goes along a dimension of argument %zu, which is %s",
                   index + 1, value_text(argument).text);
        return fail_help("give it the dimension none: dims: list(none, 0)");
    }
    TRY(op_dim(argument.as.tensor, mapping->dims[index], &at));
    int64_t size = argument.as.tensor->view.dims[at];
    if (mapping->places >= 0 && size != mapping->places)
        return fail(STATUS_SHAPE, "vmap: argument %zu has %lld places, an earlier one %lld",
                    index + 1, (long long)size, (long long)mapping->places);
    mapping->places = size;
    return STATUS_OK;
}

static Status read_mapping(Value dims, Mapping *mapping) {
    size_t count = mapping->count;
    bool each = dims.kind != VALUE_NONE && !value_is_number(dims);
    mapping->places = -1;
    Value items = each ? value_to_items(dims, "vmap: dims") : value_none();
    if (failed(items)) return error_current()->code;
    Status status = STATUS_OK;
    if (count > PARAMETERS_MAX)
        status = fail(STATUS_ARITY, "vmap takes at most %d arguments, but is given %zu",
                      PARAMETERS_MAX, count);
    else if (each && items.as.list->count != count)
        status = fail(STATUS_ARITY, "vmap: dims has %zu items for %zu argument%s",
                      items.as.list->count, count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = map_argument(mapping, i, each ? items.as.list->items[i] : dims);
    if (status == STATUS_OK && mapping->places < 0)
        status = fail(STATUS_ARITY, "vmap goes along a dimension of one argument at least");
    if (status == STATUS_OK && mapping->places == 0)
        status = fail(STATUS_SHAPE, "vmap: there is no place along the dimension, so nothing says "
                                    "what the function gives");
    if (each) value_release(items);
    return status;
}

static Value run_place(Interp *interp, Value function, const Mapping *mapping, int64_t place) {
    const Value *arguments = mapping->arguments;
    Value given[PARAMETERS_MAX];
    Status status = STATUS_OK;
    size_t made = 0;
    for (; made < mapping->count && status == STATUS_OK; made++) {
        Tensor *part = NULL;
        given[made] = value_none();
        if (mapping->mapped[made])
            status = tensor_select(arguments[made].as.tensor, mapping->dims[made], place, &part);
        if (status == STATUS_OK)
            given[made] = part ? value_tensor(part) : value_retain(arguments[made]);
    }
    Value result = status == STATUS_OK ? interp_call(interp, function, given, made) : value_fail();
    while (made > 0) value_release(given[--made]);
    return result;
}

static Value call_mapped(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Callable *callable = handle->payload;
    Mapping mapping = {.arguments = arguments, .count = count};
    TRY_VALUE(read_mapping(callable->second, &mapping));
    Value *results = heap_allocate_rooted((size_t)mapping.places * sizeof *results);
    Value stacked = value_none();
    size_t made = 0;
    while (made < (size_t)mapping.places && !failed(stacked)) {
        Value result = run_place(interp, callable->first, &mapping, (int64_t)made);
        if (failed(result))
            stacked = result;
        else
            results[made++] = result;
    }
    if (!failed(stacked)) stacked = stack_steps(&(Steps){"vmap", results, made, 0});
    release_values(results, made);
    return stacked;
}

static const HandleType mapped_type = CALLABLE_TYPE(call_mapped);

Value builtin_vmap(BuiltinCall *call) {
    return callable_new(&mapped_type, call->arguments[0], call->arguments[1]);
}
