// Embeddings over HTTP.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/embedding.h"
#include "serve/embed.h"
#include "serve/jobs.h"

// RFC 4648, with padding.
static json_t *base64_of(const void *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = bytes;
    SCOPED_TEXT(text);
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t three = (uint32_t)from[i] << 16;
        if (left > 1) three |= (uint32_t)from[i + 1] << 8;
        if (left > 2) three |= from[i + 2];
        for (size_t j = 0; j < 4; j++)
            text_append_char(&text, j <= left ? digits[three >> (18 - 6 * j) & 63] : '=');
    }
    return json_string(text_get(&text));
}

static json_t *vector_json(const double *numbers, size_t width, bool base64) {
    json_t *list = json_array();
    SCOPED_MEMORY float *floats = memory_allocate((width + 1) * sizeof *floats);
    for (size_t i = 0; i < width; i++) {
        floats[i] = (float)numbers[i];
        if (!base64) json_array_append_new(list, json_real(numbers[i]));
    }
    if (base64) {
        json_decref(list);
        list = base64_of(floats, width * sizeof *floats);
    }
    return list;
}

static Status embed(Vectors *vectors, const json_t *input, bool base64, json_t *rows,
                    size_t *tokens) {
    TokenIds ids = {0};
    Status status = server_encode(vectors->network, input, &ids);
    if (status == STATUS_OK) status = vectors_add(vectors, &ids);
    if (status == STATUS_OK) {
        size_t width = (size_t)vectors->width, before = (size_t)vectors->count - 1;
        json_t *vector = vector_json(vectors->numbers + before * width, width, base64);
        json_array_append_new(rows, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                              (json_int_t)before, "embedding", vector));
        *tokens += ids.count;
    }
    free(ids.ids);
    return status;
}

void embed_answer(const ServedNetwork *served, HttpExchange *exchange,
                  const ServeRequest *request) {
    bool many = server_has_many(request->prompt);
    size_t count = many ? json_array_size(request->prompt) : 1, tokens = 0;
    json_t *rows = json_array();
    Vectors vectors = {.network = served->network};
    Status status = pooling_read(served->network, NULL, &vectors.pooling);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = embed(&vectors, many ? json_array_get(request->prompt, i) : request->prompt,
                       request->base64, rows, &tokens);
    if (status == STATUS_OK) {
        answer_json(exchange, 200,
                    json_pack("{s:s, s:O, s:s, s:{s:I, s:I}}", "object", "list", "data", rows,
                              "model", served->name, "usage", "prompt_tokens", (json_int_t)tokens,
                              "total_tokens", (json_int_t)tokens));
    } else {
        answer_failure(exchange, "input");
    }
    free(vectors.numbers);
    json_decref(rows);
}
