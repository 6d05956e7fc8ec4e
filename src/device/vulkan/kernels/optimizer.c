// OPTIMIZER: one step of training a parameter.
#include <math.h>

#include "device/vulkan/kernels/kernels.h"

enum { GROUP = 256, SETTINGS = 13 };

// optimizer.comp knows the rules by these numbers.
typedef struct OptimizerPush {
    uint64_t parameter, state, gradient, count;
} OptimizerPush;

// The shader's settings, in its order.
static void fill_settings(const KernelCall *call, double out[SETTINGS]) {
    const KernelOptions *options = &call->options;
    double numbers[7];
    for (int i = 0; i < 7; i++) numbers[i] = call->inputs[1 + i].scalar.as.f;
    double lr = numbers[0], decay = numbers[1], beta1 = numbers[2], beta2 = numbers[3];
    double epsilon = numbers[4], momentum = numbers[5], dampening = numbers[6];
    bool first = options->integers[0] != 0;
    const double settings[SETTINGS] = {
        lr,
        decay,
        beta1,
        1 - beta1,
        beta2,
        1 - beta2,
        epsilon,
        momentum,
        first ? 0 : momentum,
        first ? 1 : 1 - dampening,
        lr / options->scalars[0],
        1 / sqrt(options->scalars[1]),
        1 - lr * decay,
    };
    for (int i = 0; i < SETTINGS; i++) out[i] = settings[i];
}

Status vulkan_kernel_OPTIMIZER(Device *device, const KernelCall *call) {
    const TensorView *parameter = call->outputs[0], *gradient = call->inputs[0].view;
    const TensorView *state = call->n_outputs > 1 ? call->outputs[1] : NULL;
    bool wide = parameter->dtype == DTYPE_FLOAT64;
    if (!wide && parameter->dtype != DTYPE_FLOAT32) return vulkan_no_kernel(device, call);
    uint64_t count = (uint64_t)view_count(parameter);
    if (count == 0) return STATUS_OK;
    double settings[SETTINGS];
    float narrow[SETTINGS];
    fill_settings(call, settings);
    for (int i = 0; i < SETTINGS; i++) narrow[i] = (float)settings[i];
    OptimizerPush push = {vulkan_address(parameter), state ? vulkan_address(state) : 0,
                          vulkan_address(gradient), count};
    bool momentum = call->inputs[6].scalar.as.f != 0;
    VulkanDispatch dispatch = {
        .shader = wide ? SHADER_OPTIMIZER_F64 : SHADER_OPTIMIZER_F32,
        .n_constants = 3,
        .constants = {(uint32_t)call->options.op, call->options.flag, momentum},
        .arguments = wide ? (const void *)settings : narrow,
        .arguments_bytes = wide ? sizeof settings : sizeof narrow,
        .push = &push,
        .push_bytes = sizeof push,
        .cost = count * 6};
    vulkan_reads(&dispatch, gradient);
    vulkan_writes(&dispatch, parameter);
    if (state) vulkan_writes(&dispatch, state);
    vulkan_groups_for(device, &dispatch, count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}
