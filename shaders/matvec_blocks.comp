// MATMUL of up to ROWS rows by weights in blocks. A team of 32 lanes has EACH columns; a lane
// decodes units of 32 weights, neighbouring lanes neighbouring units: four steps of eight, four
// "low" weights and four "high" ones, which differ in the bits of the same bytes. The rows lie in
// shared memory in the order in which lanes want them. Sums are of whole numbers times the rows',
// so that factors and minima count once a unit.
#version 460
#extension GL_GOOGLE_include_directive : require
#define REAL_F32
#define FLOATS_ONLY
#define WITH_QUANTISED
#include "joins.glsl"

const uint LANES = 32, TEAMS = 8, GROUP = 256, EACH_MAX = 4, ROWS_MAX = 4, UNIT = 32, RUN = 1024;
layout(local_size_x = 256) in;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint EACH = 1;
layout(constant_id = 4) const uint PIECE_RUNS = 1;   // of RUN weights, whose rows are held at once
layout(constant_id = 5) const bool ALIGNED = true;   // columns begin at multiples of four bytes
layout(constant_id = 6) const uint SUPER_BYTES = 144; // of 256 weights
layout(constant_id = 7) const uint ROW_FOURS = 264;  // ROWS * PIECE_RUNS * 8 * PITCH
const uint PIECE = PIECE_RUNS * RUN;
const uint PITCH = 33; // of a step's lanes, so that neighbouring steps lie in different banks

shared vec4 row_fours[ROW_FOURS];
shared float table[16];
shared uint magic_passed;

const bool SMALL = B_DTYPE == Q4_0 || B_DTYPE == Q8_0 || B_DTYPE == Q4_1 || B_DTYPE == Q5_0 ||
                   B_DTYPE == Q5_1 || B_DTYPE == IQ4_NL; // blocks of 32
const bool PAIRS = B_DTYPE == Q2_K || B_DTYPE == Q3_K || B_DTYPE == TQ2_0; // of bits, below others
const bool TABLE = B_DTYPE == IQ4_NL || B_DTYPE == IQ4_XS;
const bool NIBBLES = B_DTYPE == Q4_0 || B_DTYPE == Q4_1 || B_DTYPE == Q4_K; // and nothing else
const bool MINIMA = B_DTYPE == Q4_1 || B_DTYPE == Q5_1 || B_DTYPE == Q2_K || B_DTYPE == Q4_K ||
                    B_DTYPE == Q5_K;
// The low and the high weights of a unit have different factors.
const bool SPLIT = B_DTYPE == Q6_K || PAIRS || B_DTYPE == Q4_K || B_DTYPE == Q5_K;
// What lies in blocks of 18, 22, 34, 54, 66, 110 or 210 bytes may begin in the middle of a word.
const uint WORD_RESTS = SMALL ? SUPER_BYTES & 31u : SUPER_BYTES & 3u;
const bool WHOLE_WORDS = ALIGNED && WORD_RESTS == 0, SPLIT_WORDS = ALIGNED && WORD_RESTS != 0;

// --- memory

// Where a block begins, or some run of 16 bytes of it: rounded down and up to words.
struct Place {
    uint64_t down, up;
    uint shift; // bits from there to the beginning, 0 or 16
};

Place place_at(uint64_t address) {
    uint odd = SPLIT_WORDS ? uint(address) & 2u : 0;
    return Place(address - uint64_t(odd), address + uint64_t(odd), 8 * odd);
}

uint word_between(uint low, uint high, uint shift) {
    return uint(packUint2x32(uvec2(low, high)) >> shift);
}

// Word `step` of the four from `at` on: all are read that begin before the end, and none behind it.
// Without ALIGNED `down` is the address itself.
uint word_at(Place place, uint at, uint step) {
    uint64_t from = uint64_t(at + 4 * step);
    if (WHOLE_WORDS) return Word(place.down + from).v;
    if (!ALIGNED)
        return uint(Short(place.down + from).v) | uint(Short(place.down + from + 2UL).v) << 16;
    bool inside = step < 3;
    if ((at & 2u) == 0) {
        uint high = Word(inside ? place.down + from + 4UL : place.up + from).v;
        return word_between(Word(place.down + from).v, high, place.shift);
    }
    uint high = Word(inside ? place.up + from + 2UL : place.down + from + 2UL).v;
    return word_between(Word(place.up + from - 2UL).v, high, 16 - place.shift);
}

Place moved(Place place, uint bytes) {
    return Place(place.down + uint64_t(bytes), place.up + uint64_t(bytes), place.shift);
}

// A word by itself.
uint lone_word(Place place, uint at) {
    return word_at(place, at - 12, 3);
}

