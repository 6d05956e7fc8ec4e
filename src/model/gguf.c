// The GGUF reader: a cursor that cannot leave the file, then the tables.
#include "model/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

static const size_t type_bytes[GGUF_TYPE_COUNT] = {
    [GGUF_UINT8] = 1,  [GGUF_INT8] = 1,  [GGUF_UINT16] = 2,  [GGUF_INT16] = 2,
    [GGUF_UINT32] = 4, [GGUF_INT32] = 4, [GGUF_FLOAT32] = 4, [GGUF_BOOL] = 1,
    [GGUF_UINT64] = 8, [GGUF_INT64] = 8, [GGUF_FLOAT64] = 8,
};

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

// A number of `type` from bytes that are known to be there.
static GgufValue decode_number(GgufType type, const uint8_t *bytes) {
    GgufValue value = {.type = type};
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
    memcpy(&raw, bytes, type_bytes[type]);
    switch (type) {
    case GGUF_UINT8: value.as.integer = raw.u8; break;
    case GGUF_INT8: value.as.integer = raw.i8; break;
    case GGUF_UINT16: value.as.integer = raw.u16; break;
    case GGUF_INT16: value.as.integer = raw.i16; break;
    case GGUF_UINT32: value.as.integer = raw.u32; break;
    case GGUF_INT32: value.as.integer = raw.i32; break;
    case GGUF_FLOAT32: value.as.number = (double)raw.f32; break;
    case GGUF_BOOL: value.as.integer = raw.u8 != 0; break;
    case GGUF_FLOAT64: value.as.number = raw.f64; break;
    default: value.as.integer = raw.i64; break; // UINT64 beyond int64 reads as negative
    }
    return value;
}

static Status read_array(Cursor *cursor, GgufValue *out) {
    uint32_t type;
    uint64_t count;
    TRY(read_u32(cursor, "an array's type", &type));
    if (type >= GGUF_TYPE_COUNT || type == GGUF_ARRAY)
        return fail(STATUS_FORMAT, "%s: an array at byte %zu has elements of unknown type %u",
                    cursor->name, cursor->at, type);
    TRY(read_count(cursor, "an array's length", &count));
    size_t smallest = type == GGUF_STRING ? (cursor->version > 1 ? 8 : 4) : type_bytes[type];
    if (count > (cursor->length - cursor->at) / smallest)
        return fail(
            STATUS_FORMAT, "%s: an array at byte %zu claims %llu elements, but %zu bytes are left",
            cursor->name, cursor->at, (unsigned long long)count, cursor->length - cursor->at);
    out->as.array.type = (GgufType)type;
    out->as.array.count = (size_t)count;
    out->as.array.offset = cursor->at;
    if (type != GGUF_STRING) {
        cursor->at += (size_t)count * smallest;
        return STATUS_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        const char *bytes;
        size_t length;
        TRY(read_string(cursor, "a string of an array", &bytes, &length));
    }
    return STATUS_OK;
}

static Status read_value(Cursor *cursor, GgufType type, GgufValue *out) {
    *out = (GgufValue){.type = type};
    if (type == GGUF_STRING)
        return read_string(cursor, "a string", &out->as.string.bytes, &out->as.string.length);
    if (type == GGUF_ARRAY) return read_array(cursor, out);
    const uint8_t *bytes = NULL;
    TRY(read_bytes(cursor, type_bytes[type], "a metadata value", &bytes));
    *out = decode_number(type, bytes);
    return STATUS_OK;
}

// Keys and tensor names become C strings: bounded, UTF-8, without NUL.
static Status read_name(Cursor *cursor, const char *what, char **out) {
    const char *bytes;
    size_t length, bad;
    size_t at = cursor->at;
    TRY(read_string(cursor, what, &bytes, &length));
    if (length > GGUF_KEY_MAX || memchr(bytes, '\0', length) || !utf8_valid(bytes, length, &bad))
        return fail(STATUS_FORMAT, "%s: %s at byte %zu is not a text of at most %d bytes",
                    cursor->name, what, at, GGUF_KEY_MAX);
    *out = memory_copy_string(bytes, length);
    return STATUS_OK;
}

static Status read_pairs(Cursor *cursor, GgufFile *file, uint64_t count) {
    VECTOR(GgufPair) pairs = {0};
    Status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        GgufPair pair = {0};
        uint32_t type = 0;
        status = read_name(cursor, "a metadata key", &pair.key);
        if (status != STATUS_OK) break;
        VECTOR_PUSH(&pairs, pair);
        status = read_u32(cursor, "a metadata type", &type);
        if (status == STATUS_OK && type >= GGUF_TYPE_COUNT)
            status = fail(STATUS_FORMAT, "%s: the metadata value \"%s\" has unknown type %u",
                          cursor->name, pair.key, type);
        if (status == STATUS_OK)
            status = read_value(cursor, (GgufType)type, &pairs.items[pairs.count - 1].value);
    }
    file->pairs = pairs.items;
    file->pair_count = pairs.count;
    return status;
}

