#include "model/metadata.h"

#include <stdlib.h>

const size_t meta_type_bytes[META_TYPE_COUNT] = {
    [META_UINT8] = 1,  [META_INT8] = 1,  [META_UINT16] = 2,  [META_INT16] = 2,
    [META_UINT32] = 4, [META_INT32] = 4, [META_FLOAT32] = 4, [META_BOOL] = 1,
    [META_UINT64] = 8, [META_INT64] = 8, [META_FLOAT64] = 8,
};

MetaValue meta_decode(MetaType type, const uint8_t *bytes) {
    MetaValue value = {.type = type};
    ASSERT(type != META_ARRAY && type != META_STRING);
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
        uint64_t u64;
        int64_t i64;
        double f64;
    } raw = {.u64 = 0};
    memcpy(&raw, bytes, meta_type_bytes[type]);
    switch (type) {
    case META_UINT8: value.as.integer = raw.u8; break;
    case META_INT8: value.as.integer = raw.i8; break;
    case META_UINT16: value.as.integer = raw.u16; break;
    case META_INT16: value.as.integer = raw.i16; break;
    case META_UINT32: value.as.integer = raw.u32; break;
    case META_INT32: value.as.integer = raw.i32; break;
    case META_FLOAT32: value.as.number = (double)raw.f32; break;
    case META_BOOL: value.as.integer = raw.u8 != 0; break;
    case META_FLOAT64: value.as.number = raw.f64; break;
    default: value.as.integer = raw.i64; break; // UINT64 beyond int64 reads as negative
    }
    return value;
}

bool meta_is_integer(const MetaValue *value) {
    return value && value->type != META_STRING && value->type != META_ARRAY &&
           value->type != META_FLOAT32 && value->type != META_FLOAT64 && value->type != META_BOOL;
}

static MetaPair *find_pair(const Metadata *metadata, const char *key) {
    for (size_t i = 0; i < metadata->count; i++)
        if (strcmp(metadata->items[i].key, key) == 0) return &metadata->items[i];
    return NULL;
}

const MetaValue *metadata_find(const Metadata *metadata, const char *key) {
    const MetaPair *pair = find_pair(metadata, key);
    return pair ? &pair->value : NULL;
}

void metadata_put(Metadata *metadata, const char *key, const MetaValue *value) {
    MetaPair *pair = find_pair(metadata, key);
    if (!pair) {
        VECTOR_PUSH(metadata, ((MetaPair){.key = memory_copy_string(key, strlen(key))}));
        pair = &metadata->items[metadata->count - 1];
    }
    free(pair->text);
    pair->text = NULL;
    pair->value = *value;
    if (value->type == META_STRING) {
        pair->text = memory_copy_string(value->as.string.bytes, value->as.string.length);
        pair->value.as.string.bytes = pair->text;
    } else if (value->type == META_ARRAY) {
        pair->text =
            memory_copy_string((const char *)value->as.array.bytes, value->as.array.length);
        pair->value.as.array.bytes = (const uint8_t *)pair->text;
    }
}

void metadata_put_string(Metadata *metadata, const char *key, const char *text) {
    metadata_put(metadata, key,
                 &(MetaValue){.type = META_STRING, .as.string = {text, strlen(text)}});
}

void metadata_free(Metadata *metadata) {
    for (size_t i = 0; i < metadata->count; i++) {
        free(metadata->items[i].key);
        free(metadata->items[i].text);
    }
    VECTOR_FREE(metadata);
}

// Moves *at past a string.
static MetaValue decode_string(const uint8_t **at, int length_bytes) {
    ASSERT(length_bytes == 4 || length_bytes == 8);
    uint64_t length = 0;
    memcpy(&length, *at, (size_t)length_bytes);
    const char *bytes = (const char *)*at + length_bytes;
    *at += (size_t)length_bytes + length;
    return (MetaValue){.type = META_STRING, .as.string = {bytes, length}};
}

void meta_array_each(const MetaValue *array,
                     void (*visit)(void *context, size_t index, MetaValue value), void *context) {
    MetaType type = array->as.array.type;
    ASSERT(array->type == META_ARRAY && type < META_TYPE_COUNT);
    const uint8_t *at = array->as.array.bytes;
    for (size_t i = 0; i < array->as.array.count; i++) {
        if (type == META_STRING) {
            visit(context, i, decode_string(&at, array->as.array.length_bytes));
        } else {
            visit(context, i, meta_decode(type, at));
            at += meta_type_bytes[type];
        }
    }
    ASSERT(at == array->as.array.bytes + array->as.array.length);
}
