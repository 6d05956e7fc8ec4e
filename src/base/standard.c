#include "base/standard.h"

#include <string.h>

#define FILE(path, bytes) {path, (const unsigned char *)bytes, sizeof bytes - 1},
const StandardFile standard_files[] = {
#include "base/standard_files.def"
};
const size_t standard_file_count = sizeof standard_files / sizeof *standard_files;

const StandardFile *standard_find(const char *path) {
    for (size_t i = 0; i < standard_file_count; i++)
        if (strcmp(standard_files[i].path, path) == 0) return &standard_files[i];
    return NULL;
}
