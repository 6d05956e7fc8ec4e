// Text files and folders.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/disk_room.h"
#include "base/file_replace.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "base/sandbox.h"
#include "base/utf8.h"
#include "device/foretell.h"
#include "library/text_file.h"
#include "value/convert.h"

static Status fail_path(const char *doing, const char *path, int error) {
    return fail(STATUS_IO, "cannot %s \"%s\": %s", doing, path, file_problem(error));
}

enum { TEXT_BYTES_MAX = 1 << 30 };

static Status fail_large(const char *path) {
    return fail(STATUS_IO, "cannot read \"%s\": it is larger than %d MB", path,
                TEXT_BYTES_MAX >> 20);
}

static Status read_stream(FILE *file, const char *path, Text *out) {
    char bytes[65536];
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        size_t whole = out->length + count;
        if (whole > TEXT_BYTES_MAX) return fail_large(path);
        text_append(out, bytes, count);
        if (out->length < whole) return memory_exhausted();
    }
    return ferror(file) ? fail_path("read", path, errno) : STATUS_OK;
}

// While the program is foretold: only a run has what is there.
static bool is_of_the_moment(const char *path) {
    return foretelling() && file_is_of_the_moment(path);
}

// A pipe is not read before its run.
static const char *foretold_path(const char *path) {
    if (!is_of_the_moment(path)) return path;
    foretell_unknown();
    struct stat about;
    bool plain = stat(path, &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode);
    return plain ? path : "/dev/null";
}

static Status open_for_reading(const char *path, FILE **out) {
    struct stat about;
    SCOPED_TEXT(place);
    const char *found = aside_read(path, &place);
    if (found != path && aside_has_measured()) foretell_unknown();
    *out = sandbox_allows(found) ? fopen(foretold_path(found), "rb") : NULL;
    if (!*out || fstat(fileno(*out), &about) != 0) return fail_path("read", path, errno);
    Status status = STATUS_OK;
    if (S_ISDIR(about.st_mode)) status = fail_path("read", path, EISDIR);
    if (S_ISREG(about.st_mode) && about.st_size > TEXT_BYTES_MAX) status = fail_large(path);
    if (status != STATUS_OK) fclose(*out);
    return status;
}

Status text_file_read(const char *path, Text *out) {
    FILE *file;
    TRY(open_for_reading(path, &file));
    Status status = read_stream(file, path, out);
    fclose(file);
    size_t bad;
    if (status == STATUS_OK && !utf8_valid(text_get(out), out->length, &bad))
        status = fail(STATUS_IO, "cannot read \"%s\" as text: byte %zu is not UTF-8", path, bad);
    bool mark = out->length >= 3 && memcmp(out->bytes, "\xEF\xBB\xBF", 3) == 0;
    if (mark) {
        out->length -= 3;
        memmove(out->bytes, out->bytes + 3, out->length + 1);
    }
    return status;
}

typedef struct WriteJob {
    const char *path, *mode, *bytes;
    size_t length;
} WriteJob;

// What is written anew counts where it is put into its place (base/file_replace.h).
static bool counts_appended(const WriteJob *job, off_t before) {
    int64_t had = before > 0 ? before : DISK_NOTHING;
    return before < 0 || disk_room_take(had, before + (off_t)job->length);
}

static Status write_bytes(const char *target, void *context) {
    const WriteJob *job = context;
    FILE *file = fopen(target, job->mode);
    if (!file) return fail_path("write", job->path, errno);
    off_t before = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : -1;
    bool whole = fwrite(job->bytes, 1, job->length, file) == job->length;
    int error = errno;
    if (fclose(file) != 0) {
        whole = false;
        error = errno;
    }
    if (whole && job->mode[0] == 'a' && !counts_appended(job, before)) {
        whole = false;
        error = errno;
    }
    bool partial = !whole && before >= 0 && job->mode[0] == 'a';
    if (partial && truncate(target, before) != 0) error = errno; // what was there stays
    return whole ? STATUS_OK : fail_path("write", job->path, error);
}

Status text_file_write(const char *path, const char *bytes, size_t length, bool append) {
    WriteJob job = {path, append ? "ab" : "wb", bytes, length};
    if (!append) return file_replace(path, write_bytes, &job);
    SCOPED_TEXT(place);
    const char *target = aside_written(path, &place);
    return sandbox_allows(target) ? write_bytes(target, &job) : fail_path("write", path, errno);
}

static const char *path_of(const BuiltinCall *call) {
    return call->arguments[0].as.string->bytes;
}

Value builtin_read_file(BuiltinCall *call) {
    SCOPED_TEXT(text);
    Status status = text_file_read(path_of(call), &text);
    return status == STATUS_OK ? value_string(text_get(&text), text.length) : value_fail();
}

Value builtin_write_file(BuiltinCall *call) {
    const String *text = call->arguments[1].as.string;
    if (string_is_measured(text)) aside_note_measured();
    TRY_VALUE(
        text_file_write(path_of(call), text->bytes, text->length, call->arguments[2].as.boolean));
    return value_none();
}

static Value split_lines(const Text *text) {
    Value list = value_list(0);
    const char *at = text_get(text), *end = at + text->length;
    while (at < end && !runtime_interrupts(runtime_current)) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        size_t shown = length > 0 && at[length - 1] == '\r' ? length - 1 : length;
        list_push(list.as.list, value_string(at, shown));
        at += length + (newline ? 1 : 0);
    }
    return list;
}

Value builtin_read_lines(BuiltinCall *call) {
    SCOPED_TEXT(text);
    Status status = text_file_read(path_of(call), &text);
    return status == STATUS_OK ? split_lines(&text) : value_fail();
}

Value builtin_exists(BuiltinCall *call) {
    struct stat about;
    SCOPED_TEXT(place);
    const char *path = aside_read(path_of(call), &place);
    if (is_of_the_moment(path)) return value_unknown(DTYPE_BOOL);
    bool exists = stat(path, &about) == 0 && sandbox_allows(path);
    return value_bool(exists);
}

Value builtin_same_file(BuiltinCall *call) {
    struct stat of[2];
    for (int i = 0; i < 2; i++) {
        SCOPED_TEXT(place);
        const char *path = aside_read(call->arguments[i].as.string->bytes, &place);
        if (is_of_the_moment(path)) return value_unknown(DTYPE_BOOL);
        if (stat(path, &of[i]) != 0 || !sandbox_allows(path)) return value_bool(false);
    }
    return value_bool(of[0].st_dev == of[1].st_dev && of[0].st_ino == of[1].st_ino);
}

Value builtin_list_dir(BuiltinCall *call) {
    FolderNames names = {0};
    if (is_of_the_moment(path_of(call))) foretell_unknown();
    bool listed = folder_list(path_of(call), &names);
    if (!listed) fail_path("list", path_of(call), errno);
    Value list = listed ? value_list(names.count) : value_fail();
    for (size_t i = 0; i < names.count && listed; i++)
        list_push(list.as.list, value_cstring(names.items[i]));
    folder_names_free(&names);
    return list;
}
