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
    NamedTensors shard;
    TRY(safetensors_read(path, &shard));
    named_tensors_append(context, &shard);
    return STATUS_OK;
}

static bool has_tensor(void *context, const char *name) {
    return named_tensors_find(context, name) || named_tensors_unread(context, name);
}

// Tensors of types that are not supported have a name alone.
static void add_unread(GgufFile *table, const NamedTexts *unread) {
    for (size_t i = 0; i < unread->count; i++) {
        GgufTensor *tensor = &table->tensors[table->tensor_count++];
        tensor->name = memory_copy_string(unread->items[i].key, strlen(unread->items[i].key));
        gguf_tensor_unread(tensor, unread->items[i].text);
    }
}

// The texts lie in table->copy.
static void add_pairs(GgufFile *table, const NamedTexts *texts) {
    size_t bytes = 0;
    for (size_t i = 0; i < texts->count; i++) bytes += strlen(texts->items[i].text);
    char *text = memory_allocate(bytes + 1);
    table->copy = (uint8_t *)text;
    table->pairs = memory_allocate_zeroed(texts->count + 1, sizeof *table->pairs);
    for (size_t i = 0; i < texts->count; i++) {
        const NamedText *one = &texts->items[i];
        size_t length = strlen(one->text);
        memcpy(text, one->text, length);
        table->pairs[table->pair_count++] =
            (GgufPair){.key = memory_copy_string(one->key, strlen(one->key)),
                       .value = {.type = GGUF_STRING, .as.string = {text, length}}};
        text += length;
    }
}

static GgufFile *make_table(const NamedTensors *tensors) {
    GgufFile *table = memory_allocate_zeroed(1, sizeof *table);
    size_t count = tensors->count + tensors->unread.count + 1;
    table->tensors = memory_allocate_zeroed(count, sizeof *table->tensors);
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
    add_unread(table, &tensors->unread);
    add_pairs(table, &tensors->texts);
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
