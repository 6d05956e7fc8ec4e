// The GGUF format: a cursor that cannot leave the file, then the tables.
#include "model/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"

enum { GGUF_MAGIC = 0x46554747, GGUF_DIMS_MAX = 4, GGUF_ALIGNMENT = 32, GGUF_KEY_MAX = 65535 };

// What the elements of a tensor are.
typedef struct BlockFormat {
    int number;
    const char *name;
    int elements, bytes;
} BlockFormat;

// Formats that no dtype of the catalog is: they are named, and their tensors are not read.
static const BlockFormat foreign_formats[] = {
    {9, "q8_1", 32, 36},
    {15, "q8_k", 256, 292},
    {40, "nvfp4", 64, 36},
    {41, "q1_0", 128, 18},
    // Taken out of the format again; their sizes do not matter any more.
    {4, "q4_2", 0, 0},
    {5, "q4_3", 0, 0},
    {31, "q4_0_4_4", 0, 0},
    {32, "q4_0_4_8", 0, 0},
    {33, "q4_0_8_8", 0, 0},
    {36, "iq4_nl_4_4", 0, 0},
    {37, "iq4_nl_4_8", 0, 0},
    {38, "iq4_nl_8_8", 0, 0},
};
enum { FOREIGN_FORMATS = sizeof foreign_formats / sizeof *foreign_formats };

// Fills in the format of this number and of which dtype it is, DTYPE_COUNT for a foreign one.
static bool find_format(uint32_t number, BlockFormat *out, DType *dtype) {
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const DTypeInfo *info = &dtype_info[d];
        if (info->gguf < 0 || (uint32_t)info->gguf != number) continue;
        *out = (BlockFormat){info->gguf, info->name, info->block_elements, info->block_bytes};
        *dtype = (DType)d;
        return true;
    }
    *dtype = DTYPE_COUNT;
    for (int i = 0; i < FOREIGN_FORMATS; i++) {
        *out = foreign_formats[i];
        if ((uint32_t)out->number == number) return true;
    }
    return false;
}

// A position in the file that never passes its end. `version` decides the width of counts.
typedef struct Cursor {
    const uint8_t *bytes;
    size_t length, at;
    const char *name; // of the file, for messages
    uint32_t version;
} Cursor;

static Status truncated(const Cursor *cursor, const char *what) {
    return fail(STATUS_FORMAT, "%s: the file ends at byte %zu, inside %s", cursor->name,
                cursor->length, what);
}

static Status read_bytes(Cursor *cursor, size_t count, const char *what, const uint8_t **out) {
    ASSERT(cursor->at <= cursor->length);
    if (count > cursor->length - cursor->at) return truncated(cursor, what);
    *out = cursor->bytes + cursor->at;
    cursor->at += count;
    return STATUS_OK;
}

static Status read_u32(Cursor *cursor, const char *what, uint32_t *out) {
    const uint8_t *bytes = NULL;
    TRY(read_bytes(cursor, sizeof *out, what, &bytes));
    memcpy(out, bytes, sizeof *out);
    return STATUS_OK;
}

static Status read_u64(Cursor *cursor, const char *what, uint64_t *out) {
    const uint8_t *bytes = NULL;
    TRY(read_bytes(cursor, sizeof *out, what, &bytes));
    memcpy(out, bytes, sizeof *out);
    return STATUS_OK;
}

// Counts and lengths are 32 bits wide in version 1.
static Status read_count(Cursor *cursor, const char *what, uint64_t *out) {
    if (cursor->version > 1) return read_u64(cursor, what, out);
    uint32_t narrow;
    TRY(read_u32(cursor, what, &narrow));
    *out = narrow;
    return STATUS_OK;
}

static Status read_string(Cursor *cursor, const char *what, const char **bytes, size_t *length) {
    uint64_t count;
    TRY(read_count(cursor, what, &count));
    if (count > cursor->length - cursor->at)
        return fail(STATUS_FORMAT, "%s: %s at byte %zu claims %llu bytes, but %zu are left",
                    cursor->name, what, cursor->at, (unsigned long long)count,
                    cursor->length - cursor->at);
    *length = (size_t)count;
    return read_bytes(cursor, *length, what, (const uint8_t **)bytes);
}

