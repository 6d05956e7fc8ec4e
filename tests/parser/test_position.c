// What may stand at the end of a text that is being written.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "parser/position.h"

#include <cmocka.h>

typedef struct Row {
    const char *text; // the place is its end
    PositionKind kind;
    const char *word, *receiver; // NULL: ""
} Row;

static void check_part(const Row *row, const char *part, size_t begin, size_t end) {
    if (!part) part = "";
    if (strlen(part) != end - begin || memcmp(part, row->text + begin, end - begin) != 0)
        fail_msg("%s: %.*s instead of %s", row->text, (int)(end - begin), row->text + begin, part);
}

static void test_kinds(void **state) {
    (void)state;
    static const Row rows[] = {
        {"", POSITION_STATEMENT, NULL, NULL},
        {"pri", POSITION_STATEMENT, "pri", NULL},
        {"x = 1\npri", POSITION_STATEMENT, "pri", NULL},
        {"x = 1; ", POSITION_STATEMENT, NULL, NULL},
        {"fn f() { le", POSITION_STATEMENT, "le", NULL},
        {"if a { 1 }\nel", POSITION_STATEMENT, "el", NULL},
        {"if a { 1 } el", POSITION_OPERATOR, "el", NULL},
        {"x = ", POSITION_OPERAND, NULL, NULL},
        {"f(a, b", POSITION_OPERAND, "b", NULL},
        {"f(a\n", POSITION_OPERATOR, NULL, NULL},
        {"f(dim: s", POSITION_OPERAND, "s", NULL},
        {"a: ", POSITION_OPERAND, NULL, NULL},
        {"1 +\n", POSITION_OPERAND, NULL, NULL},
        {"x an", POSITION_OPERATOR, "an", NULL},
        {"f(x) ", POSITION_OPERATOR, NULL, NULL},
        {"f\"{x} {y", POSITION_OPERAND, "y", NULL},
        {"x.", POSITION_MEMBER, NULL, "x"},
        {"print(model.blk.we", POSITION_MEMBER, "we", "model.blk"},
        {"f(x).sh", POSITION_MEMBER, "sh", NULL},
        {"f(x).a.b", POSITION_MEMBER, "b", NULL},
        {"x[0].", POSITION_MEMBER, NULL, NULL},
        {"nn.Linear::n", POSITION_PATH, "n", "nn.Linear"},
        {"Point::", POSITION_PATH, NULL, "Point"},
        {"let x: fl", POSITION_TYPE, "fl", NULL},
        {"tensor x: fl", POSITION_TYPE, "fl", NULL},
        {"fn f(a: fl", POSITION_TYPE, "fl", NULL},
        {"fn f(a) -> fl", POSITION_TYPE, "fl", NULL},
        {"x as fl", POSITION_TYPE, "fl", NULL},
        {"impl Po", POSITION_TYPE, "Po", NULL},
        {"let x", POSITION_NONE, "x", NULL},
        {"fn f", POSITION_NONE, "f", NULL},
        {"fn f(a, b", POSITION_NONE, "b", NULL},
        {"for x", POSITION_NONE, "x", NULL},
        {"struct P", POSITION_NONE, "P", NULL},
        {"\"text so", POSITION_NONE, "so", NULL},
        {"x // so", POSITION_NONE, "so", NULL},
        {"x // so\npr", POSITION_STATEMENT, "pr", NULL},
        {"x /* so", POSITION_NONE, "so", NULL},
        {"/* a /* b */ c", POSITION_NONE, "c", NULL},
        {"12", POSITION_NONE, "12", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Position position = position_find(rows[i].text, strlen(rows[i].text));
        if (position.kind != rows[i].kind)
            fail_msg("%s: kind %d instead of %d", rows[i].text, position.kind, rows[i].kind);
        check_part(&rows[i], rows[i].word, position.word, strlen(rows[i].text));
        check_part(&rows[i], rows[i].receiver, position.receiver, position.receiver_end);
    }
}

static void test_keywords(void **state) {
    (void)state;
    static const struct {
        const char *text;
        TokenKind keyword;
        bool allowed;
    } rows[] = {
        {"", TOKEN_LET, true},
        {"x = ", TOKEN_LET, false},
        {"x = ", TOKEN_IF, true},
        {"x = ", TOKEN_FN, true},
        {"", TOKEN_ELSE, false},
        {"", TOKEN_CATCH, false},
        {"", TOKEN_AND, false},
        {"x ", TOKEN_AND, true},
        {"x ", TOKEN_IF, false},
        {"if a { } ", TOKEN_ELSE, true},
        {"try { }\n", TOKEN_CATCH, true},
        {"if a { } ", TOKEN_CATCH, false},
        {"if f(fn() { 1 }) { } ", TOKEN_ELSE, true},
        {"if a { } else { } ", TOKEN_ELSE, false},
        {"try { } ", TOKEN_ELSE, false},
        {"", TOKEN_BREAK, false},
        {"loop { ", TOKEN_BREAK, true},
        {"for x in f(1) { if x { ", TOKEN_BREAK, true},
        {"loop { let f = fn() { ", TOKEN_BREAK, false},
        {"loop { } ", TOKEN_BREAK, false},
        {"", TOKEN_RETURN, false},
        {"fn f() { loop { ", TOKEN_RETURN, true},
        {"x.", TOKEN_LET, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Position position = position_find(rows[i].text, strlen(rows[i].text));
        if (position_allows_keyword(&position, rows[i].keyword) != rows[i].allowed)
            fail_msg("%s: %s", rows[i].text, token_spelling(rows[i].keyword));
    }
}

static void test_closers(void **state) {
    (void)state;
    static const struct {
        const char *text, *closers;
    } rows[] = {
        {"", ""}, {"fn f() {", " }"}, {"f(x[{", " } ] )"}, {"f(1) { }", ""}, {"\"({\"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Text out = {0};
        position_append_closers(rows[i].text, strlen(rows[i].text), &out);
        assert_string_equal(text_get(&out), rows[i].closers);
        text_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_closers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
