// Blocks and the statements that are not loops: scopes that release their variables in reverse
// order on every way out, declarations, if, return.
#include <string.h>

#include "eval/annotations.h"
#include "eval/code.h"
#include "eval/declared.h"
#include "eval/formula.h"
#include "eval/pattern.h"

typedef struct BlockCode {
    Code head;
    const Code **statements;
    size_t count;
    int first_slot, slot_count;
} BlockCode;

static inline Value run_statements(Frame *frame, const BlockCode *block) {
    Value value = value_none();
    for (size_t i = 0; i < block->count; i++) {
        value_release(value);
        value = EVAL(frame, block->statements[i]);
        if (failed(value)) break;
    }
    return value;
}

static Value eval_block(Frame *frame, const Code *code) {
    return run_statements(frame, (const BlockCode *)code);
}

static Value eval_scope(Frame *frame, const Code *code) {
    const BlockCode *block = (const BlockCode *)code;
    Value value = run_statements(frame, block);
    slots_release(frame, block->first_slot, block->slot_count);
    return value;
}

typedef struct IfCode {
    Code head;
    const Code *condition;
    const Code *branches[2]; // else (or NULL), then
    bool leaves;             // its then ends in a jump: what follows it is its else
} IfCode;

static Value eval_if(Frame *frame, const Code *code) {
    const IfCode *branch = (const IfCode *)code;
    int boolean = condition_eval(frame, branch->condition);
    if (boolean > 0) return EVAL(frame, branch->branches[1]);
    if (boolean < 0) return value_fail();
    return branch->branches[0] ? EVAL(frame, branch->branches[0]) : value_none();
}

// The return, break or continue that a block ends in; NULL: none.
static const Node *last_jump(const Node *body) {
    if (body->kind != NODE_BLOCK || body->as.block.statements.count == 0) return NULL;
    const NodeList *statements = &body->as.block.statements;
    const Node *last = statements->items[statements->count - 1];
    bool jumps =
        last->kind == NODE_RETURN || last->kind == NODE_BREAK || last->kind == NODE_CONTINUE;
    return jumps ? last : NULL;
}

// `if c { ...; return e }` in the block that gives a function's value: what follows it is its else,
// and nothing has to unwind.
static bool is_guard(const Node *node) {
    if (node->kind == NODE_EXPRESSION_STATEMENT) node = node->as.expression.value;
    if (node->kind != NODE_IF || node->as.branch.else_branch) return false;
    const Node *last = last_jump(node->as.branch.then_branch);
    return last && last->kind == NODE_RETURN && last->as.returned.value;
}

// Makes a code go on to the statement after it when it is done; false: whoever ran it has to.
static bool follow(Lowering *lowering, const Code *code, const Code *next) {
    const Code *general = formula_general(code);
    if (general->eval != eval_if)
        return scalar_store_follow(code, next) || variable_store_follow(code, next) ||
               place_store_follow(code, next) || formula_store_follow(lowering, code, next);
    IfCode *branch = (IfCode *)(uintptr_t)general;
    if (!branch->leaves) return false;
    branch->branches[0] = next;
    return true;
}

// Where the compiler makes no jumps of calls in last place, each statement that goes on to the next
// takes stack.
enum { FOLLOWING_MAX = 64 };

static void link_statements(Lowering *lowering, BlockCode *block) {
    size_t following = 0, kept = block->count;
    for (size_t i = block->count; i-- > 0;) {
        bool links = following < FOLLOWING_MAX && i + 1 < block->count &&
                     follow(lowering, block->statements[i], block->statements[kept]);
        following = links ? following + 1 : 0;
        if (!links) kept--;
        block->statements[kept] = block->statements[i];
    }
    block->count -= kept;
    memmove(block->statements, block->statements + kept, block->count * sizeof *block->statements);
}

static const Code *lower_statements(Lowering *lowering, const NodeList *statements, size_t from,
                                    BlockCode *block, bool tail);

