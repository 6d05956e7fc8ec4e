// Loads and stores of every dtype for the types kernels compute in, one small loop each.
#include "device/cpu/convert.h"

#include "device/cpu/simd/vector.h"

// SATURATE(T, low, high): the nearest integer toward zero that T holds, 0 for NaN.
#define SATURATE(T, low, high)                                                                     \
    INLINE T T##_of_float(float v) {                                                               \
        return v >= (float)(high) ? (T)(high) : (v > (float)(low) ? (T)v : (T)(v != v ? 0 : low)); \
    }                                                                                              \
    INLINE T T##_of_double(double v) {                                                             \
        return v >= (double)(high) ? (T)(high)                                                     \
                                   : (v > (double)(low) ? (T)v : (T)(v != v ? 0 : low));           \
    }                                                                                              \
    INLINE T T##_of_int64_t(int64_t v) {                                                           \
        return (T)v;                                                                               \
    }                                                                                              \
    INLINE T T##_of_int32_t(int32_t v) {                                                           \
        return (T)v;                                                                               \
    }
SATURATE(uint8_t, 0, UINT8_MAX)
SATURATE(int8_t, INT8_MIN, INT8_MAX)
SATURATE(int16_t, INT16_MIN, INT16_MAX)
SATURATE(int32_t, INT32_MIN, INT32_MAX)
SATURATE(int64_t, INT64_MIN, INT64_MAX)

// One number as each element type stores it, named by dtype and compute type...
#define WRITERS_INT(code, T)                                                                       \
    INLINE T write_##code##_float(float v) {                                                       \
        return T##_of_float(v);                                                                    \
    }                                                                                              \
    INLINE T write_##code##_double(double v) {                                                     \
        return T##_of_double(v);                                                                   \
    }                                                                                              \
    INLINE T write_##code##_int64_t(int64_t v) {                                                   \
        return T##_of_int64_t(v);                                                                  \
    }                                                                                              \
    INLINE T write_##code##_int32_t(int32_t v) {                                                   \
        return T##_of_int32_t(v);                                                                  \
    }
WRITERS_INT(UINT8, uint8_t)
WRITERS_INT(INT8, int8_t)
WRITERS_INT(INT16, int16_t)
WRITERS_INT(INT32, int32_t)
WRITERS_INT(INT64, int64_t)
#define WRITERS(code, T, from_float, from_wide)                                                    \
    INLINE T write_##code##_float(float v) {                                                       \
        return from_float;                                                                         \
    }                                                                                              \
    INLINE T write_##code##_double(double v) {                                                     \
        return from_wide;                                                                          \
    }                                                                                              \
    INLINE T write_##code##_int64_t(int64_t v) {                                                   \
        return from_wide;                                                                          \
    }                                                                                              \
    INLINE T write_##code##_int32_t(int32_t v) {                                                   \
        return from_wide;                                                                          \
    }
WRITERS(BOOL, uint8_t, v != 0, v != 0)
WRITERS(FLOAT16, uint16_t, narrow_half(v), narrow_half(round_to_odd((double)v)))
WRITERS(BFLOAT16, uint16_t, narrow_bfloat(v), narrow_bfloat(round_to_odd((double)v)))
WRITERS(FLOAT32, float, v, (float)v)
WRITERS(FLOAT64, double, (double)v, (double)v)

// ... and as each compute type reads it.
#define READERS(code, T, value, whole)                                                             \
    INLINE float read_##code##_float(T v) {                                                        \
        return (float)(value);                                                                     \
    }                                                                                              \
    INLINE double read_##code##_double(T v) {                                                      \
        return (double)(value);                                                                    \
    }                                                                                              \
    INLINE int64_t read_##code##_int64_t(T v) {                                                    \
        return whole;                                                                              \
    }                                                                                              \
    INLINE int32_t read_##code##_int32_t(T v) {                                                    \
        return (int32_t)(whole);                                                                   \
    }
READERS(BOOL, uint8_t, v != 0, v != 0)
READERS(UINT8, uint8_t, v, v)
READERS(INT8, int8_t, v, v)
READERS(INT16, int16_t, v, v)
READERS(INT32, int32_t, v, v)
READERS(INT64, int64_t, v, v)
READERS(FLOAT16, uint16_t, widen_half(v), int64_t_of_float(widen_half(v)))
READERS(BFLOAT16, uint16_t, widen_bfloat(v), int64_t_of_float(widen_bfloat(v)))
READERS(FLOAT32, float, v, int64_t_of_float(v))
READERS(FLOAT64, double, v, int64_t_of_double(v))

