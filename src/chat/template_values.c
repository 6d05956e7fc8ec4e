// Tables of what templates can call. An unknown name is an error where it is used.
#include "chat/template_values.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/object.h"

typedef Status (*TemplateCall)(const TemplateArguments *arguments, Value *out);
typedef struct TemplateRow {
    const char *name;
    TemplateCall call;
    int argument_count_min; // what it is applied to counts
} TemplateRow;

static Status wrong(int line, const char *what, const char *name) {
    return fail(STATUS_FORMAT, "line %d of the template: %s `%s`", line, what, name);
}

static bool is_string(Value value) {
    return value.kind == VALUE_STRING;
}

static Status need_string(const TemplateArguments *arguments, size_t index, const String **out) {
    Value value = index < arguments->count ? arguments->items[index] : value_absent();
    if (!is_string(value))
        return fail(STATUS_FORMAT, "line %d of the template: expected a string, found %s",
                    arguments->line,
                    value.kind == VALUE_ABSENT ? "nothing" : value_text(value).text);
    *out = string_end(value.as.string);
    return STATUS_OK;
}

static Value text_value(Text *text) {
    Value value = value_string(text_get(text), text->length);
    text_free(text);
    return value;
}

// --- strings

static bool in_set(char letter, const String *set) {
    return set ? memchr(set->bytes, letter, set->length) != NULL
               : isspace((unsigned char)letter) != 0;
}

static Status strip(const TemplateArguments *arguments, bool left, bool right, Value *out) {
    const String *text = NULL, *set = NULL;
    TRY(need_string(arguments, 0, &text));
    if (arguments->count > 1) TRY(need_string(arguments, 1, &set));
    size_t begin = 0, end = text->length;
    while (left && begin < end && in_set(text->bytes[begin], set)) begin++;
    while (right && end > begin && in_set(text->bytes[end - 1], set)) end--;
    *out = value_string(text->bytes + begin, end - begin);
    return STATUS_OK;
}

static Status call_strip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, true, true, out);
}

static Status call_lstrip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, true, false, out);
}

static Status call_rstrip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, false, true, out);
}

typedef utf8proc_int32_t (*CodepointMap)(utf8proc_int32_t codepoint);

static bool is_letter(uint32_t codepoint) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

// The first character of all, or of each word, and the others.
static Status change_case(const TemplateArguments *arguments, CodepointMap first, CodepointMap rest,
                          bool words, Value *out) {
    const String *text = NULL;
    TRY(need_string(arguments, 0, &text));
    Text changed = {0};
    bool begins = true;
    for (size_t at = 0; at < text->length;) {
        uint32_t codepoint = 0;
        size_t size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        CodepointMap map = begins ? first : rest;
        if (size > 0)
            text_append_codepoint(&changed, (uint32_t)map((utf8proc_int32_t)codepoint));
        else
            text_append_char(&changed, text->bytes[at]);
        begins = words && !(size > 0 && is_letter(codepoint));
        at += size > 0 ? size : 1;
    }
    *out = text_value(&changed);
    return STATUS_OK;
}

static Status call_upper(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_toupper, false, out);
}

static Status call_lower(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_tolower, utf8proc_tolower, false, out);
}

static Status call_capitalize(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_tolower, false, out);
}

static Status call_title(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_tolower, true, out);
}

static Status call_startswith(const TemplateArguments *arguments, Value *out) {
    const String *text = NULL, *part = NULL;
    TRY(need_string(arguments, 0, &text));
    TRY(need_string(arguments, 1, &part));
    *out = value_bool(text->length >= part->length &&
                      memcmp(text->bytes, part->bytes, part->length) == 0);
    return STATUS_OK;
}

static Status call_endswith(const TemplateArguments *arguments, Value *out) {
    const String *text = NULL, *part = NULL;
    TRY(need_string(arguments, 0, &text));
    TRY(need_string(arguments, 1, &part));
    *out =
        value_bool(text->length >= part->length && memcmp(text->bytes + text->length - part->length,
                                                          part->bytes, part->length) == 0);
    return STATUS_OK;
}

// The first place of a part at or after `at`; NULL when there is none, or the part is empty.
static const char *find_part(const String *text, const char *at, const String *part) {
    const char *end = text->bytes + text->length;
    for (; part->length > 0 && (size_t)(end - at) >= part->length; at++)
        if (memcmp(at, part->bytes, part->length) == 0) return at;
    return NULL;
}

