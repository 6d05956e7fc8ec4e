// Texts as vectors: what the last layer gives for the tokens of each, pooled, of length 1. A text's
// vector has the same bits whatever is computed with it.
#ifndef GENERATE_EMBEDDING_H
#define GENERATE_EMBEDDING_H

#include "generate/sequence.h"

typedef enum Pooling { POOLING_MEAN, POOLING_CLS, POOLING_LAST } Pooling;

// How the rows of a text become one: by a word, or where that is NULL as the model's file says.
Status pooling_read(const Network *network, const char *word, Pooling *out) MUST_USE;

// Vectors of one network, one after the other.
typedef struct Vectors {
    Network *network; // borrowed
    Pooling pooling;
    double *numbers; // [count, width], which float32 holds; freed by whoever has the vectors
    int64_t count, width;
} Vectors;

// Adds the vector of a text's ids.
Status vectors_add(Vectors *vectors, const TokenIds *ids) MUST_USE;

#endif
