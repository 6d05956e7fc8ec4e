// Fuzzes the engine of rules: a program of facts that come and go and rules between them. The same
// rows come, in the same order, from tuples, sparse rows, dense bits and rules run in parts, all of
// which follow each change, and from a store that is made anew; what is asked for alone is there
// exactly when it is among them.
#include <stdint.h>
#include <stdlib.h>

#include "logic/evaluate.h"
#include "logic/query.h"

enum {
    RELATIONS = 5,
    VALUES = 6,
    VARIABLES = 4,
    GOALS_MAX = 3,
    STORES = 4,
    STEPS_MAX = 60,
    RULES_MAX = 8
};

static const uint32_t arities[RELATIONS] = {1, 2, 2, 3, 2}; // the last keeps least values

typedef struct Input {
    const uint8_t *bytes;
    size_t length, at;
} Input;

static uint32_t next(Input *input, uint32_t below) {
    return input->at < input->length ? input->bytes[input->at++] % below : 0;
}

static Status not_interrupted(void *context) {
    (void)context;
    return STATUS_OK;
}

static bool not_stopped(void) {
    return false;
}

// As threads might that are unlucky: the last part first.
static void share_backwards(int64_t count, void (*body)(void *, int64_t, int64_t), void *context) {
    for (int64_t part = count; part-- > 0;) body(context, part, part + 1);
}

// `wanted` behind the last representation: tuples, and every rule in parts.
static Store *program_new(Representation wanted) {
    StoreHost host = {.interrupted = not_interrupted, .stopped = not_stopped};
    bool shared = wanted > REPRESENTATION_BITS;
    if (shared) host.share = share_backwards;
    if (shared) wanted = REPRESENTATION_TUPLES;
    Store *store = store_new(&host);
    store->room.wanted = wanted;
    for (uint32_t i = 0; i < RELATIONS; i++) {
        Column columns[] = {{.kind = COLUMN_INT}, {.kind = COLUMN_INT}, {.kind = COLUMN_INT}};
        if (i + 1 == RELATIONS) columns[1].merge = MERGE_MIN;
        relation_new(store, (const char *[]){"A", "B", "C", "D", "E"}[i], columns, arities[i]);
    }
    return store;
}

// A constant, or one of the variables that the goals so far give a value.
static Term value_read(Input *input, Store *store, const VariableSet *bound) {
    uint32_t given[VARIABLES], count = 0;
    for (uint32_t i = 0; i < VARIABLES; i++)
        if (variables_have(bound, i)) given[count++] = i;
    if (count == 0 || next(input, 8) == 0)
        return (Term){TERM_CONSTANT, constant_int(&store->constants, next(input, VALUES))};
    return (Term){TERM_VARIABLE, given[next(input, count)]};
}

static Term term_read(Input *input, Store *store) {
    uint32_t what = next(input, 8);
    if (what == 0) return (Term){.kind = TERM_ANY};
    if (what == 1)
        return (Term){TERM_CONSTANT, constant_int(&store->constants, next(input, VALUES))};
    return (Term){TERM_VARIABLE, next(input, VARIABLES)};
}

static Expression *operand_read(Input *input, Store *store, Rule *rule, const VariableSet *bound) {
    Expression *expression = arena_allocate(&rule->arena, sizeof *expression);
    Term term = value_read(input, store, bound);
    expression->kind = term.kind == TERM_VARIABLE ? ARITHMETIC_VARIABLE : ARITHMETIC_CONSTANT;
    expression->value = term.value;
    return expression;
}

static void goal_read(Input *input, Store *store, Rule *rule, uint32_t number, VariableSet *bound) {
    uint32_t kind = next(input, 8);
    Goal *goal = &rule->goals[number];
    if (kind == 0) {
        goal->kind = GOAL_COMPARE;
        goal->comparison = (Comparison)next(input, COMPARE_GE + 1);
        goal->left = operand_read(input, store, rule, bound);
        goal->right = operand_read(input, store, rule, bound);
        return;
    }
    goal->kind = kind == 1 ? GOAL_NOT : GOAL_ATOM;
    goal->relation = store->relations.items[next(input, RELATIONS)];
    goal->terms = arena_allocate(&rule->arena, goal->relation->arity * sizeof *goal->terms);
    for (uint32_t i = 0; i < goal->relation->arity; i++)
        goal->terms[i] = kind == 1 ? value_read(input, store, bound) : term_read(input, store);
    goal_bind(goal, goal->relation->arity, bound);
}