static Status call_replace(const TemplateArguments *arguments, Value *out) {
    const String *text = NULL, *old = NULL, *fresh = NULL;
    TRY(need_string(arguments, 0, &text));
    TRY(need_string(arguments, 1, &old));
    TRY(need_string(arguments, 2, &fresh));
    Text changed = {0};
    Status status = STATUS_OK;
    const char *at = text->bytes, *found;
    while (status == STATUS_OK && (found = find_part(text, at, old))) {
        text_append(&changed, at, (size_t)(found - at));
        text_append(&changed, fresh->bytes, fresh->length);
        at = found + old->length;
        status = template_check_size(changed.length, TEMPLATE_BYTES_MAX, arguments->line);
    }
    text_append(&changed, at, text->length - (size_t)(at - text->bytes));
    *out = text_value(&changed);
    return status;
}

static Status call_split(const TemplateArguments *arguments, Value *out) {
    const String *text = NULL, *separator = NULL;
    TRY(need_string(arguments, 0, &text));
    TRY(need_string(arguments, 1, &separator));
    *out = value_list(4);
    const char *at = text->bytes, *found;
    for (; (found = find_part(text, at, separator)); at = found + separator->length)
        list_push(out->as.list, value_string(at, (size_t)(found - at)));
    list_push(out->as.list, value_string(at, text->length - (size_t)(at - text->bytes)));
    return STATUS_OK;
}

// --- containers

static Status call_length(const TemplateArguments *arguments, Value *out) {
    int64_t length;
    TRY(value_length(arguments->items[0], &length));
    *out = value_int(length);
    return STATUS_OK;
}

static Status call_join(const TemplateArguments *arguments, Value *out) {
    Value list = value_to_items(arguments->items[0], "what join joins");
    if (list.kind == VALUE_FAIL) return error_current()->code;
    Text text = {0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < list.as.list->count && status == STATUS_OK; i++) {
        if (i > 0 && arguments->count > 1) template_append(arguments->items[1], &text);
        template_append(list.as.list->items[i], &text);
        status = template_check_size(text.length, TEMPLATE_BYTES_MAX, arguments->line);
    }
    value_release(list);
    *out = text_value(&text);
    return status;
}

static Status call_list(const TemplateArguments *arguments, Value *out) {
    *out = value_to_items(arguments->items[0], "what list lists");
    return out->kind == VALUE_FAIL ? error_current()->code : STATUS_OK;
}

static Status element(const TemplateArguments *arguments, bool last, Value *out) {
    Value list;
    TRY(call_list(arguments, &list));
    size_t count = list.as.list->count;
    *out = count > 0 ? value_retain(list.as.list->items[last ? count - 1 : 0]) : value_absent();
    value_release(list);
    return STATUS_OK;
}

static Status call_first(const TemplateArguments *arguments, Value *out) {
    return element(arguments, false, out);
}

static Status call_last(const TemplateArguments *arguments, Value *out) {
    return element(arguments, true, out);
}

static Status call_default(const TemplateArguments *arguments, Value *out) {
    bool by_truth = arguments->count > 2 && template_truth(arguments->items[2]);
    Value value = arguments->items[0];
    bool kept = by_truth ? template_truth(value) : value.kind != VALUE_ABSENT;
    *out = value_retain(kept ? value : arguments->items[1]);
    return STATUS_OK;
}

static Status call_string(const TemplateArguments *arguments, Value *out) {
    Text text = {0};
    template_append(arguments->items[0], &text);
    *out = text_value(&text);
    return STATUS_OK;
}

static Status call_int(const TemplateArguments *arguments, Value *out) {
    Value value = arguments->items[0];
    char *end = NULL;
    if (is_string(value)) {
        int64_t number = strtoll(string_end(value.as.string)->bytes, &end, 10);
        *out = value_int(*end ? 0 : number);
        return STATUS_OK;
    }
    int64_t number;
    TRY(value_to_int(value, "int", &number));
    *out = value_int(number);
    return STATUS_OK;
}

// As Python's json.dumps writes it. {value, spaces to indent by}
static Status call_tojson(const TemplateArguments *arguments, Value *out) {
    bool indents = arguments->count > 1 && arguments->items[1].kind == VALUE_INT;
    BuiltinCall call = {
        .arguments = {arguments->items[0], indents ? arguments->items[1] : value_int(0)}};
    *out = builtin_to_json(&call);
    return out->kind == VALUE_FAIL ? error_current()->code : STATUS_OK;
}

