// What is said of operands of kinds that an operator does not take, before running and while.
#ifndef CHECK_OPERATOR_WORDS_H
#define CHECK_OPERATOR_WORDS_H

#include "parser/ast.h"

// STATUS_TYPE "cannot add string and int"; the kinds are words such as "int". `right` NULL: unary.
Status operator_fail_kinds(Operator op, const char *left, const char *right);

#endif
