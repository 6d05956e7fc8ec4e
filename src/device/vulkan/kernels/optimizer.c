// OPTIMIZER: one step of training a parameter.
#include <math.h>

#include "device/vulkan/kernels/kernels.h"

enum { GROUP = 256 };

static OptimizerSettings settings_of(const KernelCall *call, VulkanReal real) {
    const KernelOptions *options = &call->options;
    double numbers[7];
    for (int i = 0; i < 7; i++) numbers[i] = call->inputs[1 + i].scalar.as.f;
    double lr = numbers[0], decay = numbers[1], beta1 = numbers[2], beta2 = numbers[3];
    double epsilon = numbers[4], momentum = numbers[5], dampening = numbers[6];
    bool first = options->integers[0] != 0;
    return (OptimizerSettings){
        .lr = vulkan_real_bits(lr, real),
        .weight_decay = vulkan_real_bits(decay, real),
        .beta1 = vulkan_real_bits(beta1, real),
        .fresh1 = vulkan_real_bits(1 - beta1, real),
        .beta2 = vulkan_real_bits(beta2, real),
        .fresh2 = vulkan_real_bits(1 - beta2, real),
        .epsilon = vulkan_real_bits(epsilon, real),
        .momentum = vulkan_real_bits(momentum, real),
        .kept = vulkan_real_bits(first ? 0 : momentum, real),
        .fresh = vulkan_real_bits(first ? 1 : 1 - dampening, real),
        .step = vulkan_real_bits(lr / options->scalars[0], real),
        .root = vulkan_real_bits(1 / sqrt(options->scalars[1]), real),
        .shrink = vulkan_real_bits(1 - lr * decay, real),
    };
}

Status vulkan_kernel_OPTIMIZER(Device *device, const KernelCall *call) {
    const TensorView *parameter = call->outputs[0], *gradient = call->inputs[0].view;
    const TensorView *state = call->n_outputs > 1 ? call->outputs[1] : NULL;
    bool wide = parameter->dtype == DTYPE_FLOAT64;
    if (!wide && parameter->dtype != DTYPE_FLOAT32) return vulkan_no_kernel(device, call);
    uint64_t count = (uint64_t)view_count(parameter);
    if (count == 0) return STATUS_OK;
    OptimizerSettings settings = settings_of(call, wide ? REAL_F64 : REAL_F32);
    OptimizerPush push = {.parameter_address = vulkan_address(parameter),
                          .state_address = state ? vulkan_address(state) : 0,
                          .gradient_address = vulkan_address(gradient),
                          .count = count};
    bool momentum = call->inputs[6].scalar.as.f != 0;
    VulkanDispatch dispatch = {.shader = wide ? SHADER_OPTIMIZER_F64 : SHADER_OPTIMIZER_F32,
                               VULKAN_CONSTANTS(optimizer, .RULE = (uint32_t)call->options.op,
                                                .VARIANT = call->options.flag,
                                                .MOMENTUM = momentum),
                               VULKAN_ARGUMENTS(settings),
                               VULKAN_PUSHED(push),
                               .cost = count * 6};
    vulkan_reads(&dispatch, gradient);
    vulkan_writes(&dispatch, parameter);
    if (state) vulkan_writes(&dispatch, state);
    vulkan_groups_for(device, &dispatch, count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}
