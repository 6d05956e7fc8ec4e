// Which physical devices there are, what each can do, and which one to open.
#include <stdio.h>
#include <stdlib.h>

#include "device/vulkan/core.h"
#include "device/vulkan/newer.h"

// --- what a device says of itself ----------------------------------------------------------------

// The chain of structs that features are asked for and switched on with.
typedef struct FeatureChain {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeatures size_control;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat;
} FeatureChain;

// What may be switched on; `promoted`: the first two are no longer extensions, but part of the
// version.
typedef struct Extensions {
    bool size_control, dot_product, promoted;
    bool budget, matrix, bfloat, portability, import, multiprocessors, host;
} Extensions;

static Extensions list_extensions(const VulkanLibrary *library, VkPhysicalDevice handle) {
    Extensions found = {0};
    uint32_t count = 0;
    library->EnumerateDeviceExtensionProperties(handle, NULL, &count, NULL);
    VkExtensionProperties *properties = memory_allocate_zeroed(count + 1, sizeof *properties);
    if (library->EnumerateDeviceExtensionProperties(handle, NULL, &count, properties) < 0)
        count = 0;
    const struct {
        const char *name;
        bool *there;
    } wanted[] = {
        {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, &found.budget},
        {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, &found.size_control},
        {VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, &found.dot_product},
        {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, &found.matrix},
        {VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, &found.bfloat},
        {"VK_KHR_portability_subset", &found.portability},
        {VK_NVX_BINARY_IMPORT_EXTENSION_NAME, &found.import},
        {VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, &found.multiprocessors},
        {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, &found.host},
    };
    for (uint32_t i = 0; i < count; i++)
        for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++)
            if (strcmp(properties[i].extensionName, wanted[w].name) == 0) *wanted[w].there = true;
    free(properties);
    VkPhysicalDeviceProperties limits;
    library->GetPhysicalDeviceProperties(handle, &limits);
    found.promoted = limits.apiVersion >= VK_API_VERSION_1_3;
    found.size_control |= found.promoted;
    found.dot_product |= found.promoted;
    return found;
}

static void link_next(FeatureChain *chain, void *next) {
    VkBaseOutStructure *last = (VkBaseOutStructure *)&chain->base;
    while (last->pNext) last = last->pNext;
    last->pNext = next;
}

static void chain_features(FeatureChain *chain, Extensions extensions) {
    *chain = (FeatureChain){
        .base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
        .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .dot_product.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .bfloat.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
    };
    link_next(chain, &chain->v11);
    link_next(chain, &chain->v12);
    if (extensions.size_control) link_next(chain, &chain->size_control);
    if (extensions.dot_product) link_next(chain, &chain->dot_product);
    if (extensions.matrix) link_next(chain, &chain->matrix);
    if (extensions.bfloat) link_next(chain, &chain->bfloat);
}

// What no kernel can do without; NULL when everything is there.
static const char *missing_feature(const FeatureChain *chain) {
    const VkPhysicalDeviceFeatures *base = &chain->base.features;
    const VkPhysicalDeviceVulkan11Features *v11 = &chain->v11;
    const VkPhysicalDeviceVulkan12Features *v12 = &chain->v12;
    if (!base->shaderInt64) return "64-bit integers in shaders";
    if (!base->shaderInt16) return "16-bit integers in shaders";
    if (!v12->shaderInt8) return "8-bit integers in shaders";
    if (!v11->storageBuffer16BitAccess) return "16-bit storage";
    if (!v12->storageBuffer8BitAccess) return "8-bit storage";
    if (!v12->bufferDeviceAddress) return "buffer device addresses";
    if (!v12->timelineSemaphore) return "timeline semaphores";
    if (!v12->scalarBlockLayout) return "scalar block layout";
    return NULL;
}

static uint32_t find_features(const FeatureChain *chain,
                              const VkPhysicalDeviceSubgroupProperties *subgroup,
                              const VkPhysicalDeviceSubgroupSizeControlProperties *sizes) {
    const VkSubgroupFeatureFlags wanted =
        VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
        VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
        VK_SUBGROUP_FEATURE_BALLOT_BIT;
    uint32_t has = 0;
    if (chain->base.features.shaderFloat64) has |= VULKAN_NEEDS_FLOAT64;
    if (chain->v12.shaderFloat16) has |= VULKAN_NEEDS_FLOAT16;
    if (chain->v12.shaderBufferInt64Atomics) has |= VULKAN_NEEDS_LONG_ATOMICS;
    if ((subgroup->supportedOperations & wanted) == wanted) has |= VULKAN_NEEDS_SUBGROUP;
    if (chain->dot_product.shaderIntegerDotProduct) has |= VULKAN_NEEDS_DOT_PRODUCT;
    if (chain->size_control.subgroupSizeControl && sizes->minSubgroupSize <= 32 &&
        sizes->maxSubgroupSize >= 32 &&
        (sizes->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT))
        has |= VULKAN_NEEDS_SUBGROUP_32;
    return has;
}

