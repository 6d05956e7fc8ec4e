// Fuzzes what constraints are written in. The first byte says in what: s a JSON schema, g a
// grammar, r a regular expression. What is accepted is walked, byte by byte.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "generate/grammar.h"
#include "generate/json_schema.h"

enum { LENGTH_MAX = 2000, STEPS_MAX = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void walk(Constraint *constraint) {
    ConstraintState state = constraint->type->begin(constraint);
    for (int step = 0; step < STEPS_MAX && state != 0; step++) {
        ConstraintState next = 0;
        int64_t left = constraint->type->shortest(constraint, state);
        for (int byte = 0; byte < 256 && next == 0; byte++) {
            char c = (char)(byte * 37 + step);
            next = constraint->type->advance(constraint, state, &c, 1);
        }
        // It cannot end, and nothing leads on: only where too many ways were found to read it.
        if (next == 0 && left > 0 && constraint->type->refresh(constraint) == STATUS_OK) abort();
        state = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    if (length == 0 || length > LENGTH_MAX) return 0;
    const char *text = (const char *)bytes + 1;
    Constraint *constraint;
    Status status = *bytes == 's'   ? constraint_from_schema(text, length - 1, &constraint)
                    : *bytes == 'g' ? constraint_from_gbnf(text, length - 1, NULL, &constraint)
                                    : constraint_from_regex(text, length - 1, &constraint);
    if (status != STATUS_OK) return 0;
    walk(constraint);
    constraint_release(constraint);
    return 0;
}
