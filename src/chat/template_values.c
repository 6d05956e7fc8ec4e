// Finds what a template calls, and reads arguments. An unknown name is an error where it is used.
#include "chat/template_values.h"

#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "value/items.h"
#include "value/print.h"

Status template_fail_at(const TemplateArguments *arguments, const char *what, const char *name) {
    return fail(STATUS_FORMAT, "line %d of the template: %s `%s`", arguments->line, what, name);
}

Value template_argument(const TemplateArguments *arguments, size_t position, const char *keyword) {
    for (size_t i = 0; i < arguments->count; i++) {
        const char *given = arguments->keywords[i];
        if (given ? keyword && strcmp(given, keyword) == 0 : i == position)
            return arguments->items[i];
    }
    return value_absent();
}

Status template_need_string(const TemplateArguments *arguments, size_t index, const String **out) {
    Value value = template_argument(arguments, index, NULL);
    if (value.kind != VALUE_STRING)
        return fail(STATUS_FORMAT, "line %d of the template: expected a string, found %s",
                    arguments->line,
                    value.kind == VALUE_ABSENT ? "nothing" : value_text(value).text);
    *out = string_end(value.as.string);
    return STATUS_OK;
}

Status template_need_int(Value value, const char *what, int line, int64_t *out) {
    if (value.kind != VALUE_INT && value.kind != VALUE_BOOL)
        return fail(STATUS_FORMAT, "line %d of the template: `%s` takes an integer, found %s", line,
                    what, value.kind == VALUE_ABSENT ? "nothing" : value_text(value).text);
    *out = value.as.integer;
    return STATUS_OK;
}

Value template_take_text(Text *text) {
    Value value = value_string(text_get(text), text->length);
    text_free(text);
    return value;
}

const String *template_text_of(Value value) {
    if (value.kind == VALUE_STRING) return string_end(value.as.string);
    Text text = {0};
    template_append(value, &text);
    return template_take_text(&text).as.string;
}

Status template_count_items(size_t *steps, int line, size_t count) {
    enum { STEP_ITEMS = 16 };
    ASSERT(steps != NULL);
    *steps += count / STEP_ITEMS;
    if (*steps <= TEMPLATE_STEPS_MAX) return STATUS_OK;
    return fail(STATUS_FORMAT, "line %d of the template: this takes too long", line);
}

Status template_items(size_t *steps, int line, Value value, const char *what, Value *out) {
    Value items = value_to_items(value, what);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    ASSERT(items.kind == VALUE_LIST || items.kind == VALUE_TUPLE);
    Status status = template_count_items(steps, line, items.as.list->count);
    if (status == STATUS_OK)
        *out = items;
    else
        value_release(items);
    return status;
}

Status template_items_of(const TemplateArguments *arguments, Value *out) {
    Value value = arguments->items[0];
    if (value.kind == VALUE_NONE)
        return fail(STATUS_FORMAT, "line %d of the template: none has no items", arguments->line);
    if (value.kind == VALUE_ABSENT)
        *out = value_list(1);
    else
        TRY(template_items(arguments->steps, arguments->line, value, "what is listed", out));
    return STATUS_OK;
}

static const TemplateRow *find_row(const TemplateRow *const *tables, const char *name) {
    for (; *tables; tables++)
        for (const TemplateRow *row = *tables; row->name; row++)
            if (strcmp(row->name, name) == 0) return row;
    return NULL;
}

static Status call_row(const TemplateRow *const *tables, const char *what, const char *name,
                       const TemplateArguments *arguments, Value *out) {
    *out = value_absent();
    const TemplateRow *row = find_row(tables, name);
    if (!row) return template_fail_at(arguments, what, name);
    if ((int)arguments->count < row->argument_count_min)
        return template_fail_at(arguments, "too few arguments for", name);
    return row->call(arguments, out);
}

static const TemplateRow *const filters[] = {template_text_filters, template_list_filters,
                                             template_number_filters, NULL};
static const TemplateRow *const tests[] = {template_tests, NULL};
static const TemplateRow *const text_methods[] = {template_text_methods, NULL};
static const TemplateRow *const list_methods[] = {template_list_methods, NULL};
static const TemplateRow *const functions[] = {template_functions, NULL};

Status template_filter(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(filters, "tl knows no filter", name, arguments, out);
}

Status template_test(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(tests, "tl knows no test", name, arguments, out);
}

Status template_method(const char *name, const TemplateArguments *arguments, Value *out) {
    uint64_t kind = arguments->items[0].kind;
    bool listed = kind == VALUE_LIST || kind == VALUE_TUPLE || kind == VALUE_DICT;
    if (!listed && kind != VALUE_STRING)
        return fail(STATUS_FORMAT, "line %d of the template: %s has no method `%s`",
                    arguments->line,
                    kind == VALUE_ABSENT ? "nothing" : value_text(arguments->items[0]).text, name);
    return call_row(listed ? list_methods : text_methods, "tl knows no method", name, arguments,
                    out);
}

Status template_function(const char *name, const TemplateArguments *arguments, Value *out) {
    return call_row(functions, "tl knows no function", name, arguments, out);
}

bool template_has_function(const char *name) {
    return find_row(functions, name) != NULL;
}
