// The small helpers that every kernel uses.
#include <stdio.h>
#include <string.h>

#include "device/cpu/cast.h"
#include "device/vulkan/kernels/kernels.h"

VulkanReal vulkan_real_of(DType dtype) {
    if (!dtype_is_float(dtype) && !dtype_is_quant(dtype)) return REAL_I64;
    return dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
}

uint64_t vulkan_scalar_bits(const Scalar *scalar, VulkanReal real) {
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT64};
    uint64_t bits = 0;
    cast_scalar(scalar, dtypes[real], &bits);
    return bits;
}

Status vulkan_no_kernel(Device *device, const KernelCall *call) {
    char inputs[160] = "";
    size_t used = 0;
    for (int k = 0; k < call->n_inputs; k++) {
        const KernelOperand *operand = &call->inputs[k];
        int n = snprintf(inputs + used, sizeof inputs - used, "%s%s", k > 0 ? ", " : "",
                         operand->view ? dtype_name(operand->view->dtype) : "a number");
        if (n > 0 && used + (size_t)n < sizeof inputs) used += (size_t)n;
    }
    return fail(STATUS_DTYPE, "%s has no kernel on %s for %s giving %s", call->op_name,
                device->name, inputs, dtype_name(call->outputs[0]->dtype));
}

void vulkan_reads(VulkanDispatch *dispatch, const TensorView *view) {
    if (!view) return;
    ASSERT(dispatch->n_reads < VULKAN_READS_MAX);
    dispatch->reads[dispatch->n_reads++] = view->buffer->handle;
}

void vulkan_writes(VulkanDispatch *dispatch, const TensorView *view) {
    ASSERT(dispatch->n_writes < VULKAN_WRITES_MAX);
    dispatch->writes[dispatch->n_writes++] = view->buffer->handle;
}

void vulkan_groups_for(Device *device, VulkanDispatch *dispatch, uint64_t count,
                       uint64_t per_group) {
    ASSERT(per_group > 0);
    vulkan_spread_groups(device, (count + per_group - 1) / per_group, dispatch->groups);
}

Status vulkan_scratch(Device *device, DType dtype, int64_t count, TensorView *out) {
    ASSERT(count >= 0);
    *out = (TensorView){.dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}};
    BufferLabel label = {.dtype = dtype, .rank = 1, .dims = {count}};
    return buffer_new(device, (size_t)count * dtype_size(dtype), &label, &out->buffer);
}

void vulkan_scratch_release(TensorView *scratch) {
    buffer_release(scratch->buffer);
}

Status vulkan_dispatch_mapped(Device *device, VulkanDispatch *dispatch, uint64_t bytes,
                              uint64_t *at) {
    SCOPED_SCRATCH(maps);
    TRY(vulkan_scratch(device, DTYPE_UINT8, (int64_t)bytes, &maps));
    *at = vulkan_address(&maps);
    vulkan_writes(dispatch, &maps);
    return vulkan_dispatch(device, dispatch);
}

Status vulkan_fill_zeros(Device *device, const KernelCall *call) {
    KernelCall fill = {.kernel = KERNEL_FILL,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.scalar = {.dtype = DTYPE_INT64}}},
                       .outputs = {call->outputs[0]},
                       .op_name = call->op_name};
    return vulkan_kernel_FILL(device, &fill);
}