// {items, name of a field[, "equalto", value]}: the items whose field is so, or is true.
static Status select_items(const TemplateArguments *arguments, bool wanted, Value *out) {
    const String *name = NULL;
    Value items;
    TRY(need_string(arguments, 1, &name));
    TRY(call_list(arguments, &items));
    *out = value_list(4);
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++) {
        Value item = items.as.list->items[i], truth;
        Value member = template_member(item, name->bytes);
        truth = value_bool(template_truth(member));
        if (arguments->count > 3)
            status = template_operator("==", member, arguments->items[3], arguments->line, &truth);
        if (status == STATUS_OK && template_truth(truth) == wanted)
            list_push(out->as.list, value_retain(item));
    }
    value_release(items);
    return status;
}

static Status call_selectattr(const TemplateArguments *arguments, Value *out) {
    return select_items(arguments, true, out);
}

static Status call_rejectattr(const TemplateArguments *arguments, Value *out) {
    return select_items(arguments, false, out);
}

// Rows of a dictionary: keys, items, or pairs of them.
typedef enum DictPart { DICT_KEYS, DICT_VALUES, DICT_ITEMS } DictPart;

static Status dict_parts(const TemplateArguments *arguments, DictPart part, Value *out) {
    Value dict = arguments->items[0];
    if (dict.kind != VALUE_DICT)
        return fail(STATUS_FORMAT, "line %d of the template: expected a dictionary, found %s",
                    arguments->line, value_text(dict).text);
    *out = value_list(dict_count(dict.as.dict));
    for (size_t i = 0; i < dict_count(dict.as.dict); i++) {
        Value key, item;
        dict_entry(dict.as.dict, i, &key, &item);
        Value row = value_retain(part == DICT_KEYS ? key : item);
        if (part == DICT_ITEMS) {
            Value pair = value_tuple(2);
            list_push(pair.as.list, value_retain(key));
            list_push(pair.as.list, row);
            row = pair;
        }
        list_push(out->as.list, row);
    }
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

static Status call_get(const TemplateArguments *arguments, Value *out) {
    Value dict = arguments->items[0], found = value_absent();
    if (dict.kind == VALUE_DICT && is_string(arguments->items[1]))
        found = dict_get(dict.as.dict, arguments->items[1]);
    if (found.kind == VALUE_ABSENT)
        found = arguments->count > 2 ? arguments->items[2] : value_none();
    *out = value_retain(found);
    return STATUS_OK;
}

// --- functions

static Status call_range(const TemplateArguments *arguments, Value *out) {
    int64_t bounds[3] = {0, 0, 1};
    size_t count = arguments->count < 3 ? arguments->count : 3;
    for (size_t i = 0; i < count; i++)
        TRY(value_to_int(arguments->items[i], "range", &bounds[count == 1 ? 1 : i]));
    if (bounds[2] == 0) return wrong(arguments->line, "a step of 0 in", "range");
    *out = value_range(bounds[0], bounds[1], bounds[2]);
    return template_check_size(range_count(out->as.range), TEMPLATE_ITEMS_MAX, arguments->line);
}

static Status call_namespace(const TemplateArguments *arguments, Value *out) {
    *out = value_dict();
    for (size_t i = 0; i < arguments->count; i++)
        if (arguments->keywords[i])
            dict_set_word(out->as.dict, arguments->keywords[i], value_retain(arguments->items[i]));
    return STATUS_OK;
}

static Status call_raise(const TemplateArguments *arguments, Value *out) {
    Text text = {0};
    (void)out;
    template_append(arguments->items[0], &text);
    Status status = fail(STATUS_VALUE, "the chat's template: %s", text_get(&text));
    text_free(&text);
    return status;
}

// The time now, as C's strftime writes it.
static Status call_time(const TemplateArguments *arguments, Value *out) {
    const String *format = NULL;
    TRY(need_string(arguments, 0, &format));
    time_t now = time(NULL);
    struct tm parts;
    char text[256];
    size_t length =
        localtime_r(&now, &parts) ? strftime(text, sizeof text, format->bytes, &parts) : 0;
    *out = value_string(text, length);
    return STATUS_OK;
}

// --- tests

static Status test_defined(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind != VALUE_ABSENT);
    return STATUS_OK;
}

static Status test_undefined(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind == VALUE_ABSENT);
    return STATUS_OK;
}

static Status test_none(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind == VALUE_NONE);
    return STATUS_OK;
}

static Status test_string(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(is_string(arguments->items[0]));
    return STATUS_OK;
}

