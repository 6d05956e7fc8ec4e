// MATMUL in tiles: a workgroup of 16 x 16 threads makes TILE x TILE numbers, each thread EACH x EACH
// of them in registers; panels of DEPTH go through shared memory, the next one is fetched while one
// is multiplied.
#include "types.glsl"
#include "host/matmul.h"
#include "matrices.glsl"

const uint THREADS = 256, EACH = TILE / 16, DEPTH = TILE == 128 ? 8 : 16, PITCH = TILE + 4;
const uint FETCHED = TILE * DEPTH / THREADS; // numbers of a panel that a thread fetches: 4
layout(local_size_x = 256) in;

shared real a_panel[DEPTH * PITCH], b_panel[DEPTH * PITCH];

struct Panel {
    uint64_t address;
    int64_t base;
    int64_t side_stride, depth_stride; // side: the dim that is not k
    uint side_first, side_end;
};

// The place in a panel of the number `i` that this thread fetches.
void place_of(uint fetch, uint i, out uint side, out uint depth) {
    uint thread = gl_LocalInvocationID.x;
    if (fetch == FETCH_DEPTH) {
        uint at = thread + i * THREADS;
        depth = at % DEPTH;
        side = at / DEPTH;
    } else if (fetch == FETCH_SIDE) {
        uint at = thread + i * THREADS;
        side = at % TILE;
        depth = at / TILE;
    } else if (fetch == FETCH_DEPTH_FOUR) {
        depth = thread % (DEPTH / 4) * 4 + i;
        side = thread / (DEPTH / 4);
    } else {
        side = thread % (TILE / 4) * 4 + i;
        depth = thread / (TILE / 4);
    }
}

real4 fetch_panel(uint fetch, uint dtype, Panel panel, uint k_first) {
    real4 numbers = real4(0);
    uint side, depth;
    if (fetch == FETCH_DEPTH_FOUR || fetch == FETCH_SIDE_FOUR) {
        place_of(fetch, 0, side, depth);
        uint row = panel.side_first + side, column = k_first + depth;
        if (row < panel.side_end && column < k) {
            int64_t at = panel.base + int64_t(row) * panel.side_stride +
                         int64_t(column) * panel.depth_stride;
            numbers = load4(element_address(panel.address, at, dtype), dtype);
        }
        return numbers;
    }
    for (uint i = 0; i < FETCHED; i++) {
        place_of(fetch, i, side, depth);
        uint row = panel.side_first + side, column = k_first + depth;
        if (row < panel.side_end && column < k)
            SET_LANE(numbers, i,
                     load(panel.address,
                          panel.base + int64_t(row) * panel.side_stride +
                              int64_t(column) * panel.depth_stride,
                          dtype));
    }
    return numbers;
}

void store_four(int64_t base, uint row, uint column, real4 numbers) {
    if (row >= m) return;
    int64_t first = base + int64_t(row) * int64_t(n) + int64_t(column);
    for (uint i = 0; i < 4; i++)
        if (column + i < n) store(out_address, first + int64_t(i), OUT_DTYPE, LANE(numbers, i));
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint row_first = gl_WorkGroupID.x / across * TILE, column_first = gl_WorkGroupID.x % across * TILE;
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    Panel a = Panel(a_address, a_base, a_row, a_column, row_first, m);
    Panel b = Panel(b_address, b_base, b_column, b_row, column_first, n);
    // Rows and columns of a thread lie apart in fours: neighbouring threads read neighbouring fours.
    uint my_row = thread / 16 * 4, my_column = thread % 16 * 4;
    real sums[EACH][EACH];
    [[unroll]] for (uint i = 0; i < EACH; i++)
        [[unroll]] for (uint j = 0; j < EACH; j++) sums[i][j] = R(0);
    real4 a_next = fetch_panel(A_FETCH, A_DTYPE, a, 0), b_next = fetch_panel(B_FETCH, B_DTYPE, b, 0);
    for (uint k_first = 0; k_first < k; k_first += DEPTH) {
        barrier();
        [[unroll]] for (uint i = 0; i < FETCHED; i++) {
            uint side, depth;
            place_of(A_FETCH, i, side, depth);
            a_panel[depth * PITCH + side] = a_next[i];
            place_of(B_FETCH, i, side, depth);
            b_panel[depth * PITCH + side] = b_next[i];
        }
        barrier();
        if (k_first + DEPTH < k) {
            a_next = fetch_panel(A_FETCH, A_DTYPE, a, k_first + DEPTH);
            b_next = fetch_panel(B_FETCH, B_DTYPE, b, k_first + DEPTH);
        }
        [[unroll]] for (uint depth = 0; depth < DEPTH; depth++) {
            real left[EACH], right[EACH];
            [[unroll]] for (uint i = 0; i < EACH; i++) {
                left[i] = a_panel[depth * PITCH + my_row + i / 4 * 64 + i % 4];
                right[i] = b_panel[depth * PITCH + my_column + i / 4 * 64 + i % 4];
            }
            [[unroll]] for (uint i = 0; i < EACH; i++)
                [[unroll]] for (uint j = 0; j < EACH; j++) sums[i][j] += left[i] * right[j];
        }
    }
    [[unroll]] for (uint i = 0; i < EACH; i++)
        [[unroll]] for (uint j = 0; j < EACH; j += 4)
            store_four(out_base, row_first + my_row + i / 4 * 64 + i % 4,
                       column_first + my_column + j / 4 * 64,
                       real4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
}
