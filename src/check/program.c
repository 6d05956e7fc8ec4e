// Program blocks: each equation becomes a function of the names that the block gives values, and
// one that gives the variables outside that it reads, so that values are made when they are wanted
// and again when those have changed.
#include <stdlib.h>

#include "check/equation_checker.h"
#include "check/logic_checker.h"
#include "parser/walk.h"

static const struct {
    const char *word;
    Semiring kind;
    bool argument; // a number stands behind it
    bool rules;    // it weighs what rules give, not numbers of equations
} semirings[] = {
    {"real", SEMIRING_REAL, false, false},         {"bool", SEMIRING_BOOL, false, false},
    {"count", SEMIRING_COUNT, false, false},       {"max_prod", SEMIRING_MAX_PROD, false, false},
    {"min_plus", SEMIRING_MIN_PLUS, false, false}, {"prob", SEMIRING_PROB, false, false},
    {"log", SEMIRING_LOG, false, false},           {"exact", SEMIRING_EXACT, false, true},
    {"topk", SEMIRING_TOPK, true, true},           {"sample", SEMIRING_SAMPLE, true, true},
};
enum { SEMIRING_COUNT_OF = sizeof semirings / sizeof *semirings };

static bool check_semiring(Checker *checker, ProgramNode *program) {
    const Word *word = &program->semiring;
    const char *names[SEMIRING_COUNT_OF];
    if (!word->text) return false;
    for (size_t i = 0; i < SEMIRING_COUNT_OF; i++) {
        names[i] = semirings[i].word;
        if (strcmp(word->text, semirings[i].word) != 0) continue;
        program->kind = semirings[i].kind;
        if (semirings[i].argument != (program->argument != NULL))
            report(checker, STATUS_ARITY, word->span, NULL,
                   semirings[i].argument ? "%s takes a number, as in %s(10)" : "%s takes no number",
                   word->text, word->text);
        check_expression(checker, program->argument);
        return semirings[i].rules;
    }
    const char *near = catalog_nearest(word->text, names, SEMIRING_COUNT_OF);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`? ", near);
    text_append_string(&help, "there are ");
    for (size_t i = 0; i < SEMIRING_COUNT_OF; i++)
        text_format(&help, i + 1 < SEMIRING_COUNT_OF ? "%s, " : "%s", names[i]);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_NAME, word->span, &extra, "there is no semiring `%s`", word->text);
    return false;
}

static void check_settings(Checker *checker, const ProgramNode *program) {
    for (size_t i = 0; i < program->setting_count; i++) {
        const Setting *setting = &program->settings[i];
        const char *name = setting->name.text;
        check_expression(checker, setting->value);
        if (strcmp(name, "max_iterations") == 0 || strcmp(name, "tolerance") == 0) continue;
        ReportExtra extra = {.help = "there are max_iterations and tolerance"};
        report(checker, STATUS_NAME, setting->name.span, &extra, "a program has no setting `%s`",
               name);
    }
}

// --- names

int program_find_name(const ProgramNode *program, const Word *word) {
    for (size_t i = 0; i < program->name_count; i++)
        if (strcmp(program->names[i].text, word->text) == 0) return (int)i;
    return -1;
}

static const Word *target_word(const Node *statement) {
    const Node *target = statement->as.assign.target;
    if (target->kind == NODE_INDEX) target = target->as.index.object;
    return target->kind == NODE_NAME ? &target->as.name.word : NULL;
}

static bool is_equation(const Node *statement) {
    if (statement->kind != NODE_ASSIGN || !target_word(statement)) return false;
    bool adds = statement->op == OPERATOR_NONE || statement->op == OPERATOR_ADD;
    return adds && !statement->as.assign.define;
}

static void add_name(Checker *checker, ProgramNode *program, const Node *statement) {
    const Word *word = target_word(statement);
    if (program_find_name(program, word) >= 0) return;
    const Node *target = statement->as.assign.target;
    const Node *object = target->kind == NODE_INDEX ? target->as.index.object : target;
    if (logic_names_relation(checker, object)) {
        ReportExtra extra = {.help = "inside a program a rule says what holds of a relation"};
        report(checker, STATUS_TYPE, word->span, &extra,
               "an equation of a program cannot give the relation %s its rows", word->text);
    }
    program->names[program->name_count++] = *word;
}

// --- the functions of an equation

typedef struct Reads {
    Checker *checker;
    const ProgramNode *program;
    const FunctionNode *function; // that the equation becomes
    VECTOR(int) parameters;
    VECTOR(const Node *) outside;
} Reads;

static void note_parameter(void *context, Node *node) {
    Reads *reads = context;
    int own = node->kind == NODE_NAME ? program_find_name(reads->program, &node->as.name.word) : -1;
    for (size_t i = 0; i < reads->parameters.count; i++)
        if (reads->parameters.items[i] == own) return;
    if (own >= 0) VECTOR_PUSH(&reads->parameters, own);
}

// A parameter of a function within the equation.
static bool is_inner(const Reads *reads, const Binding *binding) {
    ASSERT(reads->function != NULL);
    const FunctionNode *owner = binding->kind == BINDING_LOCAL ? binding->owner : NULL;
    while (owner && owner != reads->function) owner = owner->outer;
    return owner != NULL;
}

static void note_outside(void *context, Node *node) {
    Reads *reads = context;
    if (node->kind != NODE_NAME || program_find_name(reads->program, &node->as.name.word) >= 0)
        return;
    const Binding *binding = node->as.name.binding;
    bool value = binding && (binding_is_variable(binding) || binding->kind == BINDING_DIMENSION ||
                             binding->kind == BINDING_RELATION);
    if (value && is_inner(reads, binding)) return;
    for (size_t i = 0; i < reads->outside.count; i++)
        value &= strcmp(reads->outside.items[i]->as.name.word.text, node->as.name.word.text) != 0;
    if (value) VECTOR_PUSH(&reads->outside, node);
}

// What the checked equation evaluates first is all that it reads.
static void find_outside(Reads *reads, const Node *checked) {
    const Equation *plan =
        checked->kind == NODE_EQUATION ? checked->as.equation.plan : NULL; // NULL: reported
    for (size_t i = 0; plan && i < plan->values.count; i++)
        walk_node(&(Walker){.context = reads, .node = note_outside}, plan->values.items[i]);
}

static Node *lambda_of(Checker *checker, Node *body, size_t parameters) {
    FunctionNode *function = arena_allocate(checker->arena, sizeof *function);
    *function = (FunctionNode){.body = body, .head = body->span, .parameter_count = parameters};
    function->parameters = arena_allocate(checker->arena, (parameters + 1) * sizeof(Parameter));
    memset(function->parameters, 0, (parameters + 1) * sizeof(Parameter));
    Node *node = arena_allocate(checker->arena, sizeof *node);
    *node = (Node){.kind = NODE_LAMBDA, .span = body->span, .height = body->height + 1};
    node->as.function = function;
    return node;
}

static Node *inputs_lambda(Checker *checker, const Reads *reads, Span span) {
    Node *tuple = arena_allocate(checker->arena, sizeof *tuple);
    *tuple = (Node){.kind = NODE_TUPLE, .span = span, .height = 2};
    size_t count = reads->outside.count;
    tuple->as.list.items = arena_allocate(checker->arena, (count + 1) * sizeof(Node *));
    tuple->as.list.count = count;
    for (size_t i = 0; i < count; i++) {
        Node *name = arena_allocate(checker->arena, sizeof *name);
        *name = (Node){.kind = NODE_NAME, .span = reads->outside.items[i]->span, .height = 1};
        name->as.name.word = reads->outside.items[i]->as.name.word;
        tuple->as.list.items[i] = name;
    }
    return lambda_of(checker, tuple, 0);
}

// P.Y, for traces.
static Word function_name(Checker *checker, const ProgramNode *program, int target) {
    SCOPED_TEXT(text);
    text_format(&text, "%s.%s", program->name.text, program->names[target].text);
    Word word = {.length = (uint32_t)text.length, .span = program->names[target].span};
    word.text = arena_copy_string(checker->arena, text_get(&text), text.length);
    return word;
}

static void note_growing(void *context, Node *node) {
    const Reads *reads = context;
    if (node->kind != NODE_INDEX || node->as.index.object->kind != NODE_NAME) return;
    int own = program_find_name(reads->program, &node->as.index.object->as.name.word);
    if (own >= 0) node->as.index.grows = reads->program->growing[own];
}

static void note_reads(Reads *reads, Node *node) {
    walk_node(&(Walker){.context = reads, .node = note_parameter}, node);
    walk_node(&(Walker){.context = reads, .node = note_growing}, node);
}

static void add_equation(Checker *checker, ProgramNode *program, Node *statement) {
    ProgramEquation *equation = &program->equations[program->equation_count++];
    Reads reads = {.checker = checker, .program = program};
    note_reads(&reads, statement->as.assign.value);
    for (size_t i = 0; i < statement->as.assign.sizes.count; i++)
        note_reads(&reads, statement->as.assign.sizes.items[i]);
    *equation = (ProgramEquation){.target = program_find_name(program, target_word(statement)),
                                  .scalar = statement->as.assign.target->kind == NODE_NAME,
                                  .span = statement->span};
    size_t count = reads.parameters.count;
    statement->as.assign.program = true;
    statement->as.assign.semiring = program->kind;
    equation->function = lambda_of(checker, statement, count);
    equation->function->as.function->name = function_name(checker, program, equation->target);
    equation->parameters = arena_allocate(checker->arena, (count + 1) * sizeof(int));
    for (size_t i = 0; i < count; i++) {
        equation->parameters[i] = reads.parameters.items[i];
        equation->function->as.function->parameters[i].name =
            program->names[equation->parameters[i]];
    }
    check_expression(checker, equation->function);
    reads.function = equation->function->as.function;
    find_outside(&reads, statement);
    equation->inputs = inputs_lambda(checker, &reads, equation->span);
    check_expression(checker, equation->inputs);
    VECTOR_FREE(&reads.parameters);
    VECTOR_FREE(&reads.outside);
}

// The equation is the value of its function; its left side only says in which order.
void check_program_equation(Checker *checker, Node *node) {
    const Node *target = node->as.assign.target;
    for (size_t i = 0; target->kind == NODE_INDEX && i < target->as.index.count; i++) {
        const Node *index = target->as.index.subscripts[i].index;
        bool place = !index || index->kind == NODE_NONE ||
                     logic_is_place(checker, target->as.index.object, index, i);
        if (!place) continue;
        report(checker, STATUS_SYNTAX, target->as.index.subscripts[i].span,
               &(ReportExtra){.help = "as in X[0, i] and X[t+1, i]"},
               "the left side of a program's equation has indexes and numbers");
        return;
    }
    node->as.assign.arrow |= target->kind == NODE_INDEX;
    check_equation(checker, node);
    *node = *node->as.assign.value;
}

static void report_item(Checker *checker, const Node *statement) {
    bool declared = statement->kind == NODE_RELATION || statement->kind == NODE_ENTITY;
    ReportExtra extra = {
        .help = declared ? "declare it outside the program, whose facts and rules then know it"
                         : "an equation is written Y[i] = ..., or Y = ... where it has no index"};
    report(checker, STATUS_SYNTAX, statement->span, &extra,
           "a program holds equations, rules, facts and settings, not this");
}

static bool is_logic(const Node *statement) {
    return node_is_clause(statement) || statement->kind == NODE_EXPRESSION_STATEMENT;
}

// The names that equations give values, and what these say of each other.
static void declare_names(Checker *checker, ProgramNode *program) {
    const NodeList *statements = &program->statements;
    size_t room = 2 * statements->count + 1, count = 0;
    program->names = arena_allocate(checker->arena, room * sizeof(Word));
    program->growing = arena_allocate(checker->arena, room * sizeof(uint32_t));
    program->before = arena_allocate(checker->arena, room * sizeof(int));
    memset(program->growing, 0, room * sizeof(uint32_t));
    Node **equations = arena_allocate(checker->arena, room * sizeof(Node *));
    for (size_t i = 0; i < statements->count; i++) {
        Node *statement = statements->items[i];
        if (!is_equation(statement)) continue;
        equations[count++] = statement;
        add_name(checker, program, statement);
    }
    program->named = program->name_count;
    for (size_t i = 0; i < program->name_count; i++) program->before[i] = -1;
    check_program_parts(checker, program, equations, count);
}

static void check_logic_statement(Checker *checker, const Node *block, Node *statement) {
    ASSERT(is_logic(statement));
    if (statement->kind == NODE_RULE) statement->as.clause->block = block->span.begin;
    check_statement(checker, statement);
}

void check_program_block(Checker *checker, Node *node) {
    ProgramNode *program = node->as.program;
    const NodeList *statements = &program->statements;
    bool rules_only = check_semiring(checker, program);
    check_settings(checker, program);
    if (!rules_only) declare_names(checker, program);
    program->equations =
        arena_allocate(checker->arena, (statements->count + 1) * sizeof(ProgramEquation));
    for (size_t i = 0; i < statements->count; i++) {
        Node *statement = statements->items[i];
        if (is_equation(statement) && rules_only)
            report(checker, STATUS_TYPE, statement->span, NULL,
                   "%s weighs what rules give: a program over it has no equations",
                   program->semiring.text);
        else if (is_equation(statement))
            add_equation(checker, program, statement);
        else if (is_logic(statement))
            check_logic_statement(checker, node, statement);
        else
            report_item(checker, statement);
        if (statement->kind == NODE_EXPRESSION_STATEMENT) report_item(checker, statement);
    }
    program->binding = scope_declare(checker, &program->name, node);
}
