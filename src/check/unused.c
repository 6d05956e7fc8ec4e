// What a program computes and loses, and what it never reaches: warnings of the full check.
#include <stdlib.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/source.h"
#include "check/checker.h"
#include "parser/walk.h"

// --- values that are lost

// Functions that change nothing and whose value is all that they are called for.
static bool is_pure(const Builtin *row) {
    static const char *const sections[] = {"Conversions", "Text", "Numbers"};
    static const char *const functions[] = {
        "len",    "is_empty", "get",    "append",   "contains", "index_of", "count",  "keys",
        "values", "zip",      "sorted", "reversed", "copy",     "format",   "exists", "enumerate",
    };
    const char *name = row->signature.name;
    if (row->kind == ROW_OP)
        return strcmp(row->section, "Sampling") != 0 &&
               catalog_parameter(&row->signature, "seed") < 0; // else it moves the random state
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(row->section, sections[i]) == 0) return true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(name, functions[i]) == 0) return true;
    return false;
}

// Every form of the name must be: step(x) is a map, step(optimizer) trains.
static bool calls_pure(const Binding *binding) {
    const Builtin *row = binding && binding->kind == BINDING_BUILTIN ? binding->builtin : NULL;
    bool pure = row != NULL;
    for (; row && pure; row = row->next_overload) pure = is_pure(row);
    return pure;
}

static bool changes_nothing(const Node *node);

static bool arguments_change_nothing(const Argument *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!changes_nothing(items[i].value)) return false;
    return true;
}

static bool items_change_nothing(const NodeList *list) {
    for (size_t i = 0; i < list->count; i++)
        if (!changes_nothing(list->items[i])) return false;
    return true;
}

// Whether a kind of value has a method of that name which does more: list.append, KVCache.append.
static bool may_change(const Word *method) {
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        const char *point = strchr(row->signature.name, '.');
        if (point && strcmp(point + 1, method->text) == 0) return true;
    }
    return false;
}

// A method that a struct or a function of the program may mean is not judged: their names come
// before the builtin's among the candidates, those of structs are looked up by the caller.
static bool method_is_pure(const Node *node) {
    const Candidate *candidate = node->as.method.function;
    return !node->as.method.member && candidate && calls_pure(candidate->binding) &&
           !may_change(&node->as.method.name) && changes_nothing(node->as.method.receiver) &&
           arguments_change_nothing(node->as.method.arguments, node->as.method.count);
}

static bool changes_nothing(const Node *node) {
    if (!node) return true;
    switch (node->kind) {
    case NODE_INT:
    case NODE_FLOAT:
    case NODE_BOOL:
    case NODE_NONE:
    case NODE_STRING:
    case NODE_NAME:
    case NODE_LAMBDA: return true;
    case NODE_LIST:
    case NODE_TUPLE: return items_change_nothing(&node->as.list);
    case NODE_DICT:
        return items_change_nothing(&node->as.dict.keys) &&
               items_change_nothing(&node->as.dict.values);
    case NODE_UNARY: return changes_nothing(node->as.binary.left);
    case NODE_BINARY:
    case NODE_LOGICAL:
        return changes_nothing(node->as.binary.left) && changes_nothing(node->as.binary.right);
    case NODE_CAST: return changes_nothing(node->as.cast.value);
    case NODE_FIELD: return changes_nothing(node->as.field.object);
    case NODE_INDEX: return changes_nothing(node->as.index.object);
    case NODE_CALL:
        return node->as.call.callee->kind == NODE_NAME &&
               calls_pure(node->as.call.callee->as.name.binding) &&
               arguments_change_nothing(node->as.call.arguments, node->as.call.count);
    case NODE_METHOD_CALL: return method_is_pure(node);
    default: return false;
    }
}

typedef struct Finder {
    Checker *checker;
    VECTOR(const char *) methods; // of the structs of the program
    Span bench;                   // the last bench block: what it computes is measured
} Finder;

