// Inference as a compiler pass: programs next to the fact that is known of `x` at their end, and
// programs whose last line fails if it runs, next to whether that is certain.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "parser/parser.h"

#include <cmocka.h>

// The first error's label, "" when there is no error. Owned by the caller.
static char *first_label(const char *source) {
    const SourceFile *file;
    assert_int_equal(source_add("test.tl", source, strlen(source), &file), STATUS_OK);
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(file, &diagnostics);
    assert_int_equal(diagnostics.error_count, 0);
    check_program(program, &diagnostics);
    char *label = NULL;
    for (size_t i = 0; i < diagnostics.count && !label; i++)
        if (diagnostics.items[i].severity == SEVERITY_ERROR && diagnostics.items[i].label)
            label = strdup(diagnostics.items[i].label);
    diagnostic_list_free(&diagnostics);
    program_free(program);
    source_reset();
    return label ? label : strdup("");
}

// Subtracting a dictionary fails whatever x is, in words that say what is known of it.
static void expect_fact(const char *program, const char *wanted) {
    Text source = {0};
    text_format(&source, "%s\nx - {\"a\": 1}", program);
    char *label = first_label(text_get(&source));
    const char *found = "unknown";
    if (strncmp(label, "x is ", 5) == 0) {
        found = label + 5;
        label[strcspn(label, "(")] = '\0';
        for (size_t end = strlen(label); end > 0 && strchr(" ,", label[end - 1]); end--)
            label[end - 1] = '\0';
        char *rest = strstr(label, ", {\"a\"");
        if (rest) *rest = '\0';
    }
    if (strcmp(found, wanted) != 0) fail_msg("%s\n  x is %s, not %s", program, found, wanted);
    free(label);
    text_free(&source);
}

typedef struct FactCase {
    const char *program, *fact;
} FactCase;

static const FactCase facts[] = {
    {"let x = ones([2, 3])", "float32[2, 3]"},
    {"let x = 5", "5"},
    {"let x = ones([2, 3]) @ ones([3, 4])", "float32[2, 4]"},
    {"let x = ones([2, 3]) + ones([3])", "float32[2, 3]"},
    {"let x = sum(ones([2, 3]), dim: 0)", "float32[3]"},
    {"let x = gru_cell(zeros([2, 12], float16), zeros([2, 12]), zeros([2, 4], float16))",
     "float32[2, 4]"},
    {"let x = ones([2, 3]).T", "float32[3, 2]"},
    {"let x = ones([4, 3])[1:3]", "float32[2, 3]"},
    {"let x = concat(ones([2, 3]), ones([4, 3]), dim: 0)", "float32[6, 3]"},
    {"let x = ones([2, 3]) as float16", "float16[2, 3]"},
    // Numbers, and tensors without dimensions, leave a tensor its dtype.
    {"let x = ones([2, 3], float16) * 2.0", "float16[2, 3]"},
    {"let x = ones([2, 3], float16) + sum(ones([4]))", "float16[2, 3]"},
    {"let x = ones([2, 3], float16) + ones([3])", "float32[2, 3]"},
    {"let n = 2\nlet x = zeros([n, n * 3])", "float32[2, 6]"},
    {"let l = [1]\nl.push(2)\nlet x = zeros([ones([2, 3]).shape[0], 4])", "float32[2, 4]"},
    {"let x = zeros([len(args()), 3, 0]).flatten()", "float32[0]"},
    {"let x = squeeze(zeros([1, 3, 1]))", "float32[3]"},
    {"let x = squeeze(zeros([1, 3, 1]), 0)", "float32[3, 1]"},
    {"let x = zeros([0, 3, len(args())]).flatten()", "float32[0]"},
    // A variable that a learn block has left takes over the last value of the next one.
    {"let w = learnable([1.0])\n"
     "learn { objective: sum(w), epochs: 1\n let v = 3 }\n"
     "learn { objective: sum(w), epochs: 1\n let v = [1.0] }\nlet x = v",
     "unknown"},
    // Ways that join: both write, one writes, neither comes to the end.
    {"let x = ones([2, 3])\nif len(args()) > 0 { x = ones([2, 4]) } else { x = ones([2, 5]) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nif len(args()) > 0 { x = ones([2, 4]) }", "float32[2, ?]"},
    {"let x = ones([2, 3])\nif len(args()) > 0 { x = ones([2, 4]) } else { print(1) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nif len(args()) > 0 { print(1) } else { x = ones([2, 4]) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nmatch len(args()) { 0 => { x = ones([2, 4]) }, _ => { print(1) } }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nmatch \"b\" { \"a\" => { x = 1 }, \"b\" => { x = ones([2, 4]) }, _ => "
     "{ x = 1 } }",
     "float32[2, 4]"},
    {"let x = 1\nmatch \"b\" { \"b\" if len(args()) > 0 => { x = ones([2, 4]) }, "
     "\"b\" => { x = ones([2, 5]) } }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nif len(args()) > 0 { x = 1 }", "unknown"},
    // Loops: nothing changes, something does, nothing may run.
    {"let x = ones([2, 3])\nfor i in 0..4 { x = x * 2 }", "float32[2, 3]"},
    {"let x = ones([2, 3])\nfor i in 0..4 { x = concat(x, x, dim: 0) }", "float32[?, 3]"},
    {"let x = ones([2, 3])\nfor i in 0..len(args()) { x = ones([5, 3]) }", "float32[?, 3]"},
    // What leaves an iteration early leaves variables as they were.
    {"let x = ones([2, 3])\nfor i in 0..3 { if len(args()) > 0 { break }\n x = ones([2, 4]) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nfor i in 0..3 { if len(args()) > 0 { continue }\n x = ones([2, 4]) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nloop { if len(args()) > 0 { break }\n x = ones([2, 4]) }",
     "float32[2, ?]"},
    {"let x = ones([2, 3])\nfor i in 0..3 { x = ones([2, 4])\n if false { break } }",
     "float32[2, 4]"},
    {"let x = ones([2, 3])\nfor i in 0..3 { x = ones([2, 4]) }", "float32[2, 4]"},
    // Functions are gone through with the facts of their arguments.
    {"fn twice(a) { concat(a, a, dim: 1) }\nlet x = twice(ones([2, 3]))", "float32[2, 6]"},
    {"fn pick(a, c) { if c { return a }\n a.T }\nlet x = pick(ones([2, 3]), len(args()) > 0)",
     "float32[?, ?]"},
    {"let x = ones([2, 3])\nfn change() { x = ones([7]) }\nchange()", "unknown"},
    {"struct P { w: float32[?, ?] }\nlet p = P { w: ones([2, 3]) }\nlet x = p.w", "float32[2, 3]"},
    {"let l = [ones([2, 3]), \"a\"]\nlet x = l[0]", "float32[2, 3]"},
    // What may be a number or not: a literal of it may be a tensor or a list.
    {"let x = [parse_json(\"3\"), 2]", "unknown"},
    {"let x = [\"a\", parse_json(\"3\")]", "a list of 2 values"},
    {"let x = [1, 2]", "int64[2]"},
};

