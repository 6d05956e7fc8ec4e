// Expressions: every name in them is resolved, every block in them gets its slots.
#include <stdlib.h>

#include "check/equation_checker.h"
#include "check/logic_checker.h"

static void check_expressions(Checker *checker, const NodeList *list) {
    for (size_t i = 0; i < list->count; i++) check_expression(checker, list->items[i]);
}

static int struct_field_find(const Node *structure, const Word *field) {
    ASSERT(structure->kind == NODE_STRUCT);
    for (size_t i = 0; i < structure->as.structure.field_count; i++)
        if (strcmp(structure->as.structure.fields[i].text, field->text) == 0) return (int)i;
    return -1;
}

static void check_struct_field(Checker *checker, const Binding *type, const Word *field) {
    ASSERT(type->kind == BINDING_STRUCT);
    const Node *structure = type->declaration;
    if (struct_field_find(structure, field) >= 0) return;
    size_t count = structure->as.structure.field_count;
    const char **names = arena_allocate(checker->arena, count * sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = structure->as.structure.fields[i].text;
    SCOPED_TEXT(help);
    catalog_fields_help(field->text, names, count, &help);
    ReportExtra extra = {.help = text_get(&help),
                         .note = "the struct is here",
                         .note_span = structure->as.structure.name.span};
    report(checker, STATUS_NAME, field->span, &extra, "struct %s has no field `%s`",
           type->word.text, field->text);
}

static void check_struct_literal(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_STRUCT_LITERAL);
    Binding *type =
        struct_resolve(checker, node->as.struct_literal.module, &node->as.struct_literal.type);
    node->as.struct_literal.binding = type;
    for (size_t i = 0; i < node->as.struct_literal.type_count; i++)
        check_type(checker, node->as.struct_literal.type_arguments[i], NULL);
    for (size_t i = 0; i < node->as.struct_literal.count; i++) {
        const Word *field = &node->as.struct_literal.names[i];
        check_expression(checker, node->as.struct_literal.values[i]);
        if (type) check_struct_field(checker, type, field);
        for (size_t j = 0; j < i; j++)
            if (strcmp(field->text, node->as.struct_literal.names[j].text) == 0)
                report(checker, STATUS_NAME, field->span, NULL, "field `%s` is given twice",
                       field->text);
    }
}

void check_pattern(Checker *checker, Pattern *pattern) {
    if (!pattern) return;
    switch (pattern->kind) {
    case PATTERN_BIND: pattern->binding = scope_declare(checker, &pattern->name, NULL); break;
    case PATTERN_LITERAL: check_expression(checker, pattern->low); break;
    case PATTERN_RANGE:
        check_expression(checker, pattern->low);
        check_expression(checker, pattern->high);
        break;
    case PATTERN_STRUCT:
        pattern->binding = struct_resolve(checker, pattern->module, &pattern->name);
        for (size_t i = 0; i < pattern->part_count; i++)
            if (pattern->binding)
                check_struct_field(checker, pattern->binding, &pattern->fields[i]);
        break;
    default: break;
    }
    for (size_t i = 0; i < pattern->part_count; i++) check_pattern(checker, pattern->parts[i]);
}

static void check_match(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_MATCH);
    check_expression(checker, node->as.match.subject);
    for (size_t i = 0; i < node->as.match.count; i++) {
        MatchArm *arm = &node->as.match.arms[i];
        Scope scope = {0};
        scope_push(checker, &scope);
        arm->first_slot = checker->slot_next;
        check_pattern(checker, arm->pattern);
        check_expression(checker, arm->guard);
        check_node(checker, arm->body);
        arm->slot_count = scope_pop(checker);
    }
}

static void check_try(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_TRY);
    check_node(checker, node->as.attempt.body);
    Scope scope = {0};
    scope_push(checker, &scope);
    if (node->as.attempt.name.text)
        node->as.attempt.binding = scope_declare(checker, &node->as.attempt.name, NULL);
    check_node(checker, node->as.attempt.handler);
    scope_pop(checker);
}

static bool is_unknown(Checker *checker, const Node *place) {
    return place && place->kind == NODE_NAME && !name_candidates(checker, &place->as.name.word);
}

// Indexes of an equation are marked by now: what is left without a meaning may be a constant.
static bool is_place(Checker *checker, const Node *object, const Node *place, size_t dimension) {
    if (logic_is_place(checker, object, place, dimension)) return true;
    return is_unknown(checker, place) && (logic_is_constant(checker, &place->as.name.word) ||
                                          logic_takes_any_name(checker, object));
}

static void check_index(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_INDEX);
    check_expression(checker, node->as.index.object);
    bool of_names = logic_names_relation(checker, node->as.index.object) ||
                    logic_is_embedding(checker, node->as.index.object);
    for (size_t i = 0; i < node->as.index.count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        if (is_place(checker, node->as.index.object, subscript->index, i))
            node_make_string(subscript->index);
        if (is_unknown(checker, subscript->index))
            report_unknown(checker, &subscript->index->as.name.word,
                           of_names ? WANTED_PLACE : WANTED_INDEX);
        else
            check_expression(checker, subscript->index);
        check_expression(checker, subscript->start);
        check_expression(checker, subscript->stop);
        check_expression(checker, subscript->step);
    }
}

