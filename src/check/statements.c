// Statements: what declares a name, what assigns one, and where statements may stand.
#include "check/equation_checker.h"
#include "check/logic_checker.h"

// Functions of a block may be used above their text, within the block.
static void declare_local_hoisted(Checker *checker, Node *block) {
    for (size_t i = 0; i < block->as.block.statements.count; i++) {
        Node *node = block->as.block.statements.items[i];
        if (node->kind != NODE_FUNCTION) continue;
        FunctionNode *function = node->as.function;
        checker->scope->hoists = true;
        function->binding = scope_declare_new(checker, BINDING_LOCAL, &function->name);
        function->binding->declaration = node;
    }
}

static void warn_unused_start(Checker *checker, const Node *node) {
    const Node *value = node->as.expression.value;
    if (value->kind == NODE_CALL || value->kind == NODE_METHOD_CALL) return;
    report_warning(checker, node->span, NULL,
                   "this starts a new statement; end the line above with the operator");
}

void warn_lost(Checker *checker, const Node *node) {
    for (; node && node->kind == NODE_IF; node = node->as.branch.else_branch)
        warn_lost(checker, node->as.branch.then_branch);
    if (!node) return;
    const NodeList *statements = &node->as.block.statements;
    switch (node->kind) {
    case NODE_EXPRESSION_STATEMENT:
        if (node->as.expression.unused_start) warn_unused_start(checker, node);
        warn_lost(checker, node->as.expression.value);
        break;
    case NODE_BLOCK:
        if (statements->count > 0) warn_lost(checker, statements->items[statements->count - 1]);
        break;
    case NODE_MATCH:
        for (size_t i = 0; i < node->as.match.count; i++)
            warn_lost(checker, node->as.match.arms[i].body);
        break;
    case NODE_TRY:
        warn_lost(checker, node->as.attempt.body);
        warn_lost(checker, node->as.attempt.handler);
        break;
    case NODE_WITH: warn_lost(checker, node->as.with.body); break;
    default: break;
    }
}

void check_statements(Checker *checker, Node *block) {
    declare_local_hoisted(checker, block);
    NodeList *statements = &block->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        Node *node = statements->items[i];
        if (i + 1 < statements->count) warn_lost(checker, node);
        check_statement(checker, node);
    }
}

// { {} }: whoever writes that means a dictionary.
static void warn_empty_value(Checker *checker, const Node *block) {
    const NodeList *statements = &block->as.block.statements;
    const Node *only = statements->count == 1 ? statements->items[0] : NULL;
    const Node *value =
        only && only->kind == NODE_EXPRESSION_STATEMENT ? only->as.expression.value : NULL;
    if (!value || value->kind != NODE_BLOCK || value->as.block.statements.count > 0) return;
    ReportExtra extra = {.help = "an empty dictionary in this place is written ({})"};
    report_warning(checker, value->span, &extra, "this is an empty block, whose value is none");
}

void check_block(Checker *checker, Node *block) {
    if (!block) return;
    warn_empty_value(checker, block);
    Scope scope = {0};
    scope_push(checker, &scope);
    block->as.block.first_slot = checker->slot_next;
    check_statements(checker, block);
    block->as.block.slot_count = scope_pop(checker);
}

static void warn_replaced(Checker *checker, const Pattern *pattern, const Node *node) {
    const Entry *entry = symbol_top(checker, &pattern->name);
    if (!entry || entry->scope != checker->scope || checker->scope->global) return;
    const Binding *binding = entry->binding;
    if (binding->kind != BINDING_LOCAL || binding->used || binding->assigned) return;
    if (!binding->declaration || binding->declaration->kind != NODE_LET ||
        node->as.let.value == NULL)
        return;
    ReportExtra extra = {.note = "the first is here", .note_span = binding->word.span};
    report_warning(checker, pattern->name.span, &extra,
                   "this replaces `%s`, whose value was never used", pattern->name.text);
}

static bool calls_builtin(const Node *node, const char *name) {
    if (node->kind != NODE_CALL || node->as.call.callee->kind != NODE_NAME) return false;
    const Binding *binding = node->as.call.callee->as.name.binding;
    return binding && binding->kind == BINDING_BUILTIN &&
           strcmp(binding->builtin->signature.name, name) == 0;
}

// learnable(e) makes a parameter: the name that takes it is declared as one.
static bool makes_parameter(const Node *value) {
    return value && calls_builtin(value, "learnable");
}

