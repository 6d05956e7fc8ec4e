// Which children each kind of node has.
#include "parser/walk.h"

static void walk_list(const Walker *walker, NodeList list) {
    for (size_t i = 0; i < list.count; i++) walk_node(walker, list.items[i]);
}

static void walk_type(const Walker *walker, TypeNode *type) {
    if (!type) return;
    if (walker->type) walker->type(walker->context, type);
    walk_node(walker, type->module);
    for (size_t i = 0; i < type->argument_count; i++) walk_type(walker, type->arguments[i]);
}

static void walk_types(const Walker *walker, TypeNode **types, size_t count) {
    for (size_t i = 0; i < count; i++) walk_type(walker, types[i]);
}

static void walk_pattern(const Walker *walker, Pattern *pattern) {
    if (!pattern) return;
    if (walker->pattern) walker->pattern(walker->context, pattern);
    walk_node(walker, pattern->module);
    walk_node(walker, pattern->low);
    walk_node(walker, pattern->high);
    for (size_t i = 0; i < pattern->part_count; i++) walk_pattern(walker, pattern->parts[i]);
}

static void walk_function(const Walker *walker, FunctionNode *function) {
    if (walker->function) walker->function(walker->context, function);
    for (size_t i = 0; i < function->parameter_count; i++) {
        walk_type(walker, function->parameters[i].type);
        walk_node(walker, function->parameters[i].fallback);
    }
    walk_type(walker, function->result);
    walk_node(walker, function->body);
}

static void walk_arguments(const Walker *walker, const Argument *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) walk_node(walker, arguments[i].value);
}

static void walk_subscripts(const Walker *walker, const Node *node) {
    for (size_t i = 0; i < node->as.index.count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        walk_node(walker, subscript->index);
        walk_node(walker, subscript->start);
        walk_node(walker, subscript->stop);
        walk_node(walker, subscript->step);
    }
}

static void walk_dictionary(const Walker *walker, const Node *node) {
    ASSERT(node->as.dict.keys.count == node->as.dict.values.count);
    for (size_t i = 0; i < node->as.dict.keys.count; i++) {
        walk_node(walker, node->as.dict.keys.items[i]);
        walk_node(walker, node->as.dict.values.items[i]);
    }
}

static void walk_struct_literal(const Walker *walker, const Node *node) {
    walk_node(walker, node->as.struct_literal.module);
    walk_types(walker, node->as.struct_literal.type_arguments, node->as.struct_literal.type_count);
    for (size_t i = 0; i < node->as.struct_literal.count; i++)
        walk_node(walker, node->as.struct_literal.values[i]);
}

static void walk_match(const Walker *walker, const Node *node) {
    walk_node(walker, node->as.match.subject);
    for (size_t i = 0; i < node->as.match.count; i++) {
        walk_pattern(walker, node->as.match.arms[i].pattern);
        walk_node(walker, node->as.match.arms[i].guard);
        walk_node(walker, node->as.match.arms[i].body);
    }
}

static void walk_for(const Walker *walker, const Node *node) {
    walk_pattern(walker, node->as.for_loop.index);
    walk_pattern(walker, node->as.for_loop.pattern);
    walk_node(walker, node->as.for_loop.iterable);
    walk_node(walker, node->as.for_loop.condition);
    walk_node(walker, node->as.for_loop.body);
}

static void walk_learn(const Walker *walker, const Node *node) {
    for (size_t i = 0; i < node->as.learn.count; i++) {
        walk_node(walker, node->as.learn.settings[i].value);
        walk_node(walker, node->as.learn.settings[i].of);
    }
    walk_node(walker, node->as.learn.body);
}

static void walk_struct(const Walker *walker, const Node *node) {
    for (size_t i = 0; i < node->as.structure.field_count; i++) {
        walk_type(walker, node->as.structure.types[i]);
        walk_node(walker, node->as.structure.fallbacks[i]);
    }
}

static void walk_impl(const Walker *walker, const Node *node) {
    walk_node(walker, node->as.impl.module);
    walk_types(walker, node->as.impl.type_arguments, node->as.impl.type_count);
    for (size_t i = 0; i < node->as.impl.function_count; i++)
        walk_node(walker, node->as.impl.functions[i]);
}

static void walk_clause(const Walker *walker, const Clause *clause) {
    ASSERT(clause->atom.call != NULL);
    walk_node(walker, clause->weight);
    walk_node(walker, clause->atom.call);
    for (size_t i = 0; i < clause->goal_count; i++) {
        walk_node(walker, clause->goals[i].name);
        walk_node(walker, clause->goals[i].value);
    }
}

static void walk_relation(const Walker *walker, const Node *node) {
    for (size_t i = 0; i < node->as.relation.count; i++)
        walk_type(walker, node->as.relation.types[i]);
    walk_type(walker, node->as.relation.embed);
}

static void walk_program(const Walker *walker, const ProgramNode *program) {
    walk_node(walker, program->argument);
    for (size_t i = 0; i < program->setting_count; i++)
        walk_node(walker, program->settings[i].value);
    walk_list(walker, program->statements);
}

