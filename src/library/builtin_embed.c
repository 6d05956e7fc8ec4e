// embed: texts as vectors.
#include <stdlib.h>

#include "generate/embedding.h"
#include "generate/generation.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "value/builtin.h"
#include "value/convert.h"

static Status embed_one(Vectors *vectors, Value text) {
    TokenIds ids = {0};
    Status status = text.kind == VALUE_STRING
                        ? network_encode(vectors->network, text.as.string->bytes,
                                         text.as.string->length, true, &ids)
                        : fail_kind("each of texts", "a string", text);
    if (status == STATUS_OK) status = vectors_add(vectors, &ids);
    free(ids.ids);
    return status;
}

static Status embed_all(const BuiltinCall *call, Vectors *vectors) {
    Value texts = call->arguments[1], pooling = call->arguments[2];
    bool many = texts.kind == VALUE_LIST || texts.kind == VALUE_TUPLE;
    const char *word = pooling.kind == VALUE_STRING ? string_end(pooling.as.string)->bytes : NULL;
    TRY(pooling_read(vectors->network, word, &vectors->pooling));
    if (!many) return embed_one(vectors, texts);
    for (size_t i = 0; i < texts.as.list->count; i++)
        TRY(embed_one(vectors, texts.as.list->items[i]));
    return STATUS_OK;
}

Value builtin_embed(BuiltinCall *call) {
    Network *network;
    Tensor *result = NULL;
    bool single = call->arguments[1].kind == VALUE_STRING;
    TRY_VALUE(network_open(call->interp, call->arguments[0], &network));
    Vectors vectors = {.network = network};
    bool recording = tape_set_enabled(false);
    Status status = embed_all(call, &vectors);
    tape_set_enabled(recording);
    Shape shape = {.rank = 2, .dims = {vectors.count, vectors.width}};
    if (single) shape = (Shape){.rank = 1, .dims = {vectors.width}};
    if (status == STATUS_OK)
        status = tensor_from_floats(vectors.numbers, &shape, DTYPE_FLOAT32, &result);
    free(vectors.numbers);
    network_release(network);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}
