// Which dtype an operation has: promotion between tensors, plain numbers and rank-0 tensors.
#include "tensor/op.h"

// bool < uint8 < int16 < int32 < int64 with int8 < int16; bfloat16 beside float16 gives float32.
#define B DTYPE_BOOL
#define U8 DTYPE_UINT8
#define I8 DTYPE_INT8
#define I16 DTYPE_INT16
#define I32 DTYPE_INT32
#define I64 DTYPE_INT64
#define F16 DTYPE_FLOAT16
#define BF DTYPE_BFLOAT16
#define F32 DTYPE_FLOAT32
#define F64 DTYPE_FLOAT64
#define PLAIN_COUNT 10 // the quantised types follow
static const uint8_t promotion[PLAIN_COUNT][PLAIN_COUNT] = {
    [B] = {B, U8, I8, I16, I32, I64, F16, BF, F32, F64},
    [U8] = {U8, U8, I16, I16, I32, I64, F32, F32, F32, F64},
    [I8] = {I8, I16, I8, I16, I32, I64, F32, F32, F32, F64},
    [I16] = {I16, I16, I16, I16, I32, I64, F32, F32, F32, F64},
    [I32] = {I32, I32, I32, I32, I32, I64, F32, F32, F32, F64},
    [I64] = {I64, I64, I64, I64, I64, I64, F32, F32, F32, F64},
    [F16] = {F16, F32, F32, F32, F32, F32, F16, F32, F32, F64},
    [BF] = {BF, F32, F32, F32, F32, F32, F32, BF, F32, F64},
    [F32] = {F32, F32, F32, F32, F32, F32, F32, F32, F32, F64},
    [F64] = {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64},
};
_Static_assert(DTYPE_BOOL == 0 && DTYPE_UINT8 == 1 && DTYPE_INT8 == 2 && DTYPE_INT16 == 3 &&
                   DTYPE_INT32 == 4 && DTYPE_INT64 == 5 && DTYPE_FLOAT16 == 6 &&
                   DTYPE_BFLOAT16 == 7 && DTYPE_FLOAT32 == 8 && DTYPE_FLOAT64 == PLAIN_COUNT - 1,
               "the columns of the promotion table are in the order of dtypes.def");

DType dtype_promote(DType x, DType y) {
    // Quantised weights take part as the float32 numbers they stand for.
    if (x >= PLAIN_COUNT) x = F32;
    if (y >= PLAIN_COUNT) y = F32;
    return (DType)promotion[x][y];
}

DType dtype_floating(DType dtype) {
    return dtype_is_float(dtype) ? dtype : DTYPE_FLOAT32;
}

DType dtype_compute(DType dtype) {
    if (dtype == DTYPE_FLOAT64) return DTYPE_FLOAT64;
    return dtype <= DTYPE_INT64 ? DTYPE_INT64 : DTYPE_FLOAT32;
}

// A plain number of the kind of `weak` beside tensors of dtype `strong`: widens to its kind only.
static DType promote_number(DType strong, DType weak) {
    DTypeKind kind = dtype_kind(weak);
    if (dtype_kind(strong) >= kind) return strong;
    return kind == DTYPE_KIND_FLOAT ? DTYPE_FLOAT32 : DTYPE_INT64;
}

// The dtype that plain numbers have among themselves in a tensor operation.
static DType number_dtype(DType dtype) {
    return dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT32 : dtype;
}

// Three tiers decide in turn: tensors of rank > 0, then rank-0 tensors, then plain numbers. The
// first tier that is present sets the dtype, the others only its kind.
enum { TIER_TENSOR, TIER_RANK_0, TIER_NUMBER, TIER_COUNT };

DType op_promote(const OpInput *inputs, int n) {
    DType tiers[TIER_COUNT] = {DTYPE_COUNT, DTYPE_COUNT, DTYPE_COUNT};
    for (int i = 0; i < n; i++) {
        if (op_is_absent(&inputs[i])) continue;
        const Tensor *tensor = inputs[i].tensor;
        int tier = !tensor ? TIER_NUMBER : (tensor->view.rank == 0 ? TIER_RANK_0 : TIER_TENSOR);
        DType dtype = tensor ? tensor->view.dtype : number_dtype(inputs[i].scalar.dtype);
        tiers[tier] = tiers[tier] == DTYPE_COUNT ? dtype : dtype_promote(tiers[tier], dtype);
    }
    DType result = DTYPE_COUNT;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        if (tiers[tier] == DTYPE_COUNT) continue;
        result = result == DTYPE_COUNT ? tiers[tier] : promote_number(result, tiers[tier]);
    }
    return result == DTYPE_COUNT ? DTYPE_FLOAT32 : result;
}
