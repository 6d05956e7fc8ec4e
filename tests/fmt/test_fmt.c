// The formatter: a row a rule. Every result is formatted again, which must change nothing.
#include <stdlib.h>
#include <string.h>

#include "fmt/fmt.h"

// cmocka.h needs these, and its own `fail` must come after ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct Row {
    const char *source, *formatted;
} Row;

static char *format_text(const char *source, size_t length) {
    const SourceFile *file;
    DiagnosticList diagnostics = {0};
    Text out = {0};
    assert_int_equal(source_add("test.tl", source, length, &file), STATUS_OK);
    if (!format_source(file, &out, &diagnostics))
        fail_msg("%s\n%s", source, diagnostics.items[0].message);
    diagnostic_list_free(&diagnostics);
    source_reset();
    return text_take(&out);
}

static void check_rows(const Row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char *once = format_text(rows[i].source, strlen(rows[i].source));
        assert_string_equal(once, rows[i].formatted);
        char *twice = format_text(once, strlen(once));
        assert_string_equal(twice, once);
        free(once);
        free(twice);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

static void test_operators(void **state) {
    (void)state;
    static const Row rows[] = {
        {"x=a+b*-c**2", "x = a + b * -c ** 2\n"},
        {"x=- -a", "x = - -a\n"},
        {"y = !a&&!b||not   c", "y = !a && !b || not c\n"},
        {"a<b;c>d;e!=f", "a < b; c > d; e != f\n"},
        {"x @=y;z:=1;w**=2", "x @= y; z := 1; w **= 2\n"},
        {"x=a@b⊙c⊗d≈e", "x = a @ b ⊙ c ⊗ d ≈ e\n"},
        {"x = a not   in b", "x = a not in b\n"},
        {"for i in 0 .. n {}", "for i in 0..n {}\n"},
        {"r = 1. .. 2", "r = 1. ..2\n"},
        {"r = 1 .. .5", "r = 1.. .5\n"},
        {"x = 1. .abs ( )", "x = 1. .abs()\n"},
        {"y = x.blk.3 .w", "y = x.blk.3.w\n"},
        {"c = x as   float32", "c = x as float32\n"},
        {"return_value = x<-1", "return_value = x < -1\n"},
    };
    CHECK_ROWS(rows);
}

static void test_brackets(void **state) {
    (void)state;
    static const Row rows[] = {
        {"f ( a,b , )", "f(a, b,)\n"},
        {"x . f ( a )", "x.f(a)\n"},
        {"x [1 : 3, ::2,... , :-1]", "x[1:3, ::2, ..., :-1]\n"},
        {"d={ \"a\" :1 , b:{ } }", "d = {\"a\": 1, b: {}}\n"},
        {"p=Point{x:1,y : 2}", "p = Point { x: 1, y: 2 }\n"},
        {"f(x,dim = 1,keep :true)", "f(x, dim=1, keep: true)\n"},
        {"if (a) {b}", "if (a) { b }\n"},
        {"let (a,b)=c", "let (a, b) = c\n"},
        {"fn  f ( a:int?,b = 3 )->(int,T<int >) {a}",
         "fn f(a: int?, b = 3) -> (int, T<int>) { a }\n"},
        {"g = fn (x) {x}", "g = fn(x) { x }\n"},
        {"impl < T >Box <T>{fn f(self){}}", "impl<T> Box<T> { fn f(self) {} }\n"},
        {"fn id <T , U> (x:T)->U{x}", "fn id<T, U>(x: T) -> U { x }\n"},
        {"b = Box < int > :: new ( )", "b = Box<int>::new()\n"},
        {"tensor w:float32[3,?]   learnable=zeros( )",
         "tensor w: float32[3, ?] learnable = zeros()\n"},
        {"match x{-1=>2,1|2 if a=>{b},P{f:p,..}=>3}",
         "match x { -1 => 2, 1 | 2 if a => { b }, P { f: p, .. } => 3 }\n"},
        {"x = [ f(y)for y in z if y ]", "x = [f(y) for y in z if y]\n"},
        {"s = f\"{ a+b :.3}\"+r\"\\d\"", "s = f\"{ a+b :.3}\" + r\"\\d\"\n"},
        {"s = f\"{f\"{1 }\"}\"[0]", "s = f\"{f\"{1 }\"}\"[0]\n"},
    };
    CHECK_ROWS(rows);
}

static void test_lines(void **state) {
    (void)state;
    static const Row rows[] = {
        {"fn f(a,\n     b) {\na\n}\n", "fn f(a,\n     b) {\n    a\n}\n"},
        {"", ""},
        {"\n\n", ""},
        {"\xEF\xBB\xBFx", "x\n"},
        {"#! /usr/bin/tl \nx", "#! /usr/bin/tl \nx\n"},
        {"\n\na\n\n\n\nb\n\n", "a\n\nb\n"},
        {"if a {\n\nb\n\n}", "if a {\n    b\n}\n"},
        {"if a {\n\tb\n\t}\n  else {\nc\n}", "if a {\n    b\n}\nelse {\n    c\n}\n"},
        {"x = a\n+ b\n- c\n.d()", "x = a\n    + b\n-c\n    .d()\n"},
        {"x =\na\ny", "x =\n    a\ny\n"},
        {"x = f(a,\nb,\n[c,\nd])", "x = f(a,\n      b,\n      [c,\n       d])\n"},
        {"f(\na,\nb\n)", "f(\n    a,\n    b\n)\n"},
        {"f([\na\n])", "f([\n    a\n])\n"},
        {"m(fn(x) {\nx\n}, y)", "m(fn(x) {\n    x\n}, y)\n"},
        {"x = a\n.f(fn() {\nb\n})\nc", "x = a\n    .f(fn() {\n        b\n    })\nc\n"},
        {"x = if a {\nb\n} else {\nc\n}", "x = if a {\n    b\n} else {\n    c\n}\n"},
        {"y =\nif a {\nb\n}\nelse {\nc\n}",
         "y =\n    if a {\n        b\n    }\n    else {\n        c\n    }\n"},
        {"match a {\n1 =>\nb\n2\n| 3 => c\n}",
         "match a {\n    1 =>\n        b\n    2\n        | 3 => c\n}\n"},
        {"s = \"a\r\n  b\"\r\nt = 1\r\n", "s = \"a\n  b\"\nt = 1\n"},
        {"s = \"a\r\r\nb\" // c\r\r\n", "s = \"a\r\r\nb\" // c\n"},
        {"#!c\r\r\r", "#!c\n"},
        {"x[1 : : 2, a :: b, : :]", "x[1: :2, a::b, : :]\n"},
        {"/* a\r\r\n b */", "/* a\n b */\n"},
        {"π = f(\"é\",\n1)", "π = f(\"é\",\n      1)\n"},
    };
    CHECK_ROWS(rows);
}

static void test_comments(void **state) {
    (void)state;
    static const Row rows[] = {
        {"  // a  \nx   // b", "// a  \nx // b\n"},
        {"x // a", "x // a\n"},
        {"f( // a\nb // b\n)", "f( // a\n    b // b\n)\n"},
        {"if a {\nb\n// c\n\n}\n// d", "if a {\n    b\n    // c\n}\n// d\n"},
        {"x = a\n// b\n+ c", "x = a\n    // b\n    + c\n"},
        {"f( /* a */ b /* c */,d)", "f(/* a */ b /* c */, d)\n"},
        {"a /* b\n*/ + c", "a /* b\n*/ + c\n"},
        {"if a {\n/* b\n   c\n\n d */\ne }", "if a {\n    /* b\n       c\n\n     d */\n    e }\n"},
        {"    /* a\n  b */", "/* a\nb */\n"},
        {"/* /* a */ */x", "/* /* a */ */ x\n"},
        {"/* a\r\n b */ // c\r\n", "/* a\n b */ // c\n"},
        {"a // 1\nbcd  // 2", "a // 1\nbcd // 2\n"},
        {"a    // 1\nbcd  // 2\n\ne // 3", "a   // 1\nbcd // 2\n\ne // 3\n"},
        {"a = {  // 1\nb: 1, // 2\nc:1  // 3\n}", "a = { // 1\n    b: 1, // 2\n    c: 1 // 3\n}\n"},
    };
    CHECK_ROWS(rows);
}

static void test_errors_leave_the_text(void **state) {
    (void)state;
    const SourceFile *file;
    DiagnosticList diagnostics = {0};
    Text out = {0};
    assert_int_equal(source_add("test.tl", "x = (", 5, &file), STATUS_OK);
    assert_false(format_source(file, &out, &diagnostics));
    assert_int_equal(out.length, 0);
    assert_true(diagnostics.error_count > 0);
    diagnostic_list_free(&diagnostics);
    source_reset();
}

static bool same(const char *left, const char *right) {
    const SourceFile *a, *b;
    assert_int_equal(source_add("a.tl", left, strlen(left), &a), STATUS_OK);
    assert_int_equal(source_add("b.tl", right, strlen(right), &b), STATUS_OK);
    return format_same_program(a, b);
}

static void test_another_program_is_noticed(void **state) {
    (void)state;
    assert_true(same("a+b", " a + b // c\n"));
    assert_true(same("\"a\r\nb\"", "\"a\nb\""));
    assert_true(same("\"a\r\r\nb\"", "\"a\r\r\nb\""));
    assert_false(same("\"a\r\r\nb\"", "\"a\nb\""));
    assert_false(same("a + b", "a - b"));
    assert_false(same("a + b", "a + b + c"));
    assert_false(same("a\n-b", "a - b"));
    assert_false(same("a; b", "a\nb"));
    assert_false(same("\"a\"", "\"b\""));
    assert_false(same("1.0", "1.00")); // the same tree in other words
    assert_false(same("x.a", "x."));
    source_reset();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_brackets),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_errors_leave_the_text),
        cmocka_unit_test(test_another_program_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
