#include "model/shards.h"

#include <jansson.h>
#include <string.h>

#include "base/text.h"

// A file next to the index: its name may not lead elsewhere.
static Status shard_path(const char *index, const char *name, Text *out) {
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0)
        return fail(STATUS_FORMAT, "%s: \"%s\" is not the name of a file next to it", index, name);
    const char *slash = strrchr(index, '/');
    if (slash) text_append(out, index, (size_t)(slash - index) + 1);
    text_append_string(out, name);
    return STATUS_OK;
}

static Status read_shard(const char *index, const char *name, const ShardVisit *visit) {
    SCOPED_TEXT(path);
    TRY(shard_path(index, name, &path));
    return visit->read(visit->context, text_get(&path));
}

static Status check_names(const char *index, json_t *weights, const ShardVisit *visit) {
    const char *name;
    json_t *file;
    json_object_foreach(weights, name, file) {
        if (!visit->has(visit->context, name))
            return fail(STATUS_FORMAT, "%s: tensor %s is not in %s", index, name,
                        json_string_value(file));
    }
    return STATUS_OK;
}

static Status read_shards(const char *index, json_t *weights, const ShardVisit *visit) {
    if (!json_is_object(weights))
        return fail(STATUS_FORMAT, "%s is not an index of safetensors files: it has no weight_map",
                    index);
    json_auto_t *seen = json_object();
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
        status = read_shard(index, json_string_value(file), visit);
        if (status != STATUS_OK) break;
    }
    return status == STATUS_OK ? check_names(index, weights, visit) : status;
}

Status shards_each(const char *path, const FileMap *map, const ShardVisit *visit) {
    json_error_t error;
    json_auto_t *root =
        json_loadb((const char *)file_map_bytes(map), file_map_length(map), 0, &error);
    if (!root) return fail(STATUS_FORMAT, "%s: line %d: %s", path, error.line, error.text);
    return read_shards(path, json_object_get(root, "weight_map"), visit);
}
