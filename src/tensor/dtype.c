// Which dtype an operation has of its inputs.
#include "tensor/dtype.h"
#include "tensor/op.h"

DType dtype_compute(DType dtype) {
    if (dtype == DTYPE_FLOAT64) return DTYPE_FLOAT64;
    return dtype <= DTYPE_INT64 ? DTYPE_INT64 : DTYPE_FLOAT32;
}

DType op_promote(const OpInput *inputs, int n) {
    DTypePromotion promotion = DTYPE_PROMOTION_NONE;
    for (int i = 0; i < n; i++) {
        if (op_is_absent(&inputs[i])) continue;
        const Tensor *tensor = inputs[i].tensor;
        if (tensor)
            dtype_promotion_add(&promotion,
                                tensor->view.rank == 0 ? DTYPE_TIER_RANK_0 : DTYPE_TIER_TENSOR,
                                tensor->view.dtype);
        else
            dtype_promotion_add(&promotion, DTYPE_TIER_NUMBER, inputs[i].scalar.dtype);
    }
    return dtype_promotion_result(&promotion);
}
