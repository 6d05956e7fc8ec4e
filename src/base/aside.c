// The folder of files that were put aside repeats the paths of the files below itself.
#define _GNU_SOURCE // nftw
#include "base/aside.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_room.h"
#include "base/memory.h"
#include "base/runtime.h"

struct Aside {
    char *folder; // NULL until something is put aside
    bool measured;
};

void aside_begin(void) {
    ASSERT(runtime_current->aside == NULL);
    runtime_current->aside = memory_allocate_zeroed(1, sizeof(Aside));
}

// Where it cannot be made nothing can be written, as the errors of that say.
static const char *own_folder(Aside *aside) {
    if (aside->folder) return aside->folder;
    const char *parent = getenv("TMPDIR");
    Text folder = {0};
    text_format(&folder, "%s/tl-XXXXXX", parent && *parent ? parent : "/tmp");
    aside->folder = text_take(&folder);
    if (mkdtemp(aside->folder)) return aside->folder;
    free(aside->folder);
    aside->folder = memory_copy_string("/dev/null", strlen("/dev/null"));
    return aside->folder;
}

bool aside_is_empty(const Aside *aside) {
    return !aside || !aside->folder;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)at;
    if (kind == FTW_F) (void)disk_room_take(about->st_size, DISK_NOTHING);
    return remove(path);
}

void aside_free(Aside *aside) {
    if (!aside) return;
    if (aside->folder && strcmp(aside->folder, "/dev/null") != 0)
        nftw(aside->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(aside->folder);
    free(aside);
}

static void append_place(const char *path, Text *place) {
    text_append_string(place, own_folder(runtime_current->aside));
    SCOPED_MEMORY char *working = path[0] == '/' ? NULL : getcwd(NULL, 0);
    if (working) text_append_string(place, working);
    text_append_char(place, '/');
    text_append_string(place, path);
}

static void make_parents(char *path) {
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) break; // whoever opens the file says so
        *slash = '/';
    }
}

const char *aside_written(const char *path, Text *place) {
    if (!runtime_current || !runtime_current->aside) return path;
    append_place(path, place);
    ASSERT(place->length > 0 && place->bytes[0] == '/');
    make_parents(place->bytes);
    return text_get(place);
}

const char *aside_read(const char *path, Text *place) {
    if (!runtime_current || aside_is_empty(runtime_current->aside)) return path;
    append_place(path, place);
    return access(text_get(place), F_OK) == 0 ? text_get(place) : path;
}

void aside_note_measured(void) {
    runtime_current->aside->measured = true;
}

bool aside_has_measured(void) {
    return runtime_current->aside->measured;
}

void aside_remove(const char *path) {
    SCOPED_TEXT(place);
    const char *found = aside_read(path, &place);
    struct stat about;
    bool own = found != path || !runtime_current->aside;
    if (own && lstat(found, &about) == 0 && unlink(found) == 0 && S_ISREG(about.st_mode))
        (void)disk_room_take(about.st_size, DISK_NOTHING);
}
