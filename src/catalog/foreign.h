// What words of other languages are here (foreign.def).
#ifndef CATALOG_FOREIGN_H
#define CATALOG_FOREIGN_H

#include <stddef.h>

typedef enum ForeignPlace {
    FOREIGN_NAME,   // a name that nothing declares
    FOREIGN_MEMBER, // a method or field that a value does not have
    FOREIGN_START,  // it does not begin a statement
    FOREIGN_BEFORE, // what follows it does not continue an expression
    FOREIGN_BEHIND, // it does not continue the expression before it
} ForeignPlace;

// The help for such a word in such a place, static; NULL when it is not one.
const char *foreign_help(ForeignPlace place, const char *word, size_t length);

#endif
