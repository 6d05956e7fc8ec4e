// Functions over all elements of something: map, filter, reduce, zip, enumerate, sorted, reversed.

#include "device/work.h"
#include "eval/bind.h"
#include "eval/invoke.h"
#include "tensor/op.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/items.h"

static Value map_items(Interp *interp, Value function, Value x) {
    SCOPED_VALUE(items) = value_to_items(x, "map: x");
    if (items.kind == VALUE_FAIL) return items;
    Value result = value_list(items.as.list->count);
    for (size_t i = 0; i < items.as.list->count; i++) {
        Value item = interp_call(interp, function, &items.as.list->items[i], 1);
        if (item.kind == VALUE_FAIL) {
            value_release(result);
            result = item;
            break;
        }
        list_push(result.as.list, item);
    }
    return result;
}

Value builtin_map(BuiltinCall *call) {
    return map_items(call->interp, call->arguments[0], call->arguments[1]);
}

Value builtin_map_of(BuiltinCall *call) {
    return map_items(call->interp, call->arguments[1], call->arguments[0]);
}

// Calls the function as a condition.
static Status call_condition(Interp *interp, Value function, Value item, bool *out) {
    SCOPED_VALUE(answer) = interp_call(interp, function, &item, 1);
    if (answer.kind == VALUE_FAIL) return error_current()->code;
    return value_to_bool(answer, "filter: the result of f", out);
}

static Value filter_items(Interp *interp, Value function, Value x) {
    SCOPED_VALUE(items) = value_to_items(x, "filter: x");
    if (items.kind == VALUE_FAIL) return items;
    Value result = value_list(0);
    for (size_t i = 0; i < items.as.list->count; i++) {
        Value item = items.as.list->items[i];
        bool keep;
        if (call_condition(interp, function, item, &keep) != STATUS_OK) {
            value_release(result);
            result = value_fail();
            break;
        }
        if (keep) list_push(result.as.list, value_retain(item));
    }
    return result;
}

Value builtin_filter(BuiltinCall *call) {
    return filter_items(call->interp, call->arguments[0], call->arguments[1]);
}

Value builtin_filter_of(BuiltinCall *call) {
    return filter_items(call->interp, call->arguments[1], call->arguments[0]);
}

static Value reduce_items(Interp *interp, Value function, Value x, Value initial) {
    SCOPED_VALUE(items) = value_to_items(x, "reduce: x");
    if (items.kind == VALUE_FAIL) return items;
    const List *list = items.as.list;
    bool given = initial.kind != VALUE_ABSENT;
    Value result = value_fail();
    if (!given && list->count == 0)
        fail(STATUS_VALUE, "reduce: x is empty and there is no initial value");
    else
        result = value_retain(given ? initial : list->items[0]);
    for (size_t i = given ? 0 : 1; result.kind != VALUE_FAIL && i < list->count; i++) {
        Value pair[2] = {result, list->items[i]};
        result = interp_call(interp, function, pair, 2);
        value_release(pair[0]);
    }
    return result;
}

Value builtin_reduce(BuiltinCall *call) {
    return reduce_items(call->interp, call->arguments[0], call->arguments[1], call->arguments[2]);
}

Value builtin_reduce_of(BuiltinCall *call) {
    return reduce_items(call->interp, call->arguments[1], call->arguments[0], call->arguments[2]);
}

Value builtin_zip(BuiltinCall *call) {
    SCOPED_VALUE(lists) = value_list(call->rest_count);
    size_t shortest = SIZE_MAX;
    for (size_t i = 0; i < call->rest_count; i++) {
        Value items = value_to_items(call->rest[i], "zip: lists");
        if (items.kind == VALUE_FAIL) return items;
        if (items.as.list->count < shortest) shortest = items.as.list->count;
        list_push(lists.as.list, items);
    }
    if (call->rest_count == 0) shortest = 0;
    Value result = value_list(shortest);
    for (size_t row = 0; row < shortest; row++) {
        Value tuple = value_tuple(call->rest_count);
        for (size_t i = 0; i < call->rest_count; i++)
            list_push(tuple.as.list, value_retain(lists.as.list->items[i].as.list->items[row]));
        list_push(result.as.list, tuple);
    }
    return result;
}

Value builtin_enumerate(BuiltinCall *call) {
    SCOPED_VALUE(items) = value_to_items(call->arguments[0], "enumerate: x");
    if (items.kind == VALUE_FAIL) return items;
    const List *list = items.as.list;
    uint64_t start = (uint64_t)call->arguments[1].as.integer;
    Value result = value_list(list->count);
    for (size_t i = 0; i < list->count; i++) {
        Value pair = value_tuple(2);
        list_push(pair.as.list, value_int((int64_t)(start + i)));
        list_push(pair.as.list, value_retain(list->items[i]));
        list_push(result.as.list, pair);
    }
    return result;
}

// --- sorting

typedef struct Keyed {
    Value key, item; // borrowed
} Keyed;

