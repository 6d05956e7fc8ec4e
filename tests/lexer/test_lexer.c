// Tokens: source text in, one word a token out. A `|` before a token: it begins a line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lexer/lexer.h"

#include <cmocka.h> // its fail() hides ours

typedef struct Row {
    const char *source, *tokens;
} Row;

static void show_token(Text *out, const Token *token) {
    size_t length;
    const char *text = source_text(token->span, &length);
    if (out->length > 0) text_append_char(out, ' ');
    if (token->newline_before && out->length > 0) text_append_char(out, '|');
    switch (token->kind) {
    case TOKEN_INT: text_format(out, "%lld", (long long)token->value.integer); break;
    case TOKEN_FLOAT: text_format(out, "%gf", token->value.number); break;
    case TOKEN_STRING: text_format(out, "<%s>", token->value.text); break;
    case TOKEN_FORMAT_STRING: text_format(out, "f<%s>", token->value.text); break;
    case TOKEN_FORMAT_TEXT: text_format(out, "+<%s>", token->value.text); break;
    case TOKEN_FORMAT_SPEC: text_format(out, ":<%s>", token->value.text); break;
    case TOKEN_ERROR: text_append_string(out, "ERROR"); break;
    case TOKEN_NAME:
        text_append_char(out, '\'');
        text_append(out, text, length);
        break;
    default: text_append_string(out, token_spelling((TokenKind)token->kind));
    }
}

static void check_row(const Row *row, size_t errors) {
    const SourceFile *file;
    assert_int_equal(source_add("t.tl", row->source, strlen(row->source), &file), STATUS_OK);
    Arena arena = {0};
    DiagnosticList diagnostics = {0};
    TokenList tokens = lexer_read(file, &arena, &diagnostics, 20);
    Text out = {0};
    for (size_t i = 0; i + 1 < tokens.count; i++) show_token(&out, &tokens.items[i]);
    assert_int_equal(tokens.items[tokens.count - 1].kind, TOKEN_END);
    if (strcmp(text_get(&out), row->tokens) != 0 || diagnostics.error_count != errors)
        fail_msg("source: %s\n  read: %s\nwanted: %s\n%s", row->source, text_get(&out), row->tokens,
                 diagnostics.count > 0 ? diagnostics.items[0].message : "");
    text_free(&out);
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    diagnostic_list_free(&diagnostics);
    source_reset();
}

#define CHECK_ROWS(rows, errors)                                                                   \
    for (size_t row_ = 0; row_ < sizeof(rows) / sizeof(rows)[0]; row_++)                           \
    check_row(&(rows)[row_], errors)

static void test_numbers(void **state) {
    (void)state;
    static const Row rows[] = {
        {"42 1_000 0xff 0XFF 0b101 0xdead_beef", "42 1000 255 255 5 3735928559"},
        {"3.14 .5 5. 1e-3 2.5e10 1E+2 1_0.2_5", "3.14f 0.5f 5f 0.001f 2.5e+10f 100f 10.25f"},
        {"0..n 0..=5 1...2", "0 .. 'n 0 ..= 5 1 ... 2"},
        {"1.abs() 1._x 5.e3 5.)", "1 . 'abs ( ) 1 . '_x 5 . 'e3 5f )"},
        {"1.5.abs()", "1.5f . 'abs ( )"},
        {"m.blk.3.attn x.0.1 f(x).5 x[0].5",
         "'m . 'blk . 3 . 'attn 'x . 0 . 1 'f ( 'x ) . 5 'x [ 0 ] . 5"},
        {"x .5", "'x 0.5f"},
        {"return .5", "return 0.5f"},
        {"a..5 a...5", "'a .. 5 'a ... 5"},
        {"9223372036854775807 9223372036854775808", "9223372036854775807 -9223372036854775808"},
        {"0x7fffffffffffffff", "9223372036854775807"},
        {"1e400 1e-400", "inff 0f"},
        {"007", "7"},
        {"1-1", "1 - 1"},
    };
    CHECK_ROWS(rows, 0);
    static const Row wrong[] = {
        {"9223372036854775809", "0"},
        {"0x8000000000000000", "0"},
        {"1.2.3", "ERROR"},
        {"12ab", "ERROR"},
        {"1e", "ERROR"},
        {"1e+", "ERROR +"},
        {"0x", "ERROR"},
        {"0b12", "ERROR"},
        {"5é6", "ERROR"},
        {"99999999999999999999999999999999", "0"},
    };
    CHECK_ROWS(wrong, 1);
}

static void test_words(void **state) {
    (void)state;
    static const Row rows[] = {
        {"letter breaker inv_freq format index", "'letter 'breaker 'inv_freq 'format 'index"},
        {"fn let if else for in while loop break continue",
         "fn let if else for in while loop break continue"},
        {"return match try catch true false none and or not as",
         "return match try catch true false none and or not as"},
        {"tensor main test struct impl import with learn",
         "'tensor 'main 'test 'struct 'impl 'import 'with 'learn"},
        {"_ _x x1 λ größe 数据 r f", "'_ '_x 'x1 'λ 'größe '数据 'r 'f"},
        {"Fn IF", "'Fn 'IF"},
    };
    CHECK_ROWS(rows, 0);
}

