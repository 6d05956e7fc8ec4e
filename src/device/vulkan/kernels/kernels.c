// Which function runs each kernel on a Vulkan device, and which of the FUSED ones it has.
#include "device/vulkan/kernels/kernels.h"

const VulkanKernel vulkan_kernels[KERNEL_COUNT] = {
#define KERNEL(code, name, kept, follow, doc) [KERNEL_##code] = vulkan_kernel_##code,
#define FUSED(code, name, kept, follow, doc)
#include "device/kernels.def"
#undef KERNEL
#define X(code) [KERNEL_##code] = vulkan_kernel_##code,
    VULKAN_FUSED(X)
#undef X
};
