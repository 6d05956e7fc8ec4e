// The formulas of maps.def as loops over numbers, one table per compute type and instruction set.
// Knows no dtype, no view.
#ifndef DEVICE_CPU_MAP_H
#define DEVICE_CPU_MAP_H

#include "device/cpu/convert.h"

enum { MAP_BLOCK_BYTES = 64, MAP_ARITY_MAX = 3 };

// Computes `count` elements of `out`. Bit k of `scalars`: in[k] is one number for all of them
// (never set for every operand). `out` may be one of the operands. The value of an element does not
// depend on its position: where the vectors do not come out even, the last one is padded.
typedef void (*MapLoop)(void *out, const void *const *in, unsigned scalars, int64_t count);

// NULL where a formula is not defined for the type.
typedef MapLoop MapTable[MAP_COUNT];
extern const MapTable map_f32_base, map_f32_avx2, map_f32_avx512;
extern const MapTable map_f64_base, map_f64_avx2, map_f64_avx512;
extern const MapTable map_i32_base, map_i32_avx2, map_i32_avx512;
extern const MapTable map_i64_base, map_i64_avx2, map_i64_avx512;

// The derivatives of the formulas of floats with one or two operands, by each of them: in[0] is the
// upstream gradient, in[1] and in[2] are the operands, in[3] is the result; `scalars` is 0.
enum { SLOPE_OPERANDS = 4 };
typedef MapLoop SlopeTable[MAP_COUNT][2];
extern const SlopeTable slopes_f32_base, slopes_f32_avx2, slopes_f32_avx512;
extern const SlopeTable slopes_f64_base, slopes_f64_avx2, slopes_f64_avx512;

// Copies past the caches, for results larger than they are; `to` is aligned to 64 bytes.
CPU_DECLARE(void, stream_copy, (void *to, const void *from, size_t bytes));

// At least 64 bytes.
CPU_DECLARE(void, row_copy, (char *to, const char *from, size_t bytes));

#endif
