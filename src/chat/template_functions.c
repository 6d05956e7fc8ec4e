// The functions that a template can call by name.
#include <time.h>

#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "device/foretell.h"

static Status call_range(const TemplateArguments *arguments, Value *out) {
    int64_t bounds[3] = {0, 0, 1};
    size_t count = arguments->count < 3 ? arguments->count : 3;
    for (size_t i = 0; i < count; i++)
        TRY(template_need_int(arguments->items[i], "range", arguments->line,
                              &bounds[count == 1 ? 1 : i]));
    if (bounds[2] == 0) return template_fail_at(arguments, "a step of 0 in", "range");
    *out = value_range(bounds[0], bounds[1], bounds[2]);
    return template_check_size(range_count(out->as.range), TEMPLATE_ITEMS_MAX, arguments->line);
}

// dict(a=1) and namespace(a=1); another dictionary may stand before.
static Status call_dict(const TemplateArguments *arguments, Value *out) {
    *out = value_dict();
    for (size_t i = 0; i < arguments->count; i++) {
        Value item = arguments->items[i], key, member;
        if (arguments->keywords[i])
            dict_set_word(out->as.dict, arguments->keywords[i], value_retain(item));
        for (size_t j = 0;
             item.kind == VALUE_DICT && !arguments->keywords[i] && j < dict_count(item.as.dict);
             j++) {
            dict_entry(item.as.dict, j, &key, &member);
            dict_set(out->as.dict, value_retain(key), value_retain(member));
        }
    }
    return STATUS_OK;
}

static Status call_raise(const TemplateArguments *arguments, Value *out) {
    SCOPED_TEXT(text);
    (void)out;
    template_append(arguments->items[0], &text);
    return fail(STATUS_VALUE, "the chat's template: %s", text_get(&text));
}

// The time now, as C's strftime writes it.
static Status call_time(const TemplateArguments *arguments, Value *out) {
    const String *format = NULL;
    TRY(template_need_string(arguments, 0, &format));
    time_t now = time(NULL);
    foretell_unknown();
    struct tm parts;
    char text[256];
    size_t length =
        localtime_r(&now, &parts) ? strftime(text, sizeof text, format->bytes, &parts) : 0;
    *out = value_string(text, length);
    return STATUS_OK;
}

const TemplateRow template_functions[] = {
    {"range", call_range, 1},           {"namespace", call_dict, 0},    {"dict", call_dict, 0},
    {"raise_exception", call_raise, 1}, {"strftime_now", call_time, 1}, {NULL, NULL, 0}};
