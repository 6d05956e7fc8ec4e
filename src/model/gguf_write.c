// The GGUF writer: pairs become bytes as they are added; tensors wait until the file is written.
#include "model/gguf_write.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/file_replace.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "model/tensor_write.h"
#include "tensor/op.h"

enum { ALIGNMENT_DEFAULT = 32, ALIGNMENT_MAX = 1 << 20, VERSION = 3 };
enum { KEY_BYTES_MAX = 65535, NAME_BYTES_MAX = 64, DIMENSIONS_MAX = 4 };

typedef struct KeyEntry {
    char *key;
    UT_hash_handle hh;
} KeyEntry;

typedef struct TensorEntry {
    char *name;
    Tensor **parts; // counted, of one shape: they follow each other
    size_t count;
    Shape shape; // of all
    DType stored;
    int type; // GGUF's number of `stored`
    UT_hash_handle hh;
} TensorEntry;

struct GgufWriter {
    Text pairs; // as the file has them
    KeyEntry *keys;
    TensorEntry *tensors; // in the order in which they were added, as uthash keeps it
    size_t alignment;
};

GgufWriter *gguf_writer_new(void) {
    GgufWriter *writer = memory_allocate_zeroed(1, sizeof *writer);
    writer->alignment = ALIGNMENT_DEFAULT;
    return writer;
}

void gguf_writer_free(GgufWriter *writer) {
    KeyEntry *key, *next_key;
    HASH_ITER(hh, writer->keys, key, next_key) {
        HASH_DEL(writer->keys, key);
        free(key->key);
        free(key);
    }
    TensorEntry *entry, *next_entry;
    HASH_ITER(hh, writer->tensors, entry, next_entry) {
        HASH_DEL(writer->tensors, entry);
        for (size_t i = 0; i < entry->count; i++) tensor_release(entry->parts[i]);
        free(entry->parts);
        free(entry->name);
        free(entry);
    }
    text_free(&writer->pairs);
    free(writer);
}

// --- metadata

static void append_u32(Text *text, uint32_t value) {
    text_append(text, (const char *)&value, sizeof value);
}

static void append_u64(Text *text, uint64_t value) {
    text_append(text, (const char *)&value, sizeof value);
}

static void append_string(Text *text, const char *bytes, size_t length) {
    append_u64(text, length);
    text_append(text, bytes, length);
}

// The integers of a type. The reader gives uint64 beyond int64 as negative numbers: every one
// has its bits.
typedef struct IntegerRange {
    int64_t low, high;
    size_t bytes; // 0: no integer type
} IntegerRange;

static const IntegerRange ranges[META_TYPE_COUNT] = {
    [META_UINT8] = {0, UINT8_MAX, 1},
    [META_INT8] = {INT8_MIN, INT8_MAX, 1},
    [META_UINT16] = {0, UINT16_MAX, 2},
    [META_INT16] = {INT16_MIN, INT16_MAX, 2},
    [META_UINT32] = {0, UINT32_MAX, 4},
    [META_INT32] = {INT32_MIN, INT32_MAX, 4},
    [META_BOOL] = {0, 1, 1},
    [META_UINT64] = {INT64_MIN, INT64_MAX, 8},
    [META_INT64] = {INT64_MIN, INT64_MAX, 8},
};

static Status append_value(Text *out, const char *key, const MetaValue *value) {
    ASSERT((unsigned)value->type < META_TYPE_COUNT && value->type != META_ARRAY);
    if (value->type == META_STRING) {
        append_string(out, value->as.string.bytes, value->as.string.length);
    } else if (value->type == META_FLOAT32) {
        float narrow = (float)value->as.number;
        text_append(out, (const char *)&narrow, sizeof narrow);
    } else if (value->type == META_FLOAT64) {
        text_append(out, (const char *)&value->as.number, sizeof value->as.number);
    } else {
        const IntegerRange *range = &ranges[value->type];
        ASSERT(range->bytes > 0);
        if (value->as.integer < range->low || value->as.integer > range->high)
            return fail(STATUS_VALUE, "metadata \"%s\": %lld does not fit into %zu bits", key,
                        (long long)value->as.integer, range->bytes * 8);
        text_append(out, (const char *)&value->as.integer, range->bytes); // little-endian
    }
    return STATUS_OK;
}

bool gguf_writer_has(const GgufWriter *writer, const char *key) {
    KeyEntry *entry;
    HASH_FIND_STR(writer->keys, key, entry);
    return entry != NULL;
}

