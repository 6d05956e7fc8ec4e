// From source text to syntax tree: a Pratt parser for expressions, recursive descent for the rest.
// Recovers after an error at the next statement; nesting is limited (NESTING_MAX) with a clean
// error.
#ifndef PARSER_PARSER_H
#define PARSER_PARSER_H

#include "base/diagnostic.h"
#include "parser/ast.h"

// Long chains (`a + b + ...`, `x.f().g()...`, `else if`) are read in a loop, but their trees are as
// deep as they are long. TREE_HEIGHT_MAX bounds every path from the root to a leaf, so that later
// passes may recurse over the tree.
enum { SYNTAX_ERRORS_MAX = 20, NESTING_MAX = 1000, TREE_HEIGHT_MAX = 5000 };

// Always returns a program (with what could be read); diagnostics->error_count says whether it is
// whole. The caller frees it with program_free.
Program *parse_program(const SourceFile *file, DiagnosticList *diagnostics);
void program_free(Program *program);
// True when the text ends inside an open bracket, string or comment, or behind an operator: a REPL
// asks for more lines.
bool parse_is_incomplete(const char *text, size_t length);

#endif
