// A read-only file in memory: mapped, reference-counted. Thread-safe counts.
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

#include <stddef.h>

#include "base/status.h"

typedef struct FileMap FileMap;

Status file_map_open(const char *path, FileMap **out) MUST_USE; // STATUS_IO names path and reason
FileMap *file_map_retain(FileMap *map);
void file_map_release(FileMap *map);
const uint8_t *file_map_bytes(const FileMap *map);
size_t file_map_length(const FileMap *map);
const char *file_map_path(const FileMap *map);

#endif
