// Several strided views of the same dims, walked together: dims that all of them can walk as one
// are merged. Knows no device and no dtype.
#ifndef DEVICE_WALK_H
#define DEVICE_WALK_H

#include "device/kernel.h"

enum { WALK_VIEWS_MAX = 12 };

// Strides are in elements as collected; whoever wants them in bytes multiplies them before sorting.
typedef struct Walk {
    int n_views, rank;
    int64_t count; // elements of a view
    int64_t dims[RANK_MAX];
    int64_t strides[WALK_VIEWS_MAX][RANK_MAX];
} Walk;

// Dims `first` up to `rank` of the views, those of size 1 left out. views[0] gives the dims; a NULL
// view has stride 0 everywhere. Only what the views use is written: the struct is large.
void walk_collect(Walk *walk, int n_views, const TensorView *const *views, int first, int rank);
void walk_swap_dims(Walk *walk, int a, int b);
// Orders the dims so that the first view whose strides differ is walked along its smallest last.
void walk_sort(Walk *walk);
// Merges neighbouring dims; rank is at least 1.
void walk_merge(Walk *walk);

// All of that over the leading `rank` dims: rank 0 is one element, or none.
void walk_prepare(Walk *walk, int n_views, const TensorView *const *views, int rank);
// The same over dims `first` up to `rank`; `ordered`: without changing their order.
typedef struct WalkDims {
    int first, rank;
    bool ordered;
} WalkDims;
void walk_prepare_part(Walk *walk, int n_views, const TensorView *const *views, WalkDims dims);

// Elements of a view; 1 for rank 0.
int64_t view_count(const TensorView *view);
bool view_is_contiguous(const TensorView *view);
bool view_fills_buffer(const TensorView *view); // it is contiguous, and all of its buffer
// Whether every element that the view shows lies in its buffer.
bool view_fits(const TensorView *view);
// x seen with the dims of `to`, which it broadcasts to: stride 0 where it repeats.
void view_broadcast(const TensorView *x, const TensorView *to, TensorView *out);
// A 1-D (or rank 0) index as a view of the dims of `like`, the same along all dims but `dim`.
TensorView view_expand_index(const TensorView *index, const TensorView *like, int dim);

#endif
