// Libraries that are loaded at their first use, because loading them takes longer than a short
// program or because few programs need them. Knows names and addresses, not what they are for.
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

typedef struct Library {
    const char *file;         // "libopenblas.so.0"
    const char *purpose;      // for the error: "decompositions of matrices"
    const char *package;      // of Debian
    bool global;              // its names serve libraries that are loaded after it
    const char *const *names; // of the functions that are wanted
    size_t name_count;
    void *functions; // a struct of pointers to them, in the same order
    atomic_bool tried;
    char problem[200]; // "" when it is loaded
} Library;

// What a list of F(prefix, name) is made into: fields of the struct of pointers, whose names go
// without the prefix, and initialisers of the library that fills it.
#define LIBRARY_FIELD(prefix, name) __typeof__(prefix##name) *name;
#define LIBRARY_NAME(prefix, name) #prefix #name,
#define LIBRARY_NAMES(LIST) ((const char *const[]){LIST(LIBRARY_NAME)})
#define LIBRARY_FILLS(struct_, LIST)                                                               \
    .names = LIBRARY_NAMES(LIST), .functions = &(struct_),                                         \
    .name_count = sizeof LIBRARY_NAMES(LIST) / sizeof(char *)

// The library of a file, and its struct of pointers. What follows are fields of the library.
#define LIBRARY(struct_, LIST, ...)                                                                \
    static struct { LIST(LIBRARY_FIELD) } struct_;                                                 \
    static Library library = {LIBRARY_FILLS(struct_, LIST), __VA_ARGS__}

// Loads the library unless that was tried before, and fills the struct of functions. STATUS_DEVICE
// says what needs which library, why it cannot be loaded, and the package that has it. Thread-safe.
Status library_load(Library *library) MUST_USE;

#endif
