// Units of 32 weights in blocks: how they are read, and taken apart into bytes that hold a weight,
// or bits of it. Knows no kernel.
#ifndef BLOCKS_GLSL
#define BLOCKS_GLSL

#include "matrices.glsl"

const bool SMALL = B_DTYPE == Q4_0 || B_DTYPE == Q8_0 || B_DTYPE == Q4_1 || B_DTYPE == Q5_0 ||
                   B_DTYPE == Q5_1 || B_DTYPE == IQ4_NL; // blocks of 32
const bool PAIRS = B_DTYPE == Q2_K || B_DTYPE == Q3_K || B_DTYPE == TQ2_0; // of bits, below others
const bool TABLE = B_DTYPE == IQ4_NL || B_DTYPE == IQ4_XS;
const bool NIBBLES = B_DTYPE == Q4_0 || B_DTYPE == Q4_1 || B_DTYPE == Q4_K; // and nothing else
const bool MINIMA = B_DTYPE == Q4_1 || B_DTYPE == Q5_1 || B_DTYPE == Q2_K || B_DTYPE == Q4_K ||
                    B_DTYPE == Q5_K;
// The low and the high weights of a unit have different factors.
const bool SPLIT = B_DTYPE == Q6_K || PAIRS || B_DTYPE == Q4_K || B_DTYPE == Q5_K;
// Blocks of 18, 22, 34, 54, 66, 110 or 210 bytes begin in the middle of words.
const bool HALF_WORDS = ((SMALL ? SUPER_BYTES / 8 : SUPER_BYTES) & 3u) != 0;

// Where the bits of low and high weights are in the lowest byte of a word, what high ones are then
// as large as, and what of all is 0.
const bool IN_PLACE = NIBBLES || B_DTYPE == Q2_K || B_DTYPE == TQ2_0;
const uint LOW_BITS = NIBBLES ? 0x0Fu : IN_PLACE ? 0x03u : 0xFFu;
const uint HIGH_BITS = NIBBLES ? 0xF0u : IN_PLACE ? 0x0Cu : 0xFFu;
const float HIGH_SIZE = NIBBLES ? 16.0 : PAIRS ? 4.0 : 1.0;
const float ZERO = B_DTYPE == Q4_0 ? 8.0 : B_DTYPE == Q5_0 ? 16.0 : B_DTYPE == Q6_K ? 32.0
                   : B_DTYPE == Q8_0 ? 128.0 : B_DTYPE == Q3_K ? 4.0
                   : B_DTYPE == TQ1_0 || B_DTYPE == TQ2_0 ? 1.0 : 0.0;
// The second and the fourth byte of a word, or of its upper half, stay where they are as well.
const float SECOND_SIZE = TABLE ? 1.0 : 256.0;

vec4 sizes_of(float first) {
    return vec2(first, first * SECOND_SIZE).xyxy;
}

// --- units of weights: `block` is the block that holds one, `unit` its number there. See
// device/cpu/simd/blocks.h and blocks_more.h for what lies where.

// What a unit is read from, as it lies: words that follow each other in `main` and `last`, or in
// `main`, `more` and `more_last`.
struct Raw {
    uvec4 main, more, head;
    uint last, more_last, rest;
    uint shift; // bits from the beginning of the words to that of the block
};

uint word_at(uint64_t address) {
    if (ALIGNED >= 4 || HALF_WORDS) return Word(address).v;
    return uint(Short(address).v) | uint(Short(address + 2UL).v) << 16;
}

uvec4 words_at(uint64_t address) {
    if (ALIGNED >= 16) return Word4(address).v;
    return uvec4(word_at(address), word_at(address + 4UL), word_at(address + 8UL),
                 word_at(address + 12UL));
}

uint byte_of(uint64_t block, uint at) {
    return byte_at(block + uint64_t(at));
}

uint short_of(uint64_t block, uint at) {
    return uint(Short(block + uint64_t(at)).v);
}

