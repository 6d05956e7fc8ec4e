// What the rows of operators.def say.
#include "parser/ast.h"

const OperatorInfo operator_info[] = {
#define OPERATOR(code, ...) {__VA_ARGS__},
#include "parser/operators.def"
#undef OPERATOR
};
