// Syntax errors as the user sees them: source text in, the whole rendered text out.
#include "outcome.h"

static void test_brackets(void **state) {
    (void)state;
    static const Row rows[] = {
        {"foo(1, 2\n"
         "let x = 3\n",
         "error[syntax]: expected `)` to close the call, found `let`\n"
         " --> t.tl:2:1\n"
         "  |\n"
         "2 | let x = 3\n"
         "  | ^^^\n"
         "note: this call was opened here\n"
         " --> t.tl:1:4\n"
         "  |\n"
         "1 | foo(1, 2\n"
         "  |    ^\n"},
        {"foo(1 2,\n"
         " 3)\n"
         "let y = 4\n",
         "error[syntax]: expected `,` or `)` in this call, found `2`\n"
         " --> t.tl:1:7\n"
         "  |\n"
         "1 | foo(1 2,\n"
         "  |       ^\n"
         "note: this call was opened here\n"
         " --> t.tl:1:4\n"
         "  |\n"
         "1 | foo(1 2,\n"
         "  |    ^\n"},
        {"fn f() {\n"
         "    let x = 1\n",
         "error[syntax]: missing `}`\n"
         " --> t.tl:2:14\n"
         "  |\n"
         "2 |     let x = 1\n"
         "  |              ^\n"
         "note: this function was opened here\n"
         " --> t.tl:1:8\n"
         "  |\n"
         "1 | fn f() {\n"
         "  |        ^\n"},
        {"let x = 1 }\n", "error[syntax]: unexpected `}`: no block is open here\n"
                          " --> t.tl:1:11\n"
                          "  |\n"
                          "1 | let x = 1 }\n"
                          "  |           ^\n"},
        {"[1, 2\n", "error[syntax]: expected `]` to close the list, found the end of the file\n"
                    " --> t.tl:1:6\n"
                    "  |\n"
                    "1 | [1, 2\n"
                    "  |      ^\n"
                    "note: this list was opened here\n"
                    " --> t.tl:1:1\n"
                    "  |\n"
                    "1 | [1, 2\n"
                    "  | ^\n"},
        {"foo(]\n", "error[syntax]: expected `)` to close the call, found `]`\n"
                    " --> t.tl:1:5\n"
                    "  |\n"
                    "1 | foo(]\n"
                    "  |     ^\n"
                    "note: this call was opened here\n"
                    " --> t.tl:1:4\n"
                    "  |\n"
                    "1 | foo(]\n"
                    "  |    ^\n"},
        {"let u = {\"a\": 1\n"
         " \"b\": 2}\n"
         "let v = 4\n",
         "error[syntax]: expected `,` or `}` in this dictionary, found a string\n"
         " --> t.tl:2:2\n"
         "  |\n"
         "2 |  \"b\": 2}\n"
         "  |  ^^^\n"
         "note: this dictionary was opened here\n"
         " --> t.tl:1:9\n"
         "  |\n"
         "1 | let u = {\"a\": 1\n"
         "  |         ^\n"},
        {"x = (1, 2]\n", "error[syntax]: expected `)` to close the tuple, found `]`\n"
                         " --> t.tl:1:10\n"
                         "  |\n"
                         "1 | x = (1, 2]\n"
                         "  |          ^\n"
                         "note: this tuple was opened here\n"
                         " --> t.tl:1:5\n"
                         "  |\n"
                         "1 | x = (1, 2]\n"
                         "  |     ^\n"},
        {"f(\n"
         "\n"
         "\n"
         "\n"
         "\n"
         "\n"
         "\n"
         "\n"
         "\n"
         "1 2)\n",
         "error[syntax]: expected `,` or `)` in this call, found `2`\n"
         "  --> t.tl:10:3\n"
         "   |\n"
         "10 | 1 2)\n"
         "   |   ^\n"
         "note: this call was opened here\n"
         "  --> t.tl:1:2\n"
         "   |\n"
         " 1 | f(\n"
         "   |  ^\n"},
        {"fn f() {\n"
         " if x {\n"
         "  g(\n"
         " }\n"
         "}\n"
         "y = 2\n",
         "error[syntax]: expected `)` to close the call, found `}`\n"
         " --> t.tl:4:2\n"
         "  |\n"
         "4 |  }\n"
         "  |  ^\n"
         "note: this call was opened here\n"
         " --> t.tl:3:4\n"
         "  |\n"
         "3 |   g(\n"
         "  |    ^\n"},
    };
    CHECK_ROWS(rows);
}

