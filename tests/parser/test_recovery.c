// Recovery: one mistake is one error; and texts of any size are read or refused cleanly.
#include "outcome.h"

// One mistake is one error, and what stands after it is still read.
static void test_recovery(void **state) {
    (void)state;
    static const struct {
        const char *source;
        size_t errors, statements;
    } rows[] = {
        {"a b\nc\n", 1, 1},
        {"f(1 2,\n 3)\nx = 1\n", 1, 1},
        {"x = {\"a\": 1 2,\n \"b\": 2}\ny = 1\n", 1, 1},
        {"f(1 2, fn(x) {\n let y = 3\n y\n})\nz\n", 1, 1},
        {"match x {\n 1 = 2\n 3 => { 4 }\n}\nz\n", 1, 1},
        {"f(1,\nlet x = 3\nx + 1\n", 1, 2},
        {"fn f() {\n let = 1\n g(\n}\nz\n", 2, 2},
        {"a b; c; d e\nf\n", 2, 2},
        {"fn f(x y) {\n let z = 1\n z\n}\nz\n", 1, 1},
        {"struct P {\n x int\n y: int\n}\nz\n", 1, 1},
        {"while x {\n f(]\n}\nz\n", 1, 2},
        {"((((\n", 1, 0},
        {"fn f() { if x { while y { z \n", 1, 0},
        {"$ $$ x\ny\n", 2, 1},
        {"\"a\nb", 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Outcome outcome = parse_text(rows[i].source, strlen(rows[i].source));
        if (outcome.errors != rows[i].errors || outcome.statements != rows[i].statements)
            fail_msg("%s: %zu errors, %zu statements, shown:\n%s", rows[i].source, outcome.errors,
                     outcome.statements, text_get(&outcome.rendered));
        text_free(&outcome.rendered);
    }
}

static void test_error_limit(void **state) {
    (void)state;
    Text source = {0};
    for (int i = 0; i < 100; i++) text_append_string(&source, i % 2 ? "a b\n" : "$\n");
    Outcome outcome = parse_text(text_get(&source), source.length);
    assert_int_equal(outcome.errors, SYNTAX_ERRORS_MAX);
    text_free(&outcome.rendered);
    text_free(&source);
}

// Deep and long texts are read or refused with one error, in linear time and without recursion
// beyond NESTING_MAX.
static void test_size(void **state) {
    (void)state;
    static const struct {
        const char *before, *repeated, *after;
        size_t count;
        const char *message; // the start of the only error, NULL for none
    } rows[] = {
        {"", "(", "", 100000, "nested too deeply: more than 1000 levels"},
        {"x = ", "[1, ", "", 100000, "nested too deeply: more than 1000 levels"},
        {"", "{", "", 100000, "nested too deeply: more than 1000 levels"},
        {"", "-", "1", 100000, "nested too deeply: more than 1000 levels"},
        {"", "not ", "a", 100000, "nested too deeply: more than 1000 levels"},
        {"x = ", "2 ** ", "2", 100000, "nested too deeply: more than 1000 levels"},
        {"", "f\"{", "", 50000, "nested too deeply: more than 1000 levels"},
        {"let x: ", "a<", "", 100000, "nested too deeply: more than 1000 levels"},
        {"let ", "(", "", 100000, "nested too deeply: more than 1000 levels"},
        {"match x { ", "(", "", 100000, "nested too deeply: more than 1000 levels"},
        {"", "if a { ", "", 100000, "nested too deeply: more than 1000 levels"},
        {"", "fn f() { ", "", 100000, "nested too deeply: more than 1000 levels"},
        {"", "learn { ", "", 100000, "nested too deeply: more than 1000 levels"},
        {"x = ", "1 + ", "1", 100000, "too long a chain: more than 5000 links"},
        {"x", ".f()", "", 100000, "too long a chain: more than 5000 links"},
        {"if a { } ", "else if a { } ", "", 100000, "too long a chain: more than 5000 links"},
        {"x = ", "(", "1", 900, "expected `)` to close the parenthesis"},
        {"x = ", "1 + ", "1", 4000, NULL},
        {"if a { } ", "else if a { } ", "", 4000, NULL},
        {"match x {\n", "1 => 2,\n", "}", 10000, NULL},
        {"match x {\n", "P { a, .., } => 2,\n", "}", 2000, NULL},
        {"x = [", "1, ", "]", 300000, NULL},
        {"x = \"", "abcdefghij", "\"", 100000, NULL},
        {"", "a < ", "b", 200000, "comparisons cannot be chained"},
        {"/* ", "/*", "", 200000, "unterminated comment"},
        {"", "a\n", "", 100000, NULL},
        {"f(", "a<b, ", ")", 100000, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Text source = {0};
        text_append_string(&source, rows[i].before);
        for (size_t j = 0; j < rows[i].count; j++) text_append_string(&source, rows[i].repeated);
        text_append_string(&source, rows[i].after);
        Outcome outcome = parse_text(text_get(&source), source.length);
        const char *shown = text_get(&outcome.rendered);
        assert_int_equal(outcome.errors, rows[i].message ? 1 : 0);
        if (rows[i].message && !strstr(shown, rows[i].message)) fail_msg("%s", shown);
        assert_true(outcome.rendered.length < 2000);
        text_free(&outcome.rendered);
        text_free(&source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_error_limit),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
