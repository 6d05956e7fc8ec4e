// Aggregates over the solutions of a rule: a group for each value of the plain columns of the head.
// `count` counts different values; the others take every solution into account.
#include <stdlib.h>

#include "logic/aggregate.h"
#include "logic/collect.h"
#include "logic/expression.h"

typedef struct Group {
    Datum values[ARITY_MAX]; // of plain columns as they are, of aggregates what they are so far
    int64_t counts[ARITY_MAX];
    uint32_t first; // the first solution: its path
} Group;

typedef VECTOR(Group) GroupList;

static Datum head_value(const Rule *rule, const Table *solutions, uint32_t row, uint32_t column) {
    ASSERT(column < rule->arity && row < solutions->count);
    const Term *term = &rule->head[column];
    if (term->kind == TERM_ANY) return row; // count(_): each solution is another
    return term->kind == TERM_CONSTANT ? term->value : table_at(solutions, row, term->value);
}

static Status fail_aggregate(Store *store, Aggregate aggregate, Datum value) {
    static const char *const words[] = {"", "count", "sum", "min", "max", "avg"};
    SCOPED_TEXT(text);
    constant_print(&store->constants, value, &text);
    fail(STATUS_TYPE, "%s takes numbers, but %s is of type %s", words[aggregate], text_get(&text),
         constant_kind_name(constant_kind(&store->constants, value)));
    return STATUS_TYPE;
}

static Status aggregate_one(Store *store, Aggregate aggregate, Datum value, Datum *so_far) {
    ASSERT(aggregate != AGGREGATE_NONE);
    int order;
    double number;
    bool sums = aggregate == AGGREGATE_SUM || aggregate == AGGREGATE_AVG;
    if (sums && !constant_number(&store->constants, value, &number))
        return fail_aggregate(store, aggregate, value);
    if (*so_far == CONSTANT_NONE) {
        *so_far = value;
        return STATUS_OK;
    }
    if (sums) return constant_add(store, *so_far, value, so_far);
    if (!constant_compare(&store->constants, value, *so_far, &order))
        return constants_fail_order(&store->constants, *so_far, value);
    if (aggregate == AGGREGATE_MIN ? order < 0 : order > 0) *so_far = value;
    return STATUS_OK;
}

// What stands for the group in the head.
static Datum aggregate_result(Store *store, const Rule *rule, const Group *group, uint32_t column) {
    ASSERT(rule->aggregates && column < rule->arity);
    Aggregate aggregate = rule->aggregates[column];
    bool real = rule->relation->columns[column].kind == COLUMN_FLOAT;
    if (aggregate == AGGREGATE_COUNT && real)
        return constant_float(&store->constants, (double)group->counts[column]);
    if (aggregate == AGGREGATE_COUNT) return constant_int(&store->constants, group->counts[column]);
    if (aggregate != AGGREGATE_AVG) return group->values[column];
    double sum = 0;
    constant_number(&store->constants, group->values[column], &sum);
    return constant_float(&store->constants, sum / (double)group->counts[column]);
}

Columns aggregate_plain_columns(const Rule *rule) {
    ASSERT(rule->aggregates != NULL);
    Columns plain = 0;
    for (uint32_t i = 0; i < rule->arity; i++)
        if (rule->aggregates[i] == AGGREGATE_NONE) plain |= 1u << i;
    return plain;
}

// Groups by the plain columns; `seen` has, for count, a row for each group, column and value.
typedef struct Grouping {
    Store *store;
    const Rule *rule;
    const Table *solutions;
    Table *index, *seen;
    GroupList groups;
} Grouping;

static Group *group_of(Grouping *grouping, uint32_t row) {
    ASSERT(row < grouping->solutions->count);
    const Rule *rule = grouping->rule;
    Datum key[ARITY_MAX] = {0};
    for (uint32_t i = 0; i < rule->arity; i++)
        if (rule->aggregates[i] == AGGREGATE_NONE)
            key[i] = head_value(rule, grouping->solutions, row, i);
    uint32_t number = table_find(grouping->index, key);
    if (number == ROW_NONE) {
        number = table_append(grouping->index, key);
        Group group = {.first = row};
        memcpy(group.values, key, sizeof key);
        VECTOR_PUSH(&grouping->groups, group);
    }
    return &grouping->groups.items[number];
}

static Status solution_add(Grouping *grouping, uint32_t row) {
    const Rule *rule = grouping->rule;
    Group *group = group_of(grouping, row);
    for (uint32_t i = 0; i < rule->arity; i++) {
        Aggregate aggregate = rule->aggregates[i];
        if (aggregate == AGGREGATE_NONE) continue;
        Datum value = head_value(rule, grouping->solutions, row, i);
        if (aggregate != AGGREGATE_COUNT) {
            TRY(aggregate_one(grouping->store, aggregate, value, &group->values[i]));
        } else {
            Datum seen[] = {(Datum)(group - grouping->groups.items), i, value};
            if (table_has(grouping->seen, seen)) continue;
            table_append(grouping->seen, seen);
        }
        group->counts[i]++;
    }
    return STATUS_OK;
}

Status aggregate_rows(Store *store, const Rule *rule, const Table *solutions, Collector *into) {
    ASSERT(rule->aggregates && rule->arity <= ARITY_MAX);
    enum { SEEN_ARITY = 3 };
    Grouping grouping = {.store = store, .rule = rule, .solutions = solutions};
    grouping.index = table_new(rule->arity, aggregate_plain_columns(rule));
    grouping.seen = table_new(SEEN_ARITY, columns_all(SEEN_ARITY));
    Status status = STATUS_OK;
    for (uint32_t row = 0; row < solutions->count && status == STATUS_OK; row++)
        status = solution_add(&grouping, row);
    if (status != STATUS_OK) error_place(rule->span);
    for (size_t i = 0; i < grouping.groups.count && status == STATUS_OK; i++) {
        Datum values[ARITY_MAX];
        for (uint32_t j = 0; j < rule->arity; j++)
            values[j] = rule->aggregates[j] == AGGREGATE_NONE
                            ? grouping.groups.items[i].values[j]
                            : aggregate_result(store, rule, &grouping.groups.items[i], j);
        collector_add(into, store, values, NULL);
    }
    table_free(grouping.index);
    table_free(grouping.seen);
    VECTOR_FREE(&grouping.groups);
    return status;
}
