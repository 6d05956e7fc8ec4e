// Constants and tables: the same is kept once, rows stay in their order, indexes follow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logic/table.h"

#include <cmocka.h>

static void test_constants(void **state) {
    (void)state;
    ConstantTable table = {0};
    int64_t integers[] = {0, -1, 1, 1 << 30, -(1 << 30), INT64_MAX, INT64_MIN, (1 << 30) - 1};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        Datum constant = constant_int(&table, integers[i]);
        assert_int_equal(constant_kind(&table, constant), CONSTANT_INT);
        assert_int_equal(constant_integer(&table, constant), integers[i]);
        assert_int_equal(constant, constant_int(&table, integers[i]));
    }
    for (int i = 0; i < 5000; i++) {
        char text[16];
        int length = snprintf(text, sizeof text, "name%d", i % 1000);
        Datum constant = constant_text(&table, text, (size_t)length);
        assert_int_equal(constant, constant_find_text(&table, text, (size_t)length));
    }
    assert_int_equal(constant_find_text(&table, "other", 5), CONSTANT_NONE);
    assert_int_equal(constant_float(&table, 0.0), constant_float(&table, -0.0));
    assert_int_not_equal(constant_float(&table, 1.0), constant_int(&table, 1));
    Datum pair[] = {constant_int(&table, 1), constant_text(&table, "a", 1)};
    assert_int_equal(constant_tuple(&table, pair, 2), constant_tuple(&table, pair, 2));
    assert_int_not_equal(constant_tuple(&table, pair, 1), constant_tuple(&table, pair, 2));
    constants_free(&table);
}

static void test_order(void **state) {
    (void)state;
    ConstantTable table = {0};
    int order;
    Datum big = constant_int(&table, 9007199254740993);
    assert_true(constant_compare(&table, big, constant_float(&table, 9007199254740992.0), &order));
    assert_int_equal(order, 1);
    assert_true(
        constant_compare(&table, constant_int(&table, 2), constant_float(&table, 2), &order));
    assert_int_equal(order, 0);
    assert_false(constant_compare(&table, big, constant_text(&table, "a", 1), &order));
    Datum a = constant_text(&table, "a", 1), b = constant_text(&table, "b", 1);
    Datum one = constant_unite(&table, b, b);
    Datum both = constant_unite(&table, one, a);
    assert_int_equal(both, constant_unite(&table, a, b));
    assert_int_equal(both, constant_unite(&table, both, one));
    Text text = {0};
    constant_print(&table, both, &text);
    assert_string_equal(text_get(&text), "{\"a\", \"b\"}");
    text_free(&text);
    constants_free(&table);
}

// A table next to a plain list of rows, through additions, removals and compactions.
static void rows_compare(CellsRoom *room) {
    enum { STEPS = 20000, RANGE = 60 };
    Table *table = table_new(2, columns_all(2));
    table_give_room(table, room);
    bool have[RANGE][RANGE] = {{false}};
    uint32_t live = 0;
    srand(1);
    for (int step = 0; step < STEPS; step++) {
        Datum row[] = {(Datum)rand() % RANGE, (Datum)rand() % RANGE};
        assert_int_equal(table_has(table, row), have[row[0]][row[1]]);
        uint32_t found = table_find(table, row);
        assert_int_equal(found != ROW_NONE, have[row[0]][row[1]]);
        assert_true(room->bytes <= room->bytes_most);
        if (found == ROW_NONE)
            table_append(table, row);
        else
            table_remove(table, found);
        have[row[0]][row[1]] = found == ROW_NONE;
        live = found == ROW_NONE ? live + 1 : live - 1;
        assert_int_equal(table_live(table), live);
        if (step % 3001 == 0) table_compact(table);
        if (step % 97) continue;
        Index *index = table_index(table, 2, table->count);
        Datum key[] = {0, (Datum)rand() % RANGE};
        uint32_t expected = 0, chain = 0, before = 0;
        for (int i = 0; i < RANGE; i++) expected += have[i][key[1]];
        for (uint32_t at = index_first(table, index, key); at != ROW_NONE;
             at = index_next(index, at)) {
            assert_true(at >= before);
            before = at + 1;
            chain += !table_is_dead(table, at);
        }
        assert_int_equal(chain, expected);
    }
    table_free(table);
    assert_int_equal(room->bytes, 0);
}

static void test_rows(void **state) {
    (void)state;
    for (int wanted = REPRESENTATION_CHOSEN; wanted <= REPRESENTATION_BITS; wanted++)
        for (uint64_t most = 0; most <= 1 << 20; most = most * 32 + 8)
            rows_compare(&(CellsRoom){.wanted = (Representation)wanted, .bytes_most = most});
}

