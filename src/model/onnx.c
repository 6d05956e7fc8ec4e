// ONNX by libprotobuf-c, which reads tables of fields; those of onnx.def are made here.
#include "model/onnx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/library.h"
#include "base/memory.h"
#include "device/device.h"

#define PROTOBUF_FUNCTIONS(F) F(protobuf_c_message_, unpack) F(protobuf_c_message_, free_unpacked)
LIBRARY(protobuf_library, PROTOBUF_FUNCTIONS, .file = "libprotobuf-c.so.1",
        .purpose = "ONNX models", .package = "libprotobuf-c1");

// --- the tables: for each message its fields, and where each field's number leads

#define FIELDS_ONE(message, number, field, ...) FIELD_##message##_##field,
#define MESSAGE(message) enum {
#define END(message)                                                                               \
    FIELDS_##message                                                                               \
    }                                                                                              \
    ;
#define ONE FIELDS_ONE
#define MANY FIELDS_ONE
#define ONE_OF FIELDS_ONE
#define MANY_OF FIELDS_ONE
#include "model/onnx.def"

#define RANGE(message, number, field, ...) {number, FIELD_##message##_##field},
#define MESSAGE(message) static const ProtobufCIntRange ranges_##message[] = {
#define END(message)                                                                               \
    { 0, FIELDS_##message }                                                                        \
    }                                                                                              \
    ;
#define ONE RANGE
#define MANY RANGE
#define ONE_OF RANGE
#define MANY_OF RANGE
#include "model/onnx.def"

