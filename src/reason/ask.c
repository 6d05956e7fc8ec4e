// Y[2, :]? asks for a value of an equation: where nothing uses it, it is printed.
#include "base/output.h"
#include "eval/upper.h"
#include "learn/output.h"
#include "reason/reason.h"
#include "value/print.h"

typedef struct AskCode {
    Code head;
    const Code *value;
    const char *text;
} AskCode;

// Each line of the value two places further in.
static Status answer_print(const AskCode *ask, Value value, Text *out) {
    SCOPED_TEXT(text);
    Status status = value_print(value, true, &text);
    text_format(out, "Query: %s\n  ", ask->text);
    for (const char *at = text_get(&text); *at; at++) {
        text_append_char(out, *at);
        if (*at == '\n') text_append_string(out, "  ");
    }
    text_append_char(out, '\n');
    return status;
}

static Value eval_ask(Frame *frame, const Code *code) {
    const AskCode *ask = (const AskCode *)code;
    SCOPED_VALUE(value) = EVAL(frame, ask->value);
    if (failed(value)) return value;
    SCOPED_TEXT(text);
    Status status = answer_print(ask, value, &text);
    if (status == STATUS_OK) status = output_write(output_stream(), &text);
    return status == STATUS_OK ? value_none() : fail_at(code->span);
}

const Code *lower_ask(Lowering *lowering, const Node *node) {
    const Node *value = node->as.ask.value;
    if (!node->as.ask.statement) return lower(lowering, value);
    AskCode *code = LOWER_NEW(lowering, AskCode, eval_ask, node->span);
    size_t length;
    const char *text = source_text(value->span, &length);
    code->text = lower_text(lowering, "%.*s", (int)length, text);
    code->value = lower(lowering, value);
    return &code->head;
}
