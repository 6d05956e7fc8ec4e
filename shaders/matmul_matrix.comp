// MATMUL of 16-bit floats on the device's matrix units: a workgroup makes TILE_M x TILE_N numbers, a
// subgroup SIDE_M x SIDE_N of them in matrices of 16 x 16 in registers, 16 deep a step. Numbers are
// under way in four places at once: fetched from memory for later steps, put into shared panels for
// the next one, loaded from there as matrices, multiplied; one barrier a step.
#include "matrix_units.glsl"
#include "host/matmul_matrix.h"
#include "tiles.glsl"

const uint THREADS = 32 * SUBGROUPS_M * SUBGROUPS_N;
layout(local_size_x = 32 * SUBGROUPS_M * SUBGROUPS_N) in;

// Panels are in vectors of eight numbers. Each operand has two of them: across k they are one step
// deep, a line for each k; along k one (of a) or two (of b) deep, and a line holds the rows that one
// thread brings, side by side. Where the memory of a workgroup allows it, a has one panel of four
// steps instead, a line for each row, because loads of whole lines of memory (128 bytes) take the
// least of the first-level cache's time. A line is padded by one, so that the rows of a matrix lie
// in different banks.
const uint A_DEEP = !A_ACROSS && B_ACROSS ? 4 : 1, B_DEEP = B_ACROSS ? 1 : 2; // in steps
const uint A_EACH = TILE_M * STEP / 8 / THREADS, B_EACH = TILE_N * STEP / 8 / THREADS; // of a step
const uint A_LINE = A_ACROSS ? TILE_M / 8 : A_DEEP == 4 ? 8 : 2 * A_EACH; // without the padding
const uint B_LINE = B_ACROSS ? TILE_N / 8 : 8 * B_EACH;
const uint A_PITCH = A_LINE + 1, B_PITCH = B_LINE + 1;
const uint A_LINES = A_ACROSS ? STEP : A_DEEP == 4 ? TILE_M : THREADS / 2;
const uint B_LINES = B_ACROSS ? STEP : THREADS / 4;
const uint A_PANEL = A_LINES * A_PITCH, B_PANEL = B_LINES * B_PITCH;
const uint A_PANELS = A_DEEP == 4 ? A_PANEL : 2 * A_PANEL; // in all
shared uvec4 panels[THREADS * 23 / 2]; // enough for a one deep along k and b two deep

Carrier carrier_of(bool is_across, uint deep, uint line, uint tile, uint64_t base,
                   int64_t side_stride, int64_t depth_stride, uint side_first, uint side_end) {
    uint row_vectors = is_across ? tile / 8 : 2 * deep, thread = gl_LocalInvocationID.x;
    uint rows_each = THREADS / row_vectors, row = thread / row_vectors, column = thread % row_vectors;
    Carrier c;
    c.side = is_across ? column * 8 : row;
    c.depth = is_across ? row : column * 8;
    c.base = base + 2UL * uint64_t(int64_t(side_first) * side_stride);
    c.offset = 2 * (c.side * uint(side_stride) + c.depth * uint(depth_stride));
    c.each = 2UL * uint64_t(int64_t(rows_each) * (is_across ? depth_stride : side_stride));
    c.next = 2UL * uint64_t(int64_t(deep * STEP) * depth_stride);
    c.side += side_first;
    c.side_end = side_end;
    c.side_each = is_across ? 0 : rows_each;
    c.depth_each = is_across ? rows_each : 0;
    c.place = row * (line + 1) + column;
    c.place_each = is_across || deep == 4 ? rows_each * (line + 1) : row_vectors;
    c.k_first = 0;
    return c;
}

uvec4 fetch(Carrier c, uint i) {
    bool is_inside = WHOLE || (c.side + i * c.side_each < c.side_end &&
                               c.k_first + c.depth + i * c.depth_each < k);
    return is_inside ? Eight(c.base + uint64_t(i) * c.each + uint64_t(c.offset)).v : uvec4(0);
}

// Behind the last panel comes the last one again, which nobody multiplies.
void advance(inout Carrier c, uint deep) {
    c.k_first += deep * STEP;
    if (!WHOLE || c.k_first < k) c.base += c.next;
}

// Where the rows (or columns) from `side` on begin in a panel; parts are whole lines or halves of them.
uint first_of(bool is_across, uint deep, uint lines, uint line, uint side) {
    return is_across ? side / 8 : side % lines * (line + 1) + side / lines * 2 * deep;
}

// Where step v begins in its operand's panels.
uint step_of(uint deep, uint panel, uint v) {
    return deep == 1 ? v % 2 * panel : deep == 2 ? v / 2 % 2 * panel + v % 2 * 2 : v % 4 * 2;
}

