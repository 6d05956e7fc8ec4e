// What edits go through: what changes, and not all that rests on it. On(X, Z): X leads to the end
// Z.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "logic/evaluate.h"

#include <cmocka.h>
#undef fail // of cmocka

enum { LENGTH = 1000, MIDDLE = LENGTH / 2, BY_WAY = LENGTH + 1, WAYS = 10, FEW = 500 };

static Status interrupted(void *context) {
    (void)context;
    return STATUS_OK;
}

static void atom(Rule *rule, uint32_t number, Relation *relation, const uint32_t *variables) {
    Goal *goal = &rule->goals[number];
    *goal = (Goal){.kind = GOAL_ATOM, .relation = relation};
    goal->terms = arena_allocate(&rule->arena, 2 * sizeof *goal->terms);
    for (int i = 0; i < 2; i++) goal->terms[i] = (Term){TERM_VARIABLE, variables[i]};
}

static Rule *rule_of(Relation *head, uint32_t goals) {
    Rule *rule = rule_new(3, 2, goals);
    rule->relation = head;
    rule->head[0] = (Term){TERM_VARIABLE, 0};
    rule->head[1] = (Term){TERM_VARIABLE, 2};
    return rule;
}

typedef struct Chain {
    Store *store;
    Relation *next, *end, *on;
} Chain;

static void edge(Chain *chain, int from, int to, bool comes) {
    Datum row[] = {constant_int(&chain->store->constants, from),
                   constant_int(&chain->store->constants, to)};
    bool changed = comes ? fact_add(chain->store, chain->next, row)
                         : fact_remove(chain->store, chain->next, row);
    assert_true(changed);
}

// How many rows lead to the end; *steps: what was gone through since it was last asked.
static uint64_t count(Chain *chain, uint64_t *steps) {
    uint64_t before = chain->store->followed;
    assert_int_equal(store_gather(chain->store, chain->on), STATUS_OK);
    *steps = chain->store->followed - before;
    return table_live(chain->on->derived);
}

// A way round the middle, which is longer: what lies before leads to the end as before.
static void way_of(Chain *chain, int ways, int by, bool comes) {
    for (int i = 0; i < ways; i++)
        edge(chain, i ? by + i : MIDDLE, i + 1 < ways ? by + i + 1 : MIDDLE + 1, comes);
}

static void way_round(Chain *chain, bool comes) {
    way_of(chain, WAYS, BY_WAY, comes);
}

// Ends at LENGTH.
static Chain chain_new(void) {
    static const StoreHost host = {.interrupted = interrupted};
    const Column columns[] = {{.name = "x"}, {.name = "y"}};
    Chain chain = {.store = store_new(&host)};
    chain.next = relation_new(chain.store, "Next", columns, 2);
    chain.end = relation_new(chain.store, "End", columns, 2);
    chain.on = relation_new(chain.store, "On", columns, 2);
    Rule *at = rule_of(chain.on, 1), *further = rule_of(chain.on, 2);
    atom(at, 0, chain.end, (uint32_t[]){0, 2});
    atom(further, 0, chain.next, (uint32_t[]){0, 1});
    atom(further, 1, chain.on, (uint32_t[]){1, 2});
    store_add_rule(chain.store, at);
    store_add_rule(chain.store, further);
    for (int i = 0; i < LENGTH; i++) edge(&chain, i, i + 1, true);
    Datum last = constant_int(&chain.store->constants, LENGTH);
    assert_true(fact_add(chain.store, chain.end, (Datum[]){last, last}));
    return chain;
}

static void test_a_place_between_two(void **state) {
    (void)state;
    Chain chain = chain_new();
    uint64_t steps;
    assert_int_equal(count(&chain, &steps), LENGTH + 1);
    for (int again = 0; again < 3; again++) {
        edge(&chain, MIDDLE, MIDDLE + 1, false);
        way_round(&chain, true);
        assert_int_equal(count(&chain, &steps), LENGTH + WAYS);
        assert_in_range(steps, 1, FEW);
        way_round(&chain, false);
        edge(&chain, MIDDLE, MIDDLE + 1, true);
        assert_int_equal(count(&chain, &steps), LENGTH + 1);
        assert_in_range(steps, 1, FEW);
    }
    store_free(chain.store);
}

