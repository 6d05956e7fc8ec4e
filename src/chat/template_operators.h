// Operators on values of a template, and values as text.
#ifndef CHAT_TEMPLATE_OPERATORS_H
#define CHAT_TEMPLATE_OPERATORS_H

#include "chat/template_values.h"

// Refuses a text or list that grows beyond what a template may have.
Status template_check_size(size_t size, size_t size_max, int line) MUST_USE;
// Of a dictionary or a struct; undefined when there is none. Borrowed.
Value template_member(Value object, const char *name);
// An undefined value is ABSENT: it is false and prints as nothing.
bool template_is_true(Value value);
// As Python prints a value, and as it shows one within a list: strings in quotes.
void template_append(Value value, Text *out);
// Results are new references; failures name the line, and may leave what was made so far in *out,
// which template_evaluate releases. The first argument of a filter, a test and a
// method is what it is applied to.
Status template_operator(const char *sign, Value left, Value right, int line, Value *out) MUST_USE;

#endif
