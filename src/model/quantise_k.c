// Numbers to the blocks of 256 of GGUF's K types: groups of 16 or 32 numbers get a scale, or a
// scale and a minimum, by weighted least squares over a few candidates (formulas: ggml,
// quantize_row_*_K_ref); these are rounded themselves, and the numbers by what they became.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/status.h"
#include "model/quantise.h"

enum { BLOCK = 256 };

static int nearest(float x) {
    return (int)lrintf(x);
}

static int clamped(float x, int low, int high) {
    int i = nearest(x);
    return i < low ? low : i > high ? high : i;
}

// --- a scale and a minimum: x is about scale * level - minimum

typedef struct AffineRule {
    int count, levels; // numbers of a group; levels go from 0 to this one
    float first;       // the first candidate's distance from as many levels
    int steps;         // candidates, a tenth apart
    bool absolute;     // errors count by their size, not their square
} AffineRule;

// What levels of a group amount to: weighted sums, and the errors of a fit.
typedef struct AffineFit {
    const AffineRule *rule;
    const float *x, *weights;
    float sum_w, sum_x, low, scale;
    uint8_t *levels;
} AffineFit;

static float weighted_error(const AffineFit *fit, const uint8_t *levels, float scale, float low) {
    ASSERT(fit->rule->count <= 32);
    float sum = 0;
    for (int i = 0; i < fit->rule->count; i++) {
        float difference = scale * (float)levels[i] + low - fit->x[i];
        sum +=
            fit->weights[i] * (fit->rule->absolute ? fabsf(difference) : difference * difference);
    }
    return sum;
}

// The levels by one candidate, and the best scale and minimum for them. False when there is none.
static bool try_candidate(const AffineFit *fit, float inverse, uint8_t *levels, float *scale,
                          float *low) {
    ASSERT(fit->rule->levels > 0);
    float sum_l = 0, sum_ll = 0, sum_xl = 0;
    for (int i = 0; i < fit->rule->count; i++) {
        levels[i] = (uint8_t)clamped(inverse * (fit->x[i] - fit->low), 0, fit->rule->levels);
        float weighted = fit->weights[i] * (float)levels[i];
        sum_l += weighted;
        sum_ll += weighted * (float)levels[i];
        sum_xl += weighted * fit->x[i];
    }
    float determinant = fit->sum_w * sum_ll - sum_l * sum_l;
    if (!(determinant > 0)) return false;
    *scale = (fit->sum_w * sum_xl - fit->sum_x * sum_l) / determinant;
    *low = (sum_ll * fit->sum_x - sum_l * sum_xl) / determinant;
    if (*low > 0) {
        *low = 0;
        *scale = sum_xl / sum_ll;
    }
    return true;
}

static void search_affine(AffineFit *fit, float high) {
    ASSERT(fit->rule->count <= 32);
    const AffineRule *rule = fit->rule;
    float best = weighted_error(fit, fit->levels, fit->scale, fit->low);
    for (int step = 0; step <= rule->steps; step++) {
        uint8_t levels[32];
        float scale, low;
        float inverse =
            (rule->first + 0.1f * (float)step + (float)rule->levels) / (high - fit->low);
        if (!try_candidate(fit, inverse, levels, &scale, &low)) continue;
        float error = weighted_error(fit, levels, scale, low);
        if (!(error < best)) continue;
        memcpy(fit->levels, levels, (size_t)rule->count);
        best = error;
        fit->scale = scale;
        fit->low = low;
    }
}

// Returns the scale; *minimum is what is taken away.
static float fit_affine(const AffineRule *rule, const float *x, const float *weights,
                        uint8_t *levels, float *minimum) {
    ASSERT(rule->count > 0 && rule->count <= 32);
    AffineFit fit = {.rule = rule, .x = x, .weights = weights, .low = x[0], .levels = levels};
    float high = x[0];
    for (int i = 0; i < rule->count; i++) {
        if (x[i] < fit.low) fit.low = x[i];
        if (x[i] > high) high = x[i];
        fit.sum_w += weights[i];
        fit.sum_x += weights[i] * x[i];
    }
    if (fit.low > 0) fit.low = 0;
    if (high - fit.low < 1e-10f) {
        memset(levels, 0, (size_t)rule->count);
    } else {
        float inverse = (float)rule->levels / (high - fit.low);
        fit.scale = 1 / inverse;
        for (int i = 0; i < rule->count; i++)
            levels[i] = (uint8_t)clamped(inverse * (x[i] - fit.low), 0, rule->levels);
        search_affine(&fit, high);
    }
    *minimum = -fit.low;
    return fit.scale;
}