// Every word holds bytes of the block.
Raw fetch_small(uint64_t block, uint64_t down) {
    Raw raw;
    raw.more = raw.head = uvec4(0);
    raw.last = raw.more_last = raw.rest = 0;
    uint64_t from = down;
    if (B_DTYPE == Q5_0 || B_DTYPE == Q5_1 || B_DTYPE == Q4_1) {
        raw.head.x = word_at(down);
        from += 4UL;
    }
    if (B_DTYPE == Q5_1) {
        raw.head.y = word_at(from);
        from += 4UL;
    }
    raw.main = words_at(from);
    if (B_DTYPE == Q8_0) {
        raw.more = words_at(from + 16UL);
        raw.more_last = word_at(from + 32UL);
    } else if (HALF_WORDS) {
        raw.last = word_at(from + 16UL);
    }
    return raw;
}

Raw fetch_super(uint64_t block, uint64_t down, uint unit) {
    Raw raw;
    raw.more = raw.head = uvec4(0);
    raw.last = raw.more_last = raw.rest = 0;
    uint half_block = (unit >> 2) * 32u, side = (unit & 1u) * 16u;
    uint which = (unit >> 1) * 4u + (unit & 1u); // of the pairs' groups of 16
    uint main = PAIRS ? half_block + side : unit * 16u, more = side;
    if (B_DTYPE == Q4_K || B_DTYPE == Q5_K) raw.head = words_at(down);
    if (B_DTYPE == Q4_K || B_DTYPE == Q2_K) main += 16u;
    if (B_DTYPE == Q3_K) {
        main += 32u;
        raw.head = uvec4(short_of(block, 108u), byte_of(block, 96u + (which & 7u)),
                         byte_of(block, 96u + (which + 2u & 7u)), byte_of(block, 104u + (which & 3u)));
        raw.rest = byte_of(block, 104u + (which + 2u & 3u));
    }
    if (B_DTYPE == Q5_K) {
        main += 48u;
        more += 16u;
    }
    if (B_DTYPE == Q6_K) {
        uint scale = 192u + (unit >> 2) * 8u + (unit & 3u);
        more += 128u + half_block;
        raw.head.xyz = uvec3(short_of(block, 208u), byte_of(block, scale), byte_of(block, scale + 4u));
    }
    if (B_DTYPE == IQ4_XS) {
        main += 8u;
        raw.head.xy = uvec2(word_at(down), word_at(down + 4UL));
    }
    if (B_DTYPE == Q2_K)
        raw.head.xyz = uvec3(word_at(down + 80UL), byte_of(block, which), byte_of(block, which + 2u));
    if (B_DTYPE == TQ2_0) raw.head.x = short_of(block, 64u);
    if (B_DTYPE == TQ1_0) {
        main = unit < 5 ? 0 : 32;
        more = unit < 5 ? 16 : unit < 7 ? 32 : 36; // then its last word only
        raw.head.x = short_of(block, 52u);
    }
    raw.main = words_at(down + uint64_t(main));
    if (HALF_WORDS) raw.last = word_at(down + uint64_t(main + 16u));
    if (B_DTYPE == Q5_K || B_DTYPE == Q6_K || B_DTYPE == Q3_K || B_DTYPE == TQ1_0) {
        raw.more = words_at(down + uint64_t(more));
        if (HALF_WORDS) raw.more_last = word_at(down + uint64_t(more + 16u));
    }
    return raw;
}

Raw fetch(uint64_t block, uint unit) {
    uint odd = HALF_WORDS ? uint(block) & 2u : 0;
    uint64_t down = block - uint64_t(odd);
    Raw raw;
    if (SMALL) raw = fetch_small(block, down);
    else raw = fetch_super(block, down, unit);
    raw.shift = 8 * odd;
    return raw;
}

