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

// Of numbers so far, of which none or some are floats; whole ones have room for any order of them.
typedef struct Sum {
    __int128 whole;
    double real;
    bool floats;
} Sum;

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

static Status sum_add(Store *store, Aggregate aggregate, Datum value, Sum *sum) {
    double number;
    if (!constant_number(&store->constants, value, &number))
        return fail_aggregate(store, aggregate, value);
    bool whole = constant_kind(&store->constants, value) == CONSTANT_INT;
    if (whole && !sum->floats) {
        sum->whole += constant_integer(&store->constants, value);
        return STATUS_OK;
    }
    if (!sum->floats) sum->real = (double)sum->whole;
    sum->floats = true;
    sum->real += number;
    return STATUS_OK;
}

static Status extreme_take(Store *store, Aggregate aggregate, Datum value, Datum *so_far) {
    ASSERT(aggregate == AGGREGATE_MIN || aggregate == AGGREGATE_MAX);
    int order;
    if (*so_far == CONSTANT_NONE) {
        *so_far = value;
        return STATUS_OK;
    }
    if (!constant_compare(&store->constants, value, *so_far, &order))
        return constants_fail_order(&store->constants, *so_far, value);
    if (aggregate == AGGREGATE_MIN ? order < 0 : order > 0) *so_far = value;
    return STATUS_OK;
}

static bool is_sum(Aggregate aggregate) {
    return aggregate == AGGREGATE_SUM || aggregate == AGGREGATE_AVG;
}

static Status sum_result(Store *store, Aggregate aggregate, const Sum *sum, int64_t count,
                         Datum *out) {
    ASSERT(count > 0);
    double real = sum->floats ? sum->real : (double)sum->whole;
    bool fits = sum->whole >= INT64_MIN && sum->whole <= INT64_MAX;
    if (aggregate == AGGREGATE_AVG)
        *out = constant_float(&store->constants, real / (double)count);
    else if (sum->floats)
        *out = constant_float(&store->constants, real);
    else if (fits)
        *out = constant_int(&store->constants, (int64_t)sum->whole);
    else
        return fail(STATUS_OVERFLOW, "the sum of these %lld ints does not fit in 64 bits",
                    (long long)count);
    return STATUS_OK;
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
    VECTOR(Sum) sums; // one a column of each group, where some are sums
    bool adds;
} Grouping;

static Sum *sum_of(Grouping *grouping, size_t group, uint32_t column) {
    ASSERT(grouping->adds && group < grouping->groups.count);
    return &grouping->sums.items[group * grouping->rule->arity + column];
}

// What stands for the group in the head.
static Status aggregate_result(Grouping *grouping, size_t number, uint32_t column, Datum *out) {
    const Rule *rule = grouping->rule;
    const Group *group = &grouping->groups.items[number];
    ConstantTable *constants = &grouping->store->constants;
    Aggregate aggregate = rule->aggregates[column];
    int64_t count = group->counts[column];
    bool real = rule->relation->columns[column].kind == COLUMN_FLOAT;
    if (is_sum(aggregate))
        return sum_result(grouping->store, aggregate, sum_of(grouping, number, column), count, out);
    *out = group->values[column];
    if (aggregate == AGGREGATE_COUNT)
        *out = real ? constant_float(constants, (double)count) : constant_int(constants, count);
    return STATUS_OK;
}

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
        for (uint32_t i = 0; grouping->adds && i < rule->arity; i++)
            VECTOR_PUSH(&grouping->sums, (Sum){0});
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
        size_t number = (size_t)(group - grouping->groups.items);
        if (is_sum(aggregate)) {
            TRY(sum_add(grouping->store, aggregate, value, sum_of(grouping, number, i)));
        } else if (aggregate != AGGREGATE_COUNT) {
            TRY(extreme_take(grouping->store, aggregate, value, &group->values[i]));
        } else {
            Datum seen[] = {(Datum)number, i, value};
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
    for (uint32_t i = 0; i < rule->arity; i++) grouping.adds |= is_sum(rule->aggregates[i]);
    Status status = STATUS_OK;
    for (uint32_t row = 0; row < solutions->count && status == STATUS_OK; row++)
        status = solution_add(&grouping, row);
    for (size_t i = 0; i < grouping.groups.count && status == STATUS_OK; i++) {
        Datum values[ARITY_MAX];
        for (uint32_t j = 0; j < rule->arity && status == STATUS_OK; j++)
            status = aggregate_result(&grouping, i, j, &values[j]);
        if (status == STATUS_OK) collector_add(into, store, values, NULL);
    }
    if (status != STATUS_OK) error_place(rule->span);
    table_free(grouping.index);
    table_free(grouping.seen);
    VECTOR_FREE(&grouping.groups);
    VECTOR_FREE(&grouping.sums);
    return status;
}