float half_at_byte(uint64_t block, uint at) {
    return unpackHalf2x16(uint(Short(block + uint64_t(at)).v)).x;
}

uint byte_of(uint64_t block, uint at) {
    return byte_at(block + uint64_t(at));
}

// --- numbers. Whole ones become floats without a conversion, which is slow on many devices: behind
// the bits of 2^23 they are its fraction.

const float ZERO = 8388608.0; // 2^23, whose bits are `magic`

// `magic` by way of shared memory. Of a register, unlike of a constant, compilers put bits in and
// mask others out in one instruction.
uint magic_bits;

// The bytes of a word less `zero`; the second and the fourth 256 times as large.
vec4 of_bytes(uint word, float zero) {
    uint high = word >> 16;
    uvec4 bits = uvec4(word & 0xFFu, word & 0xFF00u, high & 0xFFu, high & 0xFF00u) | magic_bits;
    return uintBitsToFloat(bits) - vec2(ZERO + zero, ZERO + zero * 256.0).xyxy;
}

// Nibbles stay where they are: the high ones are another 16 times as large.
void of_nibbles(uint word, float zero, out vec4 low, out vec4 high) {
    uint upper = word >> 16;
    uvec4 lows = uvec4(word & 0xFu, word & 0xF00u, upper & 0xFu, upper & 0xF00u) | magic_bits;
    uvec4 highs = uvec4(word & 0xF0u, word & 0xF000u, upper & 0xF0u, upper & 0xF000u) | magic_bits;
    low = uintBitsToFloat(lows) - vec2(ZERO + zero, ZERO + zero * 256.0).xyxy;
    high = uintBitsToFloat(highs) - vec2(ZERO + zero * 16.0, ZERO + zero * 4096.0).xyxy;
}

// By what the numbers of a row are multiplied for that.
vec4 scale_of(bool high) {
    if (TABLE) return vec4(1.0);
    float first = NIBBLES && high ? 0.0625 : 1.0;
    return vec2(first, first * 0.00390625).xyxy;
}

vec4 of_table(uint word) {
    return vec4(table[word & 15u], table[word >> 8 & 15u], table[word >> 16 & 15u],
                table[word >> 24 & 15u]);
}

// The lowest four bits, each as the bit 4 of a byte.
uint spread_bits(uint bits) {
    return ((bits & 15u) * 0x00204081u & 0x01010101u) << 4;
}

// The first base-3 digit of each byte, as a fraction of 256, times `power`.
uint ternary_digits(uint word, uint power) {
    uint even = ((word & 0x00FF00FFu) * power & 0x00FF00FFu) * 3u >> 8 & 0x00030003u;
    uint odd = ((word >> 8 & 0x00FF00FFu) * power & 0x00FF00FFu) * 3u >> 8 & 0x00030003u;
    return even | odd << 8;
}

uint power_of_three(uint exponent) {
    return exponent == 0 ? 1u : exponent == 1 ? 3u : exponent == 2 ? 9u : exponent == 3 ? 27u : 81u;
}

// --- units: `block` is the block that holds it, `unit` its number there. See
// device/cpu/simd/blocks.h and blocks_more.h for what lies where.

struct Factors {
    float low, high, low_minimum, high_minimum;
    uint bits; // the fifth bits, where they lie in a word
};

void scales_of_q45_k(uint64_t block, Place place, uint unit, inout Factors f) {
    uint shift = (unit >> 1 & 1u) * 16u;
    uint first = lone_word(place, 4) >> shift, second = lone_word(place, 8) >> shift;
    uint third = lone_word(place, 12) >> shift;
    bool upper = unit >= 4;
    float least = half_at_byte(block, 2);
    uint scales = upper ? (third & 0x0F0Fu) | (first >> 2 & 0x3030u) : first & 0x3F3Fu;
    uint minima = upper ? (third >> 4 & 0x0F0Fu) | (second >> 2 & 0x3030u) : second & 0x3F3Fu;
    f.high = f.low * float(scales >> 8 & 0xFFu);
    f.low *= float(scales & 0xFFu);
    f.low_minimum = -least * float(minima & 0xFFu);
    f.high_minimum = -least * float(minima >> 8 & 0xFFu);
}

float scale_of_q3_k(uint64_t block, uint which) {
    uint low = byte_of(block, 96u + (which & 7u)) >> (which >> 3) * 4u & 15u;
    uint high = byte_of(block, 104u + (which & 3u)) >> (which >> 2) * 2u & 3u;
    return float(int(low | high << 4) - 32);
}