static void test_statements(void **state) {
    (void)state;
    static const Row rows[] = {
        {"functon foo(x) { 1 }\n", "error[syntax]: unexpected `functon` before `foo`\n"
                                   " --> t.tl:1:1\n"
                                   "  |\n"
                                   "1 | functon foo(x) { 1 }\n"
                                   "  | ^^^^^^^\n"
                                   "  = help: did you mean `fn`?\n"},
        {"whlie x { }\n", "error[syntax]: unexpected `whlie` before `x`\n"
                          " --> t.tl:1:1\n"
                          "  |\n"
                          "1 | whlie x { }\n"
                          "  | ^^^^^\n"
                          "  = help: did you mean `while`?\n"},
        {"elif x { }\n", "error[syntax]: unexpected `elif` before `x`\n"
                         " --> t.tl:1:1\n"
                         "  |\n"
                         "1 | elif x { }\n"
                         "  | ^^^^\n"
                         "  = help: did you mean `else if`?\n"},
        {"bench loop { }\n", "error[syntax]: unexpected `bench` before `loop`\n"
                             " --> t.tl:1:1\n"
                             "  |\n"
                             "1 | bench loop { }\n"
                             "  | ^^^^^\n"
                             "  = help: this form is written bench name { ... }\n"},
        {"var x = 3\n", "error[syntax]: unexpected `var` before `x`\n"
                        " --> t.tl:1:1\n"
                        "  |\n"
                        "1 | var x = 3\n"
                        "  | ^^^\n"
                        "  = help: did you mean `let`?\n"},
        {"else { 2 }\n", "error[syntax]: `else` without `if`\n"
                         " --> t.tl:1:1\n"
                         "  |\n"
                         "1 | else { 2 }\n"
                         "  | ^^^^\n"},
        {"if a { 1 }\n"
         ";else { 2 }\n",
         "error[syntax]: `else` without `if`\n"
         " --> t.tl:2:2\n"
         "  |\n"
         "2 | ;else { 2 }\n"
         "  |  ^^^^\n"},
        {"catch e { }\n", "error[syntax]: `catch` without `try`\n"
                          " --> t.tl:1:1\n"
                          "  |\n"
                          "1 | catch e { }\n"
                          "  | ^^^^^\n"},
        {"let in = 3\n", "error[syntax]: expected a name, found `in`\n"
                         " --> t.tl:1:5\n"
                         "  |\n"
                         "1 | let in = 3\n"
                         "  |     ^^\n"
                         "  = help: `in` is a reserved word; choose another name\n"},
        {"let x\n", "error[syntax]: expected `=` and a value, found the end of the file\n"
                    " --> t.tl:1:6\n"
                    "  |\n"
                    "1 | let x\n"
                    "  |      ^\n"},
        {"let (a, b)\n", "error[syntax]: expected `=` and a value, found the end of the file\n"
                         " --> t.tl:1:11\n"
                         "  |\n"
                         "1 | let (a, b)\n"
                         "  |           ^\n"},
        {"let mut y = 3\n", "error[syntax]: `let mut` is not needed\n"
                            " --> t.tl:1:5\n"
                            "  |\n"
                            "1 | let mut y = 3\n"
                            "  |     ^^^\n"
                            "  = help: every variable can be assigned again: leave out `mut`\n"},
        {"x = = 3\n", "error[syntax]: expected an expression, found `=`\n"
                      " --> t.tl:1:5\n"
                      "  |\n"
                      "1 | x = = 3\n"
                      "  |     ^\n"},
        {"x = y = 3\n", "error[syntax]: an assignment has no value that could be assigned again\n"
                        " --> t.tl:1:7\n"
                        "  |\n"
                        "1 | x = y = 3\n"
                        "  |       ^\n"
                        "  = help: write one assignment a line\n"},
        {"return 1 2\n",
         "error[syntax]: expected a newline or `;` after this statement, found `2`\n"
         " --> t.tl:1:10\n"
         "  |\n"
         "1 | return 1 2\n"
         "  |          ^\n"},
        {"a, b\n",
         "error[syntax]: expected `=` after this list of names, found the end of the file\n"
         " --> t.tl:1:5\n"
         "  |\n"
         "1 | a, b\n"
         "  |     ^\n"
         "  = help: a tuple is written in parentheses: (a, b)\n"},
        {"x ? 1 : 2\n", "error[syntax]: expected a newline or `;` after this statement, found `?`\n"
                        " --> t.tl:1:3\n"
                        "  |\n"
                        "1 | x ? 1 : 2\n"
                        "  |   ^\n"
                        "  = help: a choice is written if c { a } else { b }\n"},
        {"main { main { } }\n", "error[syntax]: `main` belongs at the top level of the file\n"
                                " --> t.tl:1:8\n"
                                "  |\n"
                                "1 | main { main { } }\n"
                                "  |        ^^^^\n"
                                "  = help: move it out of this block\n"},
        {"fn f() { struct P { } }\n",
         "error[syntax]: `struct` belongs at the top level of the file\n"
         " --> t.tl:1:10\n"
         "  |\n"
         "1 | fn f() { struct P { } }\n"
         "  |          ^^^^^^\n"
         "  = help: move it out of this block\n"},
    };
    CHECK_ROWS(rows);
}

