// Syntax errors: their words, and what a misspelt keyword was meant to be.
#include <stdlib.h>
#include <string.h>

#include "catalog/foreign.h"
#include "parser/state.h"

void *parser_fail(Parser *parser, const Diagnostic *diagnostic) {
    bool known = parser_is(parser, TOKEN_ERROR); // the lexer has said what is wrong here
    ASSERT(parser->diagnostics->error_count <= parser->errors_max);
    bool enough = parser->diagnostics->error_count >= parser->errors_max;
    if (parser->stopped || known || enough) return NULL;
    Diagnostic reported = *diagnostic;
    reported.severity = SEVERITY_ERROR;
    reported.kind = status_word(STATUS_SYNTAX);
    diagnostic_list_add(parser->diagnostics, &reported);
    // Nothing follows the end of the file: what the constructs around miss there is the same
    // mistake.
    if (parser_is(parser, TOKEN_END)) parser->stopped = true;
    return NULL;
}

void *parser_stop(Parser *parser, Span span, const char *message) {
    FAIL(parser, .span = span, .message = message);
    ASSERT(parser->tokens.items[parser->tokens.count - 1].kind == TOKEN_END);
    parser->stopped = true;
    parser->at = parser->tokens.count - 1;
    return NULL;
}

const char *parser_say(Parser *parser, const char *format, ...) {
    SCOPED_TEXT(text);
    va_list arguments;
    va_start(arguments, format);
    text_format_v(&text, format, arguments);
    va_end(arguments);
    return arena_copy_string(parser->arena, text_get(&text), text.length);
}

const char *parser_describe(Parser *parser, const Token *token) {
    enum { SHOWN_MAX = 40 };
    ASSERT(token->span.begin <= token->span.end);
    size_t length = token->span.end - token->span.begin;
    if (token->kind == TOKEN_END) return "the end of the file";
    if (token->kind == TOKEN_STRING || token->kind == TOKEN_FORMAT_STRING) return "a string";
    if (token->kind == TOKEN_FORMAT_TEXT || token->kind == TOKEN_FORMAT_SPEC)
        return "the end of the placeholder";
    const char *text = parser->file->text + (token->span.begin - parser->file->base);
    if (length <= SHOWN_MAX) return parser_say(parser, "`%.*s`", (int)length, text);
    length = SHOWN_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u) length--;
    return parser_say(parser, "`%.*s...`", (int)length, text);
}

void *parser_fail_expected(Parser *parser, const char *what) {
    return parser_fail_expected_help(parser, what, NULL);
}

void *parser_fail_expected_help(Parser *parser, const char *what, const char *help) {
    const Token *token = parser_peek(parser);
    const char *found = parser_describe(parser, token);
    Span span = token->span;
    if (token->kind == TOKEN_END || parser_at_new_line(parser)) {
        // Something is missing behind the last token, not in front of whatever comes next.
        if (token->kind != TOKEN_END) found = "the end of the line";
        span = (Span){parser_end(parser), parser_end(parser)};
    }
    return FAIL(parser, .span = span,
                .message = parser_say(parser, "expected %s, found %s", what, found),
                .help = help ? help : parser_foreign_help(parser));
}

static const char *word_help(ForeignPlace place, const Token *token) {
    if (token->kind != TOKEN_NAME) return NULL;
    size_t length;
    const char *word = source_text(token->span, &length);
    return foreign_help(place, word, length);
}

// Of `name(...)`, whose `)` stands before the cursor: the name, else that bracket.
static const Token *called_word(const Parser *parser) {
    const Token *items = parser->tokens.items;
    size_t at = parser->at - 1, depth = 0;
    ASSERT(items[at].kind == TOKEN_RIGHT_PAREN);
    for (size_t i = at; i > 0; i--) {
        depth += items[i].kind == TOKEN_RIGHT_PAREN;
        if (items[i].kind == TOKEN_LEFT_PAREN && --depth == 0) return &items[i - 1];
    }
    return &items[at];
}