Factors factors_of(uint64_t block, uint unit) {
    Place place = place_at(block);
    Factors f = Factors(0.0, 0.0, 0.0, 0.0, 0u);
    const uint factor_at = B_DTYPE == Q6_K ? 208 : B_DTYPE == Q2_K ? 80 : B_DTYPE == Q3_K ? 108
                           : B_DTYPE == TQ1_0 ? 52 : B_DTYPE == TQ2_0 ? 64 : 0;
    float d = half_at_byte(block, factor_at);
    f.low = f.high = d;
    if (B_DTYPE == Q4_1 || B_DTYPE == Q5_1) f.low_minimum = f.high_minimum = half_at_byte(block, 2);
    if (B_DTYPE == Q5_0) f.bits = lone_word(place, 2);
    if (B_DTYPE == Q5_1) f.bits = lone_word(place, 4);
    if (B_DTYPE == Q4_K || B_DTYPE == Q5_K) scales_of_q45_k(block, place, unit, f);
    if (B_DTYPE == Q6_K) {
        uint which = 192u + (unit >> 2) * 8u + (unit & 3u);
        f.low = d * float(int(byte_of(block, which) << 24) >> 24);
        f.high = d * float(int(byte_of(block, which + 4u) << 24) >> 24);
    }
    uint which = (unit >> 1) * 4u + (unit & 1u); // of the pairs' groups of 16
    if (B_DTYPE == Q2_K) {
        uint low = byte_of(block, which), high = byte_of(block, which + 2u);
        float least = half_at_byte(block, 82);
        f.low = d * float(low & 15u);
        f.high = d * float(high & 15u);
        f.low_minimum = -least * float(low >> 4);
        f.high_minimum = -least * float(high >> 4);
    }
    if (B_DTYPE == Q3_K) {
        f.low = d * scale_of_q3_k(block, which);
        f.high = d * scale_of_q3_k(block, which + 2u);
    }
    if (B_DTYPE == IQ4_XS) {
        uint low = byte_of(block, 4u + (unit >> 1)) >> (unit & 1u) * 4u & 15u;
        uint high = byte_of(block, 2u + (unit >> 2)) >> (unit & 3u) * 2u & 3u;
        f.low = f.high = d * float(int(low | high << 4) - 32);
    }
    return f;
}

// The two runs of 16 bytes that a unit is read from; the second holds high bits, or high weights.
struct Runs {
    Place main, more;
};

Runs runs_of(uint64_t block, uint unit) {
    Place place = place_at(block);
    uint half_block = (unit >> 2) * 32u, side = (unit & 1u) * 16u;
    uint main = SMALL ? 0 : PAIRS ? half_block + side : unit * 16u, more = 0;
    if (B_DTYPE == Q6_K) more = half_block + side;
    if (B_DTYPE == Q5_K || B_DTYPE == Q3_K) more = side;
    if (B_DTYPE == TQ1_0) {
        main = unit < 5 ? 0 : 32;
        more = unit < 5 ? 16 : unit < 7 ? 32 : 36; // then its last word only
    }
    return Runs(moved(place, main), moved(place, more));
}

void pairs_at(Runs runs, uint unit, uint step, out vec4 low, out vec4 high) {
    const uint at = B_DTYPE == Q2_K ? 16 : B_DTYPE == Q3_K ? 32 : 0;
    uint word = word_at(runs.main, at, step) >> (unit >> 1 & 1u) * 4u;
    uint lows = word & 0x03030303u, highs = word >> 2 & 0x03030303u;
    float zero = B_DTYPE == TQ2_0 ? 1.0 : 0.0;
    if (B_DTYPE == Q3_K) {
        uint tops = word_at(runs.more, 0, step) >> (unit >> 1) * 2u;
        lows |= (tops & 0x01010101u) << 2;
        highs |= (tops & 0x02020202u) << 1;
        zero = 4.0;
    }
    low = of_bytes(lows, zero);
    high = of_bytes(highs, zero);
}

// Five digits of base 3 to a byte: see weight_of_tq1_0.
void ternaries_at(Runs runs, uint unit, uint step, out vec4 low, out vec4 high) {
    uint low_digit = unit < 5 ? unit : (unit - 5) * 2;
    uint high_digit = unit < 5 ? unit : unit < 7 ? low_digit + 1 : step;
    uint lows = word_at(runs.main, 0, step), highs = word_at(runs.more, 0, unit < 7 ? step : 3);
    low = of_bytes(ternary_digits(lows, power_of_three(low_digit)), 1.0);
    high = of_bytes(ternary_digits(highs, power_of_three(high_digit)), 1.0);
}

