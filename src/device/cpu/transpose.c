// Finds the transposition in a strided copy and hands its tiles to the worker threads.
#include "device/cpu/transpose.h"

enum { TILE = TRANSPOSE_SIDE_MAX, TILES_PER_PIECE = 4, SIDE_MIN = 8 };

typedef struct Transposition {
    const Iteration *iteration;
    size_t size;
    int dim; // the one along which the input is contiguous
    int64_t tiles_down, tiles_across;
} Transposition;

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Transposition *transposition = context;
    const Iteration *it = transposition->iteration;
    int last = it->walk.rank - 1, dim = transposition->dim;
    for (int64_t i = begin; i < end; i++) {
        int64_t across = i % transposition->tiles_across * TILE;
        int64_t rest = i / transposition->tiles_across;
        int64_t down = rest % transposition->tiles_down * TILE;
        rest /= transposition->tiles_down;
        char *to = it->pointers[0];
        const char *from = it->pointers[1];
        for (int d = last - 1; d >= 0; d--) {
            if (d == dim) continue;
            int64_t at = rest % it->walk.dims[d];
            rest /= it->walk.dims[d];
            to += at * it->walk.strides[0][d];
            from += at * it->walk.strides[1][d];
        }
        int64_t rows = it->walk.dims[dim] - down, columns = it->walk.dims[last] - across;
        TransposeTile tile = {
            .to = to + down * it->walk.strides[0][dim] + across * it->walk.strides[0][last],
            .from = from + down * it->walk.strides[1][dim] + across * it->walk.strides[1][last],
            .to_stride = it->walk.strides[0][dim],
            .from_stride = it->walk.strides[1][last],
            .rows = rows < TILE ? rows : TILE,
            .columns = columns < TILE ? columns : TILE,
        };
        CPU_CHOOSE(transpose_tile)(transposition->size, &tile);
    }
}

bool transpose_run(const Iteration *it, size_t size) {
    int last = it->walk.rank - 1, dim = -1;
    if (it->rows == 0 || it->walk.strides[0][last] != (int64_t)size ||
        it->walk.dims[last] < SIDE_MIN)
        return false;
    for (int d = 0; d < last; d++)
        if (it->walk.strides[1][d] == (int64_t)size && it->walk.dims[d] >= SIDE_MIN) dim = d;
    if (dim < 0) return false;
    Transposition transposition = {it, size, dim, (it->walk.dims[dim] + TILE - 1) / TILE,
                                   (it->walk.dims[last] + TILE - 1) / TILE};
    int64_t matrices = it->rows / it->walk.dims[dim];
    cpu_parallel(matrices * transposition.tiles_down * transposition.tiles_across, TILES_PER_PIECE,
                 run_tiles, &transposition);
    return true;
}