// Whether subgroups multiply 16 x 16 matrices of 16-bit floats into float32 ones.
static void find_matrices(const VulkanLibrary *library, VulkanPhysical *physical,
                          const FeatureChain *chain) {
    enum { SHAPES_MAX = 64 };
    VulkanFeatures *features = &physical->features;
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR list =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)library->GetInstanceProcAddr(
            library->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    const uint32_t needed = VULKAN_NEEDS_SUBGROUP_32 | VULKAN_NEEDS_FLOAT16;
    if (!chain->matrix.cooperativeMatrix || !chain->v12.vulkanMemoryModel || !list ||
        (features->has & needed) != needed)
        return;
    VkCooperativeMatrixPropertiesKHR shapes[SHAPES_MAX];
    for (int i = 0; i < SHAPES_MAX; i++)
        shapes[i] = (VkCooperativeMatrixPropertiesKHR){
            .sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    uint32_t count = SHAPES_MAX;
    if (list(physical->handle, &count, shapes) < 0) return;
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixPropertiesKHR *s = &shapes[i];
        if (s->MSize != 16 || s->NSize != 16 || s->KSize != 16 || s->AType != s->BType ||
            s->CType != VK_COMPONENT_TYPE_FLOAT32_KHR ||
            s->ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR || s->scope != VK_SCOPE_SUBGROUP_KHR)
            continue;
        if (s->AType == VK_COMPONENT_TYPE_FLOAT16_KHR) features->has |= VULKAN_NEEDS_MATRIX;
        if (s->AType == VK_COMPONENT_TYPE_BFLOAT16_KHR &&
            chain->bfloat.shaderBFloat16CooperativeMatrix)
            features->has |= VULKAN_NEEDS_MATRIX_BFLOAT;
    }
}

// The first family that computes and does not draw, else the first that computes: families that
// draw may leave a workgroup and a multiprocessor less shared memory (48 KB where the other has
// 227).
static void find_family(const VulkanLibrary *library, VulkanPhysical *physical) {
    uint32_t count = 0;
    library->GetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, NULL);
    SCOPED_MEMORY VkQueueFamilyProperties *families =
        memory_allocate_zeroed(count + 1, sizeof *families);
    library->GetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, families);
    physical->queues = 0;
    bool draws = true;
    for (uint32_t i = 0; i < count && draws; i++) {
        bool also_draws = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        if (physical->queues > 0 && also_draws) continue;
        draws = also_draws;
        physical->family = i;
        physical->queues = families[i].queueCount >= 2 ? 2 : 1;
        physical->clock_bits = families[i].timestampValidBits;
    }
}

static VkPhysicalDeviceMemoryProperties
read_memory(const VulkanLibrary *library, const VulkanPhysical *physical,
            VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget) {
    *budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = physical->has_budget ? budget : NULL,
    };
    library->GetPhysicalDeviceMemoryProperties2(physical->handle, &properties);
    return properties.memoryProperties;
}

uint64_t physical_available(const VulkanLibrary *library, const VulkanPhysical *physical) {
    if (!physical->has_budget) return physical->heap_bytes;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    (void)read_memory(library, physical, &budget);
    ASSERT(physical->heap < VK_MAX_MEMORY_HEAPS);
    VkDeviceSize most = budget.heapBudget[physical->heap], used = budget.heapUsage[physical->heap];
    return most > used ? most - used : 0;
}

// The heap and type of tensors: on the device, the largest.
static void find_memory(const VulkanLibrary *library, VulkanPhysical *physical) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget;
    physical->memory = read_memory(library, physical, &budget);
    for (uint32_t i = 0; i < physical->memory.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &physical->memory.memoryHeaps[i];
        if (!(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) || heap->size <= physical->heap_bytes)
            continue;
        physical->heap = i;
        physical->heap_bytes = heap->size;
        physical->budget_bytes = heap->size;
        if (physical->has_budget && budget.heapBudget[i] < heap->size)
            physical->budget_bytes = budget.heapBudget[i];
    }
}

