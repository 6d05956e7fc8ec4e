// Replaces files: a reader sees the old contents or the new ones, never a part of either.
#include "base/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/disk_room.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "base/sandbox.h"
#include "base/text.h"

static Status fail_write(const char *path) {
    return fail(STATUS_IO, "cannot write %s: %s", path, file_problem(errno));
}

// Until what `path` names is on the disk. Systems of files that cannot say so are believed.
static bool is_kept(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool kept = file >= 0 && (fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP);
    if (file >= 0) close(file);
    return kept;
}

// A replacement, and what it is for.
typedef struct Replacement {
    FileWriter write;
    void *context;
    bool kept; // a power cut must not undo it, nor leave a name without its bytes
} Replacement;

static char *folder_of(const char *target) {
    const char *slash = strrchr(target, '/');
    if (!slash) return memory_copy_string(".", 1);
    return memory_copy_string(target, slash == target ? 1 : (size_t)(slash - target));
}

static void keep_name(const char *target) {
    SCOPED_MEMORY char *folder = folder_of(target);
    (void)is_kept(folder); // the file is there, whether its folder can be read or not
}

// --- taking turns --------------------------------------------------------------------------------
// The part has one name, so that what a killed process leaves does not add up. Whoever writes it
// holds what it will replace, or the folder where there is nothing yet. Where that cannot be held,
// and once the run is interrupted, nobody waits.

static bool is_interrupted(void) {
    return runtime_current && runtime_interrupts(runtime_current) != 0;
}

static int hold(const char *path) {
    const struct timespec pause = {.tv_nsec = 5000000};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           !is_interrupted())
        nanosleep(&pause, NULL);
    return file;
}

static bool is_at(int file, const char *path) {
    struct stat held, there;
    return fstat(file, &held) == 0 && stat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

// What is closed when it is done; -1: nothing.
static int take_turn(const char *target) {
    for (;;) {
        int file = hold(target);
        if (file >= 0 && is_at(file, target)) return file;
        if (file < 0 && errno != ENOENT) return -1;
        if (file >= 0) {
            close(file); // it was replaced meanwhile
            continue;
        }
        char *folder = folder_of(target);
        file = hold(folder);
        free(folder);
        if (file < 0 || access(target, F_OK) != 0) return file;
        close(file); // it was made meanwhile
    }
}

static bool move_onto(const char *part, const char *target, const struct stat *before, bool kept) {
    struct stat after;
    bool given = !before || chmod(part, before->st_mode & 07777) == 0;
    if (!given || (kept && !is_kept(part)) || stat(part, &after) != 0) return false;
    int64_t had = before ? before->st_size : DISK_NOTHING;
    if (!disk_room_take(had, after.st_size)) return false;
    if (rename(part, target) != 0) {
        (void)disk_room_take(after.st_size, had); // what is given back always fits
        return false;
    }
    if (kept) keep_name(target);
    return true;
}

// Makes `target` anew by way of a part next to it, with the rights of what was there.
static Status replace_regular(const char *target, const struct stat *before,
                              const Replacement *replacement) {
    ASSERT(replacement->write != NULL);
    SCOPED_TEXT(part);
    int turn = take_turn(target);
    text_format(&part, "%s.part", target);
    Status status = replacement->write(text_get(&part), replacement->context);
    bool moved =
        status != STATUS_OK || move_onto(text_get(&part), target, before, replacement->kept);
    if (!moved) status = fail_write(target);
    if (status != STATUS_OK) remove(text_get(&part));
    if (turn >= 0) close(turn);
    return status;
}

static Status replace(const char *path, const Replacement *replacement) {
    SCOPED_TEXT(place);
    struct stat before;
    path = aside_written(path, &place);
    char *target = realpath(path, NULL); // a link stays, and leads to what is new
    bool exists = target && stat(target, &before) == 0;
    Status status =
        !sandbox_allows(path) ? fail_write(path)
        : exists && !S_ISREG(before.st_mode)
            ? replacement->write(path, replacement->context) // takes what comes
            : replace_regular(target ? target : path, exists ? &before : NULL, replacement);
    free(target);
    return status;
}

Status file_check_place(const char *path) {
    struct stat there;
    SCOPED_MEMORY char *target = realpath(path, NULL);
    bool exists = target && stat(target, &there) == 0, is_folder = exists && S_ISDIR(there.st_mode);
    bool plain = !exists || S_ISREG(there.st_mode);
    SCOPED_MEMORY char *folder = folder_of(target ? target : path);
    bool fits = !is_folder && (!plain || access(folder, W_OK | X_OK) == 0);
    if (is_folder) errno = EISDIR;
    return fits ? STATUS_OK : fail_write(path);
}

Status file_replace(const char *path, FileWriter write, void *context) {
    return replace(path, &(Replacement){write, context, false});
}

Status file_keep(const char *path, FileWriter write, void *context) {
    return replace(path, &(Replacement){write, context, true});
}

typedef struct StreamJob {
    const char *path;
    StreamWriter write;
    void *context;
} StreamJob;

static Status write_stream(const char *part, void *context) {
    const StreamJob *job = context;
    FILE *stream = fopen(part, "wbe");
    if (!stream) return fail_write(job->path);
    Status status = job->write(stream, job->context);
    if (status == STATUS_IO && ferror(stream)) status = fail_write(job->path); // names the path
    if (fclose(stream) != 0 && status == STATUS_OK) status = fail_write(job->path);
    return status;
}

Status file_replace_stream(const char *path, StreamWriter write, void *context) {
    StreamJob job = {.path = path, .write = write, .context = context};
    return file_replace(path, write_stream, &job);
}

Status file_keep_stream(const char *path, StreamWriter write, void *context) {
    StreamJob job = {.path = path, .write = write, .context = context};
    return file_keep(path, write_stream, &job);
}

Status stream_write(FILE *stream, const void *bytes, size_t length) {
    if (fwrite(bytes, 1, length, stream) == length) return STATUS_OK;
    return fail(STATUS_IO, "cannot write: %s", file_problem(errno));
}