static Status read_array(Cursor *cursor, MetaValue *out) {
    uint32_t type;
    uint64_t count;
    TRY(read_u32(cursor, "an array's type", &type));
    if (type >= META_TYPE_COUNT || type == META_ARRAY)
        return fail(STATUS_FORMAT, "%s: an array at byte %zu has elements of unknown type %u",
                    cursor->name, cursor->at, type);
    TRY(read_count(cursor, "an array's length", &count));
    int length_bytes = cursor->version > 1 ? 8 : 4;
    size_t smallest = type == META_STRING ? (size_t)length_bytes : meta_type_bytes[type];
    if (count > (cursor->length - cursor->at) / smallest)
        return fail(
            STATUS_FORMAT, "%s: an array at byte %zu claims %llu elements, but %zu bytes are left",
            cursor->name, cursor->at, (unsigned long long)count, cursor->length - cursor->at);
    size_t begin = cursor->at;
    if (type != META_STRING) cursor->at += (size_t)count * smallest;
    for (uint64_t i = 0; type == META_STRING && i < count; i++) {
        const char *bytes;
        size_t length;
        TRY(read_string(cursor, "a string of an array", &bytes, &length));
    }
    out->as.array.type = (MetaType)type;
    out->as.array.length_bytes = length_bytes;
    out->as.array.count = (size_t)count;
    out->as.array.bytes = cursor->bytes + begin;
    out->as.array.length = cursor->at - begin;
    return STATUS_OK;
}

static Status read_value(Cursor *cursor, MetaType type, MetaValue *out) {
    ASSERT((unsigned)type < META_TYPE_COUNT);
    *out = (MetaValue){.type = type};
    if (type == META_STRING)
        return read_string(cursor, "a string", &out->as.string.bytes, &out->as.string.length);
    if (type == META_ARRAY) return read_array(cursor, out);
    const uint8_t *bytes = NULL;
    TRY(read_bytes(cursor, meta_type_bytes[type], "a metadata value", &bytes));
    *out = meta_decode(type, bytes);
    return STATUS_OK;
}

// Keys and tensor names become C strings: bounded, UTF-8, without NUL.
static Status read_name(Cursor *cursor, const char *what, char **out) {
    const char *bytes = NULL;
    size_t at = cursor->at, length = 0, bad;
    TRY(read_string(cursor, what, &bytes, &length));
    if (length > GGUF_KEY_MAX || memchr(bytes, '\0', length) || !utf8_valid(bytes, length, &bad))
        return fail(STATUS_FORMAT, "%s: %s at byte %zu is not a text of at most %d bytes",
                    cursor->name, what, at, GGUF_KEY_MAX);
    *out = memory_copy_string(bytes, length);
    return STATUS_OK;
}

static Status read_pair(Cursor *cursor, Metadata *metadata) {
    MetaPair pair = {0};
    uint32_t type = 0;
    TRY(read_name(cursor, "a metadata key", &pair.key));
    VECTOR_PUSH(metadata, pair);
    TRY(read_u32(cursor, "a metadata type", &type));
    if (type >= META_TYPE_COUNT)
        return fail(STATUS_FORMAT, "%s: the metadata value \"%s\" has unknown type %u",
                    cursor->name, pair.key, type);
    return read_value(cursor, (MetaType)type, &metadata->items[metadata->count - 1].value);
}

// GGUF lists the fastest-varying dimension first. Trailing dimensions of 1 are kept as written.
// Sizes of 0 count as 1 in *elements: they do not excuse the others, whose strides must exist.
static Status read_dimensions(Cursor *cursor, StoredTensor *tensor, uint64_t *elements) {
    uint32_t rank;
    TRY(read_u32(cursor, "a tensor's rank", &rank));
    if (rank > GGUF_DIMS_MAX)
        return fail(STATUS_FORMAT, "%s: tensor %s claims %u dimensions; at most %d are allowed",
                    cursor->name, tensor->name, rank, GGUF_DIMS_MAX);
    tensor->shape.rank = (int)rank;
    *elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t size;
        TRY(read_count(cursor, "a tensor's dimension", &size));
        if (size > INT64_MAX || __builtin_mul_overflow(*elements, size ? size : 1, elements))
            return fail(STATUS_FORMAT, "%s: the dimensions of tensor %s are too large",
                        cursor->name, tensor->name);
        tensor->shape.dims[rank - 1 - i] = (int64_t)size;
    }
    return STATUS_OK;
}

static void refuse(StoredTensor *tensor, Status code, Text *why, const char *help) {
    ASSERT(code != STATUS_OK && !tensor->why);
    tensor->refusal = code;
    tensor->why = text_take(why);
    tensor->help = help ? memory_copy_string(help, strlen(help)) : NULL;
}

