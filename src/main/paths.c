// Files and folders named on a command line: every .tl file that they mean.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "main/command.h"

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// Every .tl file below a folder. Hidden entries are passed over.
static void collect_folder(const char *folder, PathList *paths) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        SCOPED_TEXT(path);
        text_format(&path, "%s/%s", folder, entry->d_name);
        size_t length = path.length;
        if (is_folder(text_get(&path)))
            collect_folder(text_get(&path), paths);
        else if (length > 3 && strcmp(path.bytes + length - 3, ".tl") == 0)
            VECTOR_PUSH(paths, text_take(&path));
    }
    closedir(directory);
}

void paths_collect(const char *path, PathList *paths) {
    if (is_folder(path)) {
        size_t first = paths->count;
        collect_folder(path, paths);
        if (paths->count > first)
            qsort(paths->items + first, paths->count - first, sizeof *paths->items, compare_paths);
    } else {
        VECTOR_PUSH(paths, memory_copy_string(path, strlen(path)));
    }
}

void paths_free(PathList *paths) {
    for (size_t i = 0; i < paths->count; i++) free(paths->items[i]);
    VECTOR_FREE(paths);
}
