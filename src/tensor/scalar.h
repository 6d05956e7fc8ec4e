// Plain numbers as one type or another.
#ifndef TENSOR_SCALAR_H
#define TENSOR_SCALAR_H

#include "device/kernel.h"

typedef struct OpCall OpCall;

// Toward zero; saturates, NaN becomes 0: what the copy kernel does with floats.
static inline int64_t integer_from_double(double value) {
    if (value != value) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

static inline double scalar_double(Scalar scalar) {
    return scalar.dtype == DTYPE_FLOAT64 ? scalar.as.f : (double)scalar.as.i;
}

static inline int64_t scalar_integer(Scalar scalar) {
    return scalar.dtype == DTYPE_FLOAT64 ? integer_from_double(scalar.as.f) : scalar.as.i;
}

// How two plain numbers compare by their exact values: an int beyond 2^53 is not rounded to be
// compared with a float. False: one is nan, which has no order.
bool scalar_order(Scalar x, Scalar y, int *out);

// The formulas of maps.def on the host; NULL where a formula is not for that type.
typedef double (*FloatFormula)(double x, double y, double z);
typedef __int128 WideInteger;
typedef WideInteger (*IntegerFormula)(WideInteger x, WideInteger y, WideInteger z);
extern const FloatFormula scalar_float_formulas[MAP_COUNT];
extern const IntegerFormula scalar_integer_formulas[MAP_COUNT];

// A map whose inputs are all plain numbers, on the host: ints trap on overflow and division by
// zero.
DType op_scalars_result(const OpCall *call); // what the result is
Status op_apply_scalars(const OpCall *call, Scalar *out) MUST_USE;

#endif
