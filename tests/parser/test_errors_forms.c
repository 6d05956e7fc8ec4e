// Syntax errors of control flow, declarations, logic forms and unreadable text, as the user sees
// them.
#include "outcome.h"

static void test_control(void **state) {
    (void)state;
    static const Row rows[] = {
        {"if x = 3 { }\n", "error[syntax]: expected `{` to begin the body, found `=`\n"
                           " --> t.tl:1:6\n"
                           "  |\n"
                           "1 | if x = 3 { }\n"
                           "  |      ^\n"
                           "  = help: `==` compares; an assignment has no value\n"},
        {"while { }\n", "error[syntax]: expected a condition after `while`, found `{`\n"
                        " --> t.tl:1:7\n"
                        "  |\n"
                        "1 | while { }\n"
                        "  |       ^\n"},
        {"fn f(x):\n", "error[syntax]: expected `{` to begin the function, found `:`\n"
                       " --> t.tl:1:8\n"
                       "  |\n"
                       "1 | fn f(x):\n"
                       "  |        ^\n"
                       "  = help: statements that belong together stand in braces\n"},
        {"let f = x -> x\n",
         "error[syntax]: expected a newline or `;` after this statement, found `->`\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 | let f = x -> x\n"
         "  |           ^^\n"
         "  = help: a function without a name is written fn(x) { x * 2 }\n"},
        {"for x { }\n", "error[syntax]: expected `in` and what to go through, found `{`\n"
                        " --> t.tl:1:7\n"
                        "  |\n"
                        "1 | for x { }\n"
                        "  |       ^\n"},
        {"for (a, b), c in d { }\n",
         "error[syntax]: the first of two loop variables is a single name\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | for (a, b), c in d { }\n"
         "  |     ^^^^^^\n"
         "  = help: for i, (a, b) in pairs { ... }\n"},
        {"try { 1 }\n",
         "error[syntax]: expected `catch` after the try block, found the end of the file\n"
         " --> t.tl:1:10\n"
         "  |\n"
         "1 | try { 1 }\n"
         "  |          ^\n"
         "  = help: write try { ... } catch e { ... }\n"},
        {"try { 1 } catch (e) { 2 }\n", "error[syntax]: expected a name for the error, found `(`\n"
                                        " --> t.tl:1:17\n"
                                        "  |\n"
                                        "1 | try { 1 } catch (e) { 2 }\n"
                                        "  |                 ^\n"
                                        "  = help: write try { ... } catch e { ... }\n"},
        {"for (let i = 0; i < 3; i++) { }\n",
         "error[syntax]: expected the loop's variable, found `(`\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | for (let i = 0; i < 3; i++) { }\n"
         "  |     ^\n"
         "  = help: a loop that counts is written for i in 0..n { ... }\n"},
        {"let a =\nlet b = 1 <> 2\n",
         "error[syntax]: expected an expression, found the end of the line\n"
         " --> t.tl:1:8\n"
         "  |\n"
         "1 | let a =\n"
         "  |        ^\n"
         "error[syntax]: expected an expression, found `>`\n"
         " --> t.tl:2:12\n"
         "  |\n"
         "2 | let b = 1 <> 2\n"
         "  |            ^\n"
         "  = help: `!=` says that two differ\n"},
        {"match x { 1 = 2 }\n", "error[syntax]: expected `=>` after the pattern, found `=`\n"
                                " --> t.tl:1:13\n"
                                "  |\n"
                                "1 | match x { 1 = 2 }\n"
                                "  |             ^\n"
                                "  = help: an arm is written pattern => value\n"},
        {"match x { 1 => 2 3 => 4 }\n",
         "error[syntax]: expected `,` or a newline after this arm, found `3`\n"
         " --> t.tl:1:18\n"
         "  |\n"
         "1 | match x { 1 => 2 3 => 4 }\n"
         "  |                  ^\n"},
        {"match x { a + b => 2 }\n", "error[syntax]: expected `=>` after the pattern, found `+`\n"
                                     " --> t.tl:1:13\n"
                                     "  |\n"
                                     "1 | match x { a + b => 2 }\n"
                                     "  |             ^\n"
                                     "  = help: an arm is written pattern => value\n"},
        {"match x { \"a\"..\"b\" => 1 }\n",
         "error[syntax]: the ends of a range in a pattern are numbers\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 | match x { \"a\"..\"b\" => 1 }\n"
         "  |           ^^^^^^^^\n"},
        {"with device(\"cpu\" { }\n",
         "error[syntax]: expected `,` or `)` in this argument, found `{`\n"
         " --> t.tl:1:19\n"
         "  |\n"
         "1 | with device(\"cpu\" { }\n"
         "  |                   ^\n"
         "note: this argument was opened here\n"
         " --> t.tl:1:12\n"
         "  |\n"
         "1 | with device(\"cpu\" { }\n"
         "  |            ^\n"},
        {"learn { epochs: 1 batch: 2 }\n",
         "error[syntax]: expected `,` or a newline after this setting, found `batch`\n"
         " --> t.tl:1:19\n"
         "  |\n"
         "1 | learn { epochs: 1 batch: 2 }\n"
         "  |                   ^^^^^\n"},
    };
    CHECK_ROWS(rows);
}