static void test_targets(void **state) {
    (void)state;
    static const Row rows[] = {
        {"1 = 2\n", "error[syntax]: cannot assign to a number\n"
                    " --> t.tl:1:1\n"
                    "  |\n"
                    "1 | 1 = 2\n"
                    "  | ^\n"
                    "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"\"a\" += 2\n", "error[syntax]: cannot assign to a string\n"
                         " --> t.tl:1:1\n"
                         "  |\n"
                         "1 | \"a\" += 2\n"
                         "  | ^^^\n"
                         "  = help: a name, a field or an index can be assigned\n"},
        {"a + b = 3\n", "error[syntax]: cannot assign to this expression\n"
                        " --> t.tl:1:1\n"
                        "  |\n"
                        "1 | a + b = 3\n"
                        "  | ^^^^^\n"
                        "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"f(x) = 2\n", "error[syntax]: cannot assign to the result of a call\n"
                       " --> t.tl:1:1\n"
                       "  |\n"
                       "1 | f(x) = 2\n"
                       "  | ^^^^\n"
                       "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"none = 1\n", "error[syntax]: cannot assign to none\n"
                       " --> t.tl:1:1\n"
                       "  |\n"
                       "1 | none = 1\n"
                       "  | ^^^^\n"
                       "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"true = 1\n", "error[syntax]: cannot assign to a boolean\n"
                       " --> t.tl:1:1\n"
                       "  |\n"
                       "1 | true = 1\n"
                       "  | ^^^^\n"
                       "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"() = 1\n", "error[syntax]: cannot assign to an empty tuple\n"
                     " --> t.tl:1:1\n"
                     "  |\n"
                     "1 | () = 1\n"
                     "  | ^^\n"
                     "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"(a, (b, c)) = 1\n",
         "error[syntax]: cannot assign to a tuple inside a tuple\n"
         " --> t.tl:1:1\n"
         "  |\n"
         "1 | (a, (b, c)) = 1\n"
         "  | ^^^^^^^^^^^\n"
         "  = help: a name, a field or an index can be assigned; `==` compares\n"},
        {"a, b += 1\n", "error[syntax]: `+=` needs a single target, not a tuple\n"
                        " --> t.tl:1:6\n"
                        "  |\n"
                        "1 | a, b += 1\n"
                        "  |      ^^\n"},
        {"[a, b] = c\n", "error[syntax]: cannot assign to a list\n"
                         " --> t.tl:1:1\n"
                         "  |\n"
                         "1 | [a, b] = c\n"
                         "  | ^^^^^^\n"
                         "  = help: a name, a field or an index can be assigned; `==` compares\n"},
    };
    CHECK_ROWS(rows);
}