#define LOAD(code, T, R)                                                                           \
    static void load_##code##_##R(void *to, const void *from, int64_t stride, int64_t count) {     \
        R *out = to;                                                                               \
        const T *in = from;                                                                        \
        if (stride == 1) {                                                                         \
            INDEPENDENT                                                                            \
            for (int64_t i = 0; i < count; i++) out[i] = read_##code##_##R(in[i]);                 \
        } else {                                                                                   \
            INDEPENDENT                                                                            \
            for (int64_t i = 0; i < count; i++) out[i] = read_##code##_##R(in[i * stride]);        \
        }                                                                                          \
    }
#define STORE(code, T, R)                                                                          \
    static void store_##code##_##R(void *to, int64_t stride, const void *from, int64_t count) {    \
        T *out = to;                                                                               \
        const R *in = from;                                                                        \
        if (stride == 1) {                                                                         \
            INDEPENDENT                                                                            \
            for (int64_t i = 0; i < count; i++) out[i] = write_##code##_##R(in[i]);                \
        } else {                                                                                   \
            INDEPENDENT                                                                            \
            for (int64_t i = 0; i < count; i++) out[i * stride] = write_##code##_##R(in[i]);       \
        }                                                                                          \
    }
#define EACH_COMPUTE(F, code, T)                                                                   \
    F(code, T, float) F(code, T, double) F(code, T, int64_t) F(code, T, int32_t)
#define EACH_DTYPE(F)                                                                              \
    F(BOOL, uint8_t)                                                                               \
    F(UINT8, uint8_t)                                                                              \
    F(INT8, int8_t)                                                                                \
    F(INT16, int16_t)                                                                              \
    F(INT32, int32_t)                                                                              \
    F(INT64, int64_t)                                                                              \
    F(FLOAT16, uint16_t)                                                                           \
    F(BFLOAT16, uint16_t)                                                                          \
    F(FLOAT32, float)                                                                              \
    F(FLOAT64, double)

#define BOTH(code, T) EACH_COMPUTE(LOAD, code, T) EACH_COMPUTE(STORE, code, T)
EACH_DTYPE(BOTH)

static void load_halves(void *to, const void *from, int64_t stride, int64_t count) {
    if (stride == 1)
        widen_halves(to, from, count);
    else
        load_FLOAT16_float(to, from, stride, count);
}

static void store_halves(void *to, int64_t stride, const void *from, int64_t count) {
    if (stride == 1)
        narrow_halves(to, from, count);
    else
        store_FLOAT16_float(to, stride, from, count);
}

#define LOAD_FLOAT(code, T) [DTYPE_##code] = load_##code##_float,
#define LOAD_DOUBLE(code, T) [DTYPE_##code] = load_##code##_double,
#define LOAD_INT64(code, T) [DTYPE_##code] = load_##code##_int64_t,
#define LOAD_INT32(code, T) [DTYPE_##code] = load_##code##_int32_t,
#define STORE_FLOAT(code, T) [DTYPE_##code] = store_##code##_float,
#define STORE_DOUBLE(code, T) [DTYPE_##code] = store_##code##_double,
#define STORE_INT64(code, T) [DTYPE_##code] = store_##code##_int64_t,
#define STORE_INT32(code, T) [DTYPE_##code] = store_##code##_int32_t,
// Contiguous halves have instructions of their own.
#define load_FLOAT16_float load_halves
#define store_FLOAT16_float store_halves

const ConvertTable ISA(convert_table) = {
    .load = {[COMPUTE_F32] = {EACH_DTYPE(LOAD_FLOAT)},
             [COMPUTE_F64] = {EACH_DTYPE(LOAD_DOUBLE)},
             [COMPUTE_I64] = {EACH_DTYPE(LOAD_INT64)},
             [COMPUTE_I32] = {EACH_DTYPE(LOAD_INT32)}},
    .store = {[COMPUTE_F32] = {EACH_DTYPE(STORE_FLOAT)},
              [COMPUTE_F64] = {EACH_DTYPE(STORE_DOUBLE)},
              [COMPUTE_I64] = {EACH_DTYPE(STORE_INT64)},
              [COMPUTE_I32] = {EACH_DTYPE(STORE_INT32)}},
};
