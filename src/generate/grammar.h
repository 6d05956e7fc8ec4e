// Context-free grammars over bytes: rules made of byte sets and of each other. Built from the
// bottom up by functions that each give a rule; a grammar becomes a constraint, which owns it.
// Knows neither tokens nor how grammars are written.
#ifndef GENERATE_GRAMMAR_H
#define GENERATE_GRAMMAR_H

#include "generate/constraint.h"

typedef struct Grammar Grammar;
typedef uint32_t Rule;

enum { GRAMMAR_REPEAT_MAX = 4096, GRAMMAR_ELEMENTS_MAX = 1 << 20 };

Grammar *grammar_new(void);
void grammar_free(Grammar *grammar);

// A range of code points.
typedef struct CodeRange {
    uint32_t first, last;
} CodeRange;

Rule grammar_literal(Grammar *grammar, const char *bytes, size_t length);
// One character of the ranges, or one of no range; as UTF-8.
Rule grammar_class(Grammar *grammar, const CodeRange *ranges, size_t count, bool negated);
Rule grammar_sequence(Grammar *grammar, const Rule *rules, size_t count);
Rule grammar_choice(Grammar *grammar, const Rule *rules, size_t count);
// `least` to `most` times; most -1: any number.
Rule grammar_repeat(Grammar *grammar, Rule rule, int64_t least, int64_t most);
// A rule that is used before it is known what it is.
Rule grammar_declare(Grammar *grammar);
void grammar_define(Grammar *grammar, Rule declared, Rule meaning);

// Takes the grammar, whatever comes of it. STATUS_VALUE when a rule refers to itself before it
// reads anything, when no text can ever end, or when the grammar is too large. `what` begins the
// message: "the grammar".
Status grammar_constraint(Grammar *grammar, Rule root, const char *what, Constraint **out) MUST_USE;

// The texts of its holes; takes the filler.
void grammar_fill(Grammar *grammar, Filler *filler);
// One of the texts of a hole.
Rule grammar_hole(Grammar *grammar, uint32_t hole);

// How grammars are written; each gives a constraint, STATUS_VALUE says what is wrong and where.
// Names that are holes of the filler, or NULL, need no rule. It is taken, whatever comes of it.
Status constraint_from_gbnf(const char *text, size_t length, Filler *filler,
                            Constraint **out) MUST_USE;
Status constraint_from_regex(const char *text, size_t length, Constraint **out) MUST_USE;
// A regular expression as a rule. In a JSON string its characters are written with escapes, and it
// may match anywhere, as schemas mean it.
Status grammar_regex(Grammar *grammar, const char *text, size_t length, bool in_string,
                     Rule *out) MUST_USE;

#endif