static void refuse_removed(StoredTensor *tensor) {
    ASSERT(tensor->type_name != NULL);
    Text why = {0};
    SCOPED_TEXT(help);
    text_format(&why, "is stored as %s, which was removed from GGUF", tensor->type_name);
    text_format(&help, "the original model can be written again, as %s for example",
                tensor->type_name[0] == 'i' ? "iq4_nl" : "q4_0");
    refuse(tensor, STATUS_DTYPE, &why, text_get(&help));
}

static void refuse_unknown(StoredTensor *tensor, uint32_t type) {
    Text why = {0};
    text_format(&why, "is stored as type %u, which is unknown", type);
    refuse(tensor, STATUS_DTYPE, &why, NULL);
}

static void refuse_rows(StoredTensor *tensor, uint64_t row, const BlockFormat *format) {
    ASSERT(format->elements > 1);
    Text why = {0};
    text_format(&why, "has rows of %llu elements, not a multiple of the %d of a %s block",
                (unsigned long long)row, format->elements, format->name);
    refuse(tensor, STATUS_FORMAT, &why, NULL);
}

static void name_type(StoredTensor *tensor, const char *name) {
    free(tensor->type_name);
    tensor->type_name = memory_copy_string(name, strlen(name));
}

// A tensor whose type is unknown, or whose rows are not whole blocks, does not keep the others from
// being read: it cannot be used and has, as far as this reader knows, no bytes.
static Status read_format(Cursor *cursor, StoredTensor *tensor, uint64_t elements) {
    uint32_t type;
    TRY(read_u32(cursor, "a tensor's type", &type));
    BlockFormat format;
    if (!find_format(type, &format, &tensor->dtype)) {
        refuse_unknown(tensor, type);
        return STATUS_OK;
    }
    name_type(tensor, format.name);
    uint64_t row = tensor->shape.rank ? (uint64_t)tensor->shape.dims[tensor->shape.rank - 1] : 1;
    bool removed = format.elements == 0, whole = !removed && row % (uint64_t)format.elements == 0;
    if (removed) refuse_removed(tensor);
    if (!removed && !whole) refuse_rows(tensor, row, &format);
    if (!whole) return STATUS_OK;
    tensor->usable = tensor->dtype != DTYPE_COUNT;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements / (uint64_t)format.elements, format.bytes, &bytes))
        return fail(STATUS_FORMAT, "%s: tensor %s is too large", cursor->name, tensor->name);
    bool empty = false;
    for (int d = 0; d < tensor->shape.rank; d++) empty |= tensor->shape.dims[d] == 0;
    tensor->bytes = empty ? 0 : (size_t)bytes;
    return STATUS_OK;
}

static Status read_tensor(Cursor *cursor, Reader *reader) {
    char *name;
    uint64_t elements = 0, offset = 0;
    TRY(read_name(cursor, "a tensor's name", &name));
    StoredTensor *tensor = reader_add(reader, name, "unknown");
    free(name);
    TRY(read_dimensions(cursor, tensor, &elements));
    TRY(read_format(cursor, tensor, elements));
    TRY(read_u64(cursor, "a tensor's offset", &offset));
    tensor->offset = (size_t)offset; // relative to the data until place_tensors
    return STATUS_OK;
}