static Status check_text(const char *what, const char *name, size_t length_max) {
    ASSERT(length_max > 0);
    size_t length = strlen(name), bad;
    if (length > 0 && length <= length_max && utf8_valid(name, length, &bad)) return STATUS_OK;
    return fail(STATUS_VALUE, "\"%.80s\" is not a name of %s in a GGUF file: it is %s", name, what,
                length == 0           ? "empty"
                : length > length_max ? "too long"
                                      : "no UTF-8");
}

static Status begin_pair(GgufWriter *writer, const char *key) {
    TRY(check_text("metadata", key, KEY_BYTES_MAX));
    if (gguf_writer_has(writer, key))
        return fail(STATUS_KEY, "metadata \"%s\" is given twice", key);
    KeyEntry *entry = memory_allocate_zeroed(1, sizeof *entry);
    entry->key = memory_copy_string(key, strlen(key));
    HASH_ADD_KEYPTR(hh, writer->keys, entry->key, strlen(key), entry);
    append_string(&writer->pairs, key, strlen(key));
    return STATUS_OK;
}

static Status take_alignment(GgufWriter *writer, const MetaValue *value) {
    int64_t alignment = value->type == META_UINT32 ? value->as.integer : 0;
    if (alignment < 8 || alignment > ALIGNMENT_MAX || (alignment & (alignment - 1)) != 0)
        return fail(STATUS_VALUE,
                    "metadata \"general.alignment\" must be a power of two from 8 to %d, as uint32",
                    ALIGNMENT_MAX);
    writer->alignment = (size_t)alignment;
    return STATUS_OK;
}

Status gguf_writer_put(GgufWriter *writer, const char *key, const MetaValue *value) {
    if (strcmp(key, "general.alignment") == 0) TRY(take_alignment(writer, value));
    TRY(begin_pair(writer, key));
    append_u32(&writer->pairs, value->type);
    return append_value(&writer->pairs, key, value);
}

Status gguf_writer_put_array(GgufWriter *writer, const char *key, MetaType type,
                             const MetaValue *values, size_t count) {
    TRY(begin_pair(writer, key));
    append_u32(&writer->pairs, META_ARRAY);
    append_u32(&writer->pairs, type);
    ASSERT(type != META_ARRAY && (unsigned)type < META_TYPE_COUNT);
    append_u64(&writer->pairs, count);
    for (size_t i = 0; i < count; i++) {
        ASSERT(values[i].type == type);
        TRY(append_value(&writer->pairs, key, &values[i]));
    }
    return STATUS_OK;
}

Status gguf_writer_put_string(GgufWriter *writer, const char *key, const char *text) {
    MetaValue value = {.type = META_STRING, .as.string = {text, strlen(text)}};
    return gguf_writer_put(writer, key, &value);
}

Status gguf_writer_put_integer(GgufWriter *writer, const char *key, MetaType type,
                               int64_t integer) {
    MetaValue value = {.type = type, .as.integer = integer};
    return gguf_writer_put(writer, key, &value);
}

static void collect(void *context, size_t index, MetaValue value) {
    MetaValue *values = context;
    values[index] = value;
}

Status gguf_writer_copy(GgufWriter *writer, const MetaPair *pair) {
    if (pair->value.type != META_ARRAY) return gguf_writer_put(writer, pair->key, &pair->value);
    size_t count = pair->value.as.array.count;
    SCOPED_MEMORY MetaValue *values = memory_allocate((count + 1) * sizeof *values);
    meta_array_each(&pair->value, collect, values);
    return gguf_writer_put_array(writer, pair->key, pair->value.as.array.type, values, count);
}

// --- tensors

static Status check_shape(const char *name, const Shape *shape, DType dtype, DType stored) {
    TypeName type = type_name(dtype, shape);
    int rank = shape->rank, block = dtype_info[stored].block_elements;
    if (rank > DIMENSIONS_MAX)
        return fail(STATUS_SHAPE, "tensor `%s` is %s; GGUF files hold at most %d dimensions", name,
                    type.text, DIMENSIONS_MAX);
    int64_t row = rank > 0 ? shape->dims[rank - 1] : 1;
    if (row % block == 0) return STATUS_OK;
    return fail(STATUS_SHAPE, "tensor `%s` is %s; the rows of %s are multiples of %d", name,
                type.text, dtype_name(stored), block);
}