// The words `bits` behind the beginning of these.
uvec4 words_behind(uvec4 words, uint next, uint bits) {
    return uvec4(uint(packUint2x32(words.xy) >> bits), uint(packUint2x32(words.yz) >> bits),
                 uint(packUint2x32(words.zw) >> bits),
                 uint(packUint2x32(uvec2(words.w, next)) >> bits));
}

float low_half(uint word) {
    return unpackHalf2x16(word).x;
}

// A unit's weights are bytes, or some of their bits, times its factors plus its minima; low and
// high ones.
struct Weights {
    uvec4 low, high;
    vec2 factors, minima;
};

// The lowest four bits, each as the bit 4 of a byte.
uint spread_bits(uint bits) {
    return (bits & 15u) * 0x02040810u & 0x10101010u;
}

uvec4 spread_words(uint bits) {
    return uvec4(spread_bits(bits), spread_bits(bits >> 4), spread_bits(bits >> 8),
                 spread_bits(bits >> 12));
}

Weights weights_of_small(Raw raw) {
    Weights weights;
    uint bits = raw.shift + (HALF_WORDS ? 16 : 0); // behind the factor
    uvec4 words = raw.main;
    uint first = B_DTYPE == Q5_0 || B_DTYPE == Q5_1 || B_DTYPE == Q4_1 ? raw.head.x : raw.main.x;
    vec2 both = unpackHalf2x16(HALF_WORDS ? first >> raw.shift : first);
    if (HALF_WORDS) words = words_behind(words, B_DTYPE == Q8_0 ? raw.more.x : raw.last, bits);
    weights.factors = vec2(both.x);
    weights.minima = vec2(both.y);
    if (B_DTYPE == Q8_0) {
        weights.low = words ^ 0x80808080u;
        weights.high = words_behind(raw.more, raw.more_last, bits) ^ 0x80808080u;
        return weights;
    }
    weights.low = weights.high = words;
    if (TABLE || IN_PLACE) return weights;
    weights.low = words & 0x0F0F0F0Fu;
    weights.high = words >> 4 & 0x0F0F0F0Fu;
    uint fifth = raw.head.y;
    if (B_DTYPE == Q5_0) fifth = uint(packUint2x32(uvec2(raw.head.x, raw.main.x)) >> bits);
    weights.low |= spread_words(fifth);
    weights.high |= spread_words(fifth >> 16);
    return weights;
}

// Of Q4_K and Q5_K: scales and minima of 6 bits.
void scale_groups(uvec4 head, uint unit, inout Weights weights) {
    uint shift = (unit >> 1 & 1u) * 16u;
    uint first = head.y >> shift, second = head.z >> shift, third = head.w >> shift;
    bool upper = unit >= 4;
    vec2 both = unpackHalf2x16(head.x);
    uint scales = upper ? (third & 0x0F0Fu) | (first >> 2 & 0x3030u) : first & 0x3F3Fu;
    uint minima = upper ? (third >> 4 & 0x0F0Fu) | (second >> 2 & 0x3030u) : second & 0x3F3Fu;
    weights.factors = both.x * vec2(float(scales & 0xFFu), float(scales >> 8));
    weights.minima = -both.y * vec2(float(minima & 0xFFu), float(minima >> 8));
}

float scale_of_q3_k(uint low, uint high, uint unit) {
    uint scale = (low >> (unit >> 2) * 4u & 15u) | (high >> (unit >> 1) * 2u & 3u) << 4;
    return float(int(scale) - 32);
}

