// Filters and methods of lists, tuples and dictionaries, and of whatever else can be looped over.
#include <stdlib.h>
#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "eval/access.h"
#include "value/items.h"
#include "value/print.h"

// --- attributes: "role", "function.name", 0

static Value step_into(Value object, const char *word, size_t length) {
    SCOPED_TEXT(name);
    text_append(&name, word, length);
    Value found = template_member(object, text_get(&name));
    bool listed = object.kind == VALUE_LIST || object.kind == VALUE_TUPLE;
    char *end;
    int64_t index = strtoll(text_get(&name), &end, 10);
    if (listed && length > 0 && !*end && index >= 0 && index < (int64_t)object.as.list->count)
        found = object.as.list->items[index];
    return found;
}

// Borrowed; undefined where a part of the path is not there.
static Value attribute_of(Value object, Value path) {
    if (path.kind == VALUE_INT) {
        bool listed = object.kind == VALUE_LIST || object.kind == VALUE_TUPLE;
        return listed && path.as.integer >= 0 && path.as.integer < (int64_t)object.as.list->count
                   ? object.as.list->items[path.as.integer]
                   : value_absent();
    }
    if (path.kind != VALUE_STRING) return object;
    const String *text = string_end(path.as.string);
    for (const char *at = text->bytes;; at++) {
        size_t length = strcspn(at, ".");
        object = step_into(object, at, length);
        at += length;
        if (*at != '.') return object;
    }
}

// --- the items themselves

static Status call_length(const TemplateArguments *arguments, Value *out) {
    int64_t length = 0;
    if (arguments->items[0].kind != VALUE_ABSENT) TRY(value_length(arguments->items[0], &length));
    *out = value_int(length);
    return STATUS_OK;
}

static Status call_list(const TemplateArguments *arguments, Value *out) {
    return template_items_of(arguments, out);
}

// {items, separator, attribute}
static Status call_join(const TemplateArguments *arguments, Value *out) {
    Value list, separator = template_argument(arguments, 1, "d");
    Value attribute = template_argument(arguments, 2, "attribute");
    TRY(template_items_of(arguments, &list));
    Text text = {0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < list.as.list->count && status == STATUS_OK; i++) {
        if (i > 0) template_append(separator, &text);
        template_append(attribute_of(list.as.list->items[i], attribute), &text);
        status = template_check_size(text.length, TEMPLATE_BYTES_MAX, arguments->line);
    }
    value_release(list);
    *out = template_take_text(&text);
    return status;
}

static Status end_item(const TemplateArguments *arguments, bool last, Value *out) {
    Value list;
    TRY(template_items_of(arguments, &list));
    size_t count = list.as.list->count;
    *out = count > 0 ? value_retain(list.as.list->items[last ? count - 1 : 0]) : value_absent();
    value_release(list);
    return STATUS_OK;
}

static Status call_first(const TemplateArguments *arguments, Value *out) {
    return end_item(arguments, false, out);
}

static Status call_last(const TemplateArguments *arguments, Value *out) {
    return end_item(arguments, true, out);
}

static Status call_default(const TemplateArguments *arguments, Value *out) {
    bool any_false = template_is_true(template_argument(arguments, 2, "boolean"));
    Value value = arguments->items[0], fallback = template_argument(arguments, 1, "default_value");
    bool kept = any_false ? template_is_true(value) : value.kind != VALUE_ABSENT;
    *out = kept                            ? value_retain(value)
           : fallback.kind == VALUE_ABSENT ? value_string("", 0)
                                           : value_retain(fallback);
    return STATUS_OK;
}

static Status call_reverse(const TemplateArguments *arguments, Value *out) {
    Value list;
    TRY(template_items_of(arguments, &list));
    bool text = arguments->items[0].kind == VALUE_STRING;
    Value turned = value_list(list.as.list->count);
    for (size_t i = list.as.list->count; i-- > 0;)
        list_push(turned.as.list, value_retain(list.as.list->items[i]));
    value_release(list);
    *out = turned;
    if (!text) return STATUS_OK;
    TemplateArguments joined = {
        .items = {turned}, .count = 1, .line = arguments->line, .steps = arguments->steps};
    Status status = call_join(&joined, out);
    value_release(turned);
    return status;
}

// --- order