// The fifth and sixth bits of bytes.
void add_tops(Runs runs, uint unit, uint step, uint bits, inout uint lows, inout uint highs) {
    if (B_DTYPE == Q6_K) {
        uint tops = word_at(runs.more, 128, step) >> (unit & 2u);
        lows |= (tops & 0x03030303u) << 4;
        highs |= tops & 0x30303030u;
    } else if (B_DTYPE == Q5_K) {
        uint tops = word_at(runs.more, 16, step) >> (unit & 6u);
        lows |= (tops & 0x01010101u) << 4;
        highs |= (tops & 0x02020202u) << 3;
    } else {
        lows |= spread_bits(bits >> 4 * step);
        highs |= spread_bits(bits >> 16 + 4 * step);
    }
}

// Step `step` of a unit.
void eight_at(Runs runs, uint unit, uint step, uint bits, out vec4 low, out vec4 high) {
    if (PAIRS) {
        pairs_at(runs, unit, step, low, high);
        return;
    }
    if (B_DTYPE == TQ1_0) {
        ternaries_at(runs, unit, step, low, high);
        return;
    }
    const uint at = B_DTYPE == Q4_1 ? 4 : B_DTYPE == Q5_0 ? 6 : B_DTYPE == Q5_1 ? 8
                    : B_DTYPE == Q4_K ? 16 : B_DTYPE == Q5_K ? 48 : B_DTYPE == IQ4_XS ? 8
                    : B_DTYPE == Q6_K ? 0 : 2;
    uint word = word_at(runs.main, at, step);
    if (NIBBLES) {
        of_nibbles(word, B_DTYPE == Q4_0 ? 8.0 : 0.0, low, high);
    } else if (TABLE) {
        low = of_table(word);
        high = of_table(word >> 4);
    } else if (B_DTYPE == Q8_0) {
        low = of_bytes(word ^ 0x80808080u, 128.0);
        high = of_bytes(word_at(runs.main, at + 16, step) ^ 0x80808080u, 128.0);
    } else {
        uint lows = word & 0x0F0F0F0Fu, highs = word >> 4 & 0x0F0F0F0Fu;
        add_tops(runs, unit, step, bits, lows, highs);
        float zero = B_DTYPE == Q6_K ? 32.0 : B_DTYPE == Q5_0 ? 16.0 : 0.0;
        low = of_bytes(lows, zero);
        high = of_bytes(highs, zero);
    }
}

// Where four neighbours of a row, number `four` of 256, are wanted: the unit, its step, and whether
// they meet its high weights.
void place_of_four(uint four, out uint unit, out uint step, out uint high) {
    step = four & 3u;
    if (B_DTYPE == Q6_K) {
        unit = (four >> 5) * 4u + (four >> 2 & 3u);
        high = four >> 4 & 1u;
    } else if (PAIRS || B_DTYPE == Q4_K || B_DTYPE == Q5_K) {
        unit = (four >> 4) * 2u + (four >> 2 & 1u);
        high = four >> 3 & 1u;
    } else {
        unit = four >> 3;
        high = four >> 2 & 1u;
    }
}

// --- the work

vec4 row_four(int64_t row_base, uint at) {
    if (a_fours)
        return load4(element_address(a_address, row_base + int64_t(at), A_DTYPE), A_DTYPE);
    vec4 x;
    for (int j = 0; j < 4; j++)
        x[j] = load(a_address, row_base + int64_t(at + j) * a_column, A_DTYPE);
    return x;
}

// PIECE numbers of each row from `first` on.
void fetch_rows(uint first_row, int64_t a_base, uint first) {
    for (uint row = 0; row < ROWS; row++) {
        int64_t row_base = a_base + int64_t(min(first_row + row, m - 1)) * a_row;
        for (uint i = gl_LocalInvocationID.x; i < PIECE / 4; i += GROUP) {
            uint at = first + 4 * i, unit, step, high;
            if (at >= k) continue;
            place_of_four(i & 63u, unit, step, high);
            uint place = ((row * PIECE_RUNS + i / 256) * 8 + 2 * step + high) * PITCH;
            row_fours[place + (i / 64 & 3u) * 8 + unit] =
                row_four(row_base, at) * scale_of(high != 0);
        }
    }
}

// The block of this lane's first unit, per column; later of the next one.
uint64_t blocks[EACH_MAX];

void find_blocks(uint first_column, int64_t b_base) {
    uint lane = gl_LocalInvocationID.x % LANES;
    uint lane_bytes = SMALL ? lane * (SUPER_BYTES / 8) : lane / 8 * SUPER_BYTES;
    [[unroll]] for (uint c = 0; c < EACH; c++) {
        int64_t column = b_base + int64_t(min(first_column + c, n - 1)) * b_column;
        blocks[c] = b_address + uint64_t(weight_offset(column, B_DTYPE)) + uint64_t(lane_bytes);
    }
}

