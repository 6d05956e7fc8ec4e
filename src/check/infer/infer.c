// The state of an inference: variables and their changes, ways that join again, what is certain;
// and the order in which a program is gone through.
#include "check/infer/infer.h"

#include <stdlib.h>

#include "parser/walk.h"

enum { FUEL = 400000 };

bool infer_spend(Inference *in) {
    if (in->fuel <= 0) return false;
    in->fuel--;
    return true;
}

bool infer_certain(const Inference *in) {
    return in->doubt == 0 && in->left == 0;
}

// A variable that a function assigns which does not own it may change at any call.
static bool is_followed(const Inference *in, const Binding *binding) {
    if (binding->shared) return false;
    return !in->apart || binding->kind != BINDING_GLOBAL || !binding->assigned;
}

const Fact *infer_read(const Inference *in, const Binding *binding) {
    return binding->fact && is_followed(in, binding) ? binding->fact : &fact_any;
}

void infer_write(Inference *in, Binding *binding, const Fact *fact) {
    ASSERT(fact != NULL);
    if (!binding || binding->fact == fact) return;
    VECTOR_PUSH(&in->trail, ((Change){binding, binding->fact}));
    if (in->logging) VECTOR_PUSH(&in->log, binding);
    binding->fact = fact;
    if (binding->kind == BINDING_GLOBAL || binding->captured) in->version++;
}

void infer_disturb(Inference *in) {
    in->epoch++;
}

bool infer_members_known(const Inference *in, const Fact *fact) {
    if (!fact->known) return false;
    if (fact->kind == FACT_TUPLE) return true;
    return !in->drops && (fact->kind == FACT_LIST || fact->kind == FACT_STRUCT) &&
           fact->epoch == in->epoch;
}

void infer_undo(Inference *in, size_t mark) {
    ASSERT(mark <= in->trail.count);
    while (in->trail.count > mark) {
        Change change = in->trail.items[--in->trail.count];
        if (change.binding->kind == BINDING_GLOBAL || change.binding->captured) in->version++;
        change.binding->fact = change.before;
    }
}

// --- ways

void ways_begin(Inference *in, Ways *ways) {
    *ways = (Ways){.mark = in->trail.count};
    in->doubt++;
}

// What the way wrote goes into `merged`; the variables are as before.
void way_end(Inference *in, Ways *ways, const Fact *result) {
    ASSERT(ways->mark <= in->trail.count && in->doubt > 0);
    for (size_t i = ways->mark; i < in->trail.count && !in->dead; i++) {
        Binding *binding = in->trail.items[i].binding;
        VECTOR_PUSH(&ways->merged, ((Way){binding, binding->fact, ways->live}));
    }
    if (!in->dead) {
        ways->result = ways->any ? fact_join(&in->arena, ways->result, result) : result;
        ways->any = true;
        ways->live++;
    }
    infer_undo(in, ways->mark);
    in->dead = false;
}

static int compare_ways(const void *x, const void *y) {
    const Way *a = x, *b = y;
    if (a->binding != b->binding) return (uintptr_t)a->binding < (uintptr_t)b->binding ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static const Fact *fact_or_any(const Fact *fact) {
    return fact ? fact : &fact_any;
}

// The fact of one variable after ways, which stand side by side; what was there before takes part
// where a way leaves it as it was.
static const Fact *way_join(Inference *in, const Ways *ways, const Way *first, size_t count) {
    const Fact *joined = fact_or_any(first->fact);
    size_t writers = 1;
    for (size_t i = 1; i < count; i++) {
        joined = fact_join(&in->arena, joined, fact_or_any(first[i].fact));
        writers += first[i].number != first[i - 1].number;
    }
    ASSERT(writers <= ways->live);
    if (ways->covered && writers == ways->live) return joined;
    return fact_join(&in->arena, fact_or_any(first->binding->fact), joined);
}

const Fact *ways_end(Inference *in, Ways *ways) {
    ASSERT(in->trail.count == ways->mark); // the last way was undone
    ASSERT(in->doubt > 0);
    in->doubt--;
    Way *items = ways->merged.items;
    size_t count = ways->merged.count;
    if (count) qsort(items, count, sizeof *items, compare_ways);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && items[next].binding == items[i].binding;) next++;
        infer_write(in, items[i].binding, way_join(in, ways, &items[i], next - i));
    }
    VECTOR_FREE(&ways->merged);
    in->dead = ways->live == 0 && ways->covered;
    return ways->any ? ways->result : &fact_none;
}

// --- the order of a program

static void infer_section(Inference *in, Node *node, bool runs) {
    ASSERT(in->activation != NULL);
    FunctionNode *function = node->as.section.function;
    Activation activation = {.function = function,
                             .title = node->kind == NODE_MAIN ? "main" : function->name.text,
                             .outer = in->activation,
                             .serial = ++in->serial,
                             .depth = 1};
    size_t mark = in->trail.count;
    uint8_t left = in->left;
    bool dead = in->dead;
    in->activation = &activation;
    if (!runs) in->doubt++;
    if (!dead) infer_block(in, function->body);
    if (!runs) in->doubt--;
    in->activation = (Activation *)(uintptr_t)activation.outer;
    in->left = left;
    in->dead = dead;
    infer_undo(in, mark);
}

static void infer_top(Inference *in, Program *program, bool own) {
    NodeList statements = program->top->as.block.statements;
    in->left &= LEFT_PROGRAM;
    in->dead = false;
    for (size_t i = 0; i < statements.count && !in->dead; i++)
        if (!node_is_section(statements.items[i])) infer_statement(in, statements.items[i]);
    if (in->dead) in->left |= LEFT_PROGRAM;
    for (size_t i = 0; i < statements.count && own; i++) {
        Node *node = statements.items[i];
        if (node_is_section(node) && (node->kind == NODE_MAIN || in->warnings))
            infer_section(in, node, node->kind == NODE_MAIN);
    }
}

static void visit_function(void *context, FunctionNode *function) {
    Inference *in = context;
    bool named = function->name.text != NULL; // what a lambda is for only its caller knows
    if (named && !function->inferred && function->body) infer_function_apart(in, function);
}

// Where a struct has a drop, anything that is released may change any list or struct.
static bool has_drops(const Program *program) {
    const NodeList *statements = &program->top->as.block.statements;
    bool found = false;
    for (size_t i = 0; i < statements->count && !found; i++)
        found = statements->items[i]->kind == NODE_IMPL && statements->items[i]->as.impl.trait.text;
    for (size_t i = 0; i < program->imported.count && !found; i++)
        found = has_drops(program->imported.items[i]);
    return found;
}

void infer_program(Program *program, DiagnosticList *diagnostics, bool warnings) {
    Inference in = {.program = program, .warnings = warnings, .fuel = FUEL};
    in.drops = has_drops(program);
    Activation top = {0};
    in.activation = &top;
    for (size_t i = 0; i < program->imported.count; i++)
        infer_top(&in, program->imported.items[i], false);
    infer_top(&in, program, true);
    if (warnings) {
        in.apart = true;
        in.left = 0;
        Walker walker = {.context = &in, .function = visit_function};
        walk_node(&walker, program->top);
    }
    ASSERT(in.doubt == 0 && in.silent == 0 && in.logging == 0); // each way in was left again
    ASSERT(in.activation == &top && !in.loop);
    infer_undo(&in, 0);
    for (size_t i = 0; i < in.found.count; i++)
        diagnostic_list_add(diagnostics, &in.found.items[i]);
    infer_free_found(&in);
    VECTOR_FREE(&in.trail);
    VECTOR_FREE(&in.log);
    arena_free(&in.arena);
}