// --- a scale alone: x is about scale * level, levels from -reach to reach - 1

static float largest(const float *x, int count) {
    ASSERT(count > 0);
    float best = 0;
    for (int i = 0; i < count; i++)
        if (fabsf(x[i]) > fabsf(best)) best = x[i];
    return best;
}

enum { GROUP = 16 };
static const float NOTHING = 1e-15f; // groups whose numbers are below it are zeros

static void products_at(const float *x, float inverse, int reach, float *sum_xl, float *sum_ll) {
    *sum_xl = *sum_ll = 0;
    for (int i = 0; i < GROUP; i++) {
        float level = (float)clamped(inverse * x[i], -reach, reach - 1), weight = x[i] * x[i];
        *sum_xl += weight * x[i] * level;
        *sum_ll += weight * level * level;
    }
}

static void set_levels(const float *x, float inverse, int reach, int8_t *levels) {
    for (int i = 0; i < GROUP; i++)
        levels[i] = (int8_t)(clamped(inverse * x[i], -reach, reach - 1) + reach);
}

// The best of 19 candidates, a tenth of a level apart.
static float fit_symmetric(const float *x, int reach, int8_t *levels) {
    ASSERT(reach > 0);
    float extreme = largest(x, GROUP), sum_xl, sum_ll;
    memset(levels, 0, GROUP);
    if (fabsf(extreme) < NOTHING) return 0;
    float inverse = -(float)reach / extreme;
    set_levels(x, inverse, reach, levels);
    products_at(x, inverse, reach, &sum_xl, &sum_ll);
    float scale = sum_ll != 0 ? sum_xl / sum_ll : 0, best = scale * sum_xl;
    for (int step = -9; step <= 9; step++) {
        if (step == 0) continue;
        inverse = -((float)reach + 0.1f * (float)step) / extreme;
        products_at(x, inverse, reach, &sum_xl, &sum_ll);
        if (!(sum_ll > 0 && sum_xl * sum_xl > best * sum_ll)) continue;
        set_levels(x, inverse, reach, levels);
        scale = sum_xl / sum_ll;
        best = scale * sum_xl;
    }
    return scale;
}

// One number after another to the level that is best for the scale of the others, five times.
static float fit_one_by_one(const float *x, int reach, int8_t *levels) {
    ASSERT(reach > 0);
    float extreme = largest(x, GROUP), sum_xl, sum_ll;
    memset(levels, 0, GROUP);
    if (fabsf(extreme) < NOTHING) return 0;
    float inverse = -(float)reach / extreme;
    products_at(x, inverse, reach, &sum_xl, &sum_ll);
    for (int i = 0; i < GROUP; i++) levels[i] = (int8_t)clamped(inverse * x[i], -reach, reach - 1);
    bool changed = true;
    for (int pass = 0; pass < 5 && changed; pass++) {
        changed = false;
        for (int i = 0; i < GROUP; i++) {
            float weight = x[i] * x[i], level = (float)levels[i];
            float other_xl = sum_xl - weight * x[i] * level;
            if (!(other_xl > 0)) continue;
            float other_ll = sum_ll - weight * level * level;
            int better = clamped(x[i] * other_ll / other_xl, -reach, reach - 1);
            if (better == levels[i]) continue;
            other_xl += weight * x[i] * (float)better;
            other_ll += weight * (float)better * (float)better;
            if (!(other_ll > 0 && other_xl * other_xl * sum_ll > sum_xl * sum_xl * other_ll))
                continue;
            levels[i] = (int8_t)better;
            sum_xl = other_xl;
            sum_ll = other_ll;
            changed = true;
        }
    }
    for (int i = 0; i < GROUP; i++) levels[i] = (int8_t)(levels[i] + reach);
    return sum_xl / sum_ll;
}

// --- what blocks share