static void test_symbols(void **state) {
    (void)state;
    static const Row rows[] = {
        {"a<=b<c<-d", "'a <= 'b < 'c < - 'd"},
        {"+ += - -= -> * *= ** **= / /= @ @= % %=", "+ += - -= -> * *= ** **= / /= @ @= % %="},
        {"== != >= = => : := :: . .. ..= ...", "== != >= = => : := :: . .. ..= ..."},
        {"&& || | ! ? , ;", "&& || | ! ? , ;"},
        {"≈ ⊙ ⊗", "≈ ⊙ ⊗"},
        {"(){}[]", "( ) { } [ ]"},
        {"a|b||c", "'a | 'b || 'c"},
    };
    CHECK_ROWS(rows, 0);
}

static void test_strings(void **state) {
    (void)state;
    static const Row rows[] = {
        {"\"a\" \"\" \"a\nb\"", "<a> <> <a\nb>"},
        {"\"\\n\\t\\r\\\"\\\\\"", "<\n\t\r\"\\>"},
        {"\"\\u00e9\\u{1F999}\\u{41}\"", "<é🦙A>"},
        {"r\"a\\n\" r\"\"", "<a\\n> <>"},
        {"\"a\r\nb\" \"a\rb\"", "<a\nb> <a\rb>"},
        {"f\"a{x}b{y:.3}c\"", "f<a> 'x +<b> 'y :<.3> +<c>"},
        {"f\"{{}}\" f\"\"", "f<{}> f<>"},
        {"f\"{d[\"k\"]}\"", "f<> 'd [ <k> ] +<>"},
        {"f\"{f\"{x}\"}\"", "f<> f<> 'x +<> +<>"},
        {"f\"{ {1: 2}[1] :>8}\"", "f<> { 1 : 2 } [ 1 ] :<>8> +<>"},
        {"f\"{A::b}\"", "f<> 'A :: 'b +<>"},
        {"f\"{x[1:2]}\"", "f<> 'x [ 1 : 2 ] +<>"},
        {"f\"\\n{x}\\\"\"", "f<\n> 'x +<\">"},
        {"\"(\" )", "<(> )"},
    };
    CHECK_ROWS(rows, 0);
    static const Row wrong[] = {
        {"\"a", "ERROR"},          {"r\"a", "ERROR"},     {"f\"a", "ERROR"},
        {"\"\\q\"", "<>"},         {"\"\\u12\"", "<>"},   {"\"\\u{}\"", "<}>"},
        {"\"\\u{110000}\"", "<>"}, {"\"\\ud800\"", "<>"}, {"\"\\u{1234567}\"", "<7}>"},
        {"f\"}\"", "f<>"},         {"\"a\xFF\"", "<a>"},  {"\"\\é\"", "<>"},
    };
    CHECK_ROWS(wrong, 1);
}

// A NUL may stand in a string through its escape; the token's length counts it.
static void test_string_with_nul(void **state) {
    (void)state;
    const SourceFile *file;
    assert_int_equal(source_add("t.tl", "\"a\\0b\"", 6, &file), STATUS_OK);
    Arena arena = {0};
    DiagnosticList diagnostics = {0};
    TokenList tokens = lexer_read(file, &arena, &diagnostics, 20);
    assert_int_equal(tokens.items[0].length, 3);
    assert_memory_equal(tokens.items[0].value.text, "a\0b", 4);
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    source_reset();
}

static void test_space(void **state) {
    (void)state;
    static const Row rows[] = {
        {"", ""},
        {"a // b\nc// d", "'a |'c"},
        {"a /* b\n /* c */ d */ e", "'a |'e"},
        {"a /* b */ c", "'a 'c"},
        {"/**/a/***/", "'a"},
        {"\xEF\xBB\xBF"
         "a\r\nb\tc",
         "'a |'b 'c"},
        {"#!/usr/bin/env tl\na", "'a"},
        {"\xEF\xBB\xBF#!x\na", "'a"},
        {"a\n\n\nb", "'a |'b"},
    };
    CHECK_ROWS(rows, 0);
    static const Row wrong[] = {
        {"a /* b", "'a"},
        {"a\xC2\xA0"
         "b",
         "'a ERROR 'b"},
        {"a \xFF\xFE b", "'a ERROR 'b"},
        {"a $$$ b", "'a ERROR 'b"},
        {"# a b\nc", "ERROR |'c"},
        {"'a b' c", "ERROR 'c"},
        {"a & b", "'a ERROR 'b"},
        {"\x01", "ERROR"},
        {"é\xCC\x81", "'é ERROR"},
    };
    CHECK_ROWS(wrong, 1);
}

static void test_partners(void **state) {
    (void)state;
    const char *source = "(a[{x}])(]";
    const SourceFile *file;
    assert_int_equal(source_add("t.tl", source, strlen(source), &file), STATUS_OK);
    Arena arena = {0};
    DiagnosticList diagnostics = {0};
    TokenList tokens = lexer_read(file, &arena, &diagnostics, 20);
    assert_int_equal(tokens.items[0].value.partner, 7);
    assert_int_equal(tokens.items[2].value.partner, 6);
    assert_int_equal(tokens.items[3].value.partner, 5);
    assert_int_equal(tokens.items[8].value.partner, TOKEN_NO_PARTNER);
    assert_true(tokens.ends_open);
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    source_reset();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_words),
        cmocka_unit_test(test_symbols),         cmocka_unit_test(test_strings),
        cmocka_unit_test(test_string_with_nul), cmocka_unit_test(test_space),
        cmocka_unit_test(test_partners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
