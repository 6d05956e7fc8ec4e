// Tables of what files of named tensors hold.
#include "model/model_table.h"

#include <stdlib.h>
#include <string.h>

#include "model/npz.h"
#include "model/safetensors.h"
#include "model/shards.h"
#include "model/tensor_write.h"

bool model_is_table(const uint8_t *bytes, size_t length) {
    bool index = length > 0 && bytes[0] == '{';
    return index || npz_begins(bytes, length) ||
           (length > 8 && memcmp(bytes, "GGUF", 4) != 0 && bytes[8] == '{');
}

static Status read_shard(void *context, const char *path) {
    return safetensors_read(path, context);
}

static bool has_tensor(void *context, const char *name) {
    return named_tensors_find(context, name) != NULL;
}

static GgufFile *make_table(const NamedTensors *tensors) {
    GgufFile *table = memory_allocate_zeroed(1, sizeof *table);
    table->tensors = memory_allocate_zeroed(tensors->count + 1, sizeof *table->tensors);
    table->tensor_count = tensors->count;
    for (size_t i = 0; i < tensors->count; i++) {
        const NamedTensor *named = &tensors->items[i];
        DType dtype = tensor_dtype(named->tensor);
        Shape shape = tensor_shape(named->tensor);
        table->tensors[i] = (GgufTensor){
            .name = memory_copy_string(named->name, strlen(named->name)),
            .shape = shape,
            .type_name = dtype_info[dtype].name,
            .has_dtype = true,
            .dtype = dtype,
            .bytes = tensor_stored_bytes(&shape, dtype),
        };
    }
    return table;
}

Status model_table_read(const char *path, const FileMap *map, NamedTensors *tensors,
                        GgufFile **table) {
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    if (bytes[0] == '{')
        TRY(shards_each(path, map, &(ShardVisit){read_shard, has_tensor, tensors}));
    else if (npz_begins(bytes, length))
        TRY(npz_parse(bytes, length, path, tensors));
    else
        TRY(safetensors_parse(bytes, length, path, tensors));
    *table = make_table(tensors);
    return STATUS_OK;
}
