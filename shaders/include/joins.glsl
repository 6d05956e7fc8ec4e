// Products with the elementwise operation that follows them (device/vulkan/kernels_join.c): a sum of
// each number and one beside it, or a gate from the products of a row by two matrices. The products
// themselves are stored too, unless the result takes their place.
#ifndef JOINS_GLSL
#define JOINS_GLSL

#include "matrices.glsl"

const uint JOIN_ADD = 41, JOIN_SWIGLU = 69; // rows of maps.def
#define OPERANDS 2
#define ROW_USED(row) (row == JOIN_ADD || row == JOIN_SWIGLU)
#include "maps.glsl"

layout(constant_id = 2) const uint JOIN = 255; // none
layout(constant_id = 3) const uint EACH = 1;   // columns of a team; with two matrices half of each
layout(constant_id = 4) const uint TEAMS = 1;  // of a workgroup
const bool PAIRED = JOIN == JOIN_SWIGLU;
const uint HALF = PAIRED ? EACH / 2 : EACH;

// Column `c` of a team whose first one is `first`, and its matrix.
uint column_of(uint first, uint c) {
    return first + (PAIRED && c >= HALF ? c - HALF : c);
}
uint64_t matrix_of(uint c) {
    return PAIRED && c >= HALF ? other_b : b_address;
}

// What result `at` is added to; to be asked for early.
float beside_at(int64_t at) {
    if (JOIN != JOIN_ADD) return 0.0;
    return uintBitsToFloat(Word(beside_address + 4UL * uint64_t(at)).v);
}

// A result of column `c`. `other`: what the other matrix gave, or what is beside it.
void store_result(int64_t at, uint c, float value, float other) {
    uint64_t to = PAIRED && c >= HALF ? beside_address : out_address;
    if (JOIN == 255 || to != result_address) store(to, at, OUT_DTYPE, value);
    if (JOIN != 255 && c < HALF)
        store(result_address, at, FLOAT32, map_value(JOIN, value, other, value));
}

#endif
