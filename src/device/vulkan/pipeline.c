// Shaders as pipelines, made at their first use.
#include <stdlib.h>

#include "device/vulkan/core.h"
#include "device/vulkan/spirv/spirv.h"

// --- the table -----------------------------------------------------------------------------------

static uint64_t hash_key(VulkanShader shader, int n_constants, const uint32_t *constants) {
    uint64_t hash = (uint64_t)shader * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)n_constants;
    for (int i = 0; i < n_constants; i++) hash = (hash ^ constants[i]) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 29;
}

// The slot of this pipeline, or the free one where it belongs.
static VulkanPipeline *find_slot(VulkanPipelines *pipelines, VulkanShader shader, int n_constants,
                                 const uint32_t *constants) {
    size_t mask = pipelines->slot_count - 1;
    size_t at = (size_t)hash_key(shader, n_constants, constants) & mask;
    for (;; at = (at + 1) & mask) {
        VulkanPipeline *slot = &pipelines->slots[at];
        if (!slot->made) return slot;
        if (slot->shader == shader && slot->n_constants == n_constants &&
            memcmp(slot->constants, constants, (size_t)n_constants * sizeof *constants) == 0)
            return slot;
    }
}

static void grow(VulkanPipelines *pipelines) {
    SCOPED_MEMORY VulkanPipeline *old = pipelines->slots;
    size_t old_count = pipelines->slot_count;
    pipelines->slot_count = old_count ? old_count * 2 : 64;
    pipelines->slots = memory_allocate_zeroed(pipelines->slot_count, sizeof *old);
    for (size_t i = 0; i < old_count; i++)
        if (old[i].made)
            *find_slot(pipelines, old[i].shader, old[i].n_constants, old[i].constants) = old[i];
}

// --- making --------------------------------------------------------------------------------------

static Status refuse_needs(const VulkanDevice *vulkan, const VulkanModule *module) {
    static const char *const words[] = {
        "float64",         "float16 arithmetic",   "subgroup arithmetic",
        "dot products",    "cooperative matrices", "cooperative matrices of bfloat16",
        "subgroups of 32", "import of programs",   "atomic sums of int64",
    };
    uint32_t missing = module->needs & ~vulkan->physical.features.has;
    fail(STATUS_DEVICE, "%s has no %s, which %s needs", vulkan->device->name,
         words[__builtin_ctz(missing)], module->name);
    return fail_help("convert to float32, or use the device cpu");
}

Status pipeline_check(const VulkanDevice *vulkan, VulkanShader shader) {
    const VulkanModule *module = vulkan_module(shader);
    bool able = (module->needs & ~vulkan->physical.features.has) == 0;
    return able ? STATUS_OK : refuse_needs(vulkan, module);
}

static Status create_pipeline(VulkanDevice *vulkan, const VulkanModule *module,
                              VkShaderModule shader, VulkanPipeline *pipeline) {
    VkSpecializationMapEntry entries[VULKAN_CONSTANTS_MAX];
    for (uint32_t i = 0; i < (uint32_t)pipeline->n_constants; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * 4, 4};
    VkSpecializationInfo constants = {
        .mapEntryCount = (uint32_t)pipeline->n_constants,
        .pMapEntries = entries,
        .dataSize = (size_t)pipeline->n_constants * 4,
        .pData = pipeline->constants,
    };
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = 32,
    };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = module->needs & VULKAN_NEEDS_SUBGROUP_32 ? &size : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = shader,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = vulkan->pipelines.layout,
    };
    return vulkan_check(vulkan,
                        vulkan->call.CreateComputePipelines(vulkan->handle, vulkan->pipelines.cache,
                                                            1, &info, NULL,
                                                            &pipeline->program.pipeline),
                        module->name);
}

// The module in the device's words, and of it what this pipeline is about; to be freed. One whose
// float16 becomes bfloat16 has none to round to.
static uint32_t *module_words(const VulkanDevice *vulkan, const VulkanPipeline *pipeline,
                              size_t *bytes) {
    const VulkanModule *module = vulkan_module(pipeline->shader);
    const uint32_t *words = module->data;
    uint32_t *translated = NULL, *declared = NULL;
    bool bfloat = (module->needs & VULKAN_NEEDS_MATRIX_BFLOAT) != 0;
    *bytes = module->bytes;
    if (bfloat || (module->needs & VULKAN_NEEDS_MATRIX))
        words = translated = dialect_translate(module, bfloat, bytes);
    if (vulkan->physical.features.rounds_halves && !bfloat)
        words = declared = rounding_declare(words, bytes);
    uint32_t *pruned = module_prune(words, bytes, pipeline->n_constants, pipeline->constants);
    free(declared);
    free(translated);
    return pruned;
}

