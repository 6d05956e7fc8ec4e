// A model in several GGUF files: NAME-00001-of-00003.gguf has the metadata, each has some tensors.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/gguf.h"

enum { PARTS_MAX = 99999, ENDING_BYTES = sizeof "-00001-of-00003.gguf" - 1 };

static int64_t number_of(const GgufFile *file, const char *key) {
    const GgufValue *value = gguf_find(file, key);
    bool integer = value && value->type != GGUF_STRING && value->type != GGUF_ARRAY &&
                   value->type != GGUF_FLOAT32 && value->type != GGUF_FLOAT64;
    return integer ? value->as.integer : 0;
}

static void append_ending(int64_t index, int64_t count, Text *out) {
    text_format(out, "-%05lld-of-%05lld.gguf", (long long)index + 1, (long long)count);
}

// The path of a part, from that of the first.
static void part_path(const char *first, int64_t index, int64_t count, Text *out) {
    text_append(out, first, strlen(first) - ENDING_BYTES);
    append_ending(index, count, out);
}

static Status check_first(const GgufFile *file, const char *path, int64_t count) {
    int64_t index = number_of(file, "split.no");
    if (count > PARTS_MAX)
        return fail(STATUS_FORMAT, "%s claims to be one of %lld files", path, (long long)count);
    Text wanted = {0};
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
    text_free(&wanted);
    return status;
}

// Moves a part's tensors to the whole, which keeps the part's file.
static void take_tensors(GgufFile *whole, GgufFile *part) {
    size_t count = whole->tensor_count + part->tensor_count;
    whole->tensors = memory_resize(whole->tensors, (count + 1) * sizeof *whole->tensors);
    memcpy(whole->tensors + whole->tensor_count, part->tensors,
           part->tensor_count * sizeof *whole->tensors);
    whole->tensor_count = count;
    part->tensor_count = 0;
    whole->parts[whole->part_count++] = part;
}

static Status add_part(GgufFile *whole, const char *first, int64_t index, int64_t count) {
    Text path = {0};
    GgufFile *part = NULL;
    part_path(first, index, count, &path);
    Status status = gguf_open(text_get(&path), &part);
    if (status == STATUS_OK &&
        (number_of(part, "split.no") != index || number_of(part, "split.count") != count)) {
        status = fail(STATUS_FORMAT, "%s does not say that it is part %lld of %lld",
                      text_get(&path), (long long)index + 1, (long long)count);
        gguf_close(part);
    } else if (status == STATUS_OK) {
        take_tensors(whole, part);
    }
    text_free(&path);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(GgufTensor *const *)a)->name, (*(GgufTensor *const *)b)->name);
}

static Status check_names(const GgufFile *file, const char *path) {
    GgufTensor **sorted = memory_allocate((file->tensor_count + 1) * sizeof *sorted);
    for (size_t i = 0; i < file->tensor_count; i++) sorted[i] = &file->tensors[i];
    qsort(sorted, file->tensor_count, sizeof *sorted, compare_names);
    Status status = STATUS_OK;
    for (size_t i = 1; i < file->tensor_count && status == STATUS_OK; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status = fail(STATUS_FORMAT, "%s: two tensors of its parts are called %s", path,
                          sorted[i]->name);
    free(sorted);
    return status;
}

static Status add_parts(GgufFile *whole, const char *path) {
    int64_t count = number_of(whole, "split.count");
    if (count <= 1) return STATUS_OK;
    TRY(check_first(whole, path, count));
    whole->parts = memory_allocate_zeroed((size_t)count, sizeof *whole->parts);
    for (int64_t i = 1; i < count; i++) TRY(add_part(whole, path, i, count));
    return check_names(whole, path);
}

Status gguf_open_parts(const char *path, GgufFile **out) {
    TRY(gguf_open(path, out));
    Status status = add_parts(*out, path);
    if (status != STATUS_OK) gguf_close(*out);
    return status;
}
