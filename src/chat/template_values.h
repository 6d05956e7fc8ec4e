// What the expressions of templates compute: operators, filters, tests, methods and functions on
// values. Knows no tree.
#ifndef CHAT_TEMPLATE_VALUES_H
#define CHAT_TEMPLATE_VALUES_H

#include "value/value.h"

enum { TEMPLATE_ARGUMENTS_MAX = 16 };
// A file's template may not take all memory or time.
enum {
    TEMPLATE_BYTES_MAX = 16 << 20,
    TEMPLATE_ITEMS_MAX = 100000,
    TEMPLATE_STEPS_MAX = 1000000,
};

// Borrowed values; positional ones first, then those with keywords.
typedef struct TemplateArguments {
    Value items[TEMPLATE_ARGUMENTS_MAX];
    const char *keywords[TEMPLATE_ARGUMENTS_MAX]; // NULL: positional
    size_t count;
    int line;
    size_t *steps; // a measure of the work done, which that of the call is added to
} TemplateArguments;

// The argument at a position or with a keyword (NULL: it has none); undefined when it is not given.
Value template_argument(const TemplateArguments *arguments, size_t position, const char *keyword);
Status template_filter(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_test(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_method(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_function(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
bool template_has_function(const char *name);

#endif
