// What may be written at a place of a text, as its tokens tell: for completion, in the REPL and in
// editors. The text behind the place does not count, so that it may be one that is being written.
#ifndef PARSER_POSITION_H
#define PARSER_POSITION_H

#include "catalog/catalog.h"
#include "lexer/lexer.h"

typedef enum PositionKind {
    POSITION_NONE,      // a string, a comment, or a name that is being made up
    POSITION_STATEMENT, // a statement begins
    POSITION_OPERAND,   // an expression begins or goes on behind an operator
    POSITION_OPERATOR,  // behind a complete expression
    POSITION_TYPE,
    POSITION_MEMBER, // behind the dot of `receiver.`
    POSITION_PATH,   // behind `receiver::`
    POSITION_KIND_COUNT
} PositionKind;

typedef struct Position {
    PositionKind kind;
    size_t word, word_end; // the word around the place
    // MEMBER, PATH: where the names joined by dots begin and end that stand before; both 0 when
    // something else does.
    size_t receiver, receiver_end;
    bool in_loop, in_function, in_block; // of a STATEMENT
    uint8_t closed; // the keyword of the block whose `}` stands before, else TOKEN_END
} Position;

Position position_find(const char *text, size_t at); // a NUL ends the text
// What closes the brackets that are open at a place: " }" behind "fn f() {".
void position_append_closers(const char *text, size_t at, Text *out);
// Whether a keyword or word of the language may stand there.
bool position_allows_keyword(const Position *position, TokenKind keyword);
bool position_allows_word(const Position *position, const LanguageWord *word);

#endif
