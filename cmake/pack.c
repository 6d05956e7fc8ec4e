// Packs modules, which are of one source and much alike, into an archive that
// device/vulkan/modules.c reads: a line of their lengths, filled up to a multiple of 4 bytes, then
// the modules, SPIR-V as differences, all in one frame of zstd.
//     pack_shaders ARCHIVE MODULE...
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"
#include "device/vulkan/spirv/differences.h"
#include "device/vulkan/spirv/module.h"

enum { LEVEL = 12, WINDOW_BITS = 24 };

typedef struct Bytes {
    char *data;
    size_t count;
} Bytes;

static void refuse(const char *path) {
    perror(path);
    exit(1);
}

static void append(Bytes *bytes, const void *data, size_t count) {
    bytes->data = memory_resize(bytes->data, bytes->count + count);
    memcpy(bytes->data + bytes->count, data, count);
    bytes->count += count;
}

static Bytes read_file(const char *path) {
    Bytes bytes = {0};
    char piece[1 << 16];
    FILE *file = fopen(path, "rb");
    if (!file) refuse(path);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) append(&bytes, piece, n);
    if (ferror(file)) refuse(path);
    fclose(file);
    return bytes;
}

static void append_module(Bytes *contents, Bytes module) {
    bool spirv = module.count >= SPIRV_HEADER_WORDS * sizeof(uint32_t) &&
                 *(const uint32_t *)module.data == SpvMagicNumber;
    append(contents, module.data, module.count);
    if (spirv)
        spirv_to_differences((uint32_t *)(contents->data + contents->count - module.count),
                             (const uint32_t *)module.data, module.count / sizeof(uint32_t));
    free(module.data);
}

static Bytes join(int count, char **paths) {
    Bytes lengths = {0}, modules = {0};
    for (int i = 0; i < count; i++) {
        Bytes module = read_file(paths[i]);
        char length[32];
        append(&lengths, length, (size_t)snprintf(length, sizeof length, "%zu ", module.count));
        append_module(&modules, module);
    }
    while (lengths.count % sizeof(uint32_t) != 3) append(&lengths, " ", 1);
    append(&lengths, "\n", 1);
    append(&lengths, modules.data, modules.count);
    free(modules.data);
    return lengths;
}

static Bytes compress(Bytes contents) {
    Bytes packed = {memory_allocate(ZSTD_compressBound(contents.count)), 0};
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_BITS);
    ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1);
    packed.count = ZSTD_compress2(context, packed.data, ZSTD_compressBound(contents.count),
                                  contents.data, contents.count);
    ASSERT(!ZSTD_isError(packed.count));
    ZSTD_freeCCtx(context);
    free(contents.data);
    return packed;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: pack_shaders ARCHIVE MODULE...\n", stderr);
        return 2;
    }
    Bytes packed = compress(join(argc - 2, argv + 2));
    FILE *file = fopen(argv[1], "wb");
    if (!file || fwrite(packed.data, 1, packed.count, file) != packed.count || fclose(file) != 0)
        refuse(argv[1]);
    free(packed.data);
    return 0;
}
