#include "model/reader.h"

#include <stdlib.h>

#include "model/folder.h"
#include "model/npz.h"
#include "model/tensor_write.h"

static bool begins_index(const uint8_t *bytes, size_t length) {
    return length > 0 && bytes[0] == '{';
}

static bool begins_gguf(const uint8_t *bytes, size_t length) {
    return length >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

// 8 bytes of length, and JSON.
static bool begins_safetensors(const uint8_t *bytes, size_t length) {
    return length > 8 && bytes[8] == '{';
}

static bool begins_anyhow(const uint8_t *bytes, size_t length) {
    (void)bytes;
    (void)length;
    return true;
}

// The first that knows the beginning of a file opens it.
static const struct {
    bool (*begins)(const uint8_t *bytes, size_t length);
    ReaderOpen *open;
} formats[] = {
    {begins_index, safetensors_open_index}, {npz_begins, npz_open},     {begins_gguf, gguf_open},
    {begins_safetensors, safetensors_open}, {begins_anyhow, gguf_open}, // which says what is
                                                                        // missing
};

static Status open_map(Reader *reader, FileMap *map) {
    size_t i = 0;
    while (!formats[i].begins(file_map_bytes(map), file_map_length(map))) i++;
    return formats[i].open(reader, map);
}

static Status open_file(Reader *reader, const char *path, ReaderOpen *open) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status opened = open(reader, map), status = file_map_check(map);
    file_map_release(map);
    return status == STATUS_OK ? opened : status;
}

Status reader_open_as(const char *path, ReaderOpen *open, Reader **out) {
    ASSERT(path != NULL);
    Reader *reader = memory_allocate_zeroed(1, sizeof *reader);
    Status status = open ? open_file(reader, path, open) : folder_open(reader, path);
    if (status == STATUS_OK)
        *out = reader;
    else
        reader_close(reader);
    return status;
}

Status reader_open(const char *path, Reader **out) {
    return reader_open_as(path, folder_is(path) ? NULL : open_map, out);
}

void reader_clear(Reader *reader) {
    metadata_free(&reader->metadata);
    for (size_t i = 0; i < reader->tensors.count; i++) {
        StoredTensor *tensor = &reader->tensors.items[i];
        tensor_release(tensor->tensor);
        free(tensor->name);
        free(tensor->type_name);
        free(tensor->why);
        free(tensor->help);
    }
    VECTOR_FREE(&reader->tensors);
    for (size_t i = 0; i < reader->maps.count; i++) file_map_release(reader->maps.items[i]);
    VECTOR_FREE(&reader->maps);
    free(reader->header);
}

void reader_close(Reader *reader) {
    reader_clear(reader);
    free(reader);
}

size_t reader_bytes(const Reader *reader) {
    size_t bytes = 0;
    for (size_t i = 0; i < reader->tensors.count; i++)
        if (!reader->tensors.items[i].is_part) bytes += reader->tensors.items[i].bytes;
    return bytes;
}

Status reader_fail_unusable(const StoredTensor *tensor, const char *path) {
    ASSERT(!tensor->usable);
    if (!tensor->why) return named_tensors_fail_unread(path, tensor->name, tensor->type_name);
    (void)fail(tensor->refusal, "tensor %s of %s %s", tensor->name, path, tensor->why);
    return tensor->help ? fail_help("%s", tensor->help) : tensor->refusal;
}

StoredTensor *reader_add(Reader *reader, const char *name, const char *type_name) {
    StoredTensor tensor = {.name = memory_copy_string(name, strlen(name)),
                           .type_name = memory_copy_string(type_name, strlen(type_name))};
    VECTOR_PUSH(&reader->tensors, tensor);
    return &reader->tensors.items[reader->tensors.count - 1];
}

int reader_compare_names(const void *a, const void *b) {
    return strcmp((*(StoredTensor *const *)a)->name, (*(StoredTensor *const *)b)->name);
}

void reader_add_tensor(Reader *reader, const char *name, Tensor *tensor) {
    StoredTensor *stored = reader_add(reader, name, dtype_name(tensor_dtype(tensor)));
    stored->shape = tensor_shape(tensor);
    stored->dtype = tensor_dtype(tensor);
    stored->usable = true;
    stored->bytes = tensor_stored_bytes(&stored->shape, stored->dtype);
    stored->tensor = tensor_retain(tensor);
}

void reader_add_texts(Reader *reader, const NamedTexts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        metadata_put_string(&reader->metadata, texts->items[i].key, texts->items[i].text);
}
