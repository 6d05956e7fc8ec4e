// Experts in MXFP4 as folders of gpt-oss have them: blocks and their scales in two tensors, the
// rows of gates and of what these gate in turns. They become blocks of GGUF's kind when they are
// first used.
#include "model/mxfp4.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { BLOCK_NUMBERS = 32, BLOCK_BYTES = 17, NUMBER_BYTES = 16 };

// A byte of the file has two numbers that follow each other; of a block of GGUF two that are half a
// block apart.
static void join_block(const uint8_t *numbers, uint8_t scale, uint8_t *out) {
    uint8_t apart[BLOCK_NUMBERS];
    for (int i = 0; i < NUMBER_BYTES; i++) {
        apart[2 * i] = numbers[i] & 15;
        apart[2 * i + 1] = numbers[i] >> 4;
    }
    out[0] = scale;
    for (int i = 0; i < NUMBER_BYTES; i++)
        out[1 + i] = (uint8_t)(apart[i] | apart[NUMBER_BYTES + i] << 4);
}

static void join_all(const StoredTensor *tensor, uint8_t *out) {
    const uint8_t *numbers = file_map_bytes(tensor->map) + tensor->offset;
    const uint8_t *scales = file_map_bytes(tensor->scales_map) + tensor->scales_offset;
    int64_t rows = tensor->shape.dims[0] * tensor->shape.dims[1];
    int64_t blocks = tensor->shape.dims[2] / BLOCK_NUMBERS;
    for (int64_t row = 0; row < rows; row++) {
        int64_t from = tensor->turn ? 2 * row + tensor->turn - 1 : row;
        for (int64_t i = from * blocks; i < (from + 1) * blocks; i++, out += BLOCK_BYTES)
            join_block(numbers + i * NUMBER_BYTES, scales[i], out);
    }
}

Status mxfp4_tensor(const StoredTensor *tensor, Tensor **out) {
    Tensor *joined;
    TRY(file_map_check(tensor->map));
    TRY(file_map_check(tensor->scales_map));
    SCOPED_MEMORY uint8_t *bytes =
        memory_try_resize(NULL, tensor->bytes + 1); // as large as the file wants it
    if (!bytes) return memory_exhausted();
    join_all(tensor, bytes);
    Status status = stored_new(DTYPE_MXFP4, &tensor->shape, &joined);
    if (status == STATUS_OK) {
        status = buffer_upload(joined->view.buffer, joined->view.offset, bytes, tensor->bytes);
        if (status == STATUS_OK) *out = tensor_retain(joined);
        tensor_release(joined);
    }
    return status;
}

// --- what a folder has

static StoredTensor *find(Reader *reader, const char *name) {
    for (size_t i = 0; i < reader->tensors.count; i++)
        if (strcmp(reader->tensors.items[i].name, name) == 0) return &reader->tensors.items[i];
    return NULL;
}

// [experts, rows, blocks, 16] next to [experts, rows, blocks].
static bool fit(const StoredTensor *blocks, const StoredTensor *scales) {
    const int64_t *b = blocks->shape.dims, *s = scales->shape.dims;
    return blocks->map && scales->map && blocks->dtype == DTYPE_UINT8 &&
           scales->dtype == DTYPE_UINT8 && blocks->shape.rank == 4 && scales->shape.rank == 3 &&
           b[3] == NUMBER_BYTES && memcmp(b, s, 3 * sizeof *b) == 0;
}

// The rows of one of two turns, or all.
static void add_joined(Reader *reader, const char *layer, const char *word, int turn,
                       const StoredTensor parts[2]) {
    const StoredTensor *blocks = &parts[0], *scales = &parts[1];
    SCOPED_TEXT(name);
    text_format(&name, "blk.%.*s.%s_exps.weight", (int)strspn(layer, "0123456789"), layer, word);
    StoredTensor *joined = reader_add(reader, text_get(&name), dtype_name(DTYPE_MXFP4));
    joined->shape = (Shape){.rank = 3, .dims = {blocks->shape.dims[0], blocks->shape.dims[1]}};
    joined->shape.dims[2] = blocks->shape.dims[2] * BLOCK_NUMBERS;
    if (turn) joined->shape.dims[1] /= 2;
    joined->dtype = DTYPE_MXFP4;
    joined->usable = true;
    joined->bytes = (blocks->bytes + scales->bytes) / (turn ? 2 : 1);
    joined->map = blocks->map;
    joined->offset = blocks->offset;
    joined->scales_map = scales->map;
    joined->scales_offset = scales->offset;
    joined->turn = turn;
}

static Status join(const char *folder, Reader *reader, size_t at) {
    static const char end[] = "_blocks";
    StoredTensor *blocks = &reader->tensors.items[at];
    const char *layer = strstr(blocks->name, "layers.") + strlen("layers.");
    size_t length = strlen(blocks->name) - strlen(end);
    bool down = strstr(blocks->name, ".down_proj_") != NULL;
    SCOPED_TEXT(name);
    text_format(&name, "%.*s_scales", (int)length, blocks->name);
    StoredTensor *scales = find(reader, text_get(&name));
    if (!scales || !fit(blocks, scales) || (!down && blocks->shape.dims[1] % 2 != 0))
        return fail(STATUS_FORMAT, "%s: %s and its scales are not blocks of MXFP4", folder,
                    blocks->name);
    blocks->change.unused = scales->change.unused = true;
    blocks->is_part = scales->is_part = true;
    const StoredTensor parts[2] = {*blocks, *scales}; // adding moves what they point to
    add_joined(reader, layer, down ? "ffn_down" : "ffn_gate", down ? 0 : 1, parts);
    if (!down) add_joined(reader, layer, "ffn_up", 2, parts);
    return STATUS_OK;
}

Status folder_join_mxfp4(const char *folder, Reader *reader) {
    static const char *const ends[] = {".mlp.experts.gate_up_proj_blocks",
                                       ".mlp.experts.down_proj_blocks"};
    size_t count = reader->tensors.count; // joined ones come after these
    for (size_t i = 0; i < count; i++) {
        const char *name = reader->tensors.items[i].name;
        for (int j = 0; j < 2; j++) {
            const char *at = strstr(name, ends[j]);
            if (!strstr(name, "layers.") || !at || strlen(at) != strlen(ends[j])) continue;
            TRY(join(folder, reader, i));
            break;
        }
    }
    return STATUS_OK;
}
