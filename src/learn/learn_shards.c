// The files of a block whose ranks share the optimizer's state, or the parameters: every rank
// writes what it keeps into one of its own, and the file of `save`, which comes last, names them
// all. Until it is there the files of the save before are whole.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aside.h"
#include "learn/learn_shards.h"
#include "model/tensor_sum.h"
#include "ranks/sharded.h"
#include "tensor/compose.h"
#include "tensor/join.h"

// Names on lines; and parameters that are in parts, each on a line: its name in the file, that of
// its parts, and its dimensions.
static const char shards_key[] = "learn.shards", parts_key[] = "learn.parts";

bool learn_is_sharded(const LearnRun *run) {
    return run->shares != SHARES_NOTHING && ranks_count() > 1;
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

// --- parameters in parts

static void append_part_name(Text *out, const char *parameter) {
    text_clear(out);
    text_format(out, "learn.part.%s.", parameter);
}

static void add_parameter_parts(Archive *archive) {
    SCOPED_TEXT(name);
    for (size_t i = 0; i < archive->parameters.count; i++) {
        const NamedParameter *one = &archive->parameters.items[i];
        int64_t first;
        Tensor *part = sharded_part(one->tensor, &first);
        if (!part || tensor_count(part) == 0) continue;
        append_part_name(&name, one->name);
        text_format(&name, "%lld", (long long)first);
        named_tensors_add(&archive->tensors, text_get(&name), tensor_retain(part));
    }
}

static void append_part_line(const Archive *archive, const NamedTensor *one, Text *out) {
    const char *parameter = parameters_name(&archive->parameters, one->tensor);
    ASSERT(parameter != NULL); // what is saved was asked for its parameters
    text_format(out, "%s\t%s\t", one->name, parameter);
    for (int d = 0; d < tensor_rank(one->tensor); d++)
        text_format(out, "%lld ", (long long)one->tensor->view.dims[d]);
    text_append_string(out, "\n");
}

static void leave_parts_out(Archive *archive) {
    SCOPED_TEXT(lines);
    for (size_t i = archive->tensors.count; i-- > 0;) {
        const NamedTensor *one = &archive->tensors.items[i];
        int64_t first;
        if (!sharded_part(one->tensor, &first)) continue;
        append_part_line(archive, one, &lines);
        named_tensors_remove(&archive->tensors, one->name);
    }
    if (lines.length > 0) named_tensors_add_text(&archive->tensors, parts_key, text_get(&lines));
}

typedef struct Part {
    int64_t first;
    Tensor *tensor; // borrowed
} Part;
typedef VECTOR(Part) Parts;

static int by_first(const void *x, const void *y) {
    const Part *left = x, *right = y;
    return left->first < right->first ? -1 : left->first > right->first;
}

static void find_parts(const Archive *archive, const char *prefix, Parts *out) {
    size_t length = strlen(prefix);
    for (size_t i = 0; i < archive->tensors.count; i++) {
        const NamedTensor *one = &archive->tensors.items[i];
        char *end;
        if (strncmp(one->name, prefix, length) != 0) continue;
        int64_t first = strtoll(one->name + length, &end, 10);
        if (*end || end == one->name + length || tensor_rank(one->tensor) != 1) continue;
        VECTOR_PUSH(out, ((Part){first, one->tensor}));
    }
    if (out->count > 0) qsort(out->items, out->count, sizeof *out->items, by_first);
}

// STATUS_FORMAT unless they follow each other and fill the shape.
static Status join_parts(const Archive *archive, const char *name, const Parts *parts,
                         const Shape *shape, Tensor **out) {
    Tensor **items = memory_allocate((parts->count + 1) * sizeof *items);
    int64_t elements = 0;
    for (size_t i = 0; i < parts->count && parts->items[i].first == elements; i++) {
        items[i] = parts->items[i].tensor;
        elements += tensor_count(items[i]);
    }
    SCOPED_TENSOR(flat);
    Status status = STATUS_OK;
    if (elements != shape_count(shape))
        status = fail(STATUS_FORMAT, "%s: the parts of `%s` are of %lld elements, not of %lld",
                      archive->path, name, (long long)elements, (long long)shape_count(shape));
    else
        status = tensor_concat(items, parts->count, 0, &flat);
    free(items);
    TRY(status);
    return tensor_reshape(flat, shape, out);
}

// A line of parts_key, which is written to.
static Status read_part_line(Archive *archive, char *line) {
    char *parameter = strchr(line, '\t'), *dims = parameter ? strchr(parameter + 1, '\t') : NULL;
    if (!dims)
        return fail(STATUS_FORMAT, "%s: `%s` is not what a learn block has written", archive->path,
                    parts_key);
    *parameter++ = *dims++ = '\0';
    Shape shape = {.rank = 0};
    for (char *end; shape.rank < RANK_MAX; dims = end) {
        int64_t dim = strtoll(dims, &end, 10);
        if (end == dims || dim < 0) break;
        shape.dims[shape.rank++] = dim;
    }
    SCOPED_TEXT(prefix);
    SCOPED_MEMORY Parts parts = {0};
    Tensor *whole = NULL;
    append_part_name(&prefix, parameter);
    find_parts(archive, text_get(&prefix), &parts);
    Status status = join_parts(archive, line, &parts, &shape, &whole);
    if (status == STATUS_OK) named_tensors_add(&archive->tensors, line, whole);
    return status;
}

static Status read_parts(Archive *archive) {
    const char *given = named_tensors_text(&archive->tensors, parts_key);
    if (!given) return STATUS_OK;
    char *lines = memory_copy_string(given, strlen(given)), *at = lines;
    Status status = STATUS_OK;
    for (char *end; status == STATUS_OK && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        status = read_part_line(archive, at);
    }
    free(lines);
    return status;
}

// --- files

Status learn_write_shard(const LearnRun *run, Archive *archive, const TensorFormat *format) {
    SCOPED_TEXT(name);
    SCOPED_TEXT(path);
    append_name(run, format->ending, ranks_own(), &name);
    set_path(run->save_path.as.string->bytes, text_get(&name), name.length, &path);
    archive_add_parts(archive, "learn.optimizer", run->optimizer_value.as.handle->payload);
    add_parameter_parts(archive);
    Status status = named_tensors_add_sum(&archive->tensors);
    if (status == STATUS_OK) status = format->write(text_get(&path), &archive->tensors);
    return status == STATUS_OK ? ranks_barrier() : status;
}

void learn_name_shards(const LearnRun *run, Archive *archive, const TensorFormat *format) {
    SCOPED_TEXT(names);
    for (int i = 0; i < ranks_count(); i++) {
        if (i > 0) text_append_string(&names, "\n");
        append_name(run, format->ending, i, &names);
    }
    named_tensors_add_text(&archive->tensors, shards_key, text_get(&names));
    leave_parts_out(archive);
}

// --- those of a file

static Status read_into(const char *path, const TensorFormat *format, NamedTensors *out) {
    NamedTensors shard = {0};
    Status status = format->read(path, &shard);
    if (status == STATUS_OK) status = named_tensors_check_sum(&shard, path);
    for (size_t i = 0; i < shard.count && status == STATUS_OK; i++)
        named_tensors_add(out, shard.items[i].name, tensor_retain(shard.items[i].tensor));
    named_tensors_free(&shard);
    return status;
}

Status learn_read_shards(Archive *archive, const TensorFormat *format) {
    const char *names = named_tensors_text(&archive->tensors, shards_key);
    SCOPED_TEXT(path);
    Status status = STATUS_OK;
    while (names && *names && status == STATUS_OK) {
        size_t length = strcspn(names, "\n");
        set_path(archive->path, names, length, &path);
        status = read_into(text_get(&path), format, &archive->tensors);
        names += length + (names[length] == '\n');
    }
    return status == STATUS_OK ? read_parts(archive) : status;
}

// Whether a name is one of those on the lines of a text.
static bool is_listed(const char *names, const char *name) {
    size_t length = strlen(name);
    while (names && *names) {
        size_t one = strcspn(names, "\n");
        if (one == length && strncmp(names, name, length) == 0) return true;
        names += one + (names[one] == '\n');
    }
    return false;
}

static const char *after_digits(const char *text) {
    size_t digits = text ? strspn(text, "0123456789") : 0;
    return digits > 0 ? text + digits : NULL;
}

static const char *after(const char *text, const char *word) {
    size_t length = strlen(word);
    return text && strncmp(text, word, length) == 0 ? text + length : NULL;
}

// "run-120-2-of-4.safetensors" for "run.safetensors": a name as append_name makes it, also of what
// was only begun (base/file_replace.c).
static bool is_shard(const char *name, const char *file, const char *ending) {
    size_t stem = strlen(file) - strlen(ending);
    if (strncmp(name, file, stem) != 0) return false;
    const char *at = after_digits(after(name + stem, "-"));
    at = after_digits(after(at, "-"));
    at = after_digits(after(at, "-of-"));
    at = after(at, ending);
    return at && (!*at || strcmp(at, ".part") == 0);
}

void learn_remove_shards(const Archive *now, const TensorFormat *format) {
    const char *kept = named_tensors_text(&now->tensors, shards_key);
    const char *file = now->path + folder_length(now->path);
    SCOPED_TEXT(path);
    set_path(now->path, ".", 1, &path);
    DIR *folder = opendir(text_get(&path));
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (!is_shard(entry->d_name, file, format->ending) || is_listed(kept, entry->d_name))
            continue;
        set_path(now->path, entry->d_name, strlen(entry->d_name), &path);
        aside_remove(text_get(&path));
    }
    if (folder) closedir(folder);
}