// Without regard to case, unless told.
static Value sort_key(Value item, Value attribute, bool cased) {
    Value key = attribute_of(item, attribute), lowered;
    if (cased || key.kind != VALUE_STRING) return key;
    TemplateArguments arguments = {.items = {key}, .count = 1};
    return template_filter("lower", &arguments, &lowered) == STATUS_OK ? lowered : key;
}

static Status compare_items(const TemplateArguments *arguments, Value a, Value b, int *order) {
    Value attribute = template_argument(arguments, 3, "attribute");
    bool cased = template_is_true(template_argument(arguments, 2, "case_sensitive"));
    return value_compare(sort_key(a, attribute, cased), sort_key(b, attribute, cased), order);
}

// By insertion: equal items keep their order, and lists of templates are short.
static Status sort_items(const TemplateArguments *arguments, List *list) {
    bool reverse = template_is_true(template_argument(arguments, 1, "reverse"));
    TRY(template_check_size(list->count, 2000, arguments->line));
    TRY(template_count_items(arguments->steps, arguments->line, list->count * list->count));
    for (size_t i = 1; i < list->count; i++)
        for (size_t at = i; at > 0; at--) {
            int order = 0;
            TRY(compare_items(arguments, list->items[at - 1], list->items[at], &order));
            if (reverse ? order >= 0 : order <= 0) break;
            Value other = list->items[at];
            list->items[at] = list->items[at - 1];
            list->items[at - 1] = other;
        }
    return STATUS_OK;
}

// {items, reverse, case_sensitive, attribute}
static Status call_sort(const TemplateArguments *arguments, Value *out) {
    TRY(template_items_of(arguments, out));
    return sort_items(arguments, out->as.list);
}

static Status call_unique(const TemplateArguments *arguments, Value *out) {
    Value list, attribute = template_argument(arguments, 2, "attribute");
    bool cased = template_is_true(template_argument(arguments, 1, "case_sensitive"));
    TRY(template_items_of(arguments, &list));
    *out = value_list(4);
    SCOPED_VALUE(keys) = value_list(4);
    size_t count = list.as.list->count;
    Status status = template_check_size(count, 2000, arguments->line);
    if (status == STATUS_OK)
        status = template_count_items(arguments->steps, arguments->line, count * count);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Value key = sort_key(list.as.list->items[i], attribute, cased);
        bool seen = false;
        status = value_contains(keys, key, &seen);
        if (status != STATUS_OK || seen) continue;
        list_push(keys.as.list, value_retain(key));
        list_push(out->as.list, value_retain(list.as.list->items[i]));
    }
    value_release(list);
    return status;
}

static Status extreme(const TemplateArguments *arguments, int wanted, Value *out) {
    Value list, attribute = template_argument(arguments, 2, "attribute");
    bool cased = template_is_true(template_argument(arguments, 1, "case_sensitive"));
    TRY(template_items_of(arguments, &list));
    Value best = value_absent();
    Status status = STATUS_OK;
    for (size_t i = 0; i < list.as.list->count && status == STATUS_OK; i++) {
        int order = wanted;
        if (i > 0)
            status = value_compare(sort_key(list.as.list->items[i], attribute, cased),
                                   sort_key(best, attribute, cased), &order);
        if (order * wanted > 0) best = list.as.list->items[i];
    }
    *out = value_retain(best);
    value_release(list);
    return status;
}

static Status call_min(const TemplateArguments *arguments, Value *out) {
    return extreme(arguments, -1, out);
}

static Status call_max(const TemplateArguments *arguments, Value *out) {
    return extreme(arguments, 1, out);
}

// {items, attribute, start}
static Status call_sum(const TemplateArguments *arguments, Value *out) {
    Value list, start = template_argument(arguments, 2, "start");
    Value attribute = template_argument(arguments, 1, "attribute");
    TRY(template_items_of(arguments, &list));
    Value sum = start.kind == VALUE_ABSENT ? value_int(0) : value_retain(start);
    Status status = STATUS_OK;
    for (size_t i = 0; i < list.as.list->count && status == STATUS_OK; i++) {
        Value more = value_absent();
        status = template_operator("+", sum, attribute_of(list.as.list->items[i], attribute),
                                   arguments->line, &more);
        value_release(sum);
        sum = more;
    }
    *out = sum;
    value_release(list);
    return status;
}

// --- choosing and changing