static Status test_mapping(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind == VALUE_DICT);
    return STATUS_OK;
}

static Status test_iterable(const TemplateArguments *arguments, Value *out) {
    uint64_t kind = arguments->items[0].kind;
    *out = value_bool(kind == VALUE_STRING || kind == VALUE_LIST || kind == VALUE_TUPLE ||
                      kind == VALUE_DICT || kind == VALUE_RANGE);
    return STATUS_OK;
}

static Status test_number(const TemplateArguments *arguments, Value *out) {
    uint64_t kind = arguments->items[0].kind;
    *out = value_bool(kind == VALUE_INT || kind == VALUE_FLOAT);
    return STATUS_OK;
}

static Status test_true(const TemplateArguments *arguments, Value *out) {
    Value value = arguments->items[0];
    *out = value_bool(value.kind == VALUE_BOOL && value.as.integer != 0);
    return STATUS_OK;
}

static Status test_false(const TemplateArguments *arguments, Value *out) {
    Value value = arguments->items[0];
    *out = value_bool(value.kind == VALUE_BOOL && value.as.integer == 0);
    return STATUS_OK;
}

static Status test_odd(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind == VALUE_INT &&
                      arguments->items[0].as.integer % 2 != 0);
    return STATUS_OK;
}

static Status test_even(const TemplateArguments *arguments, Value *out) {
    *out = value_bool(arguments->items[0].kind == VALUE_INT &&
                      arguments->items[0].as.integer % 2 == 0);
    return STATUS_OK;
}

// --- tables

static const TemplateRow filters[] = {
    {"trim", call_strip, 1},
    {"upper", call_upper, 1},
    {"lower", call_lower, 1},
    {"title", call_title, 1},
    {"replace", call_replace, 3},
    {"capitalize", call_capitalize, 1},
    {"length", call_length, 1},
    {"count", call_length, 1},
    {"join", call_join, 1},
    {"default", call_default, 2},
    {"d", call_default, 2},
    {"first", call_first, 1},
    {"last", call_last, 1},
    {"list", call_list, 1},
    {"string", call_string, 1},
    {"safe", call_string, 1},
    {"int", call_int, 1},
    {"items", call_items, 1},
    {"tojson", call_tojson, 1},
    {"selectattr", call_selectattr, 2},
    {"rejectattr", call_rejectattr, 2},
    {NULL, NULL, 0},
};
static const TemplateRow methods[] = {
    {"strip", call_strip, 1},       {"lstrip", call_lstrip, 1},
    {"rstrip", call_rstrip, 1},     {"startswith", call_startswith, 2},
    {"upper", call_upper, 1},       {"lower", call_lower, 1},
    {"endswith", call_endswith, 2}, {"title", call_title, 1},
    {"split", call_split, 2},       {"capitalize", call_capitalize, 1},
    {"keys", call_keys, 1},         {"values", call_values, 1},
    {"replace", call_replace, 3},   {"items", call_items, 1},
    {"get", call_get, 2},           {NULL, NULL, 0},
};
static const TemplateRow functions[] = {{"range", call_range, 1},
                                        {"namespace", call_namespace, 0},
                                        {"raise_exception", call_raise, 1},
                                        {"strftime_now", call_time, 1},
                                        {NULL, NULL, 0}};
static const TemplateRow tests[] = {
    {"defined", test_defined, 1},
    {"undefined", test_undefined, 1},
    {"none", test_none, 1},
    {"string", test_string, 1},
    {"mapping", test_mapping, 1},
    {"iterable", test_iterable, 1},
    {"sequence", test_iterable, 1},
    {"number", test_number, 1},
    {"true", test_true, 1},
    {"false", test_false, 1},
    {"odd", test_odd, 1},
    {"even", test_even, 1},
    {NULL, NULL, 0},
};

static Status call_row(const TemplateRow *rows, const char *what, const char *name,
                       const TemplateArguments *arguments, Value *out) {
    *out = value_absent();
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return (int)arguments->count < rows->argument_count_min
                       ? wrong(arguments->line, "too few arguments for", name)
                       : rows->call(arguments, out);
    return wrong(arguments->line, what, name);
}

Status template_filter(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(filters, "tl knows no filter", name, arguments, out);
}

Status template_test(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(tests, "tl knows no test", name, arguments, out);
}

Status template_method(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(methods, "tl knows no method", name, arguments, out);
}

Status template_function(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(functions, "tl knows no function", name, arguments, out);
}
