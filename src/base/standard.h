// The files of std/ as they were when the program was built, for where they are not on disk.
#ifndef BASE_STANDARD_H
#define BASE_STANDARD_H

#include <stddef.h>

typedef struct StandardFile {
    const char *path; // "std/layers.tl"
    const unsigned char *text;
    size_t length;
} StandardFile;

extern const StandardFile standard_files[]; // by path
extern const size_t standard_file_count;
const StandardFile *standard_find(const char *path); // NULL when there is none

#endif