static bool put_half(uint8_t *out, float value, float *stored) {
    uint16_t half = half_from_float(value);
    memcpy(out, &half, sizeof half);
    *stored = half_to_float(half);
    return isfinite(*stored);
}

static float maximum_of(const float *x, int count) {
    ASSERT(count > 0);
    float best = 0;
    for (int i = 0; i < count; i++)
        if (x[i] > best) best = x[i];
    return best;
}

// Levels of a group whose scale and minimum were rounded; those of a scale of 0 stay.
static void level_again(const AffineRule *rule, const float *x, float scale, float minimum,
                        uint8_t *levels) {
    ASSERT(rule->count > 0);
    if (scale == 0) return;
    for (int i = 0; i < rule->count; i++)
        levels[i] = (uint8_t)clamped((x[i] + minimum) / scale, 0, rule->levels);
}

static void level_again_signed(const float *x, float scale, int reach, int8_t *levels) {
    ASSERT(reach > 0);
    if (scale == 0) return;
    for (int i = 0; i < GROUP; i++)
        levels[i] = (int8_t)(clamped(x[i] / scale, -reach, reach - 1) + reach);
}

// Two bits of each: of 128 numbers the groups of 32 take the bits from the lowest up.
static void pack_pairs(const uint8_t *levels, int shift, uint8_t *out) {
    ASSERT(shift >= 0 && shift <= 6);
    for (int i = 0; i < BLOCK / 4; i++) {
        const uint8_t *first = levels + i / 32 * 128 + i % 32;
        unsigned byte = 0;
        for (int j = 0; j < 4; j++) byte |= (unsigned)(first[j * 32] >> shift & 3) << j * 2;
        out[i] = (uint8_t)byte;
    }
}

// --- the formats: false when a scale does not fit into float16

bool quantise_q2_k(const float *x, uint8_t *out) {
    static const AffineRule rule = {16, 3, -0.5f, 15, true};
    float scales[16], minima[16], weights[16], d, least;
    uint8_t levels[BLOCK];
    for (int g = 0; g < 16; g++) {
        for (int i = 0; i < 16; i++) weights[i] = fabsf(x[g * 16 + i]);
        scales[g] = fit_affine(&rule, x + g * 16, weights, levels + g * 16, &minima[g]);
    }
    float most = maximum_of(scales, 16), most_least = maximum_of(minima, 16);
    float inverse = most > 0 ? 15 / most : 0, inverse_least = most_least > 0 ? 15 / most_least : 0;
    for (int g = 0; g < 16; g++)
        out[g] = (uint8_t)(nearest(inverse * scales[g]) | nearest(inverse_least * minima[g]) << 4);
    bool fit = put_half(out + 80, most / 15, &d);
    fit &= put_half(out + 82, most_least / 15, &least);
    for (int g = 0; g < 16; g++)
        level_again(&rule, x + g * 16, d * (float)(out[g] & 15), least * (float)(out[g] >> 4),
                    levels + g * 16);
    pack_pairs(levels, 0, out + 16);
    return fit;
}

bool quantise_q3_k(const float *x, uint8_t *out) {
    float scales[16], d;
    int8_t levels[BLOCK];
    uint8_t *packed = out + 96;
    memset(out, 0, 110);
    for (int g = 0; g < 16; g++) scales[g] = fit_one_by_one(x + g * 16, 4, levels + g * 16);
    float extreme = largest(scales, 16), inverse = extreme != 0 ? -32 / extreme : 0;
    bool fit = put_half(out + 108, extreme != 0 ? 1 / inverse : 0, &d);
    for (int g = 0; g < 16; g++) {
        int scale = clamped(inverse * scales[g], -32, 31);
        if (extreme != 0) {
            packed[g % 8] |= (uint8_t)(((scale + 32) & 15) << g / 8 * 4);
            packed[8 + g % 4] |= (uint8_t)((scale + 32) >> 4 << g / 4 * 2);
        } else {
            scale = -32;
        }
        level_again_signed(x + g * 16, d * (float)scale, 4, levels + g * 16);
    }
    for (int i = 0; i < BLOCK; i++) out[i % 32] |= (uint8_t)(levels[i] >> 2 << i / 32);
    pack_pairs((const uint8_t *)levels, 0, out + 32);
    return fit;
}

