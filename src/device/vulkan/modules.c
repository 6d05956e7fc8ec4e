// The modules of shaders/kernels.def. Those of one file are in the program as one archive of zstd
// (cmake/pack.c), which is unpacked when the first of them is wanted and stays.
#include <stdlib.h>
#include <zstd.h>

#include "device/vulkan/core.h"
#include "device/vulkan/spirv/differences.h"

#define ARCHIVE(name, file, path)                                                                  \
    __asm__(".section .rodata\n"                                                                   \
            "archive_" #name ": .incbin \"" path "\"\n"                                            \
            "archive_" #name "_end:\n"                                                             \
            ".previous\n");                                                                        \
    extern const char archive_##name[], archive_##name##_end[];
#include "shaders/archives.def"
#undef ARCHIVE

typedef struct Archive {
    const char *file; // of the modules' source
    const char *packed, *packed_end;
} Archive;
static const Archive archives[] = {
#define ARCHIVE(name, file, path) {file, archive_##name, archive_##name##_end},
#include "shaders/archives.def"
#undef ARCHIVE
};
enum { ARCHIVE_COUNT = sizeof archives / sizeof *archives };

static const char *const files[] = {
#define SHADER(name, file, defines, needs) file,
#include "shaders/kernels.def"
#undef SHADER
};

static VulkanModule modules[] = {
#define SHADER(shader, file, defines, what) {.name = #shader, .needs = what},
#include "shaders/kernels.def"
#undef SHADER
};

// Gives every module of the archive its bytes: lengths first, as numbers in a line. SPIR-V is there
// as differences.
static void unpack(const Archive *archive) {
    size_t packed = (size_t)(archive->packed_end - archive->packed);
    size_t bytes = (size_t)ZSTD_getFrameContentSize(archive->packed, packed);
    char *unpacked = memory_allocate(bytes);
    ASSERT(ZSTD_decompress(unpacked, bytes, archive->packed, packed) == bytes);
    char *length = unpacked, *data = memchr(unpacked, '\n', bytes);
    ASSERT(data);
    data++;
    for (int shader = 0; shader < VULKAN_SHADER_COUNT; shader++) {
        if (strcmp(files[shader], archive->file) != 0) continue;
        modules[shader].data = data;
        modules[shader].bytes = strtoull(length, &length, 10);
        if (!module_is_imported(&modules[shader]))
            spirv_from_differences((uint32_t *)data, modules[shader].bytes / sizeof(uint32_t));
        data += modules[shader].bytes;
    }
    ASSERT(data == unpacked + bytes);
}

const VulkanModule *vulkan_module(VulkanShader shader) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ARCHIVE_COUNT && !modules[shader].data; i++)
        if (strcmp(archives[i].file, files[shader]) == 0) unpack(&archives[i]);
    pthread_mutex_unlock(&lock);
    return &modules[shader];
}
