// A row of a closure is found first on its shortest way, in the round of that way's length; rows of
// one round are ordered by the edges of their ways, the first edge first.
#include "logic/closure.h"

#include <stdlib.h>

static bool is_variable(const Term *term, uint32_t number) {
    return term->kind == TERM_VARIABLE && term->value == number;
}

static bool goal_is(const Goal *goal, const Relation *relation, uint32_t from, uint32_t to) {
    return goal->kind == GOAL_ATOM && goal->relation == relation &&
           is_variable(&goal->terms[0], from) && is_variable(&goal->terms[1], to);
}

static bool head_is_pair(const Rule *rule) {
    return !rule->aggregates && rule->head[0].kind == TERM_VARIABLE &&
           rule->head[1].kind == TERM_VARIABLE && rule->head[0].value != rule->head[1].value;
}

// P(X, Z) <- E(X, Z)
static Relation *base_of(const Rule *rule) {
    ASSERT(rule->relation != NULL);
    if (rule->goal_count != 1 || !head_is_pair(rule)) return NULL;
    Relation *base = rule->goals[0].relation;
    bool fits = base && base != rule->relation && base->arity == 2 &&
                base->stratum < rule->relation->stratum &&
                goal_is(&rule->goals[0], base, rule->head[0].value, rule->head[1].value);
    return fits ? base : NULL;
}

static bool is_step(const Rule *rule, const Relation *base, bool doubling) {
    if (rule->goal_count != 2 || !head_is_pair(rule)) return false;
    const Goal *first = &rule->goals[0], *second = &rule->goals[1];
    if (first->kind != GOAL_ATOM || first->relation->arity != 2) return false;
    uint32_t from = rule->head[0].value, to = rule->head[1].value;
    uint32_t middle = first->terms[1].value;
    bool apart = first->terms[1].kind == TERM_VARIABLE && middle != from && middle != to;
    bool left = goal_is(first, rule->relation, from, middle) && goal_is(second, base, middle, to);
    bool right = goal_is(first, base, from, middle) && goal_is(second, rule->relation, middle, to);
    bool twice = doubling && goal_is(first, rule->relation, from, middle) &&
                 goal_is(second, rule->relation, middle, to);
    return apart && (left || right || twice);
}

static Relation *base_find(const Relation *relation, bool doubling) {
    if (relation->arity != 2 || relation->rules.count != 2 || table_live(relation->facts) > 0 ||
        relation->key != columns_all(2))
        return NULL;
    const Rule *first = relation->rules.items[0], *second = relation->rules.items[1];
    Relation *base = base_of(first->goal_count == 1 ? first : second);
    const Rule *step = first->goal_count == 1 ? second : first;
    return base && is_step(step, base, doubling) ? base : NULL;
}

Relation *closure_base(const Relation *relation) {
    return base_find(relation, false);
}

Relation *closure_base_of_set(const Relation *relation) {
    return base_find(relation, true);
}

static void row_add(Table *rows, Datum from, Datum to) {
    Datum row[] = {from, to};
    if (!table_has(rows, row)) table_append(rows, row);
}

static void follow(const Table *edges, const Index *index, Datum node, Datum from, Table *rows) {
    ASSERT(edges->arity == 2);
    Datum key[] = {node, 0};
    uint32_t edge = index_first(edges, index, key);
    for (; edge != ROW_NONE; edge = index_next(index, edge))
        if (!table_is_dead(edges, edge)) row_add(rows, from, table_at(edges, edge, 1));
}

// From one node: breadth first, the queue being the rows themselves.
static Status rows_from(Store *store, Table *edges, Datum from, Table *rows) {
    const Index *index = table_index(edges, 1, edges->count);
    follow(edges, index, from, from, rows);
    for (uint32_t row = 0; row < rows->count; row++) {
        follow(edges, index, table_at(rows, row, 1), from, rows);
        if (row % 1024 == 0) TRY(store->host.interrupted(store->host.context));
    }
    return STATUS_OK;
}

static int compare_edges(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// To one node: backwards, level by level; within a level by the first edge of the way.
static Status rows_to(Store *store, Table *edges, Datum to, Table *rows) {
    const Index *index = table_index(edges, 2, edges->count);
    SCOPED_MEMORY VECTOR(uint32_t) level = {0};
    Datum key[] = {0, to};
    uint32_t edge = index_first(edges, index, key), next = 0;
    Status status = STATUS_OK;
    for (; edge != ROW_NONE; edge = index_next(index, edge)) VECTOR_PUSH(&level, edge);
    while (level.count > 0 && status == STATUS_OK) {
        qsort(level.items, level.count, sizeof *level.items, compare_edges);
        for (size_t i = 0; i < level.count; i++)
            if (!table_is_dead(edges, level.items[i]))
                row_add(rows, table_at(edges, level.items[i], 0), to);
        level.count = 0;
        for (; next < rows->count; next++) {
            key[1] = table_at(rows, next, 0);
            for (edge = index_first(edges, index, key); edge != ROW_NONE;
                 edge = index_next(index, edge)) {
                Datum row[] = {table_at(edges, edge, 0), to};
                if (!table_has(rows, row)) VECTOR_PUSH(&level, edge);
            }
        }
        status = store->host.interrupted(store->host.context);
    }
    return status;
}

Status closure_rows(Store *store, const Relation *base, const Datum *values, Table **out) {
    ASSERT(base->arity == 2 && (values[0] != CONSTANT_NONE || values[1] != CONSTANT_NONE));
    Table *edges = relation_table(base), *rows = table_new(2, columns_all(2));
    table_give_room(rows, &store->room);
    Status status = values[0] != CONSTANT_NONE ? rows_from(store, edges, values[0], rows)
                                               : rows_to(store, edges, values[1], rows);
    *out = rows;
    if (status == STATUS_OK) return status;
    table_free(rows);
    *out = NULL;
    return status;
}
