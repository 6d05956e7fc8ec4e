#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/aside.h"
#include "base/sandbox.h"

static int by_name(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static bool add_names(const char *path, FolderNames *out) {
    DIR *folder = opendir(path);
    if (!folder) return false;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            VECTOR_PUSH(out, memory_copy_string(entry->d_name, strlen(entry->d_name)));
    closedir(folder);
    return true;
}

static void drop_repeated(FolderNames *names) {
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    }
    ASSERT(kept <= names->count);
    names->count = kept;
}

bool folder_list(const char *path, FolderNames *out) {
    SCOPED_TEXT(place);
    const char *found = aside_read(path, &place);
    if (!sandbox_allows(path) || !add_names(path, out)) return false;
    if (found != path) (void)add_names(found, out);
    if (out->count > 0) qsort(out->items, out->count, sizeof *out->items, by_name);
    drop_repeated(out);
    return true;
}

void folder_names_free(FolderNames *names) {
    for (size_t i = 0; i < names->count; i++) free(names->items[i]);
    VECTOR_FREE(names);
}

// Of a path that leads nowhere, the part of it that is there.
static bool is_made_up(const char *path) {
    enum { PROC = 0x9fa0, SYSFS = 0x62656572, CGROUP = 0x63677270 };
    SCOPED_MEMORY char *part = memory_copy_string(path, strlen(path));
    struct statfs about;
    while (statfs(part, &about) != 0) {
        char *slash = strrchr(part, '/');
        if (!slash || slash == part) return false;
        *slash = '\0';
    }
    return about.f_type == PROC || about.f_type == SYSFS || about.f_type == CGROUP;
}

bool file_is_of_the_moment(const char *path) {
    struct stat about;
    bool there = stat(path, &about) == 0;
    return is_made_up(path) || (there && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode));
}
