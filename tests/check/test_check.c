// The check before running: each program next to the diagnostics it must give, and programs that
// must give none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "parser/parser.h"

#include <cmocka.h>

// Every diagnostic as "error[kind] line:column message" or "warning line:column message", a line
// each.
static void check_text(const char *source, Text *out) {
    const SourceFile *file;
    assert_int_equal(source_add("test.tl", source, strlen(source), &file), STATUS_OK);
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(file, &diagnostics);
    if (diagnostics.error_count == 0) check_program(program, &diagnostics);
    static const char *const severities[] = {"error", "warning", "note"};
    for (size_t i = 0; i < diagnostics.count; i++) {
        const Diagnostic *diagnostic = &diagnostics.items[i];
        SourcePlace place = source_find(diagnostic->span.begin);
        text_append_string(out, severities[diagnostic->severity]);
        if (diagnostic->kind) text_format(out, "[%s]", diagnostic->kind);
        text_format(out, " %d:%d %s\n", place.line, place.column, diagnostic->message);
    }
    diagnostic_list_free(&diagnostics);
    program_free(program);
    source_reset();
}

static void expect(const char *source, const char *wanted) {
    Text text = {0};
    check_text(source, &text);
    assert_string_equal(text_get(&text), wanted);
    text_free(&text);
}

static void test_names(void **state) {
    (void)state;
    expect("x", "error[name] 1:1 unknown name `x`\n");
    expect("fn f() { y + y }\nfn g() { z }",
           "error[name] 1:10 unknown name `y`\nerror[name] 2:10 unknown name `z`\n");
    expect("fn f() { if true { let a = 1 }\n a }", "error[name] 2:2 unknown name `a`\n");
    expect("fn f() { g() }", "error[name] 1:10 unknown function `g`\n");
    expect("fn f(x) { x }\nlet a = None", "error[name] 2:9 unknown name `None`\n");
    expect("fn f() { c = 1 }", "error[name] 1:10 no variable `c` to assign to\n");
    expect("fn f() { c += 1 }", "error[name] 1:10 unknown variable `c`\n");
    expect("print(a)\nlet a = 1", "error[name] 1:7 `a` is used before it is defined\n");
    expect("let f = fn() { later }\nlet later = 1", "");
    expect("main { let q = 1 }\nfn f() { q }", "error[name] 2:10 unknown name `q`\n");
}

static void test_declarations(void **state) {
    (void)state;
    expect("fn f() {}\nfn f() {}", "error[name] 2:4 function `f` is declared twice\n");
    expect("struct P { x: int }\nstruct P { y: int }",
           "error[name] 2:8 struct `P` is declared twice\n");
    expect("struct P { x: int, x: int }", "error[name] 1:20 field `x` is declared twice\n");
    expect("fn f(a, a) {}", "error[name] 1:9 parameter `a` is declared twice\n");
    expect("main {}\nmain {}", "error[name] 2:1 a file has at most one main\n");
    expect("let x: flaot = 1", "error[name] 1:8 unknown type `flaot`\n");
    expect("fn f(x: Poin) {}\nstruct Point { x: int }", "error[name] 1:9 unknown type `Poin`\n");
    expect("struct Box<T> { v: T }\nimpl<U> Box<U> { fn get(self) -> U { self.v } }", "");
    expect("impl<T> Box<T> { fn of<U>(x: U, y: T) -> U { x } }\nstruct Box<T> { v: T }\n"
           "fn g(x: U) {}",
           "error[name] 3:9 unknown type `U`\n");
    expect("impl Nothing { fn f(self) {} }", "error[name] 1:6 unknown struct `Nothing`\n");
}

static void test_misplaced(void **state) {
    (void)state;
    expect("break", "error[syntax] 1:1 `break` stands outside a loop\n");
    expect("while true { let f = fn() { continue } }",
           "error[syntax] 1:29 `continue` stands outside a loop\n");
    expect("return 1", "error[syntax] 1:1 `return` stands outside a function\n");
    expect("main { return }", "");
    expect("fn f() { test t { } }",
           "error[syntax] 1:10 `test` belongs at the top level of the file\n");
}

static void test_arity(void **state) {
    (void)state;
    expect("fn f(a, b = 1) { a }\nf()",
           "error[arity] 2:2 f takes 1 to 2 arguments, but 0 are given\n");
    expect("fn f(a) { a }\nf(1, 2)", "error[arity] 2:2 f takes 1 argument, but 2 are given\n");
    expect("fn f(a) { a }\nf(b: 1)", "error[arity] 2:3 f has no parameter `b`\n");
    expect("fn f(a, b) { a }\nf(b: 1)", "error[arity] 2:2 argument `a` of f is missing\n");
    expect("fn f(a) { a }\nf(1, a: 2)",
           "error[arity] 2:6 argument `a` is given twice: by position and by name\n");
    // A variable may hold any function.
    expect("fn f(a) { a }\nfn g(f) { f(1, 2, 3) }", "");
    expect("let top_k = 50\nprint(top_k)", "");
}

static void test_structs(void **state) {
    (void)state;
    expect("struct P { x: int }\nP { y: 1 }", "error[name] 2:5 struct P has no field `y`\n");
    expect("struct P { x: int }\nP { x: 1, x: 2 }", "error[name] 2:11 field `x` is given twice\n");
    expect("Q { x: 1 }", "error[name] 1:1 unknown struct `Q`\n");
    expect("struct P { x: int }\nmatch 1 { P { z: 1 } => 2, _ => 3 }",
           "error[name] 2:15 struct P has no field `z`\n");
}

static void test_warnings(void **state) {
    (void)state;
    expect("fn f() {\n let x = 1\n let x = 2\n x\n}",
           "warning 3:6 this replaces `x`, whose value was never used\n");
    expect("fn f() {\n let x = 1\n let x = x + 1\n x\n}", "");
}

// Programs at the edge of the rules, in which nothing is wrong.
static void test_silence(void **state) {
    (void)state;
    expect("fn even(n) { if n == 0 { true } else { odd(n - 1) } }\n"
           "fn odd(n) { if n == 0 { false } else { even(n - 1) } }",
           "");
    expect("main { x = 1\n if true { x = 2\n y = 3\n y }\n x }", "");
    expect("fn f() { t := 1\n t = 2\n t }", "");
    expect("fn f(x: float32[n, d], y: float32[d]) -> float32[n] { x @ y * n }", "");
    expect("fn f() {\n fn a() { b() }\n fn b() { 1 }\n a()\n}", "");
    expect("try { error(\"x\") } catch e { e.kind }", "");
    expect("let (a, b) = (1, 2)\na, b = b, a\nfor i, x in [1] { i + x }", "");
    expect("struct N { next: N? }\nimpl N { fn f(self) { self.next } }", "");
}

static void test_long_chains(void **state) {
    (void)state;
    Text source = {0}, text = {0};
    text_append_string(&source, "fn f(x) { x");
    for (int i = 0; i < 3000; i++) text_append_string(&source, " + x");
    text_append_string(&source, " }\nfn g(x) { if x == 0 { 0 }");
    for (int i = 0; i < 3000; i++) text_format(&source, " else if x == %d { %d }", i, i);
    text_append_string(&source, " }");
    check_text(text_get(&source), &text);
    assert_string_equal(text_get(&text), "");
    text_free(&source);
    text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_misplaced), cmocka_unit_test(test_arity),
        cmocka_unit_test(test_structs),   cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_silence),   cmocka_unit_test(test_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
