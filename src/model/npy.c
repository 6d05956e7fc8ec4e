// Reads and writes .npy: eight bytes of magic and version, the length of a header, the header (a
// Python dictionary), then the numbers.
#include "model/npy.h"

#include <stdlib.h>

#include "base/file_map.h"
#include "base/file_replace.h"
#include "model/npy_header.h"
#include "tensor/op.h"

enum { CHUNK_BYTES = 1 << 20, HEADER_BYTES_MAX = 1 << 20, ALIGNMENT = 64, PRELUDE_MAX = 12 };

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = sizeof magic - 1 };

// --- reading

static void swap_elements(uint8_t *bytes, size_t length, size_t size) {
    ASSERT(size > 0 && length % size == 0);
    for (size_t at = 0; at < length; at += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t other = bytes[at + i];
            bytes[at + i] = bytes[at + size - 1 - i];
            bytes[at + size - 1 - i] = other;
        }
}

static Status upload(NpySource *source, const NpyHeader *header, size_t bytes, Tensor *stored) {
    SCOPED_MEMORY uint8_t *chunk = memory_allocate(CHUNK_BYTES);
    Status status = STATUS_OK;
    for (size_t at = 0; at < bytes && status == STATUS_OK;) {
        size_t length = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        status = source->read(source, chunk, length);
        if (header->swapped) swap_elements(chunk, length, dtype_size(header->dtype));
        if (status == STATUS_OK)
            status = buffer_upload(stored->view.buffer, stored->view.offset + at, chunk, length);
        at += length;
    }
    return status;
}

static Shape reversed(const Shape *shape) {
    ASSERT(shape->rank >= 0 && shape->rank <= RANK_MAX);
    Shape result = {.rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) result.dims[i] = shape->dims[shape->rank - 1 - i];
    return result;
}

// Takes the reference: in Fortran order the first index runs fastest.
static Tensor *turn(Tensor *stored) {
    ASSERT(stored->view.rank >= 0 && stored->view.rank <= RANK_MAX);
    TensorView view = stored->view;
    for (int i = 0; i < view.rank; i++) {
        view.dims[i] = stored->view.dims[view.rank - 1 - i];
        view.strides[i] = stored->view.strides[view.rank - 1 - i];
    }
    Tensor *turned = tensor_view_of(stored, &view);
    tensor_release(stored);
    return turned;
}

static Status read_numbers(NpySource *source, const NpyHeader *header, uint64_t left,
                           Tensor **out) {
    size_t bytes;
    if (!stored_bytes(header->dtype, &header->shape, &bytes) || bytes != left)
        return fail(STATUS_FORMAT, "%s: the array is %s, but has %llu bytes", source->name,
                    type_name(header->dtype, &header->shape).text, (unsigned long long)left);
    Shape shape = header->fortran ? reversed(&header->shape) : header->shape;
    Tensor *stored;
    TRY(stored_new(header->dtype, &shape, &stored));
    Status status = upload(source, header, bytes, stored);
    if (status == STATUS_OK)
        return stored_finish(header->fortran ? turn(stored) : stored, header->dtype, out);
    tensor_release(stored);
    return status;
}

// The length of the header, of two bytes or from version 2.0 on of four.
static Status read_prelude(NpySource *source, size_t *prelude_bytes, size_t *header_bytes) {
    uint8_t prelude[PRELUDE_MAX];
    size_t common = MAGIC_BYTES + 2;
    if (source->length < PRELUDE_MAX)
        return fail(STATUS_FORMAT, "%s: %llu bytes are no .npy array", source->name,
                    (unsigned long long)source->length);
    TRY(source->read(source, prelude, common));
    if (memcmp(prelude, magic, MAGIC_BYTES) != 0)
        return fail(STATUS_FORMAT, "%s does not begin as a .npy array does", source->name);
    int major = prelude[MAGIC_BYTES], minor = prelude[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0)
        return fail(STATUS_FORMAT, "%s has version %d.%d of the .npy format; tl reads 1.0 to 3.0",
                    source->name, major, minor);
    size_t width = major == 1 ? 2 : 4, length = 0;
    TRY(source->read(source, prelude, width));
    for (size_t i = width; i-- > 0;) length = length << 8 | prelude[i];
    *prelude_bytes = common + width;
    *header_bytes = length;
    if (length <= HEADER_BYTES_MAX && length <= source->length - *prelude_bytes) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: the header claims %zu bytes, but %llu are left", source->name,
                length, (unsigned long long)(source->length - *prelude_bytes));
}

Status npy_read_source(NpySource *source, Tensor **out) {
    size_t prelude_bytes = 0, header_bytes = 0;
    TRY(read_prelude(source, &prelude_bytes, &header_bytes));
    char *text = memory_allocate(header_bytes + 1);
    text[header_bytes] = '\0';
    NpyHeader header;
    Status status = source->read(source, text, header_bytes);
    if (status == STATUS_OK) status = npy_header_parse(text, source->name, &header);
    free(text);
    TRY(status);
    return read_numbers(source, &header, source->length - prelude_bytes - header_bytes, out);
}

typedef struct MemorySource {
    NpySource source;
    const uint8_t *at;
} MemorySource;

static Status read_memory(NpySource *source, void *out, size_t bytes) {
    MemorySource *memory = (MemorySource *)source;
    memcpy(out, memory->at, bytes);
    memory->at += bytes;
    return STATUS_OK;
}

Status npy_parse(const uint8_t *bytes, size_t length, const char *name, Tensor **out) {
    MemorySource memory = {.source = {.name = name, .length = length, .read = read_memory},
                           .at = bytes};
    return npy_read_source(&memory.source, out);
}

Status npy_read(const char *path, Tensor **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status parsed = npy_parse(file_map_bytes(map), file_map_length(map), path, out);
    Status status = file_map_check(map);
    if (status != STATUS_OK && parsed == STATUS_OK) tensor_release_of(out);
    file_map_release(map);
    return status == STATUS_OK ? parsed : status;
}

// --- writing

Status npy_header(const Tensor *tensor, const char *name, Text *out) {
    SCOPED_TEXT(header);
    Status status = npy_header_write(tensor, name, &header);
    size_t before = MAGIC_BYTES + 4; // versions and length are two bytes each
    size_t padding = ALIGNMENT - (before + header.length + 1) % ALIGNMENT;
    text_append_repeated(&header, ' ', padding % ALIGNMENT);
    text_append_char(&header, '\n');
    char numbers[4] = {1, 0, (char)(header.length & 0xFF), (char)(header.length >> 8)};
    text_append(out, magic, MAGIC_BYTES);
    text_append(out, numbers, sizeof numbers);
    text_append(out, text_get(&header), header.length);
    return status;
}

static Status write_array(FILE *stream, void *context) {
    SCOPED_TEXT(header);
    SCOPED_MEMORY void *numbers = NULL;
    size_t bytes = 0;
    TRY(npy_header(context, NULL, &header));
    TRY(stream_write(stream, text_get(&header), header.length));
    TRY(stored_download(context, &numbers, &bytes));
    return stream_write(stream, numbers, bytes);
}

Status npy_write(const char *path, Tensor *tensor) {
    return file_keep_stream(path, write_array, tensor);
}
