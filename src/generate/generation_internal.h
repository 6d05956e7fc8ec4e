// What the files of generation share. Only generation*.c includes it.
#ifndef GENERATE_GENERATION_INTERNAL_H
#define GENERATE_GENERATION_INTERNAL_H

#include "base/memory.h"
#include "generate/generation.h"
#include "tensor/compose.h"

typedef struct GenerationState {
    GenerationOptions options; // its strings are copies
    char **stops;
    char *trigger;
    int64_t max_tokens;
    TokenStream stream;
    size_t told;            // bytes of the text that `tell` has been given
    VECTOR(int64_t) all;    // the prompt and what was said; the sequence holds a beginning of it
    VECTOR(int64_t) drafts; // guesses of what follows, which the sequence may hold as well
    Tensor *rows;           // logits after the last of `all` and after each draft; NULL: none yet
    int64_t row;            // which of them is next
    Text raw;               // the bytes said, where a trigger is awaited
    bool constrained;       // the constraint has begun
    ConstraintState place;  // in it
} GenerationState;

// generation_choose.c: the next token for these logits; -1 where the constraint lets only the end
// follow. Moves the constraint on.
Status generation_choose(Generation *generation, Tensor *logits, int64_t *out) MUST_USE;
// Keeps a token's score and those of the likeliest.
Status generation_score(Generation *generation, Tensor *logits, int64_t id) MUST_USE;
// generation_say.c: a token's text, and whether a stop string ends it.
Status generation_say(Generation *generation, int64_t id, bool *stopped) MUST_USE;
Status generation_tell_rest(Generation *generation) MUST_USE;
bool generation_is_end(const Generation *generation, int64_t id);

#endif
