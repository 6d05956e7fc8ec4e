// embed: texts as vectors, what the last layer gives for their tokens, pooled.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/generation.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "value/builtin.h"
#include "value/convert.h"

typedef struct Vectors {
    double *numbers; // [count, width]
    int64_t count, width;
} Vectors;

// Adds the mean of the rows, or the last of them, with length 1.
static void add_vector(Vectors *vectors, const double *rows, int64_t count, bool mean) {
    int64_t width = vectors->width;
    vectors->numbers = memory_resize(vectors->numbers, (size_t)((vectors->count + 1) * width) *
                                                           sizeof *vectors->numbers);
    double *out = vectors->numbers + vectors->count++ * width, square = 0;
    for (int64_t i = 0; i < width; i++) {
        out[i] = 0;
        for (int64_t row = mean ? 0 : count - 1; row < count; row++)
            out[i] += rows[row * width + i];
        square += out[i] * out[i];
    }
    // As float32, which the tensor will hold.
    for (int64_t i = 0; i < width; i++) out[i] = (float)(square > 0 ? out[i] / sqrt(square) : 0);
}

static Status add_hidden(Vectors *vectors, Tensor *hidden, bool mean) {
    int64_t count = hidden->view.dims[0];
    vectors->width = hidden->view.dims[1];
    double *rows = memory_allocate((size_t)(count * vectors->width) * sizeof *rows);
    Status status = tensor_read_floats(hidden, rows);
    if (status == STATUS_OK) add_vector(vectors, rows, count, mean);
    free(rows);
    return status;
}

static Status embed_one(Network *network, Value text, bool mean, Vectors *vectors) {
    TokenIds ids = {0};
    Sequence *sequence = NULL;
    SCOPED_TENSOR(hidden);
    Status status = text.kind == VALUE_STRING ? network_encode(network, text.as.string->bytes,
                                                               text.as.string->length, true, &ids)
                                              : fail_kind("each of texts", "a string", text);
    if (status == STATUS_OK && ids.count == 0)
        status = fail(STATUS_VALUE, "a text without tokens has no embedding");
    if (status == STATUS_OK && network->context > 0 && (int64_t)ids.count > network->context)
        status = fail(STATUS_VALUE, "a text of %zu tokens does not fit the model's context of %lld",
                      ids.count, (long long)network->context);
    if (status == STATUS_OK) status = sequence_new(network, &sequence);
    Step step = {sequence, ids.ids, ids.count, 1};
    if (status == STATUS_OK) status = sequences_hidden(&step, 1, &hidden);
    if (status == STATUS_OK) status = add_hidden(vectors, hidden, mean);
    sequence_free(sequence);
    free(ids.ids);
    return status;
}

static Status embed_all(const BuiltinCall *call, Network *network, Vectors *vectors) {
    Value texts = call->arguments[1];
    const char *pooling = call->arguments[2].as.string->bytes;
    bool many = texts.kind == VALUE_LIST || texts.kind == VALUE_TUPLE;
    bool mean = strcmp(pooling, "mean") == 0;
    if (!mean && strcmp(pooling, "last") != 0)
        return fail(STATUS_VALUE, "pooling is \"mean\" or \"last\", not \"%s\"", pooling);
    if (!many) return embed_one(network, texts, mean, vectors);
    for (size_t i = 0; i < texts.as.list->count; i++)
        TRY(embed_one(network, texts.as.list->items[i], mean, vectors));
    return STATUS_OK;
}

Value builtin_embed(BuiltinCall *call) {
    Network *network;
    Vectors vectors = {0};
    Tensor *result = NULL;
    bool single = call->arguments[1].kind == VALUE_STRING;
    TRY_VALUE(network_open(call->interp, call->arguments[0], &network));
    bool recording = tape_set_enabled(false);
    Status status = embed_all(call, network, &vectors);
    tape_set_enabled(recording);
    Shape shape = {.rank = 2, .dims = {vectors.count, vectors.width}};
    if (single) shape = (Shape){.rank = 1, .dims = {vectors.width}};
    if (status == STATUS_OK)
        status = tensor_from_floats(vectors.numbers, &shape, DTYPE_FLOAT32, &result);
    free(vectors.numbers);
    network_release(network);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}
