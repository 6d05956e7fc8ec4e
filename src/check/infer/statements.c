// Statements: what they write, and the ways that control takes.
#include "check/infer/infer.h"
#include "check/operator_words.h"

static const Fact *infer_initial(Inference *in, Node *value, const TypeNode *type);

static void infer_declare(Inference *in, Binding *binding, const Fact *fact);

// --- values taken apart

static const Fact *member_fact(const Inference *in, const Fact *fact, size_t index) {
    return infer_members_known(in, fact) && index < fact->as.list.count ? fact->as.list.items[index]
                                                                        : &fact_any;
}

void infer_pattern(Inference *in, const Pattern *pattern, const Fact *fact) {
    if (!pattern) return;
    bool tuple = pattern->kind == PATTERN_TUPLE;
    if (pattern->kind == PATTERN_BIND) infer_write(in, pattern->binding, fact);
    bool members = fact->kind == FACT_TUPLE || fact->kind == FACT_LIST;
    for (size_t i = 0; i < pattern->part_count; i++)
        infer_pattern(in, pattern->parts[i],
                      tuple && members ? member_fact(in, fact, i) : &fact_any);
}

static void infer_let(Inference *in, Node *node) {
    const Pattern *pattern = node->as.let.pattern;
    if (pattern->kind != PATTERN_BIND) {
        const Fact *fact = infer_expression(in, node->as.let.value);
        if (pattern->kind == PATTERN_TUPLE && fact->kind == FACT_TUPLE && fact->known &&
            fact->as.list.count != pattern->part_count) {
            fail(STATUS_VALUE, "%zu names cannot take a tuple of %zu value%s apart",
                 pattern->part_count, fact->as.list.count, fact->as.list.count == 1 ? "" : "s");
            infer_report(in, node->span, NULL, 0);
        }
        infer_pattern(in, pattern, node->as.let.type ? &fact_any : fact);
        return;
    }
    if (!node->as.let.value) {
        infer_write(in, pattern->binding, &fact_unset);
        return;
    }
    const Fact *fact = infer_initial(in, node->as.let.value, node->as.let.type);
    fact = annotation_declare(in, node->as.let.type, fact, pattern->name.text, node->span);
    infer_declare(in, pattern->binding, fact);
}

// --- initial values

// zeros() and the like take the declared shape.
static const Fact *infer_initial(Inference *in, Node *value, const TypeNode *type) {
    TensorType declared;
    bool call = value && value->kind == NODE_CALL && value->as.call.callee->kind == NODE_NAME;
    const Binding *binding = call ? value->as.call.callee->as.name.binding : NULL;
    if (binding && binding->kind == BINDING_BUILTIN &&
        catalog_lacks_shape(binding->builtin, value->as.call.count) &&
        annotation_type(in, type, &declared))
        return fact_made(&in->arena, fact_tensor(&in->arena, declared.dtype, &declared.shape),
                         value->span);
    return infer_expression(in, value);
}

// The first value of a variable is also what an editor shows of it.
static void infer_declare(Inference *in, Binding *binding, const Fact *fact) {
    if (binding && !binding->inferred && fact->kind != FACT_ANY && in->silent == 0) {
        SCOPED_TEXT(text);
        if (fact_has_shape(fact))
            text_append_string(&text, tensor_type_text(&fact->as.tensor.type).text);
        else
            text_append_string(&text, fact_kind_name(fact));
        binding->inferred = arena_copy_string(&in->program->arena, text_get(&text), text.length);
    }
    infer_write(in, binding, fact);
}

static void infer_tensor(Inference *in, Node *node) {
    const TypeNode *type = node->as.tensor.type;
    const Fact *fact = &fact_any;
    if (node->as.tensor.value) {
        fact = infer_initial(in, node->as.tensor.value, type);
        fact = annotation_declare(in, type, fact, node->as.tensor.name.text, node->span);
    } else {
        TensorType declared;
        if (annotation_type(in, type, &declared))
            fact = fact_made(&in->arena, fact_tensor(&in->arena, declared.dtype, &declared.shape),
                             node->span);
    }
    infer_declare(in, node->as.tensor.binding, fact);
}

// --- assignments

