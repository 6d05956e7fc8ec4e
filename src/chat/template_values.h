// What the expressions of templates compute: operators, filters, tests, methods and functions on
// values. Knows no tree.
#ifndef CHAT_TEMPLATE_VALUES_H
#define CHAT_TEMPLATE_VALUES_H

#include "value/value.h"

enum { TEMPLATE_ARGUMENTS_MAX = 16 };
// A file's template may not take all memory or time.
enum { TEMPLATE_BYTES_MAX = 16 << 20, TEMPLATE_ITEMS_MAX = 100000 };

// Borrowed values; positional ones first, then those with keywords.
typedef struct TemplateArguments {
    Value items[TEMPLATE_ARGUMENTS_MAX];
    const char *keywords[TEMPLATE_ARGUMENTS_MAX]; // NULL: positional
    size_t count;
    int line;
} TemplateArguments;

// The argument at a position or with a keyword (NULL: it has none); undefined when it is not given.
Value template_argument(const TemplateArguments *arguments, size_t position, const char *keyword);
// Of a dictionary or a struct; undefined when there is none. Borrowed.
Value template_member(Value object, const char *name);
// Refuses a text or list that grows beyond what a template may have.
Status template_check_size(size_t size, size_t size_max, int line) MUST_USE;
// An undefined value is ABSENT: it is false and prints as nothing.
bool template_is_true(Value value);
// As Python prints a value, and as it shows one within a list: strings in quotes.
void template_append(Value value, Text *out);
void template_append_quoted(Value value, Text *out);
// Results are new references; failures name the line, and may leave what was made so far in *out,
// which template_evaluate releases. The first argument of a filter, a test and a
// method is what it is applied to.
Status template_operator(const char *sign, Value left, Value right, int line, Value *out) MUST_USE;
Status template_filter(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_test(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_method(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
Status template_function(const char *name, const TemplateArguments *arguments, Value *out) MUST_USE;
bool template_has_function(const char *name);

#endif
