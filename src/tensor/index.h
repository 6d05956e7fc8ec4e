// Subscripts: x[i, 1:3, ..., none, mask, ids] read and written, with NumPy's rules.
#ifndef TENSOR_INDEX_H
#define TENSOR_INDEX_H

#include "tensor/op.h"

typedef enum IndexKind {
    INDEX_INTEGER,  // integer: the dimension disappears
    INDEX_SLICE,    // start:stop:step, each may be absent
    INDEX_ELLIPSIS, // ...: as many `:` as are missing
    INDEX_NEW_AXIS, // none
    INDEX_TENSOR,   // tensor: a bool mask or integers
} IndexKind;

typedef struct IndexItem {
    IndexKind kind;
    bool has_start, has_stop, has_step;
    int64_t integer, start, stop, step;
    Tensor *tensor; // borrowed
} IndexItem;

enum { INDEX_ITEMS_MAX = 2 * RANK_MAX };

typedef struct IndexItems {
    int count;
    IndexItem items[INDEX_ITEMS_MAX];
} IndexItems;

// x[items]: a view for integers and slices, a copy where tensors index. New reference.
Status index_get(Tensor *x, const IndexItem *items, int count, Tensor **out) MUST_USE;
// x[items] = value, where *target holds x. `unique` says that *target is the only reference to the
// tensor that anybody will read: then it is changed in place if nothing else shares its buffer;
// otherwise *target is replaced by a changed copy and the old reference released. The value
// broadcasts and is converted to the target's dtype.
// Writes into a parameter, which stays itself; never recorded.
Status index_set_parameter(Tensor *parameter, const IndexItem *items, int count,
                           OpInput value) MUST_USE;
Status index_set(Tensor **target, const IndexItem *items, int count, OpInput value,
                 bool unique) MUST_USE;

#endif