static void test_declarations(void **state) {
    (void)state;
    static const Row rows[] = {
        {"fn f { }\n", "error[syntax]: expected `(` to begin the parameters, found `{`\n"
                       " --> t.tl:1:6\n"
                       "  |\n"
                       "1 | fn f { }\n"
                       "  |      ^\n"},
        {"fn (x) { }\n"
         "fn 3() { }\n",
         "error[syntax]: expected a function name, found `3`\n"
         " --> t.tl:2:4\n"
         "  |\n"
         "2 | fn 3() { }\n"
         "  |    ^\n"},
        {"fn f(x y) { }\n", "error[syntax]: expected `,` or `)` in this parameter list, found `y`\n"
                            " --> t.tl:1:8\n"
                            "  |\n"
                            "1 | fn f(x y) { }\n"
                            "  |        ^\n"
                            "note: this parameter list was opened here\n"
                            " --> t.tl:1:5\n"
                            "  |\n"
                            "1 | fn f(x y) { }\n"
                            "  |     ^\n"},
        {"fn f() -> none { }\n", "error[syntax]: expected a type, found `none`\n"
                                 " --> t.tl:1:11\n"
                                 "  |\n"
                                 "1 | fn f() -> none { }\n"
                                 "  |           ^^^^\n"
                                 "  = help: void stands for no value; `T?` also accepts none\n"},
        {"struct P { x: int y: int }\n",
         "error[syntax]: expected `,` or a newline after this field, found `y`\n"
         " --> t.tl:1:19\n"
         "  |\n"
         "1 | struct P { x: int y: int }\n"
         "  |                   ^\n"},
        {"struct Q {\n"
         " x int\n"
         "}\n",
         "error[syntax]: expected `:` and the field's type, found `int`\n"
         " --> t.tl:2:4\n"
         "  |\n"
         "2 |  x int\n"
         "  |    ^^^\n"
         "  = help: a field is written name: type\n"},
        {"impl P { let x = 1 }\n", "error[syntax]: expected `fn` to begin a method, found `let`\n"
                                   " --> t.tl:1:10\n"
                                   "  |\n"
                                   "1 | impl P { let x = 1 }\n"
                                   "  |          ^^^\n"},
        {"let a: float32[2.5] = 1\n",
         "error[syntax]: expected a dimension, found `2.5`\n"
         " --> t.tl:1:16\n"
         "  |\n"
         "1 | let a: float32[2.5] = 1\n"
         "  |                ^^^\n"
         "  = help: a dimension is an integer, a name, or `?` for any size\n"},
        {"let a: 3 = 1\n", "error[syntax]: expected a type, found `3`\n"
                           " --> t.tl:1:8\n"
                           "  |\n"
                           "1 | let a: 3 = 1\n"
                           "  |        ^\n"},
        {"import \"a\" as 3\n", "error[syntax]: expected a name for the module, found `3`\n"
                                " --> t.tl:1:15\n"
                                "  |\n"
                                "1 | import \"a\" as 3\n"
                                "  |               ^\n"},
        {"tensor w: float32[-1]\n",
         "error[syntax]: expected a dimension, found `-`\n"
         " --> t.tl:1:19\n"
         "  |\n"
         "1 | tensor w: float32[-1]\n"
         "  |                   ^\n"
         "  = help: a dimension is an integer, a name, or `?` for any size\n"},
        {"struct P<T { }\n", "error[syntax]: expected `>` to end the type parameters, found `{`\n"
                             " --> t.tl:1:12\n"
                             "  |\n"
                             "1 | struct P<T { }\n"
                             "  |            ^\n"},
    };
    CHECK_ROWS(rows);
}

