// What building a grammar and running it share. Only grammar*.c includes it.
#ifndef GENERATE_GRAMMAR_INTERNAL_H
#define GENERATE_GRAMMAR_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/grammar.h"

enum { CODE_LAST = 0x10FFFF, SURROGATE_FIRST = 0xD800, SURROGATE_LAST = 0xDFFF };

// strchr finds the NUL that ends its string too, and texts may have NULs inside.
static inline bool is_character_of(char c, const char *characters) {
    return c != '\0' && strchr(characters, c) != NULL;
}

// Alternatives are runs of elements, each ended by an END.
typedef enum ElementKind { ELEMENT_END, ELEMENT_BYTES, ELEMENT_RULE, ELEMENT_HOLE } ElementKind;
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

// A rule that is `of` up to `most` times (-1: any number) or not at all.
typedef struct Optional {
    Rule rule, of;
    int64_t most;
} Optional;

struct Grammar {
    VECTOR(Element) elements;
    VECTOR(ByteSet) sets;
    VECTOR(Alternatives) rules;
    VECTOR(Optional) optionals; // in order of their rules
    int64_t *costs;             // by element: bytes of the shortest way from there to the END
    Filler *filler;             // NULL: no holes
    struct Holes *holes;        // NULL: the same
};

// A text of a hole that is begun: some of its bytes. Numbers of such beginnings are places like
// those of elements, from PLACE_BEGUN on, and stay while texts come and go.
enum { PLACE_BEGUN = 1 << 30 };
typedef struct Holes Holes;
Holes *holes_new(const Filler *filler);
void holes_free(Holes *holes);   // NULL is allowed
void holes_forget(Holes *holes); // beginnings with bytes: their numbers are given again
// *changed: the texts are others than before.
Status holes_refresh(Holes *holes, Filler *filler, bool *changed) MUST_USE;
// The beginning of a hole without bytes.
uint32_t holes_begin(uint32_t hole);
// With one more; 0: no text goes on so.
uint32_t holes_step(Holes *holes, uint32_t place, uint8_t byte);
bool holes_complete(const Holes *holes, uint32_t place); // it is one of the texts
// Bytes to the end of the shortest text that goes on from there, CONSTRAINT_NEVER where none does.
int64_t holes_cost(const Holes *holes, uint32_t place);

// The costs with what holes cost now.
void grammar_find_costs(Grammar *grammar);

// Finds the costs and checks what grammar_constraint promises.
Status grammar_check(Grammar *grammar, Rule root, const char *what) MUST_USE;

#endif
