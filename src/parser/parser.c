// From a source text to its syntax tree; the rest of the folder holds the grammar.
#include "parser/parser.h"

#include <stdlib.h>

#include "parser/state.h"

static int compare_places(const void *a, const void *b) {
    const Diagnostic *left = a, *right = b;
    return (left->span.begin > right->span.begin) - (left->span.begin < right->span.begin);
}

Program *parse_program(const SourceFile *file, DiagnosticList *diagnostics) {
    ASSERT(file->base > 0);
    Program *program = memory_allocate_zeroed(1, sizeof *program);
    program->file = file;
    size_t before = diagnostics->count;
    Parser parser = {.arena = &program->arena,
                     .file = file,
                     .diagnostics = diagnostics,
                     .errors_max = diagnostics->error_count + SYNTAX_ERRORS_MAX};
    parser.tokens = lexer_read(file, &program->arena, diagnostics, parser.errors_max);
    program->top = parse_top_level(&parser);
    VECTOR_FREE(&parser.tokens);
    VECTOR_FREE(&parser.open);
    // The lexer has reported before the parser: put both in the order of the text.
    if (diagnostics->count > before)
        qsort(diagnostics->items + before, diagnostics->count - before, sizeof(Diagnostic),
              compare_places);
    return program;
}

void program_free(Program *program) {
    if (!program) return;
    for (size_t i = 0; i < program->imported.count; i++) program_free(program->imported.items[i]);
    arena_free(&program->arena);
    free(program);
}

// A token that cannot end a statement: the line after it goes on.
static bool token_wants_more(TokenKind kind) {
    switch (kind) {
    case TOKEN_ELSE:
    case TOKEN_IN:
    case TOKEN_AND:
    case TOKEN_OR:
    case TOKEN_NOT:
    case TOKEN_AS: return true;
    case TOKEN_RIGHT_PAREN:
    case TOKEN_RIGHT_BRACKET:
    case TOKEN_RIGHT_BRACE:
    case TOKEN_SEMICOLON:
    case TOKEN_QUESTION: return false;
    default: return kind >= TOKEN_ELLIPSIS; // the other symbols
    }
}

bool parse_is_incomplete(const char *text, size_t length) {
    ASSERT(length < UINT32_MAX);
    SourceFile file = {.name = "", .text = (char *)text, .length = (uint32_t)length, .base = 1};
    Arena arena = {0};
    DiagnosticList ignored = {0};
    TokenList tokens = lexer_read(&file, &arena, &ignored, 0);
    bool incomplete = tokens.ends_open ||
                      (tokens.count > 1 && token_wants_more(tokens.items[tokens.count - 2].kind));
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    return incomplete;
}
