// Text files, separated values and JSON.
#include "tests/library/calling.h"

#include <stdio.h>
#include <unistd.h>

static char folder[64], path[96];

static int make_folder(void **state) {
    start_heap(state);
    snprintf(folder, sizeof folder, "/tmp/tl-test-files-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file.txt", folder);
    return 0;
}

static int remove_folder(void **state) {
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    return end_heap(state);
}

static void write_text(const char *text) {
    expect_text(CALL("write_file", S(path), S(text)), "none");
}

static void test_text_files(void **state) {
    (void)state;
    write_text("\xEF\xBB\xBFone\r\ntwo\n\nlast");
    expect_text(CALL("read_file", S(path)), "\"one\\r\\ntwo\\n\\nlast\"");
    expect_text(CALL("read_lines", S(path)), "[\"one\", \"two\", \"\", \"last\"]");
    expect_text(CALL("write_file", S(path), S(" more"), value_bool(true)), "none");
    expect_text(CALL("read_lines", S(path)), "[\"one\", \"two\", \"\", \"last more\"]");
    expect_text(CALL("exists", S(path)), "true");
    expect_text(CALL("exists", S("/nowhere/at/all")), "false");
    expect_text(CALL("list_dir", S(folder)), "[\"file.txt\"]");
    expect_failure(CALL("read_file", S("/nowhere")), STATUS_IO,
                   "cannot read \"/nowhere\": No such file or directory");
    expect_failure(CALL("read_file", S("/tmp")), STATUS_IO, "cannot read \"/tmp\": Is a directory");
    expect_failure(CALL("write_file", S("/nowhere/x"), S("")), STATUS_IO,
                   "cannot write \"/nowhere/x\": No such file or directory");
    write_text("ab\xFF");
    char message[160];
    snprintf(message, sizeof message, "cannot read \"%s\" as text: byte 2 is not UTF-8", path);
    expect_failure(CALL("read_file", S(path)), STATUS_IO, message);
}

static void test_separated_values(void **state) {
    (void)state;
    write_text("1,2.5,x\r\n\"a,\"\"b\",\"7\",-3\n\n");
    expect_text(CALL("read_csv", S(path)), "[[1, 2.5, \"x\"], [\"a,\\\"b\", \"7\", -3]]");
    write_text("name;n\né;1\nz;");
    expect_text(CALL("read_csv", S(path), S(";"), value_bool(true)),
                "[{\"name\": \"é\", \"n\": 1}, {\"name\": \"z\", \"n\": \"\"}]");
    write_text("a,b\n1\n");
    char message[160];
    snprintf(message, sizeof message, "%s: line 2 has 1 field, the header has 2", path);
    expect_failure(CALL("read_csv", S(path), S(","), value_bool(true)), STATUS_FORMAT, message);
    write_text("a,\"b\n\n");
    snprintf(message, sizeof message, "%s: the quote opened in line 1 is never closed", path);
    expect_failure(CALL("read_csv", S(path)), STATUS_FORMAT, message);
    Value rows =
        LIST(LIST(value_int(1), S("a,b"), S("7")), TUPLE(value_float(2.5), S("q\"q"), S("line\n")));
    expect_text(CALL("write_csv", S(path), value_retain(rows)), "none");
    expect_text(CALL("read_file", S(path)),
                "\"1,\\\"a,b\\\",\\\"7\\\"\\n2.5,\\\"q\\\"\\\"q\\\",\\\"line\\n\\\"\\n\"");
    expect_text(CALL("read_csv", S(path)), "[[1, \"a,b\", \"7\"], [2.5, \"q\\\"q\", \"line\\n\"]]");
    value_release(rows);
    Value row = CALL("parse_json", S("[{\"x\": 1, \"y\": 2}, {\"y\": 4, \"x\": 3}]"));
    expect_text(CALL("write_csv", S(path), row), "none");
    expect_text(CALL("read_csv", S(path), S(","), value_bool(true)),
                "[{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}]");
    Value matrix = CALL("tensor", CALL("parse_json", S("[[1, 2], [3, 4]]")));
    expect_text(CALL("write_csv", S(path), matrix, S("\t")), "none");
    expect_text(CALL("read_csv", S(path), S("\t")), "[[1, 2], [3, 4]]");
    expect_failure(CALL("read_csv", S(path), S(", ")), STATUS_VALUE,
                   "separator must be one character and no quote or line end, but it is \", \"");
}

static void test_json_round_trips(void **state) {
    (void)state;
    const char *const texts[] = {
        "null",
        "true",
        "-5",
        "1.5",
        "1e+21",
        "\"a\\n\\\"é\\u0001\"",
        "[]",
        "{}",
        "[1, [2.0, null], {\"k\": \"v\", \"a\": []}]",
        "9223372036854775807",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        Value text = CALL("to_json", CALL("parse_json", S(texts[i])));
        assert_int_equal(text.kind, VALUE_STRING);
        assert_string_equal(text.as.string->bytes, texts[i]);
    }
    expect_text(CALL("parse_json", S("\"\\ud83e\\udd99\"")), "\"🦙\"");
    Value value = CALL("parse_json", S("{\"a\": [1, {}], \"b\": []}"));
    Value text = CALL("to_json", value, value_int(2));
    assert_string_equal(text.as.string->bytes,
                        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    Value tensor = CALL("tensor", CALL("parse_json", S("[[1.5, 2], [3, 4]]")));
    expect_text(CALL("to_json", tensor), "\"[[1.5, 2.0], [3.0, 4.0]]\"");
    expect_text(CALL("to_json", TUPLE(value_range(0, 3, 1), value_bool(false))),
                "\"[[0, 1, 2], false]\"");
}

static void test_json_that_is_refused(void **state) {
    (void)state;
    expect_failure(CALL("parse_json", S("[1,\n 2,,]")), STATUS_FORMAT,
                   "parse_json: unexpected token near ',' (line 2, column 4)");
    assert_int_equal(CALL("parse_json", S("")).kind, VALUE_FAIL);
    assert_int_equal(CALL("parse_json", S("99999999999999999999")).kind, VALUE_FAIL);
    Text deep = {0};
    text_append_repeated(&deep, '[', 100000);
    expect_failure(CALL("parse_json", S(text_get(&deep))), STATUS_FORMAT,
                   "parse_json: maximum parsing depth reached near '[' (line 1, column 2049)");
    text_free(&deep);
    expect_failure(CALL("to_json", value_float(1.0 / 0.0)), STATUS_VALUE,
                   "to_json: JSON has no inf");
    expect_failure(CALL("to_json", value_function(NULL, NULL, 0)), STATUS_TYPE,
                   "to_json: JSON has nothing for a function");
    Value list = value_list(0);
    list_push(list.as.list, value_retain(list));
    expect_failure(CALL("to_json", list), STATUS_DEPTH,
                   "to_json: the value is nested more than 1000 deep, or contains itself");
    heap_clear_all();
}

int main(void) {
    heap_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_files),
        cmocka_unit_test(test_separated_values),
        cmocka_unit_test(test_json_round_trips),
        cmocka_unit_test(test_json_that_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
