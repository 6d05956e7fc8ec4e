// Replaces files: a reader sees the old contents or the new ones, never a part of either.
#include "base/file_replace.h"

#include <errno.h>

#include "base/aside.h"
#include "base/sandbox.h"
#include "base/text.h"

static Status fail_write(const char *path) {
    return fail(STATUS_IO, "cannot write %s: %s", path, file_problem(errno));
}

Status file_replace(const char *path, FileWriter write, void *context) {
    Text part = {0}, place = {0};
    path = aside_written(path, &place);
    text_format(&part, "%s.part", path);
    Status status = write(text_get(&part), context);
    if (status == STATUS_OK && rename(text_get(&part), path) != 0) status = fail_write(path);
    if (status != STATUS_OK) remove(text_get(&part));
    text_free(&part);
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
