// Pipelines of earlier runs on the disk, one file per device and driver. Everything here may fail:
// the pipelines are then made again, and nobody is told.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/vulkan/core.h"

enum { CACHE_BYTES_MAX = 256 << 20 };

// Drivers trust what they wrote themselves; a file that a crash cut short must not reach them.
typedef struct CacheHeader {
    char magic[8];
    uint32_t vendor, device, driver, version;
    uint64_t bytes, hash;
} CacheHeader;

static uint64_t hash_bytes(const unsigned char *data, size_t bytes) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ data[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static CacheHeader make_header(const VulkanPhysical *physical, const void *data, size_t bytes) {
    return (CacheHeader){
        .magic = "tl-pipe",
        .vendor = physical->vendor,
        .device = physical->device,
        .driver = physical->driver_version,
        .version = 1,
        .bytes = bytes,
        .hash = hash_bytes(data, bytes),
    };
}

// $XDG_CACHE_HOME/tl or ~/.cache/tl; false when there is no such place.
static bool cache_folder(Text *out) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        text_format(out, "%s/tl", cache);
    else if (home && home[0] == '/')
        text_format(out, "%s/.cache/tl", home);
    else
        return false;
    return true;
}

static bool cache_path(const VulkanPhysical *physical, Text *out) {
    if (!cache_folder(out)) return false;
    text_append_string(out, "/vulkan-");
    for (size_t i = 0; i < VK_UUID_SIZE; i++) text_format(out, "%02x", physical->cache_uuid[i]);
    text_format(out, "-%x-%x", physical->device, physical->driver_version);
    return true;
}

static void *read_checked(FILE *file, const VulkanPhysical *physical, size_t *bytes) {
    CacheHeader header;
    if (fread(&header, sizeof header, 1, file) != 1 || header.bytes > CACHE_BYTES_MAX) return NULL;
    size_t size = (size_t)header.bytes;
    void *data = memory_allocate(size + 1);
    bool whole = fread(data, 1, size, file) == size;
    CacheHeader expected = make_header(physical, data, whole ? size : 0);
    if (whole && memcmp(&header, &expected, sizeof header) == 0) {
        *bytes = size;
        return data;
    }
    free(data);
    return NULL;
}

void *disk_cache_read(const VulkanPhysical *physical, size_t *bytes) {
    SCOPED_TEXT(path);
    void *data = NULL;
    *bytes = 0;
    if (cache_path(physical, &path)) {
        FILE *file = fopen(text_get(&path), "rbe");
        if (file) {
            data = read_checked(file, physical, bytes);
            fclose(file);
        }
    }
    return data;
}

static void make_folder(void) {
    SCOPED_TEXT(folder);
    if (cache_folder(&folder)) {
        SCOPED_MEMORY char *path = memory_copy_string(text_get(&folder), folder.length);
        char *last = strrchr(path, '/');
        *last = '\0';
        mkdir(path, 0700);
        *last = '/';
        mkdir(path, 0700);
    }
}

// Written aside and renamed: readers see a whole file or none.
static void write_file(const char *path, const CacheHeader *header, const void *data) {
    SCOPED_TEXT(aside);
    text_format(&aside, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(text_get(&aside), "wbe");
    if (file) {
        bool written = fwrite(header, sizeof *header, 1, file) == 1 &&
                       fwrite(data, 1, (size_t)header->bytes, file) == header->bytes;
        written &= fclose(file) == 0;
        if (!written || rename(text_get(&aside), path) != 0) unlink(text_get(&aside));
    }
}

void disk_cache_write(const VulkanPhysical *physical, const void *data, size_t bytes) {
    SCOPED_TEXT(path);
    if (bytes <= CACHE_BYTES_MAX && cache_path(physical, &path)) {
        make_folder();
        CacheHeader header = make_header(physical, data, bytes);
        write_file(text_get(&path), &header, data);
    }
}