static void check_let(Checker *checker, Node *node) {
    Pattern *pattern = node->as.let.pattern;
    check_type(checker, node->as.let.type, NULL);
    check_expression(checker, node->as.let.value);
    if (pattern->kind == PATTERN_BIND) {
        warn_replaced(checker, pattern, node);
        pattern->binding = scope_declare(checker, &pattern->name, node);
        pattern->binding->type = node->as.let.type;
        pattern->binding->awaits = node->as.let.value ? NULL : node->as.let.type;
        pattern->binding->parameter = makes_parameter(node->as.let.value);
    } else {
        check_pattern(checker, pattern);
    }
}

static void check_tensor(Checker *checker, Node *node) {
    check_type(checker, node->as.tensor.type, NULL);
    check_expression(checker, node->as.tensor.value);
    node->as.tensor.binding = scope_declare(checker, &node->as.tensor.name, node);
    node->as.tensor.binding->parameter = node->as.tensor.type->learnable;
}

static bool may_define(const Checker *checker, const Node *node) {
    return node->as.assign.define || node->as.assign.result || checker->place != PLACE_FUNCTION;
}

// The first value of a variable is converted where it is assigned, perhaps in another function than
// that of the variables that its dimensions name.
static void use_dimensions(Checker *checker, const TypeNode *type) {
    if (!type) return;
    for (size_t i = 0; i < type->dimension_count; i++)
        if (type->dimensions[i].variable) binding_use(checker, type->dimensions[i].variable);
    for (size_t i = 0; i < type->argument_count; i++) use_dimensions(checker, type->arguments[i]);
}

// A function changes a variable that is not its own; main and tests run in turn, as the top level.
static void note_shared(const Checker *checker, Binding *binding) {
    bool own = binding->kind == BINDING_LOCAL ? binding->owner == checker->function
                                              : checker->place != PLACE_FUNCTION;
    binding->shared |= !own;
}

static void assign_name(Checker *checker, Node *target, const Node *node) {
    Word *word = &target->as.name.word;
    Binding *binding = scope_find_variable(checker, word);
    const Entry *entry = symbol_top(checker, word);
    bool here = entry && entry->pending && entry->scope == checker->scope;
    if (!binding && node->op == OPERATOR_NONE && (here || may_define(checker, node)))
        binding = scope_declare(checker, word, target);
    if (binding) {
        note_shared(checker, binding);
        bool makes = makes_parameter(node->as.assign.value) && node->op == OPERATOR_NONE;
        target->as.name.parameter = binding->parameter && !makes;
        binding->parameter |= makes && binding->declaration == target;
        target->as.name.binding = binding;
        target->as.name.awaits = binding->awaits;
        use_dimensions(checker, binding->awaits);
        bool used = binding->used;
        binding_use(checker, binding);
        binding->used = used || node->op != OPERATOR_NONE;
        binding->assigned |= binding->declaration != target;
        return;
    }
    if (node->op != OPERATOR_NONE && entry && !entry->pending) {
        report(checker, STATUS_TYPE, word->span, NULL, "`%s` is not a variable", word->text);
        return;
    }
    if (node->op != OPERATOR_NONE) {
        report_unknown(checker, word, WANTED_VARIABLE);
        return;
    }
    if (!symbol_mark_reported(checker, word)) return;
    SCOPED_TEXT(help);
    text_format(&help, "`let %s = ...` defines it here", word->text);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_NAME, word->span, &extra, "no variable `%s` to assign to", word->text);
}

static void assign_target(Checker *checker, Node *target, const Node *node) {
    if (target->kind == NODE_NAME) {
        assign_name(checker, target, node);
    } else if (target->kind == NODE_TUPLE) {
        for (size_t i = 0; i < target->as.list.count; i++)
            assign_target(checker, target->as.list.items[i], node);
    } else {
        check_expression(checker, target);
        while (target->kind == NODE_INDEX || target->kind == NODE_FIELD)
            target = target->kind == NODE_INDEX ? target->as.index.object : target->as.field.object;
        if (target->kind == NODE_NAME && target->as.name.binding)
            note_shared(checker, target->as.name.binding);
    }
}

// Loops and comprehensions.
void check_for(Checker *checker, Node *node) {
    check_expression(checker, node->as.for_loop.iterable);
    Scope scope = {0};
    scope_push(checker, &scope);
    node->as.for_loop.first_slot = checker->slot_next;
    check_pattern(checker, node->as.for_loop.index);
    check_pattern(checker, node->as.for_loop.pattern);
    check_expression(checker, node->as.for_loop.condition);
    bool loop = node->kind == NODE_FOR; // `break` has no meaning within a comprehension
    checker->loop_depth += loop;
    (loop ? check_node : check_expression)(checker, node->as.for_loop.body);
    if (loop) warn_lost(checker, node->as.for_loop.body);
    ASSERT(checker->loop_depth >= loop);
    checker->loop_depth -= loop;
    node->as.for_loop.slot_count = scope_pop(checker);
}

