// The safetensors format: one file, or the index of several. What kernels can read in place stays
// mapped; the rest is read when the file is opened.
#include <jansson.h>
#include <stdlib.h>

#include "model/safetensors.h"
#include "model/shards.h"

typedef struct Reading {
    Reader *reader;
    const SafetensorsNaming *naming; // NULL: names and numbers are the file's
    json_t *names;                   // of tensors that were read, as the files have them
    FileMap *map;                    // of the file that is read
} Reading;

static StoredTensor *add_named(const Reading *reading, const SafetensorsEntry *entry,
                               const char *name) {
    const SafetensorsNaming *naming = reading->naming;
    const char *type = entry->known ? dtype_name(entry->dtype) : entry->type;
    StoredTensor *stored = reader_add(reading->reader, name, type);
    if (naming) stored->change = naming->change(naming->context, entry->name, name);
    return stored;
}

// Numbers of another type, bools, whose bytes a file may have wrong, and numbers at an odd address.
static bool is_mapped(const SafetensorsEntry *entry) {
    return entry->known && !entry->foreign && entry->dtype != DTYPE_BOOL &&
           entry->begin % dtype_size(entry->dtype) == 0;
}

static Status read_numbers(const Reading *reading, StoredTensor *stored,
                           const SafetensorsEntry *entry) {
    TRY(safetensors_tensor(file_map_bytes(reading->map), entry, &stored->tensor));
    stored->usable = stored->tensor != NULL;
    if (stored->usable) return STATUS_OK;
    free(stored->type_name);
    stored->type_name = memory_copy_string(entry->type, strlen(entry->type));
    return STATUS_OK;
}

static void cut_rows(SafetensorsEntry *entry, int64_t count) {
    ASSERT(count >= 0);
    if (count == 0 || entry->shape.rank == 0 || entry->shape.dims[0] < count) return;
    entry->begin += (entry->end - entry->begin) / (size_t)entry->shape.dims[0] * (size_t)count;
    entry->shape.dims[0] -= count;
}

static void squeeze(Shape *shape) {
    int kept = 0;
    for (int d = 0; d < shape->rank; d++)
        if (d == 0 || d == shape->rank - 1 || shape->dims[d] != 1)
            shape->dims[kept++] = shape->dims[d];
    shape->rank = kept;
}

// As the model has it, of a shape in the file.
static Shape shape_after(Shape shape, TensorChange *change) {
    int last = shape.rank - 1;
    int parted = shape.rank - change->part_dim;
    if (change->part && (parted < 0 || shape.dims[parted] % 2 != 0)) change->part = 0;
    change->transpose &= shape.rank >= 2;
    if (change->part) shape.dims[parted] /= 2;
    if (change->transpose) {
        int64_t rows = shape.dims[last - 1];
        shape.dims[last - 1] = shape.dims[last];
        shape.dims[last] = rows;
    }
    return shape;
}

static Status describe(const Reading *reading, SafetensorsEntry entry, StoredTensor *stored) {
    cut_rows(&entry, stored->change.cut);
    if (stored->change.squeeze) squeeze(&entry.shape);
    stored->shape = shape_after(entry.shape, &stored->change);
    stored->dtype = entry.dtype;
    stored->bytes = entry.end - entry.begin;
    if (!is_mapped(&entry)) return read_numbers(reading, stored, &entry);
    stored->usable = true;
    stored->map = reading->map;
    stored->offset = entry.begin;
    return STATUS_OK;
}

static Status add_tensor(void *context, const SafetensorsEntry *entry) {
    const Reading *reading = context;
    const SafetensorsNaming *naming = reading->naming;
    if (json_object_get(reading->names, entry->name))
        return fail(STATUS_FORMAT, "%s: tensor %s is in another of the files too",
                    file_map_path(reading->map), entry->name);
    json_object_set_new(reading->names, entry->name, json_true());
    if (!naming) return describe(reading, *entry, add_named(reading, entry, entry->name));
    SCOPED_TEXT(name);
    naming->name(naming->context, entry->name, &name);
    Status status = describe(reading, *entry, add_named(reading, entry, text_get(&name)));
    text_clear(&name);
    if (status == STATUS_OK && naming->twin && naming->twin(naming->context, entry->name, &name))
        status = describe(reading, *entry, add_named(reading, entry, text_get(&name)));
    return status;
}

// The texts of a folder's files say nothing of the model.
static Status read_map(Reading *reading, FileMap *map) {
    Reader *reader = reading->reader;
    NamedTensors said = {0};
    reading->map = map;
    VECTOR_PUSH(&reader->maps, file_map_retain(map));
    SafetensorsVisit visit = {add_tensor, reading, reading->naming ? NULL : &said};
    Status status =
        safetensors_each(file_map_bytes(map), file_map_length(map), file_map_path(map), &visit);
    reader_add_texts(reader, &said.texts);
    named_tensors_free(&said);
    return status;
}

static Status read_file(void *context, const char *path) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status read = read_map(context, map), status = file_map_check(map);
    file_map_release(map);
    return status == STATUS_OK ? read : status;
}

static bool has_tensor(void *context, const char *name) {
    return json_object_get(((Reading *)context)->names, name) != NULL;
}

Status safetensors_open_named(Reader *reader, FileMap *map, const SafetensorsNaming *naming) {
    Reading reading = {.reader = reader, .naming = naming, .names = json_object()};
    Status status = read_map(&reading, map);
    json_decref(reading.names);
    return status;
}

Status safetensors_open_index_named(Reader *reader, FileMap *map, const SafetensorsNaming *naming) {
    Reading reading = {.reader = reader, .naming = naming, .names = json_object()};
    Status status =
        shards_each(file_map_path(map), map, &(ShardVisit){read_file, has_tensor, &reading});
    json_decref(reading.names);
    return status;
}

Status safetensors_open(Reader *reader, FileMap *map) {
    return safetensors_open_named(reader, map, NULL);
}

Status safetensors_open_index(Reader *reader, FileMap *map) {
    return safetensors_open_index_named(reader, map, NULL);
}
