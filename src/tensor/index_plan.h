// What a list of subscripts means for one tensor: a view for integers and slices, and for index
// tensors and masks the positions they pick.
#ifndef TENSOR_INDEX_PLAN_H
#define TENSOR_INDEX_PLAN_H

#include "tensor/index.h"

// One dimension of the view that an index tensor picks from: positions 0..size-1, in row-major
// order of `shape`, which broadcasts to the plan's.
typedef struct Picked {
    int dim;
    int64_t *positions; // malloc'd; NULL where `index` stays on the device
    Tensor *index;      // borrowed: int64, from -size to size - 1; else NULL
    Shape shape;
} Picked;

typedef struct IndexPlan {
    TensorView view; // of x: integers, slices and new axes applied, picked dimensions still whole
    int picked_count;
    Picked picked[RANK_MAX];
    Shape picked_shape; // all index tensors broadcast together
    int place;          // where its dimensions stand in the result
    // While memory is foretold: positions that only a run knows stand for others, and are as many
    // as they can be.
    bool guessed, bounded;
} IndexPlan;

// Free it also on failure.
Status index_plan_make(Tensor *x, const IndexItem *items, int count, IndexPlan *out) MUST_USE;
void index_plan_free(IndexPlan *plan);

// A mask must have the sizes of the dimensions of x that it indexes, from first_dim on.
Status index_check_mask(const Tensor *x, int first_dim, const Tensor *mask) MUST_USE;

// One number per picked position: the sum over picked dimensions of position * stride, strides
// given per Picked. malloc'd, in row-major order of picked_shape.
int64_t *index_plan_combine(const IndexPlan *plan, const int64_t *strides);
// The result's shape: picked_shape at its place among the dimensions that are not picked.
Status index_plan_shape(const IndexPlan *plan, Shape *out) MUST_USE;

#endif
