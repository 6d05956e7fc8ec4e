// The registry of source texts: from a SourcePos to file, line and column. Texts stay for the life
// of the runtime (or until source_reset), because origins and errors refer to them.
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/origin.h"
#include "base/status.h"
#include "base/text.h"

typedef struct SourceFile {
    char *name;      // as given by the user: "model.tl", "<stdin>", "<command>", "<repl:3>"
    char *text;      // owned, NUL-terminated, `length` bytes; may hold NULs before the end
    uint32_t length; // bytes
    SourcePos base;  // position of text[0]; text[i] is base + i; base + length is end of file
} SourceFile;

typedef struct SourcePlace {
    const SourceFile *file; // NULL when the position is 0 or unknown
    int line, column;       // from 1; columns count code points
    const char *line_text;  // start of the line, not NUL-terminated
    int line_length;        // bytes, without the newline
} SourcePlace;

typedef struct Sources Sources; // of a runtime
Sources *sources_new(void);
void sources_free(Sources *sources);

// Copies text. STATUS_VALUE when the position space (4 GiB in all) is full.
Status source_add(const char *name, const char *text, size_t length,
                  const SourceFile **out) MUST_USE;
// Reads a whole file ("-" is standard input). STATUS_IO with the reason when it cannot.
Status source_load(const char *path, const SourceFile **out) MUST_USE;
SourcePlace source_find(SourcePos position);
// The text of a span, borrowed, not NUL-terminated; length through out.
const char *source_text(Span span, size_t *length);
bool source_same_text(Span a, Span b);
// The `//` lines directly above the line of a place, without the slashes.
void source_append_comment(SourcePos at, Text *out);
// The expression that starts at a place, as far as it goes on its line, cut when it is long.
void source_append_expression(Text *out, SourcePos position);
// Frees every text; positions are invalid afterwards.
void source_reset(void);

#endif
