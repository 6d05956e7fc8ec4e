// What building a grammar and running it share. Only grammar*.c includes it.
#ifndef GENERATE_GRAMMAR_INTERNAL_H
#define GENERATE_GRAMMAR_INTERNAL_H

#include <stdlib.h>

#include "base/memory.h"
#include "generate/grammar.h"

// Alternatives are runs of elements, each ended by an END.
typedef enum ElementKind { ELEMENT_END, ELEMENT_BYTES, ELEMENT_RULE } ElementKind;
typedef struct Element {
    ElementKind kind;
    uint32_t value; // the set's or the rule's number
} Element;

typedef struct ByteSet {
    uint64_t bits[4];
} ByteSet;

static inline bool set_has(const ByteSet *set, uint8_t byte) {
    return set->bits[byte / 64] >> (byte % 64) & 1;
}

typedef VECTOR(uint32_t) Alternatives; // where each begins among the elements

struct Grammar {
    VECTOR(Element) elements;
    VECTOR(ByteSet) sets;
    VECTOR(Alternatives) rules;
    int64_t *costs; // by element: bytes of the shortest way from there to the END
};

static const int64_t COST_NEVER = 1ll << 60;

// Finds the costs and checks what grammar_constraint promises.
Status grammar_check(Grammar *grammar, Rule root, const char *what) MUST_USE;

#endif