static void find_limits(const VulkanLibrary *library, VulkanPhysical *physical,
                        const FeatureChain *chain) {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
        .pNext = physical->has_multiprocessors ? &multiprocessors : NULL};
    VkPhysicalDeviceFloatControlsProperties controls = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
        .pNext = physical->has_size_control ? &sizes : sizes.pNext};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, .pNext = &controls};
    VkPhysicalDeviceMaintenance3Properties maintenance = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &subgroup};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &maintenance};
    library->GetPhysicalDeviceProperties2(physical->handle, &properties);
    const VkPhysicalDeviceLimits *limits = &properties.properties.limits;
    physical->allocation_bytes_max = maintenance.maxMemoryAllocationSize;
    physical->allocations_max = limits->maxMemoryAllocationCount;
    physical->clock_ns = (double)limits->timestampPeriod;
    memcpy(physical->cache_uuid, properties.properties.pipelineCacheUUID, VK_UUID_SIZE);
    VulkanFeatures *features = &physical->features;
    features->has = find_features(chain, &subgroup, &sizes);
    features->multiprocessors = multiprocessors.shaderSMCount;
    features->subgroup_size = subgroup.subgroupSize;
    features->group_threads_max = limits->maxComputeWorkGroupInvocations;
    features->shared_bytes_max = limits->maxComputeSharedMemorySize;
    memcpy(features->groups_max, limits->maxComputeWorkGroupCount, sizeof features->groups_max);
    features->rounds_halves =
        controls.shaderRoundingModeRTEFloat16 && controls.shaderDenormPreserveFloat16 &&
        controls.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL &&
        controls.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
}

static void inspect(const VulkanLibrary *library, VkPhysicalDevice handle, VulkanPhysical *out) {
    *out = (VulkanPhysical){.handle = handle};
    VkPhysicalDeviceProperties properties;
    library->GetPhysicalDeviceProperties(handle, &properties);
    out->type = properties.deviceType;
    out->api_version = properties.apiVersion;
    out->vendor = properties.vendorID;
    out->device = properties.deviceID;
    out->driver_version = properties.driverVersion;
    memcpy(out->name, properties.deviceName, sizeof out->name);
    if (properties.apiVersion < VK_API_VERSION_1_2) {
        snprintf(out->unusable, sizeof out->unusable, "its driver is older than Vulkan 1.2");
        return;
    }
    Extensions extensions = list_extensions(library, handle);
    out->has_budget = extensions.budget;
    out->has_size_control = extensions.size_control;
    out->has_portability = extensions.portability;
    out->has_multiprocessors = extensions.multiprocessors;
    out->locks_host = extensions.host;
    FeatureChain chain;
    chain_features(&chain, extensions);
    library->GetPhysicalDeviceFeatures2(handle, &chain.base);
    find_limits(library, out, &chain);
    find_matrices(library, out, &chain);
    if (extensions.import && TL_VULKAN_PTX) out->features.has |= VULKAN_NEEDS_IMPORT;
    find_family(library, out);
    find_memory(library, out);
    const char *missing = missing_feature(&chain);
    if (!(out->features.has & VULKAN_NEEDS_SUBGROUP)) missing = "shuffles in subgroups";
    if (out->queues == 0) missing = "a queue that computes";
    if (missing) snprintf(out->unusable, sizeof out->unusable, "it lacks %s", missing);
}

// --- the list ------------------------------------------------------------------------------------

