// Read-only file mappings with a thread-safe count. Regular files only: anything else has no length
// to map, and opening a pipe could wait for ever.
#include "base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

struct FileMap {
    atomic_int refs;
    char *path;
    void *bytes; // NULL when the file is empty
    size_t length;
};

static Status map_descriptor(int descriptor, const char *path, FileMap **out) {
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return fail(STATUS_IO, "cannot read %s: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode))
        return fail(STATUS_IO, "cannot read %s: it is a directory, not a file", path);
    if (!S_ISREG(about.st_mode))
        return fail(STATUS_IO, "cannot read %s: it is not a regular file", path);
    size_t length = (size_t)about.st_size;
    void *bytes = NULL;
    if (length > 0) {
        bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED)
            return fail(STATUS_IO, "cannot map %s into memory: %s", path, strerror(errno));
    }
    FileMap *map = memory_allocate_zeroed(1, sizeof *map);
    atomic_init(&map->refs, 1);
    map->path = memory_copy_string(path, strlen(path));
    map->bytes = bytes;
    map->length = length;
    *out = map;
    return STATUS_OK;
}

Status file_map_open(const char *path, FileMap **out) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return fail(STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    Status status = map_descriptor(descriptor, path, out);
    close(descriptor);
    return status;
}

FileMap *file_map_retain(FileMap *map) {
    atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);
    return map;
}

void file_map_release(FileMap *map) {
    if (!map || atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel) != 1) return;
    if (map->bytes) munmap(map->bytes, map->length);
    free(map->path);
    free(map);
}

const uint8_t *file_map_bytes(const FileMap *map) {
    return map->bytes;
}

size_t file_map_length(const FileMap *map) {
    return map->length;
}

const char *file_map_path(const FileMap *map) {
    return map->path;
}
