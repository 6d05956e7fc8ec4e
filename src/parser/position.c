// From the tokens before a place to what may stand there.
#include "parser/position.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const TokenList *tokens;
    const char *text;
} Reader;

static bool is_word_byte(char c) {
    return c == '_' || (c & 0x80) || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

// The token `back` places before the end; the END token itself where there are not so many.
static const Token *before(const TokenList *tokens, size_t back) {
    size_t last = tokens->count - 1;
    return &tokens->items[back <= last ? last - back : last];
}

static size_t offset_of(SourcePos position) {
    return position - 1; // the text's base is 1
}

static bool is_spelt(const Reader *reader, const Token *token, const char *word) {
    ASSERT(token->span.begin <= token->span.end);
    size_t length = token->span.end - token->span.begin;
    return token->kind == TOKEN_NAME && strlen(word) == length &&
           memcmp(reader->text + offset_of(token->span.begin), word, length) == 0;
}

static bool ends_expression(const Token *token) {
    switch (token->kind) {
    case TOKEN_NAME:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_STRING:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NONE:
    case TOKEN_RIGHT_PAREN:
    case TOKEN_RIGHT_BRACKET:
    case TOKEN_RIGHT_BRACE: return true;
    case TOKEN_FORMAT_STRING:
    case TOKEN_FORMAT_TEXT: return token->last;
    default: return false;
    }
}

// --- the brackets around the place

typedef struct Open {
    uint8_t bracket; // TokenKind
    uint8_t head;    // of a brace: the keyword whose body it begins, or TOKEN_END
    uint8_t outer;   // the keyword that waits for its body outside
    bool parameters; // the parenthesis behind `fn` and a name
} Open;
typedef struct OpenList {
    Open *items;
    size_t count, capacity;
    uint8_t closed; // the head of the brace that was closed last
} OpenList;

static void read_open(const Reader *reader, OpenList *open) {
    const TokenList *tokens = reader->tokens;
    uint8_t head = TOKEN_END;
    for (size_t i = 0; i + 1 < tokens->count; i++) {
        const Token *token = &tokens->items[i];
        switch (token->kind) {
        case TOKEN_FOR:
        case TOKEN_WHILE:
        case TOKEN_LOOP:
        case TOKEN_IF:
        case TOKEN_ELSE:
        case TOKEN_TRY:
        case TOKEN_CATCH:
        case TOKEN_MATCH:
        case TOKEN_FN: head = token->kind; break;
        case TOKEN_LEFT_PAREN:
        case TOKEN_LEFT_BRACKET:
        case TOKEN_LEFT_BRACE: {
            bool named = i > 0 && token[-1].kind == TOKEN_NAME;
            bool parameters = i > named && token[-1 - named].kind == TOKEN_FN;
            VECTOR_PUSH(open, ((Open){token->kind, head, head, parameters}));
            head = TOKEN_END;
            break;
        }
        case TOKEN_RIGHT_PAREN:
        case TOKEN_RIGHT_BRACKET:
        case TOKEN_RIGHT_BRACE:
            if (open->count == 0) break;
            open->count--;
            open->closed = open->items[open->count].head;
            head = token->kind == TOKEN_RIGHT_BRACE ? TOKEN_END : open->items[open->count].outer;
            break;
        default: break;
        }
    }
}

static void note_blocks(const OpenList *open, Position *out) {
    for (size_t i = 0; i < open->count; i++) {
        const Open *one = &open->items[i];
        if (one->bracket != TOKEN_LEFT_BRACE) continue;
        bool function = one->head == TOKEN_FN;
        bool loop = one->head == TOKEN_FOR || one->head == TOKEN_WHILE || one->head == TOKEN_LOOP;
        out->in_block = true;
        out->in_loop = loop || (out->in_loop && !function);
        out->in_function |= function;
    }
}

// --- what stands directly before

// Names joined by dots that end at the token `back` places before the end.
static void find_receiver(const Reader *reader, size_t back, Position *out) {
    const Token *token = before(reader->tokens, back);
    if (token->kind != TOKEN_NAME) return;
    out->receiver_end = offset_of(token->span.end);
    while (before(reader->tokens, back + 1)->kind == TOKEN_DOT &&
           token_is_word(before(reader->tokens, back + 2)))
        back += 2;
    const Token *first = before(reader->tokens, back);
    bool whole = first->kind == TOKEN_NAME && before(reader->tokens, back + 1)->kind != TOKEN_DOT;
    out->receiver = offset_of(first->span.begin);
    if (!whole) out->receiver = out->receiver_end = 0;
}

// `let x:`, `tensor x:` and parameters are followed by a type.
static bool colon_means_type(const Reader *reader, const OpenList *open) {
    const Token *introducer = before(reader->tokens, 3);
    if (introducer->kind == TOKEN_LET || is_spelt(reader, introducer, "tensor")) return true;
    return open->count > 0 && open->items[open->count - 1].parameters;
}

static bool makes_name(const Reader *reader, const OpenList *open) {
    static const char *const words[] = {"struct", "test", "bench", "tensor"};
    const Token *last = before(reader->tokens, 1);
    if (last->kind == TOKEN_FN || last->kind == TOKEN_LET || last->kind == TOKEN_FOR) return true;
    if (open->count > 0 && open->items[open->count - 1].parameters)
        return last->kind == TOKEN_LEFT_PAREN || last->kind == TOKEN_COMMA;
    const Token *earlier = before(reader->tokens, 2);
    bool first = earlier->kind == TOKEN_END || last->newline_before;
    for (size_t i = 0; first && i < sizeof words / sizeof *words; i++)
        if (is_spelt(reader, last, words[i])) return true;
    return false;
}

static PositionKind kind_behind(const Reader *reader, const OpenList *open, bool new_line) {
    const Token *last = before(reader->tokens, 1);
    bool in_brackets = open->count > 0 && open->items[open->count - 1].bracket != TOKEN_LEFT_BRACE;
    if (last->kind == TOKEN_DOT) return POSITION_MEMBER;
    if (last->kind == TOKEN_COLON_COLON) return POSITION_PATH;
    if (last->kind == TOKEN_END || last->kind == TOKEN_SEMICOLON || last->kind == TOKEN_LEFT_BRACE)
        return POSITION_STATEMENT;
    if (ends_expression(last) && new_line && !in_brackets) return POSITION_STATEMENT;
    if (makes_name(reader, open)) return POSITION_NONE;
    if (ends_expression(last))
        return is_spelt(reader, last, "impl") ? POSITION_TYPE : POSITION_OPERATOR;
    if (last->kind == TOKEN_AS || last->kind == TOKEN_ARROW) return POSITION_TYPE;
    if (last->kind == TOKEN_COLON && colon_means_type(reader, open)) return POSITION_TYPE;
    return POSITION_OPERAND;
}

// Whether a comment that stands behind the last token goes on to the place.
static bool in_comment(const char *text, size_t begin, size_t end) {
    int depth = 0;
    for (size_t i = begin; i + 1 < end; i++) {
        if (depth == 0 && text[i] == '/' && text[i + 1] == '/') {
            const char *newline = memchr(text + i, '\n', end - i);
            if (!newline) return true;
            i = (size_t)(newline - text);
        } else if (text[i] == '/' && text[i + 1] == '*') {
            depth++, i++;
        } else if (depth > 0 && text[i] == '*' && text[i + 1] == '/') {
            depth--, i++;
        }
    }
    return depth > 0;
}

Position position_find(const char *text, size_t at) {
    Position position = {.word = at, .word_end = at};
    while (is_word_byte(text[position.word_end])) position.word_end++;
    while (position.word > 0 && is_word_byte(text[position.word - 1])) position.word--;
    if (position.word < at && text[position.word] >= '0' && text[position.word] <= '9')
        return position;
    SourceFile file = {
        .name = "", .text = (char *)text, .length = (uint32_t)position.word, .base = 1};
    Arena arena = {0};
    DiagnosticList ignored = {0};
    TokenList tokens = lexer_read(&file, &arena, &ignored, 0);
    SCOPED_MEMORY OpenList open = {0};
    Reader reader = {&tokens, text};
    const Token *last = before(&tokens, 1);
    read_open(&reader, &open);
    note_blocks(&open, &position);
    size_t gap = last->kind == TOKEN_END ? 0 : offset_of(last->span.end);
    bool new_line = memchr(text + gap, '\n', position.word - gap) != NULL;
    if (last->kind != TOKEN_ERROR && !in_comment(text, gap, position.word))
        position.kind = kind_behind(&reader, &open, new_line);
    if (last->kind == TOKEN_RIGHT_BRACE) position.closed = open.closed;
    bool member = position.kind == POSITION_MEMBER || position.kind == POSITION_PATH;
    if (member) find_receiver(&reader, 2, &position);
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    return position;
}

void position_append_closers(const char *text, size_t at, Text *out) {
    SourceFile file = {.name = "", .text = (char *)text, .length = (uint32_t)at, .base = 1};
    Arena arena = {0};
    DiagnosticList ignored = {0};
    TokenList tokens = lexer_read(&file, &arena, &ignored, 0);
    SCOPED_MEMORY OpenList open = {0};
    read_open(&(Reader){&tokens, text}, &open);
    while (open.count > 0) { // tokens.def lists brackets in pairs
        TokenKind closer = (TokenKind)(open.items[--open.count].bracket + 1);
        text_format(out, " %s", token_spelling(closer));
    }
    VECTOR_FREE(&tokens);
    arena_free(&arena);
}

bool position_allows_keyword(const Position *position, TokenKind keyword) {
    bool statement = position->kind == POSITION_STATEMENT;
    switch (keyword) {
    case TOKEN_LET:
    case TOKEN_FOR:
    case TOKEN_WHILE:
    case TOKEN_LOOP: return statement;
    case TOKEN_BREAK:
    case TOKEN_CONTINUE: return statement && position->in_loop;
    case TOKEN_RETURN: return statement && position->in_function;
    case TOKEN_ELSE: return position->closed == TOKEN_IF;
    case TOKEN_CATCH: return position->closed == TOKEN_TRY;
    case TOKEN_AND:
    case TOKEN_OR:
    case TOKEN_IN:
    case TOKEN_AS: return position->kind == POSITION_OPERATOR;
    case TOKEN_NOT:
        return statement || position->kind == POSITION_OPERAND ||
               position->kind == POSITION_OPERATOR;
    default: return statement || position->kind == POSITION_OPERAND; // fn if match try true ...
    }
}

bool position_allows_word(const Position *position, const LanguageWord *word) {
    switch (word->group) {
    case WORD_DECLARATION: return position->kind == POSITION_STATEMENT && !position->in_block;
    case WORD_STATEMENT: return position->kind == POSITION_STATEMENT;
    default: return false; // `learnable`, `of`, `self`: inside forms that tokens do not tell
    }
}
