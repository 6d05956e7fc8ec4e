// Numbers to the blocks that GGUF stores: the table of formats, and the simple ones of 32 numbers,
// whose scale is read off the block's extremes. Knows no tensor.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "model/quantise.h"
#include "model/tensor_write.h"

enum { BLOCK = 32 };

// What a block is made of: x is about scale * q + offset with q from 0 to `levels`.
typedef struct BlockScale {
    float scale, offset;
} BlockScale;

// The number of largest magnitude, with its sign; the first of equals.
static float extreme(const float *x) {
    float best = 0.0f;
    for (int i = 0; i < BLOCK; i++)
        if (fabsf(x[i]) > fabsf(best)) best = x[i];
    return best;
}

// q in the middle of its range stands for 0, and 0 for the extreme number.
static BlockScale scale_symmetric(const float *x, int levels) {
    return (BlockScale){.scale = extreme(x) / -(float)((levels + 1) / 2), .offset = 0.0f};
}

// q from 0 to `levels` spans the block's numbers.
static BlockScale scale_affine(const float *x, int levels) {
    ASSERT(levels > 0);
    float low = x[0], high = x[0];
    for (int i = 1; i < BLOCK; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    return (BlockScale){.scale = (high - low) / (float)levels, .offset = low};
}

// 0 for a scale so small that float16 has none for it.
static float inverse_of(float scale) {
    float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    return isfinite(inverse) ? inverse : 0.0f;
}

static bool put_half(uint8_t *out, float value) {
    uint16_t half = half_from_float(value);
    memcpy(out, &half, sizeof half);
    return isfinite(half_to_float(half));
}

// The low four bits of a pair of numbers 16 apart share a byte; fifth bits are a word before them.
static void pack(const uint8_t *q, uint8_t *high_bits, uint8_t *nibbles) {
    uint32_t fifth = 0;
    for (int i = 0; i < BLOCK / 2; i++)
        nibbles[i] = (uint8_t)((q[i] & 15u) | (q[i + BLOCK / 2] & 15u) << 4);
    for (int i = 0; i < BLOCK; i++) fifth |= (uint32_t)(q[i] >> 4) << i;
    if (high_bits) memcpy(high_bits, &fifth, sizeof fifth);
}

// --- the formats: false when a scale does not fit into float16

typedef bool (*QuantiseBlock)(const float *x, uint8_t *out);

static bool quantise_small(const float *x, bool affine, int levels, uint8_t *out) {
    BlockScale block = affine ? scale_affine(x, levels) : scale_symmetric(x, levels);
    float inverse = inverse_of(block.scale);
    float half_above_zero = (affine ? 0.0f : (float)((levels + 1) / 2)) + 0.5f;
    uint8_t q[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        int level = (int)((x[i] - block.offset) * inverse + half_above_zero);
        q[i] = (uint8_t)(level > levels ? levels : level);
    }
    bool fits = put_half(out, block.scale);
    out += 2;
    if (affine) {
        fits &= put_half(out, block.offset);
        out += 2;
    }
    bool fifth = levels > 15;
    pack(q, fifth ? out : NULL, fifth ? out + 4 : out);
    return fits;
}

static bool quantise_q4_0(const float *x, uint8_t *out) {
    return quantise_small(x, false, 15, out);
}

static bool quantise_q4_1(const float *x, uint8_t *out) {
    return quantise_small(x, true, 15, out);
}

static bool quantise_q5_0(const float *x, uint8_t *out) {
    return quantise_small(x, false, 31, out);
}

static bool quantise_q5_1(const float *x, uint8_t *out) {
    return quantise_small(x, true, 31, out);
}

static bool quantise_q8_0(const float *x, uint8_t *out) {
    float scale = fabsf(extreme(x)) / 127.0f;
    float inverse = inverse_of(scale);
    for (int i = 0; i < BLOCK; i++) out[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
    return put_half(out, scale);
}

static const QuantiseBlock formats[DTYPE_COUNT] = {
    [DTYPE_Q4_0] = quantise_q4_0, [DTYPE_Q4_1] = quantise_q4_1, [DTYPE_Q5_0] = quantise_q5_0,
    [DTYPE_Q5_1] = quantise_q5_1, [DTYPE_Q8_0] = quantise_q8_0, [DTYPE_Q2_K] = quantise_q2_k,
    [DTYPE_Q3_K] = quantise_q3_k, [DTYPE_Q4_K] = quantise_q4_k, [DTYPE_Q5_K] = quantise_q5_k,
    [DTYPE_Q6_K] = quantise_q6_k,
};

bool quantise_can(DType dtype) {
    return formats[dtype] != NULL;
}

bool quantise_row(DType dtype, const float *numbers, int64_t count, uint8_t *blocks) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(numbers[i])) return false;
    bool fits = true;
    const DTypeInfo *info = &dtype_info[dtype];
    ASSERT(count >= 0 && count % info->block_elements == 0);
    for (int64_t i = 0; i < count / info->block_elements; i++)
        fits &= formats[dtype](numbers + i * info->block_elements, blocks + i * info->block_bytes);
    return fits;
}