// GGUF lists the fastest-varying dimension first. Trailing dimensions of 1 are kept as written.
// Sizes of 0 count as 1 in *elements: they do not excuse the others, whose strides must exist.
static Status read_dimensions(Cursor *cursor, GgufTensor *tensor, uint64_t *elements) {
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

// A tensor whose type is unknown, or whose rows are not whole blocks, does not keep the others from
// being read: it has no dtype and, as far as this reader knows, no bytes.
static Status read_format(Cursor *cursor, GgufTensor *tensor, uint64_t elements) {
    uint32_t type;
    TRY(read_u32(cursor, "a tensor's type", &type));
    BlockFormat format;
    tensor->type_number = type;
    tensor->type_name = "unknown";
    tensor->block_elements = 1;
    if (!find_format(type, &format, &tensor->dtype)) return STATUS_OK;
    tensor->type_name = format.name;
    tensor->removed = format.elements == 0;
    if (tensor->removed) return STATUS_OK;
    tensor->block_elements = format.elements;
    uint64_t row = tensor->shape.rank ? (uint64_t)tensor->shape.dims[tensor->shape.rank - 1] : 1;
    if (row % (uint64_t)format.elements != 0) return STATUS_OK;
    tensor->has_dtype = tensor->dtype != DTYPE_COUNT;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements / (uint64_t)format.elements, format.bytes, &bytes))
        return fail(STATUS_FORMAT, "%s: tensor %s is too large", cursor->name, tensor->name);
    bool empty = false;
    for (int d = 0; d < tensor->shape.rank; d++) empty |= tensor->shape.dims[d] == 0;
    tensor->bytes = empty ? 0 : (size_t)bytes;
    return STATUS_OK;
}

static Status read_tensor(Cursor *cursor, GgufTensor *tensor) {
    uint64_t elements = 0, offset = 0;
    TRY(read_dimensions(cursor, tensor, &elements));
    TRY(read_format(cursor, tensor, elements));
    TRY(read_u64(cursor, "a tensor's offset", &offset));
    tensor->offset = (size_t)offset; // relative to the data until place_tensors
    return STATUS_OK;
}

static Status read_tensors(Cursor *cursor, GgufFile *file, uint64_t count) {
    VECTOR(GgufTensor) tensors = {0};
    Status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        GgufTensor tensor = {0};
        status = read_name(cursor, "a tensor's name", &tensor.name);
        if (status != STATUS_OK) break;
        VECTOR_PUSH(&tensors, tensor);
        status = read_tensor(cursor, &tensors.items[tensors.count - 1]);
    }
    file->tensors = tensors.items;
    file->tensor_count = tensors.count;
    return status;
}

static int compare_offsets(const void *a, const void *b) {
    const GgufTensor *x = *(GgufTensor *const *)a, *y = *(GgufTensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(GgufTensor *const *)a)->name, (*(GgufTensor *const *)b)->name);
}

static Status check_order(const Cursor *cursor, GgufTensor **sorted, size_t count) {
    qsort(sorted, count, sizeof *sorted, compare_offsets);
    for (size_t i = 1; i < count; i++)
        if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset)
            return fail(STATUS_FORMAT, "%s: tensors %s and %s overlap in the file", cursor->name,
                        sorted[i - 1]->name, sorted[i]->name);
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            return fail(STATUS_FORMAT, "%s: two tensors are called %s", cursor->name,
                        sorted[i]->name);
    return STATUS_OK;
}

// Makes offsets absolute and proves that every tensor lies inside the file and none overlap.
static Status place_tensors(const Cursor *cursor, GgufFile *file, uint64_t alignment) {
    uint64_t data = (cursor->at + alignment - 1) / alignment * alignment;
    for (size_t i = 0; i < file->tensor_count; i++) {
        GgufTensor *tensor = &file->tensors[i];
        if (tensor->offset % alignment != 0)
            return fail(STATUS_FORMAT, "%s: tensor %s at offset %zu is not aligned to %llu bytes",
                        cursor->name, tensor->name, tensor->offset, (unsigned long long)alignment);
        uint64_t begin, end;
        if (__builtin_add_overflow(data, (uint64_t)tensor->offset, &begin) ||
            __builtin_add_overflow(begin, (uint64_t)tensor->bytes, &end) || end > file->length)
            return fail(STATUS_FORMAT,
                        "%s: tensor %s (%zu bytes at offset %zu) lies beyond the end of the file "
                        "(%zu bytes)",
                        cursor->name, tensor->name, tensor->bytes, tensor->offset, file->length);
        tensor->offset = (size_t)begin;
    }
    GgufTensor **sorted = memory_allocate(file->tensor_count * sizeof *sorted);
    for (size_t i = 0; i < file->tensor_count; i++) sorted[i] = &file->tensors[i];
    Status status = check_order(cursor, sorted, file->tensor_count);
    free(sorted);
    return status;
}