// Pairs stay where they are: the high ones are four times as large.
Weights weights_of_pairs(Raw raw, uvec4 words, uvec4 tops, uint unit) {
    Weights weights;
    weights.low = weights.high = words >> (unit >> 1 & 1u) * 4u;
    weights.factors = vec2(low_half(raw.head.x));
    weights.minima = vec2(0.0);
    if (B_DTYPE == Q3_K) {
        tops = tops >> (unit >> 1) * 2u;
        weights.low = (weights.low & 0x03030303u) | (tops << 2 & 0x04040404u);
        weights.high = (weights.high & 0x0C0C0C0Cu) | (tops << 3 & 0x10101010u);
        weights.factors *= vec2(scale_of_q3_k(raw.head.y, raw.head.w, unit),
                                scale_of_q3_k(raw.head.z, raw.rest, unit));
    }
    if (B_DTYPE == Q2_K) {
        float least = unpackHalf2x16(raw.head.x).y;
        weights.factors *= vec2(float(raw.head.y & 15u), float(raw.head.z & 15u));
        weights.minima = -least * vec2(float(raw.head.y >> 4), float(raw.head.z >> 4));
    }
    return weights;
}

// The digit of base 3 of each byte that comes first once the byte, a fraction of 256, is multiplied
// by `power`.
uvec4 ternary_digits(uvec4 words, uvec4 power) {
    uvec4 even = ((words & 0x00FF00FFu) * power & 0x00FF00FFu) * 3u >> 8 & 0x00030003u;
    uvec4 odd = ((words >> 8 & 0x00FF00FFu) * power & 0x00FF00FFu) * 3u & 0x03000300u;
    return even | odd;
}

uint power_of_three(uint exponent) {
    return exponent == 0 ? 1u : exponent == 1 ? 3u : exponent == 2 ? 9u : exponent == 3 ? 27u : 81u;
}

// Five digits to a byte: see weight_of_tq1_0.
Weights weights_of_ternaries(Raw raw, uvec4 words, uvec4 more, uint unit) {
    Weights weights;
    uint low_digit = unit < 5 ? unit : (unit - 5) * 2;
    uint high_digit = unit < 5 ? unit : low_digit + 1;
    uvec4 powers = uvec4(power_of_three(high_digit));
    if (unit == 7) {
        more = more.wwww;
        powers = uvec4(1u, 3u, 9u, 27u);
    }
    weights.low = ternary_digits(words, uvec4(power_of_three(low_digit)));
    weights.high = ternary_digits(more, powers);
    weights.factors = vec2(low_half(raw.head.x));
    weights.minima = vec2(0.0);
    return weights;
}

Weights weights_of_super(Raw raw, uint unit) {
    uvec4 words = raw.main, more = raw.more;
    if (HALF_WORDS) {
        words = words_behind(words, raw.last, raw.shift);
        more = words_behind(more, raw.more_last, raw.shift);
    }
    if (PAIRS) return weights_of_pairs(raw, words, more, unit);
    if (B_DTYPE == TQ1_0) return weights_of_ternaries(raw, words, more, unit);
    Weights weights;
    weights.low = weights.high = words;
    weights.minima = vec2(0.0);
    if (TABLE) {
        uint low = raw.head.y >> unit * 4u & 15u, high = raw.head.x >> 16 + unit * 2u & 3u;
        weights.factors = vec2(low_half(raw.head.x) * float(int(low | high << 4) - 32));
        return weights;
    }
    if (B_DTYPE == Q6_K || B_DTYPE == Q5_K) {
        weights.low = words & 0x0F0F0F0Fu;
        weights.high = words >> 4 & 0x0F0F0F0Fu;
    }
    if (B_DTYPE == Q6_K) {
        more = more >> (unit & 2u);
        weights.low |= more << 4 & 0x30303030u;
        weights.high |= more & 0x30303030u;
        vec2 scales = vec2(float(int(raw.head.y << 24) >> 24), float(int(raw.head.z << 24) >> 24));
        weights.factors = low_half(raw.head.x) * scales;
        return weights;
    }
    scale_groups(raw.head, unit, weights);
    if (B_DTYPE == Q5_K) {
        more = more >> (unit & 6u);
        weights.low |= more << 4 & 0x10101010u;
        weights.high |= more << 3 & 0x10101010u;
    }
    return weights;
}

Weights weights_of(Raw raw, uint unit) {
    if (SMALL) return weights_of_small(raw);
    return weights_of_super(raw, unit);
}

#endif
