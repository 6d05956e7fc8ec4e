// Tables of numbers with a row for each name, which stand for tensors.
#ifndef REASON_EMBEDDING_H
#define REASON_EMBEDDING_H

#include "reason/reason.h"

typedef struct EmbeddingOptions {
    Value entities;
    int64_t dimension;
    const String *init;
    bool learnable;
} EmbeddingOptions;
Value embedding_new(Reasoner *reasoner, const EmbeddingOptions *options);
// The vectors that a relation's columns have in queries about it, instead of their types'.
void relation_embed(Reasoner *reasoner, Relation *relation, int64_t dimension, bool learnable);
// The numbers of a type's last embedding, or of the relation's own.
Status embedding_of_type(Reasoner *reasoner, const Relation *relation, const Relation *type,
                         Tensor **out) MUST_USE;

#endif
