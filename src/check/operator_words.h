// What is said of operands, arguments and elements that do not fit, before running and while.
#ifndef CHECK_OPERATOR_WORDS_H
#define CHECK_OPERATOR_WORDS_H

#include "parser/ast.h"

// STATUS_TYPE "cannot add string and int"; the kinds are words such as "int". `right` NULL: unary.
Status operator_fail_kinds(Operator op, const char *left, const char *right);

// Puts the text of an operand where the help of the current error has the formal name: "str(x)".
// Texts that are long or of several lines are left out.
void operator_name_operand(const char *formal, const char *text, size_t length);
// Help for a value that is not a condition: `kind` is its kind, "tensor[]" of an array.
void operator_condition_help(const char *kind, bool bools, const char *text, size_t length);

// STATUS_ARITY "fn f takes 2 arguments, but 1 is given"; what a method is called on is not counted.
Status call_fail_count(const FunctionNode *function, const char *title, size_t given);
// STATUS_SHAPE of a literal whose rows differ in length.
Status literal_fail_ragged(int64_t expected, int64_t found);
// STATUS_SHAPE of an objective of more or fewer elements than one; `type` as in "float32[2]".
Status objective_fail(const char *type);

#endif