static bool is_method(const Finder *finder, const char *name) {
    for (size_t i = 0; i < finder->methods.count; i++)
        if (strcmp(finder->methods.items[i], name) == 0) return true;
    return false;
}

// adam_step(p, g, m, v, lr) as a statement moves a parameter p, but m and v stay what they were.
static void check_moments_lost(const Finder *finder, const Node *value) {
    if (value->kind != NODE_CALL || value->as.call.callee->kind != NODE_NAME) return;
    const Binding *binding = value->as.call.callee->as.name.binding;
    if (!binding || binding->kind != BINDING_BUILTIN ||
        strcmp(binding->builtin->signature.name, "adam_step") != 0)
        return;
    report_warning(finder->checker, value->span, NULL,
                   "the moments are lost: p, m, v = adam_step(p, g, m, v, lr) keeps them");
}

static void check_lost(const Finder *finder, const Node *statement) {
    if (statement->kind != NODE_EXPRESSION_STATEMENT || statement->as.expression.unused_start)
        return;
    const Node *value = statement->as.expression.value;
    check_moments_lost(finder, value);
    bool measured =
        value->span.begin >= finder->bench.begin && value->span.end <= finder->bench.end;
    if (measured || !changes_nothing(value)) return;
    if (value->kind == NODE_METHOD_CALL && is_method(finder, value->as.method.name.text)) return;
    ReportExtra extra = {.help = "assign it, print it, or leave it out"};
    report_warning(finder->checker, value->span, &extra,
                   "this value is not used, and computing it changes nothing");
}

static bool leaves(const Node *statement) {
    return statement->kind == NODE_RETURN || statement->kind == NODE_BREAK ||
           statement->kind == NODE_CONTINUE;
}

// `lost`: the value of the last statement goes nowhere either.
static void check_statements_lost(const Finder *finder, const Node *block, bool lost) {
    if (!block || block->kind != NODE_BLOCK) return;
    const NodeList *statements = &block->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *statement = statements->items[i];
        bool last = i + 1 == statements->count;
        if (last == lost) check_lost(finder, statement);
        if (last || lost || !leaves(statement) || statements->items[i + 1]->kind == NODE_FUNCTION)
            continue;
        report_warning(finder->checker, statements->items[i + 1]->span, NULL,
                       "this is never reached: the statement above leaves the block");
    }
}

// --- arms that no value reaches

static bool takes_all(const Pattern *pattern) {
    bool all = pattern->kind == PATTERN_ANY || pattern->kind == PATTERN_BIND;
    for (size_t i = 0; pattern->kind == PATTERN_OR && i < pattern->part_count; i++)
        all |= takes_all(pattern->parts[i]);
    return all;
}

static bool lies_within(const Pattern *pattern, const Pattern *range) {
    bool ints = pattern->kind == PATTERN_LITERAL && range->kind == PATTERN_RANGE &&
                pattern->low->kind == NODE_INT && range->low->kind == NODE_INT &&
                range->high->kind == NODE_INT;
    if (!ints) return false;
    int64_t number = pattern->low->as.integer, high = range->high->as.integer;
    return number >= range->low->as.integer &&
           (number < high || (range->inclusive && number == high));
}

// Whether everything that `pattern` takes is taken by `above`; a name within would make them
// differ.
static bool is_covered(const Pattern *pattern, const Pattern *above) {
    if (takes_all(above)) return true;
    if (pattern->kind == PATTERN_OR) {
        bool all = true;
        for (size_t i = 0; i < pattern->part_count; i++)
            all &= is_covered(pattern->parts[i], above);
        return all;
    }
    for (size_t i = 0; above->kind == PATTERN_OR && i < above->part_count; i++)
        if (is_covered(pattern, above->parts[i])) return true;
    return source_same_text(pattern->span, above->span) || lies_within(pattern, above);
}

