// CONV2D and POOL2D.
#include "device/vulkan/kernels.h"

enum { GROUP = 128, NO_DTYPE = 15, CONVOLVE = 0, LARGEST = 1, MEAN = 2 };

typedef struct WindowShape {
    int64_t image[4], weight[4], to[4];
    int64_t bias;
    int64_t stride[2], padding[2], dilation[2], window[2];
    uint32_t image_dims[4], out_dims[4];
    uint32_t group_channels, group_outs;
} WindowShape;

typedef struct WindowPush {
    uint64_t image, weight, bias, out, count;
} WindowPush;

static Status run_windows(Device *device, const KernelCall *call, WindowShape *shape,
                          uint32_t kind) {
    const TensorView *image = call->inputs[0].view, *out = call->outputs[0];
    const TensorView *weight = kind == CONVOLVE ? call->inputs[1].view : NULL;
    const TensorView *bias = kind == CONVOLVE && call->n_inputs > 2 ? call->inputs[2].view : NULL;
    int64_t count = view_count(out);
    if (count == 0) return STATUS_OK;
    if (count > UINT32_MAX)
        return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                    device->name);
    VulkanReal real = vulkan_real_of(image->dtype);
    const TensorView *views[] = {weight, bias, out};
    for (int i = 0; i < 3; i++)
        if (views[i] && views[i]->dtype == DTYPE_FLOAT64) real = REAL_F64;
    for (int d = 0; d < 4; d++) {
        shape->image[d] = image->strides[d];
        shape->to[d] = out->strides[d];
        shape->image_dims[d] = (uint32_t)image->dims[d];
        shape->out_dims[d] = (uint32_t)out->dims[d];
        if (weight) shape->weight[d] = weight->strides[d];
    }
    if (bias) shape->bias = bias->strides[0];
    WindowPush push = {vulkan_address(image), weight ? vulkan_address(weight) : 0,
                       bias ? vulkan_address(bias) : 0, vulkan_address(out), (uint64_t)count};
    uint32_t dtypes = (uint32_t)image->dtype | (uint32_t)out->dtype << 4 |
                      (weight ? (uint32_t)weight->dtype : NO_DTYPE) << 8 |
                      (bias ? (uint32_t)bias->dtype : NO_DTYPE) << 12;
    VulkanDispatch dispatch = {.shader = vulkan_shader_of(SHADER_WINDOW_F32, real),
                               .n_constants = 2,
                               .constants = {dtypes, kind},
                               .arguments = shape,
                               .arguments_bytes = sizeof *shape,
                               .push = &push,
                               .push_bytes = sizeof push};
    uint64_t each = (uint64_t)(shape->window[0] * shape->window[1]);
    if (weight) each *= (uint64_t)weight->dims[1];
    dispatch.cost = (uint64_t)count * (each + 1);
    vulkan_reads(&dispatch, image);
    vulkan_reads(&dispatch, weight);
    vulkan_reads(&dispatch, bias);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, (uint64_t)count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_CONV2D(Device *device, const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    const TensorView *image = call->inputs[0].view, *weight = call->inputs[1].view;
    const TensorView *bias = call->n_inputs > 2 ? call->inputs[2].view : NULL;
    if (!dtype_is_float(image->dtype) || !dtype_is_float(weight->dtype) ||
        (bias && !dtype_is_float(bias->dtype)))
        return vulkan_no_kernel(device, call);
    WindowShape shape = {.stride = {integers[0], integers[1]},
                         .padding = {integers[2], integers[3]},
                         .dilation = {integers[4], integers[5]},
                         .window = {weight->dims[2], weight->dims[3]},
                         .group_channels = (uint32_t)weight->dims[1],
                         .group_outs = (uint32_t)(weight->dims[0] / integers[6])};
    return run_windows(device, call, &shape, CONVOLVE);
}

Status vulkan_kernel_POOL2D(Device *device, const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    if (dtype_is_quant(call->inputs[0].view->dtype)) return vulkan_no_kernel(device, call);
    WindowShape shape = {.window = {integers[0], integers[1]},
                         .stride = {integers[2], integers[3]},
                         .padding = {integers[4], integers[5]},
                         .dilation = {1, 1}};
    return run_windows(device, call, &shape, call->options.op == 1 ? MEAN : LARGEST);
}
