// From checked syntax to code: a table of functions by kind of node, functions and constants. Knows
// where code is allocated; how each construct runs is in the file that lowers it.
#include <stdarg.h>

#include "eval/annotations.h"
#include "eval/code.h"
#include "eval/upper.h"

void *lower_new(Lowering *lowering, size_t bytes, Eval eval, Span span) {
    ASSERT(bytes >= sizeof(Code));
    Code *code = arena_allocate(lowering->arena, bytes);
    code->eval = eval;
    code->span = span;
    return code;
}

void *lower_array(Lowering *lowering, size_t count, size_t item_bytes) {
    ASSERT(count <= SIZE_MAX / item_bytes);
    return arena_allocate(lowering->arena, count * item_bytes);
}

const char *lower_text(Lowering *lowering, const char *format, ...) {
    SCOPED_TEXT(text);
    va_list arguments;
    va_start(arguments, format);
    text_format_v(&text, format, arguments);
    va_end(arguments);
    return arena_copy_string(lowering->arena, text_get(&text), text.length);
}

const char *lower_word(Lowering *lowering, const Word *word) {
    return word->text ? arena_copy_string(lowering->arena, word->text, word->length) : NULL;
}

typedef struct ConstantCode {
    Code head;
    Value value;
} ConstantCode;

static Value eval_constant(Frame *frame, const Code *code) {
    (void)frame;
    return value_retain(((const ConstantCode *)code)->value);
}

const Code *lower_constant(Lowering *lowering, Value value, Span span) {
    ASSERT(value.kind != VALUE_FAIL);
    ConstantCode *code = LOWER_NEW(lowering, ConstantCode, eval_constant, span);
    code->value = value;
    // The arena is not a place where the collector looks.
    if (value_is_counted(value) || value.kind == VALUE_STRING || value.kind == VALUE_RANGE)
        list_push(lowering->interp->store->roots->as.list, value);
    return &code->head;
}

bool code_constant(const Code *code, Value *out) {
    if (code->eval != eval_constant) return false;
    *out = ((const ConstantCode *)code)->value;
    return true;
}

static const Code *lower_int(Lowering *lowering, const Node *node) {
    return lower_constant(lowering, value_int(node->as.integer), node->span);
}

static const Code *lower_float(Lowering *lowering, const Node *node) {
    return lower_constant(lowering, value_float(node->as.number), node->span);
}

static const Code *lower_bool(Lowering *lowering, const Node *node) {
    return lower_constant(lowering, value_bool(node->as.boolean), node->span);
}

static const Code *lower_none(Lowering *lowering, const Node *node) {
    return lower_constant(lowering, value_none(), node->span);
}

// The same text is one string, so that comparing it with itself looks at no bytes.
static const Code *lower_string(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_STRING);
    Value text = value_string(node->as.string.bytes, node->as.string.length);
    Dict *texts = lowering->interp->store->texts->as.dict;
    Value same = dict_get(texts, text);
    if (same.kind == VALUE_ABSENT) dict_set(texts, text, text);
    return lower_constant(lowering, same.kind == VALUE_ABSENT ? text : same, node->span);
}

static const Code *lower_lambda(Lowering *lowering, const Node *node) {
    return lower_closure(lowering, node->as.function, node->span);
}

static const Code *lower_if_value(Lowering *lowering, const Node *node) {
    return lower_if(lowering, node, false);
}

static const Code *lower_match_value(Lowering *lowering, const Node *node) {
    return lower_match(lowering, node, false);
}

static const Code *lower_block_value(Lowering *lowering, const Node *node) {
    return lower_block(lowering, node, false);
}

static const Code *lower_expression_statement(Lowering *lowering, const Node *node) {
    return lower(lowering, node->as.expression.value);
}

// A bench inside main: a block that runs when it is reached.
static const Code *lower_bench(Lowering *lowering, const Node *node) {
    return lower_block(lowering, node->as.section.function->body, false);
}

static const Code *lower_function_statement(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_FUNCTION);
    const FunctionNode *function = node->as.function;
    const Code *closure = lower_closure(lowering, function, node->span);
    return lower_store(lowering, function->binding, closure, node->span);
}

// Declarations have been lowered with their module; nothing happens where they stand.
const Code *lower_nothing(Lowering *lowering, const Node *node) {
    return lower_constant(lowering, value_none(), node->span);
}

typedef const Code *(*Lower)(Lowering *lowering, const Node *node);