// Q4_K and Q5_K: eight groups, whose scales and minima of 6 bits share 12 bytes.
static void pack_scales(int group, int scale, int minimum, uint8_t *packed) {
    ASSERT(group >= 0 && group < 8);
    if (group < 4) {
        packed[group] = (uint8_t)scale;
        packed[group + 4] = (uint8_t)minimum;
        return;
    }
    packed[group + 4] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    packed[group - 4] |= (uint8_t)(scale >> 4 << 6);
    packed[group] |= (uint8_t)(minimum >> 4 << 6);
}

static bool quantise_groups(const AffineRule *rule, const float *x, uint8_t *out, uint8_t *levels) {
    float scales[8], minima[8], weights[32], d, least;
    ASSERT(rule->count == 32);
    for (int g = 0; g < 8; g++) {
        const float *group = x + g * 32;
        float squares = 0;
        for (int i = 0; i < 32; i++) squares += group[i] * group[i];
        float mean = sqrtf(squares / 32);
        for (int i = 0; i < 32; i++) weights[i] = mean + fabsf(group[i]);
        scales[g] = fit_affine(rule, group, weights, levels + g * 32, &minima[g]);
    }
    float most = maximum_of(scales, 8), most_least = maximum_of(minima, 8);
    float inverse = most > 0 ? 63 / most : 0, inverse_least = most_least > 0 ? 63 / most_least : 0;
    bool fit = put_half(out, most / 63, &d);
    fit &= put_half(out + 2, most_least / 63, &least);
    for (int g = 0; g < 8; g++) {
        int scale = nearest(inverse * scales[g]), minimum = nearest(inverse_least * minima[g]);
        scale = scale > 63 ? 63 : scale;
        minimum = minimum > 63 ? 63 : minimum;
        pack_scales(g, scale, minimum, out + 4);
        level_again(rule, x + g * 32, d * (float)scale, least * (float)minimum, levels + g * 32);
    }
    return fit;
}

static void pack_nibbles(const uint8_t *levels, uint8_t *out) {
    for (int i = 0; i < BLOCK / 2; i++) {
        const uint8_t *first = levels + i / 32 * 64 + i % 32;
        out[i] = (uint8_t)((first[0] & 15) | (first[32] & 15) << 4);
    }
}

bool quantise_q4_k(const float *x, uint8_t *out) {
    static const AffineRule rule = {32, 15, -1, 20, false};
    uint8_t levels[BLOCK];
    bool fit = quantise_groups(&rule, x, out, levels);
    pack_nibbles(levels, out + 16);
    return fit;
}

bool quantise_q5_k(const float *x, uint8_t *out) {
    static const AffineRule rule = {32, 31, -0.5f, 15, false};
    uint8_t levels[BLOCK];
    bool fit = quantise_groups(&rule, x, out, levels);
    memset(out + 16, 0, 32);
    for (int i = 0; i < BLOCK; i++) out[16 + i % 32] |= (uint8_t)(levels[i] >> 4 << i / 32);
    pack_nibbles(levels, out + 48);
    return fit;
}

bool quantise_q6_k(const float *x, uint8_t *out) {
    float scales[16], d;
    int8_t levels[BLOCK];
    memset(out, 0, 210);
    for (int g = 0; g < 16; g++) scales[g] = fit_symmetric(x + g * 16, 32, levels + g * 16);
    float extreme = largest(scales, 16);
    if (fabsf(extreme) < NOTHING) return true;
    float inverse = -128 / extreme;
    bool fit = put_half(out + 208, 1 / inverse, &d);
    for (int g = 0; g < 16; g++) {
        int scale = nearest(inverse * scales[g]);
        scale = scale > 127 ? 127 : scale;
        out[192 + g] = (uint8_t)(int8_t)scale;
        level_again_signed(x + g * 16, d * (float)scale, 32, levels + g * 16);
    }
    for (int i = 0; i < BLOCK / 2; i++) {
        const int8_t *first = levels + i / 64 * 128 + i % 64;
        out[i] = (uint8_t)((first[0] & 15) | (first[64] & 15) << 4);
    }
    pack_pairs((const uint8_t *)levels, 4, out + 128);
    return fit;
}