static const Code *lower_guard(Lowering *lowering, const NodeList *statements, size_t at) {
    ASSERT(at < statements->count);
    const Node *node = statements->items[at];
    if (node->kind == NODE_EXPRESSION_STATEMENT) node = node->as.expression.value;
    IfCode *code = LOWER_NEW(lowering, IfCode, eval_if, node->span);
    code->condition = lower(lowering, node->as.branch.condition);
    code->branches[1] = lower_tail(lowering, node->as.branch.then_branch);
    BlockCode *rest = LOWER_NEW(lowering, BlockCode, eval_block, node->span);
    code->branches[0] = lower_statements(lowering, statements, at + 1, rest, true);
    return lower_formula_branch(lowering, code->condition, code->branches, &code->head);
}

// The statements from one on, into a block that may have some already; the code for all of them.
static const Code *lower_statements(Lowering *lowering, const NodeList *statements, size_t from,
                                    BlockCode *block, bool tail) {
    ASSERT(from <= statements->count);
    if (!block->statements)
        block->statements =
            lower_array(lowering, statements->count - from + 1, sizeof *block->statements);
    for (size_t i = from; i < statements->count; i++) {
        const Node *statement = statements->items[i];
        bool last = i + 1 == statements->count;
        if (statement->kind == NODE_FUNCTION && !last) continue;
        if (tail && !last && is_guard(statement)) {
            block->statements[block->count++] = lower_guard(lowering, statements, i);
            break;
        }
        block->statements[block->count++] =
            statement->kind == NODE_FUNCTION
                ? lower_constant(lowering, value_none(), statement->span)
            : last && tail ? lower_tail(lowering, statement)
                           : lower(lowering, statement);
    }
    link_statements(lowering, block);
    return block->count == 1 && block->slot_count == 0 ? block->statements[0] : &block->head;
}

static const Code *lower_block_slots(Lowering *lowering, const Node *node, bool tail, int slots) {
    ASSERT(node->kind == NODE_BLOCK && slots >= 0);
    const NodeList *statements = &node->as.block.statements;
    BlockCode *block = LOWER_NEW(lowering, BlockCode, slots ? eval_scope : eval_block, node->span);
    block->statements = lower_array(lowering, statements->count + 1, sizeof *block->statements);
    block->first_slot = node->as.block.first_slot;
    block->slot_count = slots;
    // Functions first: they may be used above their text.
    for (size_t i = 0; i < statements->count; i++)
        if (statements->items[i]->kind == NODE_FUNCTION)
            block->statements[block->count++] = lower(lowering, statements->items[i]);
    return lower_statements(lowering, statements, 0, block, tail);
}

Body body_of(const Code *const *code) {
    if ((*code)->eval != eval_block && (*code)->eval != eval_scope) return (Body){code, 1, 0, 0};
    const BlockCode *block = (const BlockCode *)*code;
    return (Body){block->statements, block->count, slot_offset(block->first_slot),
                  slot_offset(block->first_slot + block->slot_count)};
}

const Code *lower_block(Lowering *lowering, const Node *node, bool tail) {
    return lower_block_slots(lowering, node, tail, node->as.block.slot_count);
}

const Code *lower_body(Lowering *lowering, const Node *node) {
    return node->kind == NODE_BLOCK ? lower_block_slots(lowering, node, true, 0)
                                    : lower_tail(lowering, node);
}

// let x: T without a value: what the variable held before in this block goes.
static Value eval_forget(Frame *frame, const Code *code) {
    const DeclareCode *declare = (const DeclareCode *)code;
    variable_set(frame, declare->variable, value_absent());
    return value_none();
}

static Value eval_declare(Frame *frame, const Code *code) {
    const DeclareCode *declare = (const DeclareCode *)code;
    Value value = EVAL(frame, declare->value);
    if (failed(value)) return value;
    value = annotation_convert(frame, declare->type, value, declare->name);
    if (failed(value)) return fail_at(code->span);
    variable_set(frame, declare->variable, value);
    return value_none();
}

static Value eval_destructure(Frame *frame, const Code *code) {
    const DeclareCode *declare = (const DeclareCode *)code;
    SCOPED_VALUE(value) = EVAL(frame, declare->value);
    if (failed(value)) return value;
    if (declare->type) value = annotation_convert(frame, declare->type, value, "the value");
    if (failed(value)) return fail_at(code->span);
    Status status = pattern_bind(frame, declare->pattern, value);
    return status == STATUS_OK ? value_none() : fail_at(code->span);
}

