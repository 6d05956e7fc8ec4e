// Words of operators, calls and literals that meet what they do not take.
#include "check/operator_words.h"

#include <stdlib.h>

#include "base/text.h"

Status operator_fail_kinds(Operator op, const char *left, const char *right) {
    const OperatorInfo *info = &operator_info[op];
    if (!right) return fail(STATUS_TYPE, "cannot %s %s", info->verb, left);
    bool turned = info->turned;
    Status status = fail(STATUS_TYPE, "cannot %s %s %s %s", info->verb, turned ? right : left,
                         info->joint, turned ? left : right);
    bool text = strcmp(left, "string") == 0, other = strcmp(right, "string") == 0;
    if (op == OPERATOR_MOD && text) return fail_help("values are put into text by f\"{x}\"");
    bool list = strcmp(left, "list") == 0 || strcmp(right, "list") == 0;
    if (list && op != OPERATOR_ADD && !text && !other)
        return fail_help("tensor(x) makes a tensor of a list of numbers");
    if (op != OPERATOR_ADD || text == other) return status;
    return fail_help("str(x) makes a string of it");
}

enum { OPERAND_SHOWN_MAX = 40 };

static bool is_short(const char *text, size_t length) {
    return text && length > 0 && length <= OPERAND_SHOWN_MAX && !memchr(text, '\n', length);
}

void operator_name_operand(const char *formal, const char *text, size_t length) {
    const char *at = error_current()->help, *open = strchr(formal, '('), *found;
    if (!is_short(text, length) || !open) return;
    SCOPED_TEXT(help);
    size_t head = (size_t)(open - formal) + 1;
    for (; (found = strstr(at, formal)) != NULL; at = found + strlen(formal)) {
        text_append(&help, at, (size_t)(found - at) + head);
        text_append(&help, text, length);
        text_append_char(&help, ')');
    }
    bool named = at != error_current()->help;
    text_append_string(&help, at);
    if (named) fail_help("%s", text_get(&help));
}

Status call_fail_count(const FunctionNode *function, const char *title, size_t given) {
    size_t most = function->parameter_count, required = 0, length;
    for (size_t i = 0; i < most; i++) required += !function->parameters[i].fallback;
    if (most > 0 && given > 0 && strcmp(function->parameters[0].name.text, "self") == 0) {
        most--;
        required--;
        given--;
    }
    const char *be = given == 1 ? "is" : "are", *head = source_text(function->head, &length);
    Status status = required == most
                        ? fail(STATUS_ARITY, "%s takes %zu argument%s, but %zu %s given", title,
                               most, most == 1 ? "" : "s", given, be)
                        : fail(STATUS_ARITY, "%s takes %zu to %zu arguments, but %zu %s given",
                               title, required, most, given, be);
    return is_short(head, length) ? fail_help("it is %.*s", (int)length, head) : status;
}

static bool has_length(const char *kind) {
    static const char *const kinds[] = {"string", "list", "tuple", "dict", "range"};
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) found |= strcmp(kinds[i], kind) == 0;
    return found;
}

// What `not` stands before cannot be negated itself.
static void skip_not(const char **text, size_t *length) {
    static const char *const words[] = {"not ", "!"};
    for (size_t i = 0; *text && i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if (*length <= size || memcmp(*text, words[i], size) != 0) continue;
        *text += size;
        *length -= size;
    }
}

void operator_condition_help(const char *kind, bool bools, const char *text, size_t length) {
    skip_not(&text, &length);
    if (!is_short(text, length)) {
        text = "x";
        length = 1;
    }
    int shown = (int)length;
    bool number = strcmp(kind, "int") == 0 || strcmp(kind, "float") == 0;
    if (bools)
        fail_help("any(%.*s) or all(%.*s) makes one bool of it; logical_and, logical_or and "
                  "logical_not work element by element",
                  shown, text, shown, text);
    else if (strcmp(kind, "tensor[]") == 0)
        fail_help("compare it and use any(...) or all(...)");
    else if (strcmp(kind, "none") == 0)
        fail_help("compare with it: `x != none`");
    else if (has_length(kind))
        fail_help("compare it, as in `len(%.*s) != 0`", shown, text);
    else
        fail_help("compare it: `%.*s != %s`", shown, text, number ? "0" : "none");
}

Status literal_fail_ragged(int64_t expected, int64_t found) {
    (void)fail(STATUS_SHAPE, "ragged literal: one row has %lld elements, another %lld",
               (long long)expected, (long long)found);
    return fail_help("list(...) makes a list of anything");
}

Status objective_fail(const char *type) {
    (void)fail(STATUS_SHAPE, "the objective is %s; it must have one element", type);
    return fail_help("mean(...) or sum(...) makes one number of it");
}
