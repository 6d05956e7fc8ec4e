// What stands before a dot: the file that a name means, or the type of a value.
#ifndef LSP_RECEIVER_H
#define LSP_RECEIVER_H

#include "lsp/analysis.h"

typedef struct Receiver {
    const Program *module; // not NULL: the name is that of an import
    char type[64];         // a struct's name or a word of check/types.h; "": not known
} Receiver;

// Of names joined by dots, `length` bytes, which stand at a byte of the analysed text.
Receiver receiver_find(const Analysis *analysis, size_t offset, const char *names, size_t length);

#endif
