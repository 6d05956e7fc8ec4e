// Reads and writes safetensors: 8 bytes of length, a JSON header, then the numbers.
#include "model/safetensors.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/file_replace.h"
#include "model/named_texts.h"
#include "model/safetensors_types.h"
#include "model/tensor_write.h"
#include "tensor/op.h"

enum { HEADER_BYTES_MAX = 100 << 20, LENGTH_BYTES = 8 };

static const char *const type_names[DTYPE_COUNT] = {
    [DTYPE_FLOAT64] = "F64",   [DTYPE_FLOAT32] = "F32", [DTYPE_FLOAT16] = "F16",
    [DTYPE_BFLOAT16] = "BF16", [DTYPE_INT64] = "I64",   [DTYPE_INT32] = "I32",
    [DTYPE_INT16] = "I16",     [DTYPE_INT8] = "I8",     [DTYPE_UINT8] = "U8",
    [DTYPE_BOOL] = "BOOL",
};

// --- reading

typedef struct Parse {
    const char *file;
    size_t before, length; // bytes of the file up to the numbers, and of these
    const SafetensorsVisit *visit;
} Parse;

static Status wrong(const Parse *parse, const char *name, const char *what) {
    return fail(STATUS_FORMAT, "%s: tensor `%.80s`: %s", parse->file, name, what);
}

static bool read_whole(const json_t *json, int64_t *out) {
    if (!json_is_integer(json) || json_integer_value(json) < 0) return false;
    *out = json_integer_value(json);
    return true;
}

static Status read_dtype(const Parse *parse, const json_t *json, SafetensorsEntry *entry) {
    const char *word = json_string_value(json_object_get(json, "dtype"));
    if (!word) return wrong(parse, entry->name, "it has no dtype");
    entry->type = word;
    for (int i = 0; i < DTYPE_COUNT && !entry->known; i++) {
        entry->known = type_names[i] && strcmp(type_names[i], word) == 0;
        if (entry->known) entry->dtype = (DType)i;
    }
    if (entry->known) return STATUS_OK;
    entry->foreign = safetensors_type_find(word);
    entry->known = entry->foreign != NULL;
    if (entry->foreign) entry->dtype = entry->foreign->dtype;
    return STATUS_OK;
}

static Status read_entry(const Parse *parse, const json_t *json, SafetensorsEntry *entry) {
    if (!json_is_object(json)) return wrong(parse, entry->name, "it is not an object");
    TRY(read_dtype(parse, json, entry));
    const json_t *shape = json_object_get(json, "shape");
    const json_t *offsets = json_object_get(json, "data_offsets");
    if (!json_is_array(shape) || json_array_size(shape) > RANK_MAX)
        return wrong(parse, entry->name, "its shape is not a list of at most 8 sizes");
    entry->shape.rank = (int)json_array_size(shape);
    for (int i = 0; i < entry->shape.rank; i++)
        if (!read_whole(json_array_get(shape, (size_t)i), &entry->shape.dims[i]))
            return wrong(parse, entry->name, "its shape holds something that is not a size");
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !read_whole(json_array_get(offsets, 0), &begin) ||
        !read_whole(json_array_get(offsets, 1), &end))
        return wrong(parse, entry->name, "its data_offsets are not two offsets");
    if (begin > end || (uint64_t)end > parse->length)
        return fail(STATUS_FORMAT, "%s: tensor `%.80s` lies at bytes %lld to %lld of %zu",
                    parse->file, entry->name, (long long)begin, (long long)end, parse->length);
    entry->begin = parse->before + (size_t)begin;
    entry->end = parse->before + (size_t)end;
    if (!entry->known) return STATUS_OK;
    size_t bytes;
    bool counted = stored_bytes(entry->dtype, &entry->shape, &bytes);
    if (entry->foreign) bytes = bytes / dtype_size(entry->dtype) * entry->foreign->bytes;
    if (!counted || bytes != entry->end - entry->begin)
        return fail(STATUS_FORMAT, "%s: tensor `%.80s` is %s, but has %zu bytes", parse->file,
                    entry->name, type_name(entry->dtype, &entry->shape).text,
                    entry->end - entry->begin);
    return STATUS_OK;
}

// The numbers of a foreign type, widened; free() them. NULL: one of them does not fit.
static Status widen(const uint8_t *bytes, const SafetensorsEntry *entry, uint8_t **out,
                    size_t *length) {
    const SafetensorsType *type = entry->foreign;
    size_t count = (entry->end - entry->begin) / type->bytes, wide = dtype_size(entry->dtype);
    *length = count * wide;
    *out = memory_try_resize(NULL, *length + 1);
    if (!*out) return memory_exhausted();
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++)
        fits = type->widen(bytes + entry->begin + i * type->bytes, *out + i * wide);
    if (!fits) {
        free(*out);
        *out = NULL;
    }
    return STATUS_OK;
}

static Status upload(const SafetensorsEntry *entry, const uint8_t *numbers, size_t length,
                     Tensor **out) {
    SCOPED_TENSOR(stored);
    TRY(stored_new(entry->dtype, &entry->shape, &stored));
    if (length > 0) TRY(buffer_upload(stored->view.buffer, stored->view.offset, numbers, length));
    return tensor_cast(stored, entry->dtype, out);
}

Status safetensors_tensor(const uint8_t *bytes, const SafetensorsEntry *entry, Tensor **out) {
    *out = NULL;
    if (!entry->known) return STATUS_OK;
    size_t length = entry->end - entry->begin;
    if (!entry->foreign) return upload(entry, bytes + entry->begin, length, out);
    SCOPED_MEMORY uint8_t *wide = NULL;
    TRY(widen(bytes, entry, &wide, &length));
    return wide ? upload(entry, wide, length, out) : STATUS_OK;
}

