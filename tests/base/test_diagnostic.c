// Diagnostics as text: the layout of LANGUAGE.md section 8, odd lines, notes and traces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diagnostic.h"
#include "base/source.h"

#include <cmocka.h> // its fail() hides ours

static const SourceFile *add(const char *name, const char *text) {
    const SourceFile *file;
    assert_int_equal(source_add(name, text, strlen(text), &file), STATUS_OK);
    return file;
}

static void check(const Diagnostic *diagnostic, bool color, const char *wanted) {
    Text out = {0};
    diagnostic_render(&out, diagnostic, color);
    if (strcmp(text_get(&out), wanted) != 0)
        fail_msg("shown:\n%s\nwanted:\n%s", text_get(&out), wanted);
    text_free(&out);
}

// Eleven empty lines, then the line of the contract's example; a caller at line 30.
static const SourceFile *example(void) {
    Text text = {0};
    text_append_repeated(&text, '\n', 11);
    text_append_string(&text, "    let y = relu(x @ W)\n");
    text_append_repeated(&text, '\n', 17);
    text_append_string(&text, "layer()\n");
    const SourceFile *file = add("model.tl", text_get(&text));
    text_free(&text);
    return file;
}

static void test_contract(void **state) {
    (void)state;
    const SourceFile *file = example();
    SourcePos at = file->base + 11 + 17;
    TraceFrame trace[] = {{"fn layer", at, 0}, {"main", file->base + 52, 0}};
    Diagnostic diagnostic = {
        .kind = "shape",
        .message = "cannot multiply float32[2, 3] by float32[4, 5]: inner sizes 3 and 4 differ",
        .label = "x is float32[2, 3] (from line 4), W is float32[4, 5] (from line 7)",
        .help = "transpose(W) is float32[5, 4]; its inner size is 5",
        .span = {at, at + 5},
        .trace = trace,
        .trace_count = 2};
    check(
        &diagnostic, false,
        "error[shape]: cannot multiply float32[2, 3] by float32[4, 5]: inner sizes 3 and 4 differ\n"
        "  --> model.tl:12:18\n"
        "   |\n"
        "12 |     let y = relu(x @ W)\n"
        "   |                  ^^^^^ x is float32[2, 3] (from line 4), W is float32[4, 5] (from "
        "line 7)\n"
        "   = help: transpose(W) is float32[5, 4]; its inner size is 5\n"
        "  in fn layer (model.tl:12), called from main (model.tl:30)\n");
    source_reset();
}

static void test_warning_and_note(void **state) {
    (void)state;
    const SourceFile *file = example();
    SourcePos at = file->base + 11 + 4;
    Diagnostic diagnostic = {.severity = SEVERITY_WARNING,
                             .kind = "shape",
                             .message = "a warning",
                             .span = {at, at + 3},
                             .notes[0].text = "see there",
                             .notes[0].span = {file->base, file->base + 1}};
    check(&diagnostic, false,
          "warning: a warning\n"
          "  --> model.tl:12:5\n"
          "   |\n"
          "12 |     let y = relu(x @ W)\n"
          "   |     ^^^\n"
          "note: see there\n"
          "  --> model.tl:1:1\n"
          "   |\n"
          " 1 |\n"
          "   | ^\n");
    diagnostic =
        (Diagnostic){.message = "no place", .kind = "io", .help = "do x", .notes[0].text = "and y"};
    check(&diagnostic, false, "error[io]: no place\n  = help: do x\n  = note: and y\n");
    diagnostic = (Diagnostic){.message = "bare"};
    check(&diagnostic, false, "error: bare\n");
    source_reset();
}

static void test_color(void **state) {
    (void)state;
    const SourceFile *file = add("a.tl", "x\n");
    Diagnostic diagnostic = {
        .kind = "name", .message = "m", .label = "l", .span = {file->base, file->base + 1}};
    check(&diagnostic, true,
          "\033[1;31merror[name]\033[0m: \033[1mm\033[0m\n"
          "\033[1;34m --> \033[0ma.tl:1:1\n"
          "\033[1;34m  |\033[0m\n"
          "\033[1;34m1 | \033[0mx\n"
          "\033[1;34m  | \033[0m\033[1;31m^ l\033[0m\n");
    source_reset();
}

static void check_line(const char *line, uint32_t begin, uint32_t end, const char *wanted) {
    const SourceFile *file = add("a.tl", line);
    Diagnostic diagnostic = {.message = "m", .span = {file->base + begin, file->base + end}};
    Text out = {0};
    diagnostic_render(&out, &diagnostic, false);
    const char *shown = strstr(text_get(&out), "1 | ");
    if (!shown || strcmp(shown, wanted) != 0)
        fail_msg("shown:\n%s\nwanted:\n%s", text_get(&out), wanted);
    text_free(&out);
    source_reset();
}

static void test_odd_lines(void **state) {
    (void)state;
    check_line("\tx\ty", 3, 4, "1 |     x    y\n  |          ^\n");
    check_line("a\xFF"
               "b",
               1, 2, "1 | a\\xffb\n  |  ^^^^\n");
    check_line("a\x1b[0m b", 6, 7, "1 | a\\x1b[0m b\n  |          ^\n");
    check_line("中文 x", 7, 8, "1 | 中文 x\n  |      ^\n");
    check_line("中文 x", 3, 6, "1 | 中文 x\n  |   ^^\n");
    check_line("e\xCC\x81 x", 4, 5, "1 | e\xCC\x81 x\n  |   ^\n");
    check_line("a\xE2\x80\xAE"
               "b",
               4, 5, "1 | a\\u{202e}b\n  |          ^\n");
    check_line("ab", 2, 2, "1 | ab\n  |   ^\n");
    check_line("abc\ndef\n", 1, 6, "1 | abc\n  |  ^^\n");
    check_line("ab\r\n", 0, 1, "1 | ab\n  | ^\n");
}