static int compare_offsets(const void *a, const void *b) {
    const StoredTensor *x = *(StoredTensor *const *)a, *y = *(StoredTensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static Status check_order(const Cursor *cursor, StoredTensor **sorted, size_t count) {
    ASSERT(count == 0 || sorted != NULL);
    qsort(sorted, count, sizeof *sorted, compare_offsets);
    for (size_t i = 1; i < count; i++)
        if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset)
            return fail(STATUS_FORMAT, "%s: tensors %s and %s overlap in the file", cursor->name,
                        sorted[i - 1]->name, sorted[i]->name);
    qsort(sorted, count, sizeof *sorted, reader_compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return fail(STATUS_FORMAT, "%s: two tensors are called %s", cursor->name,
                        sorted[i]->name);
    return STATUS_OK;
}

static Status place_tensor(const Cursor *cursor, StoredTensor *tensor, uint64_t data,
                           size_t file_bytes) {
    uint64_t begin, end;
    if (__builtin_add_overflow(data, (uint64_t)tensor->offset, &begin) ||
        __builtin_add_overflow(begin, (uint64_t)tensor->bytes, &end) || end > file_bytes)
        return fail(STATUS_FORMAT,
                    "%s: tensor %s (%zu bytes at offset %zu) lies beyond the end of the file "
                    "(%zu bytes)",
                    cursor->name, tensor->name, tensor->bytes, tensor->offset, file_bytes);
    tensor->offset = (size_t)begin;
    return STATUS_OK;
}

// Makes offsets absolute and proves that every tensor lies inside the file and none overlap.
static Status place_tensors(const Cursor *cursor, Reader *reader, uint64_t alignment,
                            size_t file_bytes) {
    ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
    uint64_t data = (cursor->at + alignment - 1) / alignment * alignment;
    size_t count = reader->tensors.count;
    for (size_t i = 0; i < count; i++) {
        StoredTensor *tensor = &reader->tensors.items[i];
        if (tensor->offset % alignment != 0)
            return fail(STATUS_FORMAT, "%s: tensor %s at offset %zu is not aligned to %llu bytes",
                        cursor->name, tensor->name, tensor->offset, (unsigned long long)alignment);
        TRY(place_tensor(cursor, tensor, data, file_bytes));
    }
    SCOPED_MEMORY StoredTensor **sorted = memory_allocate(count * sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = &reader->tensors.items[i];
    return check_order(cursor, sorted, count);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static Status check_keys(const Cursor *cursor, const Metadata *metadata) {
    size_t count = metadata->count;
    SCOPED_MEMORY char **sorted = memory_allocate(count * sizeof *sorted);
    for (size_t i = 0; i < count; i++) sorted[i] = metadata->items[i].key;
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return fail(STATUS_FORMAT, "%s: two metadata values are called %s", cursor->name,
                        sorted[i]);
    return STATUS_OK;
}

static Status read_alignment(const Cursor *cursor, const Reader *reader, uint64_t *out) {
    *out = GGUF_ALIGNMENT;
    const MetaValue *value = metadata_find(&reader->metadata, "general.alignment");
    if (!value) return STATUS_OK;
    int64_t alignment = value->type == META_UINT32 ? value->as.integer : 0;
    if (alignment < 8 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0)
        return fail(STATUS_FORMAT, "%s: general.alignment is not a power of two from 8 to 1048576",
                    cursor->name);
    *out = (uint64_t)alignment;
    return STATUS_OK;
}

// Moves the cursor past the header of a file of so many bytes.
static Status read_header(Cursor *cursor, Reader *reader, size_t file_bytes) {
    uint32_t magic = 0;
    uint64_t tensor_count = 0, pair_count = 0, alignment = GGUF_ALIGNMENT;
    if (cursor->length >= sizeof magic) TRY(read_u32(cursor, "the header", &magic));
    if (magic != GGUF_MAGIC)
        return fail(STATUS_FORMAT, "%s is not a GGUF file: it does not begin with \"GGUF\"",
                    cursor->name);
    TRY(read_u32(cursor, "the header", &cursor->version));
    if (cursor->version < 1 || cursor->version > 3)
        return fail(STATUS_FORMAT, "%s is GGUF version %u; versions 1 to 3 can be read%s",
                    cursor->name, cursor->version,
                    cursor->version << 24 ? "" : " (this file is big-endian)");
    TRY(read_count(cursor, "the header", &tensor_count));
    TRY(read_count(cursor, "the header", &pair_count));
    for (uint64_t i = 0; i < pair_count; i++) TRY(read_pair(cursor, &reader->metadata));
    TRY(check_keys(cursor, &reader->metadata));
    TRY(read_alignment(cursor, reader, &alignment));
    for (uint64_t i = 0; i < tensor_count; i++) TRY(read_tensor(cursor, reader));
    return place_tensors(cursor, reader, alignment, file_bytes);
}

// Read once to know where the header ends, and then from a copy, which what is read points into:
// a file may change while it is mapped.
Status gguf_parse(Reader *reader, const uint8_t *bytes, size_t length, const char *name) {
    Cursor first = {.bytes = bytes, .length = length, .name = name};
    ASSERT(bytes != NULL || length == 0);
    Reader ignored = {0};
    Status status = read_header(&first, &ignored, length);
    reader_clear(&ignored);
    TRY(status);
    reader->header = memory_try_resize(NULL, first.at); // as large as the file wants it
    if (!reader->header) return memory_exhausted();
    memcpy(reader->header, bytes, first.at);
    Cursor again = {.bytes = reader->header, .length = first.at, .name = name};
    return read_header(&again, reader, length);
}

Status gguf_open_part(Reader *reader, FileMap *map) {
    TRY(gguf_parse(reader, file_map_bytes(map), file_map_length(map), file_map_path(map)));
    for (size_t i = 0; i < reader->tensors.count; i++) reader->tensors.items[i].map = map;
    VECTOR_PUSH(&reader->maps, file_map_retain(map));
    return STATUS_OK;
}