static void rule_read(Input *input, Store *store) {
    if (store->rules.count == RULES_MAX) return;
    VariableSet bound = {0};
    Relation *head = store->relations.items[next(input, RELATIONS)];
    Rule *rule = rule_new(VARIABLES, head->arity, 1 + next(input, GOALS_MAX));
    rule->relation = head;
    for (uint32_t i = 0; i < VARIABLES; i++)
        rule->variable_names[i] = (const char *[]){"W", "X", "Y", "Z"}[i];
    for (uint32_t i = 0; i < rule->goal_count; i++) goal_read(input, store, rule, i, &bound);
    for (uint32_t i = 0; i < head->arity; i++) rule->head[i] = value_read(input, store, &bound);
    store_add_rule(store, rule);
}

// false: the program is at a point of comparison.
static bool step_read(Input *input, Store *store) {
    uint32_t what = next(input, 8);
    if (what == 0) return false;
    if (what == 1) {
        rule_read(input, store);
        return true;
    }
    Relation *relation = store->relations.items[next(input, RELATIONS)];
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < relation->arity; i++)
        values[i] = constant_int(&store->constants, next(input, VALUES));
    if (what <= 5)
        fact_add(store, relation, values);
    else
        fact_remove(store, relation, values);
    return true;
}

static bool complete(Store *store, uint32_t number) {
    if (store_complete(store, store->relations.items[number]) == STATUS_OK) return true;
    error_clear();
    return false;
}

static void row_ask(Input input, size_t end, uint32_t number, const Datum *values, bool wanted) {
    Store *store = program_new(REPRESENTATION_CHOSEN);
    bool has;
    while (input.at < end) step_read(&input, store);
    if (store_has(store, store->relations.items[number], values, &has) != STATUS_OK) abort();
    if (has != wanted) abort();
    store_free(store);
}

static void rows_compare(const Table *a, const Table *b) {
    if (table_live(a) != table_live(b)) abort();
    for (uint32_t x = 0, y = 0; x < a->count; x++) {
        if (table_is_dead(a, x)) continue;
        while (table_is_dead(b, y)) y++;
        for (uint32_t i = 0; i < a->arity; i++)
            if (table_at(a, x, i) != table_at(b, y, i)) abort();
        y++;
    }
}

// What has been read so far. false: its rules are not allowed.
static bool stores_compare(Input input, Store *const *stores) {
    Input again = {input.bytes, input.length, 0};
    Store *fresh = program_new(REPRESENTATION_TUPLES);
    while (again.at < input.at) step_read(&again, fresh);
    bool allowed = complete(fresh, 0);
    for (uint32_t i = 0; i < STORES; i++)
        if (complete(stores[i], 0) != allowed) abort();
    for (uint32_t number = 0; number < RELATIONS && allowed; number++) {
        const Relation *relation = fresh->relations.items[number];
        if (!complete(fresh, number)) abort();
        for (uint32_t i = 0; i < STORES; i++) {
            if (!complete(stores[i], number)) abort();
            rows_compare(relation_table(relation),
                         relation_table(stores[i]->relations.items[number]));
        }
        Datum values[ARITY_MAX];
        for (uint32_t i = 0; i < relation->arity; i++)
            values[i] = constant_int(&fresh->constants, next(&again, VALUES));
        bool there = table_has(relation_table(relation), values);
        if (relation->key == columns_all(relation->arity))
            row_ask((Input){input.bytes, input.length, 0}, input.at, number, values, there);
    }
    store_free(fresh);
    return allowed;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Input input = {bytes, length, 0};
    Store *stores[STORES];
    for (int i = 0; i < STORES; i++)
        stores[i] = program_new((Representation)(REPRESENTATION_TUPLES + i));
    bool going = true;
    for (int step = 0; step < STEPS_MAX && input.at < length && going; step++) {
        Input before = input;
        bool changed = true;
        for (int i = 0; i < STORES; i++) {
            input = before;
            changed = step_read(&input, stores[i]);
        }
        if (!changed) going = stores_compare(input, stores);
    }
    if (going) stores_compare(input, stores);
    for (int i = 0; i < STORES; i++) store_free(stores[i]);
    return 0;
}
