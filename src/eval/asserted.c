// The condition of an assert. Of a comparison that does not hold, the values on both sides are put
// aside for the message.
#include "device/foretell.h"
#include "eval/code.h"
#include "value/print.h"

typedef struct AssertedCode {
    Code head;
    Operator op;
    const Code *left, *right;
} AssertedCode;

// A rank-0 tensor is a number here.
static void append_side(Text *out, Value value) {
    bool number = value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) == 0;
    if (!number || value_print(value, true, out) != STATUS_OK)
        text_append_string(out, value_text(value).text);
}

static Value eval_asserted(Frame *frame, const Code *code) {
    const AssertedCode *asserted = (const AssertedCode *)code;
    Operands operands = {.left = EVAL(frame, asserted->left)};
    if (failed(operands.left)) return operands.left;
    operands.right = EVAL(frame, asserted->right);
    if (failed(operands.right)) {
        value_release(operands.left);
        return operands.right;
    }
    operands.left_code = asserted->left;
    operands.right_code = asserted->right;
    operands.span = code->span;
    Value left = value_retain(operands.left), right = value_retain(operands.right);
    bool holds = true, before = foretell_ignore_checks();
    Value result = operator_apply(frame, asserted->op, &operands);
    foretell_ignore_reads(true);
    if (!failed(result) && value_to_bool(result, "the condition of assert", &holds) == STATUS_OK &&
        !holds) {
        Text *text = &frame->interp->asserted;
        text_append_string(text, "left is ");
        append_side(text, left);
        text_append_string(text, ", right is ");
        append_side(text, right);
    }
    foretell_ignore_reads(before);
    if (!failed(result)) error_clear(); // assert itself says what is not a condition
    value_release(left);
    value_release(right);
    return result;
}

typedef struct BothCode {
    Code head;
    const Code *left, *right;
} BothCode;

// Where only a run knows whether it holds, it is taken to, as assert does.
static int read_asserted(Frame *frame, const Code *code) {
    Value value = EVAL(frame, code);
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_checks();
    int holds = value.kind == VALUE_BOOL ? (int)value.as.integer : condition_read(value, code);
    foretell_ignore_reads(before);
    bool unknown = foretell_reads() != reads && !foretell_attempts();
    return holds == 0 && unknown ? 1 : holds;
}

static Value eval_both_asserted(Frame *frame, const Code *code) {
    const BothCode *both = (const BothCode *)code;
    int holds = read_asserted(frame, both->left);
    if (holds > 0) holds = read_asserted(frame, both->right);
    return holds < 0 ? value_fail() : value_bool(holds);
}

// `plain` is what any other code is lowered to.
static const Code *lower_comparison(Lowering *lowering, const Node *node, const Code *plain) {
    if (node->kind != NODE_BINARY || node->op < OPERATOR_EQ || node->op > OPERATOR_APPROX)
        return plain ? plain : lower(lowering, node);
    AssertedCode *code = LOWER_NEW(lowering, AssertedCode, eval_asserted, node->span);
    code->op = node->op;
    code->left = lower(lowering, node->as.binary.left);
    code->right = lower(lowering, node->as.binary.right);
    return &code->head;
}

static const Code *lower_both(Lowering *lowering, const Node *node) {
    if (node->kind != NODE_LOGICAL || node->op != OPERATOR_AND)
        return lower_comparison(lowering, node, NULL);
    ASSERT(node->as.binary.left && node->as.binary.right);
    BothCode *code = LOWER_NEW(lowering, BothCode, eval_both_asserted, node->span);
    code->left = lower_both(lowering, node->as.binary.left);
    code->right = lower_both(lowering, node->as.binary.right);
    return &code->head;
}

const Code *lower_asserted(Lowering *lowering, const Node *node, const Code *plain) {
    return node->kind == NODE_LOGICAL ? lower_both(lowering, node)
                                      : lower_comparison(lowering, node, plain);
}

void asserted_label(Interp *interp) {
    if (!interp) return; // a builtin called from C, outside any program
    if (interp->asserted.length && error_current()->code == STATUS_ASSERT)
        fail_label("%s", text_get(&interp->asserted));
    text_clear(&interp->asserted);
}
