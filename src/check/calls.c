// Calls: what is called, and whether the arguments can fit. Only what is certain is an error: the
// callee is a function of the program or a builtin, and no overload can take such arguments.
#include "check/logic_checker.h"

typedef struct Arguments {
    const Argument *items;
    size_t count, positional;
    Span span; // of the list
    const Word *callee;
} Arguments;

static void check_arguments(Checker *checker, const Arguments *arguments) {
    for (size_t i = 0; i < arguments->count; i++) {
        const Argument *argument = &arguments->items[i];
        check_expression(checker, argument->value);
        for (size_t j = 0; argument->name.text && j < i; j++)
            if (arguments->items[j].name.text &&
                strcmp(arguments->items[j].name.text, argument->name.text) == 0)
                report(checker, STATUS_ARITY, argument->name.span, NULL,
                       "argument `%s` is given twice", argument->name.text);
    }
}

static Arguments arguments_of(const Argument *items, size_t count, Span span, const Word *callee) {
    Arguments arguments = {.items = items, .count = count, .span = span, .callee = callee};
    ASSERT(count == 0 || items != NULL);
    while (arguments.positional < count && !items[arguments.positional].name.text)
        arguments.positional++;
    return arguments;
}

// Which parameter of the function an argument name means, or -1.
static int parameter_find(const FunctionNode *function, const Word *name) {
    ASSERT(name->text != NULL);
    for (size_t i = 0; i < function->parameter_count; i++)
        if (strcmp(function->parameters[i].name.text, name->text) == 0) return (int)i;
    return -1;
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static void report_count(Checker *checker, const Arguments *arguments,
                         const FunctionNode *function) {
    ASSERT(function != NULL);
    size_t required = 0, most = function->parameter_count;
    for (size_t i = 0; i < most; i++) required += !function->parameters[i].fallback;
    ReportExtra extra = {.note = "the function is here", .note_span = function->head};
    if (required == most)
        report(checker, STATUS_ARITY, arguments->span, &extra,
               "%s takes %zu argument%s, but %zu %s given", arguments->callee->text, most,
               plural(most), arguments->count, arguments->count == 1 ? "is" : "are");
    else
        report(checker, STATUS_ARITY, arguments->span, &extra,
               "%s takes %zu to %zu arguments, but %zu %s given", arguments->callee->text, required,
               most, arguments->count, arguments->count == 1 ? "is" : "are");
}

static void report_parameter(Checker *checker, const Arguments *arguments, const Argument *argument,
                             const FunctionNode *function) {
    ASSERT(argument->name.text != NULL);
    const char **names = arena_allocate(checker->arena, function->parameter_count * sizeof *names);
    for (size_t i = 0; i < function->parameter_count; i++)
        names[i] = function->parameters[i].name.text;
    const char *near = catalog_nearest(argument->name.text, names, function->parameter_count);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : NULL,
                         .note = "the function is here",
                         .note_span = function->head};
    report(checker, STATUS_ARITY, argument->name.span, &extra, "%s has no parameter `%s`",
           arguments->callee->text, argument->name.text);
}

static void check_against_function(Checker *checker, const Arguments *arguments,
                                   const FunctionNode *function) {
    ASSERT(arguments->positional <= arguments->count);
    if (arguments->positional > function->parameter_count) {
        report_count(checker, arguments, function);
        return;
    }
    bool *filled = arena_allocate(checker->arena, function->parameter_count + 1);
    for (size_t i = 0; i < arguments->positional; i++) filled[i] = true;
    for (size_t i = arguments->positional; i < arguments->count; i++) {
        const Argument *argument = &arguments->items[i];
        int parameter = parameter_find(function, &argument->name);
        if (parameter < 0) {
            report_parameter(checker, arguments, argument, function);
            return;
        }
        if ((size_t)parameter < arguments->positional)
            report(checker, STATUS_ARITY, argument->name.span, NULL,
                   "argument `%s` is given twice: by position and by name", argument->name.text);
        filled[parameter] = true;
    }
    for (size_t i = 0; i < function->parameter_count; i++) {
        if (filled[i] || function->parameters[i].fallback) continue;
        if (arguments->count == arguments->positional) {
            report_count(checker, arguments, function);
            return;
        }
        ReportExtra extra = {.note = "the function is here", .note_span = function->head};
        report(checker, STATUS_ARITY, arguments->span, &extra, "argument `%s` of %s is missing",
               function->parameters[i].name.text, arguments->callee->text);
        return;
    }
}

// Whether arguments of this count and these names could fit the row, whatever their kinds.
static bool signature_fits(const Signature *signature, const Arguments *arguments) {
    size_t required = 0, most = 0;
    bool rest = false;
    for (int i = 0; i < signature->count; i++) {
        rest |= signature->params[i].rest;
        most++;
        required +=
            !signature->params[i].rest && signature->params[i].default_kind == DEFAULT_REQUIRED;
    }
    for (size_t i = arguments->positional; i < arguments->count; i++)
        if (catalog_parameter(signature, arguments->items[i].name.text) < 0) return false;
    return rest || (arguments->count <= most && arguments->count >= required);
}