// The patterns above an arm: literals by their text, of which there may be very many, and others.
typedef struct Literal {
    const Pattern *pattern;
    UT_hash_handle hh;
} Literal;
typedef struct Above {
    Literal *literals, *table;
    const Pattern **others;
    size_t other_count;
} Above;

static const Pattern *find_above(const Above *above, const Pattern *pattern) {
    size_t length;
    const char *text = source_text(pattern->span, &length);
    Literal *same = NULL;
    if (pattern->kind == PATTERN_LITERAL) HASH_FIND(hh, above->table, text, length, same);
    if (same) return same->pattern;
    for (size_t i = 0; i < above->other_count; i++)
        if (is_covered(pattern, above->others[i])) return above->others[i];
    return NULL;
}

// An alternative of several is compared with every arm, so that it counts as no literal.
static void add_above(Above *above, size_t index, const Pattern *pattern, bool alternatives) {
    size_t length;
    const char *text = source_text(pattern->span, &length);
    if (pattern->kind != PATTERN_LITERAL || alternatives)
        above->others[above->other_count++] = pattern;
    if (pattern->kind != PATTERN_LITERAL) return;
    Literal *literal = &above->literals[index];
    literal->pattern = pattern;
    HASH_ADD_KEYPTR(hh, above->table, text, length, literal);
}

static void check_arms(const Finder *finder, const Node *match) {
    size_t count = match->as.match.count;
    const MatchArm *arms = match->as.match.arms;
    bool alternatives = false;
    for (size_t i = 0; i < count; i++) alternatives |= arms[i].pattern->kind == PATTERN_OR;
    Above above = {.literals = memory_allocate_zeroed(count + 1, sizeof *above.literals),
                   .others = memory_allocate((count + 1) * sizeof *above.others)};
    for (size_t i = 0; i < count; i++) {
        const Pattern *pattern = arms[i].pattern, *found = find_above(&above, pattern);
        ReportExtra extra = {.note = "this arm takes it",
                             .note_span = found ? found->span : pattern->span};
        if (found)
            report_warning(finder->checker, pattern->span, &extra, "this arm is never reached");
        else if (!arms[i].guard)
            add_above(&above, i, pattern, alternatives);
    }
    HASH_CLEAR(hh, above.table);
    free(above.literals);
    free(above.others);
}

static void visit(void *context, Node *node) {
    Finder *finder = context;
    switch (node->kind) {
    case NODE_BENCH: finder->bench = node->span; break;
    case NODE_BLOCK: check_statements_lost(finder, node, false); break;
    case NODE_FOR: check_statements_lost(finder, node->as.for_loop.body, true); break;
    case NODE_WHILE:
    case NODE_LOOP: check_statements_lost(finder, node->as.loop.body, true); break;
    case NODE_MAIN:
    case NODE_TEST: check_statements_lost(finder, node->as.section.function->body, true); break;
    case NODE_MATCH: check_arms(finder, node); break;
    default: break;
    }
}

static void collect_methods(Finder *finder, const Program *program) {
    const NodeList *statements = &program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind != NODE_IMPL) continue;
        for (size_t j = 0; j < node->as.impl.function_count; j++)
            VECTOR_PUSH(&finder->methods, node->as.impl.functions[j]->as.function->name.text);
    }
    for (size_t i = 0; i < program->imported.count; i++)
        collect_methods(finder, program->imported.items[i]);
}

void warn_unused(Checker *checker) {
    Finder finder = {.checker = checker};
    collect_methods(&finder, checker->program);
    const NodeList *top = &checker->program->top->as.block.statements;
    if (top->count > 0) warn_lost(checker, top->items[top->count - 1]);
    check_statements_lost(&finder, checker->program->top, true);
    Walker walker = {.context = &finder, .node = visit};
    walk_node(&walker, checker->program->top);
    VECTOR_FREE(&finder.methods);
}