bool physical_is_software(const VulkanPhysical *physical) {
    return physical->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static int rank_type(VkPhysicalDeviceType type) {
    static const int ranks[] = {
        [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = 0, [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = 1,
        [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = 2,  [VK_PHYSICAL_DEVICE_TYPE_OTHER] = 3,
        [VK_PHYSICAL_DEVICE_TYPE_CPU] = 4,
    };
    return ranks[type];
}

int physical_list(const VulkanLibrary *library, VulkanPhysical *out) {
    VkPhysicalDevice handles[VULKAN_PHYSICAL_MAX];
    uint32_t count = VULKAN_PHYSICAL_MAX;
    if (library->EnumeratePhysicalDevices(library->instance, &count, handles) < 0) return 0;
    int listed = 0;
    for (int rank = 0; rank <= 4; rank++) {
        for (uint32_t i = 0; i < count; i++) {
            VkPhysicalDeviceProperties properties;
            library->GetPhysicalDeviceProperties(handles[i], &properties);
            if (rank_type(properties.deviceType) == rank)
                inspect(library, handles[i], &out[listed++]);
        }
    }
    return listed;
}

Status physical_choose(const VulkanLibrary *library, int index, VulkanPhysical *out, int *number) {
    SCOPED_MEMORY VulkanPhysical *list = memory_allocate_zeroed(VULKAN_PHYSICAL_MAX, sizeof *list);
    int count = physical_list(library, list), found = -1;
    for (int i = 0; i < count && found < 0; i++) {
        bool fits = index >= 0 ? i == index
                               : !list[i].unusable[0] &&
                                     (index == VULKAN_FIRST || !physical_is_software(&list[i]));
        if (fits) found = i;
    }
    Status status = STATUS_OK;
    if (found < 0 && index >= 0)
        status = fail(STATUS_DEVICE, "there %s only %d Vulkan device%s", count == 1 ? "is" : "are",
                      count, count == 1 ? "" : "s");
    else if (found < 0)
        status = fail(STATUS_DEVICE, "no Vulkan device is usable");
    else if (list[found].unusable[0])
        status =
            fail(STATUS_DEVICE, "%s is not usable: %s", list[found].name, list[found].unusable);
    else
        *out = list[found];
    *number = found;
    return status;
}

// --- opening -------------------------------------------------------------------------------------

// Only what kernels use is switched on: some of the rest costs speed.
static void keep_wanted(FeatureChain *chain, const FeatureChain *has) {
    chain->base.features.shaderInt64 = VK_TRUE;
    chain->base.features.shaderInt16 = VK_TRUE;
    chain->base.features.shaderFloat64 = has->base.features.shaderFloat64;
    chain->v11.storageBuffer16BitAccess = VK_TRUE;
    chain->v12.storageBuffer8BitAccess = VK_TRUE;
    chain->v12.shaderInt8 = VK_TRUE;
    chain->v12.shaderFloat16 = has->v12.shaderFloat16;
    chain->v12.shaderBufferInt64Atomics = has->v12.shaderBufferInt64Atomics;
    chain->v12.bufferDeviceAddress = VK_TRUE;
    chain->v12.timelineSemaphore = VK_TRUE;
    chain->v12.scalarBlockLayout = VK_TRUE;
    chain->v12.vulkanMemoryModel = has->v12.vulkanMemoryModel;
    chain->v12.vulkanMemoryModelDeviceScope = has->v12.vulkanMemoryModelDeviceScope;
    chain->v12.shaderSubgroupExtendedTypes = has->v12.shaderSubgroupExtendedTypes;
    chain->size_control.subgroupSizeControl = has->size_control.subgroupSizeControl;
    chain->size_control.computeFullSubgroups = has->size_control.computeFullSubgroups;
    chain->dot_product.shaderIntegerDotProduct = has->dot_product.shaderIntegerDotProduct;
    chain->matrix.cooperativeMatrix = has->matrix.cooperativeMatrix;
    chain->bfloat.shaderBFloat16Type = has->bfloat.shaderBFloat16Type;
    chain->bfloat.shaderBFloat16CooperativeMatrix = has->bfloat.shaderBFloat16CooperativeMatrix;
}

Status physical_create_device(const VulkanLibrary *library, const VulkanPhysical *physical,
                              VkDevice *out) {
    Extensions extensions = list_extensions(library, physical->handle);
    FeatureChain has, chain;
    chain_features(&has, extensions);
    library->GetPhysicalDeviceFeatures2(physical->handle, &has.base);
    chain_features(&chain, extensions);
    keep_wanted(&chain, &has);
    const char *names[8];
    uint32_t count = 0;
    if (extensions.budget) names[count++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (extensions.size_control && !extensions.promoted)
        names[count++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    if (extensions.dot_product && !extensions.promoted)
        names[count++] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
    if (extensions.matrix) names[count++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    if (extensions.bfloat) names[count++] = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
    if (extensions.portability) names[count++] = "VK_KHR_portability_subset";
    if (extensions.import) names[count++] = VK_NVX_BINARY_IMPORT_EXTENSION_NAME;
    if (extensions.host) names[count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    static const float priorities[2] = {1.0f, 1.0f};
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = physical->family,
        .queueCount = physical->queues,
        .pQueuePriorities = priorities,
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &chain.base,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = count,
        .ppEnabledExtensionNames = names,
    };
    VkResult result = library->CreateDevice(physical->handle, &info, NULL, out);
    if (result == VK_SUCCESS) return STATUS_OK;
    return fail(STATUS_DEVICE, "the driver of %s refuses to open it (result %d)", physical->name,
                (int)result);
}
