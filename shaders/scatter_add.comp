// SCATTER that adds, in any order: sums of integers do not depend on theirs. "Others" as in
// scatter.comp; a place is one of the output's elements.
//   INTEGERS: atomic additions into the output
//   START:    sums are cleared; each group looks for the largest and the least exponent of its numbers
//   SMALL:    the largest exponent of all, and of numbers too small for sums of it, that of each place
//   NUMBERS:  numbers are added to the sums of their places, as integers; small ones to sums of theirs
//   RESULTS:  sums are added to the output
//   LISTS:    a workgroup adds up a list whose sums fit shared memory
// A float is an integer of 24 bits times a power of two. The sum of a list of n has 62 bits, so that
// 38 - log2(n) bits are left below its largest number: `shift`.
#extension GL_EXT_shader_atomic_int64 : require
#include "types.glsl"
#include "host/scatter_add.h"
#include "walk.glsl"
#include "sums.glsl"
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x_id = 0) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, INDEX_DTYPE = DTYPES >> 8;

#define EACH_NUMBER(k) [[unroll]] for (uint k = 0; k < ADD_EACH; k++)

uint other_of(uint number) {
    return ALONE ? 0 : ADJACENT ? number % count : number / length;
}

uint item_of(uint number) {
    return ALONE ? number : ADJACENT ? number / count : number % length;
}

uint index_of(uint other, uint item) {
    int64_t at = walk_offset(shape, 2, first_other + other) + int64_t(item) * index_stride;
    return uint(place_of(load_integer(index_address, at, INDEX_DTYPE), int64_t(size)));
}

int64_t source_of(uint other, uint item) {
    return walk_offset(shape, 1, first_other + other) + int64_t(item) * in_stride;
}

int64_t output_of(uint other, uint index) {
    return walk_offset(shape, 0, first_other + other) + int64_t(index) * out_stride;
}

#ifdef REAL_I64

void main() {
    uint first = uint(group_number()) * GROUP * ADD_EACH + gl_LocalInvocationID.x;
    for (uint k = 0; k < ADD_EACH; k++) {
        uint number = first + k * GROUP;
        if (number >= count * length) return;
        uint other = other_of(number), item = item_of(number);
        int64_t value = load(in_address, source_of(other, item), IN_DTYPE);
        uint64_t address =
            element_address(out_address, output_of(other, index_of(other, item)), OUT_DTYPE);
        if (OUT_DTYPE == INT64) atomicAdd(Long(address).v, uint64_t(value));
        else atomicAdd(Word(address).v, uint(value));
    }
}

#else

const uint INFINITE = 255, PLUS = 0x100u, MINUS = 0x200u, NONE = 0x400u; // NONE: not a number
const uint PLACES = WORDS / 3; // of a list
shared uint words[WORDS];

uint exponent_of(float x) {
    return max(floatBitsToUint(x) >> 23 & 255u, 1u);
}

bool is_zero(float x) { // also where the device takes subnormal numbers for 0
    return (floatBitsToUint(x) & 0x7FFFFFFFu) == 0;
}

uint flag_of(float x) {
    if (float_is_nan(x)) return NONE;
    return x > 0.0 ? PLUS : MINUS;
}

// x in units of 2^(exponent - shift - 150): to the nearest where that cuts bits off.
int64_t units_of(float x, uint exponent) {
    uint bits = floatBitsToUint(x), size = bits & 0x7FFFFFu;
    if ((bits >> 23 & 255u) != 0) size |= 0x800000u;
    int up = int(exponent_of(x) + shift) - int(exponent);
    int64_t units = 0L;
    if (up >= 0) units = int64_t(uint64_t(size) << up);
    else if (up >= -24) units = int64_t(uint64_t(size + (1u << (-up - 1)) >> -up));
    return bits >> 31 != 0 ? -units : units;
}

float times_power(float x, int exponent) { // by two factors that are normal numbers
    int first = exponent / 2;
    return x * power_of_two(first) * power_of_two(exponent - first);
}

Sum put_units(Sum sum, int64_t units, uint exponent) {
    int unit = int(exponent) - int(shift) - 150;
    int high = int(units >> 40);
    uint middle = uint(units >> 20) & 0xFFFFFu, low = uint(units) & 0xFFFFFu;
    sum = sum_put(sum, times_power(float(high), unit + 40));
    sum = sum_put(sum, times_power(float(middle), unit + 20));
    return sum_put(sum, times_power(float(low), unit));
}

