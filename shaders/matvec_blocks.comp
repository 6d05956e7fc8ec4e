// MATMUL of one row by weights in blocks of 32, Q4_0 or Q8_0: 32 lanes have EACH columns, a lane two
// neighbouring blocks at a time, which begin at a multiple of four bytes. Whole numbers become floats
// without a conversion, which is slow on many devices: behind the bits of 2^23 they are its fraction.
#version 460
#extension GL_GOOGLE_include_directive : require
#define REAL_F32
#define FLOATS_ONLY
#define WITH_QUANTISED
#include "matrices.glsl"

const uint LANES = 32, EACH_MAX = 4, PAIR = 64, PITCH = 68, PIECE = 4096;
layout(local_size_x = 256) in;
layout(constant_id = 2) const uint EACH = 1;
const uint PAIR_WORDS = B_DTYPE == Q4_0 ? 9 : 17;

// The row in pairs of blocks, padded so that neighbouring lanes read from different banks.
shared vec4 row_piece[PIECE / PAIR * PITCH / 4];
shared float parts[EACH_MAX * 256];

layout(buffer_reference, scalar, buffer_reference_align = 4) restrict readonly buffer Pair {
    uint words[17];
};

const uint MAGIC = 0x4B000000u; // 2^23
vec4 of_magic(uvec4 bits, vec4 zero) {
    return uintBitsToFloat(bits | MAGIC) - zero;
}

// Words of four weights each whose nibbles are those of x and, 16 further, of y. Nibbles stay where
// they are, so x and y are divided by where that is.
float nibbles_times(uint word, vec4 x, vec4 y) {
    uint high = word >> 16;
    vec4 low_half = of_magic(uvec4(word & 0xFu, word & 0xF00u, high & 0xFu, high & 0xF00u),
                             vec4(8388616.0, 8390656.0, 8388616.0, 8390656.0));
    vec4 high_half = of_magic(uvec4(word & 0xF0u, word & 0xF000u, high & 0xF0u, high & 0xF000u),
                              vec4(8388736.0, 8421376.0, 8388736.0, 8421376.0));
    return dot(low_half, x) + dot(high_half, y);
}

float bytes_times(uint word, vec4 x) {
    uint bits = word ^ 0x80808080u;
    uvec4 each = uvec4(bits & 0xFFu, bits >> 8 & 0xFFu, bits >> 16 & 0xFFu, bits >> 24);
    return dot(of_magic(each, vec4(8388736.0)), x);
}

float half_value(uint bits) {
    return unpackHalf2x16(bits).x;
}

// The product of a pair of blocks with their part of the row.
float pair_times(Pair pair, vec4 x[16]) {
    float first = 0.0, second = 0.0;
    uint words[17];
    [[unroll]] for (uint i = 0; i < PAIR_WORDS; i++) words[i] = pair.words[i];
    // The first block's weights begin in the upper half of a word.
    if (B_DTYPE == Q4_0) {
        [[unroll]] for (uint i = 0; i < 4; i++) {
            first += nibbles_times(words[i] >> 16 | words[i + 1] << 16, x[i], x[i + 4]);
            second += nibbles_times(words[i + 5], x[i + 8], x[i + 12]);
        }
        return first * half_value(words[0]) + second * half_value(words[4] >> 16);
    }
    [[unroll]] for (uint i = 0; i < 8; i++) {
        first += bytes_times(words[i] >> 16 | words[i + 1] << 16, x[i]);
        second += bytes_times(words[i + 9], x[i + 8]);
    }
    return first * half_value(words[0]) + second * half_value(words[8] >> 16);
}

// Four numbers of the row, divided by where Q4_0 has its nibbles.
vec4 scaled_four(vec4 x, uint at) {
    if (B_DTYPE != Q4_0) return x;
    const vec4 low = vec4(1.0, 0.00390625, 1.0, 0.00390625);
    return (at & 16u) == 0 ? x * low : x * (low * 0.0625);
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    uint first_column = (gl_WorkGroupID.x * (256 / LANES) + thread / LANES) * EACH;
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    uint64_t at[EACH_MAX];
    float sums[EACH_MAX];
    [[unroll]] for (uint c = 0; c < EACH_MAX; c++) {
        uint column = min(first_column + c, n - 1);
        at[c] = b_address + uint64_t(weight_offset(b_base + int64_t(column) * b_column, B_DTYPE));
        sums[c] = 0.0;
    }
    for (uint k_first = 0; k_first < k; k_first += PIECE) {
        uint length = min(PIECE, k - k_first);
        barrier();
        for (uint i = 4 * thread; i < length; i += 4 * 256) {
            vec4 x = load4(element_address(a_address, a_base + int64_t(k_first + i), A_DTYPE), A_DTYPE);
            row_piece[(i / PAIR * PITCH + i % PAIR) / 4] = scaled_four(x, i);
        }
        barrier();
        for (uint pair = lane; pair < length / PAIR; pair += LANES) {
            vec4 x[16];
            [[unroll]] for (uint i = 0; i < 16; i++) x[i] = row_piece[pair * (PITCH / 4) + i];
            uint64_t offset = uint64_t((k_first / PAIR + pair) * PAIR_WORDS * 4);
            [[unroll]] for (uint c = 0; c < EACH_MAX; c++)
                if (c < EACH) sums[c] += pair_times(Pair(at[c] + offset), x);
        }
    }
    [[unroll]] for (uint c = 0; c < EACH_MAX; c++)
        if (c < EACH) parts[c * 256 + thread] = sums[c];
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        barrier();
        for (uint c = 0; c < EACH; c++)
            if (lane < apart) parts[c * 256 + thread] += parts[c * 256 + thread + apart];
    }
    barrier();
    if (lane < EACH && first_column + lane < n)
        store(out_address, out_base + int64_t(first_column + lane), OUT_DTYPE,
              parts[lane * 256 + thread - lane]);
}