static const Lower lowerings[] = {
    [NODE_INT] = lower_int,
    [NODE_FLOAT] = lower_float,
    [NODE_BOOL] = lower_bool,
    [NODE_NONE] = lower_none,
    [NODE_STRING] = lower_string,
    [NODE_FORMAT_STRING] = lower_format_string,
    [NODE_NAME] = lower_name,
    [NODE_LIST] = lower_list_literal,
    [NODE_TUPLE] = lower_tuple,
    [NODE_DICT] = lower_dict,
    [NODE_COMPREHENSION] = lower_for,
    [NODE_UNARY] = lower_unary,
    [NODE_BINARY] = lower_binary,
    [NODE_LOGICAL] = lower_logical,
    [NODE_RANGE] = lower_range,
    [NODE_CAST] = lower_cast,
    [NODE_CALL] = lower_call,
    [NODE_METHOD_CALL] = lower_method_call,
    [NODE_FIELD] = lower_field,
    [NODE_INDEX] = lower_index,
    [NODE_PATH] = lower_path,
    [NODE_EQUATION] = lower_equation,
    [NODE_STRUCT_LITERAL] = lower_struct_literal,
    [NODE_LAMBDA] = lower_lambda,
    [NODE_IF] = lower_if_value,
    [NODE_MATCH] = lower_match_value,
    [NODE_TRY] = lower_try,
    [NODE_BLOCK] = lower_block_value,
    [NODE_LET] = lower_let,
    [NODE_TENSOR_DECLARATION] = lower_tensor,
    [NODE_ASSIGN] = lower_assign,
    [NODE_EXPRESSION_STATEMENT] = lower_expression_statement,
    [NODE_WHILE] = lower_loop,
    [NODE_LOOP] = lower_loop,
    [NODE_FOR] = lower_for,
    [NODE_BREAK] = lower_jump,
    [NODE_CONTINUE] = lower_jump,
    [NODE_RETURN] = lower_jump,
    [NODE_WITH] = lower_with,
    [NODE_LEARN] = lower_learn,
    [NODE_FUNCTION] = lower_function_statement,
    [NODE_STRUCT] = lower_nothing,
    [NODE_IMPL] = lower_nothing,
    [NODE_IMPORT] = lower_import,
    [NODE_TEST] = lower_nothing,
    [NODE_BENCH] = lower_bench,
    [NODE_MAIN] = lower_nothing,
    [NODE_QUERY] = lower_query,
    [NODE_ASK] = lower_ask,
    [NODE_FACT] = lower_fact,
    [NODE_ONE_OF] = lower_one_of,
    [NODE_DRAWN] = lower_drawn,
    [NODE_RETRACT] = lower_retract,
    [NODE_INFER] = lower_infer,
    [NODE_ENTITY] = lower_nothing,
    [NODE_RELATION] = lower_relation,
    [NODE_RULE] = lower_rule,
    [NODE_PROGRAM] = lower_program,
};

const Code *lower(Lowering *lowering, const Node *node) {
    return node ? lowerings[node->kind](lowering, node) : NULL;
}

const Code **lower_list(Lowering *lowering, const NodeList *list) {
    const Code **codes = lower_array(lowering, list->count, sizeof *codes);
    for (size_t i = 0; i < list->count; i++) codes[i] = lower(lowering, list->items[i]);
    return codes;
}

const Code *lower_tail(Lowering *lowering, const Node *node) {
    switch (node->kind) {
    case NODE_RETURN:
        if (!lowering->function || !node->as.returned.value) return lower(lowering, node);
        return lower_tail(lowering, node->as.returned.value);
    case NODE_EXPRESSION_STATEMENT: return lower_tail(lowering, node->as.expression.value);
    case NODE_BLOCK: return lower_block(lowering, node, true);
    case NODE_IF: return lower_if(lowering, node, true);
    case NODE_MATCH: return lower_match(lowering, node, true);
    default: return lower(lowering, node);
    }
}

static void lower_captures(Lowering *lowering, FunctionCode *code, const FunctionNode *node) {
    code->capture_count = (int)node->captures.count;
    code->captures = lower_array(lowering, node->captures.count, sizeof *code->captures);
    for (size_t i = 0; i < node->captures.count; i++) {
        const Binding *binding = node->captures.items[i];
        CaptureCode *capture = &code->captures[i];
        const FunctionNode *outer = lowering->function;
        if (binding->declaration && binding->declaration->kind == NODE_FUNCTION &&
            binding->declaration->as.function == node && !binding->assigned) {
            capture->from = CAPTURE_SELF;
        } else if (binding->owner == outer) {
            *capture = (CaptureCode){CAPTURE_SLOT, binding->slot};
        } else {
            capture->from = CAPTURE_CELL;
            while (outer->captures.items[capture->index] != binding) capture->index++;
        }
    }
}

FunctionCode *lower_function(Lowering *lowering, const FunctionNode *node) {
    FunctionCode *code = lower_array(lowering, 1, sizeof *code);
    code->node = node;
    code->name = lower_word(lowering, &node->name);
    code->title = code->name   ? lower_text(lowering, "fn %s", code->name)
                  : node->what ? node->what
                               : "a lambda";
    code->parameter_count = (int)node->parameter_count;
    code->slot_count = node->slot_count;
    code->room = node->slot_count > 0 ? (unsigned)node->slot_count : 1;
    code->value = value_absent();
    lower_captures(lowering, code, node);
    interp_note_function(node);
    lowering->interp->functions_lowered++;
    return code;
}

static void lower_parameters(Lowering *lowering, FunctionCode *code, const FunctionNode *node) {
    code->parameters = lower_array(lowering, node->parameter_count, sizeof *code->parameters);
    code->plain = true;
    for (size_t i = 0; i < node->parameter_count; i++) {
        const Parameter *parameter = &node->parameters[i];
        ParameterCode *target = &code->parameters[i];
        target->name = lower_word(lowering, &parameter->name);
        target->what = lower_text(lowering, "parameter %s of %s", target->name, code->title);
        target->type = lower_annotation(lowering, parameter->type);
        target->fallback = lower(lowering, parameter->fallback);
        target->captured = parameter->binding->captured;
        if (!parameter->fallback) code->required_count = (int)i + 1;
        if (target->type || target->captured || target->fallback) code->plain = false;
    }
    code->result = lower_annotation(lowering, node->result);
    if (code->result) code->plain = false;
    code->result_what = lower_text(lowering, "the result of %s", code->title);
}

void lower_function_body(Lowering *lowering, FunctionCode *code, const FunctionNode *node) {
    Lowering inner = *lowering;
    inner.function = node;
    inner.code = code;
    lower_parameters(&inner, code, node);
    code->body = lower_body(&inner, node->body);
}
