// What a model's file says next to its tensors: values by key, of the types that GGUF has.
#ifndef MODEL_METADATA_H
#define MODEL_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

// Of the embedding, although it is named as what belongs to a vocabulary.
#define TOKEN_TYPE_COUNT_KEY "tokenizer.ggml.token_type_count"

// Numbered as in GGUF files.
typedef enum MetaType {
    META_UINT8,
    META_INT8,
    META_UINT16,
    META_INT16,
    META_UINT32,
    META_INT32,
    META_FLOAT32,
    META_BOOL,
    META_STRING,
    META_ARRAY,
    META_UINT64,
    META_INT64,
    META_FLOAT64,
    META_TYPE_COUNT
} MetaType;

// Strings are not NUL-terminated; they and arrays point into bytes that outlive the value.
typedef struct MetaValue {
    MetaType type;
    union {
        int64_t integer; // every integer type and bool; uint64 beyond int64 is negative
        double number;
        struct {
            const char *bytes;
            size_t length;
        } string;
        struct {
            MetaType type;        // of the elements; not an array
            int length_bytes;     // how wide a string's length is: 4 or 8
            size_t count, length; // of elements; of bytes
            const uint8_t *bytes; // as a GGUF file has them, checked
        } array;
    } as;
} MetaValue;

typedef struct MetaPair {
    char *key;
    char *text; // owned: the bytes of a string or an array that metadata_put copied; else NULL
    MetaValue value;
} MetaPair;
typedef VECTOR(MetaPair) Metadata;

// Copies the key, a string and the bytes of an array. A key that is there gets the new value.
void metadata_put(Metadata *metadata, const char *key, const MetaValue *value);
void metadata_put_string(Metadata *metadata, const char *key, const char *text);
const MetaValue *metadata_find(const Metadata *metadata, const char *key); // NULL when absent
void metadata_free(Metadata *metadata);

extern const size_t meta_type_bytes[META_TYPE_COUNT]; // of a number; 0 for strings and arrays
// A number of `type` from its little-endian bytes.
MetaValue meta_decode(MetaType type, const uint8_t *bytes);
bool meta_is_integer(const MetaValue *value); // false for NULL and for bool
// Visits the elements of an array in order.
void meta_array_each(const MetaValue *array,
                     void (*visit)(void *context, size_t index, MetaValue value), void *context);

#endif