static void test_another_way_that_is_longer(void **state) {
    (void)state;
    Chain chain = chain_new();
    uint64_t steps;
    way_round(&chain, true);
    assert_int_equal(count(&chain, &steps), LENGTH + WAYS);
    for (int again = 0; again < 3; again++) {
        edge(&chain, MIDDLE, MIDDLE + 1, false);
        assert_int_equal(count(&chain, &steps), LENGTH + WAYS);
        assert_in_range(steps, 1, FEW);
        edge(&chain, MIDDLE, MIDDLE + 1, true);
        assert_int_equal(count(&chain, &steps), LENGTH + WAYS);
        assert_in_range(steps, 1, FEW);
    }
    store_free(chain.store);
}

// Two of three ways are lost: a row that was raised above the second rests on the third at last.
static void test_the_third_way(void **state) {
    (void)state;
    Chain chain = chain_new();
    uint64_t steps;
    way_round(&chain, true);
    way_of(&chain, 2 * WAYS, BY_WAY + WAYS, true);
    assert_int_equal(count(&chain, &steps), LENGTH + 3 * WAYS - 1);
    edge(&chain, MIDDLE, MIDDLE + 1, false);
    edge(&chain, BY_WAY + WAYS - 1, MIDDLE + 1, false);
    assert_int_equal(count(&chain, &steps), LENGTH + 2 * WAYS);
    store_free(chain.store);
}

// Rows that rest on nothing but each other go, and come back.
static void test_circles(void **state) {
    (void)state;
    Chain chain = chain_new();
    uint64_t steps;
    assert_int_equal(count(&chain, &steps), LENGTH + 1);
    for (int i = 0; i < MIDDLE; i += 7) edge(&chain, i + 7, i, true);
    assert_int_equal(count(&chain, &steps), LENGTH + 1);
    edge(&chain, MIDDLE + 7, MIDDLE + 8, false);
    assert_int_equal(count(&chain, &steps), LENGTH - MIDDLE - 7);
    edge(&chain, 3, MIDDLE + 8, true); // three behind the last way back stay without an end
    assert_int_equal(count(&chain, &steps), LENGTH + 1 - 3);
    store_free(chain.store);
}

// Meets(X, Z): both lead to the end. The rows of every pair go: each pair is found from the first
// of its two alone.
static void test_proofs_of_rows_that_all_go(void **state) {
    (void)state;
    enum { PLACES = 30, PAIRS = PLACES * PLACES };
    Chain chain = chain_new();
    const Column columns[] = {{.name = "x"}, {.name = "y"}};
    Relation *meets = relation_new(chain.store, "Meets", columns, 2);
    Relation *none = relation_new(chain.store, "None", columns, 2);
    Rule *both = rule_of(meets, 2), *back = rule_of(chain.on, 2);
    atom(both, 0, chain.on, (uint32_t[]){0, 1});
    atom(both, 1, chain.on, (uint32_t[]){2, 1});
    atom(back, 0, meets, (uint32_t[]){0, 1}); // they need each other
    atom(back, 1, none, (uint32_t[]){1, 2});
    store_add_rule(chain.store, both);
    store_add_rule(chain.store, back);
    edge(&chain, LENGTH - PLACES, LENGTH - PLACES + 1, false);
    uint64_t steps;
    assert_int_equal(count(&chain, &steps), PLACES);
    assert_int_equal(table_live(meets->derived), PAIRS);
    edge(&chain, LENGTH - 1, LENGTH, false);
    assert_int_equal(count(&chain, &steps), 1);
    assert_int_equal(table_live(meets->derived), 1);
    assert_in_range(steps, 1, 5 * PAIRS);
    store_free(chain.store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_place_between_two),
        cmocka_unit_test(test_another_way_that_is_longer),
        cmocka_unit_test(test_the_third_way),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_proofs_of_rows_that_all_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
