// What the parser's files share: the cursor, the context, reporting, and one entry point per file.
// Every parse_* function returns NULL (or false) after it has reported an error; the statement that
// it belongs to is then given up and reading goes on at the next one.
#ifndef PARSER_STATE_H
#define PARSER_STATE_H

#include "lexer/lexer.h"
#include "parser/parser.h"

// What a construct sets for its inside and restores at its end.
typedef struct Context {
    bool newlines_free; // inside ( or [ : a newline is white space
    bool in_head;       // of if, while, for, match: `{` begins the body, not a struct literal
    bool in_subscript;  // directly inside x[...]: `::` is a slice's
    bool in_equation;   // right of `x[...] =` and `<-`: factors may stand side by side
    bool in_program;    // among the equations of a program block, where `x =` is one too
    bool in_weight;     // before the `::` of a weighted fact or rule
    bool in_block;      // not at the top level of the file
    int nesting;
    size_t open_count; // of Parser.open
} Context;

typedef struct Parser {
    Arena *arena;
    const SourceFile *file;
    TokenList tokens;
    size_t at;
    DiagnosticList *diagnostics;
    size_t errors_max;   // diagnostics->error_count never passes it
    VECTOR(size_t) open; // tokens of the brackets around the cursor, outermost first
    Context context;
    size_t statement_start; // the token that the current statement began with
    bool stopped;           // after an error that makes all others meaningless
} Parser;

// An array in the arena that doubles when its count reaches a power of two; nothing to free.
#define LIST_PUSH(parser, items, count, item)                                                      \
    do {                                                                                           \
        (items) = parser_grow(parser, items, count, sizeof *(items));                              \
        (items)[(count)++] = (item);                                                               \
    } while (0)
void *parser_grow(Parser *parser, void *items, size_t count, size_t item_bytes);

// The cursor (cursor.c).
static inline const Token *parser_peek(const Parser *parser) {
    return &parser->tokens.items[parser->at];
}
const Token *parser_ahead(const Parser *parser, size_t count); // stays on the END token
static inline bool parser_is(const Parser *parser, TokenKind kind) {
    return parser_peek(parser)->kind == kind;
}
const Token *parser_next(Parser *parser);
bool parser_accept(Parser *parser, TokenKind kind);
// Whether the token at the cursor begins a line that newlines separate from what stands before.
bool parser_at_new_line(const Parser *parser);
// Whether a comment follows the last token, and whether it reads as the rest of a division: `7 //
// 2`, `x //= 2`.
bool parser_at_comment(const Parser *parser);
bool parser_at_division(const Parser *parser);
extern const char parser_division_help[], parser_fields_help[];
bool parser_at_statement_end(const Parser *parser);
bool token_begins_statement(const Token *token);           // a keyword that only stands at a start
bool parser_is_name(const Token *token, const char *word); // a name spelt so, not a reserved word
SourcePos parser_begin(const Parser *parser);              // of the token at the cursor
SourcePos parser_skip(Parser *parser);                     // the same, behind which the cursor goes
SourcePos parser_end(const Parser *parser);                // of the token before it
Word parser_word(Parser *parser, const Token *token);
Word parser_string_word(const Token *token); // what a string token says
// A name at the cursor; `what` completes "expected ...".
bool parser_take_name(Parser *parser, const char *what, Word *out);
bool parser_at_learnable(const Parser *parser); // behind a type
bool parser_take_learnable(Parser *parser);
// Any word, reserved or not: after `.` and `::` and before `:`.
bool parser_take_word(Parser *parser, const char *what, Word *out);

// Brackets. open_bracket takes the opener and sets the context for its inside; close_bracket wants
// the closer ("expected `)` to close the call opened here") and restores the context.
Context parser_open_bracket(Parser *parser);
bool parser_close_bracket(Parser *parser, const Context *outer, const char *what);
bool parser_at_closer(const Parser *parser);
bool parser_enter(Parser *parser); // one level deeper; false and an error beyond NESTING_MAX
void parser_leave(Parser *parser);

// Reporting (report.c). FAIL(parser, .span = ..., .message = ...) reports and is NULL.
#define FAIL(parser, ...) parser_fail(parser, &(Diagnostic){__VA_ARGS__})
void *parser_fail(Parser *parser, const Diagnostic *diagnostic);
const char *parser_say(Parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);
// "expected <what>, found <the token at the cursor>".
void *parser_fail_expected(Parser *parser, const char *what);
void *parser_fail_expected_help(Parser *parser, const char *what, const char *help);
// What is written here for the word or operator of another language at the cursor or before it;
// NULL: it is not known.
const char *parser_foreign_help(const Parser *parser);
// Where t = A[i] B[i] goes on, what it should have been; else NULL.
const char *parser_factor_help(const Parser *parser);
void *parser_stop(Parser *parser, Span span, const char *message);
// How a token is named in a message.
const char *parser_describe(Parser *parser, const Token *token);
// What a word that is not a keyword here was probably meant to be; NULL when nothing is close, or
// it is not exactly that where `exact` is asked.
const char *keyword_suggest(const char *word, size_t length, bool exact);