static Status make_pipeline(VulkanDevice *vulkan, VulkanPipeline *pipeline) {
    const VulkanModule *module = vulkan_module(pipeline->shader);
    TRY(pipeline_check(vulkan, pipeline->shader));
    if (module_is_imported(module)) return import_make(vulkan, module, pipeline);
    size_t bytes;
    uint32_t *words = module_words(vulkan, pipeline, &bytes);
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = bytes,
        .pCode = words,
    };
    VkShaderModule shader;
    VkResult result = vulkan->call.CreateShaderModule(vulkan->handle, &info, NULL, &shader);
    free(words);
    TRY(vulkan_check(vulkan, result, module->name));
    vulkan->ledger[OBJECT_SHADER_MODULE]++;
    Status status = create_pipeline(vulkan, module, shader, pipeline);
    vulkan->call.DestroyShaderModule(vulkan->handle, shader, NULL);
    vulkan->ledger[OBJECT_SHADER_MODULE]--;
    if (status == STATUS_OK) vulkan->ledger[OBJECT_PIPELINE]++;
    return status;
}

Status pipeline_find(VulkanDevice *vulkan, const VulkanDispatch *dispatch, VulkanProgram *out) {
    VulkanPipelines *pipelines = &vulkan->pipelines;
    if (pipelines->used * 2 >= pipelines->slot_count) grow(pipelines);
    VulkanPipeline *slot =
        find_slot(pipelines, dispatch->shader, dispatch->n_constants, dispatch->constants.words);
    if (UNLIKELY(!slot->made)) {
        VulkanPipeline made = {
            .shader = dispatch->shader, .n_constants = dispatch->n_constants, .made = true};
        memcpy(made.constants, dispatch->constants.words, sizeof made.constants);
        TRY(make_pipeline(vulkan, &made));
        *slot = made;
        pipelines->used++;
    }
    *out = slot->program;
    return STATUS_OK;
}

Status pipelines_open(VulkanDevice *vulkan) {
    VulkanPipelines *pipelines = &vulkan->pipelines;
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, VULKAN_PUSH_BYTES};
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    TRY(vulkan_check(
        vulkan,
        vulkan->call.CreatePipelineLayout(vulkan->handle, &layout, NULL, &pipelines->layout),
        "making a pipeline layout"));
    vulkan->ledger[OBJECT_PIPELINE_LAYOUT]++;
    SCOPED_MEMORY void *data = disk_cache_read(&vulkan->physical, &pipelines->cache_bytes);
    VkPipelineCacheCreateInfo cache = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = pipelines->cache_bytes,
        .pInitialData = data,
    };
    Status status = vulkan_check(
        vulkan, vulkan->call.CreatePipelineCache(vulkan->handle, &cache, NULL, &pipelines->cache),
        "making a pipeline cache");
    if (status == STATUS_OK) vulkan->ledger[OBJECT_PIPELINE_CACHE]++;
    return status;
}

// Pipelines that were made by this run are there for the next one.
static void save_cache(VulkanDevice *vulkan) {
    size_t bytes = 0;
    VulkanPipelines *pipelines = &vulkan->pipelines;
    if (vulkan->lost || pipelines->used == 0) return;
    if (vulkan->call.GetPipelineCacheData(vulkan->handle, pipelines->cache, &bytes, NULL) !=
            VK_SUCCESS ||
        bytes <= pipelines->cache_bytes)
        return;
    SCOPED_MEMORY void *data = memory_allocate(bytes);
    if (vulkan->call.GetPipelineCacheData(vulkan->handle, pipelines->cache, &bytes, data) ==
        VK_SUCCESS)
        disk_cache_write(&vulkan->physical, data, bytes);
}

void pipelines_close(VulkanDevice *vulkan) {
    VulkanPipelines *pipelines = &vulkan->pipelines;
    if (pipelines->cache) {
        save_cache(vulkan);
        vulkan->call.DestroyPipelineCache(vulkan->handle, pipelines->cache, NULL);
        vulkan->ledger[OBJECT_PIPELINE_CACHE]--;
    }
    for (size_t i = 0; i < pipelines->slot_count; i++) {
        const VulkanPipeline *slot = &pipelines->slots[i];
        import_free(vulkan, slot);
        if (!slot->program.pipeline) continue;
        vulkan->call.DestroyPipeline(vulkan->handle, slot->program.pipeline, NULL);
        vulkan->ledger[OBJECT_PIPELINE]--;
    }
    free(pipelines->slots);
    if (!pipelines->layout) return;
    vulkan->call.DestroyPipelineLayout(vulkan->handle, pipelines->layout, NULL);
    vulkan->ledger[OBJECT_PIPELINE_LAYOUT]--;
}
