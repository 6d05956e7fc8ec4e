// Numbers in memory: addresses, element types, and one compute type `real` per module, chosen by
// REAL_F32, REAL_F64 or REAL_I64. HAS_FLOAT64 says that float64 elements can be read and written,
// FLOATS_ONLY that integers never are, which makes modules smaller.
// Knows no kernel.
#ifndef TYPES_GLSL
#define TYPES_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require
#ifdef REAL_F64
#define HAS_FLOAT64
#endif
#ifdef HAS_FLOAT64
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require
#endif

#include "numbers.glsl"
// Constants that hold several dtypes give 4 bits to each: quantised ones, which need more, come last.

layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Byte { uint8_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Short { uint16_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Word { uint v; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Half { float16_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Half4 { f16vec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Long { uint64_t v; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Word2 { uvec2 v; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Word4 { uvec4 v; };

uint element_bytes(uint dtype) {
    if (dtype <= INT8) return 1;
    if (dtype == INT16 || dtype == FLOAT16 || dtype == BFLOAT16) return 2;
    return dtype == INT32 || dtype == FLOAT32 ? 4 : 8;
}

uint64_t element_address(uint64_t base, int64_t index, uint dtype) {
    return base + uint64_t(index * int64_t(element_bytes(dtype)));
}

float float_of_half(uint bits) {
    uint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7FFFu;
    if (magnitude >= 0x7C00u) return uintBitsToFloat(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
    if (magnitude >= 0x400u) return uintBitsToFloat(sign | (magnitude << 13) + 0x38000000u);
    float small = float(magnitude) * 5.9604644775390625e-8; // 2^-24: exact
    return uintBitsToFloat(sign | floatBitsToUint(small));
}

float float_of_bfloat(uint bits) {
    return uintBitsToFloat(bits << 16);
}

// To the nearest, halves to even.
uint half_of_float(float value) {
    uint bits = floatBitsToUint(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return sign | 0x7E00u | (magnitude >> 13 & 0x3FFu);
    if (magnitude >= 0x477FF000u) return sign | 0x7C00u; // rounds beyond 65504
    if (magnitude < 0x38800000u) { // subnormal: in units of 2^-24
        precise float units = uintBitsToFloat(magnitude) * 16777216.0;
        return sign | uint(roundEven(units));
    }
    uint odd = magnitude >> 13 & 1u;
    return sign | (magnitude - 0x38000000u + 0xFFFu + odd) >> 13;
}

uint bfloat_of_float(float value) {
    uint bits = floatBitsToUint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return bits + 0x7FFFu + (bits >> 16 & 1u) >> 16;
}

bool float_is_nan(float v) {
    return (floatBitsToUint(v) & 0x7FFFFFFFu) > 0x7F800000u;
}

#if defined(REAL_F64)
#define real double
#define real4 dvec4
#define R(v) double(v)
const int64_t REAL_INFINITY_BITS = 0x7FF0000000000000L;
uint64_t real_bits(double v) { return doubleBitsToUint64(v); }
double real_of_bits(uint64_t bits) { return uint64BitsToDouble(bits); }
bool real_isnan(double v) { return (real_bits(v) & 0x7FFFFFFFFFFFFFFFUL) > 0x7FF0000000000000UL; }
bool real_isinf(double v) { return (real_bits(v) & 0x7FFFFFFFFFFFFFFFUL) == 0x7FF0000000000000UL; }
bool real_isfinite(double v) { return (real_bits(v) & 0x7FFFFFFFFFFFFFFFUL) < 0x7FF0000000000000UL; }
#define REAL_INFINITY real_of_bits(0x7FF0000000000000UL)
#define REAL_NAN real_of_bits(0x7FF8000000000000UL)
#elif defined(REAL_F32)
#define real float
#define real4 vec4
#define R(v) float(v)
uint real_bits(float v) { return floatBitsToUint(v); }
float real_of_bits(uint bits) { return uintBitsToFloat(bits); }
bool real_isnan(float v) { return float_is_nan(v); }
bool real_isinf(float v) { return (floatBitsToUint(v) & 0x7FFFFFFFu) == 0x7F800000u; }
bool real_isfinite(float v) { return (floatBitsToUint(v) & 0x7FFFFFFFu) < 0x7F800000u; }
#define REAL_INFINITY uintBitsToFloat(0x7F800000u)
#define REAL_NAN uintBitsToFloat(0x7FC00000u)
#else
#define real int64_t
#define real4 i64vec4
#define R(v) int64_t(v)
bool real_isnan(int64_t v) { return false; }
#endif

// Whether the device rounds float32 to float16 as half_of_float does
// (device/vulkan/spirv/rounding.c).
layout(constant_id = 20) const bool ROUNDS_HALVES = false;

const int64_t INT64_HIGHEST = 0x7FFFFFFFFFFFFFFFL;

// The nearest integer toward zero that fits; 0 for NaN.
int64_t saturate_float(float v, int64_t low, int64_t high) {
    if (float_is_nan(v)) return 0;
    if (v >= float(high)) return high;
    return v > float(low) ? int64_t(v) : low;
}

#ifdef HAS_FLOAT64
bool double_is_nan(double v) {
    return (doubleBitsToUint64(v) & 0x7FFFFFFFFFFFFFFFUL) > 0x7FF0000000000000UL;
}

int64_t saturate_double(double v, int64_t low, int64_t high) {
    if (double_is_nan(v)) return 0;
    if (v >= double(high)) return high;
    return v > double(low) ? int64_t(v) : low;
}

// Rounds to a float with its last bit set where it is not exact, so that rounding again is right.
float odd_of_double(double v) {
    float near = float(v);
    if (double_is_nan(v) || double(near) == v) return near;
    uint bits = floatBitsToUint(near);
    if (abs(double(near)) > abs(v)) bits--;
    return uintBitsToFloat(bits | 1u);
}
#endif

// The top `bits` bits of a number with what is below in the last one, and how far they were shifted:
// by way of 32 bits, since drivers are not to be trusted with conversions of 64.
uint top_bits(uint64_t magnitude, int bits, out int shift) {
    uint high = uint(magnitude >> 32);
    int top = high != 0 ? 32 + findMSB(high) : findMSB(uint(magnitude));
    shift = max(top + 1 - bits, 0);
    uint kept = uint(magnitude >> shift);
    return (uint64_t(kept) << shift) != magnitude ? kept | 1u : kept;
}

float float_of_int64_in(int64_t v, int bits) {
    int shift;
    uint kept = top_bits(v < 0L ? ~uint64_t(v) + 1UL : uint64_t(v), bits, shift);
    float size = float(kept) * uintBitsToFloat(uint(127 + shift) << 23);
    return v < 0L ? -size : size;
}

// To the nearest; and with the last bit set where that is not exact.
float float_of_int64(int64_t v) { return float_of_int64_in(v, 31); }
float odd_of_int64(int64_t v) { return float_of_int64_in(v, 24); }

// From its halves: Mesa 22.3 gets comparisons of widened numbers with constants wrong.
int64_t int64_of_int(int v) {
    return packInt2x32(ivec2(v, v >> 31));
}

// What is stored, as the compute type...
#ifdef REAL_I64
int64_t real_of_int(int v) { return int64_of_int(v); }
#else
real real_of_int(int v) { return real(v); }
#endif
#ifdef REAL_F32
float real_of_int64(int64_t v) { return float_of_int64(v); }
#else
real real_of_int64(int64_t v) { return real(v); }
#endif
#if defined(REAL_I64)
int64_t real_of_float(float v) { return saturate_float(v, -INT64_HIGHEST - 1, INT64_HIGHEST); }
int64_t wrap_or_saturate(int64_t v, int64_t low, int64_t high) { return v; }
float odd_of_real(int64_t v) { return odd_of_int64(v); }
#elif defined(REAL_F64)
double real_of_float(float v) { return double(v); }
int64_t wrap_or_saturate(double v, int64_t low, int64_t high) { return saturate_double(v, low, high); }
float odd_of_real(double v) { return odd_of_double(v); }
#else
float real_of_float(float v) { return v; }
int64_t wrap_or_saturate(float v, int64_t low, int64_t high) { return saturate_float(v, low, high); }
float odd_of_real(float v) { return v; }
#endif

// ... from the bits of an element of at most 32 bits and back, ...
real real_of_bits_as(uint bits, uint dtype) {
    if (dtype == FLOAT32) return real_of_float(uintBitsToFloat(bits));
    if (dtype == FLOAT16) return real_of_float(float_of_half(bits));
    if (dtype == BFLOAT16) return real_of_float(float_of_bfloat(bits));
#ifdef FLOATS_ONLY
    return R(0);
#else
    if (dtype == BOOL) return bits != 0 ? R(1) : R(0);
    if (dtype == UINT8) return real_of_int(int(bits));
    if (dtype == INT8) return real_of_int(int(bits << 24) >> 24);
    if (dtype == INT16) return real_of_int(int(bits << 16) >> 16);
    return real_of_int(int(bits));
#endif
}

// Integers wrap into narrower ones, floats saturate.
uint bits_of_real_as(real value, uint dtype) {
#ifdef REAL_I64
    if (dtype == FLOAT32) return floatBitsToUint(float_of_int64(value));
#else
    if (dtype == FLOAT32) return floatBitsToUint(float(value));
#endif
    if (dtype == FLOAT16) return half_of_float(odd_of_real(value));
    if (dtype == BFLOAT16) return bfloat_of_float(odd_of_real(value));
#ifdef FLOATS_ONLY
    return 0;
#else
    if (dtype == BOOL) return value != R(0) ? 1 : 0;
    if (dtype == UINT8) return uint(wrap_or_saturate(value, 0, 255)) & 0xFFu;
    if (dtype == INT8) return uint(wrap_or_saturate(value, -128, 127)) & 0xFFu;
    if (dtype == INT16) return uint(wrap_or_saturate(value, -32768, 32767)) & 0xFFFFu;
    return uint(wrap_or_saturate(value, -2147483648L, 2147483647L));
#endif
}

// ... of 64 bits, ...
real real_of_long_as(uint64_t bits, uint dtype) {
#ifdef HAS_FLOAT64
    if (dtype == FLOAT64) {
#ifdef REAL_I64
        return saturate_double(uint64BitsToDouble(bits), -INT64_HIGHEST - 1, INT64_HIGHEST);
#else
        return real(uint64BitsToDouble(bits));
#endif
    }
#endif
    return real_of_int64(int64_t(bits));
}

uint64_t long_of_real_as(real value, uint dtype) {
#ifdef HAS_FLOAT64
    if (dtype == FLOAT64) return doubleBitsToUint64(double(value));
#endif
    return uint64_t(wrap_or_saturate(value, -INT64_HIGHEST - 1, INT64_HIGHEST));
}

// ... read and written.
real load_at(uint64_t address, uint dtype) {
    uint size = element_bytes(dtype);
    if (size == 4) return real_of_bits_as(Word(address).v, dtype);
    if (size == 2) return real_of_bits_as(uint(Short(address).v), dtype);
#if defined(FLOATS_ONLY) && !defined(HAS_FLOAT64)
    return R(0);
#else
    if (size == 1) return real_of_bits_as(uint(Byte(address).v), dtype);
    return real_of_long_as(Long(address).v, dtype);
#endif
}

void store_at(uint64_t address, uint dtype, real value) {
    uint size = element_bytes(dtype);
    if (ROUNDS_HALVES && dtype == FLOAT16) Half(address).v = float16_t(odd_of_real(value));
    else if (size == 4) Word(address).v = bits_of_real_as(value, dtype);
    else if (size == 2) Short(address).v = uint16_t(bits_of_real_as(value, dtype));
#if !defined(FLOATS_ONLY) || defined(HAS_FLOAT64)
    else if (size == 1) Byte(address).v = uint8_t(bits_of_real_as(value, dtype));
    else Long(address).v = long_of_real_as(value, dtype);
#endif
}

#ifdef WITH_QUANTISED
#include "quantised.glsl"
#endif

real load(uint64_t base, int64_t index, uint dtype) {
#ifdef WITH_QUANTISED
    if (dtype > FLOAT64) return load_weight(base, index, dtype);
#endif
    return load_at(element_address(base, index, dtype), dtype);
}

void store(uint64_t base, int64_t index, uint dtype, real value) {
    store_at(element_address(base, index, dtype), dtype, value);
}

// One of four numbers: drivers leave vectors of 64-bit numbers in memory where a loop indexes them.
#ifdef REAL_F32
#define LANE(v, lane) v[lane]
#define SET_LANE(v, lane, value) v[lane] = value
#else
#define LANE(v, lane) lane_of(v, lane)
#define SET_LANE(v, lane, value) set_lane(v, lane, value)
real lane_of(real4 v, uint lane) {
    return lane < 2 ? (lane == 0 ? v.x : v.y) : (lane == 2 ? v.z : v.w);
}

void set_lane(inout real4 v, uint lane, real value) {
    v = real4(lane == 0 ? value : v.x, lane == 1 ? value : v.y, lane == 2 ? value : v.z,
              lane == 3 ? value : v.w);
}
#endif

// Four neighbours at once, where the address is a multiple of their size. Loops over lanes keep the
// modules small; drivers unroll them.
real4 load4(uint64_t address, uint dtype) {
    uint size = element_bytes(dtype);
    real4 v;
#if !defined(FLOATS_ONLY) || defined(HAS_FLOAT64)
    if (size == 8) {
        for (int i = 0; i < 4; i += 2) {
            uvec4 pair = Word4(address + uint64_t(8 * i)).v;
            SET_LANE(v, i, real_of_long_as(packUint2x32(pair.xy), dtype));
            SET_LANE(v, i + 1, real_of_long_as(packUint2x32(pair.zw), dtype));
        }
        return v;
    }
#endif
    uvec4 bits;
    if (size == 4) {
        bits = Word4(address).v;
    } else if (size == 2) {
        uvec2 w = Word2(address).v;
#ifndef REAL_I64
        if (dtype == FLOAT16) return real4(vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)));
#endif
        bits = uvec4(w.x & 0xFFFFu, w.x >> 16, w.y & 0xFFFFu, w.y >> 16);
    } else {
        uint w = Word(address).v;
        bits = uvec4(w, w >> 8, w >> 16, w >> 24) & 0xFFu;
    }
    for (int i = 0; i < 4; i++) SET_LANE(v, i, real_of_bits_as(bits[i], dtype));
    return v;
}

void store4(uint64_t address, uint dtype, real4 v) {
    uint size = element_bytes(dtype);
#if !defined(FLOATS_ONLY) || defined(HAS_FLOAT64)
    if (size == 8) {
        for (int i = 0; i < 4; i += 2)
            Word4(address + uint64_t(8 * i)).v =
                uvec4(unpackUint2x32(long_of_real_as(LANE(v, i), dtype)),
                      unpackUint2x32(long_of_real_as(LANE(v, i + 1), dtype)));
        return;
    }
#endif
    if (ROUNDS_HALVES && dtype == FLOAT16) {
        Half4(address).v = f16vec4(
            vec4(odd_of_real(v.x), odd_of_real(v.y), odd_of_real(v.z), odd_of_real(v.w)));
        return;
    }
    uvec4 bits;
    for (int i = 0; i < 4; i++) bits[i] = bits_of_real_as(LANE(v, i), dtype);
    if (size == 4) Word4(address).v = bits;
    else if (size == 2) Word2(address).v = uvec2(bits.x | bits.y << 16, bits.z | bits.w << 16);
    else Word(address).v = bits.x | bits.y << 8 | bits.z << 16 | bits.w << 24;
}

#if !defined(FLOATS_ONLY) || defined(HAS_FLOAT64)
// Two neighbours of 64 bits, at a multiple of 16 bytes: as much as goes at once.
void store2(uint64_t address, uint dtype, real a, real b) {
    Word4(address).v = uvec4(unpackUint2x32(long_of_real_as(a, dtype)),
                             unpackUint2x32(long_of_real_as(b, dtype)));
}
#endif

// The number of this workgroup where they are spread over x and y.
uint64_t group_number() {
    return uint64_t(gl_WorkGroupID.y) * uint64_t(gl_NumWorkGroups.x) + uint64_t(gl_WorkGroupID.x);
}

#endif
