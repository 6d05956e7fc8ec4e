// MATMUL with few rows of a. With DOT, b's columns are contiguous along k (a transposed weight): 32
// lanes make the dot products of one column with all rows, eight numbers at a time. Otherwise b's
// rows are contiguous: a thread has a column, and the group's parts of k are added in order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "matrices.glsl"

const uint LANES = 32, COLUMNS = 8, ROWS_MAX = 8;
layout(local_size_x = 256) in;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool DOT = true;
layout(constant_id = 4) const uint VECTORS = 0; // bit 0: a in fours, bit 1: b in fours

shared float parts[256];

vec4 load_four(uint64_t address, int64_t at, uint dtype, bool vector) {
    if (vector) return load4(element_address(address, at, dtype), dtype);
    return vec4(load(address, at, dtype), load(address, at + 1L, dtype),
                load(address, at + 2L, dtype), load(address, at + 3L, dtype));
}

// The sum of `value` over a team's lanes, for its first lane.
float sum_of_lanes(float value) {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    barrier();
    parts[thread] = value;
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        barrier();
        if (lane < apart) parts[thread] += parts[thread + apart];
    }
    return parts[thread];
}

void dot_products(uint column, int64_t a_base, int64_t b_base, int64_t out_base) {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    float sums[ROWS_MAX];
    for (uint row = 0; row < ROWS; row++) sums[row] = 0.0;
    bool a_vector = (VECTORS & 1u) != 0, b_vector = (VECTORS & 2u) != 0;
    int64_t b_column_base = b_base + int64_t(column) * b_column;
    if (column < n) {
        for (uint eight = lane; eight < k / 8; eight += LANES) {
            uint k_first = eight * 8, k_second = k_first + 4;
            int64_t b_at = b_column_base + int64_t(k_first);
            vec4 first = load_four(b_address, b_at, B_DTYPE, b_vector);
            vec4 second = load_four(b_address, b_at + 4L, B_DTYPE, b_vector);
            for (uint row = 0; row < ROWS; row++) {
                int64_t at = a_base + int64_t(row) * a_row;
                vec4 x = load_four(a_address, at + int64_t(k_first), A_DTYPE, a_vector);
                vec4 y = load_four(a_address, at + int64_t(k_second), A_DTYPE, a_vector);
                sums[row] += dot(x, first) + dot(y, second);
            }
        }
        for (uint at = k / 8 * 8 + lane; at < k; at += LANES) {
            float weight = load(b_address, b_column_base + int64_t(at), B_DTYPE);
            for (uint row = 0; row < ROWS; row++)
                sums[row] +=
                    weight * load(a_address, a_base + int64_t(row) * a_row + int64_t(at), A_DTYPE);
        }
    }
    for (uint row = 0; row < ROWS; row++) {
        float sum = sum_of_lanes(sums[row]);
        if (lane == 0 && column < n)
            store(out_address, out_base + int64_t(row) * int64_t(n) + int64_t(column), OUT_DTYPE,
                  sum);
    }
}

// 32 columns, and k in eight parts.
void columns_of_rows(uint first_column, int64_t a_base, int64_t b_base, int64_t out_base) {
    uint thread = gl_LocalInvocationID.x, column = first_column + thread % LANES, part = thread / LANES;
    float sums[ROWS_MAX];
    for (uint row = 0; row < ROWS; row++) sums[row] = 0.0;
    if (column < n) {
        for (uint at = part; at < k; at += COLUMNS) {
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
        for (uint i = 0; i < COLUMNS; i++) sum += parts[thread + i * LANES];
        store(out_address, out_base + int64_t(row) * int64_t(n) + int64_t(column), OUT_DTYPE, sum);
    }
}

void main() {
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    if (DOT)
        dot_products(gl_WorkGroupID.x * COLUMNS + gl_LocalInvocationID.x / LANES, a_base, b_base,
                     out_base);
    else
        columns_of_rows(gl_WorkGroupID.x * LANES, a_base, b_base, out_base);
}
