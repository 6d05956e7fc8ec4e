// MATMUL with few rows of a. With DOT, b's columns are contiguous along k (a transposed weight, also
// a quantised one): 32 lanes make the dot products of one column with all rows, eight numbers at a
// time. Otherwise b's rows are contiguous: a thread has a column, and the group's parts of k are
// added in order.
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

#ifdef WITH_QUANTISED
uint pair_of_shorts(uint64_t address) {
    return uint(Short(address).v) | uint(Short(address + 2UL).v) << 16;
}

vec4 signed_bytes(uint bits) {
    return vec4(bitfieldExtract(int(bits), 0, 8), bitfieldExtract(int(bits), 8, 8),
                bitfieldExtract(int(bits), 16, 8), bitfieldExtract(int(bits), 24, 8));
}

vec4 low_nibbles(uint bits) {
    return vec4(bits & 15u, bits >> 8 & 15u, bits >> 16 & 15u, bits >> 24 & 15u);
}

// Eight weights of a column: `first` are those from k_first on, `second` those from k_second on.
void eight_weights(uint64_t base, uint eight, out vec4 first, out vec4 second, out uint k_first,
                   out uint k_second) {
    k_first = eight * 8;
    k_second = k_first + 4;
    if (B_DTYPE == Q4_0) {
        uint64_t block = base + uint64_t(eight / 4) * 18UL;
        uint quarter = eight % 4;
        uint bits = pair_of_shorts(block + 2UL + uint64_t(quarter * 4));
        float d = half_at(block);
        first = (low_nibbles(bits) - 8.0) * d;
        second = (low_nibbles(bits >> 4) - 8.0) * d;
        k_first = eight / 4 * 32 + quarter * 4;
        k_second = k_first + 16;
    } else if (B_DTYPE == Q8_0) {
        uint64_t block = base + uint64_t(eight / 4) * 34UL, at = block + 2UL + uint64_t(eight % 4 * 8);
        float d = half_at(block);
        first = signed_bytes(pair_of_shorts(at)) * d;
        second = signed_bytes(pair_of_shorts(at + 4UL)) * d;
    } else if (B_DTYPE != Q6_K) {
        uint64_t block = base + uint64_t(weight_offset(int64_t(k_first), B_DTYPE));
        int64_t at = int64_t(k_first % block_elements(B_DTYPE));
        for (int i = 0; i < 4; i++) {
            first[i] = load_weight(block, at + int64_t(i), B_DTYPE);
            second[i] = load_weight(block, at + int64_t(i) + 4L, B_DTYPE);
        }
    } else {
        uint in_block = eight % 32, half_block = in_block / 16, quarter = in_block / 4 % 4;
        uint lane = in_block % 4 * 8;
        uint64_t block = base + uint64_t(eight / 32) * 210UL;
        uint64_t low = block + uint64_t(half_block * 64 + (quarter & 1u) * 32 + lane);
        uint64_t high = block + uint64_t(128 + half_block * 32 + lane);
        uint shift = (quarter & 2u) * 2, pair_shift = 2 * quarter;
        float scale = half_at(block + 208UL) * float(signed_byte(block + uint64_t(192 + in_block / 2)));
        uint low_a = pair_of_shorts(low) >> shift & 0x0F0F0F0Fu;
        uint low_b = pair_of_shorts(low + 4UL) >> shift & 0x0F0F0F0Fu;
        uint high_a = pair_of_shorts(high) >> pair_shift & 0x03030303u;
        uint high_b = pair_of_shorts(high + 4UL) >> pair_shift & 0x03030303u;
        first = (signed_bytes(low_a | high_a << 4) - 32.0) * scale;
        second = (signed_bytes(low_b | high_b << 4) - 32.0) * scale;
    }
}
#endif

void dot_products(uint column, int64_t a_base, int64_t b_base, int64_t out_base) {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    float sums[ROWS_MAX];
    for (uint row = 0; row < ROWS; row++) sums[row] = 0.0;
    bool a_vector = (VECTORS & 1u) != 0, b_vector = (VECTORS & 2u) != 0;
    int64_t b_column_base = b_base + int64_t(column) * b_column;
    if (column < n) {
        for (uint eight = lane; eight < k / 8; eight += LANES) {
            vec4 first, second;
            uint k_first = eight * 8, k_second = k_first + 4;
#ifdef WITH_QUANTISED
            eight_weights(b_address + uint64_t(weight_offset(b_column_base, B_DTYPE)), eight, first,
                          second, k_first, k_second);
#else
            first = load_four(b_address, b_column_base + int64_t(k_first), B_DTYPE, b_vector);
            second = load_four(b_address, b_column_base + int64_t(k_second), B_DTYPE, b_vector);
#endif
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
        barrier();
        parts[thread] = sums[row];
        for (uint apart = LANES / 2; apart > 0; apart /= 2) {
            barrier();
            if (lane < apart) parts[thread] += parts[thread + apart];
        }
        if (lane == 0 && column < n)
            store(out_address, out_base + int64_t(row) * int64_t(n) + int64_t(column), OUT_DTYPE,
                  parts[thread]);
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
