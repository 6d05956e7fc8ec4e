// What a text must look like: an interface between the loop and whoever says which tokens may come
// next. A state stands for the text so far; equal states allow the same. States are numbers, so
// that texts fork and go back freely; 0 stands for a text that cannot be.
#ifndef GENERATE_CONSTRAINT_H
#define GENERATE_CONSTRAINT_H

#include "model/token_trie.h"

typedef struct Constraint Constraint;
typedef uint32_t ConstraintState;
static const int64_t CONSTRAINT_NEVER = 1ll << 60; // bytes to an end that cannot be reached

typedef struct ConstraintType {
    void (*release)(Constraint *constraint);
    ConstraintState (*begin)(Constraint *constraint);
    // After some more bytes; 0 when they are not allowed.
    ConstraintState (*advance)(Constraint *constraint, ConstraintState state, const char *bytes,
                               size_t length);
    // A bit for each token of the vocabulary that may come next; borrowed until the next call.
    const uint64_t *(*allowed)(Constraint *constraint, ConstraintState state,
                               const TokenTrie *vocabulary);
    // How many bytes the shortest end is away; 0: the text may end here; or CONSTRAINT_NEVER.
    int64_t (*shortest)(Constraint *constraint, ConstraintState state);
    // What it asks for may have changed since the last token: states stay what they are, but mean
    // what is asked for now. NULL: it never changes.
    Status (*refresh)(Constraint *constraint) MUST_USE;
} ConstraintType;

// The head of every constraint; each kind has a struct of its own that begins with it.
struct Constraint {
    const ConstraintType *type;
    int refs;
};
static inline Constraint *constraint_retain(Constraint *constraint) {
    constraint->refs++;
    return constraint;
}
static inline void constraint_release(Constraint *constraint) {
    if (constraint && --constraint->refs == 0) constraint->type->release(constraint);
}

// Texts that fill the holes of a grammar, which may change while texts are made. The grammar owns
// it.
typedef struct Filler Filler;
typedef struct FillerType {
    void (*release)(Filler *filler);
    uint64_t (*version)(Filler *filler); // that of the texts it would give now
    // Calls `add` for each text of a hole.
    Status (*fill)(Filler *filler, uint32_t hole,
                   void (*add)(void *context, const char *bytes, size_t length), void *context);
} FillerType;
struct Filler {
    const FillerType *type;
    const char *const *names; // of the holes
    uint32_t count;
};

#endif
