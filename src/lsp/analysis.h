// What the server knows of one text: its tree, its diagnostics, and every place where a name
// stands. There is one analysis at a time: making one forgets the source texts of the one before.
#ifndef LSP_ANALYSIS_H
#define LSP_ANALYSIS_H

#include "check/check.h"
#include "parser/parser.h"

// A name in the text. What has no binding is a field or method, or unknown.
typedef struct Occurrence {
    Span span;
    Binding *binding;
    bool member;
} Occurrence;

// A field or method as a struct or impl declares it.
typedef struct Member {
    const Word *name;
    const Word *owner;
    const FunctionNode *method; // NULL: a field
    const TypeNode *type;       // of a field
} Member;

typedef struct Analysis {
    const SourceFile *file;
    Program *program;
    DiagnosticList diagnostics;
    VECTOR(Occurrence) occurrences; // in the order of the texts
    VECTOR(Member) members;
} Analysis;

// Reads a text under a file's name, so that its imports are found. NULL when no text fits any more.
Analysis *analysis_new(const char *path, const char *text, size_t length);
// The same without forgetting the texts that are known.
Analysis *analysis_new_beside(const char *path, const char *text, size_t length);
void analysis_free(Analysis *analysis);
// The name that stands at a byte of the text or ends there; NULL when there is none.
const Occurrence *analysis_at(const Analysis *analysis, size_t offset);
static inline bool analysis_has(const Analysis *analysis, SourcePos position) {
    return position >= analysis->file->base &&
           position - analysis->file->base <= analysis->file->length;
}

#endif
