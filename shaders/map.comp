// MAP and COPY: formulas over operands of any dtype and strides. Each thread makes ITEMS items of one
// element, or of four neighbours when VECTOR. With OPERANDS one formula of so many operands, which
// drivers reduce to a few instructions; otherwise a program of up to eight steps.
#include "types.glsl"
#include "host/map.h"

const uint GROUP = 256, ITEMS = 2, STEPS_MAX = 8, INPUTS_MAX = 8;
layout(local_size_x = 256) in;

const uint N_INPUTS = SHAPE & 15u, N_STEPS = SHAPE >> 4 & 15u, RANK = SHAPE >> 8 & 15u,
           OUT_DTYPE = SHAPE >> 12 & 15u;
const bool VECTOR = (SHAPE >> 16 & 1u) != 0;

#ifdef COPY_ONLY
#define OPERANDS 1
#define ROW_USED(row) (row == MAP_COPY)
#endif
#ifndef OPERANDS
// The rows of maps.def that a program has, a bit each: of the others nothing is left in a pipeline,
// although which of these a step takes is known only as it runs.
#define ROW_OF(step, word) ((step >> 5 & 7u) == word ? 1u << (step & 31u) : 0u)
#define ROWS_OF(word)                                                                              \
    (ROW_OF(STEP_0, word) | ROW_OF(STEP_1, word) | ROW_OF(STEP_2, word) | ROW_OF(STEP_3, word) |   \
     ROW_OF(STEP_4, word) | ROW_OF(STEP_5, word) | ROW_OF(STEP_6, word) | ROW_OF(STEP_7, word))
const uint ROWS_0 = ROWS_OF(0u), ROWS_32 = ROWS_OF(1u), ROWS_64 = ROWS_OF(2u), ROWS_96 = ROWS_OF(3u);
#define ROW_USED(row)                                                                              \
    (((row < 64 ? (row < 32 ? ROWS_0 : ROWS_32) : (row < 96 ? ROWS_64 : ROWS_96)) >> (row & 31u) &   \
      1u) != 0)
#endif
#include "maps.glsl"

uint step_at(uint s) {
    if (s == 0) return STEP_0;
    if (s == 1) return STEP_1;
    if (s == 2) return STEP_2;
    if (s == 3) return STEP_3;
    if (s == 4) return STEP_4;
    if (s == 5) return STEP_5;
    return s == 6 ? STEP_6 : STEP_7;
}

real immediate(uint64_t bits) {
#if defined(REAL_F32)
    return uintBitsToFloat(uint(bits));
#elif defined(REAL_F64)
    return uint64BitsToDouble(bits);
#else
    return int64_t(bits);
#endif
}

int64_t offset_of(uint view, uint64_t item) {
    if (RANK == 0) return int64_t(item) * (VECTOR ? 4L : 1L);
    int64_t offset = 0;
    uint rest = uint(item);
    for (int d = int(RANK) - 1; d > 0; d--) {
        offset += int64_t(rest % shape.dims[d]) * shape.strides[view][d];
        rest /= shape.dims[d];
    }
    return offset + int64_t(rest) * shape.strides[view][0];
}

real4 load_input(uint k, uint64_t item) {
#ifdef WITH_QUANTISED
    uint dtype = DTYPES; // of the only operand
#else
    uint dtype = DTYPES >> 4 * k & 15u;
#endif
    if ((SINGLE >> (8 + k) & 1u) != 0) return real4(immediate(inputs[k]));
    bool single = (SINGLE >> k & 1u) != 0;
    int64_t offset = RANK == 0 && single ? 0L : offset_of(k + 1, item);
    if (VECTOR && !single) return load4(element_address(inputs[k], offset, dtype), dtype);
    return real4(load(inputs[k], offset, dtype));
}

#ifdef OPERANDS
real4 result_of(uint64_t item) {
    real4 x = load_input(0, item), y = x, z = x;
#if OPERANDS > 1
    y = load_input(1, item);
#endif
#if OPERANDS > 2
    z = load_input(2, item);
#endif
    real4 value;
    for (int lane = 0; lane < (VECTOR ? 4 : 1); lane++)
        SET_LANE(value, lane,
                 map_value(STEP_0 & 0xFFu, LANE(x, lane), LANE(y, lane), LANE(z, lane)));
    return value;
}
#else
real4 result_of(uint64_t item) {
    real4 registers[INPUTS_MAX + STEPS_MAX];
    for (uint k = 0; k < N_INPUTS; k++) registers[k] = load_input(k, item);
    for (uint s = 0; s < N_STEPS; s++) {
        uint program = step_at(s), op = program & 0xFFu;
        real4 x = registers[program >> 8 & 15u], y = registers[program >> 12 & 15u],
              z = registers[program >> 16 & 15u];
        real4 value = x;
        for (int lane = 0; lane < (VECTOR ? 4 : 1); lane++)
            SET_LANE(value, lane, map_value(op, LANE(x, lane), LANE(y, lane), LANE(z, lane)));
        registers[N_INPUTS + s] = value;
    }
    return registers[N_INPUTS + N_STEPS - 1];
}
#endif

void make_item(uint64_t item) {
    real4 result = result_of(item);
    uint64_t address = element_address(out_address, offset_of(0, item), OUT_DTYPE);
    if (VECTOR)
        store4(address, OUT_DTYPE, result);
    else
        store_at(address, OUT_DTYPE, result.x);
}

void main() {
    uint64_t first = group_number() * uint64_t(GROUP * ITEMS) + uint64_t(gl_LocalInvocationID.x);
    for (uint i = 0; i < ITEMS; i++) {
        uint64_t item = first + uint64_t(i * GROUP);
        if (item < count) make_item(item);
    }
}
