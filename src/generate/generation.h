// The loop that makes a text: token after token, until the text ends, is stopped, or is as long as
// was asked. A generation is one text; several of one network go on together, a token each, and
// each says what it would say alone. Knows no script and prints nothing: what is said is told to a
// function.
//
//     Network *network;   network_open(interp, model, &network)
//     Generation *one;    TRY(generation_new(network, &options, &prompt, NULL, &one));
//     while (!one->finish) TRY(generations_step(&one, 1));
//     text_get(&one->text); one->ids, one->count; generation_free(one); network_release(network)
#ifndef GENERATE_GENERATION_H
#define GENERATE_GENERATION_H

#include "generate/constraint.h"
#include "generate/sampler.h"
#include "generate/sequence.h"

typedef enum Finish {
    FINISH_NONE,   // it goes on
    FINISH_END,    // the model ended its text
    FINISH_STOP,   // a stop string
    FINISH_LENGTH, // max_tokens
} Finish;

typedef struct GenerationOptions {
    int64_t max_tokens;
    bool at_most; // max_tokens may be fewer where the context has no room; else that is an error
    Sampling sampling;
    const char *const *stops; // copied
    size_t stop_count;
    int64_t logprobs;       // how many alternatives to keep with each token; -1: nothing
    Constraint *constraint; // NULL: none; held
    const char *trigger;    // after this string; NULL: from the beginning. Copied
    int64_t speculate;      // how many tokens to guess from the text so far; 0: none
    bool shift;             // a full context forgets its older half
    // Is given each piece of text as it comes, whole characters only; where there is no tokenizer,
    // each id, with bytes NULL. May be NULL. A failure ends the generation with it.
    Status (*tell)(void *context, const char *bytes, size_t length, int64_t id);
    void *context;
} GenerationOptions;

// A token with the logarithm of its probability, before any sampler.
typedef struct Scored {
    int64_t id;
    double logprob;
} Scored;

typedef struct Generation {
    Finish finish;
    Text text;    // what was said
    int64_t *ids; // the tokens of it
    size_t count;
    Scored *scored; // for each of them: itself and then `logprobs` alternatives, likeliest first
    size_t prompt_tokens, cached_tokens;
    SourcePos at; // where it was begun
    bool unknown; // only a run has what is said: it is taken to be as long as it can be
    Sequence *sequence;
    struct GenerationState *state; // private
} Generation;

// Of a prompt, whose ids are copied; `sequence` (taken; NULL: a new one) holds the first of them
// already, but not all.
Status generation_new(Network *network, const GenerationOptions *options, const TokenIds *prompt,
                      Sequence *sequence, Generation **out) MUST_USE;
void generation_free(Generation *generation); // NULL is allowed
// One more token for each that has not finished. A failure leaves no generation usable.
Status generations_step(Generation *const *generations, size_t count) MUST_USE;

// The ids of a text, as the beginning of one (with the token for it) or not.
Status network_encode(const Network *network, const char *text, size_t length, bool begins,
                      TokenIds *out) MUST_USE;

#endif