static Status add_entry(GgufWriter *writer, const char *name, const TensorEntry *about) {
    TensorEntry *entry;
    ASSERT(about->count > 0);
    DType dtype = tensor_dtype(about->parts[0]);
    TRY(check_text("a tensor", name, NAME_BYTES_MAX));
    HASH_FIND_STR(writer->tensors, name, entry);
    if (entry) return fail(STATUS_NAME, "two tensors are called `%s`", name);
    int type = dtype_info[about->stored].gguf;
    if (type < 0)
        return fail(STATUS_DTYPE, "GGUF files cannot hold %s: convert `%s` first",
                    type_name(dtype, &about->shape).text, name);
    TRY(check_shape(name, &about->shape, dtype, about->stored));
    entry = memory_allocate_zeroed(1, sizeof *entry);
    *entry = *about;
    entry->name = memory_copy_string(name, strlen(name));
    entry->type = type;
    entry->parts = memory_allocate(about->count * sizeof *entry->parts);
    for (size_t i = 0; i < about->count; i++) entry->parts[i] = tensor_retain(about->parts[i]);
    HASH_ADD_KEYPTR(hh, writer->tensors, entry->name, strlen(name), entry);
    return STATUS_OK;
}

Status gguf_writer_add(GgufWriter *writer, const char *name, Tensor *tensor, DType stored) {
    TensorEntry about = {
        .parts = &tensor, .count = 1, .shape = tensor_shape(tensor), .stored = stored};
    return add_entry(writer, name, &about);
}

Status gguf_writer_add_stack(GgufWriter *writer, const char *name, Tensor **parts, size_t count,
                             DType stored) {
    TensorEntry about = {.parts = parts, .count = count, .stored = stored};
    Shape first = tensor_shape(parts[0]);
    for (size_t i = 1; i < count; i++) {
        Shape shape = tensor_shape(parts[i]);
        if (shapes_differ(&shape, &first))
            return fail(STATUS_SHAPE, "part %zu of tensor `%s` is %s, but the first is %s", i, name,
                        tensor_type_name(parts[i]).text, tensor_type_name(parts[0]).text);
    }
    ASSERT(first.rank < RANK_MAX);
    about.shape = (Shape){.rank = first.rank + 1, .dims = {(int64_t)count}};
    memcpy(about.shape.dims + 1, first.dims, (size_t)first.rank * sizeof *first.dims);
    return add_entry(writer, name, &about);
}

static size_t align_up(size_t offset, size_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

static void append_tensor(Text *out, const TensorEntry *entry, size_t offset) {
    ASSERT(offset % 8 == 0);
    append_string(out, entry->name, strlen(entry->name));
    append_u32(out, (uint32_t)entry->shape.rank);
    for (int d = entry->shape.rank - 1; d >= 0; d--)
        append_u64(out, (uint64_t)entry->shape.dims[d]);
    append_u32(out, (uint32_t)entry->type);
    append_u64(out, offset);
}

// The header and the table of tensors.
static void append_head(Text *out, const GgufWriter *writer) {
    text_append(out, "GGUF", 4);
    append_u32(out, VERSION);
    append_u64(out, HASH_COUNT(writer->tensors));
    append_u64(out, HASH_COUNT(writer->keys));
    text_append(out, text_get(&writer->pairs), writer->pairs.length);
    size_t offset = 0;
    for (const TensorEntry *entry = writer->tensors; entry; entry = entry->hh.next) {
        size_t bytes = tensor_stored_bytes(&entry->shape, entry->stored);
        append_tensor(out, entry, offset);
        offset = align_up(offset + bytes, writer->alignment);
    }
}

// Zeros up to the next multiple of the alignment.
static Status pad(FILE *stream, size_t written, size_t alignment) {
    ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
    static const char zeros[64];
    for (size_t left = align_up(written, alignment) - written; left > 0;) {
        size_t step = left < sizeof zeros ? left : sizeof zeros;
        TRY(stream_write(stream, zeros, step));
        left -= step;
    }
    return STATUS_OK;
}

static Status write_all(FILE *stream, void *context) {
    const GgufWriter *writer = context;
    SCOPED_TEXT(head);
    append_head(&head, writer);
    size_t length = head.length;
    TRY(stream_write(stream, text_get(&head), length));
    TRY(pad(stream, length, writer->alignment));
    for (const TensorEntry *entry = writer->tensors; entry; entry = entry->hh.next) {
        for (size_t i = 0; i < entry->count; i++)
            TRY(tensor_write(stream, entry->parts[i], entry->stored, entry->name));
        TRY(pad(stream, tensor_stored_bytes(&entry->shape, entry->stored), writer->alignment));
    }
    return STATUS_OK;
}

Status gguf_writer_save(GgufWriter *writer, const char *path) {
    return file_keep_stream(path, write_all, writer);
}