#define FIELD(message, number, field, kind, many, count, part)                                     \
    {.name = #field,                                                                               \
     .id = number,                                                                                 \
     .label = PROTOBUF_C_LABEL_##many,                                                             \
     .type = PROTOBUF_C_TYPE_##kind,                                                               \
     .quantifier_offset = count,                                                                   \
     .offset = offsetof(Onnx##message, field),                                                     \
     .descriptor = part},
#define MESSAGE(message) static const ProtobufCFieldDescriptor fields_##message[] = {
#define END(message)                                                                               \
    }                                                                                              \
    ;                                                                                              \
    static const ProtobufCMessageDescriptor message_##message = {                                  \
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,                                             \
        .name = #message,                                                                          \
        .sizeof_message = sizeof(Onnx##message),                                                   \
        .n_fields = FIELDS_##message,                                                              \
        .fields = fields_##message,                                                                \
        .n_field_ranges = FIELDS_##message,                                                        \
        .field_ranges = ranges_##message};
#define ONE(message, number, field, type) FIELD(message, number, field, type, OPTIONAL, 0, NULL)
#define MANY(message, number, field, type)                                                         \
    FIELD(message, number, field, type, REPEATED, offsetof(Onnx##message, field##_count), NULL)
#define ONE_OF(message, number, field, part)                                                       \
    FIELD(message, number, field, MESSAGE, OPTIONAL, 0, &message_##part)
#define MANY_OF(message, number, field, part)                                                      \
    FIELD(message, number, field, MESSAGE, REPEATED, offsetof(Onnx##message, field##_count),       \
          &message_##part)
#include "model/onnx.def"

// --- reading

static void *allocate(void *refused, size_t bytes) {
    void *memory = memory_try_resize(NULL, bytes ? bytes : 1);
    if (!memory) *(bool *)refused = true;
    return memory;
}

static void release(void *refused, void *memory) {
    (void)refused;
    free(memory);
}

Status onnx_parse(const uint8_t *bytes, size_t length, const char *name, OnnxModel **out) {
    TRY(library_load(&library));
    bool refused = false;
    ProtobufCAllocator allocator = {allocate, release, &refused};
    OnnxModel *model =
        (OnnxModel *)protobuf_library.unpack(&message_Model, &allocator, length, bytes);
    if (refused) {
        onnx_free(model);
        return fail(STATUS_MEMORY, "%s: there is not enough memory to read its %zu bytes", name,
                    length);
    }
    if (!model)
        return fail(STATUS_FORMAT, "%s is not an ONNX model, or it is incomplete or damaged", name);
    if (!model->graph || model->format_version < 1) {
        onnx_free(model);
        return fail(STATUS_FORMAT, "%s is not an ONNX model: it has no graph", name);
    }
    *out = model;
    return STATUS_OK;
}

void onnx_free(OnnxModel *model) {
    bool refused;
    ProtobufCAllocator allocator = {allocate, release, &refused};
    if (model) protobuf_library.free_unpacked(&model->base, &allocator);
}

// --- numbers

typedef struct TypeRow {
    const char *name;
    int dtype; // DTYPE_COUNT: tl has none
    // Where numbers that are not raw bytes lie; of each the lowest bytes count.
    size_t count_offset, items_offset, item_bytes;
} TypeRow;

#define IN(field)                                                                                  \
    offsetof(OnnxNumbers, field##_count), offsetof(OnnxNumbers, field),                            \
        sizeof *((OnnxNumbers *)NULL)->field

static const TypeRow types[] = {
    [1] = {"float32", DTYPE_FLOAT32, IN(float_data)},
    [2] = {"uint8", DTYPE_UINT8, IN(int32_data)},
    [3] = {"int8", DTYPE_INT8, IN(int32_data)},
    [4] = {"uint16", DTYPE_COUNT, 0, 0, 0},
    [5] = {"int16", DTYPE_INT16, IN(int32_data)},
    [6] = {"int32", DTYPE_INT32, IN(int32_data)},
    [7] = {"int64", DTYPE_INT64, IN(int64_data)},
    [8] = {"string", DTYPE_COUNT, 0, 0, 0},
    [9] = {"bool", DTYPE_BOOL, IN(int32_data)},
    [10] = {"float16", DTYPE_FLOAT16, IN(int32_data)},
    [11] = {"float64", DTYPE_FLOAT64, IN(double_data)},
    [12] = {"uint32", DTYPE_COUNT, 0, 0, 0},
    [13] = {"uint64", DTYPE_COUNT, 0, 0, 0},
    [14] = {"complex64", DTYPE_COUNT, 0, 0, 0},
    [15] = {"complex128", DTYPE_COUNT, 0, 0, 0},
    [16] = {"bfloat16", DTYPE_BFLOAT16, IN(int32_data)},
    [17] = {"float8e4m3fn", DTYPE_COUNT, 0, 0, 0},
    [18] = {"float8e4m3fnuz", DTYPE_COUNT, 0, 0, 0},
    [19] = {"float8e5m2", DTYPE_COUNT, 0, 0, 0},
    [20] = {"float8e5m2fnuz", DTYPE_COUNT, 0, 0, 0},
    [21] = {"uint4", DTYPE_COUNT, 0, 0, 0},
    [22] = {"int4", DTYPE_COUNT, 0, 0, 0},
    [23] = {"float4e2m1", DTYPE_COUNT, 0, 0, 0},
};

static const TypeRow *type_row(int32_t data_type) {
    static const TypeRow unknown = {"unknown", DTYPE_COUNT, 0, 0, 0};
    bool known = data_type > 0 && (size_t)data_type < sizeof types / sizeof *types;
    return known ? &types[data_type] : &unknown;
}

const char *onnx_type_name(int32_t data_type) {
    return type_row(data_type)->name;
}

typedef struct Reading {
    const OnnxNumbers *numbers;
    const char *name, *path; // of the tensor and its file, for messages
    DType dtype;
    Shape shape;
    size_t bytes;
} Reading;

// Counts elements before there is memory for them: sizes may be any.
static Status read_shape(Reading *reading) {
    const OnnxNumbers *numbers = reading->numbers;
    if (numbers->dims_count > RANK_MAX)
        return fail(STATUS_SHAPE, "%s: tensor `%.80s` has %zu dimensions; at most %d are supported",
                    reading->path, reading->name, numbers->dims_count, RANK_MAX);
    reading->shape.rank = (int)numbers->dims_count;
    reading->bytes = dtype_size(reading->dtype);
    for (size_t i = 0; i < numbers->dims_count; i++) {
        int64_t size = reading->shape.dims[i] = numbers->dims[i];
        if (size < 0 || __builtin_mul_overflow(reading->bytes, (size_t)size, &reading->bytes))
            return fail(STATUS_FORMAT, "%s: tensor `%.80s` has a dimension of size %lld",
                        reading->path, reading->name, (long long)size);
    }
    return STATUS_OK;
}

static Status fail_length(const Reading *reading, size_t found, const char *unit) {
    return fail(STATUS_FORMAT, "%s: tensor `%.80s` is %s, but it has %zu %s", reading->path,
                reading->name, type_name(reading->dtype, &reading->shape).text, found, unit);
}

static Status upload(const Reading *reading, const void *bytes, Tensor **out) {
    Device *device;
    TRY(device_default(&device));
    TRY(tensor_new(device, reading->dtype, &reading->shape, out));
    Status status =
        reading->bytes ? buffer_upload((*out)->view.buffer, 0, bytes, reading->bytes) : STATUS_OK;
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

static Status upload_raw(const Reading *reading, const void *bytes, Tensor **out) {
    if (reading->dtype != DTYPE_BOOL) return upload(reading, bytes, out);
    SCOPED_MEMORY uint8_t *bools = memory_try_resize(NULL, reading->bytes + 1);
    if (!bools) return fail(STATUS_MEMORY, "there is not enough memory for `%.80s`", reading->name);
    for (size_t i = 0; i < reading->bytes; i++) bools[i] = ((const uint8_t *)bytes)[i] != 0;
    return upload(reading, bools, out);
}

// Each number in a field of its own.
static Status upload_items(const Reading *reading, const TypeRow *type, Tensor **out) {
    const char *numbers = (const char *)reading->numbers;
    size_t count, size = dtype_size(reading->dtype);
    const uint8_t *items;
    memcpy(&count, numbers + type->count_offset, sizeof count);
    memcpy(&items, numbers + type->items_offset, sizeof items);
    if (count != reading->bytes / size) return fail_length(reading, count, "numbers");
    SCOPED_MEMORY uint8_t *packed = memory_try_resize(NULL, reading->bytes + 1);
    if (!packed)
        return fail(STATUS_MEMORY, "there is not enough memory for `%.80s`", reading->name);
    for (size_t i = 0; i < count; i++)
        memcpy(packed + i * size, items + i * type->item_bytes, size);
    return upload_raw(reading, packed, out);
}

// --- numbers in files of their own

typedef struct Place {
    const char *location;
    int64_t offset, length; // length -1: to the end
} Place;

static Status read_place(const Reading *reading, Place *out) {
    const OnnxNumbers *numbers = reading->numbers;
    *out = (Place){.length = -1};
    for (size_t i = 0; i < numbers->external_data_count; i++) {
        const OnnxEntry *entry = numbers->external_data[i];
        const char *key = entry->key ? entry->key : "", *value = entry->value ? entry->value : "";
        int64_t *number = strcmp(key, "offset") == 0   ? &out->offset
                          : strcmp(key, "length") == 0 ? &out->length
                                                       : NULL;
        if (strcmp(key, "location") == 0) out->location = value;
        if (!number) continue;
        char *end;
        *number = strtoll(value, &end, 10);
        if (end == value || *end || *number < 0)
            return fail(STATUS_FORMAT, "%s: tensor `%.80s` lies at the %s \"%.40s\" of a file",
                        reading->path, reading->name, key, value);
    }
    if (out->location && *out->location) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: tensor `%.80s` lies in a file that has no name", reading->path,
                reading->name);
}

// The file's name comes from another file: where it leads is looked at, behind links too.
static Status find_inside(const Reading *reading, const char *location, char found[PATH_MAX]) {
    char folder[PATH_MAX];
    SCOPED_TEXT(path);
    const char *slash = strrchr(reading->path, '/');
    size_t length = slash ? (size_t)(slash - reading->path) + 1 : 0;
    text_format(&path, "%.*s.", (int)length, reading->path);
    bool there = realpath(text_get(&path), folder) != NULL;
    text_clear(&path);
    text_format(&path, "%.*s%s", (int)length, reading->path, location);
    there = there && realpath(text_get(&path), found);
    size_t inside = there && folder[1] ? strlen(folder) : 0; // of "/" nothing
    bool outside = there && (strncmp(found, folder, inside) != 0 || found[inside] != '/');
    if (location[0] == '/' || outside)
        return fail(STATUS_VALUE,
                    "%s: tensor `%.80s` lies in \"%.200s\", outside of the folder of the model",
                    reading->path, reading->name, location);
    if (there) return STATUS_OK;
    return fail(STATUS_IO, "%s: tensor `%.80s` lies in the file \"%.200s\", which is not there",
                reading->path, reading->name, location);
}

static Status upload_place(const Reading *reading, const Place *place, FileMap *map, Tensor **out) {
    size_t whole = file_map_length(map), offset = (size_t)place->offset;
    size_t length = place->length >= 0 ? (size_t)place->length : whole - offset;
    if (offset > whole || length > whole - offset)
        return fail(STATUS_FORMAT, "%s: tensor `%.80s` ends after the end of \"%.200s\"",
                    reading->path, reading->name, place->location);
    if (length != reading->bytes) return fail_length(reading, length, "bytes");
    TRY(upload_raw(reading, file_map_bytes(map) + offset, out));
    Status status = file_map_check(map);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

static Status upload_outside(const Reading *reading, Tensor **out) {
    Place place;
    char found[PATH_MAX];
    FileMap *map;
    TRY(read_place(reading, &place));
    TRY(find_inside(reading, place.location, found));
    TRY(file_map_open(found, &map));
    Status status = upload_place(reading, &place, map, out);
    file_map_release(map);
    return status;
}

Status onnx_tensor(const OnnxNumbers *numbers, const char *path, Tensor **out) {
    const TypeRow *type = type_row(numbers->data_type);
    Reading reading = {.numbers = numbers,
                       .name = numbers->name ? numbers->name : "",
                       .path = path,
                       .dtype = (DType)type->dtype};
    if (type->dtype == DTYPE_COUNT)
        return fail(STATUS_DTYPE, "%s: tensor `%.80s` has the type %s (%d), which is not supported",
                    path, reading.name, type->name, (int)numbers->data_type);
    TRY(read_shape(&reading));
    if (numbers->data_location == 1) return upload_outside(&reading, out);
    if (!numbers->raw_data.data) return upload_items(&reading, type, out);
    if (numbers->raw_data.len != reading.bytes)
        return fail_length(&reading, numbers->raw_data.len, "bytes");
    return upload_raw(&reading, numbers->raw_data.data, out);
}
