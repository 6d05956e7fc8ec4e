// Which function runs each kernel on a Vulkan device.
#include "device/vulkan/kernels.h"

const VulkanKernel vulkan_kernels[KERNEL_COUNT] = {
    [KERNEL_FILL] = vulkan_kernel_FILL,
    [KERNEL_COPY] = vulkan_kernel_COPY,
    [KERNEL_MAP] = vulkan_kernel_MAP,
    [KERNEL_REDUCE] = vulkan_kernel_REDUCE,
    [KERNEL_ARG_REDUCE] = vulkan_kernel_ARG_REDUCE,
    [KERNEL_SCAN] = vulkan_kernel_SCAN,
    [KERNEL_MATMUL] = vulkan_kernel_MATMUL,
    [KERNEL_SOFTMAX] = vulkan_kernel_SOFTMAX,
    [KERNEL_RMS_NORM] = vulkan_kernel_RMS_NORM,
    [KERNEL_LAYER_NORM] = vulkan_kernel_LAYER_NORM,
};
