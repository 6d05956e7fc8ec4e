// Embeddings: the mean of what the last layer gives for the tokens of a text, of length 1.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/embed.h"
#include "serve/jobs.h"
#include "tensor/op.h"

static Status check_length(const Network *network, size_t count) {
    int64_t context = network->context;
    if (count == 0) return fail(STATUS_VALUE, "an input has no tokens");
    if (context == 0 || (int64_t)count <= context) return STATUS_OK;
    return fail(STATUS_VALUE, "an input has %zu tokens, but the model's context is %lld", count,
                (long long)context);
}

static void average(const double *rows, size_t count, size_t width, float *out) {
    double squares = 0;
    double *mean = memory_allocate_zeroed(width, sizeof *mean);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < width; j++) mean[j] += rows[i * width + j] / (double)count;
    for (size_t j = 0; j < width; j++) squares += mean[j] * mean[j];
    double scale = squares > 0 ? 1 / sqrt(squares) : 0;
    for (size_t j = 0; j < width; j++) out[j] = (float)(mean[j] * scale);
    free(mean);
}

static Status compute(Network *network, const TokenIds *input, float **out, size_t *width) {
    Sequence *sequence;
    Tensor *hidden = NULL;
    TRY(sequence_new(network, &sequence));
    Status status =
        sequences_hidden(&(Step){sequence, input->ids, input->count, input->count}, 1, &hidden);
    sequence_free(sequence);
    TRY(status);
    size_t numbers = (size_t)tensor_count(hidden);
    *width = numbers / input->count;
    double *rows = memory_allocate((numbers + 1) * sizeof *rows);
    status = tensor_read_floats(hidden, rows);
    tensor_release(hidden);
    *out = memory_allocate((*width + 1) * sizeof **out);
    if (status == STATUS_OK) average(rows, input->count, *width, *out);
    free(rows);
    return status;
}

// RFC 4648, with padding.
static json_t *base64_of(const void *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = bytes;
    Text text = {0};
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t three = (uint32_t)from[i] << 16;
        if (left > 1) three |= (uint32_t)from[i + 1] << 8;
        if (left > 2) three |= from[i + 2];
        for (size_t j = 0; j < 4; j++)
            text_append_char(&text, j <= left ? digits[three >> (18 - 6 * j) & 63] : '=');
    }
    json_t *json = json_string(text_get(&text));
    text_free(&text);
    return json;
}

static json_t *vector_json(const float *numbers, size_t width, bool base64) {
    if (base64) return base64_of(numbers, width * sizeof *numbers);
    json_t *list = json_array();
    for (size_t i = 0; i < width; i++) json_array_append_new(list, json_real((double)numbers[i]));
    return list;
}

static Status embed(Network *network, const json_t *input, bool base64, json_t *rows,
                    size_t *tokens) {
    TokenIds ids = {0};
    size_t width = 0;
    float *numbers = NULL;
    Status status = server_encode(network, input, &ids);
    if (status == STATUS_OK) status = check_length(network, ids.count);
    if (status == STATUS_OK) status = compute(network, &ids, &numbers, &width);
    if (status == STATUS_OK) {
        json_t *vector = vector_json(numbers, width, base64);
        json_array_append_new(rows,
                              json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                        (json_int_t)json_array_size(rows), "embedding", vector));
        *tokens += ids.count;
    }
    free(numbers);
    free(ids.ids);
    return status;
}

void embed_answer(const ServedNetwork *served, HttpExchange *exchange,
                  const ServeRequest *request) {
    bool many = server_has_many(request->prompt);
    size_t count = many ? json_array_size(request->prompt) : 1, tokens = 0;
    json_t *rows = json_array();
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = embed(served->network, many ? json_array_get(request->prompt, i) : request->prompt,
                       request->base64, rows, &tokens);
    if (status == STATUS_OK) {
        answer_json(exchange, 200,
                    json_pack("{s:s, s:O, s:s, s:{s:I, s:I}}", "object", "list", "data", rows,
                              "model", served->name, "usage", "prompt_tokens", (json_int_t)tokens,
                              "total_tokens", (json_int_t)tokens));
    } else {
        answer_failure(exchange, "input");
    }
    json_decref(rows);
}