static void assign_field(Inference *in, Node *target, const Fact *value) {
    const Fact *object = infer_expression(in, target->as.field.object);
    int index = -1;
    if (object->kind == FACT_STRUCT && infer_members_known(in, object))
        index = struct_field_index(object->as.structure.binding, &target->as.field.name);
    if (index >= 0 && fact_equal(object->as.structure.fields[index], value)) return;
    infer_disturb(in);
}

// The first value of a variable that was declared without one is converted; where it may be the
// first, nothing is known of what becomes of it.
static const Fact *first_value(Inference *in, const Node *target, const Fact *value) {
    const TypeNode *type = target->as.name.awaits;
    const Fact *before = infer_read(in, target->as.name.binding);
    if (!type || before->kind != FACT_ANY) return value;
    if (before != &fact_unset) return &fact_any;
    return annotation_declare(in, type, value, target->as.name.word.text, target->span);
}

static void assign_to(Inference *in, Node *target, Node *value_node, const Fact *value) {
    switch (target->kind) {
    case NODE_NAME:
        if (target->as.name.binding && !target->as.name.parameter) // one keeps dtype and shape
            infer_declare(in, target->as.name.binding, first_value(in, target, value));
        return;
    case NODE_TUPLE:
        for (size_t i = 0; i < target->as.list.count; i++)
            assign_to(in, target->as.list.items[i], value_node,
                      value->kind == FACT_TUPLE ? member_fact(in, value, i) : &fact_any);
        return;
    case NODE_FIELD: assign_field(in, target, value); return;
    case NODE_INDEX: infer_assign_index(in, target, value_node, value); return;
    default: infer_expression(in, target); infer_disturb(in);
    }
}

static const Fact *infer_assign(Inference *in, Node *node) {
    Node *target = node->as.assign.target;
    const Fact *value = infer_expression(in, node->as.assign.value);
    if (node->op != OPERATOR_NONE) {
        Operand left = {infer_expression(in, target), target->span, target};
        Operand right = {.fact = value, .span = node->as.assign.value->span};
        value = infer_operator(in, node, node->op, &left, &right);
        if (value->kind == FACT_TENSOR) value = fact_made(&in->arena, value, node->span);
    }
    assign_to(in, target, node->as.assign.value, value);
    return value;
}

// --- ways

void infer_condition(Inference *in, const Node *node, const Fact *fact) {
    bool array = fact_is_array(fact);
    bool wrong = array || fact->kind == FACT_INT || fact->kind == FACT_FLOAT ||
                 fact->kind == FACT_STRING || fact->kind == FACT_NONE || fact->kind == FACT_DICT;
    if (!wrong) return;
    SCOPED_TEXT(text);
    size_t length;
    const char *source = source_text(node->span, &length);
    fact_describe(fact, &text);
    fail(STATUS_TYPE, "a condition is a bool, but this is %s", text_get(&text));
    bool bools = array && fact->as.tensor.type.dtype == DTYPE_BOOL;
    operator_condition_help(array ? "tensor[]" : fact_kind_name(fact), bools, source, length);
    infer_report(in, node->span, NULL, 0);
}

const Fact *infer_if(Inference *in, Node *node) {
    const Fact *condition = infer_expression(in, node->as.branch.condition);
    infer_condition(in, node->as.branch.condition, condition);
    Node *otherwise = node->as.branch.else_branch;
    if (in->dead) return &fact_any;
    if (condition->kind == FACT_BOOL && condition->known)
        return infer_expression(in,
                                condition->as.integer ? node->as.branch.then_branch : otherwise);
    Ways ways;
    ways_begin(in, &ways);
    ways.covered = true;
    way_end(in, &ways, infer_expression(in, node->as.branch.then_branch));
    way_end(in, &ways, infer_expression(in, otherwise));
    return ways_end(in, &ways);
}

// --- what loops run through

