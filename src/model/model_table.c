// The index of a model in several files names, for each tensor, a file next to it.
#include "model/model_table.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/npz.h"
#include "model/safetensors.h"

bool model_is_table(const uint8_t *bytes, size_t length) {
    bool index = length > 0 && bytes[0] == '{';
    return index || npz_begins(bytes, length) ||
           (length > 8 && memcmp(bytes, "GGUF", 4) != 0 && bytes[8] == '{');
}

// A file next to the index: its name may not lead elsewhere.
static Status shard_path(const char *index, const char *name, Text *out) {
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0)
        return fail(STATUS_FORMAT, "%s: \"%s\" is not the name of a file next to it", index, name);
    const char *slash = strrchr(index, '/');
    if (slash) text_append(out, index, (size_t)(slash - index) + 1);
    text_append_string(out, name);
    return STATUS_OK;
}

static Status read_shard(const char *index, const char *name, NamedTensors *out) {
    Text path = {0};
    Status status = shard_path(index, name, &path);
    if (status == STATUS_OK) status = safetensors_read(text_get(&path), out);
    text_free(&path);
    return status;
}

static Status check_names(const char *index, json_t *weights, const NamedTensors *tensors) {
    const char *name;
    json_t *file;
    json_object_foreach(weights, name, file) {
        if (!named_tensors_find(tensors, name))
            return fail(STATUS_FORMAT, "%s: tensor %s is not in %s", index, name,
                        json_string_value(file));
    }
    return STATUS_OK;
}

// Each file once, in the order in which the index first names it.
static Status read_shards(const char *index, json_t *weights, NamedTensors *out) {
    if (!json_is_object(weights))
        return fail(STATUS_FORMAT, "%s is not an index of safetensors files: it has no weight_map",
                    index);
    json_t *seen = json_object();
    const char *name;
    json_t *file;
    Status status = STATUS_OK;
    json_object_foreach(weights, name, file) {
        if (!json_is_string(file)) {
            status = fail(STATUS_FORMAT, "%s: tensor %s has no file", index, name);
            break;
        }
        if (json_object_get(seen, json_string_value(file))) continue;
        json_object_set_new(seen, json_string_value(file), json_true());
        status = read_shard(index, json_string_value(file), out);
        if (status != STATUS_OK) break;
    }
    json_decref(seen);
    return status == STATUS_OK ? check_names(index, weights, out) : status;
}

static Status read_index(const char *path, const FileMap *map, NamedTensors *out) {
    json_error_t error;
    json_t *root = json_loadb((const char *)file_map_bytes(map), file_map_length(map), 0, &error);
    if (!root) return fail(STATUS_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    Status status = read_shards(path, json_object_get(root, "weight_map"), out);
    json_decref(root);
    return status;
}

static GgufFile *make_table(const NamedTensors *tensors) {
    GgufFile *table = memory_allocate_zeroed(1, sizeof *table);
    table->tensors = memory_allocate_zeroed(tensors->count + 1, sizeof *table->tensors);
    table->tensor_count = tensors->count;
    for (size_t i = 0; i < tensors->count; i++) {
        const NamedTensor *named = &tensors->items[i];
        DType dtype = tensor_dtype(named->tensor);
        table->tensors[i] = (GgufTensor){
            .name = memory_copy_string(named->name, strlen(named->name)),
            .shape = tensor_shape(named->tensor),
            .type_name = dtype_info[dtype].name,
            .has_dtype = true,
            .dtype = dtype,
        };
    }
    return table;
}

Status model_table_read(const char *path, const FileMap *map, NamedTensors *tensors,
                        GgufFile **table) {
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    if (bytes[0] == '{')
        TRY(read_index(path, map, tensors));
    else if (npz_begins(bytes, length))
        TRY(npz_parse(bytes, length, path, tensors));
    else
        TRY(safetensors_parse(bytes, length, path, tensors));
    *table = make_table(tensors);
    return STATUS_OK;
}
