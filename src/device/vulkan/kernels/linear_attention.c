// LINEAR_ATTENTION: one dispatch, a thread for each column of a head's state.
#include <string.h>

#include "device/vulkan/kernels/kernels.h"
#include "shaders/host/linear_attention.h"

static Status check(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view->dtype != out->dtype) return vulkan_no_kernel(device, call);
    bool real = out->dtype == DTYPE_FLOAT32 || out->dtype == DTYPE_FLOAT64;
    return real ? STATUS_OK : vulkan_no_kernel(device, call);
}

Status vulkan_kernel_LINEAR_ATTENTION(Device *device, const KernelCall *call) {
    const TensorView *q = call->inputs[0].view, *v = call->inputs[2].view, *out = call->outputs[0];
    TRY(check(device, call));
    if (view_count(out) == 0) return STATUS_OK;
    ASSERT(out->rank == 3 && out->dims[0] == q->dims[0] + q->dims[2]);
    LinearAttentionShape shape = {.rows = (uint32_t)q->dims[0],
                                  .heads = (uint32_t)q->dims[1],
                                  .keys = (uint32_t)q->dims[2],
                                  .values = (uint32_t)v->dims[2]};
    uint64_t *addresses[6] = {&shape.q,     &shape.k,     &shape.v,
                              &shape.decay, &shape.state, &shape.beta};
    int64_t *steps[6] = {shape.q_steps,     shape.k_steps,     shape.v_steps,
                         shape.decay_steps, shape.state_steps, shape.beta_steps};
    uint32_t blocks = (shape.values + LINEAR_THREADS - 1) / LINEAR_THREADS;
    LinearAttentionPush push = {.out_address = vulkan_address(out), .blocks = blocks};
    bool wide = out->dtype == DTYPE_FLOAT64;
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_LINEAR_ATTENTION_F32, wide ? REAL_F64 : REAL_F32),
        VULKAN_CONSTANTS(linear_attention, .DTYPE = (uint32_t)out->dtype,
                         .DELTA = call->n_inputs == 6),
        VULKAN_ARGUMENTS(shape),
        VULKAN_PUSHED(push),
        .cost = (uint64_t)(q->dims[0] + 1) * (uint64_t)(q->dims[2] * q->dims[1] * v->dims[2]) * 4,
    };
    for (int i = 0; i < call->n_inputs; i++) {
        const TensorView *view = call->inputs[i].view;
        *addresses[i] = vulkan_address(view);
        memcpy(steps[i], view->strides, (size_t)view->rank * sizeof *view->strides);
        vulkan_reads(&dispatch, view);
    }
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, (uint64_t)shape.heads * blocks, 1);
    return vulkan_dispatch(device, &dispatch);
}
