// Modules of SPIR-V, changed for a device before it compiles them.
#ifndef DEVICE_VULKAN_SPIRV_SPIRV_H
#define DEVICE_VULKAN_SPIRV_SPIRV_H

#include "device/vulkan/core.h"

// The words of a module with cooperative matrices as devices want them, of bfloat16 if need be; to
// be freed.
uint32_t *dialect_translate(const VulkanModule *module, bool bfloat, size_t *bytes);
// The words of a module that makes float16 by the device's conversions, which are told to round as
// the CPU does: specialization constant ROUNDING_CONSTANT of shaders/include/types.glsl is true.
// `bytes`: of `words`, then of the result, which is to be freed.
enum { ROUNDING_CONSTANT = 20 };
uint32_t *rounding_declare(const uint32_t *words, size_t *bytes);
// A module without what these constants never let it reach; to be freed. `bytes`: of `words`, then
// of the result.
uint32_t *module_prune(const uint32_t *words, size_t *bytes, int n_constants,
                       const uint32_t *constants);

#endif