// Merges the sorted halves [0, middle) and [middle, count) of `from` into `to`. Equal keys keep
// their order, also in reverse.
static Status merge(const Keyed *from, Keyed *to, size_t middle, size_t count, bool reverse) {
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        bool take_left = right == count;
        if (left < middle && right < count) {
            int order;
            TRY(value_compare(from[left].key, from[right].key, &order));
            take_left = reverse ? order >= 0 : order <= 0;
        }
        to[i] = take_left ? from[left++] : from[right++];
    }
    return STATUS_OK;
}

// Merge sort from runs of one upwards; the result ends in *items, whose other array is scratch.
static Status sort_keyed(Keyed **items, Keyed **scratch, size_t count, bool reverse) {
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * run) {
            if (device_is_interrupted()) return fail(STATUS_INTERRUPT, "interrupted");
            size_t left = count - begin;
            size_t size = left < 2 * run ? left : 2 * run;
            TRY(merge(*items + begin, *scratch + begin, run < size ? run : size, size, reverse));
        }
        Keyed *swap = *items;
        *items = *scratch;
        *scratch = swap;
    }
    return STATUS_OK;
}

// A new list of the elements in order of the keys (parallel lists).
static Value sort_by_keys(const List *items, const List *keys, bool reverse) {
    size_t count = items->count;
    Keyed *rows = heap_allocate(count * sizeof *rows),
          *scratch = heap_allocate(count * sizeof *scratch);
    for (size_t i = 0; i < count; i++) rows[i] = (Keyed){keys->items[i], items->items[i]};
    Value result = value_fail();
    if (sort_keyed(&rows, &scratch, count, reverse) == STATUS_OK) {
        result = value_list(count);
        for (size_t i = 0; i < count; i++) list_push(result.as.list, value_retain(rows[i].item));
    }
    heap_free(rows);
    heap_free(scratch);
    return result;
}

// A new list of the elements in order.
static Value sort_items(Interp *interp, Value items, Value key, bool reverse) {
    SCOPED_VALUE(keys) =
        key.kind == VALUE_ABSENT ? value_retain(items) : map_items(interp, key, items);
    return keys.kind == VALUE_FAIL ? keys : sort_by_keys(items.as.list, keys.as.list, reverse);
}

Value builtin_sorted(BuiltinCall *call) {
    Value x = call->arguments[0], key = call->arguments[1];
    bool reverse = call->arguments[2].as.boolean;
    if (x.kind == VALUE_TENSOR && key.kind == VALUE_ABSENT && tensor_rank(x.as.tensor) == 1) {
        const Builtin *row = catalog_find("sort", 4);
        Value arguments[3] = {x, value_int(-1), value_bool(reverse)};
        return interp_call_builtin(call->interp, row, arguments, 3);
    }
    SCOPED_VALUE(items) = value_to_items(x, "sorted: x");
    if (items.kind == VALUE_FAIL) return items;
    return sort_items(call->interp, items, key, reverse);
}

// The elements are sorted apart and put back at the end: a key function that changes the list, or a
// failure, leaves it whole.
Value builtin_list_sort(BuiltinCall *call) {
    Value items = value_to_items(call->arguments[0], "sort: x");
    Value sorted =
        sort_items(call->interp, items, call->arguments[1], call->arguments[2].as.boolean);
    value_release(items);
    if (sorted.kind == VALUE_FAIL) return sorted;
    List *list = call->arguments[0].as.list, *made = sorted.as.list;
    List before = *list;
    list->items = made->items;
    list->count = made->count;
    list->capacity = made->capacity;
    made->items = before.items;
    made->count = before.count;
    made->capacity = before.capacity;
    value_release(sorted);
    return value_retain(call->arguments[0]);
}

static void reverse_in_place(List *list) {
    for (size_t i = 0; i < list->count / 2; i++) {
        Value swap = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = swap;
    }
}

Value builtin_list_reverse(BuiltinCall *call) {
    reverse_in_place(call->arguments[0].as.list);
    return value_retain(call->arguments[0]);
}

static Value reversed_text(const List *characters) {
    SCOPED_TEXT(text);
    for (size_t i = characters->count; i-- > 0;) {
        const String *one = characters->items[i].as.string;
        text_append(&text, one->bytes, one->length);
    }
    return value_string(text_get(&text), text.length);
}

Value builtin_reversed(BuiltinCall *call) {
    Value x = call->arguments[0];
    if (x.kind == VALUE_TENSOR) {
        Tensor *flipped;
        TRY_VALUE(tensor_flip(x.as.tensor, 0, &flipped));
        return value_tensor(flipped);
    }
    Value items = value_to_items(x, "reversed: x");
    if (items.kind == VALUE_FAIL) return items;
    List *list = items.as.list;
    if (x.kind == VALUE_STRING) {
        Value text = reversed_text(list);
        value_release(items);
        return text;
    }
    reverse_in_place(list);
    return items;
}
