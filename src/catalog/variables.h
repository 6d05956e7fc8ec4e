// The environment variables that tl reads, one row each (variables.def).
#ifndef CATALOG_VARIABLES_H
#define CATALOG_VARIABLES_H

#include "base/text.h"

typedef enum VariableId {
#define VARIABLE(name, ...) VARIABLE_##name,
#define NUMBER(name, ...) VARIABLE_##name,
#define FOR_TESTS(name, ...) VARIABLE_##name,
#include "catalog/variables.def"
#undef VARIABLE
#undef NUMBER
#undef FOR_TESTS
    VARIABLE_COUNT
} VariableId;

typedef struct Variable {
    const char *name, *form, *doc;
    bool for_tests;
    // An integer from minimum to maximum, and what it is when the variable is not set; `what` is
    // NULL for other variables.
    const char *what;
    uint64_t minimum, maximum, unset;
} Variable;

extern const Variable variables[VARIABLE_COUNT];
// "TL_SEED=n", what it does, and which numbers it takes. False when there is no such variable.
bool variable_append_page(const char *name, Text *out);

#endif
