// From logits to a token: what narrows them, one after another, and the draw.
#ifndef GENERATE_SAMPLER_H
#define GENERATE_SAMPLER_H

#include "eval/state.h"
#include "tensor/random.h"

// The text so far, for samplers that look at it; the last `said` of its ids came after the prompt.
typedef struct TextSoFar {
    const int64_t *ids;
    size_t count, said;
} TextSoFar;

typedef struct Sampling {
    Interp *interp;
    Value chain; // NONE, or a list of functions; it must lie where the collector sees it
    double temperature;
    int64_t top_k;              // -1: all
    double top_p;               // 1: all
    double presence, frequency; // penalties on what was said; 0: none
    bool has_seed;              // then `random` is a stream of its own, else the program's goes on
    RandomStream random;
} Sampling;

// A token for logits [vocabulary]. With a chain its functions are given the logits in turn: a
// tensor is what goes on, an integer is the token; without one, the penalties, temperature, top_k
// and top_p.
Status sampling_choose(Sampling *sampling, Tensor *logits, TextSoFar text, int64_t *out) MUST_USE;

// temperature(0.8), top_k(40) ...: an operation on logits with its one argument, as a function.
Value sampler_new(const Builtin *op, Value argument);

#endif
