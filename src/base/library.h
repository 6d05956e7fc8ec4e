// Libraries that are loaded at their first use, because loading them takes longer than a short
// program or because few programs need them. Knows names and addresses, not what they are for.
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

typedef struct LibrarySymbol {
    const char *name;
    void *target; // the function pointer that receives the address
} LibrarySymbol;

typedef struct Library {
    const char *file;    // "libopenblas.so.0"
    const char *purpose; // for the error: "products of matrices"
    const char *package; // of Debian
    bool global;         // its names serve libraries that are loaded after it
    const LibrarySymbol *symbols;
    size_t symbol_count;
    atomic_bool tried;
    char problem[200]; // "" when it is loaded
} Library;

// Loads the library unless that was tried before, and fills the symbols' targets. STATUS_DEVICE
// says what needs which library, why it cannot be loaded, and the package that has it. Thread-safe.
Status library_load(Library *library) MUST_USE;

#endif
