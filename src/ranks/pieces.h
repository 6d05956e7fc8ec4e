// Sums over pieces of work that the ranks share out. They are made in a binary tree over the
// pieces, so that the result has the same bits however many ranks there are; every rank adds up a
// part of the elements.
#ifndef RANKS_PIECES_H
#define RANKS_PIECES_H

#include "base/memory.h"
#include "ranks/ranks.h"

typedef struct PiecesRange {
    int64_t first, end;
} PiecesRange;

// The pieces of a rank: first <= piece < end. None where there are more ranks than pieces.
PiecesRange pieces_of(int64_t pieces, int rank);

// What lies one after the other in a tensor [length]: things of so many elements, each of which is
// cut over the ranks in blocks.
typedef struct PiecesLayout {
    Device *device;
    DType dtype;
    int64_t block;          // elements; divides the lengths
    const int64_t *lengths; // borrowed
    size_t count;           // of things
    int64_t length;         // of all
} PiecesLayout;

// The elements of a thing that belong to a rank.
PiecesRange pieces_cut(const PiecesLayout *layout, size_t thing, int rank);
// How many elements of all things do.
int64_t pieces_part(const PiecesLayout *layout, int rank);

// The sum of pieces [index * 2^level, (index + 1) * 2^level).
typedef struct PiecesNode {
    int level;
    int64_t index;
    Tensor *sum; // counted
} PiecesNode;

typedef VECTOR(PiecesNode) PiecesNodes;
typedef struct PiecesTransfer PiecesTransfer; // what goes between ranks

typedef struct PiecesSum {
    int64_t pieces; // of all ranks
    // A rank's pieces follow each other, and go to the others when they are added up; or it has one
    // of as many as there are ranks in each round, so that no rank needs memory for a whole sum.
    bool by_rounds;
    int64_t round; // the one whose pieces go between ranks
    // In the order that the transport takes for the fastest, not that of the tree: what comes of it
    // is the whole, on every rank. Without by_rounds.
    bool fast;
    PiecesLayout layout;
    PiecesNodes nodes; // of this rank: the largest whole ones, from the first to the last
    PiecesTransfer *transfer;
    PiecesNodes parts; // of what has come from all ranks, this rank's part
    // Counted; where this rank's part of the sum lies in its place among those of all: its only
    // node, whose other parts are with the other ranks. NULL: the part is a tensor of its own.
    Tensor *whole;
} PiecesSum;

// Adds the next of this rank's pieces, a tensor [length]; takes the reference.
Status pieces_add(PiecesSum *sum, int64_t piece, Tensor *x) MUST_USE;
// After the last of this rank's pieces: they go to the other ranks while the program goes on.
// `index` tells sums apart that are under way together.
Status pieces_start(PiecesSum *sum, int index) MUST_USE;
// Of fast sums, before they are polled: ranks do so in the same order.
Status pieces_send(PiecesSum *sum) MUST_USE;
// Lets what is under way go on; whether it is done, so that nobody has to wait.
Status pieces_poll(PiecesSum *sum, bool *done) MUST_USE;
// Between looks at several of them: gives the processor away. STATUS_INTERRUPT.
Status pieces_pause(int *looks) MUST_USE;
// Waits for what has been started, before the next round starts.
Status pieces_collect(PiecesSum *sum) MUST_USE;
// This rank's part of the sum of all pieces, [pieces_part], or all of a fast one: a new reference.
Status pieces_finish(PiecesSum *sum, Tensor **part) MUST_USE;
void pieces_drop(PiecesSum *sum);

// The parts of all ranks on their way into one tensor [length].
typedef struct PiecesShare {
    PiecesLayout layout;
    Tensor *part; // counted; NULL: not begun, or done
    PiecesTransfer *transfer;
} PiecesShare;

// `share` is zeros, or done; `part` is what pieces_finish gave, or was made of it; `index` as of
// sums.
Status pieces_share_start(PiecesShare *share, PiecesSum *sum, Tensor *part, int index) MUST_USE;
Status pieces_share_poll(PiecesShare *share, bool *done) MUST_USE;
// Waits; a new reference.
Status pieces_share_finish(PiecesShare *share, Tensor **whole) MUST_USE;
void pieces_share_drop(PiecesShare *share);
// All at once.
Status pieces_share(const PiecesLayout *layout, Tensor *part, Tensor **whole) MUST_USE;

// Whether all ranks are about to add up as many pieces of as many elements; else STATUS_VALUE on
// all of them.
Status pieces_agree(int64_t pieces, int64_t elements) MUST_USE;
// The same before a step, at one rate; STATUS_INTERRUPT on all of them when one has a signal that
// waits (base/runtime.h).
Status pieces_begin(int64_t pieces, int64_t elements, double rate, bool fast) MUST_USE;
// `bytes` bytes of every rank, in the order of ranks; alone its own.
Status pieces_gather(const void *own, void *all, size_t bytes) MUST_USE;

#endif
