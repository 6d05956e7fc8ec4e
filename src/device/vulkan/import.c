// Programs in a device's own text (PTX), which it imports: made with a dispatch's constants in
// their text, launched with what is pushed as parameters. Knows no program.
#include <stdlib.h>

#include "base/text.h"
#include "device/vulkan/core.h"

// What a list of a launch's parameters consists of, as the extension has it from CUDA.
enum { LAUNCH_END, LAUNCH_PARAMETERS, LAUNCH_PARAMETERS_BYTES };

char *import_text(const VulkanModule *module, int n_constants, const uint32_t *constants) {
    Text out = {0};
    const char *text = module->data, *end = text + module->bytes;
    for (; text < end; text++) {
        int constant = text[0] == '$' && text + 1 < end ? text[1] - '0' : -1;
        if (constant < 0 || constant >= n_constants) {
            text_append_char(&out, *text);
            continue;
        }
        text_format(&out, "%u", constants[constant]);
        text++;
    }
    return text_take(&out);
}

Status import_make(VulkanDevice *vulkan, const VulkanModule *module, VulkanPipeline *pipeline) {
    char *text = import_text(module, pipeline->n_constants, pipeline->constants);
    VkCuModuleCreateInfoNVX info = {
        .sType = VK_STRUCTURE_TYPE_CU_MODULE_CREATE_INFO_NVX,
        .dataSize = strlen(text) + 1,
        .pData = text,
    };
    VkResult result =
        vulkan->call.CreateCuModuleNVX(vulkan->handle, &info, NULL, &pipeline->module);
    free(text);
    TRY(vulkan_check(vulkan, result, module->name));
    vulkan->ledger[OBJECT_IMPORTED_MODULE]++;
    VkCuFunctionCreateInfoNVX function = {
        .sType = VK_STRUCTURE_TYPE_CU_FUNCTION_CREATE_INFO_NVX,
        .module = pipeline->module,
        .pName = "entry",
    };
    result = vulkan->call.CreateCuFunctionNVX(vulkan->handle, &function, NULL,
                                              &pipeline->program.imported);
    if (result == VK_SUCCESS) vulkan->ledger[OBJECT_IMPORTED_FUNCTION]++;
    if (result != VK_SUCCESS) import_free(vulkan, pipeline);
    return vulkan_check(vulkan, result, module->name);
}

void import_free(VulkanDevice *vulkan, const VulkanPipeline *pipeline) {
    if (!pipeline->module) return;
    if (pipeline->program.imported) {
        vulkan->call.DestroyCuFunctionNVX(vulkan->handle, pipeline->program.imported, NULL);
        vulkan->ledger[OBJECT_IMPORTED_FUNCTION]--;
    }
    vulkan->call.DestroyCuModuleNVX(vulkan->handle, pipeline->module, NULL);
    vulkan->ledger[OBJECT_IMPORTED_MODULE]--;
}

void import_launch(VulkanDevice *vulkan, VkCommandBuffer commands, VkCuFunctionNVX function,
                   const VulkanDispatch *dispatch, const char *parameters) {
    size_t bytes = dispatch->push_bytes;
    const void *list[] = {(const void *)(uintptr_t)LAUNCH_PARAMETERS,
                          parameters,
                          (const void *)(uintptr_t)LAUNCH_PARAMETERS_BYTES,
                          &bytes,
                          (const void *)(uintptr_t)LAUNCH_END,
                          NULL};
    VkCuLaunchInfoNVX info = {
        .sType = VK_STRUCTURE_TYPE_CU_LAUNCH_INFO_NVX,
        .function = function,
        .gridDimX = dispatch->groups[0],
        .gridDimY = dispatch->groups[1],
        .gridDimZ = dispatch->groups[2],
        .blockDimX = dispatch->group_threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .extraCount = 1,
        .pExtras = list,
    };
    vulkan->call.CmdCuLaunchKernelNVX(commands, &info);
}

bool vulkan_imports(Device *device, const VulkanDispatch *dispatch) {
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanProgram program;
    if (device->foretold) return (vulkan->physical.features.has & VULKAN_NEEDS_IMPORT) != 0;
    pthread_mutex_lock(&vulkan->lock);
    bool asks = (vulkan->physical.features.has & VULKAN_NEEDS_IMPORT) != 0 && !vulkan->lost &&
                !vulkan->refuses_imports;
    bool takes = asks && pipeline_find(vulkan, dispatch, &program) == STATUS_OK;
    if (asks && !takes) {
        error_clear();
        vulkan->refuses_imports = true;
    }
    pthread_mutex_unlock(&vulkan->lock);
    return takes;
}
