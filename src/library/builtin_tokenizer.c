// Tokenizers as the language sees them. Each handle has its own stream of single ids; the
// vocabulary behind it may be shared.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"
#include "value/builtin.h"
#include "value/handles.h"

static TokenizerHandle *payload_of(const BuiltinCall *call) {
    return call->arguments[0].as.handle->payload; // binding has checked the kind
}

static void tokenizer_payload_release(void *payload) {
    TokenizerHandle *handle = payload;
    tokenizer_release(handle->tokenizer);
    free(handle);
}

static Value id_or_none(int64_t id) {
    return id < 0 ? value_none() : value_int(id);
}

static Status tokenizer_get_field(Handle *handle, const char *name, Value *out) {
    const Tokenizer *tokenizer = ((const TokenizerHandle *)handle->payload)->tokenizer;
    if (strcmp(name, "vocab_size") == 0)
        *out = value_int(tokenizer_size(tokenizer));
    else if (strcmp(name, "bos") == 0)
        *out = id_or_none(tokenizer_bos(tokenizer));
    else if (strcmp(name, "eos") == 0)
        *out = id_or_none(tokenizer_eos(tokenizer));
    else
        return fail(STATUS_NAME, "a tokenizer has no field %s: it has vocab_size, bos and eos",
                    name);
    return STATUS_OK;
}

static void tokenizer_print(Handle *handle, Text *out) {
    const TokenizerHandle *payload = handle->payload;
    text_format(out, "<tokenizer, %lld tokens>", (long long)tokenizer_size(payload->tokenizer));
}

static const HandleType handle_tokenizer = {.name = "tokenizer",
                                            .release = tokenizer_payload_release,
                                            .get_field = tokenizer_get_field,
                                            .print = tokenizer_print};

// Takes the reference.
static Value tokenizer_value(Tokenizer *tokenizer) {
    TokenizerHandle *handle = memory_allocate_zeroed(1, sizeof *handle);
    handle->tokenizer = tokenizer;
    return value_handle(&handle_tokenizer, handle);
}

Value builtin_tokenizer(BuiltinCall *call) {
    Tokenizer *tokenizer;
    if (model_tokenizer(call->arguments[0].as.handle->payload, &tokenizer) != STATUS_OK)
        return value_fail();
    return tokenizer_value(tokenizer_retain(tokenizer));
}

Value builtin_load_tokenizer(BuiltinCall *call) {
    Tokenizer *tokenizer;
    if (tokenizer_open(call->arguments[0].as.string->bytes, &tokenizer) != STATUS_OK)
        return value_fail();
    return tokenizer_value(tokenizer);
}

static Value ids_tensor(const int64_t *ids, size_t count) {
    Tensor *tensor;
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    if (tensor_from_integers(ids, &shape, DTYPE_INT64, &tensor) != STATUS_OK) return value_fail();
    return value_tensor(tensor);
}

Value builtin_tokenize(BuiltinCall *call) {
    const String *text = call->arguments[1].as.string;
    TokenIds tokens = {0};
    Status status = tokenizer_encode(payload_of(call)->tokenizer, text->bytes, text->length,
                                     call->arguments[2].as.integer != 0, &tokens);
    Value result = status == STATUS_OK ? ids_tensor(tokens.ids, tokens.count) : value_fail();
    free(tokens.ids);
    return result;
}

static Value text_result(Status status, Text *text) {
    Value result = status == STATUS_OK ? value_string(text_get(text), text->length) : value_fail();
    text_free(text);
    return result;
}

Value builtin_detokenize(BuiltinCall *call) {
    int64_t *ids;
    size_t count;
    if (value_to_ints(call->arguments[1], "ids", &ids, &count) != STATUS_OK) return value_fail();
    Text text = {0};
    Status status = tokenizer_decode(payload_of(call)->tokenizer, ids, count,
                                     call->arguments[2].as.integer != 0, &text);
    free(ids);
    return text_result(status, &text);
}

Value builtin_detokenize_single(BuiltinCall *call) {
    int64_t *ids;
    size_t count;
    if (value_to_ints(call->arguments[1], "id", &ids, &count) != STATUS_OK) return value_fail();
    Text text = {0};
    Status status = STATUS_OK;
    TokenizerHandle *handle = payload_of(call);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = tokenizer_decode_next(handle->tokenizer, &handle->stream, ids[i],
                                       call->arguments[2].as.integer != 0, &text);
    free(ids);
    return text_result(status, &text);
}

Value builtin_int_to_tokenids(BuiltinCall *call) {
    int64_t id;
    if (value_to_int(call->arguments[0], "id", &id) != STATUS_OK) return value_fail();
    return ids_tensor(&id, 1);
}