// permute(x, 2, 0, 1): what was written in several arguments where one list is wanted.
static void suggest_list(const Arguments *arguments, const Builtin *row, Text *help) {
    int at = catalog_sizes_parameter(&row->signature);
    if (at < 0 || arguments->count != arguments->positional) return;
    if (arguments->count < (size_t)at + 2) return;
    size_t length;
    Span sizes = {arguments->items[at].value->span.begin,
                  arguments->items[arguments->count - 1].value->span.end};
    const char *text = source_text(sizes, &length);
    text_format(help, "; `%s` is one argument: [%.*s]", row->signature.params[at].name, (int)length,
                text);
}

// An argument by name for a parameter that has one by position; where forms of one name differ,
// only a run knows which is meant.
static bool report_given_twice(Checker *checker, const Arguments *arguments, const Builtin *row) {
    const Signature *signature = &row->signature;
    if (row->next_overload) return false;
    int placed = 0; // by position: what a `...` takes reaches no parameter behind it
    while (placed < signature->count && (size_t)placed < arguments->positional)
        if (signature->params[placed++].rest) break;
    for (size_t i = arguments->positional; i < arguments->count; i++) {
        const Word *name = &arguments->items[i].name;
        int index = catalog_parameter(signature, name->text);
        if (index < 0 || index >= placed) continue;
        report(checker, STATUS_ARITY, name->span, NULL,
               "argument `%s` of %s is given twice: by position and by name", name->text,
               arguments->callee->text);
        return true;
    }
    return false;
}

static void check_against_builtin(Checker *checker, const Arguments *arguments,
                                  const Builtin *row) {
    if (report_given_twice(checker, arguments, row)) return;
    SCOPED_TEXT(help);
    text_append_string(&help, row->next_overload ? "it is one of " : "it is ");
    for (const Builtin *overload = row; overload; overload = overload->next_overload) {
        if (signature_fits(&overload->signature, arguments)) return;
        text_format(&help, "%s%s", overload == row ? "" : "; ", overload->signature_text);
    }
    const Argument *unknown = NULL;
    for (size_t i = arguments->positional; i < arguments->count && !unknown; i++) {
        bool known = false;
        for (const Builtin *overload = row; overload; overload = overload->next_overload)
            known |= catalog_parameter(&overload->signature, arguments->items[i].name.text) >= 0;
        if (!known) unknown = &arguments->items[i];
    }
    suggest_list(arguments, row, &help);
    ReportExtra extra = {.help = text_get(&help)};
    if (unknown)
        report(checker, STATUS_ARITY, unknown->name.span, &extra, "%s has no parameter `%s`",
               arguments->callee->text, unknown->name.text);
    else
        report(checker, STATUS_ARITY, arguments->span, &extra, "%s cannot take %zu argument%s",
               arguments->callee->text, arguments->count, plural(arguments->count));
}

static void check_against(Checker *checker, const Arguments *arguments, const Binding *binding) {
    ASSERT(binding != NULL);
    if (binding->kind == BINDING_FUNCTION)
        check_against_function(checker, arguments, binding->declaration->as.function);
    else if (binding->kind == BINDING_BUILTIN)
        check_against_builtin(checker, arguments, binding->builtin);
}

// A relation in the place of a function: a fact is a statement, a query has its question mark.
static bool report_relation(Checker *checker, const Node *node) {
    const Binding *relation = logic_relation(checker, node);
    if (!relation) return false;
    SCOPED_TEXT(help);
    text_format(&help, "ask with %s(...)?; a fact is a statement of its own", relation->word.text);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_TYPE, node->span, &extra, "`%s` is a relation, not a function",
           relation->word.text);
    return true;
}

void check_call(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_CALL);
    Node *callee = node->as.call.callee;
    if (report_relation(checker, node)) return;
    static const Word value_called = {.text = "this function", .length = 13};
    Arguments arguments =
        arguments_of(node->as.call.arguments, node->as.call.count, node->as.call.arguments_span,
                     callee->kind == NODE_NAME   ? &callee->as.name.word
                     : callee->kind == NODE_PATH ? &callee->as.path.name
                                                 : &value_called);
    if (callee->kind == NODE_NAME) {
        name_resolve_node(checker, callee, true);
        name_want_value(checker, callee);
    } else {
        check_expression(checker, callee);
    }
    check_arguments(checker, &arguments);
    if (callee->kind == NODE_NAME && callee->as.name.binding)
        check_against(checker, &arguments, callee->as.name.binding);
}

void check_method_call(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_METHOD_CALL);
    Word *name = &node->as.method.name;
    Arguments arguments = arguments_of(node->as.method.arguments, node->as.method.count,
                                       node->as.method.arguments_span, name);
    check_receiver(checker, node->as.method.receiver);
    node->as.method.member = name_find_member(checker, node->as.method.receiver, name);
    if (!node->as.method.member) {
        node->as.method.function = name_candidates(checker, name);
        for (Candidate *next = node->as.method.function; next; next = next->next)
            binding_use(checker, next->binding);
    }
    check_arguments(checker, &arguments);
    if (node->as.method.member) check_against(checker, &arguments, node->as.method.member);
}