// What a program block has no equation for.
static void check_program_field(Checker *checker, const Node *node) {
    const Node *object = node->as.field.object;
    const Binding *binding = object->kind == NODE_NAME ? object->as.name.binding : NULL;
    const Node *block = binding ? binding->declaration : NULL;
    if (!block || block->kind != NODE_PROGRAM) return;
    const ProgramNode *program = block->as.program;
    const Word *name = &node->as.field.name;
    if (program_find_name(program, name) >= 0) return;
    const char **names = arena_allocate(checker->arena, program->named * sizeof *names);
    for (size_t i = 0; i < program->named; i++) names[i] = program->names[i].text;
    const char *near = catalog_nearest(name->text, names, program->named);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : NULL};
    report(checker, STATUS_NAME, name->span, &extra, "the program %s has no equation for `%s`",
           binding->word.text, name->text);
}

static void check_field(Checker *checker, Node *node) {
    check_receiver(checker, node->as.field.object);
    check_program_field(checker, node);
    node->as.field.member = name_find_member(checker, node->as.field.object, &node->as.field.name);
}

static void check_branch(Checker *checker, Node *node) {
    for (; node && node->kind == NODE_IF; node = node->as.branch.else_branch) {
        check_expression(checker, node->as.branch.condition);
        check_node(checker, node->as.branch.then_branch);
    }
    check_node(checker, node);
}

// (alice, bob) in Parent: names that facts have mentioned stand for themselves.
static void take_members(Checker *checker, const Node *node) {
    bool tests = node->op == OPERATOR_IN || node->op == OPERATOR_NOT_IN;
    if (!tests || !logic_names_relation(checker, node->as.binary.right)) return;
    Node *left = node->as.binary.left, **items = &left;
    size_t count = 1;
    if (left->kind == NODE_TUPLE) {
        items = left->as.list.items;
        count = left->as.list.count;
    }
    for (size_t i = 0; i < count; i++) {
        if (logic_is_place(checker, node->as.binary.right, items[i], i)) node_make_string(items[i]);
        if (is_unknown(checker, items[i]))
            report_unknown(checker, &items[i]->as.name.word, WANTED_PLACE);
    }
}

// Operators chain to the left, as deep as the text is long: walked down in a loop.
static void check_binary(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_BINARY || node->kind == NODE_LOGICAL);
    SCOPED_MEMORY VECTOR(Node *) rights = {0};
    for (; node->kind == NODE_BINARY || node->kind == NODE_LOGICAL; node = node->as.binary.left) {
        take_members(checker, node);
        VECTOR_PUSH(&rights, node->as.binary.right);
    }
    check_expression(checker, node);
    while (rights.count > 0) check_expression(checker, rights.items[--rights.count]);
}

void check_receiver(Checker *checker, Node *node) {
    if (node->kind == NODE_NAME)
        name_resolve_node(checker, node, false);
    else
        check_expression(checker, node);
}

void check_node(Checker *checker, Node *node) {
    if (!node) return;
    switch (node->kind) {
    case NODE_INT:
    case NODE_FLOAT:
    case NODE_BOOL:
    case NODE_NONE:
    case NODE_STRING:
    case NODE_POSITION:
    case NODE_EQUATION: break;
    case NODE_FORMAT_STRING: check_expressions(checker, &node->as.format_string.values); break;
    case NODE_NAME:
        if (logic_take_member(checker, node)) break;
        name_resolve_node(checker, node, false);
        name_want_value(checker, node);
        break;
    case NODE_LIST:
    case NODE_TUPLE: check_expressions(checker, &node->as.list); break;
    case NODE_DICT:
        check_expressions(checker, &node->as.dict.keys);
        check_expressions(checker, &node->as.dict.values);
        break;
    case NODE_COMPREHENSION: check_for(checker, node); break;
    case NODE_UNARY: check_expression(checker, node->as.binary.left); break;
    case NODE_BINARY:
    case NODE_LOGICAL: check_binary(checker, node); break;
    case NODE_RANGE:
        check_expression(checker, node->as.range.low);
        check_expression(checker, node->as.range.high);
        break;
    case NODE_CAST:
        check_expression(checker, node->as.cast.value);
        check_type(checker, node->as.cast.type, NULL);
        break;
    case NODE_CALL: check_call(checker, node); break;
    case NODE_METHOD_CALL: check_method_call(checker, node); break;
    case NODE_FIELD: check_field(checker, node); break;
    case NODE_INDEX: check_index(checker, node); break;
    case NODE_PATH: check_path(checker, node); break;
    case NODE_STRUCT_LITERAL: check_struct_literal(checker, node); break;
    case NODE_LAMBDA: check_function(checker, node->as.function); break;
    case NODE_IF: check_branch(checker, node); break;
    case NODE_MATCH: check_match(checker, node); break;
    case NODE_TRY: check_try(checker, node); break;
    case NODE_BLOCK: check_block(checker, node); break;
    case NODE_QUERY: check_query(checker, node, false); break;
    case NODE_ASK: check_expression(checker, node->as.ask.value); break;
    default: check_statement(checker, node); break;
    }
}

void check_expression(Checker *checker, Node *node) {
    check_node(checker, node);
    query_use_value(node);
}
