// POOL2D and its gradient.
#include "device/vulkan/kernels/kernels.h"

enum { GROUP = 128, SIDE_MAX = 1 << 29 };

Status vulkan_kernel_POOL2D(Device *device, const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    const TensorView *image = call->inputs[0].view, *out = call->outputs[0];
    if (dtype_is_quant(image->dtype)) return vulkan_no_kernel(device, call);
    int64_t count = view_count(out);
    if (count > UINT32_MAX)
        return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                    device->name);
    WindowShape shape = {.window = {integers[0], integers[1]},
                         .stride = {integers[2], integers[3]},
                         .padding = {integers[4], integers[5]}};
    for (int d = 0; d < 4; d++) {
        shape.image[d] = image->strides[d];
        shape.to[d] = out->strides[d];
        shape.image_dims[d] = (uint32_t)image->dims[d];
        shape.out_dims[d] = (uint32_t)out->dims[d];
    }
    VulkanReal real = out->dtype == DTYPE_FLOAT64 ? REAL_F64 : vulkan_real_of(image->dtype);
    WindowPush push = {.image_address = vulkan_address(image),
                       .out_address = vulkan_address(out),
                       .count = (uint64_t)count};
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_WINDOW_F32, real),
        VULKAN_CONSTANTS(window, .DTYPES = (uint32_t)image->dtype | (uint32_t)out->dtype << 4,
                         .MEAN = call->options.op == 1),
        VULKAN_ARGUMENTS(shape),
        VULKAN_PUSHED(push),
        .cost = push.count * (uint64_t)(integers[0] * integers[1] + 1),
    };
    vulkan_reads(&dispatch, image);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_POOL2D_IMAGE(Device *device, const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    const TensorView *up = call->inputs[0].view, *out = call->outputs[0];
    const TensorView *image = call->options.op == 1 ? NULL : call->inputs[1].view;
    for (int d = 2; d < 4; d++)
        if (out->dims[d] + integers[d - 2] + 2 * integers[2 + d] > SIDE_MAX)
            return fail(STATUS_DEVICE, "%s: an image of more than 2^29 rows or columns on %s",
                        call->op_name, device->name);
    WindowImagePush push = {.up_address = vulkan_address(up),
                            .image_address = image ? vulkan_address(image) : 0,
                            .out_address = vulkan_address(out),
                            .count = (uint64_t)view_count(out),
                            .height = (int32_t)out->dims[2],
                            .width = (int32_t)out->dims[3],
                            .up_height = (int32_t)up->dims[2],
                            .up_width = (int32_t)up->dims[3]};
    for (int d = 0; d < 2; d++) {
        push.window[d] = (int32_t)integers[d];
        push.stride[d] = (int32_t)(integers[2 + d] < SIDE_MAX ? integers[2 + d] : SIDE_MAX);
        push.padding[d] = (int32_t)integers[4 + d];
    }
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_WINDOW_IMAGE_F32, vulkan_real_of(out->dtype)),
        VULKAN_CONSTANTS(window_image, .DTYPE = out->dtype, .MEAN = call->options.op == 1),
        VULKAN_PUSHED(push),
        .cost = push.count * (uint64_t)(integers[0] * integers[1]) * 4,
    };
    vulkan_reads(&dispatch, up);
    vulkan_reads(&dispatch, image);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}
