// Joint walks over strided views: merging of dims, choice of the inner loop, splitting into pieces.
#include "device/cpu/iterate.h"

#include <stdlib.h>

enum {
    PIECE_ELEMENTS = 16384, // work of one piece: large against the cost of handing it to a thread
    PIECE_ELEMENTS_MIN = 64,
    SHORT_ROW = 8, // an inner loop shorter than this is not worth its call
};

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

static void swap_dims(Iteration *it, int a, int b) {
    int64_t dim = it->dims[a];
    it->dims[a] = it->dims[b];
    it->dims[b] = dim;
    for (int v = 0; v < it->n_views; v++) {
        int64_t stride = it->strides[v][a];
        it->strides[v][a] = it->strides[v][b];
        it->strides[v][b] = stride;
    }
}

// True when dim a should be walked outside dim b: decided by the first view whose strides differ.
static bool is_outer(const Iteration *it, int a, int b) {
    for (int v = 0; v < it->n_views; v++) {
        int64_t stride_a = llabs(it->strides[v][a]), stride_b = llabs(it->strides[v][b]);
        if (stride_a == 0 || stride_b == 0 || stride_a == stride_b) continue;
        return stride_a > stride_b;
    }
    return true;
}

// Insertion sort: few dims, usually in order, and stable where strides say nothing.
static void sort_dims(Iteration *it) {
    for (int i = 1; i < it->rank; i++)
        for (int j = i; j > 0 && !is_outer(it, j - 1, j); j--) swap_dims(it, j - 1, j);
}

static bool can_merge(const Iteration *it, int outer, int inner) {
    for (int v = 0; v < it->n_views; v++)
        if (it->strides[v][outer] != it->strides[v][inner] * it->dims[inner]) return false;
    return true;
}

static void merge_dims(Iteration *it) {
    int kept = 0;
    for (int d = 1; d < it->rank; d++) {
        if (can_merge(it, kept, d)) {
            it->dims[kept] *= it->dims[d];
        } else {
            it->dims[++kept] = it->dims[d];
        }
        for (int v = 0; v < it->n_views; v++) it->strides[v][kept] = it->strides[v][d];
    }
    it->rank = kept + 1;
}

// Rows of two or three numbers cost more in calls than in work: a longer dim goes inside instead.
static void lengthen_rows(Iteration *it) {
    int last = it->rank - 1;
    if (it->dims[last] >= SHORT_ROW) return;
    int longest = last;
    for (int d = last - 1; d >= 0; d--)
        if (it->dims[d] > 2 * it->dims[longest]) longest = d;
    if (longest != last) swap_dims(it, longest, last);
}

// Only what the views use is written: the struct is large and this runs before every kernel.
void iterate_prepare(Iteration *it, int n_views, const TensorView *const *views) {
    ASSERT(n_views > 0 && n_views <= ITERATION_VIEWS_MAX && views[0]);
    const TensorView *first = views[0];
    it->n_views = n_views;
    it->piece = PIECE_ELEMENTS;
    it->rank = 0;
    int64_t total = 1;
    for (int d = 0; d < first->rank; d++) {
        total *= first->dims[d];
        if (first->dims[d] == 1) continue;
        for (int v = 0; v < n_views; v++)
            it->strides[v][it->rank] =
                views[v] ? views[v]->strides[d] * (int64_t)dtype_size(views[v]->dtype) : 0;
        it->dims[it->rank++] = first->dims[d];
    }
    for (int v = 0; v < n_views; v++) it->pointers[v] = views[v] ? cpu_pointer(views[v]) : NULL;
    if (it->rank == 0 || total == 0) {
        it->rank = 1;
        it->dims[0] = 1;
        for (int v = 0; v < n_views; v++)
            it->strides[v][0] = views[v] ? (int64_t)dtype_size(views[v]->dtype) : 0;
    }
    sort_dims(it);
    merge_dims(it);
    lengthen_rows(it);
    it->count = it->dims[it->rank - 1];
    it->rows = total / it->count;
}

typedef struct Walk {
    const Iteration *iteration;
    IterateRow row;
    void *context;
    int64_t pieces_per_row, piece_count;
} Walk;

// Places the pointers at a row and returns its coordinates, the last dim left out.
static void seek_row(const Iteration *it, int64_t row, int64_t *at, char **pointers) {
    for (int v = 0; v < it->n_views; v++) pointers[v] = it->pointers[v];
    for (int d = it->rank - 2; d >= 0; d--) {
        at[d] = row % it->dims[d];
        row /= it->dims[d];
        for (int v = 0; v < it->n_views; v++) pointers[v] += at[d] * it->strides[v][d];
    }
}

static void next_row(const Iteration *it, int64_t *at, char **pointers) {
    for (int d = it->rank - 2; d >= 0; d--) {
        for (int v = 0; v < it->n_views; v++) pointers[v] += it->strides[v][d];
        if (++at[d] < it->dims[d]) return;
        for (int v = 0; v < it->n_views; v++) pointers[v] -= at[d] * it->strides[v][d];
        at[d] = 0;
    }
}

static void inner_strides(const Iteration *it, int64_t *strides) {
    for (int v = 0; v < it->n_views; v++) strides[v] = it->strides[v][it->rank - 1];
}

static void walk_rows(const Walk *walk, int64_t begin, int64_t end) {
    const Iteration *it = walk->iteration;
    char *pointers[ITERATION_VIEWS_MAX];
    int64_t at[RANK_MAX], strides[ITERATION_VIEWS_MAX];
    inner_strides(it, strides);
    seek_row(it, begin, at, pointers);
    for (int64_t row = begin; row < end; row++) {
        walk->row(walk->context, pointers, strides, it->count);
        next_row(it, at, pointers);
    }
}

// Pieces are numbered through all rows; each row has the same number of them.
static void walk_pieces(void *context, int64_t begin, int64_t end) {
    const Walk *walk = context;
    const Iteration *it = walk->iteration;
    if (walk->pieces_per_row == 1) {
        walk_rows(walk, begin, end);
        return;
    }
    char *pointers[ITERATION_VIEWS_MAX];
    int64_t at[RANK_MAX], strides[ITERATION_VIEWS_MAX];
    inner_strides(it, strides);
    for (int64_t piece = begin; piece < end; piece++) {
        seek_row(it, piece / walk->pieces_per_row, at, pointers);
        int64_t first = piece % walk->pieces_per_row * walk->piece_count;
        int64_t left = it->count - first;
        for (int v = 0; v < it->n_views; v++) pointers[v] += first * strides[v];
        walk->row(walk->context, pointers, strides,
                  left < walk->piece_count ? left : walk->piece_count);
    }
}

void iterate_divide(Iteration *it, int64_t factor) {
    int64_t piece = it->piece / (factor > 0 ? factor : 1);
    it->piece = piece > PIECE_ELEMENTS_MIN ? piece : PIECE_ELEMENTS_MIN;
}

void iterate_run(const Iteration *it, IterateRow row, void *context) {
    if (it->rows == 0) return;
    Walk walk = {it, row, context, 1, it->count};
    int64_t grain = 1;
    if (it->count > it->piece) {
        walk.pieces_per_row = (it->count + it->piece - 1) / it->piece;
        walk.piece_count = it->piece;
    } else {
        grain = it->piece / it->count;
    }
    cpu_parallel(it->rows * walk.pieces_per_row, grain, walk_pieces, &walk);
}

void iterate_run_serial(const Iteration *it, IterateRow row, void *context) {
    Walk walk = {it, row, context, 1, it->count};
    if (it->rows > 0) walk_rows(&walk, 0, it->rows);
}
