// Patterns: what match arms test, and what let, for and destructuring bind.
#ifndef EVAL_PATTERN_H
#define EVAL_PATTERN_H

#include "eval/code.h"

typedef struct PatternCode PatternCode;

const PatternCode *lower_pattern(Lowering *lowering, const Pattern *pattern);
// Binds every name of the pattern; fails in words where the value has another form. Borrows the
// value.
Status pattern_bind(Frame *frame, const PatternCode *pattern, Value value) MUST_USE;
// (a, b), which also takes an entry of a dictionary: its key and its value.
bool pattern_is_pair(const PatternCode *pattern);
Status pattern_bind_pair(Frame *frame, const PatternCode *pattern, Value first,
                         Value second) MUST_USE;

// Whether the shape of the pattern, names and tuples of them, fits the value.
bool pattern_takes(const PatternCode *pattern, Value value);
// The pattern (first, second).
const PatternCode *pattern_pair(Lowering *lowering, const PatternCode *first,
                                const PatternCode *second);

#endif