// Of a key with an old and a new row the new one is found, also when the hash has grown.
static void test_supersede(void **state) {
    (void)state;
    enum { KEYS = 3000 };
    Table *table = table_new(2, 1);
    uint32_t new[KEYS];
    for (Datum key = 0; key < KEYS; key++) table_append(table, (Datum[]){key, 7});
    for (Datum key = 0; key < KEYS; key++)
        new[key] = table_supersede(table, key, (Datum[]){key, 6});
    for (Datum key = KEYS; key < 2 * KEYS; key++) table_append(table, (Datum[]){key, 7});
    for (Datum key = 0; key < KEYS; key++)
        assert_int_equal(table_find(table, (Datum[]){key, 0}), new[key]);
    for (uint32_t row = 0; row < KEYS; row++) table_bury(table, row);
    for (Datum key = 0; key < KEYS; key++)
        assert_int_equal(table_at(table, table_find(table, (Datum[]){key, 0}), 1), 6);
    table_free(table);
}

// Bits of a table whose rows are all gone.
static void test_no_rows(void **state) {
    (void)state;
    for (int wanted = REPRESENTATION_CHOSEN; wanted <= REPRESENTATION_BITS; wanted++) {
        CellsRoom room = {.wanted = (Representation)wanted, .bytes_most = 1 << 20};
        Table *table = table_new(1, 1);
        for (Datum i = 1; i < 9000; i++) table_append(table, &i);
        for (uint32_t row = 0; row < table->count; row++) table_remove(table, row);
        table_give_room(table, &room);
        assert_null(table->cells);
        table_append(table, &(Datum){5});
        assert_true(table_has(table, &(Datum){5}));
        table_free(table);
    }
}

// Segments whose rows are known by their numbers, and others; values out of all ranges so far.
static void segments_fill(CellsRoom *room, const char *name) {
    enum { ROWS = 3000, SEGMENT = 100 };
    Table *table = table_new(2, columns_all(2));
    table_give_room(table, room);
    for (uint32_t i = 0; i < ROWS; i++) {
        bool numbers = i / SEGMENT % 2 == 1;
        if (i % SEGMENT == 0) table_begin_segment(table, numbers);
        uint32_t place = i % 2 ? i : ROWS - i; // below and above what there is
        Datum row[] = {place * 2 + 1, i % 3 + 1};
        assert_false(table_has(table, row));
        assert_int_equal(table_append(table, row), i);
        assert_true(table_has(table, row));
        if (numbers) assert_int_equal(table_find_recent(table, row), i);
    }
    assert_string_equal(cells_name(table->cells), name);
    Table *copy = table_copy(table);
    assert_string_equal(cells_name(copy->cells), name);
    Datum row[] = {(ROWS - 2) * 2 + 1, 3};
    assert_int_equal(table_find(copy, row), 2);
    table_free(copy);
    assert_int_equal(table_find(table, row), 2);
    table_begin_segment(table, true);
    for (uint32_t i = 0; i < ROWS; i++)
        if (i != 2) table_remove(table, i);
    table_compact(table);
    assert_int_equal(table_find(table, row), 0);
    table_free(table);
    assert_int_equal(room->bytes, 0);
}

static void test_segments(void **state) {
    (void)state;
    const char *const names[] = {"tuples", "tuples", "sparse rows", "dense bits"};
    for (int wanted = REPRESENTATION_CHOSEN; wanted <= REPRESENTATION_BITS; wanted++)
        segments_fill(&(CellsRoom){.wanted = (Representation)wanted, .bytes_most = 1 << 20},
                      names[wanted]);
}

static void test_permute(void **state) {
    (void)state;
    enum { FIRST = 5, COUNT = 100 };
    Table *table = table_new(1, 1);
    uint32_t order[COUNT - FIRST];
    for (Datum i = 0; i < COUNT; i++) table_append(table, &i);
    for (uint32_t i = 0; i < COUNT - FIRST; i++) order[i] = COUNT - 1 - i;
    table_permute(table, FIRST, order);
    for (Datum i = 0; i < COUNT; i++) {
        uint32_t row = i < FIRST ? i : COUNT - 1 - (i - FIRST);
        assert_int_equal(table_find(table, &i), row);
        assert_int_equal(table_at(table, row, 0), i);
    }
    table_free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants), cmocka_unit_test(test_order),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_supersede),
        cmocka_unit_test(test_no_rows),   cmocka_unit_test(test_segments),
        cmocka_unit_test(test_permute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
