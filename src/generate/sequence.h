// A text that a model is at work on. A network is a model's page, opened, with the tokenizer and
// what else all texts share; a sequence is one text: its ids and their keys and values. Sessions of
// one network can be computed together; each gets the bits that it would get alone.
#ifndef GENERATE_SEQUENCE_H
#define GENERATE_SEQUENCE_H

#include "eval/state.h"
#include "model/kv_cache.h"
#include "model/tokenizer.h"

typedef struct Network {
    int refs;
    Interp *interp;
    Value *values;        // rooted: what the page opened, and the model
    int cache_field;      // of the opened struct; -1: the page keeps its text to itself
    int64_t layers;       // of the cache that it opened,
    DType dtype;          // which the page may replace by anything
    int64_t context;      // how many ids fit; 0 when the model does not say
    int64_t boundary;     // a text that grows past so many ids is computed anew; 0: none
    bool encodes;         // it gives no logits: a text is computed whole,
    bool pools;           // and its page may make something of a pooled row
    int64_t led;          // its number, from 1, among those whose steps other ranks make too; or 0
    int64_t texts;        // that have begun
    Tokenizer *tokenizer; // borrowed from the model; NULL when its file has none
} Network;

// `model` is a value of kind model (with its hooks and adapters); borrowed.
Status network_open(Interp *interp, Value model, Network **out) MUST_USE;
Network *network_retain(Network *network);
void network_release(Network *network);
Value network_model(const Network *network); // borrowed
// STATUS_INDEX where one of the ids is not in the vocabulary: other texts may be computed in the
// same step, and must not fail with it.
Status network_check_ids(const Network *network, const int64_t *ids, size_t count) MUST_USE;
// An error for an encoder, which has nothing to say.
Status network_need_logits(const Network *network) MUST_USE;
// What the page makes of a pooled row [1, width].
Status network_pooled(const Network *network, Tensor *row, Tensor **out) MUST_USE;

typedef struct Sequence {
    Network *network;
    KvCache *cache;
    int64_t number; // among those of its network
    int64_t *ids;   // of the text so far
    size_t count, capacity;
} Sequence;

Status sequence_new(Network *network, Sequence **out) MUST_USE;
// An empty cache as the network's page has it.
Status sequence_cache_new(const Network *network, KvCache **out) MUST_USE;
// A text in a cache that somebody keeps, which is held: what it has of the beginning of these ids
// stays (all but the last at most), the rest goes. sequence_note says in the end which ids its rows
// are of, so that another text may begin with them.
Status sequence_in(Network *network, KvCache *cache, const TokenIds *ids, Sequence **out) MUST_USE;
void sequence_note(const Sequence *sequence);
void sequence_free(Sequence *sequence); // NULL is allowed
// The same text once more, which goes on by itself; a text that can only go on has none.
Status sequence_fork(const Sequence *sequence, Sequence **out) MUST_USE;
// Adds ids whose rows the cache has already.
void sequence_take(Sequence *sequence, const int64_t *ids, size_t count);
// Keeps at most the first `count` ids; fewer where the page would compute those differently.
Status sequence_truncate(Sequence *sequence, size_t count) MUST_USE;

// One or more ids that follow a sequence's text, and how many of the last of them are asked about.
// A failed step leaves the texts as they were.
typedef struct Step {
    Sequence *sequence;
    const int64_t *ids;
    size_t count, rows; // 1 <= rows <= count
    bool unknown;       // only a run has the ids (device/foretell.h)
} Step;
// What the last layer gives for each of the ids, [all ids, width].
Status sequences_hidden(const Step *steps, size_t count, Tensor **out) MUST_USE;
// The logits after each id that is asked about, in the order of the steps, [all rows, vocabulary].
// A long text goes through in parts.
Status sequences_advance(const Step *steps, size_t count, Tensor **out) MUST_USE;

#endif