// What is tested: {item, what stands behind the test's name}.
static Status passes(const TemplateArguments *arguments, size_t name_at, Value tested, bool *out) {
    Value name = template_argument(arguments, name_at, NULL), answer;
    *out = template_is_true(tested);
    if (name.kind == VALUE_ABSENT) return STATUS_OK;
    const String *test = NULL;
    TRY(template_need_string(arguments, name_at, &test));
    TemplateArguments inner = {
        .items = {tested}, .count = 1, .line = arguments->line, .steps = arguments->steps};
    for (size_t i = name_at + 1; i < arguments->count; i++)
        inner.items[inner.count++] = arguments->items[i];
    TRY(template_test(test->bytes, &inner, &answer));
    *out = template_is_true(answer);
    return STATUS_OK;
}

// What is chosen from or mapped: whatever is false, none too, has no items.
static Status loose_items(const TemplateArguments *arguments, Value *out) {
    if (template_is_true(arguments->items[0])) return template_items_of(arguments, out);
    *out = value_list(1);
    return STATUS_OK;
}

// {items[, attribute][, test, its arguments]}
static Status choose(const TemplateArguments *arguments, bool by_attribute, bool wanted,
                     Value *out) {
    Value items;
    TRY(loose_items(arguments, &items));
    *out = value_list(4);
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++) {
        Value item = items.as.list->items[i];
        Value tested = by_attribute ? attribute_of(item, arguments->items[1]) : item;
        bool passed = false;
        status = passes(arguments, by_attribute ? 2 : 1, tested, &passed);
        if (status == STATUS_OK && passed == wanted) list_push(out->as.list, value_retain(item));
    }
    value_release(items);
    return status;
}

static Status call_select(const TemplateArguments *arguments, Value *out) {
    return choose(arguments, false, true, out);
}

static Status call_reject(const TemplateArguments *arguments, Value *out) {
    return choose(arguments, false, false, out);
}

static Status call_selectattr(const TemplateArguments *arguments, Value *out) {
    return choose(arguments, true, true, out);
}

static Status call_rejectattr(const TemplateArguments *arguments, Value *out) {
    return choose(arguments, true, false, out);
}

static Status map_one(const TemplateArguments *arguments, Value item, Value *out) {
    Value attribute = template_argument(arguments, TEMPLATE_ARGUMENTS_MAX, "attribute");
    Value fallback = template_argument(arguments, TEMPLATE_ARGUMENTS_MAX, "default");
    if (attribute.kind != VALUE_ABSENT) {
        Value found = attribute_of(item, attribute);
        *out = value_retain(found.kind == VALUE_ABSENT ? fallback : found);
        return STATUS_OK;
    }
    const String *filter = NULL;
    TRY(template_need_string(arguments, 1, &filter));
    TemplateArguments inner = {
        .items = {item}, .count = 1, .line = arguments->line, .steps = arguments->steps};
    for (size_t i = 2; i < arguments->count; i++, inner.count++) {
        inner.items[inner.count] = arguments->items[i];
        inner.keywords[inner.count] = arguments->keywords[i];
    }
    return template_filter(filter->bytes, &inner, out);
}

// {items, filter, its arguments}, or with attribute: a member of each
static Status call_map(const TemplateArguments *arguments, Value *out) {
    Value items;
    TRY(loose_items(arguments, &items));
    *out = value_list(items.as.list->count);
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++) {
        Value mapped = value_absent();
        status = map_one(arguments, items.as.list->items[i], &mapped);
        if (status == STATUS_OK)
            list_push(out->as.list, mapped);
        else
            value_release(mapped);
    }
    value_release(items);
    return status;
}

// --- dictionaries

// Rows of a dictionary: keys, items, or pairs of them.
typedef enum DictPart { DICT_KEYS, DICT_VALUES, DICT_ITEMS } DictPart;

static Value dict_row(const Dict *dict, size_t index, DictPart part) {
    Value key, item;
    dict_entry(dict, index, &key, &item);
    if (part != DICT_ITEMS) return value_retain(part == DICT_KEYS ? key : item);
    Value pair = value_tuple(2);
    list_push(pair.as.list, value_retain(key));
    list_push(pair.as.list, value_retain(item));
    return pair;
}