// A line of a megabyte is cut around the span, whatever it consists of.
static void test_long_lines(void **state) {
    (void)state;
    static const char *const fillings[] = {"x", "\xCC\x81", "\xFF", "中", "\t"};
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++) {
        Text line = {0};
        while (line.length < 500000) text_append_string(&line, fillings[i]);
        uint32_t at = (uint32_t)line.length;
        text_append_string(&line, "HERE");
        while (line.length < 1000000) text_append_string(&line, fillings[i]);
        const SourceFile *file = add("a.tl", text_get(&line));
        Diagnostic diagnostic = {.message = "m", .span = {file->base + at, file->base + at + 4}};
        Text out = {0};
        diagnostic_render(&out, &diagnostic, false);
        assert_true(out.length < 2000);
        assert_non_null(strstr(text_get(&out), "1 | ..."));
        assert_non_null(strstr(text_get(&out), "HERE"));
        assert_non_null(strstr(text_get(&out), "...\n"));
        const char *carets = strstr(text_get(&out), "^^^^\n");
        assert_non_null(carets);
        text_free(&out);
        // A span over the whole line is underlined as far as it is shown.
        diagnostic.span = (Span){file->base, file->base + 1000000};
        diagnostic_render(&out, &diagnostic, false);
        assert_true(out.length < 2000);
        text_free(&out);
        text_free(&line);
        source_reset();
    }
    Text line = {0};
    text_append_repeated(&line, 'a', 100);
    text_append_string(&line, "HERE");
    text_append_repeated(&line, 'b', 100);
    Text wanted = {0};
    text_append_string(&wanted, "1 | ...");
    text_append_repeated(&wanted, 'a', 40);
    text_append_string(&wanted, "HERE");
    text_append_repeated(&wanted, 'b', 76);
    text_append_string(&wanted, "...\n  |    ");
    text_append_repeated(&wanted, ' ', 40);
    text_append_string(&wanted, "^^^^\n");
    check_line(text_get(&line), 100, 104, text_get(&wanted));
    text_free(&line);
    text_free(&wanted);
}

static void test_long_trace(void **state) {
    (void)state;
    const SourceFile *file = add("a.tl", "f()\n");
    TraceFrame trace[1000];
    for (size_t i = 0; i < 1000; i++) trace[i] = (TraceFrame){"fn f", file->base, 0};
    Diagnostic diagnostic = {.message = "m", .trace = trace, .trace_count = 1000};
    Text out = {0};
    diagnostic_render(&out, &diagnostic, false);
    size_t calls = 0;
    for (const char *at = text_get(&out); (at = strstr(at, "fn f (a.tl:1)")); at++) calls++;
    assert_int_equal(calls, 15);
    assert_non_null(strstr(text_get(&out), ", called from ... 985 more ..., called from fn f"));
    text_free(&out);
    source_reset();
}

static void test_repeated_frames_are_counted(void **state) {
    (void)state;
    const SourceFile *file = add("a.tl", "f()\n");
    TraceFrame trace[] = {{"fn f", file->base, 40}, {"main", file->base, 0}};
    Diagnostic diagnostic = {.message = "m", .trace = trace, .trace_count = 2};
    Text out = {0};
    diagnostic_render(&out, &diagnostic, false);
    assert_non_null(
        strstr(text_get(&out), "in fn f (a.tl:1) 41 times, called from main (a.tl:1)\n"));
    text_free(&out);
    source_reset();
}

static void test_sorting_keeps_the_order_of_one_place(void **state) {
    (void)state;
    DiagnosticList list = {0};
    const char *const words[] = {"kept", "second", "first", "again"};
    const SourcePos places[] = {9, 5, 3, 5};
    for (int i = 0; i < 4; i++) {
        Diagnostic diagnostic = {.message = words[i], .span = {places[i], places[i] + 1}};
        diagnostic_list_add(&list, &diagnostic);
    }
    diagnostic_list_sort(&list, 1);
    assert_string_equal(list.items[0].message, "kept");
    assert_string_equal(list.items[1].message, "first");
    assert_string_equal(list.items[2].message, "second");
    assert_string_equal(list.items[3].message, "again");
    diagnostic_list_free(&list);
}

static void test_list(void **state) {
    (void)state;
    char words[] = "name";
    TraceFrame frame = {words, 1, 0};
    Diagnostic diagnostic = {
        .kind = words, .message = words, .notes[0].text = words, .trace = &frame, .trace_count = 1};
    DiagnosticList list = {0};
    diagnostic_list_add(&list, &diagnostic);
    diagnostic.severity = SEVERITY_WARNING;
    diagnostic_list_add(&list, &diagnostic);
    words[0] = 'X';
    assert_string_equal(list.items[0].message, "name");
    assert_string_equal(list.items[1].trace[0].function, "name");
    assert_null(list.items[0].help);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.error_count, 1);
    diagnostic_list_free(&list);
    assert_int_equal(list.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_warning_and_note),
        cmocka_unit_test(test_color),
        cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_long_trace),
        cmocka_unit_test(test_repeated_frames_are_counted),
        cmocka_unit_test(test_sorting_keeps_the_order_of_one_place),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
