// Fuzzes the formatter: what can be read can be formatted, into the same program, and formatting
// the result changes nothing.
#include <stdlib.h>
#include <string.h>

#include "fmt/fmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

// NULL when the text has syntax errors.
static char *format_text(const char *text, size_t *length) {
    const SourceFile *file;
    if (source_add("input.tl", text, *length, &file) != STATUS_OK) return NULL;
    DiagnosticList diagnostics = {0};
    Text out = {0};
    bool formatted = format_source(file, &out, &diagnostics);
    for (size_t i = 0; i < diagnostics.count; i++) // a warning has no kind
        if (diagnostics.items[i].kind &&
            strcmp(diagnostics.items[i].kind, status_word(STATUS_FORMAT)) == 0)
            abort();
    diagnostic_list_free(&diagnostics);
    source_reset();
    *length = out.length;
    if (formatted) return text_take(&out);
    text_free(&out);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    char *once = format_text((const char *)bytes, &length);
    if (!once) return 0;
    size_t again_length = length;
    char *again = format_text(once, &again_length);
    if (!again || again_length != length || memcmp(once, again, length) != 0) abort();
    free(once);
    free(again);
    return 0;
}
