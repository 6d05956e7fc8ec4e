// The files of a block whose ranks share the optimizer's state: every rank writes what it keeps
// into one of its own, and the file of `save`, which comes last, names them all. Until it is there
// the files of the save before are whole.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aside.h"
#include "learn/learn_shards.h"
#include "ranks/ranks.h"
#include "value/handles.h"

static const char shards_key[] = "learn.shards";

bool learn_is_sharded(const LearnRun *run) {
    return run->shards && ranks_count() > 1;
}

// Where the last part of a path begins.
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

// "run.safetensors" after 120 steps: "run-120-2-of-4.safetensors", without the folder.
static void append_name(const LearnRun *run, const char *ending, int rank, Text *out) {
    const char *path = run->save_path.as.string->bytes;
    size_t folder = folder_length(path), stem = strlen(path) - strlen(ending) - folder;
    text_format(out, "%.*s-%lld-%d-of-%d%s", (int)stem, path + folder, (long long)run->steps_all,
                rank + 1, ranks_count(), ending);
}

// Behind the folder of the file of `save`.
static void set_path(const char *path, const char *name, size_t length, Text *out) {
    text_clear(out);
    text_format(out, "%.*s%.*s", (int)folder_length(path), path, (int)length, name);
}

Status learn_write_shard(const LearnRun *run, Archive *archive, const TensorFormat *format) {
    Text name = {0}, path = {0};
    append_name(run, format->ending, ranks_own(), &name);
    set_path(run->save_path.as.string->bytes, text_get(&name), name.length, &path);
    archive_add_parts(archive, "learn.optimizer", run->optimizer_value.as.handle->payload);
    Status status = format->write(text_get(&path), &archive->tensors);
    text_free(&path);
    text_free(&name);
    return status == STATUS_OK ? ranks_barrier() : status;
}

void learn_name_shards(const LearnRun *run, Archive *archive, const TensorFormat *format) {
    Text names = {0};
    for (int i = 0; i < ranks_count(); i++) {
        if (i > 0) text_append_string(&names, "\n");
        append_name(run, format->ending, i, &names);
    }
    named_tensors_add_text(&archive->tensors, shards_key, text_get(&names));
    text_free(&names);
}

// --- those of a file

static Status read_into(const char *path, const TensorFormat *format, NamedTensors *out) {
    NamedTensors shard = {0};
    Status status = format->read(path, &shard);
    for (size_t i = 0; i < shard.count && status == STATUS_OK; i++)
        named_tensors_add(out, shard.items[i].name, tensor_retain(shard.items[i].tensor));
    named_tensors_free(&shard);
    return status;
}

Status learn_read_shards(Archive *archive, const TensorFormat *format) {
    const char *names = named_tensors_text(&archive->tensors, shards_key);
    Text path = {0};
    Status status = STATUS_OK;
    while (names && *names && status == STATUS_OK) {
        size_t length = strcspn(names, "\n");
        set_path(archive->path, names, length, &path);
        status = read_into(text_get(&path), format, &archive->tensors);
        names += length + (names[length] == '\n');
    }
    text_free(&path);
    return status;
}

char *learn_old_shards(const char *path, const TensorFormat *format) {
    NamedTensors old = {0};
    const char *names = NULL;
    if (access(path, F_OK) == 0 && format->read(path, &old) == STATUS_OK)
        names = named_tensors_text(&old, shards_key);
    else
        error_clear();
    char *copy = names ? memory_copy_string(names, strlen(names)) : NULL;
    named_tensors_free(&old);
    return copy;
}

// Whether a name is one of those on the lines of a text.
static bool is_listed(const char *names, const char *name, size_t length) {
    while (names && *names) {
        size_t one = strcspn(names, "\n");
        if (one == length && strncmp(names, name, length) == 0) return true;
        names += one + (names[one] == '\n');
    }
    return false;
}

void learn_remove_shards(const char *path, const char *old, const Archive *now) {
    const char *kept = named_tensors_text(&now->tensors, shards_key);
    Text file = {0};
    while (old && *old) {
        size_t length = strcspn(old, "\n");
        set_path(path, old, length, &file);
        bool inside = !memchr(old, '/', length); // a name that was written here
        if (inside && !is_listed(kept, old, length)) aside_remove(text_get(&file));
        old += length + (old[length] == '\n');
    }
    text_free(&file);
}
