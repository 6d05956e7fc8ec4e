// The formatter: one way to indent and to space a program. Lines stay where the author broke them,
// comments stay where they are, and the program stays the same program: the result is read again
// and compared, tree and tokens, before anybody gets it.
#ifndef FMT_FMT_H
#define FMT_FMT_H

#include "base/diagnostic.h"
#include "base/source.h"

// Appends the formatted text. False when the text has syntax errors, which diagnostics then hold,
// or when the result would not be the same program; nothing is appended then.
bool format_source(const SourceFile *file, Text *out, DiagnosticList *diagnostics);
// Whether two texts have the same tokens in the same lines and the same tree.
bool format_same_program(const SourceFile *left, const SourceFile *right);

#endif