static int by_begin(const void *x, const void *y) {
    const SafetensorsEntry *left = x, *right = y;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return left->end < right->end ? -1 : left->end > right->end;
}

static Status check_overlaps(const Parse *parse, const SafetensorsEntry *entries, size_t count) {
    if (count == 0) return STATUS_OK;
    SCOPED_MEMORY SafetensorsEntry *sorted = memory_allocate(count * sizeof *sorted);
    memcpy(sorted, entries, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_begin);
    Status status = STATUS_OK;
    for (size_t i = 1; i < count && status == STATUS_OK; i++)
        if (sorted[i].begin < sorted[i - 1].end)
            status = fail(STATUS_FORMAT, "%s: tensors `%.80s` and `%.80s` overlap", parse->file,
                          sorted[i - 1].name, sorted[i].name);
    return status;
}

static Status read_tensors(const Parse *parse, json_t *header) {
    // No entry without some bytes of header: the count is bounded by the file.
    SCOPED_MEMORY SafetensorsEntry *entries =
        memory_allocate((json_object_size(header) + 1) * sizeof *entries);
    size_t count = 0;
    const char *name;
    json_t *json;
    Status status = STATUS_OK;
    json_object_foreach(header, name, json) {
        if (status != STATUS_OK) break;
        if (strcmp(name, "__metadata__") == 0) {
            if (parse->visit->texts) named_texts_unpack(parse->visit->texts, json);
            continue;
        }
        entries[count] = (SafetensorsEntry){.name = name};
        status = read_entry(parse, json, &entries[count++]);
    }
    if (status == STATUS_OK) status = check_overlaps(parse, entries, count);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = parse->visit->tensor(parse->visit->context, &entries[i]);
    return status;
}

static Status read_header(Parse *parse, const uint8_t *bytes) {
    uint64_t header_bytes = 0;
    size_t length = parse->length;
    if (length < LENGTH_BYTES)
        return fail(STATUS_FORMAT, "%s: %zu bytes are not a safetensors file", parse->file, length);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) header_bytes = header_bytes << 8 | bytes[i];
    if (header_bytes > length - LENGTH_BYTES || header_bytes > HEADER_BYTES_MAX)
        return fail(STATUS_FORMAT, "%s: the header claims %llu bytes, but %zu are left",
                    parse->file, (unsigned long long)header_bytes, length - LENGTH_BYTES);
    json_error_t error;
    json_auto_t *header = json_loadb((const char *)bytes + LENGTH_BYTES, (size_t)header_bytes,
                                     JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return fail(STATUS_FORMAT, "%s: the header is not JSON: %s", parse->file, error.text);
    parse->before = LENGTH_BYTES + (size_t)header_bytes;
    parse->length -= parse->before;
    return json_is_object(header)
               ? read_tensors(parse, header)
               : fail(STATUS_FORMAT, "%s: the header is not a JSON object", parse->file);
}

Status safetensors_each(const uint8_t *bytes, size_t length, const char *name,
                        const SafetensorsVisit *visit) {
    return read_header(&(Parse){.file = name, .length = length, .visit = visit}, bytes);
}

// --- writing

static Status make_header(const NamedTensors *tensors, char **out) {
    json_auto_t *header = json_object();
    size_t offset = 0;
    Status status = STATUS_OK;
    if (tensors->texts.count > 0)
        json_object_set_new(header, "__metadata__", named_texts_pack(tensors));
    for (size_t i = 0; i < tensors->count && status == STATUS_OK; i++) {
        const Tensor *tensor = tensors->items[i].tensor;
        const char *name = tensors->items[i].name, *type = type_names[tensor_dtype(tensor)];
        if (!type) {
            status = fail(STATUS_DTYPE, "safetensors cannot hold %s: convert `%s` first",
                          tensor_type_name(tensor).text, name);
            break;
        }
        size_t end = offset + (size_t)tensor_count(tensor) * dtype_size(tensor_dtype(tensor));
        json_t *shape = json_array();
        for (int d = 0; d < tensor_rank(tensor); d++)
            json_array_append_new(shape, json_integer(tensor->view.dims[d]));
        json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", type, "shape", shape,
                                  "data_offsets", (json_int_t)offset, (json_int_t)end);
        if (json_object_set_new(header, name, entry) != 0)
            status = fail(STATUS_VALUE, "`%.80s` is not a name for a tensor in a file", name);
        offset = end;
    }
    *out = status == STATUS_OK ? json_dumps(header, JSON_COMPACT) : NULL;
    return status;
}

typedef struct Writing {
    const char *header;
    const NamedTensors *tensors;
} Writing;

static Status write_file(FILE *stream, void *context) {
    static const char blanks[LENGTH_BYTES] = "        ";
    const Writing *writing = context;
    size_t length = strlen(writing->header);
    size_t padding = (LENGTH_BYTES - length % LENGTH_BYTES) % LENGTH_BYTES;
    uint8_t count[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++) count[i] = (uint8_t)((length + padding) >> (8 * i));
    TRY(stream_write(stream, count, sizeof count));
    TRY(stream_write(stream, writing->header, length));
    TRY(stream_write(stream, blanks, padding));
    for (size_t i = 0; i < writing->tensors->count; i++)
        TRY(tensor_write(stream, writing->tensors->items[i].tensor,
                         tensor_dtype(writing->tensors->items[i].tensor), NULL));
    return STATUS_OK;
}

Status safetensors_write(const char *path, const NamedTensors *tensors) {
    char *header;
    TRY(make_header(tensors, &header));
    Writing writing = {.header = header, .tensors = tensors};
    Status status = file_keep_stream(path, write_file, &writing);
    free(header);
    return status;
}
