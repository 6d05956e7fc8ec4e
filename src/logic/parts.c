// Threads read the tables, the indexes and the constants that are there, and write what they find
// into tables of their own. What would need more - a constant that is new, a function of the host,
// an error with its place - makes the whole plan run again on one thread.
#include "logic/parts.h"

#include <stdlib.h>

#include "logic/collect.h"

enum {
    PARTS_MAX = 64, // enough that threads finish together
    NO_STEP = UINT32_MAX,
};

typedef struct Part {
    Store store; // the constants are frozen, the host is asked nothing
    Collector found;
    uint64_t ticks;
    bool whole; // it went through all of its rows
} Part;

typedef struct Parts {
    const Run *run;
    uint32_t step; // whose rows are parted
    uint32_t count;
    Part *parts;
} Parts;

// --- what can be parted

static bool asks_host(const Expression *expression) {
    if (!expression) return false;
    return expression->kind == ARITHMETIC_HOST || asks_host(expression->left) ||
           asks_host(expression->right);
}

static bool is_apart(const Step *step) {
    const Goal *goal = step->goal;
    bool asks = goal->kind == GOAL_TEST || goal->kind == GOAL_MEMBER || asks_host(goal->left) ||
                asks_host(goal->right);
    return !asks && !step->extra;
}

// The first goal that goes through rows, if it goes through all of them.
static uint32_t step_find(const Plan *plan) {
    uint32_t found = NO_STEP;
    for (uint32_t i = 0; i < plan->count; i++) {
        const Step *step = &plan->steps[i];
        if (!is_apart(step)) return NO_STEP;
        if (found == NO_STEP && step->goal->kind == GOAL_ATOM) found = i;
    }
    if (found == NO_STEP || plan->steps[found].bound) return NO_STEP;
    return plan->steps[found].goal->relation->arity > 0 ? found : NO_STEP;
}

static bool unites(const Collector *collector) {
    for (uint32_t i = 0; collector->columns && i < collector->table->arity; i++)
        if (collector->columns[i].merge == MERGE_UNION) return true;
    return false;
}

static bool parts_find(const Run *run, Parts *parts) {
    const StoreHost *host = &run->store->host;
    *parts = (Parts){.run = run, .step = NO_STEP};
    if (!host->share || run->costs || unites(run->context)) return false;
    parts->step = step_find(run->plan);
    if (parts->step == NO_STEP) return false;
    const Step *step = &run->plan->steps[parts->step];
    uint32_t rows = step->high - step->low;
    if (rows * run->plan->cost < host->share_from) return false;
    parts->count = rows < PARTS_MAX ? rows : PARTS_MAX;
    return parts->count > 1;
}

// --- one part

static Status part_interrupted(void *context) {
    const Part *part = context;
    bool leave = part->store.constants.refused || part->store.host.stopped();
    return leave ? STATUS_INTERRUPT : STATUS_OK;
}

static void part_begin(const Run *run, Part *part) {
    const Collector *whole = run->context;
    part->store = *run->store;
    part->store.constants.frozen = true;
    part->store.host.context = part;
    part->store.host.interrupted = part_interrupted;
    part->found = (Collector){.table = table_new(whole->table->arity, whole->table->key),
                              .whole = whole,
                              .columns = whole->columns};
    collector_begin_round(&part->found);
    collector_begin_rule(&part->found, whole->keyed, whole->width);
}

static void part_run(const Parts *parts, uint32_t number) {
    const Run *run = parts->run;
    Part *part = &parts->parts[number];
    part_begin(run, part);
    Plan plan = *run->plan;
    plan.steps = memory_allocate(plan.count * sizeof *plan.steps);
    memcpy(plan.steps, run->plan->steps, plan.count * sizeof *plan.steps);
    Step *step = &plan.steps[parts->step];
    uint64_t rows = step->high - step->low;
    step->high = step->low + (uint32_t)(rows * (number + 1) / parts->count);
    step->low += (uint32_t)(rows * number / parts->count);
    SCOPED_MEMORY Run *own = memory_allocate(sizeof *own);
    *own = *run;
    own->store = &part->store;
    own->plan = &plan;
    own->context = &part->found;
    part->whole = plan_run(own) == STATUS_OK && !part->store.constants.refused;
    part->ticks = own->ticks;
    if (!part->whole) error_clear(); // one thread says it in its turn
    free(plan.steps);
}

static void run_some(void *context, int64_t begin, int64_t end) {
    const Parts *parts = context;
    ASSERT(begin >= 0 && end <= parts->count);
    for (int64_t number = begin; number < end; number++) part_run(parts, (uint32_t)number);
}

// --- all of them

// What threads ask of tables changes nothing.
static void tables_prepare(const Plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++) {
        const Step *step = &plan->steps[i];
        if (step->goal->relation && step->bound && !step->index) table_number_rows(step->table);
    }
}

Status parts_run(Run *run, Parting *out) {
    Parts parts;
    *out = PARTING_NONE;
    if (!parts_find(run, &parts)) return STATUS_OK;
    tables_prepare(run->plan);
    parts.parts = memory_allocate_zeroed(parts.count, sizeof *parts.parts);
    run->store->host.share(parts.count, run_some, &parts);
    bool whole = true;
    for (uint32_t i = 0; i < parts.count; i++) whole &= parts.parts[i].whole;
    for (uint32_t i = 0; i < parts.count; i++) {
        Collector *found = &parts.parts[i].found;
        run->ticks += parts.parts[i].ticks;
        if (whole) collector_take(run->context, run->store, found);
        table_free(found->table);
        collector_free(found);
    }
    free(parts.parts);
    *out = whole ? PARTING_DONE : PARTING_VAIN;
    return run->store->host.interrupted(run->store->host.context);
}