// Operators of other languages, which are two tokens here.
static const char *symbols_help(const Parser *parser, const Token *before) {
    const Token *token = parser_peek(parser), *after = parser_ahead(parser, 1);
    bool equal = before->kind == TOKEN_EQUAL_EQUAL || before->kind == TOKEN_NOT_EQUAL;
    bool none = after->kind == TOKEN_QUESTION || after->kind == TOKEN_DOT;
    switch (token->kind) {
    case TOKEN_EQUAL: return equal && !token->space_before ? "`==` and `!=` compare values" : NULL;
    case TOKEN_COLON:
        if (after->kind == TOKEN_MINUS && !after->space_before)
            return "a rule is written with `<-`";
        return before->kind == TOKEN_FLOAT ? "`::` stands between a weight and its fact" : NULL;
    case TOKEN_TILDE:
        return after->kind == TOKEN_EQUAL || after->kind == TOKEN_EQUAL_EQUAL
                   ? "`!=` says that two differ"
                   : NULL;
    case TOKEN_BANG:
        return before->kind == TOKEN_NAME && !token->space_before
                   ? "macros are not supported: a call is written name(...)"
                   : NULL;
    case TOKEN_QUESTION:
        return none ? "what stands in for none is written if x == none { y } else { x }"
                    : "a choice is written if c { a } else { b }";
    default: return NULL;
    }
}

const char *parser_foreign_help(const Parser *parser) {
    const Token *token = parser_peek(parser);
    if (parser->at == 0 || token->newline_before) return NULL;
    const Token *before = &parser->tokens.items[parser->at - 1];
    if (token->kind == TOKEN_LEFT_BRACE && before->kind == TOKEN_RIGHT_PAREN)
        before = called_word(parser);
    bool begins = parser->at - 1 == parser->statement_start;
    const char *help = word_help(FOREIGN_BEFORE, before);
    if (!help && begins) help = word_help(FOREIGN_START, before);
    if (!help) help = word_help(FOREIGN_BEHIND, token);
    return help ? help : symbols_help(parser, before);
}

// Words of other languages, and tl's own, with what to write.
static const struct {
    const char *word, *meant;
} meanings[] = {
    {"fn", "fn"},          {"function", "fn"},       {"func", "fn"},
    {"def", "fn"},         {"let", "let"},           {"var", "let"},
    {"const", "let"},      {"val", "let"},           {"if", "if"},
    {"else", "else"},      {"elif", "else if"},      {"elsif", "else if"},
    {"elseif", "else if"}, {"for", "for"},           {"foreach", "for"},
    {"while", "while"},    {"until", "while"},       {"loop", "loop"},
    {"break", "break"},    {"continue", "continue"}, {"return", "return"},
    {"match", "match"},    {"switch", "match"},      {"case", "match"},
    {"try", "try"},        {"catch", "catch"},       {"except", "catch"},
    {"struct", "struct"},  {"class", "struct"},      {"impl", "impl"},
    {"import", "import"},  {"include", "import"},    {"use", "import"},
    {"tensor", "tensor"},  {"learn", "learn"},       {"test", "test"},
    {"bench", "bench"},    {"throw", "error(...)"},  {"raise", "error(...)"},
    {"mut", "let"},        {"with", "with"},
};

// Changes (insert, delete, replace, swap of neighbours) between two short words; more than `most`
// counts as most + 1.
static int distance(const char *a, size_t a_length, const char *b, int most) {
    enum { WORD_MAX = 16 };
    size_t b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX) return most + 1;
    int rows[WORD_MAX + 1][WORD_MAX + 1];
    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = (int)(i + j);
                continue;
            }
            int best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (rows[i - 1][j] + 1 < best) best = rows[i - 1][j] + 1;
            if (rows[i][j - 1] + 1 < best) best = rows[i][j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && rows[i - 2][j - 2] + 1 < best) best = rows[i - 2][j - 2] + 1;
            rows[i][j] = best;
        }
    }
    return rows[a_length][b_length];
}

const char *keyword_suggest(const char *word, size_t length, bool exact) {
    ASSERT(word != NULL || length == 0);
    int most = length <= 3 ? 1 : 2; // in a short word two changes make any other
    if (length <= 2 || exact) most = 0;
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        int changes = distance(word, length, meanings[i].word, most);
        if (changes > most) continue;
        meant = meanings[i].meant;
        most = changes - 1;
    }
    return meant;
}