#define FETCH(X, x, u)                                                                             \
    [[unroll]] for (uint i = 0; i < X##_DEEP * X##_EACH; i++)                                      \
        x##_queue[(u) * X##_EACH + i] = fetch(x, i);                                               \
    advance(x, X##_DEEP);

// Puts what is in place u of the queue where step v reads it.
#define PUT(X, x, u, v)                                                                            \
    [[unroll]] for (uint i = 0; i < X##_DEEP * X##_EACH; i++)                                      \
        panels[x.place + step_of(X##_DEEP, X##_PANEL, v) + i * x.place_each] =                     \
            x##_queue[(u) * X##_EACH + i];

// Step u of four brings what is in its place of the queue into the panel of the next step (two-deep
// ones every other time), and fetches what comes four steps later there.
#define BRING(X, x, u)                                                                             \
    if (X##_DEEP < 4 && (u) % X##_DEEP == 0) {                                                     \
        PUT(X, x, u, (u) + X##_DEEP)                                                               \
        FETCH(X, x, u)                                                                             \
    }

#define LOAD(f, v)                                                                                 \
    [[unroll]] for (uint i = 0; i < DOWN; i++) {                                                   \
        uint at = a_first + step_of(A_DEEP, A_PANEL, v) +                                           \
                  first_of(A_ACROSS, A_DEEP, A_LINES, A_LINE, 16 * i);                              \
        if (A_ACROSS) coopMatLoadNV(left[f][i], panels, at, A_PITCH, true);                        \
        else coopMatLoadNV(left[f][i], panels, at, A_PITCH, false);                                \
    }                                                                                              \
    [[unroll]] for (uint j = 0; j < ACROSS; j++) {                                                 \
        uint at = b_first + step_of(B_DEEP, B_PANEL, v) +                                           \
                  first_of(B_ACROSS, B_DEEP, B_LINES, B_LINE, 16 * j);                              \
        if (B_ACROSS) coopMatLoadNV(right[f][j], panels, at, B_PITCH, false);                      \
        else coopMatLoadNV(right[f][j], panels, at, B_PITCH, true);                                \
    }

#define MULTIPLY(f, from, to)                                                                      \
    [[unroll]] for (uint j = from; j < to; j++)                                                    \
        [[unroll]] for (uint i = 0; i < DOWN; i++)                                                 \
            sums[i][j] = coopMatMulAddNV(left[f][i], right[f][j], sums[i][j]);

// One step: its matrices are there already. The only panel of four steps is free once those of the
// fourth are, too, and is filled amid its multiplications.
#define TAKE(u)                                                                                    \
    BRING(A, a, u)                                                                                 \
    BRING(B, b, u)                                                                                 \
    barrier();                                                                                     \
    if (A_DEEP == 4 && (u) == 3) {                                                                 \
        PUT(A, a, 0, 0)                                                                            \
        FETCH(A, a, 0)                                                                             \
        MULTIPLY((u) % 2, 0, ACROSS / 2)                                                           \
        barrier();                                                                                 \
        LOAD(((u) + 1) % 2, (u) + 1)                                                               \
        MULTIPLY((u) % 2, ACROSS / 2, ACROSS)                                                      \
    } else {                                                                                       \
        LOAD(((u) + 1) % 2, (u) + 1)                                                               \
        MULTIPLY((u) % 2, 0, ACROSS)                                                               \
    }

// The first panel, and what the first steps bring.
#define BEGIN(X, x)                                                                                \
    FETCH(X, x, 0)                                                                                 \
    PUT(X, x, 0, 0)                                                                                \
    FETCH(X, x, 0)                                                                                 \
    if (X##_DEEP == 1) { FETCH(X, x, 1) }                                                          \
    if (X##_DEEP < 4) { FETCH(X, x, 2) }                                                           \
    if (X##_DEEP == 1) { FETCH(X, x, 3) }

void main() {
    FIND_TILE
    Carrier a = carrier_of(A_ACROSS, A_DEEP, A_LINE, TILE_M, a_address + 2UL * uint64_t(a_base),
                           a_row, a_column, row_first, m);
    Carrier b = carrier_of(B_ACROSS, B_DEEP, B_LINE, TILE_N, b_address + 2UL * uint64_t(b_base),
                           b_column, b_row, column_first, n);
    b.place += A_PANELS;

    // Of this subgroup.
    uint part_row = gl_SubgroupID / SUBGROUPS_N * SIDE_M;
    uint part_column = gl_SubgroupID % SUBGROUPS_N * SIDE_N;
    uint a_first = first_of(A_ACROSS, A_DEEP, A_LINES, A_LINE, part_row);
    uint b_first = A_PANELS + first_of(B_ACROSS, B_DEEP, B_LINES, B_LINE, part_column);
    fcoopmatNV<16, gl_ScopeSubgroup, M, K> left[2][DOWN];
    fcoopmatNV<16, gl_ScopeSubgroup, K, N> right[2][ACROSS];
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> sums[DOWN][ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            sums[i][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);

    uvec4 a_queue[4 * A_EACH], b_queue[4 * B_EACH]; // of four steps
    BEGIN(A, a)
    BEGIN(B, b)
    barrier();
    LOAD(0, 0)
    // Four steps fill the registers: drivers that unroll more of them spill.
    [[dont_unroll]] for (uint k_first = 0; k_first < k; k_first += 4 * STEP) {
        TAKE(0)
        TAKE(1)
        TAKE(2)
        TAKE(3)
    }
    barrier();
    LEAVE(row_first + part_row, column_first + part_column)
}
