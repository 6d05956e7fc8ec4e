// MATMUL with the accuracy of float32 on matrix units that multiply bfloat16: numbers are taken
// apart into bfloat16 parts that add up to them, three of a float32, two of a float16, one of a
// bfloat16 or a block's integer, and parts are multiplied by parts. What matrix units add up
// they cut off, so they sum sixteen products at a time, the smallest parts first, and sums in
// float32 take these with the blocks' factors. Numbers below 2^-110 lose their last parts. A
// workgroup that finds something not finite makes its tile again, number by number.
#extension GL_KHR_shader_subgroup_shuffle : require
#define REAL_F32
#define FLOATS_ONLY
#define WITH_QUANTISED
#include "matrix_units.glsl"
#include "host/matmul_parts.h"
#include "blocks.glsl"

const uint TILE_M = 64, TILE_N = 128; // results of a workgroup
const uint SUBGROUPS_M = 2, SUBGROUPS_N = 2, THREADS = 128;
layout(local_size_x = 128) in;

#include "tiles.glsl"

const uint A_PARTS = 3;

// Panels are in vectors of eight numbers, one step of k deep, and there are two of each part: one
// is filled while the other is multiplied. Along k a line holds one row of each quarter of the
// tile, across it is of one k. A line is padded by one: rows of a matrix lie in different banks.
const uint PITCH = 9;
const uint A_LINES = TILE_M / 4, B_LINES = TILE_N / 4;
const uint A_PITCH = A_ACROSS ? TILE_M / 8 + 1 : PITCH;
const uint B_PITCH = B_ACROSS ? TILE_N / 8 + 1 : PITCH;
const uint A_PANEL = A_LINES * PITCH, B_PANEL = B_LINES * PITCH; // enough for both ways
const uint B_FIRST = A_PARTS * A_PANEL, BUFFER = B_FIRST + B_PARTS * B_PANEL;
const uint A_EACH = TILE_M * 2 / THREADS, B_EACH = TILE_N * 2 / THREADS;
// Results leave through corners of 16 rows, one of each subgroup.
const uint CORNERS = THREADS / 32 * 16 * OUT_PITCH;
shared uvec4 panels[2 * BUFFER > CORNERS ? 2 * BUFFER : CORNERS];
shared bool is_strange; // something is not finite

// --- parts

// Eight bits of each number: the upper half of a float32 is a bfloat16.
vec4 upper_part(vec4 v) {
    return uintBitsToFloat(floatBitsToUint(v) & 0xFFFF0000u);
}

uint pack_pair(vec2 v) {
    uvec2 bits = floatBitsToUint(v);
    return packUint2x16(u16vec2(unpackUint2x16(bits.x).y, unpackUint2x16(bits.y).y));
}

uvec4 pack_uppers(vec4 v, vec4 w) {
    return uvec4(pack_pair(v.xy), pack_pair(v.zw), pack_pair(w.xy), pack_pair(w.zw));
}

