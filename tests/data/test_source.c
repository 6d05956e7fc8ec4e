// What a source of data writes for a row: all of the row's numbers, and nothing beyond them, since
// rows of one batch lie next to each other and are read by several threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/source.h"

#include <cmocka.h> // its fail() hides ours

enum { ROOM = 256, GUARD = 0xA5 };

static char path[] = "/tmp/tl_source_XXXXXX";

static void write_file(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int make_path(void **state) {
    (void)state;
    int file = mkstemp(path);
    return file < 0 || close(file) != 0;
}

static int remove_path(void **state) {
    (void)state;
    return remove(path);
}

// Every row, last first, with guards behind each field.
static void expect_rows(DataSource *source, int64_t rows, void (*see)(int64_t, void *const *)) {
    assert_int_equal(source->count, rows);
    for (int64_t row = rows; row-- > 0;) {
        _Alignas(8) unsigned char room[DATA_FIELDS_MAX][ROOM];
        memset(room, GUARD, sizeof room);
        void *fields[DATA_FIELDS_MAX] = {room[0], room[1]};
        assert_int_equal(source->read(source, row, fields), STATUS_OK);
        for (int field = 0; field < source->n_fields; field++)
            for (size_t at = data_field_bytes(&source->fields[field]); at < ROOM; at++)
                assert_int_equal(room[field][at], GUARD);
        see(row, fields);
    }
    source->free(source);
}

static void see_window(int64_t row, void *const *fields) {
    const int64_t *x = fields[0], *y = fields[1];
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(x[i], 'a' + row * 3 + i);
        assert_int_equal(y[i], x[i] + 1);
    }
}

static void test_windows_of_text(void **state) {
    (void)state;
    DataSource *source;
    write_file("abcdefgh");
    assert_int_equal(data_open_text(path, 3, &source), STATUS_OK);
    expect_rows(source, 2, see_window);
}

static void see_line(int64_t row, void *const *fields) {
    const float *x = fields[0], *y = fields[1];
    for (int64_t i = 0; i < 2; i++) assert_int_equal(x[i], row * 10 + i);
    assert_int_equal(*y, row * 10 + 2);
}

static void test_lines_of_numbers(void **state) {
    (void)state;
    DataSource *source;
    write_file("a,b,c\n0,1,2\n10,11,12\n20,21,22\n");
    assert_int_equal(data_open_csv(path, "c", ',', &source), STATUS_OK);
    expect_rows(source, 3, see_line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_of_text),
        cmocka_unit_test(test_lines_of_numbers),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
