// SORT, first and last step. First each number becomes a key, an integer in the order that is
// wanted, NaN last in both orders. Last the values at the sorted places are written with the places.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "host/sort_keys.h"
#include "rows.glsl"

layout(local_size_x = 256) in;
const bool WIDE_KEYS = DTYPE == INT64 || DTYPE == FLOAT64; // of 64 bits, else of 32

// The order of keys is that of their last bits, as many as the dtype has; of 16-bit floats the first.
#ifdef REAL_I64
uint64_t key_of(int64_t value) {
    uint64_t key = uint64_t(value);
    if (DTYPE == INT8) key += 0x80UL;
    if (DTYPE == INT16) key += 0x8000UL;
    if (DTYPE == INT32) key += 0x80000000UL;
    if (DTYPE == INT64) key ^= 0x8000000000000000UL;
    return DESCENDING ? ~key : key;
}
#elif defined(REAL_F64)
uint64_t key_of(double value) {
    if (real_isnan(value)) return 0xFFFFFFFFFFFFFFFFUL;
    uint64_t bits = value == R(0) ? 0UL : real_bits(value); // the zeros tie
    uint64_t key = bits >> 63 != 0UL ? ~bits : bits | 0x8000000000000000UL;
    return DESCENDING ? ~key : key;
}
#else
uint64_t key_of(float value) {
    if (real_isnan(value)) return 0xFFFFFFFFUL;
    uint bits = real_bits(value);
    if (DTYPE == FLOAT16) bits = half_of_float(value) << 16;
    if ((bits & 0x7FFFFFFFu) == 0) bits = 0; // the zeros tie
    uint key = bits >> 31 != 0u ? ~bits : bits | 0x80000000u;
    return uint64_t(DESCENDING ? ~key : key);
}
#endif

void make_key(uint row, uint at) {
    int64_t from = kept_offset(rows, 1, row) + row_offset(rows, 1, at);
    uint64_t key = key_of(load(in_address, from, DTYPE));
    if (WIDE_KEYS) Long(keys + uint64_t(row * count + at) * 8UL).v = key;
    else Word(keys + uint64_t(row * count + at) * 4UL).v = uint(key);
}

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    uint length = KIND == SORT_KEYS ? count : wanted;
    if (number >= uint64_t(results) * uint64_t(length)) return;
    uint row = uint(number) / length, at = uint(number) % length;
    if (KIND == SORT_KEYS) {
        make_key(row, at);
        return;
    }
    uint place = Word(keys + uint64_t(row * sorted + at) * 4UL).v;
    if (values != 0UL)
        store(values, kept_offset(rows, 0, row) + row_offset(rows, 0, at), DTYPE,
              load(in_address, kept_offset(rows, 1, row) + row_offset(rows, 1, place), DTYPE));
    if (places != 0UL) Long(places + number * 8UL).v = uint64_t(place);
}
