// A model in several GGUF files: NAME-00001-of-00003.gguf has the metadata, each has some tensors.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/gguf.h"

enum { PARTS_MAX = 99999, ENDING_BYTES = sizeof "-00001-of-00003.gguf" - 1 };

static int64_t number_of(const Reader *part, const char *key) {
    const MetaValue *value = metadata_find(&part->metadata, key);
    return meta_is_integer(value) ? value->as.integer : 0;
}

static void append_ending(int64_t index, int64_t count, Text *out) {
    text_format(out, "-%05lld-of-%05lld.gguf", (long long)index + 1, (long long)count);
}

// The path of a part, from that of the first.
static void part_path(const char *first, int64_t index, int64_t count, Text *out) {
    text_append(out, first, strlen(first) - ENDING_BYTES);
    append_ending(index, count, out);
}

static Status check_first(const Reader *file, const char *path, int64_t count) {
    int64_t index = number_of(file, "split.no");
    if (count > PARTS_MAX)
        return fail(STATUS_FORMAT, "%s claims to be one of %lld files", path, (long long)count);
    SCOPED_TEXT(wanted);
    append_ending(0, count, &wanted);
    size_t length = strlen(path);
    Status status = STATUS_OK;
    bool named =
        length >= ENDING_BYTES && strcmp(path + length - ENDING_BYTES, text_get(&wanted)) == 0;
    if (index != 0 || !named) {
        (void)fail(STATUS_FORMAT, "%s is part %lld of a model in %lld files", path,
                   (long long)index + 1, (long long)count);
        status = fail_help("open the first, whose name ends in %s", text_get(&wanted));
    }
    return status;
}

// Moves a part's tensors and its map to the whole.
static void take_tensors(Reader *whole, Reader *part) {
    for (size_t i = 0; i < part->tensors.count; i++)
        VECTOR_PUSH(&whole->tensors, part->tensors.items[i]);
    for (size_t i = 0; i < part->maps.count; i++) VECTOR_PUSH(&whole->maps, part->maps.items[i]);
    part->tensors.count = part->maps.count = 0;
}

static Status open_part(const char *path, Reader *part) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status parsed = gguf_open_part(part, map), status = file_map_check(map);
    file_map_release(map);
    return status == STATUS_OK ? parsed : status;
}

static Status add_part(Reader *whole, const char *first, int64_t index, int64_t count) {
    ASSERT(index > 0 && index < count);
    SCOPED_TEXT(path);
    Reader part = {0};
    part_path(first, index, count, &path);
    Status status = open_part(text_get(&path), &part);
    if (status == STATUS_OK &&
        (number_of(&part, "split.no") != index || number_of(&part, "split.count") != count))
        status = fail(STATUS_FORMAT, "%s does not say that it is part %lld of %lld",
                      text_get(&path), (long long)index + 1, (long long)count);
    if (status == STATUS_OK) take_tensors(whole, &part);
    reader_clear(&part);
    return status;
}

static Status check_names(const Reader *whole, const char *path) {
    size_t count = whole->tensors.count;
    SCOPED_MEMORY StoredTensor **sorted = memory_allocate((count + 1) * sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = &whole->tensors.items[i];
    qsort(sorted, count, sizeof *sorted, reader_compare_names);
    Status status = STATUS_OK;
    for (size_t i = 1; i < count && status == STATUS_OK; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status = fail(STATUS_FORMAT, "%s: two tensors of its parts are called %s", path,
                          sorted[i]->name);
    return status;
}

Status gguf_open(Reader *reader, FileMap *map) {
    const char *path = file_map_path(map);
    TRY(gguf_open_part(reader, map));
    int64_t count = number_of(reader, "split.count");
    if (count <= 1) return STATUS_OK;
    TRY(check_first(reader, path, count));
    for (int64_t i = 1; i < count; i++) TRY(add_part(reader, path, i, count));
    return check_names(reader, path);
}
