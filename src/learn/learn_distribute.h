// What the steps that ranks make together are made of: learn_distribute.c and learn_parts.c.
#ifndef LEARN_LEARN_DISTRIBUTE_H
#define LEARN_LEARN_DISTRIBUTE_H

#include "learn/learn.h"
#include "ranks/pieces.h"

enum {
    LEARN_BLOCK = 1024, // elements that no cut over ranks separates
    // Elements of gradients that go between ranks together: so many, or so many to each rank where
    // that is more.
    LEARN_BUCKET = 1 << 20,
    LEARN_BUCKET_IN_PARTS = 1 << 18, // with `shard: parameters`: memory counts more
    LEARN_BUCKET_OF_RANK = 1 << 14,
    LEARN_WHOLE = 4096 // a parameter of fewer elements is not cut by `shard: parameters`
};

// Parameters whose gradients go between ranks together, each filled up with zeros to whole blocks.
typedef struct LearnBucket {
    size_t first, end; // parameters of the step
    PiecesSum sum;
    Tensor *flat;   // gradients of the last piece, which go out when the last of them is there
    size_t arrived; // parameters in it
    bool started;
    Tensor *part; // this rank's part of the gradients
    PiecesShare share;
    Tensor *whole; // all of them; NULL: where each rank moves its part alone
    // How it is cut over the ranks, where not by its parameters: as one thing.
    int64_t length;
} LearnBucket;

typedef struct LearnStep {
    LearnRun *run;
    Tensor *order;
    int64_t begin, rows, pieces;
    // `shard: parameters`: all ranks go through one piece each at a time, since they gather
    // parameters together; one for which none is left goes through the last once more and drops it.
    bool by_rounds;
    bool drops;
    int64_t piece;          // the one whose gradients arrive
    uint64_t sign;          // of all pieces (learn_each.c)
    RandomStream random;    // where it began
    TensorArray parameters; // counted
    int64_t *lengths;       // of each in its bucket
    bool *arrived;          // each whose gradient is in a bucket that has not started
    int64_t elements;       // of all
    Device *device;
    DType dtype; // of the sums
    LearnBucket *buckets;
    size_t bucket_count;
} LearnStep;

// Goes from bucket to bucket, the one that backward filled first before the others, until `advance`
// has said of each that it is done.
typedef Status (*LearnAdvance)(const LearnStep *step, LearnBucket *bucket, bool *done);
Status learn_advance(LearnStep *step, LearnAdvance advance) MUST_USE;
// Whether each rank moves its part of every parameter.
bool learn_moves_parts(const LearnRun *run);
// Begins to share out a bucket's part that nothing changes any more.
Status learn_share_bucket(const LearnStep *step, LearnBucket *bucket) MUST_USE;
// Of no things yet.
PiecesLayout learn_layout(const LearnStep *step, const int64_t *lengths);
// A tensor [length], to be filled.
Status learn_flat(const LearnStep *step, int64_t length, Tensor **out) MUST_USE;
// Its elements first <= i < end become zeros.
Status learn_clear(Tensor *flat, int64_t first, int64_t end) MUST_USE;
// What lies at `at` in a flat tensor, in the shape of a parameter.
Status learn_part_of(Tensor *flat, const Tensor *parameter, int64_t at, Tensor **out) MUST_USE;

#endif
