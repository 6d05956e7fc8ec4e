// The tables of what templates can call; each file has the rows of its area.
#ifndef CHAT_TEMPLATE_CALLS_H
#define CHAT_TEMPLATE_CALLS_H

#include "chat/template_values.h"

typedef struct TemplateRow {
    const char *name;
    Status (*call)(const TemplateArguments *arguments, Value *out);
    int argument_count_min; // what it is applied to counts
} TemplateRow;

// Each ends with a row without a name.
extern const TemplateRow template_text_filters[], template_text_methods[]; // template_text.c
extern const TemplateRow template_list_filters[], template_list_methods[]; // template_lists.c
extern const TemplateRow template_number_filters[];                        // template_numbers.c
extern const TemplateRow template_tests[];                                 // template_tests.c
extern const TemplateRow template_functions[];                             // template_functions.c

Status template_call_tojson(const TemplateArguments *arguments, Value *out); // template_json.c
// template_format.c: text % values, the filter of it, and the method.
Status template_format_percent(const String *text, Value values, int line, Value *out) MUST_USE;
Status template_call_percents(const TemplateArguments *arguments, Value *out);
Status template_call_format(const TemplateArguments *arguments, Value *out);

Status template_fail_at(const TemplateArguments *arguments, const char *what, const char *name);
// A string that an argument must be.
Status template_need_string(const TemplateArguments *arguments, size_t index,
                            const String **out) MUST_USE;
Status template_need_int(Value value, const char *what, int line, int64_t *out) MUST_USE;
// The text of a value as Python's str gives it: filters of texts take anything.
const String *template_text_of(Value value);
Value template_take_text(Text *text); // the text as a value; frees it
// Adds the work of going through so many items. Fails when a template goes on for too long.
Status template_count_items(size_t *steps, int line, size_t count) MUST_USE;
// The items of a value, counted.
Status template_items(size_t *steps, int line, Value value, const char *what, Value *out) MUST_USE;
// The items of what can be looped over, as a list of its own; none of what is undefined.
Status template_items_of(const TemplateArguments *arguments, Value *out) MUST_USE;

#endif
