// A value whose dimensions have names: the indexes of an equation. Numbers have none.
#ifndef EQUATION_NAMED_H
#define EQUATION_NAMED_H

#include "check/equation_sizes.h"
#include "tensor/op.h"
#include "value/value.h"

typedef struct Named {
    Value value; // a tensor of rank `count`, or a number with count 0
    int count;
    int indexes[RANK_MAX];
} Named;

void named_release(Named *named);
// STATUS_SHAPE when that many indexes are too many for a tensor.
Status named_check_rank(int count) MUST_USE;
bool named_has(const Named *named, int index);
// The tensor with its dimensions in the given order; those that it lacks have size 1. A number
// stays one. A new reference.
Status named_arrange(const Named *named, const int *order, int count, Value *out) MUST_USE;
// The product of the factors with an Einstein sum over `reduced`; the result's dimensions are in
// the order of `order`.
Status named_contract(const Named *factors, int count, const Named *order, Named *out) MUST_USE;
// Reduces the dimensions by an operation on one, the last one first; replaces the value.
Status named_reduce_by(Named *named, const Shape *dims, OpId op) MUST_USE;
// The dimensions whose indexes are in the set, which leave; the value is left to reduce.
Shape named_take(Named *named, IndexSet reduced);
// Takes the indexes of the set together; replaces the value.
Status named_reduce(Named *named, IndexSet reduced, Projection how) MUST_USE;
// concat or stack along a dimension.
Status named_join(OpId op, const OpInput *parts, int count, int dim, Tensor **out) MUST_USE;
// More places along a dimension, before and after those that are there, all of this value.
Status named_pad(Tensor *tensor, int dim, const int64_t more[2], double value,
                 Tensor **out) MUST_USE;
// `size` neighbours along an index become one, the last ones fewer; replaces the value.
Status named_group(Named *named, int index, int64_t size, Projection how) MUST_USE;
// The part at one place of an index, which the result does not have.
Status named_select(const Named *named, int index, int64_t place, Named *out) MUST_USE;
// An index that stands twice becomes one dimension, the diagonal of the two.
Status named_diagonal(Named *named) MUST_USE;

#endif