// Nodes. The span of a new node reaches from `begin` to the last token read.
Node *node_new(Parser *parser, NodeKind kind, SourcePos begin);
Node *node_finish(const Parser *parser, Node *node); // the node, which ends before the cursor
// Makes child's height count in parent's. False (after an error) when the tree grows too high.
bool node_adopt(Parser *parser, Node *parent, const Node *child);

Node *parse_expression(Parser *parser);            // expression.c
Node *parse_head(Parser *parser);                  // an expression before the `{` of a body
Node *parse_number(Parser *parser, bool negative); // primary.c: a literal
Node *parse_primary(Parser *parser);
Node *parse_postfix(Parser *parser, Node *left, SourcePos begin); // postfix.c
Node *parse_call(Parser *parser, Node *callee, SourcePos begin);  // the cursor is at `(`
Node *parse_list(Parser *parser);                                 // collection.c
Node *parse_paren(Parser *parser);
Node *parse_dictionary(Parser *parser);
bool parser_at_dictionary(const Parser *parser);     // `{` begins one, not a block
Node *parse_block(Parser *parser, const char *what); // statement.c
Node *parse_statement(Parser *parser);
Node *parse_arm_body(Parser *parser);
Node *parse_top_level(Parser *parser);
Node *parse_if(Parser *parser); // control.c
Node *parse_try(Parser *parser);
Node *parse_while(Parser *parser);
Node *parse_loop(Parser *parser);
Node *parse_for(Parser *parser);
Node *parse_with(Parser *parser);
Node *parse_learn(Parser *parser);
Node *parse_match(Parser *parser);              // pattern.c
Pattern *parse_binding_pattern(Parser *parser); // let, for: names and tuples of them
// `x in` and `i, x in`; *index: the first of two names, or NULL.
Pattern *parse_loop_names(Parser *parser, Pattern **index);
// Behind module.Name: type arguments, `::function` or the brace of a struct literal.
bool parser_at_qualified(const Parser *parser); // primary.c
Node *parse_qualified(Parser *parser, Node *module, const Word *name);
Node *parse_lambda(Parser *parser); // declaration.c
Node *parse_declaration(Parser *parser, bool *found);
// logic.c: declarations, rules and statements of logic programs; *found: one begins here.
Node *parse_logic(Parser *parser, bool *found);
bool parser_at_ask(const Parser *parser, const Node *left);
Node *parse_ask(Parser *parser, Node *value, SourcePos begin);            // Y[2, :]?
Node *parse_weighed_query(Parser *parser, Node *method, SourcePos begin); // P.R(a, X)?
Node *parse_query(Parser *parser, Node *call, SourcePos begin); // behind a call: `?` and `where`
bool parser_at_program(const Parser *parser);                   // program.c
Node *parse_program_block(Parser *parser);
bool parser_at_inference(const Parser *parser); // infer forward R(..)?, why R(..)?
Node *parse_inference(Parser *parser);
bool parser_at_embedding(const Parser *parser); // embedding.c
Node *parse_embedding(Parser *parser);
// equation.c: what is written only in tensor equations.
bool parser_at_equation(const Parser *parser, const Node *left); // `<-`, max=, min=, avg= behind it
Node *parse_equation(Parser *parser, Node *left, SourcePos begin);
Node *parse_side(Parser *parser, const Node *target); // right of `=`
bool parser_at_factor(const Parser *parser);          // of a product written side by side
// `(` behind `left` begins a factor, not the arguments of a call.
bool parser_at_group(const Parser *parser, const Node *left);
bool parser_at_dot(const Parser *parser); // the `.` of x[q.]
bool parser_take_primed(Parser *parser, const Token *token);
bool parser_at_module(const Parser *parser);
Node *parse_module(Parser *parser); // type.c: takes `module.` before a name, or is NULL
TypeNode *parse_type(Parser *parser);
TypeNode *parse_cast_type(Parser *parser); // without type arguments: `x as int < y` compares
bool parse_type_arguments(Parser *parser, TypeNode ***types, size_t *count);
bool parser_at_type_arguments(const Parser *parser); // `<types>` and then `{` or `::`

#endif
