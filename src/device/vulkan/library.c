// The Vulkan loader, opened at run time: a machine without one runs the same binary. The instance
// is shared by all devices that are open.
#include <dlfcn.h>
#include <stdlib.h>

#include "device/vulkan/core.h"

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static VulkanLibrary library;
static void *loader;

static Status open_loader(void) {
    static const char *const names[] = {
#if defined(__APPLE__)
        "libvulkan.1.dylib",
        "libMoltenVK.dylib",
#else
        "libvulkan.so.1",
#endif
    };
    for (size_t i = 0; !loader && i < sizeof names / sizeof *names; i++)
        loader = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!loader) return fail(STATUS_DEVICE, "there is no Vulkan loader (%s)", names[0]);
    *(void **)&library.GetInstanceProcAddr = dlsym(loader, "vkGetInstanceProcAddr");
    if (!library.GetInstanceProcAddr)
        return fail(STATUS_DEVICE, "%s is not a Vulkan loader", names[0]);
    bool complete = true;
#define VULKAN_GLOBAL(name)                                                                        \
    library.name = (PFN_vk##name)library.GetInstanceProcAddr(NULL, "vk" #name);                    \
    complete &= library.name != NULL;
#include "device/vulkan/functions.def"
    return complete ? STATUS_OK : fail(STATUS_DEVICE, "the Vulkan loader knows only Vulkan 1.0");
}

static bool has_extension(const char *name) {
    uint32_t count = 0;
    if (library.EnumerateInstanceExtensionProperties(NULL, &count, NULL) != VK_SUCCESS || !count)
        return false;
    SCOPED_MEMORY VkExtensionProperties *properties =
        memory_allocate_zeroed(count, sizeof *properties);
    bool found = false;
    if (library.EnumerateInstanceExtensionProperties(NULL, &count, properties) >= 0)
        for (uint32_t i = 0; i < count; i++)
            found |= strcmp(properties[i].extensionName, name) == 0;
    return found;
}

static Status create_instance(void) {
    uint32_t version = 0;
    if (library.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_2)
        return fail(STATUS_DEVICE, "the Vulkan loader is older than Vulkan 1.2");
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "tl",
        .apiVersion = VK_API_VERSION_1_3,
    };
    const char *extensions[3];
    VulkanValidation validation;
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .ppEnabledExtensionNames = extensions,
    };
    // Drivers that put Vulkan over another interface, as MoltenVK does, are listed only on request.
    if (has_extension(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
        extensions[info.enabledExtensionCount++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    }
    if (validation_wanted()) {
        validation_describe(&validation);
        info.pNext = &validation.features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &validation.layer;
        for (int i = 0; i < 2; i++)
            extensions[info.enabledExtensionCount++] = validation.extensions[i];
    }
    VkResult result = library.CreateInstance(&info, NULL, &library.instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return fail(STATUS_DEVICE, "there is no Vulkan driver");
    if (result == VK_ERROR_LAYER_NOT_PRESENT)
        return fail(STATUS_DEVICE, "the validation layers that TL_TEST_VALIDATION asks for are not "
                                   "installed");
    if (result != VK_SUCCESS)
        return fail(STATUS_DEVICE, "Vulkan cannot be started (result %d)", (int)result);
    bool complete = true;
#define VULKAN_INSTANCE(name)                                                                      \
    library.name = (PFN_vk##name)library.GetInstanceProcAddr(library.instance, "vk" #name);        \
    complete &= library.name != NULL;
#include "device/vulkan/functions.def"
    ASSERT(complete);
    return validation_wanted() ? validation_listen(&library, &validation) : STATUS_OK;
}

Status library_open(const VulkanLibrary **out) {
    Status status = STATUS_OK;
    pthread_mutex_lock(&library_lock);
    if (!library.GetInstanceProcAddr) status = open_loader();
    if (status == STATUS_OK && !library.instance) status = create_instance();
    pthread_mutex_unlock(&library_lock);
    *out = &library;
    return status;
}
