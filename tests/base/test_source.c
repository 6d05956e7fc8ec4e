// Source texts and file mappings: places, lines, and files that cannot be read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_map.h"
#include "base/source.h"

#include <cmocka.h> // its fail() hides ours

static const SourceFile *add(const char *name, const char *text, size_t length) {
    const SourceFile *file;
    assert_int_equal(source_add(name, text, length, &file), STATUS_OK);
    return file;
}

static void test_places(void **state) {
    (void)state;
    const SourceFile *a = add("a.tl", "one\r\ntwo é x\n\nlast", 20);
    const SourceFile *empty = add("empty.tl", "", 0);
    const SourceFile *b = add("b.tl", "x\0y\n", 4);
    static const struct {
        uint32_t offset;
        int line, column, length;
    } rows[] = {{0, 1, 1, 3},  {3, 1, 4, 3},  {4, 1, 5, 3},  {5, 2, 1, 8},  {9, 2, 5, 8},
                {11, 2, 6, 8}, {12, 2, 7, 8}, {14, 3, 1, 0}, {15, 4, 1, 5}, {20, 4, 6, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SourcePlace place = source_find(a->base + rows[i].offset);
        assert_ptr_equal(place.file, a);
        assert_int_equal(place.line, rows[i].line);
        assert_int_equal(place.column, rows[i].column);
        assert_int_equal(place.line_length, rows[i].length);
    }
    assert_ptr_equal(source_find(empty->base).file, empty);
    assert_int_equal(source_find(empty->base).line, 1);
    assert_ptr_equal(source_find(b->base).file, b);
    assert_int_equal(source_find(b->base + 4).line, 2);
    assert_null(source_find(0).file);
    assert_null(source_find(b->base + 5).file);
    assert_null(source_find(UINT32_MAX).file);
    size_t length;
    const char *text = source_text((Span){a->base + 5, a->base + 8}, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "two", 3);
    source_text((Span){b->base, b->base + 100}, &length);
    assert_int_equal(length, 4);
    source_text((Span){0, 0}, &length);
    assert_int_equal(length, 0);
    source_reset();
    assert_null(source_find(1).file);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_error(Status status, const char *words) {
    assert_int_equal(status, STATUS_IO);
    if (!strstr(error_current()->message, words)) fail_msg("%s", error_current()->message);
}

static void test_files(void **state) {
    (void)state;
    char folder[] = "/tmp/tl_test_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    const SourceFile *source;
    FileMap *map;
    assert_error(source_load(path, &source), "No such file");
    assert_error(file_map_open(path, &map), "No such file");
    assert_error(source_load(folder, &source), "it is a directory");
    assert_error(file_map_open(folder, &map), "it is a directory");
    assert_error(file_map_open("/dev/null", &map), "not a regular file");

    write_file(path, "");
    assert_int_equal(source_load(path, &source), STATUS_OK);
    assert_int_equal(source->length, 0);
    assert_int_equal(file_map_open(path, &map), STATUS_OK);
    assert_int_equal(file_map_length(map), 0);
    file_map_release(map);

    write_file(path, "hello\n");
    assert_int_equal(source_load(path, &source), STATUS_OK);
    assert_string_equal(source->text, "hello\n");
    assert_string_equal(source->name, path);
    assert_int_equal(file_map_open(path, &map), STATUS_OK);
    assert_int_equal(file_map_length(map), 6);
    assert_string_equal(file_map_path(map), path);
    assert_ptr_equal(file_map_retain(map), map);
    file_map_release(map);
    assert_memory_equal(file_map_bytes(map), "hello\n", 6);
    file_map_release(map);
    file_map_release(NULL);

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); // opening it must not wait for a writer
    assert_error(file_map_open(path, &map), "not a regular file");
    unlink(path);
    rmdir(folder);
    assert_error(source_load("/dev/zero", &source), "larger than");
    source_reset();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
