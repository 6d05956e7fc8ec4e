// Lists, tuples, dictionaries and ranges: reading, changing, searching.
#define _GNU_SOURCE // memmem
#include <string.h>

#include "base/utf8.h"
#include "device/foretell.h"
#include "eval/access.h"
#include "eval/subscripts.h"
#include "tensor/join.h"
#include "tensor/op.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/items.h"
#include "value/print.h"

// The list of a call that changes it in place. A tensor never changes, so it gets advice.
static Status list_to_change(const BuiltinCall *call, List **out) {
    Value x = call->arguments[0];
    *out = x.as.list;
    if (x.kind == VALUE_LIST) return STATUS_OK;
    fail(STATUS_TYPE, "%s changes a list, but x is %s", call->row->signature.name,
         value_text(x).text);
    if (x.kind != VALUE_TENSOR) return STATUS_TYPE;
    return fail_help(
        "tensors do not grow: begin with an empty list, list(...) or x.to_list(), or make a "
        "new tensor with append(x, value)");
}

Value builtin_list(BuiltinCall *call) {
    Value list = value_list(call->rest_count);
    list_append(list.as.list, call->rest, call->rest_count);
    return list;
}

Value builtin_dict(BuiltinCall *call) {
    (void)call;
    return value_dict();
}

Value builtin_int_vec(BuiltinCall *call) {
    (void)call;
    return value_list(0);
}

Value builtin_range(BuiltinCall *call) {
    return value_range(0, call->arguments[0].as.integer, 1);
}

Value builtin_range_from(BuiltinCall *call) {
    int64_t step = call->arguments[2].as.integer;
    if (step != 0)
        return value_range(call->arguments[0].as.integer, call->arguments[1].as.integer, step);
    return value_failed(fail(STATUS_VALUE, "range: step must not be 0"));
}

Value builtin_len(BuiltinCall *call) {
    int64_t length;
    TRY_VALUE(value_length(call->arguments[0], &length));
    return value_int(length);
}

Value builtin_is_empty(BuiltinCall *call) {
    int64_t length;
    TRY_VALUE(value_length(call->arguments[0], &length));
    return value_bool(length == 0);
}

// --- get, set

static const char *with_article(Value value) {
    switch ((ValueKind)value.kind) {
    case VALUE_LIST: return "a list";
    case VALUE_TUPLE: return "a tuple";
    case VALUE_STRING: return "a string";
    case VALUE_RANGE: return "a range";
    case VALUE_TENSOR: return "a tensor";
    default: return value_kind_name(value);
    }
}

static Value element(Value x, int64_t index) {
    switch ((ValueKind)x.kind) {
    case VALUE_STRING: return string_slice(x.as.string, index, 1);
    case VALUE_TENSOR: return tensor_element(x.as.tensor, index);
    case VALUE_RANGE:
        return value_int(
            (int64_t)((uint64_t)x.as.range->start + (uint64_t)index * (uint64_t)x.as.range->step));
    default: return value_retain(x.as.list->items[index]);
    }
}

static Value get_entry(const Dict *dict, Value index, Value fallback) {
    Value key;
    TRY_VALUE(value_to_key(index, &key));
    Value item = dict_get(dict, key);
    if (item.kind == VALUE_ABSENT) item = fallback;
    if (item.kind != VALUE_ABSENT) return value_retain(item);
    dict_fail_missing(dict, key, "get(d, key, default) gives a default instead");
    return value_fail();
}

Value builtin_get(BuiltinCall *call) {
    Value x = call->arguments[0], index = call->arguments[1], fallback = call->arguments[2];
    if (x.kind == VALUE_DICT) return get_entry(x.as.dict, index, fallback);
    if (x.kind == VALUE_HANDLE) return value_failed(fail_no_index(x));
    int64_t length, at;
    TRY_VALUE(value_length(x, &length));
    Status status = value_to_index(index, length, with_article(x), &at);
    if (status == STATUS_INDEX && fallback.kind != VALUE_ABSENT) {
        error_clear();
        return value_retain(fallback);
    }
    TRY_VALUE(status);
    return element(x, at);
}

static Status set_entry(Dict *dict, Value index, Value item) {
    Value key;
    TRY(value_to_key(index, &key));
    dict_set(dict, key, value_retain(item));
    return STATUS_OK;
}

Value builtin_set(BuiltinCall *call) {
    Value x = call->arguments[0], index = call->arguments[1], item = call->arguments[2];
    if (x.kind == VALUE_DICT) {
        TRY_VALUE(set_entry(x.as.dict, index, item));
        return value_none();
    }
    List *list;
    int64_t at;
    TRY_VALUE(list_to_change(call, &list));
    TRY_VALUE(value_to_index(index, (int64_t)list->count, "a list", &at));
    Value old = list->items[at];
    list->items[at] = value_retain(item);
    value_release(old);
    return value_none();
}