float sums[ROWS_MAX * EACH_MAX];

// This lane's unit of each column with run `run` of the rows' piece.
void add_units(uint run) {
    uint lane = gl_LocalInvocationID.x % LANES, unit = SMALL ? 0 : lane % 8;
    Factors factors[EACH_MAX];
    Runs runs[EACH_MAX];
    float low_sums[ROWS_MAX * EACH_MAX], high_sums[ROWS_MAX * EACH_MAX];
    vec2 row_sums[ROWS_MAX];
    [[unroll]] for (uint c = 0; c < EACH; c++) {
        factors[c] = factors_of(blocks[c], unit);
        runs[c] = runs_of(blocks[c], unit);
    }
    [[unroll]] for (uint i = 0; i < ROWS * EACH; i++) low_sums[i] = high_sums[i] = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS; r++) row_sums[r] = vec2(0.0);
    [[unroll]] for (uint step = 0; step < 4; step++) {
        vec4 low_x[ROWS_MAX], high_x[ROWS_MAX];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint at = ((r * PIECE_RUNS + run) * 8 + 2 * step) * PITCH + lane;
            low_x[r] = row_fours[at];
            high_x[r] = row_fours[at + PITCH];
            if (!MINIMA) continue;
            row_sums[r].x += dot(low_x[r], 1.0 / scale_of(false));
            row_sums[r].y += dot(high_x[r], 1.0 / scale_of(true));
        }
        [[unroll]] for (uint c = 0; c < EACH; c++) {
            vec4 low, high;
            eight_at(runs[c], unit, step, factors[c].bits, low, high);
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                uint i = r * EACH + c;
                vec4 x = low_x[r], y = high_x[r];
                float sum = low_sums[i];
                sum = low.x * x.x + (low.y * x.y + (low.z * x.z + (low.w * x.w + sum)));
                low_sums[i] = sum;
                if (SPLIT) sum = high_sums[i];
                sum = high.x * y.x + (high.y * y.y + (high.z * y.z + (high.w * y.w + sum)));
                if (SPLIT) high_sums[i] = sum;
                else low_sums[i] = sum;
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < EACH; c++) {
            uint i = r * EACH + c;
            float sum = factors[c].low * low_sums[i];
            if (SPLIT) sum += factors[c].high * high_sums[i];
            if (MINIMA)
                sum += factors[c].low_minimum * row_sums[r].x +
                       factors[c].high_minimum * row_sums[r].y;
            sums[i] += sum;
        }
    }
}

// The lanes' sums, added in the place of the rows.
void add_lanes() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    barrier();
    for (uint i = 0; i < ROWS * EACH; i++)
        row_fours[i * (GROUP / 4) + thread / 4][thread % 4] = sums[i];
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        barrier();
        uint other = thread + apart;
        for (uint i = 0; i < ROWS * EACH && lane < apart; i++) {
            sums[i] += row_fours[i * (GROUP / 4) + other / 4][other % 4];
            row_fours[i * (GROUP / 4) + thread / 4][thread % 4] = sums[i];
        }
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    uint first_row = gl_WorkGroupID.x % across * ROWS;
    uint first_column = (gl_WorkGroupID.x / across * TEAMS + thread / LANES) * EACH;
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    if (TABLE && thread < 16) {
        const uint values[4] = uint[](0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
        table[thread] = float(bitfieldExtract(int(values[thread / 4]), int(thread % 4) * 8, 8));
    }
    if (thread == 0) magic_passed = magic;
    [[unroll]] for (uint i = 0; i < ROWS * EACH; i++) sums[i] = 0.0;
    find_blocks(first_column, b_base);
    for (uint first = 0; first < k; first += PIECE) {
        barrier();
        fetch_rows(first_row, a_base, first);
        barrier();
        magic_bits = magic_passed;
        for (uint run = 0; run < PIECE_RUNS; run++) {
            if (first + run * RUN + lane * UNIT < k) add_units(run);
            [[unroll]] for (uint c = 0; c < EACH; c++)
                blocks[c] += uint64_t(RUN / 256 * SUPER_BYTES);
        }
    }
    add_lanes();
    if (lane > 0) return;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint c = 0; c < EACH; c++) {
            if (first_row + r >= m || first_column + c >= n) continue;
            int64_t at = out_base + int64_t(first_row + r) * int64_t(n) + int64_t(first_column + c);
            store_result(at, sums[r * EACH + c], beside_at(at));
        }
    }
}