const Fact *infer_element(Inference *in, const Fact *fact, bool *some) {
    *some = false;
    if (fact->kind == FACT_RANGE) {
        int64_t low = fact->as.range.low, high = fact->as.range.high;
        *some = size_is_known(low) && size_is_known(high) && low < high;
        return fact_kind(&in->arena, FACT_INT);
    }
    if (fact->kind == FACT_STRING) return fact;
    if ((fact->kind == FACT_LIST || fact->kind == FACT_TUPLE) && infer_members_known(in, fact)) {
        size_t count = fact->as.list.count;
        const Fact *element = count ? fact->as.list.items[0] : &fact_any;
        for (size_t i = 1; i < count; i++)
            element = fact_join(&in->arena, element, fact->as.list.items[i]);
        *some = count > 0;
        return element;
    }
    if (!fact_is_array(fact)) return &fact_any;
    TensorType type = fact->as.tensor.type;
    ASSERT(type.shape.rank > 0 && type.shape.rank <= RANK_MAX);
    *some = size_is_known(type.shape.dims[0]) && type.shape.dims[0] > 0;
    for (int i = 1; i < type.shape.rank; i++) type.shape.dims[i - 1] = type.shape.dims[i];
    type.shape.rank--;
    bool plain = type.shape.rank == 0;
    if (plain && type.dtype == DTYPE_COUNT) return &fact_any;
    if (plain && type.dtype == DTYPE_BOOL) return fact_kind(&in->arena, FACT_BOOL);
    if (plain && dtype_kind(type.dtype) == DTYPE_KIND_INT) return fact_kind(&in->arena, FACT_INT);
    return fact_tensor(&in->arena, type.dtype, &type.shape);
}

// --- jumps and blocks

static void infer_return(Inference *in, Node *node) {
    const Fact *fact = infer_expression(in, node->as.returned.value);
    Activation *activation = in->activation;
    ASSERT(activation != NULL);
    activation->result =
        activation->result ? fact_join(&in->arena, activation->result, fact) : fact;
    in->left |= LEFT_CALL;
    in->dead = true;
}

static void infer_with(Inference *in, Node *node) {
    infer_expression(in, node->as.with.argument);
    infer_block(in, node->as.with.body);
}

static const Fact *local_function(Inference *in, FunctionNode *function) {
    Fact *fact = fact_new(&in->arena, FACT_FUNCTION);
    fact->as.function.node = function;
    fact->as.function.activation = in->activation->serial;
    return fact;
}

const Fact *infer_block(Inference *in, Node *block) {
    if (!block) return &fact_none;
    if (block->kind != NODE_BLOCK) return infer_expression(in, block);
    NodeList statements = block->as.block.statements;
    const Fact *fact = &fact_none;
    for (size_t i = 0; i < statements.count; i++) {
        Node *node = statements.items[i];
        bool local = node->kind == NODE_FUNCTION && node->as.function->binding &&
                     node->as.function->binding->kind == BINDING_LOCAL;
        if (local)
            infer_write(in, node->as.function->binding, local_function(in, node->as.function));
    }
    for (size_t i = 0; i < statements.count && !in->dead; i++)
        fact = infer_statement(in, statements.items[i]);
    return in->dead ? &fact_any : fact;
}

const Fact *infer_statement(Inference *in, Node *node) {
    if (in->dead || !infer_spend(in)) return &fact_any;
    switch (node->kind) {
    case NODE_LET: infer_let(in, node); break;
    case NODE_TENSOR_DECLARATION: infer_tensor(in, node); break;
    case NODE_ASSIGN: return infer_assign(in, node);
    case NODE_EXPRESSION_STATEMENT: return infer_expression(in, node->as.expression.value);
    case NODE_WHILE:
    case NODE_LOOP:
    case NODE_FOR: infer_loop(in, node); break;
    case NODE_BREAK:
    case NODE_CONTINUE: infer_leave_loop(in); break;
    case NODE_RETURN: infer_return(in, node); break;
    case NODE_WITH: infer_with(in, node); break;
    case NODE_LEARN: infer_learn(in, node); return &fact_any;
    case NODE_PROGRAM: infer_program_block(in, node->as.program); break;
    case NODE_BENCH: {
        Ways ways;
        ways_begin(in, &ways);
        infer_block(in, node->as.section.function->body);
        way_end(in, &ways, &fact_none);
        ways_end(in, &ways);
        break;
    }
    case NODE_FACT:
    case NODE_ONE_OF:
    case NODE_DRAWN:
    case NODE_RETRACT:
    case NODE_INFER:
    case NODE_ENTITY:
    case NODE_RELATION:
    case NODE_RULE:
    case NODE_FUNCTION:
    case NODE_STRUCT:
    case NODE_IMPL:
    case NODE_IMPORT:
    case NODE_TEST:
    case NODE_MAIN: break;
    default: return infer_expression(in, node);
    }
    return &fact_none;
}
