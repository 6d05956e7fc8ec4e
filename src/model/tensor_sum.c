#include "model/tensor_sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/buffer.h"
#include "device/foretell.h"
#include "tensor/compose.h"

enum { CHUNK_BYTES = 1 << 15, SUM_LENGTH = 16 };

static const uint64_t odd = 0x9E3779B97F4A7C15ull;
static const char sum_key[] = "tl.sum";

static uint64_t mix(uint64_t x, uint64_t y) {
    x = (x ^ y) * odd;
    return x ^ x >> 29;
}

void byte_sum_add(ByteSum *sum, const void *bytes, size_t length) {
    const char *at = bytes;
    size_t i = 0;
    for (; i + 32 <= length; i += 32) {
        uint64_t words[4];
        memcpy(words, at + i, sizeof words);
        for (int lane = 0; lane < 4; lane++) sum->lanes[lane] = mix(sum->lanes[lane], words[lane]);
    }
    for (; i < length; i++) sum->lanes[i % 4] = mix(sum->lanes[i % 4], (uint8_t)at[i]);
    sum->length += length;
}

uint64_t byte_sum_end(const ByteSum *sum) {
    uint64_t result = sum->length;
    for (int lane = 0; lane < 4; lane++) result = mix(result, sum->lanes[lane]);
    return mix(result, result >> 32);
}

Status byte_sum_add_part(ByteSum *sum, Tensor *tensor, size_t begin, size_t bytes) {
    SCOPED_MEMORY char *chunk = memory_allocate(CHUNK_BYTES);
    Status status = STATUS_OK;
    for (size_t done = 0; done < bytes && status == STATUS_OK; done += CHUNK_BYTES) {
        size_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        size_t offset = tensor->view.offset + begin + done;
        status = buffer_download(tensor->view.buffer, offset, chunk, part);
        if (status == STATUS_OK) byte_sum_add(sum, chunk, part);
    }
    return status;
}

Status byte_sum_add_tensor(ByteSum *sum, Tensor *given) {
    SCOPED_TENSOR(tensor);
    size_t bytes = 0;
    TRY(tensor_contiguous(given, &tensor));
    Shape shape = tensor_shape(tensor);
    if (!stored_bytes(tensor_dtype(tensor), &shape, &bytes)) return STATUS_OK;
    byte_sum_add(sum, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
    return byte_sum_add_part(sum, tensor, 0, bytes);
}

static Status add_named(const NamedTensor *named, uint64_t *total) {
    void *bytes;
    size_t length;
    ByteSum sum = {0};
    TRY(stored_download(named->tensor, &bytes, &length));
    byte_sum_add(&sum, named->name, strlen(named->name));
    byte_sum_add(&sum, bytes, length);
    free(bytes);
    *total += byte_sum_end(&sum);
    return STATUS_OK;
}

static Status sum_all(const NamedTensors *tensors, char text[SUM_LENGTH + 1]) {
    uint64_t total = 0;
    for (size_t i = 0; i < tensors->count; i++) TRY(add_named(&tensors->items[i], &total));
    int length = snprintf(text, SUM_LENGTH + 1, "%016" PRIx64, total);
    ASSERT(length == SUM_LENGTH);
    return STATUS_OK;
}

Status named_tensors_add_sum(NamedTensors *tensors) {
    char text[SUM_LENGTH + 1];
    TRY(sum_all(tensors, text));
    named_tensors_add_text(tensors, sum_key, text);
    return STATUS_OK;
}

Status named_tensors_check_sum(const NamedTensors *tensors, const char *path) {
    char text[SUM_LENGTH + 1];
    const char *said = named_tensors_text(tensors, sum_key);
    if (!said || foretelling()) return STATUS_OK; // what is foretold has no numbers
    TRY(sum_all(tensors, text));
    if (strcmp(said, text) == 0) return STATUS_OK;
    fail(STATUS_FORMAT, "%s is damaged: its numbers are not those that were written", path);
    return fail_help("go on from another copy");
}