float with_flags(Sum sum, uint flags) {
    if ((flags & NONE) != 0 || (flags & (PLUS | MINUS)) == (PLUS | MINUS)) return REAL_NAN;
    if ((flags & PLUS) != 0) return REAL_INFINITY;
    return (flags & MINUS) != 0 ? -REAL_INFINITY : real_of_sum(sum);
}

void put_result(int64_t at, Sum sum, uint flags) {
    float before = load(out_address, at, OUT_DTYPE);
    bool special = (flags & (PLUS | MINUS | NONE)) != 0;
    float result = special ? before + with_flags(sum, flags) : real_of_sum(sum_put(sum, before));
    store(out_address, at, OUT_DTYPE, result);
}

// --- sums in memory

uint place_in(uint other, uint index) {
    return ALONE ? index : ADJACENT ? index * count + other : other * size + index;
}

uvec2 largest_of_group(uvec2 mine) {
    mine = subgroupMax(mine);
    if (gl_SubgroupInvocationID == 0) {
        words[2 * gl_SubgroupID] = mine.x;
        words[2 * gl_SubgroupID + 1] = mine.y;
    }
    barrier();
    for (uint s = 0; s < gl_NumSubgroups; s++)
        mine = max(mine, uvec2(words[2 * s], words[2 * s + 1]));
    return mine;
}

uint64_t extremes_at(uint group) {
    return largest + uint64_t(group) * 4UL;
}

uint largest_of_all() {
    uint mine = 0;
    for (uint i = gl_LocalInvocationID.x; i < groups; i += GROUP)
        mine = max(mine, Word(extremes_at(i)).v & 255u);
    return largest_of_group(uvec2(mine, 0)).x;
}

uint largest_found() {
    return Word(extremes_at(groups)).v;
}

void start() {
    uint group = uint(group_number()), threads = groups * GROUP;
    uint thread = group * GROUP + gl_LocalInvocationID.x, last = count * length - 1;
    uint fours = (count * size * 3 + 3) / 4; // of words: sums and exponents
    for (uint i = thread; i < fours; i += threads) Word4(sums + uint64_t(i) * 16UL).v = uvec4(0);
    uvec2 mine = uvec2(1, 0); // the largest exponent, and 255 - the least
    for (uint first = group * GROUP * ADD_EACH; first <= last; first += threads * ADD_EACH) {
        float x[ADD_EACH];
        EACH_NUMBER(k) {
            uint number = min(first + k * GROUP + gl_LocalInvocationID.x, last);
            x[k] = load(in_address, source_of(other_of(number), item_of(number)), IN_DTYPE);
        }
        EACH_NUMBER(k) {
            uint exponent = exponent_of(x[k]);
            if (exponent == INFINITE) mine.y = 255u;
            else mine = max(mine, uvec2(exponent, is_zero(x[k]) ? 0u : 255u - exponent));
        }
    }
    mine = largest_of_group(mine);
    if (gl_LocalInvocationID.x == 0) Word(extremes_at(group)).v = mine.x | 255u - mine.y << 8;
}

uint64_t top_at(uint place) {
    return tops + uint64_t(place) * 4UL;
}

// What a sum of the largest exponent keeps no unit of.
bool is_small(uint exponent, uint top) {
    return exponent + shift < top;
}

// Whether the numbers of a group have one for look_at_small; what is infinite counts as 0.
bool has_small(uint group, uint top) {
    uint least = Word(extremes_at(group % groups)).v >> 8;
    return least == 0 || is_small(least, top);
}

void look_at_small(float x, uint place, uint top) {
    uint exponent = exponent_of(x);
    if (is_zero(x) || (exponent != INFINITE && !is_small(exponent, top))) return;
    if (exponent == INFINITE) {
        atomicOr(Word(top_at(place)).v, flag_of(x));
        return;
    }
    uint before = atomicMax(Word(top_at(place)).v, exponent);
    if (before == 0) Long(small_sums + uint64_t(place) * 8UL).v = 0UL;
}

void add_number(float x, uint place, uint top) {
    uint exponent = exponent_of(x);
    if (is_zero(x) || exponent == INFINITE) return;
    uint64_t to = sums;
    if (is_small(exponent, top)) {
        to = small_sums;
        top = Word(top_at(place)).v;
        if (top >= PLUS) return;
    }
    atomicAdd(Long(to + uint64_t(place) * 8UL).v, uint64_t(units_of(x, top)));
}