static void check_loop(Checker *checker, Node *node) {
    check_expression(checker, node->as.loop.condition);
    checker->loop_depth++;
    check_node(checker, node->as.loop.body);
    warn_lost(checker, node->as.loop.body);
    ASSERT(checker->loop_depth > 0);
    checker->loop_depth--;
}

static void check_jump(Checker *checker, const Node *node) {
    if (checker->loop_depth > 0) return;
    report(checker, STATUS_SYNTAX, node->span, NULL, "`%s` stands outside a loop",
           node->kind == NODE_BREAK ? "break" : "continue");
}

static void check_return(Checker *checker, Node *node) {
    if (checker->place == PLACE_TOP)
        report(checker, STATUS_SYNTAX, node->span, NULL, "`return` stands outside a function");
    check_expression(checker, node->as.returned.value);
}

// `with NAME {`: the name is one of the language's words or a value that has a scope.
static void check_with(Checker *checker, Node *node) {
    static const char *const words[] = {"buffer", "device", "no_grad"};
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        known |= strcmp(words[i], node->as.with.word.text) == 0;
    if (!known && !node->as.with.argument) {
        Node *name = arena_allocate(checker->arena, sizeof *name);
        *name = (Node){.kind = NODE_NAME, .span = node->as.with.word.span};
        name->as.name.word = node->as.with.word;
        node->as.with.argument = name;
    } else if (!known) {
        report(checker, STATUS_NAME, node->as.with.word.span, NULL,
               "`with` takes buffer, device or no_grad, not `%s`", node->as.with.word.text);
    } else if (strcmp(node->as.with.word.text, "device") == 0 && !node->as.with.argument) {
        ReportExtra extra = {.help = "with device(\"cpu\") { ... }"};
        report(checker, STATUS_ARITY, node->as.with.word.span, &extra,
               "`with device` names no device");
    }
    check_expression(checker, node->as.with.argument);
    check_block(checker, node->as.with.body);
}

void check_statement(Checker *checker, Node *node) {
    switch (node->kind) {
    case NODE_LET: check_let(checker, node); break;
    case NODE_TENSOR_DECLARATION: check_tensor(checker, node); break;
    case NODE_PROGRAM: check_program_block(checker, node); break;
    case NODE_ASSIGN:
        if (node->as.assign.program) {
            check_program_equation(checker, node);
            break;
        }
        if (equation_begins(checker, node)) {
            check_equation(checker, node);
        } else {
            report_adjacent(checker, node->as.assign.value);
            check_expression(checker, node->as.assign.value);
        }
        assign_target(checker, node->as.assign.target, node);
        break;
    case NODE_EXPRESSION_STATEMENT:
        if (node->as.expression.value->kind == NODE_QUERY)
            check_query(checker, node->as.expression.value, true);
        else if (node->as.expression.value->kind == NODE_ASK)
            check_ask(checker, node->as.expression.value);
        else if (!check_fact(checker, node))
            check_node(checker, node->as.expression.value);
        break;
    case NODE_FACT: check_weighted_fact(checker, node); break;
    case NODE_DRAWN: check_drawn(checker, node); break;
    case NODE_ONE_OF:
        for (size_t i = 0; i < node->as.alternatives.count; i++)
            check_weighted_fact(checker, node->as.alternatives.items[i]);
        break;
    case NODE_RULE: check_rule(checker, node); break;
    case NODE_RELATION: check_relation(checker, node); break;
    case NODE_RETRACT: check_retract(checker, node); break;
    case NODE_INFER:
        for (size_t i = 0; i < node->as.inferred.count; i++)
            check_query(checker, node->as.inferred.items[i], true);
        break;
    case NODE_WHILE:
    case NODE_LOOP: check_loop(checker, node); break;
    case NODE_FOR: check_for(checker, node); break;
    case NODE_BREAK:
    case NODE_CONTINUE: check_jump(checker, node); break;
    case NODE_RETURN: check_return(checker, node); break;
    case NODE_WITH: check_with(checker, node); break;
    case NODE_LEARN: check_learn(checker, node); break;
    case NODE_FUNCTION: check_function(checker, node->as.function); break;
    case NODE_STRUCT: check_struct(checker, node); break;
    case NODE_BENCH: check_block(checker, node->as.section.function->body); break;
    case NODE_ENTITY:
    case NODE_IMPORT:
    case NODE_IMPL:
    case NODE_TEST:
    case NODE_MAIN: break; // check_top's
    default: check_node(checker, node); break;
    }
}