static void test_logic(void **state) {
    (void)state;
    static const Row rows[] = {
        {"embedding E {\n"
         " entities: Person\n"
         "}\n"
         "x = 1\n",
         "error[syntax]: an embedding needs `entities:` and `dimension:`\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 | embedding E {\n"
         "  |           ^\n"},
    };
    CHECK_ROWS(rows);
}

static void test_lexical(void **state) {
    (void)state;
    static const Row rows[] = {
        {"let x = \"a\\qb\"\n", "error[syntax]: unknown escape `\\q` in string\n"
                                " --> t.tl:1:11\n"
                                "  |\n"
                                "1 | let x = \"a\\qb\"\n"
                                "  |           ^^\n"
                                "  = help: the escapes are \\n \\t \\r \\0 \\\" \\\\ \\uXXXX and "
                                "\\u{1F999}; a backslash is written \\\\\n"},
        {"\"\\u12\" + \"\\u{110000}\" + \"\\ud83d\" + \"\\u{}\"\n",
         "error[syntax]: incomplete escape `\\u12` in string\n"
         " --> t.tl:1:2\n"
         "  |\n"
         "1 | \"\\u12\" + \"\\u{110000}\" + \"\\ud83d\" + \"\\u{}\"\n"
         "  |  ^^^^\n"
         "  = help: four hexadecimal digits follow \\u: \\u00e9; others need braces: \\u{1F999}\n"
         "error[syntax]: the escape `\\u{110000}` is beyond Unicode\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 | \"\\u12\" + \"\\u{110000}\" + \"\\ud83d\" + \"\\u{}\"\n"
         "  |           ^^^^^^^^^^\n"
         "  = help: the last code point is \\u{10FFFF}\n"
         "error[syntax]: the escape `\\ud83d` is half of a surrogate pair, not a character\n"
         " --> t.tl:1:26\n"
         "  |\n"
         "1 | \"\\u12\" + \"\\u{110000}\" + \"\\ud83d\" + \"\\u{}\"\n"
         "  |                          ^^^^^^\n"
         "  = help: write the character as one escape: \\u{1F999}\n"
         "error[syntax]: incomplete escape `\\u{` in string\n"
         " --> t.tl:1:37\n"
         "  |\n"
         "1 | \"\\u12\" + \"\\u{110000}\" + \"\\ud83d\" + \"\\u{}\"\n"
         "  |                                     ^^^\n"
         "  = help: one to six hexadecimal digits stand between the braces: \\u{1F999}\n"},
        {"\"a\\\n"
         "b\"\n",
         "error[syntax]: a backslash in a string must begin an escape\n"
         " --> t.tl:1:3\n"
         "  |\n"
         "1 | \"a\\\n"
         "  |   ^\n"
         "  = help: the escapes are \\n \\t \\r \\0 \\\" \\\\ \\uXXXX and \\u{1F999}; a backslash "
         "is written \\\\\n"},
        {"let x = \"abc\n"
         "foo\n",
         "error[syntax]: unterminated string: this `\"` is never closed\n"
         " --> t.tl:1:9\n"
         "  |\n"
         "1 | let x = \"abc\n"
         "  |         ^\n"},
        {"let x = 5.5.5 + 12abc + 0xzz\n", "error[syntax]: malformed number `5.5.5`\n"
                                           " --> t.tl:1:9\n"
                                           "  |\n"
                                           "1 | let x = 5.5.5 + 12abc + 0xzz\n"
                                           "  |         ^^^^^\n"
                                           "error[syntax]: malformed number `12abc`\n"
                                           " --> t.tl:1:17\n"
                                           "  |\n"
                                           "1 | let x = 5.5.5 + 12abc + 0xzz\n"
                                           "  |                 ^^^^^\n"
                                           "error[syntax]: malformed number `0xzz`\n"
                                           " --> t.tl:1:25\n"
                                           "  |\n"
                                           "1 | let x = 5.5.5 + 12abc + 0xzz\n"
                                           "  |                         ^^^^\n"},
        {"let x = 99999999999999999999\n",
         "error[syntax]: the integer 99999999999999999999 does not fit in 64 bits; the largest is "
         "9223372036854775807\n"
         " --> t.tl:1:9\n"
         "  |\n"
         "1 | let x = 99999999999999999999\n"
         "  |         ^^^^^^^^^^^^^^^^^^^^\n"
         "  = help: write it as a float, with a point or an exponent\n"},
        {"x = 0xffffffffffffffff\n",
         "error[syntax]: the integer 0xffffffffffffffff does not fit in 64 bits; the largest is "
         "9223372036854775807\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | x = 0xffffffffffffffff\n"
         "  |     ^^^^^^^^^^^^^^^^^^\n"
         "  = help: write it as a float, with a point or an exponent\n"},
        {"let x = a\302\240 b\n", "error[syntax]: unexpected character U+00A0 (no-break space)\n"
                                  " --> t.tl:1:10\n"
                                  "  |\n"
                                  "1 | let x = a\302\240 b\n"
                                  "  |          ^\n"
                                  "  = help: replace it by an ordinary space\n"},
        {"/* a /* b */\n", "error[syntax]: unterminated comment: this `/*` is never closed\n"
                           " --> t.tl:1:1\n"
                           "  |\n"
                           "1 | /* a /* b */\n"
                           "  | ^^\n"
                           "  = help: comments nest: each `/*` inside needs its own `*/`\n"},
        {"print(f\"a {x\")\n",
         "error[syntax]: unterminated string: this `\"` is never closed\n"
         " --> t.tl:1:13\n"
         "  |\n"
         "1 | print(f\"a {x\")\n"
         "  |             ^\n"
         "  = help: it stands in a placeholder of an f-string: was its `}` forgotten?\n"},
        {"print(f\"a {} }\")\n",
         "error[syntax]: an empty placeholder in an f-string\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 | print(f\"a {} }\")\n"
         "  |           ^^\n"
         "  = help: name a value, as in f\"{x}\"; a brace in the text is written `{{`\n"
         "error[syntax]: `}` without `{` in f-string\n"
         " --> t.tl:1:14\n"
         "  |\n"
         "1 | print(f\"a {} }\")\n"
         "  |              ^\n"
         "  = help: a brace in an f-string's text is written `}}`\n"},
        {"f\"{x:.3\"\n", "error[syntax]: expected `}` to end the placeholder's format\n"
                         " --> t.tl:1:5\n"
                         "  |\n"
                         "1 | f\"{x:.3\"\n"
                         "  |     ^^^\n"
                         "  = help: a placeholder is written {value} or {value:spec}, as {x:.3}\n"},
        {"f\"{7 // 2}\"\nlet x = 1\n",
         "error[syntax]: expected `}` to end the placeholder, found a comment\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | f\"{7 // 2}\"\n"
         "  |     ^\n"
         "  = help: `//` begins a comment; floor_div(a, b) is a quotient rounded down\n"},
        {"let s = \377\376 \"a\"\n"
         "let t = $x & y\n",
         "error[syntax]: the byte 0xff is not valid UTF-8\n"
         " --> t.tl:1:9\n"
         "  |\n"
         "1 | let s = \\xff\\xfe \"a\"\n"
         "  |         ^^^^^^^^\n"
         "  = help: source files are UTF-8\n"
         "error[syntax]: unexpected character `$` (U+0024)\n"
         " --> t.tl:2:9\n"
         "  |\n"
         "2 | let t = $x & y\n"
         "  |         ^\n"
         "error[syntax]: unexpected character `&` (U+0026)\n"
         " --> t.tl:2:12\n"
         "  |\n"
         "2 | let t = $x & y\n"
         "  |            ^\n"
         "  = help: `and` and `&&` join conditions; bit_and(a, b) works on bits\n"},
        {"x = 'a b' + 'c'\n", "error[syntax]: unexpected character `'` (U+0027)\n"
                              " --> t.tl:1:5\n"
                              "  |\n"
                              "1 | x = 'a b' + 'c'\n"
                              "  |     ^^^^^\n"
                              "  = help: strings are written with double quotes\n"
                              "error[syntax]: unexpected character `'` (U+0027)\n"
                              " --> t.tl:1:13\n"
                              "  |\n"
                              "1 | x = 'a b' + 'c'\n"
                              "  |             ^^^\n"
                              "  = help: strings are written with double quotes\n"},
        {"x = \342\200\234a\342\200\235\n",
         "error[syntax]: unexpected character `\342\200\234` (U+201C)\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | x = \342\200\234a\342\200\235\n"
         "  |     ^^^\n"
         "  = help: strings are written with plain double quotes, `\"`\n"},
        {"x = a \303\227 b\n", "error[syntax]: unexpected character `\303\227` (U+00D7)\n"
                               " --> t.tl:1:7\n"
                               "  |\n"
                               "1 | x = a \303\227 b\n"
                               "  |       ^\n"
                               "  = help: multiplication is written `*`\n"},
        {"x = 1 \007\001\n", "error[syntax]: unexpected control character U+0007\n"
                             " --> t.tl:1:7\n"
                             "  |\n"
                             "1 | x = 1 \\x07\\x01\n"
                             "  |       ^^^^\n"
                             "error[syntax]: unexpected control character U+0001\n"
                             " --> t.tl:1:8\n"
                             "  |\n"
                             "1 | x = 1 \\x07\\x01\n"
                             "  |           ^^^^\n"},
        {"\"a\377b\"\n", "error[syntax]: the byte 0xff is not valid UTF-8\n"
                         " --> t.tl:1:3\n"
                         "  |\n"
                         "1 | \"a\\xffb\"\n"
                         "  |   ^^^^\n"
                         "  = help: source files are UTF-8\n"},
        {"x = 1\n"
         "  # it's a note\n",
         "error[syntax]: unexpected character `#` (U+0023)\n"
         " --> t.tl:2:3\n"
         "  |\n"
         "2 |   # it's a note\n"
         "  |   ^^^^^^^^^^^^^\n"
         "  = help: a comment begins with `//`\n"},
        {"x = 'a\n", "error[syntax]: unexpected character `'` (U+0027)\n"
                     " --> t.tl:1:5\n"
                     "  |\n"
                     "1 | x = 'a\n"
                     "  |     ^\n"
                     "  = help: strings are written with double quotes\n"},
        {"\tx = \303\251 \344\270\255\346\226\207 ^\n",
         "error[syntax]: expected a newline or `;` after this statement, found "
         "`\344\270\255\346\226\207`\n"
         " --> t.tl:1:8\n"
         "  |\n"
         "1 |     x = \303\251 \344\270\255\346\226\207 ^\n"
         "  |           ^^^^\n"
         "error[syntax]: unexpected character `^` (U+005E)\n"
         " --> t.tl:1:11\n"
         "  |\n"
         "1 |     x = \303\251 \344\270\255\346\226\207 ^\n"
         "  |                ^\n"
         "  = help: powers are written `**`; bit_xor(a, b) works on bits\n"},
    };
    CHECK_ROWS(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_declarations),
        cmocka_unit_test(test_logic),
        cmocka_unit_test(test_lexical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