// --- growing and shrinking

static Value append_to_tensor(Tensor *x, Value value) {
    if (tensor_rank(x) != 1) {
        SCOPED_TEXT(text);
        tensor_describe(x, &text);
        fail(STATUS_SHAPE, "append takes a list or a tensor of one dimension, but x is %s",
             text_get(&text));
        fail_help("concat([x, y], dim) joins tensors of any rank");
        return value_fail();
    }
    Tensor *number, *parts[2] = {x}, *joined = NULL;
    TRY_VALUE(value_to_tensor(value, "value", &number));
    Shape one = {.rank = 1, .dims = {1}};
    Status status = tensor_reshape(number, &one, &parts[1]);
    tensor_release(number);
    TRY_VALUE(status);
    status = tensor_concat(parts, 2, 0, &joined);
    tensor_release(parts[1]);
    return status == STATUS_OK ? value_tensor(joined) : value_fail();
}

Value builtin_append(BuiltinCall *call) {
    Value x = call->arguments[0], value = call->arguments[1];
    if (x.kind == VALUE_TENSOR) return append_to_tensor(x.as.tensor, value);
    if (x.kind != VALUE_LIST) {
        fail_kind("append: x", "a list or a 1-D tensor", x);
        return value_fail();
    }
    Value list = value_to_items(x, "x");
    list_push(list.as.list, value_retain(value));
    return list;
}

Value builtin_list_append(BuiltinCall *call) {
    List *list;
    TRY_VALUE(list_to_change(call, &list));
    list_push(list, value_retain(call->arguments[1]));
    return value_retain(call->arguments[0]);
}

Value builtin_push(BuiltinCall *call) {
    List *list;
    TRY_VALUE(list_to_change(call, &list));
    list_push(list, value_retain(call->arguments[1]));
    return value_retain(call->arguments[0]);
}

Value builtin_extend(BuiltinCall *call) {
    List *list;
    TRY_VALUE(list_to_change(call, &list));
    SCOPED_VALUE(items) = value_to_items(call->arguments[1], "values");
    if (items.kind == VALUE_FAIL) return items;
    list_append(list, items.as.list->items, items.as.list->count);
    return value_retain(call->arguments[0]);
}

Value builtin_pop(BuiltinCall *call) {
    List *list;
    int64_t index;
    TRY_VALUE(list_to_change(call, &list));
    if (list->count == 0) return value_failed(fail(STATUS_INDEX, "pop: the list is empty"));
    TRY_VALUE(value_to_index(call->arguments[1], (int64_t)list->count, "a list", &index));
    return list_remove(list, (size_t)index);
}

Value builtin_insert(BuiltinCall *call) {
    Value x = call->arguments[0], item = call->arguments[2];
    if (x.kind == VALUE_DICT) {
        TRY_VALUE(set_entry(x.as.dict, call->arguments[1], item));
        return value_retain(x);
    }
    List *list;
    int64_t index;
    TRY_VALUE(list_to_change(call, &list));
    TRY_VALUE(value_to_int(call->arguments[1], "an index", &index));
    int64_t count = (int64_t)list->count;
    if (index < 0) index += count;
    if (index < 0 || index > count)
        return value_failed(fail(
            STATUS_INDEX, "insert: index %lld is out of range for a list of %lld element%s",
            (long long)call->arguments[1].as.integer, (long long)count, count == 1 ? "" : "s"));
    list_insert(list, (size_t)index, value_retain(item));
    return value_retain(x);
}

static Value remove_entry(Dict *dict, Value index) {
    Value key, removed;
    TRY_VALUE(value_to_key(index, &key));
    if (dict_remove(dict, key, &removed)) return removed;
    dict_fail_missing(dict, key, NULL);
    return value_fail();
}

Value builtin_remove(BuiltinCall *call) {
    Value x = call->arguments[0];
    if (x.kind == VALUE_DICT) return remove_entry(x.as.dict, call->arguments[1]);
    List *list;
    int64_t index;
    TRY_VALUE(list_to_change(call, &list));
    TRY_VALUE(value_to_index(call->arguments[1], (int64_t)list->count, "a list", &index));
    return list_remove(list, (size_t)index);
}

Value builtin_clear(BuiltinCall *call) {
    Value x = call->arguments[0];
    if (x.kind == VALUE_DICT) {
        dict_clear(x.as.dict);
        return value_none();
    }
    List *list;
    TRY_VALUE(list_to_change(call, &list));
    while (list->count) value_release(list_remove(list, list->count - 1));
    return value_none();
}

// --- searching

Value builtin_contains(BuiltinCall *call) {
    bool found;
    TRY_VALUE(value_contains(call->arguments[0], call->arguments[1], &found));
    return value_bool(found);
}

