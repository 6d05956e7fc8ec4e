// Numbers of any dtype to and from the types kernels compute in. Casts are those of the COPY
// kernel: float to int truncates and saturates, NaN gives 0; int to int wraps; to bool is != 0.
#ifndef DEVICE_CPU_CONVERT_H
#define DEVICE_CPU_CONVERT_H

#include "device/cpu/cpu.h"

typedef enum CpuCompute {
    COMPUTE_F32,
    COMPUTE_F64,
    COMPUTE_I64,
    COMPUTE_I32, // a shorter way to what int64 gives, where no number is wider (map.c, cast.c)
    COMPUTE_COUNT
} CpuCompute;

// From `count` elements, `stride` elements apart, to contiguous numbers of the compute type.
typedef void (*ConvertLoad)(void *to, const void *from, int64_t stride, int64_t count);
// From contiguous numbers of the compute type to `count` elements, `stride` elements apart.
typedef void (*ConvertStore)(void *to, int64_t stride, const void *from, int64_t count);

// Every dtype but the quantised ones, whose entries are NULL.
typedef struct ConvertTable {
    ConvertLoad load[COMPUTE_COUNT][DTYPE_COUNT];
    ConvertStore store[COMPUTE_COUNT][DTYPE_COUNT];
} ConvertTable;

extern const ConvertTable convert_table_base, convert_table_avx2, convert_table_avx512;

static inline const ConvertTable *cpu_convert(void) {
    return CPU_CHOOSE(&convert_table);
}

// The dtype in which a compute type's numbers are stored as they are.
static inline DType compute_dtype(CpuCompute compute) {
    static const DType dtypes[COMPUTE_COUNT] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT64,
                                                DTYPE_INT32};
    return dtypes[compute];
}

static inline size_t compute_bytes(CpuCompute compute) {
    return compute == COMPUTE_F32 || compute == COMPUTE_I32 ? 4 : 8;
}

// Bools and integers of at most 32 bits.
static inline bool fits_int32(DType dtype) {
    return !dtype_is_float(dtype) && dtype_size(dtype) <= sizeof(int32_t);
}

// The type that holds every number of a dtype and the results of all formulas before they wrap.
static inline CpuCompute compute_of(DType dtype) {
    if (!dtype_is_float(dtype)) return COMPUTE_I64;
    return dtype == DTYPE_FLOAT64 ? COMPUTE_F64 : COMPUTE_F32;
}

#endif
