// The validation layers, for tests: with TL_TEST_VALIDATION=FILE Vulkan runs under them, with
// synchronisation validation and advice on good practice, and what they say is appended to the
// file.
#include <stdio.h>
#include <stdlib.h>

#include "device/vulkan/core.h"

// Advice on how modules are written, about nothing that is done with them; that these layers are
// for debugging; and that they lost patience with a timeline that the host advances, which they
// themselves call a bug of theirs.
static const char *const accepted[] = {
    "UNASSIGNED-BestPractices-SpirvDeprecated_WorkgroupSize",
    "UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
    "UNASSIGNED-VkSemaphore-state-timeout",
};

static VKAPI_ATTR VkBool32 VKAPI_CALL note(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT *data,
                                           void *path) {
    (void)severity;
    (void)types;
    const char *name = data->pMessageIdName ? data->pMessageIdName : "";
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        if (strcmp(name, accepted[i]) == 0) return VK_FALSE;
    FILE *file = fopen(path, "a");
    if (!file) return VK_FALSE;
    fprintf(file, "%s: %s\n", name, data->pMessage);
    fclose(file);
    return VK_FALSE;
}

bool validation_wanted(void) {
    return getenv("TL_TEST_VALIDATION") != NULL;
}

void validation_describe(VulkanValidation *out) {
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
        VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT,
    };
    *out = (VulkanValidation){
        .layer = "VK_LAYER_KHRONOS_validation",
        .extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                       VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME},
        .features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                     .pNext = &out->messenger,
                     .enabledValidationFeatureCount = sizeof enables / sizeof *enables,
                     .pEnabledValidationFeatures = enables},
        .messenger = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                                     VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                      .pfnUserCallback = note,
                      .pUserData = getenv("TL_TEST_VALIDATION")},
    };
}

// The messenger stays as long as the instance: to the end of the process.
Status validation_listen(const VulkanLibrary *library, const VulkanValidation *validation) {
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)library->GetInstanceProcAddr(
            library->instance, "vkCreateDebugUtilsMessengerEXT");
    VkDebugUtilsMessengerEXT messenger;
    VkDebugUtilsMessengerCreateInfoEXT info = validation->messenger;
    if (create && create(library->instance, &info, NULL, &messenger) == VK_SUCCESS)
        return STATUS_OK;
    return fail(STATUS_DEVICE, "the validation layers cannot be listened to");
}