static void walk_expression(const Walker *walker, Node *node) {
    switch (node->kind) {
    case NODE_FORMAT_STRING: walk_list(walker, node->as.format_string.values); break;
    case NODE_LIST:
    case NODE_TUPLE: walk_list(walker, node->as.list); break;
    case NODE_DICT: walk_dictionary(walker, node); break;
    case NODE_UNARY:
    case NODE_BINARY:
    case NODE_LOGICAL:
        walk_node(walker, node->as.binary.left);
        walk_node(walker, node->as.binary.right);
        break;
    case NODE_RANGE:
        walk_node(walker, node->as.range.low);
        walk_node(walker, node->as.range.high);
        break;
    case NODE_ASK: walk_node(walker, node->as.ask.value); break;
    case NODE_CAST:
        walk_node(walker, node->as.cast.value);
        walk_type(walker, node->as.cast.type);
        break;
    case NODE_COMPREHENSION: walk_for(walker, node); break;
    case NODE_CALL:
        walk_node(walker, node->as.call.callee);
        walk_arguments(walker, node->as.call.arguments, node->as.call.count);
        break;
    case NODE_METHOD_CALL:
        walk_node(walker, node->as.method.receiver);
        walk_arguments(walker, node->as.method.arguments, node->as.method.count);
        break;
    case NODE_FIELD: walk_node(walker, node->as.field.object); break;
    case NODE_EQUATION: walk_node(walker, node->as.equation.value); break;
    case NODE_INDEX:
        walk_node(walker, node->as.index.object);
        walk_subscripts(walker, node);
        break;
    case NODE_PATH:
        walk_node(walker, node->as.path.module);
        walk_types(walker, node->as.path.type_arguments, node->as.path.type_count);
        break;
    case NODE_STRUCT_LITERAL: walk_struct_literal(walker, node); break;
    case NODE_LAMBDA: walk_function(walker, node->as.function); break;
    case NODE_IF:
        walk_node(walker, node->as.branch.condition);
        walk_node(walker, node->as.branch.then_branch);
        walk_node(walker, node->as.branch.else_branch);
        break;
    case NODE_MATCH: walk_match(walker, node); break;
    case NODE_TRY:
        walk_node(walker, node->as.attempt.body);
        walk_node(walker, node->as.attempt.handler);
        break;
    case NODE_BLOCK: walk_list(walker, node->as.block.statements); break;
    case NODE_QUERY:
        walk_node(walker, node->as.query.program);
        walk_clause(walker, node->as.query.clause);
        walk_node(walker, node->as.query.temperature);
        break;
    default: break; // constants and names have nothing below them
    }
}

static void walk_statement(const Walker *walker, Node *node) {
    switch (node->kind) {
    case NODE_LET:
        walk_pattern(walker, node->as.let.pattern);
        walk_type(walker, node->as.let.type);
        walk_node(walker, node->as.let.value);
        break;
    case NODE_TENSOR_DECLARATION:
        walk_type(walker, node->as.tensor.type);
        walk_node(walker, node->as.tensor.value);
        break;
    case NODE_ASSIGN:
        walk_node(walker, node->as.assign.target);
        walk_node(walker, node->as.assign.value);
        break;
    case NODE_EXPRESSION_STATEMENT: walk_node(walker, node->as.expression.value); break;
    case NODE_WHILE:
    case NODE_LOOP:
        walk_node(walker, node->as.loop.condition);
        walk_node(walker, node->as.loop.body);
        break;
    case NODE_FOR: walk_for(walker, node); break;
    case NODE_RETURN: walk_node(walker, node->as.returned.value); break;
    case NODE_WITH:
        walk_node(walker, node->as.with.argument);
        walk_node(walker, node->as.with.body);
        break;
    case NODE_LEARN: walk_learn(walker, node); break;
    case NODE_FUNCTION: walk_function(walker, node->as.function); break;
    case NODE_STRUCT: walk_struct(walker, node); break;
    case NODE_IMPL: walk_impl(walker, node); break;
    case NODE_RULE:
    case NODE_FACT:
    case NODE_DRAWN:
    case NODE_RETRACT: walk_clause(walker, node->as.clause); break;
    case NODE_ONE_OF: walk_list(walker, node->as.alternatives); break;
    case NODE_INFER: walk_list(walker, node->as.inferred); break;
    case NODE_RELATION: walk_relation(walker, node); break;
    case NODE_PROGRAM: walk_program(walker, node->as.program); break;
    case NODE_TEST:
    case NODE_BENCH:
    case NODE_MAIN: walk_function(walker, node->as.section.function); break;
    default: break;
    }
}

void walk_node(const Walker *walker, Node *node) {
    if (!node) return;
    if (walker->node) walker->node(walker->context, node);
    if (node->kind <= NODE_BLOCK)
        walk_expression(walker, node);
    else
        walk_statement(walker, node);
}
