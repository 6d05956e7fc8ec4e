// Which dtype an operation has beside plain numbers and rank-0 tensors.
#include "tensor/op.h"

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