// Code points before byte `at`.
static int64_t codepoints_before(const String *text, size_t at) {
    return (int64_t)utf8_count(text->bytes, at);
}

static const char *find_part(const String *text, size_t from, const String *part) {
    return memmem(text->bytes + from, text->length - from, part->bytes, part->length);
}

static Value index_in_string(const String *text, Value value) {
    const String *part;
    TRY_VALUE(value_to_string(value, "value", &part));
    const char *found = find_part(text, 0, part);
    return value_int(found ? codepoints_before(text, (size_t)(found - text->bytes)) : -1);
}

// How many items are equal to the value, or, `first`, the place of the first of them or -1.
static Value find_equal(Value x, Value value, bool first) {
    SCOPED_VALUE(items) = value_to_items(x, "x");
    if (items.kind == VALUE_FAIL) return items;
    int64_t count = 0;
    for (size_t i = 0; i < items.as.list->count; i++) {
        bool equal = false;
        TRY_VALUE(value_equals(items.as.list->items[i], value, &equal));
        if (equal && first) return value_int((int64_t)i);
        count += equal;
    }
    return value_int(first ? -1 : count);
}

Value builtin_index_of(BuiltinCall *call) {
    Value x = call->arguments[0], value = call->arguments[1];
    return x.kind == VALUE_STRING ? index_in_string(x.as.string, value)
                                  : find_equal(x, value, true);
}

static Value count_in_string(const String *text, Value value) {
    const String *part;
    TRY_VALUE(value_to_string(value, "value", &part));
    if (part->length == 0) return value_int(string_length(text) + 1);
    int64_t count = 0;
    for (size_t at = 0;; count++) {
        const char *found = find_part(text, at, part);
        if (!found) return value_int(count);
        at = (size_t)(found - text->bytes) + part->length;
    }
}

Value builtin_count(BuiltinCall *call) {
    Value x = call->arguments[0], value = call->arguments[1];
    return x.kind == VALUE_STRING ? count_in_string(x.as.string, value)
                                  : find_equal(x, value, false);
}

Value builtin_keys(BuiltinCall *call) {
    return value_to_items(call->arguments[0], "x");
}

Value builtin_values(BuiltinCall *call) {
    const Dict *dict = call->arguments[0].as.dict;
    Value list = value_list(dict_count(dict));
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        list_push(list.as.list, value_retain(item));
    }
    return list;
}

// --- dictionaries, copies

Value builtin_dict_items(BuiltinCall *call) {
    const Dict *dict = call->arguments[0].as.dict;
    Value list = value_list(dict_count(dict));
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item, pair = value_tuple(2);
        dict_entry(dict, i, &key, &item);
        list_push(pair.as.list, value_retain(key));
        list_push(pair.as.list, value_retain(item));
        list_push(list.as.list, pair);
    }
    return list;
}

static void put_entries(Dict *target, const Dict *from) {
    for (size_t i = 0; i < dict_count(from); i++) {
        Value key, item;
        dict_entry(from, i, &key, &item);
        dict_set(target, value_retain(key), value_retain(item));
    }
}

Value builtin_dict_update(BuiltinCall *call) {
    put_entries(call->arguments[0].as.dict, call->arguments[1].as.dict);
    return value_retain(call->arguments[0]);
}

Value builtin_dict_merge(BuiltinCall *call) {
    Value merged = value_dict();
    put_entries(merged.as.dict, call->arguments[0].as.dict);
    put_entries(merged.as.dict, call->arguments[1].as.dict);
    return merged;
}

Value builtin_parts(BuiltinCall *call) {
    Value x = call->arguments[0], dict = value_dict();
    Dict *parts = dict.as.dict;
    if (x.kind == VALUE_DICT) put_entries(parts, x.as.dict);
    if (x.kind == VALUE_LIST || x.kind == VALUE_TUPLE)
        for (size_t i = 0; i < x.as.list->count; i++)
            dict_set(parts, value_int((int64_t)i), value_retain(x.as.list->items[i]));
    if (x.kind != VALUE_STRUCT) return dict;
    for (size_t i = 0; i < x.as.instance->type->field_count; i++)
        dict_set_word(parts, x.as.instance->type->field_names[i],
                      value_retain(x.as.instance->fields[i]));
    return dict;
}

Value builtin_copy(BuiltinCall *call) {
    Value x = call->arguments[0];
    if (x.kind == VALUE_LIST) return value_to_items(x, "copy: x");
    if (x.kind == VALUE_STRUCT || x.kind == VALUE_HANDLE) {
        fail_kind("copy: x", "a list or a dictionary", x);
        return value_fail();
    }
    if (x.kind != VALUE_DICT) return value_retain(x); // nothing can change it
    Value copied = value_dict();
    put_entries(copied.as.dict, x.as.dict);
    return copied;
}
