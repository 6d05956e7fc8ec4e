// Products with the elementwise operation that follows them (device/vulkan/kernels/join.c): a sum of
// each number and one next to it, or a gate from the products of a row by two matrices. The products
// themselves are stored too, unless the result takes their place.
#ifndef JOINS_GLSL
#define JOINS_GLSL

#include "matrices.glsl"

#define OPERANDS 2
#define ROW_USED(row) (row == MAP_ADD || row == MAP_SWIGLU)
#include "maps.glsl"

const uint JOIN_NONE = MAP_COPY; // which nothing is joined with
const bool PAIRED = JOIN == MAP_SWIGLU;

// What result `at` is added to; to be asked for early.
float adjacent_at(int64_t at) {
    if (JOIN != MAP_ADD) return 0.0;
    return uintBitsToFloat(Word(adjacent_address + 4UL * uint64_t(at)).v);
}

// Number `at` of the product. `other`: what the other matrix gave, or what is next to it. With two
// matrices the other one's numbers go to `beside_address`, which is store_other's.
void store_result(int64_t at, float value, float other) {
    if (JOIN == JOIN_NONE || out_address != result_address) store(out_address, at, OUT_DTYPE, value);
    if (JOIN != JOIN_NONE) store(result_address, at, FLOAT32, map_value(JOIN, value, other, value));
}

void store_other(int64_t at, float value) {
    if (adjacent_address != result_address) store(adjacent_address, at, OUT_DTYPE, value);
}

#endif
