// MATMUL with few rows of a. With DOT, b's columns are contiguous along k (a transposed weight): a
// team of LANES threads makes the dot products of EACH columns with all rows, eight numbers of each
// column at a time, which it asks for before it computes. Otherwise b's rows are contiguous: a
// thread has a column, and the group's parts of k are added in order.
#include "types.glsl"
#include "host/matvec.h"
#include "lanes.glsl"
#include "joins.glsl"

const uint GROUP = 256, ROWS_MAX = 8, EACH_MAX = 4, RESULTS_MAX = 8;
layout(local_size_x = 256) in;
// Bit 0: a comes in fours, bit 1: b in fours, bit 2: b in eights.
const uint HALF = PAIRED ? EACH / 2 : EACH;
const uint LANES = GROUP / TEAMS, RESULTS = ROWS * EACH;
const bool A_FOURS = (VECTORS & 1u) != 0, B_FOURS = (VECTORS & 2u) != 0;
const bool B_HALVES = (VECTORS & 4u) != 0 && B_DTYPE == FLOAT16;

// Sums of a team: of row r and column c number r * EACH + c.
struct Sums {
    float of[RESULTS_MAX];
};
shared Sums slots[GROUP / 4]; // subgroups have four threads or more
shared float parts[GROUP];

Sums combine(uint how, Sums a, Sums b) {
    for (uint i = 0; i < RESULTS; i++) a.of[i] += b.of[i];
    return a;
}

Sums sums_beside(Sums mine, uint apart) {
    Sums other;
    for (uint i = 0; i < RESULTS; i++) other.of[i] = subgroupShuffleXor(mine.of[i], apart);
    return other;
}
JOIN_LANES(join_lanes, Sums, slots, combine, sums_beside)

float sum_at(Sums sums, uint which) {
    float sum = sums.of[0];
    for (uint i = 1; i < RESULTS; i++) sum = i == which ? sums.of[i] : sum;
    return sum;
}

vec4 load_four(uint64_t address, uint dtype, bool vector) {
    if (vector) return load4(address, dtype);
    return vec4(load(address, 0L, dtype), load(address, 1L, dtype), load(address, 2L, dtype),
                load(address, 3L, dtype));
}

void load_eight(uint64_t address, out vec4 first, out vec4 second) {
    if (B_HALVES) {
        uvec4 words = Word4(address).v;
        first = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
        second = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
        return;
    }
    first = load_four(address, B_DTYPE, B_FOURS);
    second = load_four(address + uint64_t(4 * element_bytes(B_DTYPE)), B_DTYPE, B_FOURS);
}

// The columns' eights number `eight`, times the rows'.
void add_eights(inout Sums sums, uint64_t columns[EACH_MAX], uint64_t row, uint eight) {
    vec4 weights[2 * EACH_MAX];
    uint64_t from = uint64_t(8 * element_bytes(B_DTYPE)) * uint64_t(eight);
    for (uint c = 0; c < EACH; c++) load_eight(columns[c] + from, weights[2 * c], weights[2 * c + 1]);
    row += uint64_t(8 * element_bytes(A_DTYPE)) * uint64_t(eight);
    for (uint r = 0; r < ROWS; r++) {
        vec4 x = load_four(row, A_DTYPE, A_FOURS);
        vec4 y = load_four(row + uint64_t(4 * element_bytes(A_DTYPE)), A_DTYPE, A_FOURS);
        for (uint c = 0; c < EACH; c++)
            sums.of[r * EACH + c] += dot(x, weights[2 * c]) + dot(y, weights[2 * c + 1]);
        row += uint64_t(element_bytes(A_DTYPE)) * uint64_t(a_row);
    }
}

// Number `at` of the columns, times the rows'.
void add_ones(inout Sums sums, uint64_t columns[EACH_MAX], uint64_t row, uint at) {
    for (uint c = 0; c < EACH; c++) {
        float weight = load(columns[c], int64_t(at), B_DTYPE);
        for (uint r = 0; r < ROWS; r++)
            sums.of[r * EACH + c] += weight * load(row, int64_t(r) * a_row + int64_t(at), A_DTYPE);
    }
}

// Column `c` of a team whose first one is `first`, and its matrix.
uint column_of(uint first, uint c) {
    return first + (PAIRED && c >= HALF ? c - HALF : c);
}
uint64_t matrix_of(uint c) {
    return PAIRED && c >= HALF ? other_b : b_address;
}

void dot_products(int64_t a_base, int64_t b_base, int64_t out_base) {
    uint thread = thread_number(), lane = thread % LANES;
    uint first_column = (gl_WorkGroupID.x * TEAMS + thread / LANES) * HALF;
    uint64_t columns[EACH_MAX], row = element_address(a_address, a_base, A_DTYPE);
    Sums sums;
    for (uint i = 0; i < RESULTS; i++) sums.of[i] = 0.0;
    for (uint c = 0; c < EACH; c++) {
        int64_t column = int64_t(min(column_of(first_column, c), n - 1));
        columns[c] = element_address(matrix_of(c), b_base + column * b_column, B_DTYPE);
    }
    // The result that this thread stores.
    uint mine = min(lane, RESULTS - 1), c = mine % EACH, column = column_of(first_column, c);
    bool stores = lane < RESULTS && column < n;
    int64_t at = out_base + int64_t(mine / EACH) * int64_t(n) + int64_t(min(column, n - 1));
    float adjacent = adjacent_at(at);
    for (uint eight = lane; eight < k / 8; eight += LANES) add_eights(sums, columns, row, eight);
    for (uint one = k / 8 * 8 + lane; one < k; one += LANES) add_ones(sums, columns, row, one);
    sums = join_lanes(0, sums, LANES);
    if (PAIRED) adjacent = sum_at(sums, min(mine + HALF, RESULTS - 1));
    if (!stores) return;
    if (PAIRED && c >= HALF) store_other(at, sum_at(sums, mine));
    else store_result(at, sum_at(sums, mine), adjacent);
}

// Columns side by side, and k in TEAMS parts.
void columns_of_rows(int64_t a_base, int64_t b_base, int64_t out_base) {
    uint thread = gl_LocalInvocationID.x, part = thread / LANES;
    uint column = gl_WorkGroupID.x * LANES + thread % LANES;
    float sums[ROWS_MAX];
    for (uint row = 0; row < ROWS; row++) sums[row] = 0.0;
    if (column < n) {
        for (uint at = part; at < k; at += TEAMS) {
            int64_t b_at = b_base + int64_t(at) * b_row + int64_t(column) * b_column;
            float weight = load(b_address, b_at, B_DTYPE);
            for (uint row = 0; row < ROWS; row++) {
                int64_t a_at = a_base + int64_t(row) * a_row + int64_t(at) * a_column;
                sums[row] += weight * load(a_address, a_at, A_DTYPE);
            }
        }
    }
    for (uint row = 0; row < ROWS; row++) {
        barrier();
        parts[thread] = sums[row];
        barrier();
        if (part != 0 || column >= n) continue;
        float sum = 0.0;
        for (uint i = 0; i < TEAMS; i++) sum += parts[thread + i * LANES];
        store(out_address, out_base + int64_t(row) * int64_t(n) + int64_t(column), OUT_DTYPE, sum);
    }
}

void main() {
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    if (DOT)
        dot_products(a_base, b_base, out_base);
    else
        columns_of_rows(a_base, b_base, out_base);
}
