// Joint walks over strided views: choice of the inner loop, splitting into pieces.
#include "device/cpu/iterate.h"

enum {
    PIECE_ELEMENTS = 16384, // work of one piece: large against the cost of handing it to a thread
    PIECE_ELEMENTS_MIN = 64,
    SHORT_ROW = 8, // an inner loop shorter than this is not worth its call
};

// Rows of two or three numbers cost more in calls than in work: a longer dim goes inside instead.
static void lengthen_rows(Walk *walk) {
    int last = walk->rank - 1;
    if (walk->dims[last] >= SHORT_ROW) return;
    int longest = last;
    for (int d = last - 1; d >= 0; d--)
        if (walk->dims[d] > 2 * walk->dims[longest]) longest = d;
    if (longest != last) walk_swap_dims(walk, longest, last);
}

void iterate_prepare(Iteration *it, int n_views, const TensorView *const *views) {
    Walk *walk = &it->walk;
    walk_collect(walk, n_views, views, 0, views[0]->rank);
    int64_t total = walk->count;
    bool single = walk->rank == 0 || total == 0; // one element, or none
    if (single) {
        walk->rank = 1;
        walk->dims[0] = 1;
    }
    for (int v = 0; v < n_views; v++) {
        int64_t size = views[v] ? (int64_t)dtype_size(views[v]->dtype) : 0;
        it->pointers[v] = views[v] ? cpu_pointer(views[v]) : NULL;
        if (single) walk->strides[v][0] = 1;
        for (int d = 0; d < walk->rank; d++) walk->strides[v][d] *= size;
    }
    walk_sort(walk);
    walk_merge(walk);
    lengthen_rows(walk);
    it->piece = PIECE_ELEMENTS;
    it->count = walk->dims[walk->rank - 1];
    it->rows = total / it->count;
}

typedef struct RowsJob {
    const Iteration *iteration;
    IterateRow row;
    void *context;
    int64_t pieces_per_row, piece_count;
} RowsJob;

// Places the pointers at a row and returns its coordinates, the last dim left out.
static void seek_row(const Iteration *it, int64_t row, int64_t *at, char **pointers) {
    for (int v = 0; v < it->walk.n_views; v++) pointers[v] = it->pointers[v];
    for (int d = it->walk.rank - 2; d >= 0; d--) {
        at[d] = row % it->walk.dims[d];
        row /= it->walk.dims[d];
        for (int v = 0; v < it->walk.n_views; v++)
            pointers[v] = iterate_move(pointers[v], at[d] * it->walk.strides[v][d]);
    }
}

static void next_row(const Iteration *it, int64_t *at, char **pointers) {
    for (int d = it->walk.rank - 2; d >= 0; d--) {
        for (int v = 0; v < it->walk.n_views; v++)
            pointers[v] = iterate_move(pointers[v], it->walk.strides[v][d]);
        if (++at[d] < it->walk.dims[d]) return;
        for (int v = 0; v < it->walk.n_views; v++)
            pointers[v] = iterate_move(pointers[v], -at[d] * it->walk.strides[v][d]);
        at[d] = 0;
    }
}

static void inner_strides(const Iteration *it, int64_t *strides) {
    for (int v = 0; v < it->walk.n_views; v++) strides[v] = it->walk.strides[v][it->walk.rank - 1];
}

static void walk_rows(const RowsJob *job, int64_t begin, int64_t end) {
    const Iteration *it = job->iteration;
    char *pointers[WALK_VIEWS_MAX];
    int64_t at[RANK_MAX], strides[WALK_VIEWS_MAX];
    inner_strides(it, strides);
    seek_row(it, begin, at, pointers);
    for (int64_t row = begin; row < end; row++) {
        job->row(job->context, pointers, strides, it->count);
        next_row(it, at, pointers);
    }
}

// Pieces are numbered through all rows; each row has the same number of them.
static void walk_pieces(void *context, int64_t begin, int64_t end) {
    const RowsJob *job = context;
    const Iteration *it = job->iteration;
    if (job->pieces_per_row == 1) {
        walk_rows(job, begin, end);
        return;
    }
    char *pointers[WALK_VIEWS_MAX];
    int64_t at[RANK_MAX], strides[WALK_VIEWS_MAX];
    inner_strides(it, strides);
    for (int64_t piece = begin; piece < end; piece++) {
        seek_row(it, piece / job->pieces_per_row, at, pointers);
        int64_t first = piece % job->pieces_per_row * job->piece_count;
        int64_t left = it->count - first;
        for (int v = 0; v < it->walk.n_views; v++)
            pointers[v] = iterate_move(pointers[v], first * strides[v]);
        job->row(job->context, pointers, strides,
                 left < job->piece_count ? left : job->piece_count);
    }
}

void iterate_divide(Iteration *it, int64_t factor) {
    int64_t piece = it->piece / (factor > 0 ? factor : 1);
    it->piece = piece > PIECE_ELEMENTS_MIN ? piece : PIECE_ELEMENTS_MIN;
}

void iterate_run(const Iteration *it, IterateRow row, void *context) {
    if (it->rows == 0) return;
    RowsJob job = {it, row, context, 1, it->count};
    int64_t grain = 1;
    if (it->count > it->piece) {
        job.pieces_per_row = (it->count + it->piece - 1) / it->piece;
        job.piece_count = it->piece;
    } else {
        grain = it->piece / it->count;
    }
    cpu_parallel(it->rows * job.pieces_per_row, grain, walk_pieces, &job);
}

void iterate_run_serial(const Iteration *it, IterateRow row, void *context) {
    RowsJob job = {it, row, context, 1, it->count};
    if (it->rows > 0) walk_rows(&job, 0, it->rows);
}