float sum_of(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

// Eight numbers as they lie, in one vector or in two.
struct Numbers {
    uvec4 low, high;
};

void widen(Numbers numbers, uint dtype, out vec4 low, out vec4 high) {
    uvec4 w = numbers.low;
    if (dtype == FLOAT32) {
        low = uintBitsToFloat(w);
        high = uintBitsToFloat(numbers.high);
    } else if (dtype == FLOAT16) {
        low = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
        high = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
    } else {
        low = uintBitsToFloat(uvec4(w.x << 16, w.x & 0xFFFF0000u, w.y << 16, w.y & 0xFFFF0000u));
        high = uintBitsToFloat(uvec4(w.z << 16, w.z & 0xFFFF0000u, w.w << 16, w.w & 0xFFFF0000u));
    }
}

// Puts the parts of eight numbers into panels that lie `apart`.
void put_parts(vec4 low, vec4 high, uint parts, uint place, uint apart) {
    [[unroll]] for (uint part = 0; part < parts; part++) {
        panels[place + part * apart] = pack_uppers(low, high);
        low -= upper_part(low);
        high -= upper_part(high);
    }
}

// --- how panels are brought

uint place_in(bool is_across, uint lines, uint pitch, uint side, uint depth) {
    return is_across ? depth * pitch + side / 8
                     : side % lines * PITCH + side / lines * 2 + depth / 8;
}

Carrier carrier_of(bool is_across, uint tile, uint pitch, uint64_t base, int64_t side_stride,
                   int64_t depth_stride, uint side_first, uint side_end, uint dtype) {
    uint line = is_across ? tile / 8 : 2, thread = gl_LocalInvocationID.x;
    uint row = thread / line, column = thread % line, rows_each = THREADS / line;
    // Eight threads next to each other bring four whole sectors, into different banks.
    if (!is_across) row = (row & ~7u) + (row & 3u) * 2 + (row >> 2 & 1u);
    uint64_t size = uint64_t(element_bytes(dtype));
    Carrier c;
    c.side = is_across ? column * 8 : row;
    c.depth = is_across ? row : column * 8;
    c.base = base + size * uint64_t(int64_t(side_first) * side_stride);
    c.offset = uint(size) * (c.side * uint(side_stride) + c.depth * uint(depth_stride));
    c.each = size * uint64_t(int64_t(rows_each) * (is_across ? depth_stride : side_stride));
    c.next = size * uint64_t(int64_t(STEP) * depth_stride);
    c.place = place_in(is_across, tile / 4, pitch, c.side, c.depth);
    c.place_each = is_across ? rows_each * pitch : rows_each / (tile / 4) * 2;
    c.side += side_first;
    c.side_end = side_end;
    c.side_each = is_across ? 0 : rows_each;
    c.depth_each = is_across ? rows_each : 0;
    c.k_first = 0;
    return c;
}

Numbers fetch_at(uint64_t at, uint dtype) {
    Numbers numbers;
    numbers.low = Eight(at).v;
    numbers.high = dtype == FLOAT32 ? Eight(at + 16UL).v : uvec4(0);
    return numbers;
}

Numbers fetch(Carrier c, uint i, uint dtype) {
    bool is_inside = WHOLE || (c.side + i * c.side_each < c.side_end &&
                               c.k_first + c.depth + i * c.depth_each < k);
    if (is_inside) return fetch_at(c.base + uint64_t(i) * c.each + uint64_t(c.offset), dtype);
    return Numbers(uvec4(0), uvec4(0));
}

// Behind the last panel comes the last one again, or zeros, which nobody needs.
void advance(inout Carrier c) {
    c.k_first += STEP;
    if (!WHOLE || c.k_first < k) c.base += c.next;
}

#ifdef BLOCKS
// Two steps are a unit: its low weights, then its high ones, which need not be neighbours. Where
// they begin.
uint chunk_first(uint step) {
    uint unit = step / 2 & 7u, high = step & 1u, super = step / 16 * 256;
    if (B_DTYPE == Q6_K) return super + (unit >> 2) * 128u + high * 64u + (unit & 3u) * 16u;
    if (SPLIT) return super + (unit >> 1) * 64u + high * 32u + (unit & 1u) * 16u;
    return step * 16u;
}

const float MAGIC = 8388608.0; // 2^23: integers are its fraction, which needs no conversion
// Of columns and rows, for each of two steps.
shared uvec4 factors[TILE_N / 2], minima[TILE_N / 2], row_sums[TILE_M / 2];
shared float table[16];

vec4 of_word(uint word, uint high) {
    if (TABLE) {
        uvec4 at = uvec4(word, word >> 8, word >> 16, word >> 24) >> high * 4u & 15u;
        return vec4(table[at.x], table[at.y], table[at.z], table[at.w]);
    }
    uint bits = high > 0 ? HIGH_BITS : LOW_BITS;
    uvec4 numbers = uvec4(word, word >> 8, word >> 16, word >> 24) & bits;
    float zero = MAGIC + ZERO * (high > 0 ? HIGH_SIZE : 1.0);
    return uintBitsToFloat(numbers | floatBitsToUint(MAGIC)) - zero;
}

uvec4 of_words(uint first, uint second, uint high) {
    return pack_uppers(of_word(first, high), of_word(second, high));
}

// Half a unit of a column goes where it is multiplied in step `high`; `strange` becomes true
// where its factors are not finite.
void put_weights(Raw raw, uint unit, uint high, uint place, inout bool strange) {
    uint column = gl_LocalInvocationID.x;
    Weights weights = weights_of(raw, unit);
    uvec4 words = high > 0 ? weights.high : weights.low;
    panels[place] = of_words(words.x, words.y, high);
    panels[place + 1] = of_words(words.z, words.w, high);
    float factor = high > 0 ? weights.factors.y / HIGH_SIZE : weights.factors.x;
    uint at = high * TILE_N + column;
    factors[at / 4][at % 4] = floatBitsToUint(factor);
    if (!real_isfinite(factor)) strange = true;
    if (MINIMA) {
        float minimum = high > 0 ? weights.minima.y : weights.minima.x;
        minima[at / 4][at % 4] = floatBitsToUint(minimum);
        if (!real_isfinite(minimum)) strange = true;
    }
}
#endif

// --- results

// A tile number by number.
void make_slowly(uint row_first, uint column_first, int64_t a_base, int64_t b_base,
                 int64_t out_base) {
    for (uint i = gl_LocalInvocationID.x; i < TILE_M * TILE_N; i += THREADS) {
        uint row = row_first + i / TILE_N, column = column_first + i % TILE_N;
        if (row >= m || column >= n) continue;
        float sum = 0.0;
        int64_t a_at = a_base + int64_t(row) * a_row, b_at = b_base + int64_t(column) * b_column;
        for (uint at = 0; at < k; at++)
            sum += load(a_address, a_at + int64_t(at) * a_column, A_DTYPE) *
                   load(b_address, b_at + int64_t(at) * b_row, B_DTYPE);
        store(out_address, out_base + int64_t(row) * int64_t(n) + int64_t(column), OUT_DTYPE, sum);
    }
}

// --- the work

#define ADD_PRODUCT(j, p, q)                                                                       \
    [[unroll]] for (uint i = 0; i < DOWN; i++)                                                     \
        chunk[i] = coopMatMulAddNV(left[p][i], right[(j) % 2][q], chunk[i]);

// Products of parts whose sizes are at most 2^-24 of the first ones' are left out.
#if B_PARTS == 1
#define MULTIPLY(j) ADD_PRODUCT(j, 2, 0) ADD_PRODUCT(j, 1, 0) ADD_PRODUCT(j, 0, 0)
#elif B_PARTS == 2
#define MULTIPLY(j)                                                                                \
    ADD_PRODUCT(j, 2, 0) ADD_PRODUCT(j, 1, 1) ADD_PRODUCT(j, 0, 1) ADD_PRODUCT(j, 1, 0)            \
        ADD_PRODUCT(j, 0, 0)
#else
#define MULTIPLY(j)                                                                                \
    ADD_PRODUCT(j, 2, 0) ADD_PRODUCT(j, 0, 2) ADD_PRODUCT(j, 1, 1) ADD_PRODUCT(j, 0, 1)            \
        ADD_PRODUCT(j, 1, 0) ADD_PRODUCT(j, 0, 0)
#endif

#define LOAD_LEFT(p, u)                                                                            \
    [[unroll]] for (uint i = 0; i < DOWN; i++) {                                                   \
        uint at = (u) * BUFFER + (p) * A_PANEL + a_first +                                         \
                  place_in(A_ACROSS, A_LINES, A_PITCH, 16 * i, 0);                                 \
        if (A_ACROSS) coopMatLoadNV(left[p][i], panels, at, A_PITCH, true);                        \
        else coopMatLoadNV(left[p][i], panels, at, A_PITCH, false);                                \
    }

#define LOAD_RIGHT(u, j)                                                                           \
    [[unroll]] for (uint q = 0; q < B_PARTS; q++) {                                                \
        uint at = (u) * BUFFER + q * B_PANEL + b_first +                                           \
                  place_in(B_ACROSS, B_LINES, B_PITCH, 16 * (j), 0);                               \
        if (B_ACROSS) coopMatLoadNV(right[(j) % 2][q], panels, at, B_PITCH, false);                \
        else coopMatLoadNV(right[(j) % 2][q], panels, at, B_PITCH, true);                          \
    }

#ifdef BLOCKS
#define ADD_CHUNK(s, j)                                                                            \
    {                                                                                              \
        fcoopmatNV<32, gl_ScopeSubgroup, M, N> factor;                                             \
        coopMatLoadNV(factor, factors, (s * TILE_N + part_column) / 4 + 4 * j, 0, false);          \
        [[unroll]] for (uint i = 0; i < DOWN; i++)                                                 \
            [[unroll]] for (uint e = 0; e < 8; e++)                                                \
                sums[i][j][e] += chunk[i][e] * factor[e];                                          \
        if (MINIMA) {                                                                              \
            coopMatLoadNV(factor, minima, (s * TILE_N + part_column) / 4 + 4 * j, 0, false);       \
            [[unroll]] for (uint i = 0; i < DOWN; i++) {                                           \
                coopMatLoadNV(chunk[i], row_sums, (s * TILE_M + part_row) / 4 + 4 * i, 0, true);   \
                [[unroll]] for (uint e = 0; e < 8; e++)                                            \
                    sums[i][j][e] += chunk[i][e] * factor[e];                                      \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define ADD_CHUNK(s, j)                                                                            \
    [[unroll]] for (uint i = 0; i < DOWN; i++)                                                     \
        [[unroll]] for (uint e = 0; e < 8; e++)                                                    \
            sums[i][j][e] += chunk[i][e];
#endif

#define TAKE_COLUMN(u, j)                                                                          \
    {                                                                                              \
        [[unroll]] for (uint i = 0; i < DOWN; i++)                                                 \
            chunk[i] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);                                \
        MULTIPLY(j)                                                                                \
        ADD_CHUNK(u, j)                                                                            \
    }

// Brings what was fetched to where step u multiplies it, so that more can be fetched.
#define PUT_A(u)                                                                                   \
    [[unroll]] for (uint i = 0; i < A_EACH; i++) {                                                 \
        vec4 low, high;                                                                            \
        widen(a_next[i], A_DTYPE, low, high);                                                      \
        PUT_ROW_SUMS(u, i)                                                                         \
        put_parts(low, high, A_PARTS, (u) * BUFFER + a.place + i * a.place_each, A_PANEL);         \
    }

#ifdef BLOCKS
#define PUT_ROW_SUMS(u, i)                                                                         \
    if (MINIMA) {                                                                                  \
        float sum = sum_of(low) + sum_of(high);                                                    \
        sum += subgroupShuffleXor(sum, 1);                                                         \
        uint at = (u) * TILE_M + a.side - row_first + (i) * a.side_each;                           \
        if (a.depth == 0) row_sums[at / 4][at % 4] = floatBitsToUint(sum);                         \
    }
#define FETCH_A(step)                                                                              \
    a.base = a_rows + uint64_t(chunk_first(min(step, k / STEP - 1)) * element_bytes(A_DTYPE));     \
    [[unroll]] for (uint i = 0; i < A_EACH; i++) a_next[i] = fetch(a, i, A_DTYPE);
#define PUT_B(u) put_weights(b_next, its_unit, u, (u) * BUFFER + b_place, strange);
// A whole unit, for this step and the next one.
#define FETCH_B(u, step)                                                                           \
    if (u == 0) {                                                                                  \
        uint its_step = min(step, k / STEP - 1);                                                   \
        its_unit = SMALL ? 0 : its_step / 2 & 7u;                                                  \
        b_next = fetch(column_base + uint64_t(SMALL ? its_step / 2 * (SUPER_BYTES / 8)             \
                                                    : its_step / 16 * SUPER_BYTES), its_unit);     \
    }
#define BEGIN_B                                                                                    \
    FETCH_B(0, 0)                                                                                  \
    PUT_B(0)
#define BRING_B(u, step)                                                                           \
    PUT_B(u)                                                                                       \
    FETCH_B(1 - u, step + 1)
#else
#define PUT_ROW_SUMS(u, i)
#define FETCH_A(step)                                                                              \
    [[unroll]] for (uint i = 0; i < A_EACH; i++) a_next[i] = fetch(a, i, A_DTYPE);                 \
    advance(a);
#define PUT_B(u)                                                                                   \
    [[unroll]] for (uint i = 0; i < B_EACH; i++) {                                                 \
        vec4 low, high;                                                                            \
        widen(b_next[i], B_DTYPE, low, high);                                                      \
        put_parts(low, high, B_PARTS, (u) * BUFFER + b.place + i * b.place_each, B_PANEL);         \
    }
#define FETCH_B                                                                                    \
    [[unroll]] for (uint i = 0; i < B_EACH; i++) b_next[i] = fetch(b, i, B_DTYPE);                 \
    advance(b);
#define BEGIN_B                                                                                    \
    FETCH_B                                                                                        \
    PUT_B(0)                                                                                       \
    FETCH_B
#define BRING_B(u, step)                                                                           \
    PUT_B(u)                                                                                       \
    FETCH_B
#endif

// Step u of two multiplies its panels, and fills the other ones for the next.
#define TAKE(u)                                                                                    \
    barrier();                                                                                     \
    LOAD_LEFT(0, u)                                                                                \
    LOAD_LEFT(1, u)                                                                                \
    LOAD_LEFT(2, u)                                                                                \
    LOAD_RIGHT(u, 0)                                                                               \
    LOAD_RIGHT(u, 1)                                                                               \
    TAKE_COLUMN(u, 0)                                                                              \
    PUT_A(1 - u)                                                                                   \
    FETCH_A(k_first / STEP + u + 2)                                                                \
    LOAD_RIGHT(u, 2)                                                                               \
    TAKE_COLUMN(u, 1)                                                                              \
    LOAD_RIGHT(u, 3)                                                                               \
    BRING_B(1 - u, k_first / STEP + u + 1)                                                         \
    TAKE_COLUMN(u, 2)                                                                              \
    TAKE_COLUMN(u, 3)

void main() {
    FIND_TILE
    uint thread = gl_LocalInvocationID.x;
    Carrier a = carrier_of(A_ACROSS, TILE_M, A_PITCH, element_address(a_address, a_base, A_DTYPE),
                           a_row, a_column, row_first, m, A_DTYPE);
    Numbers a_next[A_EACH];
    bool strange = false;
#ifdef BLOCKS
    uint its_unit;
    uint64_t a_rows = a.base;
    uint64_t column_base = b_address + uint64_t(weight_offset(b_base, B_DTYPE)) +
                        uint64_t(min(column_first + thread, n - 1)) *
                            uint64_t(weight_offset(b_column, B_DTYPE));
    uint b_place = B_FIRST + place_in(false, B_LINES, PITCH, thread, 0);
    Raw b_next;
    if (TABLE && thread < 16) table[thread] = value_of_iq4(thread);
    if (TABLE) barrier();
#else
    Carrier b = carrier_of(B_ACROSS, TILE_N, B_PITCH, element_address(b_address, b_base, B_DTYPE),
                           b_column, b_row, column_first, n, B_DTYPE);
    b.place += B_FIRST;
    Numbers b_next[B_EACH];
#endif
    if (thread == 0) is_strange = false;

    // Of this subgroup.
    uint part_row = gl_SubgroupID / SUBGROUPS_N * SIDE_M;
    uint part_column = gl_SubgroupID % SUBGROUPS_N * SIDE_N;
    uint a_first = place_in(A_ACROSS, A_LINES, A_PITCH, part_row, 0);
    uint b_first = B_FIRST + place_in(B_ACROSS, B_LINES, B_PITCH, part_column, 0);
    fcoopmatNV<16, gl_ScopeSubgroup, M, K> left[A_PARTS][DOWN];
    fcoopmatNV<16, gl_ScopeSubgroup, K, N> right[2][B_PARTS];
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> sums[DOWN][ACROSS], chunk[DOWN];
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            sums[i][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);

    FETCH_A(0)
    PUT_A(0)
    BEGIN_B
    FETCH_A(1)
    [[dont_unroll]] for (uint k_first = 0; k_first < k; k_first += 2 * STEP) {
        TAKE(0)
        TAKE(1)
    }
    // What is not finite leaves a nan behind its parts, and so in all of its row or column.
    uint largest = 0;
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            [[unroll]] for (uint e = 0; e < 8; e++)
                largest = max(largest, floatBitsToUint(sums[i][j][e]) & 0x7FFFFFFFu);
    if (strange || largest > 0x7F800000u) is_strange = true;
    barrier();
    if (is_strange) {
        make_slowly(row_first, column_first, a_base, b_base, out_base);
        return;
    }
    LEAVE(row_first + part_row, column_first + part_column)
}