typedef struct OnceCode {
    Code head;
    const VariableCode *variable;
    const Code *declaration;
} OnceCode;

static Value eval_once(Frame *frame, const Code *code) {
    const OnceCode *once = (const OnceCode *)code;
    if (variable_peek(frame, once->variable)) return value_none();
    return EVAL(frame, once->declaration);
}

const Code *lower_once(Lowering *lowering, Binding *binding, const Code *declaration) {
    ASSERT(declaration != NULL);
    OnceCode *code = LOWER_NEW(lowering, OnceCode, eval_once, declaration->span);
    code->variable = lower_variable(lowering, binding, declaration->span);
    code->declaration = declaration;
    return &code->head;
}

static const Code *lower_let_each(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_LET);
    const Pattern *pattern = node->as.let.pattern;
    const Annotation *type = lower_annotation(lowering, node->as.let.type);
    bool plain = pattern->kind == PATTERN_BIND;
    const Code *value = type && annotation_is_tensor(type)
                            ? lower_declared_value(lowering, node->as.let.value, type)
                            : lower(lowering, node->as.let.value);
    if (plain && value && !type) return lower_store(lowering, pattern->binding, value, node->span);
    Eval eval = !plain ? eval_destructure : value ? eval_declare : eval_forget;
    DeclareCode *code = LOWER_NEW(lowering, DeclareCode, eval, node->span);
    code->type = type;
    code->value = value;
    if (plain) {
        code->variable = lower_variable(lowering, pattern->binding, node->span);
        code->name = lower_word(lowering, &pattern->name);
    } else {
        code->pattern = lower_pattern(lowering, pattern);
    }
    return &code->head;
}

const Code *lower_let(Lowering *lowering, const Node *node) {
    const Code *code = lower_let_each(lowering, node);
    return node->as.let.once ? lower_once(lowering, node->as.let.pattern->binding, code) : code;
}

static const Code *lower_branch(Lowering *lowering, const Node *node, bool tail) {
    if (!node) return NULL;
    return tail ? lower_tail(lowering, node) : lower(lowering, node);
}

// A chain of else-ifs is lowered in a loop: it may be as long as the file.
const Code *lower_if(Lowering *lowering, const Node *node, bool tail) {
    const Code *first = NULL, **link = &first;
    for (; node && node->kind == NODE_IF; node = node->as.branch.else_branch) {
        IfCode *code = LOWER_NEW(lowering, IfCode, eval_if, node->span);
        code->condition = lower(lowering, node->as.branch.condition);
        code->branches[1] = lower_branch(lowering, node->as.branch.then_branch, tail);
        code->leaves = !first && !tail && !node->as.branch.else_branch &&
                       last_jump(node->as.branch.then_branch);
        *link = lower_formula_branch(lowering, code->condition, code->branches, &code->head);
        link = &code->branches[0];
    }
    *link = lower_branch(lowering, node, tail);
    return first;
}

typedef struct JumpCode {
    Code head;
    Control control;
    const Code *value;
} JumpCode;

static Value eval_jump(Frame *frame, const Code *code) {
    const JumpCode *jump = (const JumpCode *)code;
    Value value = value_none();
    if (jump->value) value = EVAL(frame, jump->value);
    if (failed(value)) return value;
    frame->result = value;
    frame->control = jump->control;
    return value_fail();
}

const Code *lower_jump(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_BREAK || node->kind == NODE_CONTINUE || node->kind == NODE_RETURN);
    JumpCode *code = LOWER_NEW(lowering, JumpCode, eval_jump, node->span);
    code->control = node->kind == NODE_BREAK      ? CONTROL_BREAK
                    : node->kind == NODE_CONTINUE ? CONTROL_CONTINUE
                                                  : CONTROL_RETURN;
    if (node->kind == NODE_RETURN) code->value = lower(lowering, node->as.returned.value);
    return &code->head;
}