static Status read_alignment(const Cursor *cursor, const GgufFile *file, uint64_t *out) {
    *out = GGUF_ALIGNMENT;
    const GgufValue *value = gguf_find(file, "general.alignment");
    if (!value) return STATUS_OK;
    int64_t alignment = value->type == GGUF_UINT32 ? value->as.integer : 0;
    if (alignment < 8 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0)
        return fail(STATUS_FORMAT, "%s: general.alignment is not a power of two from 8 to 1048576",
                    cursor->name);
    *out = (uint64_t)alignment;
    return STATUS_OK;
}

static Status read_file(Cursor *cursor, GgufFile *file) {
    uint32_t magic = 0;
    uint64_t tensor_count = 0, pair_count = 0, alignment = GGUF_ALIGNMENT;
    if (cursor->length >= sizeof magic) TRY(read_u32(cursor, "the header", &magic));
    if (magic != GGUF_MAGIC)
        return fail(STATUS_FORMAT, "%s is not a GGUF file: it does not begin with \"GGUF\"",
                    cursor->name);
    TRY(read_u32(cursor, "the header", &file->version));
    if (file->version < 1 || file->version > 3)
        return fail(STATUS_FORMAT, "%s is GGUF version %u; versions 1 to 3 can be read%s",
                    cursor->name, file->version,
                    file->version << 24 ? "" : " (this file is big-endian)");
    cursor->version = file->version;
    TRY(read_count(cursor, "the header", &tensor_count));
    TRY(read_count(cursor, "the header", &pair_count));
    TRY(read_pairs(cursor, file, pair_count));
    TRY(read_alignment(cursor, file, &alignment));
    TRY(read_tensors(cursor, file, tensor_count));
    file->header_bytes = cursor->at;
    return place_tensors(cursor, file, alignment);
}

// Of the file's bytes the first `readable` are there to be read.
static Status parse_header(const uint8_t *bytes, size_t readable, size_t length, const char *name,
                           GgufFile **out) {
    Cursor cursor = {.bytes = bytes, .length = readable, .name = name};
    GgufFile *file = memory_allocate_zeroed(1, sizeof *file);
    file->bytes = bytes;
    file->length = length;
    Status status = read_file(&cursor, file);
    if (status == STATUS_OK)
        *out = file;
    else
        gguf_close(file);
    return status;
}

Status gguf_parse(const uint8_t *bytes, size_t length, const char *name, GgufFile **out) {
    return parse_header(bytes, length, length, name, out);
}

// Read once to know where the header ends, and then from a copy, which what is read points into:
// a file may change while it is mapped.
static Status parse_mapped(const FileMap *map, const char *name, GgufFile **out) {
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    GgufFile *first;
    TRY(gguf_parse(bytes, length, name, &first));
    size_t header_bytes = first->header_bytes;
    gguf_close(first);
    uint8_t *copy = memory_try_resize(NULL, header_bytes); // as large as the file wants it
    if (!copy) return memory_exhausted();
    memcpy(copy, bytes, header_bytes);
    Status status = parse_header(copy, header_bytes, length, name, out);
    if (status == STATUS_OK)
        (*out)->copy = copy;
    else
        free(copy);
    return status;
}

Status gguf_open(const char *path, GgufFile **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status parsed = parse_mapped(map, path, out), status = file_map_check(map);
    if (status == STATUS_OK) status = parsed;
    if (status == STATUS_OK) {
        (*out)->map = map;
        for (size_t i = 0; i < (*out)->tensor_count; i++) (*out)->tensors[i].map = map;
        return STATUS_OK;
    }
    if (parsed == STATUS_OK) gguf_close(*out);
    file_map_release(map);
    return status;
}

void gguf_tensor_unread(GgufTensor *tensor, const char *type) {
    tensor->has_dtype = false;
    tensor->block_elements = 1;
    tensor->type_text = memory_copy_string(type, strlen(type));
    tensor->type_name = tensor->type_text;
}

void gguf_close(GgufFile *file) {
    for (size_t i = 0; i < file->pair_count; i++) free(file->pairs[i].key);
    for (size_t i = 0; i < file->tensor_count; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].type_text);
    }
    free(file->pairs);
    free(file->tensors);
    free(file->copy);
    for (size_t i = 0; i < file->part_count; i++) gguf_close(file->parts[i]);
    free(file->parts);
    if (file->map) file_map_release(file->map);
    free(file);
}

const GgufValue *gguf_find(const GgufFile *file, const char *key) {
    for (size_t i = 0; i < file->pair_count; i++)
        if (strcmp(file->pairs[i].key, key) == 0) return &file->pairs[i].value;
    return NULL;
}

void gguf_array_each(const GgufFile *file, const GgufValue *array,
                     void (*visit)(void *context, size_t index, GgufValue value), void *context) {
    Cursor cursor = {.bytes = file->bytes,
                     .length = file->header_bytes,
                     .at = array->as.array.offset,
                     .name = "array",
                     .version = file->version};
    for (size_t i = 0; i < array->as.array.count; i++) {
        GgufValue value;
        Status status = read_value(&cursor, array->as.array.type, &value);
        ASSERT(status == STATUS_OK); // read before, from the same bytes
        visit(context, i, value);
    }
}
