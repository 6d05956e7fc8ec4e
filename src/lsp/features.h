// What the server can be asked about a text, one function a question. Each takes the text's
// analysis and the byte that the question is about, and returns the protocol's result, or NULL for
// none.
#ifndef LSP_FEATURES_H
#define LSP_FEATURES_H

#include <jansson.h>

#include "lsp/analysis.h"

json_t *feature_diagnostics(const Analysis *analysis);
json_t *feature_hover(const Analysis *analysis, size_t offset);
json_t *feature_completion(const Analysis *analysis, size_t offset);
json_t *feature_signature_help(const Analysis *analysis, size_t offset);
json_t *feature_definition(const Analysis *analysis, size_t offset);
json_t *feature_references(const Analysis *analysis, size_t offset, bool with_declaration);
json_t *feature_highlights(const Analysis *analysis, size_t offset);
json_t *feature_symbols(const Analysis *analysis);
json_t *feature_formatting(const Analysis *analysis);
// The place that a rename at the byte would change. NULL, with the reason recorded by fail(), when
// nothing there can be renamed.
json_t *feature_prepare_rename(const Analysis *analysis, size_t offset);
json_t *feature_rename(const Analysis *analysis, size_t offset, const char *name, const char *uri);

// The head of a function as written: "fn f(a: int) -> int".
void feature_append_head(Text *out, const FunctionNode *function);

// How many rows a relation has by what the text says, and how they would be kept (relations.c).
void feature_append_rows(Text *out, const Analysis *analysis, const Binding *binding);
// Where the sums of the equation stand that a place is in (sums.c); the equation's span.
Span feature_append_sums(Text *out, const Analysis *analysis, size_t offset);

#endif