static void test_expressions(void **state) {
    (void)state;
    static const Row rows[] = {
        {"if a < b < c { 1 }\n", "error[syntax]: comparisons cannot be chained\n"
                                 " --> t.tl:1:10\n"
                                 "  |\n"
                                 "1 | if a < b < c { 1 }\n"
                                 "  |          ^\n"
                                 "  = help: write `a < b and b < c`\n"
                                 "note: the first comparison is here\n"
                                 " --> t.tl:1:6\n"
                                 "  |\n"
                                 "1 | if a < b < c { 1 }\n"
                                 "  |      ^\n"},
        {"x = a not in b == c\n", "error[syntax]: comparisons cannot be chained\n"
                                  " --> t.tl:1:16\n"
                                  "  |\n"
                                  "1 | x = a not in b == c\n"
                                  "  |                ^^\n"
                                  "  = help: write `a not in b and b == c`\n"
                                  "note: the first comparison is here\n"
                                  " --> t.tl:1:7\n"
                                  "  |\n"
                                  "1 | x = a not in b == c\n"
                                  "  |       ^^^^^^\n"},
        {"0..1..2\n", "error[syntax]: ranges cannot be chained\n"
                      " --> t.tl:1:5\n"
                      "  |\n"
                      "1 | 0..1..2\n"
                      "  |     ^^\n"
                      "  = help: range(start, stop, step) takes a step\n"},
        {"foo(,)\n", "error[syntax]: expected an expression, found `,`\n"
                     " --> t.tl:1:5\n"
                     "  |\n"
                     "1 | foo(,)\n"
                     "  |     ^\n"},
        {"x++\n", "error[syntax]: expected an expression, found `+`\n"
                  " --> t.tl:1:3\n"
                  "  |\n"
                  "1 | x++\n"
                  "  |   ^\n"
                  "  = help: x += 1 adds one to x\n"},
        {"x = +1\n", "error[syntax]: expected an expression, found `+`\n"
                     " --> t.tl:1:5\n"
                     "  |\n"
                     "1 | x = +1\n"
                     "  |     ^\n"
                     "  = help: a number needs no `+` in front of it\n"},
        {"f(a: 1, 2)\n", "error[syntax]: a positional argument cannot follow a named one\n"
                         " --> t.tl:1:9\n"
                         "  |\n"
                         "1 | f(a: 1, 2)\n"
                         "  |         ^\n"
                         "  = help: move it to the front, or name it\n"},
        {"let f = fn foo(x) { }\n",
         "error[syntax]: expected `(` to begin the parameters, found `foo`\n"
         " --> t.tl:1:12\n"
         "  |\n"
         "1 | let f = fn foo(x) { }\n"
         "  |            ^^^\n"
         "  = help: a function used as a value has no name: fn(x) { ... }\n"},
        {"with device(\"cpu\", 2) { }\n",
         "error[syntax]: expected `)` to close the argument, found `,`\n"
         " --> t.tl:1:18\n"
         "  |\n"
         "1 | with device(\"cpu\", 2) { }\n"
         "  |                  ^\n"
         "note: this argument was opened here\n"
         " --> t.tl:1:12\n"
         "  |\n"
         "1 | with device(\"cpu\", 2) { }\n"
         "  |            ^\n"},
        {"x[: ::2]\n", "error[syntax]: expected `,` or `]` in this index, found `::`\n"
                       " --> t.tl:1:5\n"
                       "  |\n"
                       "1 | x[: ::2]\n"
                       "  |     ^^\n"
                       "note: this index was opened here\n"
                       " --> t.tl:1:2\n"
                       "  |\n"
                       "1 | x[: ::2]\n"
                       "  |  ^\n"},
        {"x[]\n", "error[syntax]: expected an index, found `]`\n"
                  " --> t.tl:1:3\n"
                  "  |\n"
                  "1 | x[]\n"
                  "  |   ^\n"},
        {"x[1..]\n", "error[syntax]: this range has no end\n"
                     " --> t.tl:1:4\n"
                     "  |\n"
                     "1 | x[1..]\n"
                     "  |    ^^\n"
                     "  = help: inside `[ ]` a slice to the end is written `a:`\n"},
        {"x. = 1\n", "error[syntax]: expected a name after `.`, found `=`\n"
                     " --> t.tl:1:4\n"
                     "  |\n"
                     "1 | x. = 1\n"
                     "  |    ^\n"},
        {"x::1\n", "error[syntax]: expected a name after `::`, found `1`\n"
                   " --> t.tl:1:4\n"
                   "  |\n"
                   "1 | x::1\n"
                   "  |    ^\n"},
        {"Point { x: 1, 2 }\n", "error[syntax]: expected a field name, found `2`\n"
                                " --> t.tl:1:15\n"
                                "  |\n"
                                "1 | Point { x: 1, 2 }\n"
                                "  |               ^\n"},
        {"Point { x: }\n", "error[syntax]: expected an expression, found `}`\n"
                           " --> t.tl:1:12\n"
                           "  |\n"
                           "1 | Point { x: }\n"
                           "  |            ^\n"},
        {"let x = 9223372036854775808\n",
         "error[syntax]: the integer 9223372036854775808 does not fit in 64 bits; the largest is "
         "9223372036854775807\n"
         " --> t.tl:1:9\n"
         "  |\n"
         "1 | let x = 9223372036854775808\n"
         "  |         ^^^^^^^^^^^^^^^^^^^\n"
         "  = help: write it as a float, with a point or an exponent\n"},
        {"x = while\n", "error[syntax]: expected an expression, found `while`\n"
                        " --> t.tl:1:5\n"
                        "  |\n"
                        "1 | x = while\n"
                        "  |     ^^^^^\n"
                        "  = help: `while` begins a statement; it has no value\n"},
        {"y = |x| x\n", "error[syntax]: expected an expression, found `|`\n"
                        " --> t.tl:1:5\n"
                        "  |\n"
                        "1 | y = |x| x\n"
                        "  |     ^\n"
                        "  = help: a function value is written fn(x) { ... }\n"},
    };
    CHECK_ROWS(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brackets),
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
