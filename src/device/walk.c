// Joint walks over strided views.
#include "device/walk.h"

#include <stdlib.h>
#include <string.h>

#include "device/buffer.h"

int64_t view_count(const TensorView *view) {
    int64_t count = 1;
    for (int d = 0; d < view->rank; d++) count *= view->dims[d];
    return count;
}

bool view_is_contiguous(const TensorView *view) {
    int64_t expected = 1;
    for (int d = view->rank - 1; d >= 0; d--) {
        if (view->dims[d] == 0) return true;
        if (view->dims[d] != 1 && view->strides[d] != expected) return false;
        expected *= view->dims[d];
    }
    return true;
}

bool view_fills_buffer(const TensorView *view) {
    ASSERT(view->buffer != NULL);
    return view->offset == 0 && view_is_contiguous(view) &&
           (size_t)view_count(view) * dtype_size(view->dtype) == view->buffer->bytes;
}

bool view_fits(const TensorView *view) {
    int64_t low = 0, high = 1; // elements from the offset on
    for (int d = 0; d < view->rank; d++) {
        if (view->dims[d] <= 0) return view->dims[d] == 0; // an empty one reads nothing
        *(view->strides[d] < 0 ? &low : &high) += (view->dims[d] - 1) * view->strides[d];
    }
    const DTypeInfo *info = &dtype_info[view->dtype];
    int64_t before = -low, after = high;
    if (info->block_elements > 1) {
        before /= info->block_elements;
        after = (after + info->block_elements - 1) / info->block_elements;
    }
    before *= info->block_bytes;
    after *= info->block_bytes;
    size_t bytes = view->buffer->bytes;
    return (size_t)before <= view->offset && view->offset <= bytes &&
           (size_t)after <= bytes - view->offset;
}

void view_broadcast(const TensorView *x, const TensorView *to, TensorView *out) {
    int missing = to->rank - x->rank;
    ASSERT(missing >= 0);
    out->buffer = x->buffer;
    out->offset = x->offset;
    out->dtype = x->dtype;
    out->rank = to->rank;
    for (int i = 0; i < to->rank; i++) {
        bool repeats = i < missing || (x->dims[i - missing] == 1 && to->dims[i] != 1);
        out->dims[i] = to->dims[i];
        out->strides[i] = repeats ? 0 : x->strides[i - missing];
    }
}

void walk_collect(Walk *walk, int n_views, const TensorView *const *views, int first, int rank) {
    ASSERT(n_views > 0 && n_views <= WALK_VIEWS_MAX && views[0]);
    ASSERT(first >= 0 && rank <= RANK_MAX);
    walk->n_views = n_views;
    walk->rank = 0;
    walk->count = 1;
    for (int d = first; d < rank; d++) {
        int64_t dim = views[0]->dims[d];
        walk->count *= dim;
        if (dim == 1) continue;
        for (int v = 0; v < n_views; v++)
            walk->strides[v][walk->rank] = views[v] ? views[v]->strides[d] : 0;
        walk->dims[walk->rank++] = dim;
    }
}

void walk_swap_dims(Walk *walk, int a, int b) {
    int64_t dim = walk->dims[a];
    walk->dims[a] = walk->dims[b];
    walk->dims[b] = dim;
    for (int v = 0; v < walk->n_views; v++) {
        int64_t stride = walk->strides[v][a];
        walk->strides[v][a] = walk->strides[v][b];
        walk->strides[v][b] = stride;
    }
}

// True when dim a is walked outside dim b: decided by the first view whose strides differ.
static bool is_outer(const Walk *walk, int a, int b) {
    for (int v = 0; v < walk->n_views; v++) {
        int64_t stride_a = llabs(walk->strides[v][a]), stride_b = llabs(walk->strides[v][b]);
        if (stride_a == 0 || stride_b == 0 || stride_a == stride_b) continue;
        return stride_a > stride_b;
    }
    return true;
}

// Insertion sort: few dims, usually in order, and stable where strides say nothing.
void walk_sort(Walk *walk) {
    for (int i = 1; i < walk->rank; i++)
        for (int j = i; j > 0 && !is_outer(walk, j - 1, j); j--) walk_swap_dims(walk, j - 1, j);
}

static bool can_merge(const Walk *walk, int outer, int inner) {
    for (int v = 0; v < walk->n_views; v++)
        if (walk->strides[v][outer] != walk->strides[v][inner] * walk->dims[inner]) return false;
    return true;
}

void walk_merge(Walk *walk) {
    int kept = 0;
    ASSERT(walk->rank > 0);
    for (int d = 1; d < walk->rank; d++) {
        if (can_merge(walk, kept, d))
            walk->dims[kept] *= walk->dims[d];
        else
            walk->dims[++kept] = walk->dims[d];
        for (int v = 0; v < walk->n_views; v++) walk->strides[v][kept] = walk->strides[v][d];
    }
    walk->rank = kept + 1;
}

void walk_prepare_part(Walk *walk, int n_views, const TensorView *const *views, WalkDims dims) {
    walk_collect(walk, n_views, views, dims.first, dims.rank);
    if (walk->count == 0) walk->rank = 0;
    if (walk->rank == 0) return;
    if (!dims.ordered) walk_sort(walk);
    walk_merge(walk);
}

void walk_prepare(Walk *walk, int n_views, const TensorView *const *views, int rank) {
    walk_prepare_part(walk, n_views, views, (WalkDims){.rank = rank});
}

TensorView view_expand_index(const TensorView *index, const TensorView *like, int dim) {
    TensorView expanded = *like;
    expanded.buffer = index->buffer;
    expanded.offset = index->offset;
    expanded.dtype = index->dtype;
    memset(expanded.strides, 0, sizeof expanded.strides);
    if (index->rank > 0) expanded.strides[dim] = index->strides[0];
    return expanded;
}
