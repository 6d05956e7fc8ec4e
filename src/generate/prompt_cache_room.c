// A file's time of change is when its text was used last.
#include "generate/prompt_cache_room.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "base/text.h"

enum { PART_SECONDS = 3600 }; // nobody writes one for so long

typedef struct KeptFile {
    char *path;
    uint64_t bytes;
    struct timespec used;
} KeptFile;

typedef VECTOR(KeptFile) KeptFiles;

void kept_file_touch(const char *path) {
    if (!runtime_current->aside) utimensat(AT_FDCWD, path, NULL, 0);
}

// "0123456789abcdef-0123456789abcdef.safetensors", and what stands after that.
static const char *after_name(const char *name) {
    static const char hexadecimal[] = "0123456789abcdef", ending[] = ".safetensors";
    if (strspn(name, hexadecimal) != 16 || name[16] != '-') return NULL;
    if (strspn(name + 17, hexadecimal) != 16) return NULL;
    size_t length = sizeof ending - 1;
    return strncmp(name + 33, ending, length) == 0 ? name + 33 + length : NULL;
}

static void add_file(KeptFiles *files, const char *folder, const char *name) {
    const char *after = after_name(name);
    bool part = after && strcmp(after, ".part") == 0;
    struct stat found;
    if (!after || (*after && !part)) return;
    SCOPED_TEXT(path);
    text_format(&path, "%s/%s", folder, name);
    bool there = stat(text_get(&path), &found) == 0;
    if (there && part && found.st_mtim.tv_sec + PART_SECONDS < time(NULL))
        aside_remove(text_get(&path));
    if (there && !part) {
        KeptFile file = {text_take(&path), (uint64_t)found.st_size, found.st_mtim};
        VECTOR_PUSH(files, file);
    }
}

static int compare_use(const void *x, const void *y) {
    const struct timespec a = ((const KeptFile *)x)->used, b = ((const KeptFile *)y)->used;
    if (a.tv_sec != b.tv_sec) return a.tv_sec < b.tv_sec ? -1 : 1;
    return (a.tv_nsec > b.tv_nsec) - (a.tv_nsec < b.tv_nsec);
}

void kept_files_trim(const char *folder, uint64_t bytes_max) {
    SCOPED_MEMORY KeptFiles files = {0};
    uint64_t bytes = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        add_file(&files, folder, entry->d_name);
    if (open) closedir(open);
    if (files.count > 0) qsort(files.items, files.count, sizeof *files.items, compare_use);
    for (size_t i = 0; i < files.count; i++) bytes += files.items[i].bytes;
    for (size_t i = 0; i < files.count; i++) {
        if (bytes > bytes_max) {
            aside_remove(files.items[i].path);
            ASSERT(bytes >= files.items[i].bytes);
            bytes -= files.items[i].bytes;
        }
        free(files.items[i].path);
    }
}