static void test_facts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        expect_fact(facts[i].program, facts[i].fact);
}

typedef struct CertainCase {
    const char *before; // BAD stands for what fails
    bool certain;
} CertainCase;

static const CertainCase certain[] = {
    {"BAD", true},
    {"if true { BAD }", true},
    {"if len(args()) > 0 { BAD }", false},
    {"try { BAD } catch e { print(e) }", false},
    {"fn f() { BAD }\nf()", true},
    {"fn f(c) { if c { return 1 }\n BAD }\nf(len(args()) > 0)", false},
    {"fn f(c) { for i in 0..3 { if c { return 1 } }\n BAD }\nf(len(args()) > 0)", false},
    {"if len(args()) > 0 { exit(0) }\nBAD", false},
    {"for i in 0..3 { if len(args()) > 0 { break }\n BAD }", false},
    {"for i in 0..3 { if len(args()) > 0 { continue }\n BAD }", false},
    {"for i in 0..3 { if len(args()) > 0 { break } }\nBAD", true},
    {"for i in 0..3 { BAD }", true},
    {"for i in 0..len(args()) { BAD }", false},
    {"while len(args()) > 0 { BAD }", false},
    {"loop { BAD }", true},
    {"len(args()) > 0 && sum(BAD) > 0", false},
    {"match len(args()) { 0 => BAD, _ => 1 }", false},
    {"main { BAD }", true},
    {"test t { BAD }", false},
    {"fn never() { 1 }\nlet f = fn() { BAD }", false},
};

static void test_certainty(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) {
        Text source = {0};
        const char *at = strstr(certain[i].before, "BAD");
        text_append(&source, certain[i].before, (size_t)(at - certain[i].before));
        text_append_string(&source, "(ones([2, 3]) @ ones([2, 3]))");
        text_append_string(&source, at + 3);
        char *label = first_label(text_get(&source));
        if ((label[0] != '\0') != certain[i].certain)
            fail_msg("%s\n  %s certain", text_get(&source), certain[i].certain ? "is" : "is not");
        free(label);
        text_free(&source);
    }
}

// In a learn block a tensor that batches are taken of is some of its rows.
static void test_batches(void **state) {
    (void)state;
    static const char *const learn =
        "let rows = ones([6, 3])\nlet w = learnable(zeros([3]))\n"
        "learn { objective: sum(w) + sum(%s), optimizer: sgd(lr: 0.1), "
        "epochs: 1, batch: 2 of rows }";
    Text wrong = {0}, right = {0};
    text_format(&wrong, learn, "rows @ ones([4, 2])");
    text_format(&right, learn, "rows + ones([4, 3])");
    char *found = first_label(text_get(&wrong)), *none = first_label(text_get(&right));
    assert_non_null(strstr(found, "rows is float32[?, 3]"));
    assert_string_equal(none, "");
    free(found);
    free(none);
    text_free(&wrong);
    text_free(&right);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_facts),
                                       cmocka_unit_test(test_certainty),
                                       cmocka_unit_test(test_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
