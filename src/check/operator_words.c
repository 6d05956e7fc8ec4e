// Words of operators that meet kinds they do not take.
#include "check/operator_words.h"

// The verb and what joins the operands; `turned`: the right operand is named first.
static const struct {
    const char *verb, *joint;
    bool turned;
} words[] = {
    [OPERATOR_ADD] = {"add", "and", false},
    [OPERATOR_SUB] = {"subtract", "from", true},
    [OPERATOR_MUL] = {"multiply", "by", false},
    [OPERATOR_DIV] = {"divide", "by", false},
    [OPERATOR_MOD] = {"take the remainder of", "by", false},
    [OPERATOR_POW] = {"raise", "to", false},
    [OPERATOR_MATMUL] = {"multiply", "by", false},
    [OPERATOR_OUTER] = {"multiply", "by", false},
    [OPERATOR_EQ] = {"compare", "and", false},
    [OPERATOR_NE] = {"compare", "and", false},
    [OPERATOR_LT] = {"compare", "and", false},
    [OPERATOR_LE] = {"compare", "and", false},
    [OPERATOR_GT] = {"compare", "and", false},
    [OPERATOR_GE] = {"compare", "and", false},
    [OPERATOR_APPROX] = {"compare", "and", false},
    [OPERATOR_IN] = {"search", "in", false},
    [OPERATOR_NOT_IN] = {"search", "in", false},
    [OPERATOR_AND] = {"join", "and", false},
    [OPERATOR_OR] = {"join", "and", false},
    [OPERATOR_NEG] = {"negate", "and", false},
    [OPERATOR_NOT] = {"invert", "and", false},
};

Status operator_fail_kinds(Operator op, const char *left, const char *right) {
    if (!right) return fail(STATUS_TYPE, "cannot %s %s", words[op].verb, left);
    bool turned = words[op].turned;
    Status status = fail(STATUS_TYPE, "cannot %s %s %s %s", words[op].verb, turned ? right : left,
                         words[op].joint, turned ? left : right);
    bool text = strcmp(left, "string") == 0, other = strcmp(right, "string") == 0;
    if (op != OPERATOR_ADD || text == other) return status;
    return fail_help("str(x) makes a string of any value; f\"...{x}\" puts it into one");
}
