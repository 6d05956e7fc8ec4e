// A variable of the top level that is declared again before anything reads it: a warning of the
// full check. A function may read it at any call, so that what stands in one always counts.
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "check/checker.h"
#include "parser/walk.h"

// A name that is read, or that a `let` has given a value which nothing has read yet.
typedef struct Seen {
    const char *text;
    bool in_functions;
    const Word *unread; // NULL: there is none
    UT_hash_handle hh;
} Seen;

typedef struct Replaced {
    Seen *table;
    bool in_functions;
} Replaced;

static Seen *seen_get(Replaced *replaced, const char *text) {
    Seen *seen;
    HASH_FIND_STR(replaced->table, text, seen);
    if (seen) return seen;
    seen = memory_allocate_zeroed(1, sizeof *seen);
    seen->text = text;
    HASH_ADD_KEYPTR(hh, replaced->table, text, strlen(text), seen);
    return seen;
}

static void note_read(Replaced *replaced, const Word *word) {
    if (!word->text) return;
    Seen *seen = seen_get(replaced, word->text);
    seen->in_functions |= replaced->in_functions;
    seen->unread = NULL;
}

static void read_node(void *context, Node *node) {
    if (node->kind == NODE_NAME) note_read(context, &node->as.name.word);
}

static void read_type(void *context, TypeNode *type) {
    for (size_t i = 0; i < type->dimension_count; i++)
        note_read(context, &type->dimensions[i].name);
}

static void read_all(Replaced *replaced, Node *node) {
    walk_node(&(Walker){.context = replaced, .node = read_node, .type = read_type}, node);
}

static void read_function(void *context, FunctionNode *function) {
    read_all(context, function->body);
    for (size_t i = 0; i < function->parameter_count; i++)
        read_all(context, function->parameters[i].fallback);
}

// main, tests and benches run after the top level: what they read is the last value.
static void declare(Replaced *replaced, Checker *checker, const Node *let) {
    const Word *word = &let->as.let.pattern->name;
    Seen *seen = seen_get(replaced, word->text);
    if (seen->unread && !seen->in_functions) {
        ReportExtra extra = {.note = "the first is here", .note_span = seen->unread->span};
        report_warning(checker, word->span, &extra,
                       "this replaces `%s`, whose value was never used", word->text);
    }
    seen->unread = word;
}

static void pass_statement(Replaced *replaced, Checker *checker, Node *node) {
    if (node_is_section(node) || node->kind == NODE_FUNCTION || node->kind == NODE_IMPL) return;
    read_all(replaced, node);
    bool gives =
        node->kind == NODE_LET && node->as.let.value && node->as.let.pattern->kind == PATTERN_BIND;
    if (gives) declare(replaced, checker, node);
}

void warn_replaced_globals(Checker *checker) {
    Replaced replaced = {.in_functions = true};
    const NodeList *statements = &checker->program->top->as.block.statements;
    Walker functions = {.context = &replaced, .function = read_function};
    for (size_t i = 0; i < statements->count; i++)
        if (!node_is_section(statements->items[i])) walk_node(&functions, statements->items[i]);
    replaced.in_functions = false;
    for (size_t i = 0; i < statements->count; i++)
        pass_statement(&replaced, checker, statements->items[i]);
    Seen *seen, *next;
    HASH_ITER(hh, replaced.table, seen, next) {
        HASH_DEL(replaced.table, seen);
        free(seen);
    }
}
