// Rules run in parts on several threads: rows, their order, errors and interrupts are those of one.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logic/evaluate.h"
#include "logic/parts.h"
#include "logic/query.h"

#include <cmocka.h>
#undef fail // of cmocka

enum { EDGE, PATH, COST, ONE_WAY, REACHED, RELATIONS, NODES = 60, EDGES = 150, THREADS = 3 };
enum { X, Y, Z, W, VARIABLES };

// --- threads

typedef struct Job {
    int64_t count;
    void (*body)(void *, int64_t, int64_t);
    void *context;
    atomic_llong next;
} Job;

static atomic_int jobs, parts_left; // parts_left: until the user interrupts; negative: never

static bool is_stopped(void) {
    return atomic_load(&parts_left) == 0;
}

static void *work(void *argument) {
    Job *job = argument;
    for (;;) {
        int64_t part = atomic_fetch_add(&job->next, 1);
        if (part >= job->count || is_stopped()) return NULL;
        job->body(job->context, part, part + 1);
        int left = atomic_load(&parts_left);
        while (left > 0 && !atomic_compare_exchange_weak(&parts_left, &left, left - 1)) continue;
    }
}

static void share(int64_t count, void (*body)(void *, int64_t, int64_t), void *context) {
    pthread_t threads[THREADS];
    Job job = {.count = count, .body = body, .context = context};
    atomic_fetch_add(&jobs, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &job), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static Status interrupted(void *context) {
    (void)context;
    return is_stopped() ? fail(STATUS_INTERRUPT, "interrupted") : STATUS_OK;
}

// --- the program

static Goal *atom(Store *store, Rule *rule, uint32_t number, int relation, int first, int second) {
    Goal *goal = &rule->goals[number];
    goal->kind = GOAL_ATOM;
    goal->relation = store->relations.items[relation];
    goal->terms = arena_allocate(&rule->arena, 2 * sizeof *goal->terms);
    goal->terms[0] = (Term){TERM_VARIABLE, (uint32_t)first};
    goal->terms[1] = (Term){TERM_VARIABLE, (uint32_t)second};
    return goal;
}

static Rule *rule_of(Store *store, int relation, int first, int second, uint32_t goals) {
    Rule *rule = rule_new(VARIABLES, 2, goals);
    rule->relation = store->relations.items[relation];
    rule->head[0] = (Term){TERM_VARIABLE, (uint32_t)first};
    rule->head[1] = (Term){TERM_VARIABLE, (uint32_t)second};
    for (uint32_t i = 0; i < VARIABLES; i++)
        rule->variable_names[i] = (const char *[]){"X", "Y", "Z", "W"}[i];
    return rule;
}

static Expression *expression(Rule *rule, Arithmetic kind, uint32_t value) {
    Expression *made = arena_allocate(&rule->arena, sizeof *made);
    made->kind = kind;
    made->value = value;
    return made;
}

// Cost(Y, W) <- Cost(X, Z), Edge(X, Y), W = Z + step
static void add_costs(Store *store, Datum step) {
    Rule *rule = rule_of(store, COST, Y, W, 3);
    atom(store, rule, 0, COST, X, Z);
    atom(store, rule, 1, EDGE, X, Y);
    Goal *bind = &rule->goals[2];
    bind->kind = GOAL_BIND;
    bind->variable = W;
    bind->left = expression(rule, ARITHMETIC_ADD, 0);
    bind->left->left = expression(rule, ARITHMETIC_VARIABLE, Z);
    bind->left->right = expression(rule, ARITHMETIC_CONSTANT, step);
    store_add_rule(store, rule);
}

static void add_rules(Store *store, Datum step) {
    Rule *rule = rule_of(store, PATH, X, Y, 1); // Path(X, Y) <- Edge(X, Y)
    atom(store, rule, 0, EDGE, X, Y);
    store_add_rule(store, rule);
    rule = rule_of(store, PATH, X, Z, 2); // Path(X, Z) <- Path(Y, Z), Path(X, Y)
    atom(store, rule, 0, PATH, Y, Z);
    atom(store, rule, 1, PATH, X, Y);
    store_add_rule(store, rule);
    add_costs(store, step);
    rule = rule_of(store, ONE_WAY, X, Y, 3); // OneWay(X, Y) <- Path(X, Y), not Edge(Y, X), X < Y
    atom(store, rule, 0, PATH, X, Y);
    atom(store, rule, 1, EDGE, Y, X)->kind = GOAL_NOT;
    rule->goals[2].kind = GOAL_COMPARE;
    rule->goals[2].comparison = COMPARE_LT;
    rule->goals[2].left = expression(rule, ARITHMETIC_VARIABLE, X);
    rule->goals[2].right = expression(rule, ARITHMETIC_VARIABLE, Y);
    store_add_rule(store, rule);
    rule = rule_of(store, REACHED, X, Y, 1); // Reached(X, count(Y)) <- Path(X, Y)
    atom(store, rule, 0, PATH, X, Y);
    rule->aggregates = arena_allocate(&rule->arena, 2 * sizeof *rule->aggregates);
    rule->aggregates[1] = AGGREGATE_COUNT;
    store_add_rule(store, rule);
}

// `half`: costs are new floats, not small integers. `last`: of the last edge.
static Store *program_new(bool shared, Representation wanted, bool half, const char *last) {
    StoreHost host = {.interrupted = interrupted, .stopped = is_stopped};
    if (shared) host.share = share;
    Store *store = store_new(&host);
    store->room.wanted = wanted;
    for (int i = 0; i < RELATIONS; i++) {
        Column columns[2] = {{.kind = COLUMN_ANY}, {.kind = COLUMN_ANY}};
        if (i == COST) columns[1].merge = MERGE_MIN;
        relation_new(store, (const char *[]){"Edge", "Path", "Cost", "OneWay", "Reached"}[i],
                     columns, 2);
    }
    ConstantTable *constants = &store->constants;
    add_rules(store, half ? constant_float(constants, 0.5) : constant_int(constants, 1));
    unsigned number = 7;
    for (int i = 0; i <= EDGES; i++) {
        Datum ends[2];
        for (int j = 0; j < 2; j++) {
            number = number * 1103515245 + 12345;
            ends[j] = constant_int(constants, number / 65536 % NODES);
        }
        if (i == EDGES && last) ends[0] = constant_text(constants, last, strlen(last));
        fact_add(store, store->relations.items[EDGE], ends);
    }
    fact_add(store, store->relations.items[COST],
             (Datum[]){constant_int(constants, 1), constant_int(constants, 0)});
    return store;
}

static Status complete(Store *store) {
    for (int i = 0; i < RELATIONS; i++) TRY(store_complete(store, store->relations.items[i]));
    return STATUS_OK;
}

static void assert_same_rows(const Store *a, const Store *b) {
    for (int i = 0; i < RELATIONS; i++) {
        const Table *x = relation_table(a->relations.items[i]);
        const Table *y = relation_table(b->relations.items[i]);
        assert_true(table_live(x) > 0);
        assert_int_equal(x->count, y->count);
        for (uint32_t row = 0; row < x->count; row++) {
            assert_int_equal(table_is_dead(x, row), table_is_dead(y, row));
            for (uint32_t column = 0; column < 2; column++)
                assert_int_equal(table_at(x, row, column), table_at(y, row, column));
        }
    }
}

static void test_rows(void **state) {
    (void)state;
    atomic_store(&parts_left, -1);
    for (int wanted = REPRESENTATION_CHOSEN; wanted <= REPRESENTATION_BITS; wanted++)
        for (int half = 0; half < 2; half++) {
            Store *alone = program_new(false, (Representation)wanted, half, NULL);
            Store *shared = program_new(true, (Representation)wanted, half, NULL);
            atomic_store(&jobs, 0);
            assert_int_equal(complete(alone), STATUS_OK);
            assert_int_equal(atomic_load(&jobs), 0);
            assert_int_equal(complete(shared), STATUS_OK);
            assert_true(atomic_load(&jobs) > 5);
            assert_same_rows(alone, shared);
            assert_int_equal(alone->constants.entries.count, shared->constants.entries.count);
            store_free(alone);
            store_free(shared);
        }
}

static void test_errors(void **state) {
    (void)state;
    atomic_store(&parts_left, -1);
    char message[2][ERROR_TEXT_MAX];
    for (int shared = 0; shared < 2; shared++) {
        Store *store = program_new(shared, REPRESENTATION_CHOSEN, false, "bob");
        assert_int_equal(complete(store), STATUS_TYPE);
        snprintf(message[shared], sizeof *message, "%s", error_current()->message);
        error_clear();
        store_free(store);
    }
    assert_string_equal(message[0], message[1]);
}

static void test_interrupts(void **state) {
    (void)state;
    atomic_store(&parts_left, -1);
    Store *alone = program_new(false, REPRESENTATION_CHOSEN, false, NULL);
    assert_int_equal(complete(alone), STATUS_OK);
    for (int parts = 1; parts < 200; parts = parts * 3 / 2 + 1) {
        Store *store = program_new(true, REPRESENTATION_CHOSEN, false, NULL);
        atomic_store(&parts_left, parts);
        assert_int_equal(complete(store), STATUS_INTERRUPT);
        error_clear();
        atomic_store(&parts_left, -1);
        assert_int_equal(complete(store), STATUS_OK);
        assert_same_rows(alone, store);
        store_free(store);
    }
    store_free(alone);
}

// Counted by bits, in several blocks: Path as a closure, OneWay as products (the same generation).
static uint64_t count_pairs(bool shared, int relation) {
    enum { MANY_NODES = 6000, MANY_EDGES = 5500 };
    StoreHost host = {.interrupted = interrupted, .stopped = is_stopped};
    if (shared) host.share = share;
    Store *store = store_new(&host);
    for (int i = 0; i < RELATIONS; i++)
        relation_new(store, "R", (Column[]){{.kind = COLUMN_ANY}, {.kind = COLUMN_ANY}}, 2);
    Rule *rules[] = {rule_of(store, PATH, X, Y, 1), rule_of(store, PATH, X, Z, 2),
                     rule_of(store, ONE_WAY, X, Y, 2), rule_of(store, ONE_WAY, X, Y, 3)};
    atom(store, rules[0], 0, EDGE, X, Y);
    atom(store, rules[1], 0, PATH, X, Y);
    atom(store, rules[1], 1, EDGE, Y, Z);
    atom(store, rules[2], 0, EDGE, Z, X);
    atom(store, rules[2], 1, EDGE, Z, Y);
    atom(store, rules[3], 0, EDGE, Z, X);
    atom(store, rules[3], 1, ONE_WAY, Z, W);
    atom(store, rules[3], 2, EDGE, W, Y);
    for (int i = 0; i < 4; i++) store_add_rule(store, rules[i]);
    unsigned number = 5;
    for (int i = 0; i < MANY_EDGES; i++) {
        Datum ends[2];
        for (int j = 0; j < 2; j++) {
            number = number * 1103515245 + 12345;
            ends[j] = constant_int(&store->constants, number / 65536 % MANY_NODES);
        }
        fact_add(store, store->relations.items[EDGE], ends);
    }
    uint64_t count;
    assert_int_equal(store_count(store, store->relations.items[relation], &count), STATUS_OK);
    assert_null(store->relations.items[relation]->derived);
    store_free(store);
    return count;
}

static void test_counts(void **state) {
    (void)state;
    atomic_store(&parts_left, -1);
    for (int relation = PATH; relation <= ONE_WAY; relation += ONE_WAY - PATH) {
        atomic_store(&jobs, 0);
        uint64_t count = count_pairs(false, relation);
        assert_true(count > 10000);
        assert_int_equal(atomic_load(&jobs), 0);
        assert_int_equal(count_pairs(true, relation), count);
        assert_true(atomic_load(&jobs) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_interrupts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
