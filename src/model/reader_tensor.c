// Tensors of what a reader found: over the mapped file or with bytes of their own.
#include <stdlib.h>
#include <string.h>

#include "base/aside.h"
#include "base/half.h"
#include "base/memory.h"
#include "device/cpu/quant.h"
#include "device/foretell.h"
#include "model/mxfp4.h"

static void release_map(void *map) {
    file_map_release(map);
}

static Status copy_bytes(Device *device, const uint8_t *bytes, size_t length,
                         const BufferLabel *label, Buffer **out) {
    TRY(buffer_new(device, length, label, out));
    Status status = length > 0 ? buffer_upload(*out, 0, bytes, length) : STATUS_OK;
    if (status != STATUS_OK) buffer_release(*out);
    return status;
}

// The numbers of a type that only the CPU reads, as float16.
static Status import_decoded(Device *device, const StoredTensor *tensor, const uint8_t *bytes,
                             BufferLabel *label, Buffer **out) {
    enum { SUPERBLOCK = 256 };
    int64_t count = 1;
    ASSERT(tensor->shape.rank <= RANK_MAX);
    for (int d = 0; d < tensor->shape.rank; d++) count *= tensor->shape.dims[d];
    size_t length = (size_t)count * sizeof(uint16_t);
    SCOPED_MEMORY uint16_t *halves =
        memory_try_resize(NULL, length + 1); // as large as the file wants it
    if (!halves) return memory_exhausted();
    const DTypeInfo *info = &dtype_info[tensor->dtype];
    for (int64_t i = 0; i < count; i += info->block_elements) {
        float numbers[SUPERBLOCK];
        quant_dequantize(tensor->dtype, bytes + i / info->block_elements * info->block_bytes,
                         numbers, info->block_elements);
        for (int j = 0; j < info->block_elements; j++) halves[i + j] = half_from_float(numbers[j]);
    }
    label->dtype = DTYPE_FLOAT16;
    TRY(buffer_new(device, length, label, out));
    return buffer_upload(*out, 0, halves, length);
}

// Integers are copied: they may become indexes, which kernels check before they use them, and
// what is mapped may change in between.
static bool stays_mapped(const StoredTensor *tensor) {
    return dtype_is_float(tensor->dtype) || dtype_is_quant(tensor->dtype);
}

// In the file, of a shape that the model has.
static Shape shape_before(Shape shape, const TensorChange *change) {
    int last = shape.rank - 1;
    if (change->transpose) {
        int64_t rows = shape.dims[last];
        shape.dims[last] = shape.dims[last - 1];
        shape.dims[last - 1] = rows;
    }
    if (change->part) shape.dims[shape.rank - change->part_dim] *= 2;
    return shape;
}

// Numbers that only a run knows were put aside, and are as unknown as they were.
static bool is_filler(const uint8_t *bytes, size_t count) {
    size_t i = 0;
    if (aside_is_empty(runtime_current->aside)) return false; // pages of files stay untouched
    while (i < count && bytes[i] == FORETELL_FILLER) i++;
    return count > 0 && i == count;
}

Status reader_tensor(const StoredTensor *tensor, bool copy, Tensor **out) {
    Device *device;
    ASSERT(tensor->usable);
    if (tensor->tensor) {
        *out = tensor_retain(tensor->tensor);
        return STATUS_OK;
    }
    if (tensor->scales_map) return mxfp4_tensor(tensor, out);
    TRY(device_default(&device));
    BufferLabel label = {.dtype = tensor->dtype, .rank = tensor->shape.rank};
    memcpy(label.dims, tensor->shape.dims, sizeof label.dims);
    FileMap *map = tensor->map;
    const uint8_t *bytes = file_map_bytes(map) + tensor->offset;
    Buffer *buffer;
    TRY(file_map_check(map));
    // A device with memory of its own.
    if (dtype_info[tensor->dtype].host_only && !device->backend->host_import) {
        TRY(import_decoded(device, tensor, bytes, &label, &buffer));
    } else if (stays_mapped(tensor) && !copy) {
        HostMemory memory = {bytes, tensor->bytes, file_map_retain(map), release_map,
                             file_map_evict};
        TRY(buffer_import(device, &memory, &label, &buffer));
    } else {
        TRY(copy_bytes(device, bytes, tensor->bytes, &label, &buffer));
        file_map_evict(bytes, tensor->bytes);
    }
    if (is_filler(bytes, tensor->bytes)) foretell_forget(buffer);
    Shape stored = shape_before(tensor->shape, &tensor->change);
    *out = tensor_from_buffer(buffer, 0, label.dtype, &stored);
    return STATUS_OK;
}

static Status read_tensors(const Reader *reader, const char *path, bool copy, NamedTensors *out) {
    for (size_t i = 0; i < reader->tensors.count; i++) {
        const StoredTensor *stored = &reader->tensors.items[i];
        Tensor *tensor = NULL;
        if (!stored->usable && stored->why) return reader_fail_unusable(stored, path);
        if (stored->usable) TRY(reader_tensor(stored, copy, &tensor));
        if (tensor)
            named_tensors_add(out, stored->name, tensor);
        else
            named_tensors_add_unread(out, stored->name, stored->type_name);
    }
    return STATUS_OK;
}

// The metadata of a file that are strings.
static void add_texts(const Metadata *metadata, NamedTensors *out) {
    SCOPED_TEXT(text);
    for (size_t i = 0; i < metadata->count; i++) {
        const MetaValue *value = &metadata->items[i].value;
        if (value->type != META_STRING) continue;
        text_clear(&text);
        text_append(&text, value->as.string.bytes, value->as.string.length);
        named_tensors_add_text(out, metadata->items[i].key, text_get(&text));
    }
}

// Maps change while they are read: each is asked at the end.
static Status check_maps(const Reader *reader) {
    for (size_t i = 0; i < reader->maps.count; i++) TRY(file_map_check(reader->maps.items[i]));
    return STATUS_OK;
}

Status reader_read(const char *path, ReaderOpen *open, bool copy, NamedTensors *out) {
    Reader *reader;
    *out = (NamedTensors){0};
    TRY(reader_open_as(path, open, &reader));
    Status status = read_tensors(reader, path, copy, out);
    if (status == STATUS_OK) status = check_maps(reader);
    if (status == STATUS_OK) add_texts(&reader->metadata, out);
    if (status != STATUS_OK) named_tensors_free(out);
    reader_close(reader);
    return status;
}
