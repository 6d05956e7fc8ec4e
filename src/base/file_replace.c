// Replaces files: a reader sees the old contents or the new ones, never a part of either.
#include "base/file_replace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/aside.h"
#include "base/sandbox.h"
#include "base/text.h"

static Status fail_write(const char *path) {
    return fail(STATUS_IO, "cannot write %s: %s", path, file_problem(errno));
}

// Makes `target` anew by way of a part next to it, with the rights of what was there.
static Status replace_regular(const char *target, const struct stat *before, FileWriter write,
                              void *context) {
    ASSERT(write != NULL);
    Text part = {0};
    text_format(&part, "%s.part", target);
    Status status = write(text_get(&part), context);
    bool moved =
        status != STATUS_OK || ((!before || chmod(text_get(&part), before->st_mode & 07777) == 0) &&
                                rename(text_get(&part), target) == 0);
    if (!moved) status = fail_write(target);
    if (status != STATUS_OK) remove(text_get(&part));
    text_free(&part);
    return status;
}

Status file_replace(const char *path, FileWriter write, void *context) {
    Text place = {0};
    struct stat before;
    path = aside_written(path, &place);
    char *target = realpath(path, NULL); // a link stays, and leads to what is new
    bool exists = target && stat(target, &before) == 0;
    Status status =
        exists && !S_ISREG(before.st_mode)
            ? write(path, context) // a device or a pipe takes what comes
            : replace_regular(target ? target : path, exists ? &before : NULL, write, context);
    free(target);
    text_free(&place);
    return status;
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
    if (fclose(stream) != 0 && status == STATUS_OK) status = fail_write(job->path);
    return status;
}

Status file_replace_stream(const char *path, StreamWriter write, void *context) {
    StreamJob job = {.path = path, .write = write, .context = context};
    return file_replace(path, write_stream, &job);
}

Status stream_write(FILE *stream, const void *bytes, size_t length) {
    if (fwrite(bytes, 1, length, stream) == length) return STATUS_OK;
    return fail(STATUS_IO, "cannot write: %s", file_problem(errno));
}
