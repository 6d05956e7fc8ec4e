// Rows found twice keep the smaller key; of rows with best values the better one stays, where the
// derivation of its value puts it.
#define _GNU_SOURCE // qsort_r
#include "logic/collect.h"

#include <stdlib.h>

void collector_begin_round(Collector *collector) {
    collector->settled = collector->table->count;
    collector->changed = false;
}

void collector_begin_rule(Collector *collector, bool keyed, uint32_t width) {
    ASSERT(collector->settled <= collector->table->count);
    collector->segment = collector->table->count;
    collector->keyed = keyed;
    collector->width = width;
    collector->keys.count = 0;
    table_begin_segment(collector->table, keyed);
}

static void key_push(Collector *collector, const uint32_t *path) {
    if (!collector->keyed) return;
    for (uint32_t i = 0; i < collector->width; i++) VECTOR_PUSH(&collector->keys, path[i]);
}

static uint32_t *key_of(Collector *collector, uint32_t row) {
    ASSERT(row >= collector->segment &&
           (size_t)(row - collector->segment + 1) * collector->width <= collector->keys.count);
    return collector->keys.items + (size_t)(row - collector->segment) * collector->width;
}

static bool key_is_less(const uint32_t *a, const uint32_t *b, uint32_t width) {
    for (uint32_t i = 0; i < width; i++)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}

static void key_improve(Collector *collector, uint32_t row, const uint32_t *path) {
    if (!collector->keyed || row < collector->segment || row == ROW_NONE) return;
    uint32_t *key = key_of(collector, row);
    if (key_is_less(path, key, collector->width)) memcpy(key, path, collector->width * sizeof *key);
}

static Datum merge_best(const Store *store, Merge merge, Datum old, Datum new) {
    int order;
    if (merge == MERGE_NONE || !constant_compare(&store->constants, new, old, &order)) return old;
    ASSERT(merge != MERGE_UNION);
    return (merge == MERGE_MIN ? order < 0 : order > 0) ? new : old;
}

Datum merge_values(Store *store, Merge merge, Datum old, Datum new) {
    if (merge == MERGE_UNION) return constant_unite(&store->constants, old, new);
    return merge_best(store, merge, old, new);
}

// The row there has another value in a column with a merge, or the same.
static void row_merge(Collector *collector, Store *store, uint32_t row, const Datum *values,
                      const uint32_t *path) {
    Table *table = collector->table;
    ASSERT(row < table->count && collector->columns);
    Datum merged[ARITY_MAX];
    bool better = false;
    for (uint32_t i = 0; i < table->arity; i++) {
        Datum old = table_at(table, row, i);
        merged[i] = merge_values(store, collector->columns[i].merge, old, values[i]);
        better |= merged[i] != old;
    }
    if (!better) {
        bool same = true; // a derivation of the very value, not of a worse one
        for (uint32_t i = 0; i < table->arity; i++) same &= merged[i] == values[i];
        if (same) key_improve(collector, row, path);
    } else if (collector->keyed && row >= collector->segment) {
        for (uint32_t i = 0; i < table->arity; i++) table->columns[i][row] = merged[i];
        memcpy(key_of(collector, row), path, collector->width * sizeof *path);
    } else {
        table_supersede(table, row, merged);
        key_push(collector, path);
        collector->changed = true;
        if (row >= collector->settled)
            table_bury(table, row);
        else
            VECTOR_PUSH(&collector->superseded, row);
    }
}

void values_lift(Store *store, const Column *columns, uint32_t arity, Datum *values) {
    for (uint32_t i = 0; i < arity; i++)
        if (columns[i].merge == MERGE_UNION)
            values[i] = constant_unite(&store->constants, values[i], values[i]);
}

// *row: its number, where rows are found by numbers or it is of this segment; else ROW_NONE.
static bool row_is_there(const Collector *collector, const Datum *values, uint32_t *row) {
    const Table *table = collector->table;
    bool bits = table->cells;
    if (bits && !cells_have(table->cells, values)) return false;
    *row = bits && !collector->keyed ? ROW_NONE : table_find_recent(table, values);
    return bits || *row != ROW_NONE;
}

// Another solution that gives this row changes nothing.
static bool is_settled(const Collector *collector, const Store *store, const Datum *values) {
    uint32_t row;
    if (!row_is_there(collector, values, &row)) return false;
    for (uint32_t i = 0; collector->columns && i < collector->table->arity; i++) {
        Datum old = table_at(collector->table, row, i);
        if (merge_best(store, collector->columns[i].merge, old, values[i]) != old) return false;
    }
    return !collector->keyed || row == ROW_NONE || row < collector->segment;
}

void collector_add(Collector *collector, Store *store, const Datum *values, const uint32_t *path) {
    if (collector->whole && is_settled(collector->whole, store, values)) return;
    Table *table = collector->table;
    ASSERT(table->arity <= ARITY_MAX);
    Datum lifted[ARITY_MAX];
    if (collector->columns) {
        memcpy(lifted, values, table->arity * sizeof *values);
        values_lift(store, collector->columns, table->arity, lifted);
        values = lifted;
    }
    uint32_t row;
    if (!row_is_there(collector, values, &row)) {
        table_append(table, values);
        key_push(collector, path);
        collector->changed = true;
    } else if (collector->columns) {
        row_merge(collector, store, row, values, path);
    } else {
        key_improve(collector, row, path);
    }
}

void collector_take(Collector *collector, Store *store, Collector *part) {
    ASSERT(part->whole == collector && part->segment == 0);
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; row < part->table->count; row++) {
        if (table_is_dead(part->table, row)) continue;
        table_read(part->table, row, values);
        collector_add(collector, store, values, part->keyed ? key_of(part, row) : NULL);
    }
}

typedef struct Sorting {
    const uint32_t *keys;
    uint32_t first, width;
} Sorting;

static int compare_rows(const void *a, const void *b, void *context) {
    const Sorting *sorting = context;
    const uint32_t *x =
        sorting->keys + (size_t)(*(const uint32_t *)a - sorting->first) * sorting->width;
    const uint32_t *y =
        sorting->keys + (size_t)(*(const uint32_t *)b - sorting->first) * sorting->width;
    for (uint32_t i = 0; i < sorting->width; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

void collector_end_rule(Collector *collector) {
    uint32_t first = collector->segment, count = collector->table->count - first;
    if (!collector->keyed || count < 2) return;
    ASSERT(collector->keys.count == (size_t)count * collector->width); // a key for each row
    SCOPED_MEMORY uint32_t *order = memory_allocate(count * sizeof *order);
    for (uint32_t i = 0; i < count; i++) order[i] = first + i;
    Sorting sorting = {collector->keys.items, first, collector->width};
    qsort_r(order, count, sizeof *order, compare_rows, &sorting);
    table_permute(collector->table, first, order);
}

void collector_end_round(Collector *collector) {
    for (size_t i = 0; i < collector->superseded.count; i++)
        table_bury(collector->table, collector->superseded.items[i]);
    collector->superseded.count = 0;
}

void collector_free(Collector *collector) {
    VECTOR_FREE(&collector->keys);
    VECTOR_FREE(&collector->superseded);
}
