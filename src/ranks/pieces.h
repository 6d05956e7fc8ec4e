// Sums over pieces of work that the ranks share out. They are made in a binary tree over the
// pieces, so that the result has the same bits however many ranks there are.
#ifndef RANKS_PIECES_H
#define RANKS_PIECES_H

#include "base/memory.h"
#include "ranks/ranks.h"

// The sum of pieces [index * 2^level, (index + 1) * 2^level).
typedef struct PiecesNode {
    int level;
    int64_t index;
    Tensor *sum; // counted
} PiecesNode;

typedef VECTOR(PiecesNode) PiecesNodes;

typedef struct PiecesSum {
    int64_t pieces;    // of all ranks
    PiecesNodes nodes; // of this rank: the largest whole ones, from the first to the last
} PiecesSum;

// The pieces of a rank: first <= piece < end. None where there are more ranks than pieces.
typedef struct PiecesRange {
    int64_t first, end;
} PiecesRange;
PiecesRange pieces_of(int64_t pieces, int rank);

// Adds the next of this rank's pieces, a tensor [length]; takes the reference.
Status pieces_add(PiecesSum *sum, int64_t piece, Tensor *x) MUST_USE;
// The sum of all pieces of all ranks, which have agreed: a new reference. `like` [length] gives
// dtype, length and device.
Status pieces_end(PiecesSum *sum, const Tensor *like, Tensor **out) MUST_USE;
void pieces_drop(PiecesSum *sum);

// Whether all ranks are about to add up as many pieces of as many elements; else STATUS_VALUE on
// all of them.
Status pieces_agree(int64_t pieces, int64_t elements) MUST_USE;
// `bytes` bytes of every rank, in the order of ranks; alone its own.
Status pieces_gather(const void *own, void *all, size_t bytes) MUST_USE;

#endif
