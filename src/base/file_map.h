// A read-only file in memory: mapped, reference-counted. Thread-safe counts.
//
// The file may change while it is mapped. What is read from it may then be other numbers, so that
// nothing may be read twice of which the first time was the check. Bytes that are missing, because
// the file was shortened or its disk fails, read as zeros, and whoever reads asks afterwards:
// parsers file_map_check, the device after each kernel and transfer file_map_faults.
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

#include <stddef.h>

#include "base/runtime.h"
#include "base/status.h"

typedef struct FileMap FileMap;

Status file_map_open(const char *path, FileMap **out) MUST_USE; // STATUS_IO names path and reason
FileMap *file_map_retain(FileMap *map);
void file_map_release(FileMap *map);
const uint8_t *file_map_bytes(const FileMap *map);
size_t file_map_length(const FileMap *map);
// Lets the system take the whole pages between two places of a mapping: they are read from the file
// again when somebody looks at them.
void file_map_evict(const void *begin, size_t bytes);
// Whether an address lies in a file that is mapped now.
bool file_map_holds(const void *address);
const char *file_map_path(const FileMap *map);

// STATUS_IO when the file is not as it was when it was mapped, or bytes were missing when they were
// read. One stat of the system.
Status file_map_check(FileMap *map) MUST_USE;
// STATUS_IO when bytes of any file that this runtime mapped were missing when they were read, since
// the last time this was asked. Nearly free.
Status file_map_faults(void) MUST_USE;
// Whether there are any that were not asked for yet: what was read then is not kept.
static inline bool file_map_faulted(void) {
    return UNLIKELY(atomic_load_explicit(&runtime_current->file_faulted, memory_order_relaxed));
}

#endif
