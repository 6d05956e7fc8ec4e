// SORT, first and last step where rows do not lie contiguous: numbers become keys; the values at the
// sorted places are written with the places.
#define REAL_I64
#include "keys.glsl"
#include "host/sort_keys.h"
#include "rows.glsl"

layout(local_size_x = 256) in;

Key bits_at(uint row, uint at) {
    return load_bits(in_address, kept_offset(rows, 1, row) + row_offset(rows, 1, at), DTYPE);
}

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    uint length = KIND == SORT_KEYS ? count : wanted;
    if (number >= uint64_t(results) * uint64_t(length)) return;
    uint row = uint(number) / length, at = uint(number) % length;
    if (KIND == SORT_KEYS) {
        Keys(keys + number * KEY_BYTES).v = key_of(bits_at(row, at), DTYPE, DESCENDING);
        return;
    }
    uint place = Word(keys + uint64_t(row * sorted + at) * 4UL).v;
    if (values != 0UL)
        store_bits(values, kept_offset(rows, 0, row) + row_offset(rows, 0, at), DTYPE,
                   bits_at(row, place));
    if (places != 0UL) Long(places + number * 8UL).v = uint64_t(place);
}
