// SORT, first and last step. First each row becomes entries (key, place): keys are whole numbers in
// the order that is wanted, NaN last in both orders; a row is padded with entries that come after
// all. Last the values at the sorted places are written with the places.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint DTYPE = 0;
layout(constant_id = 2) const uint KIND = 0; // 0: keys; 1: values and places
layout(constant_id = 3) const bool DESCENDING = false;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Entry {
    uint64_t key;
    uint64_t place;
};
// Views: the values and the input. Places lie contiguous.
layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, values, places, entries, results, count, padded, wanted;
};

uint64_t key_of(real value) {
#ifdef REAL_I64
    uint64_t key = uint64_t(value) ^ 0x8000000000000000UL;
    return DESCENDING ? ~key : key;
#else
    if (real_isnan(value)) return 0xFFFFFFFFFFFFFFFFUL;
    if (value == R(0)) value = R(0); // the zeros tie
#ifdef REAL_F64
    uint64_t bits = value == R(0) ? 0UL : real_bits(value);
    uint64_t key = bits >> 63 != 0UL ? ~bits : bits | 0x8000000000000000UL;
    return DESCENDING ? ~key : key;
#else
    uint bits = value == R(0) ? 0u : real_bits(value);
    uint key = bits >> 31 != 0u ? ~bits : bits | 0x80000000u;
    return uint64_t(DESCENDING ? ~key : key);
#endif
#endif
}

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    uint64_t length = KIND == 0 ? padded : wanted;
    if (number >= results * length) return;
    uint64_t row = number / length, at = number % length;
    Entry entry = Entry(entries + (row * padded + at) * 16UL);
    int64_t from = kept_offset(rows, 1, row);
    if (KIND == 0) {
        entry.place = at;
        entry.key = at < count ? key_of(load(in_address, from + row_offset(rows, 1, at), DTYPE))
                               : 0xFFFFFFFFFFFFFFFFUL;
        return;
    }
    uint64_t place = entry.place;
    if (values != 0UL)
        store(values, kept_offset(rows, 0, row) + row_offset(rows, 0, at), DTYPE,
              load(in_address, from + row_offset(rows, 1, place), DTYPE));
    Long(places + (row * wanted + at) * 8UL).v = place;
}
