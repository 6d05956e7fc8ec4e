// Words of operators that meet kinds they do not take.
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

static bool has_length(const char *kind) {
    static const char *const kinds[] = {"string", "list", "tuple", "dict", "range"};
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) found |= strcmp(kinds[i], kind) == 0;
    return found;
}

void operator_condition_help(const char *kind, bool bools, const char *text, size_t length) {
    if (!is_short(text, length)) {
        text = "x";
        length = 1;
    }
    int shown = (int)length;
    bool number = strcmp(kind, "int") == 0 || strcmp(kind, "float") == 0;
    if (bools)
        fail_help("any(%.*s) or all(%.*s) makes one bool of it", shown, text, shown, text);
    else if (strcmp(kind, "tensor[]") == 0)
        fail_help("compare it and use any(...) or all(...)");
    else if (strcmp(kind, "none") == 0)
        fail_help("compare with it: `x != none`");
    else if (has_length(kind))
        fail_help("compare it, as in `len(%.*s) != 0`", shown, text);
    else
        fail_help("compare it: `%.*s != %s`", shown, text, number ? "0" : "none");
}