void look_at_numbers() {
    uint group = uint(group_number()), first = group * GROUP * ADD_EACH + gl_LocalInvocationID.x;
    uint top = largest_of_all(), last = count * length - 1;
    if (group == 0 && gl_LocalInvocationID.x == 0) Word(extremes_at(groups)).v = top;
    if (!has_small(group, top)) return;
    for (uint number = first; number <= min(first + (ADD_EACH - 1) * GROUP, last); number += GROUP) {
        uint other = other_of(number), item = item_of(number);
        float x = load(in_address, source_of(other, item), IN_DTYPE);
        if (exponent_of(x) == INFINITE || is_small(exponent_of(x), top))
            look_at_small(x, place_in(other, index_of(other, item)), top);
    }
}

void add_numbers() {
    uint first = uint(group_number()) * GROUP * ADD_EACH + gl_LocalInvocationID.x;
    uint top = largest_found(), last = count * length - 1, places[ADD_EACH];
    float x[ADD_EACH];
    EACH_NUMBER(k) {
        uint number = min(first + k * GROUP, last), other = other_of(number), item = item_of(number);
        x[k] = load(in_address, source_of(other, item), IN_DTYPE);
        places[k] = place_in(other, index_of(other, item));
    }
    EACH_NUMBER(k) {
        if (first + k * GROUP <= last) add_number(x[k], places[k], top);
    }
}

void put_results() {
    uint first = uint(group_number()) * GROUP * ADD_EACH + gl_LocalInvocationID.x;
    uint top = largest_found(), last = count * size - 1, tops_of[ADD_EACH];
    int64_t units_of_places[ADD_EACH];
    EACH_NUMBER(k) {
        uint place = min(first + k * GROUP, last);
        units_of_places[k] = int64_t(Long(sums + uint64_t(place) * 8UL).v);
        tops_of[k] = Word(top_at(place)).v;
    }
    EACH_NUMBER(k) {
        uint place = first + k * GROUP, own = tops_of[k];
        int64_t units = units_of_places[k];
        if (place > last) return;
        if (units == 0L && own == 0) continue;
        Sum sum = put_units(sum_of(R(0)), units, top);
        if (own != 0 && own < PLUS)
            sum = put_units(sum, int64_t(Long(small_sums + uint64_t(place) * 8UL).v), own);
        uint other = ALONE ? 0 : ADJACENT ? place % count : place / size;
        uint index = ALONE ? place : ADJACENT ? place / count : place % size;
        put_result(output_of(other, index), sum, own);
    }
}

// --- sums in shared memory: exponents or flags of all places, then low and high halves of sums

void add_in_list(float x, uint index) {
    uint top = words[index];
    if (is_zero(x) || top >= PLUS) return;
    uvec2 units = unpackUint2x32(uint64_t(units_of(x, top)));
    uint before = atomicAdd(words[PLACES + index], units.x);
    uint carry = before + units.x < units.x ? 1u : 0u;
    atomicAdd(words[2 * PLACES + index], units.y + carry);
}

void look_in_list(float x, uint index) {
    if (is_zero(x)) return;
    uint exponent = exponent_of(x);
    if (exponent == INFINITE) atomicOr(words[index], flag_of(x));
    else atomicMax(words[index], exponent);
}

void go_through_list(uint other, bool looks) {
    for (uint i = gl_LocalInvocationID.x; i < length; i += GROUP * ADD_EACH) {
        float x[ADD_EACH];
        uint indexes[ADD_EACH];
        EACH_NUMBER(k) {
            uint item = min(i + k * GROUP, length - 1);
            x[k] = load(in_address, source_of(other, item), IN_DTYPE);
            x[k] = i + k * GROUP < length ? x[k] : 0.0;
            indexes[k] = index_of(other, item);
        }
        EACH_NUMBER(k) {
            if (looks) look_in_list(x[k], indexes[k]);
            else add_in_list(x[k], indexes[k]);
        }
    }
}

void add_list(uint other) {
    for (uint i = gl_LocalInvocationID.x; i < 3 * PLACES; i += GROUP) words[i] = 0;
    barrier();
    go_through_list(other, true);
    barrier();
    go_through_list(other, false);
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < size; i += GROUP) {
        uint top = words[i];
        if (top == 0) continue;
        int64_t units = int64_t(packUint2x32(uvec2(words[PLACES + i], words[2 * PLACES + i])));
        put_result(output_of(other, i), put_units(sum_of(R(0)), units, min(top, 255u)), top);
    }
}

void main() {
    if (KIND == ADD_START) start();
    if (KIND == ADD_SMALL) look_at_numbers();
    if (KIND == ADD_NUMBERS) add_numbers();
    if (KIND == ADD_RESULTS) put_results();
    if (KIND == ADD_LISTS && group_number() < uint64_t(count)) add_list(uint(group_number()));
}

#endif