static Status dict_parts(const TemplateArguments *arguments, DictPart part, Value *out) {
    Value dict = arguments->items[0];
    if (dict.kind != VALUE_DICT)
        return fail(STATUS_FORMAT, "line %d of the template: expected a dictionary, found %s",
                    arguments->line, value_text(dict).text);
    *out = value_list(dict_count(dict.as.dict));
    for (size_t i = 0; i < dict_count(dict.as.dict); i++)
        list_push(out->as.list, dict_row(dict.as.dict, i, part));
    return STATUS_OK;
}

static Status call_keys(const TemplateArguments *arguments, Value *out) {
    return dict_parts(arguments, DICT_KEYS, out);
}

static Status call_values(const TemplateArguments *arguments, Value *out) {
    return dict_parts(arguments, DICT_VALUES, out);
}

static Status call_items(const TemplateArguments *arguments, Value *out) {
    return dict_parts(arguments, DICT_ITEMS, out);
}

// The filter finds no items in what is undefined.
static Status filter_items(const TemplateArguments *arguments, Value *out) {
    if (arguments->items[0].kind != VALUE_ABSENT) return call_items(arguments, out);
    *out = value_list(1);
    return STATUS_OK;
}

// {dictionary, case_sensitive, by: "key" or "value", reverse}: its pairs in order
static Status call_dictsort(const TemplateArguments *arguments, Value *out) {
    Value by = template_argument(arguments, 2, "by");
    bool values = by.kind == VALUE_STRING && strcmp(string_end(by.as.string)->bytes, "value") == 0;
    TemplateArguments order = {.items = {value_none(), template_argument(arguments, 3, "reverse"),
                                         template_argument(arguments, 1, "case_sensitive"),
                                         value_int(values)},
                               .count = 4,
                               .line = arguments->line,
                               .steps = arguments->steps};
    TRY(call_items(arguments, out));
    return sort_items(&order, out->as.list);
}

static Status call_get(const TemplateArguments *arguments, Value *out) {
    Value dict = arguments->items[0], found = value_absent(), key;
    if (dict.kind != VALUE_DICT) return template_fail_at(arguments, "tl knows no method", "get");
    if (value_to_key(arguments->items[1], &key) == STATUS_OK) found = dict_get(dict.as.dict, key);
    if (found.kind == VALUE_ABSENT)
        found = arguments->count > 2 ? arguments->items[2] : value_none();
    *out = value_retain(found);
    return STATUS_OK;
}

static Status call_count(const TemplateArguments *arguments, Value *out) {
    Value list = arguments->items[0];
    if (list.kind == VALUE_DICT) return template_fail_at(arguments, "tl knows no method", "count");
    int64_t count = 0;
    for (size_t i = 0; i < list.as.list->count; i++) {
        Value equal;
        TRY(template_operator("==", list.as.list->items[i], arguments->items[1], arguments->line,
                              &equal));
        count += template_is_true(equal);
    }
    *out = value_int(count);
    return STATUS_OK;
}

// loop.cycle("odd", "even")
static Status call_cycle(const TemplateArguments *arguments, Value *out) {
    Value index = template_member(arguments->items[0], "index0");
    if (index.kind != VALUE_INT) return template_fail_at(arguments, "tl knows no method", "cycle");
    *out = value_retain(arguments->items[1 + (size_t)index.as.integer % (arguments->count - 1)]);
    return STATUS_OK;
}

const TemplateRow template_list_filters[] = {
    {"length", call_length, 1},
    {"count", call_length, 1},
    {"join", call_join, 1},
    {"list", call_list, 1},
    {"first", call_first, 1},
    {"last", call_last, 1},
    {"default", call_default, 1},
    {"d", call_default, 1},
    {"reverse", call_reverse, 1},
    {"sort", call_sort, 1},
    {"unique", call_unique, 1},
    {"min", call_min, 1},
    {"max", call_max, 1},
    {"sum", call_sum, 1},
    {"select", call_select, 1},
    {"reject", call_reject, 1},
    {"selectattr", call_selectattr, 2},
    {"rejectattr", call_rejectattr, 2},
    {"map", call_map, 2},
    {"items", filter_items, 1},
    {"dictsort", call_dictsort, 1},
    {"tojson", template_call_tojson, 1},
    {NULL, NULL, 0},
};
const TemplateRow template_list_methods[] = {
    {"keys", call_keys, 1}, {"values", call_values, 1}, {"items", call_items, 1},
    {"get", call_get, 2},   {"count", call_count, 2},   {"cycle", call_cycle, 2},
    {NULL, NULL, 0},
};
