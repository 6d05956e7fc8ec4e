// Prints the tokens of files as the lexer reads them, for what must agree with it (the grammar of
// editors): a line `file PATH, whole` (or `broken`: it has errors or ends inside a bracket) each,
// then `KIND BEGIN END` a token, in bytes. What is between tokens is white space and comments.
#include <stdio.h>
#include <stdlib.h>

#include "lexer/lexer.h"

static const char *kind_name(TokenKind kind) {
    switch (kind) {
    case TOKEN_NAME: return "name";
    case TOKEN_INT:
    case TOKEN_FLOAT: return "number";
    case TOKEN_STRING:
    case TOKEN_FORMAT_STRING:
    case TOKEN_FORMAT_TEXT: return "string";
    case TOKEN_FORMAT_SPEC: return "spec";
    case TOKEN_ERROR: return "error";
    default: return kind >= TOKEN_FN && kind <= TOKEN_AS ? "keyword" : "symbol";
    }
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        const SourceFile *file;
        if (source_load(paths[i], &file) != STATUS_OK) return EXIT_FAILURE;
        Arena arena = {0};
        DiagnosticList diagnostics = {0};
        TokenList tokens = lexer_read(file, &arena, &diagnostics, 20);
        bool whole = diagnostics.error_count == 0 && !tokens.ends_open;
        printf("file %s, %s\n", paths[i], whole ? "whole" : "broken");
        for (size_t k = 0; k + 1 < tokens.count; k++) {
            Span span = tokens.items[k].span;
            printf("%s %u %u\n", kind_name((TokenKind)tokens.items[k].kind),
                   (unsigned)(span.begin - file->base), (unsigned)(span.end - file->base));
        }
        VECTOR_FREE(&tokens);
        arena_free(&arena);
        diagnostic_list_free(&diagnostics);
        source_reset();
    }
    return EXIT_SUCCESS;
}
