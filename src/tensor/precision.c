// Which operations are computed in 16 bits and which in float32.
#include "tensor/precision.h"

#include <stdlib.h>

#include "base/memory.h"
#include "tensor/state.h"

DType precision_set(DType dtype) {
    DType before = tensors_state()->precision;
    tensors_state()->precision = dtype;
    return before;
}

static bool is_narrow(DType dtype) {
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

// The dtype that an operand is cast to; its own where it stays.
static DType operand_dtype(OpPrecision want, const Tensor *x) {
    DType own = tensor_dtype(x);
    if (want == PRECISION_NARROW && own == DTYPE_FLOAT32) return tensors_state()->precision;
    if (want == PRECISION_WIDE && is_narrow(own)) return DTYPE_FLOAT32;
    return own;
}

// Casts an operand in place; what was made for it goes to `made`.
static Status cast_operand(OpPrecision want, OpInput *input, Tensor **made) {
    *made = NULL;
    if (!input->tensor) return STATUS_OK;
    DType dtype = operand_dtype(want, input->tensor);
    if (dtype == tensor_dtype(input->tensor)) return STATUS_OK;
    TRY(tensor_cast(input->tensor, dtype, made));
    *input = op_tensor(*made);
    return STATUS_OK;
}

Status precision_apply(const OpCall *call, Tensor **outputs,
                       Status (*apply)(const OpCall *call, Tensor **outputs)) {
    bool narrows = tensors_state()->precision != DTYPE_COUNT;
    OpPrecision want = narrows ? call->op->precision : PRECISION_OWN;
    if (want == PRECISION_OWN) return apply(call, outputs);
    OpCall cast = *call;
    size_t count = (size_t)call->n_inputs + (size_t)call->n_many, done = 0;
    SCOPED_MEMORY Tensor **made = memory_allocate((count + 1) * sizeof *made);
    SCOPED_MEMORY OpInput *many = memory_allocate(((size_t)call->n_many + 1) * sizeof *many);
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_many; i++) many[i] = call->many[i];
    cast.many = many;
    for (; done < count && status == STATUS_OK; done++) {
        size_t first = (size_t)call->n_inputs;
        OpInput *input = done < first ? &cast.inputs[done] : &many[done - first];
        status = cast_operand(want, input, &made[done]);
    }
    if (status == STATUS_OK) status = apply(&cast, outputs);
    while (done > 0) tensor_release(made[--done]);
    return status;
}
