// The vocabulary that a GGUF file carries: SentencePiece's, pieces with scores; read and written.
#include <stdlib.h>
#include <string.h>

#include "model/gguf_write.h"
#include "model/tokenizer_internal.h"

static void load_piece(void *context, size_t index, GgufValue value) {
    Tokenizer *tokenizer = context;
    Piece *piece = &tokenizer->pieces[index];
    piece->bytes = memory_copy_string(value.as.string.bytes, value.as.string.length);
    piece->length = value.as.string.length;
    piece->type = TOKEN_NORMAL;
}

static void load_score(void *context, size_t index, GgufValue value) {
    Tokenizer *tokenizer = context;
    tokenizer->pieces[index].score = (float)value.as.number;
}

static void load_type(void *context, size_t index, GgufValue value) {
    Tokenizer *tokenizer = context;
    tokenizer->pieces[index].type = (int)value.as.integer;
}

// An optional array of the vocabulary; when there it has one element of `type` per piece.
static Status load_array(const GgufFile *file, const char *name, const char *key, GgufType type,
                         void (*visit)(void *, size_t, GgufValue), Tokenizer *tokenizer) {
    const GgufValue *array = gguf_find(file, key);
    if (!array) return STATUS_OK;
    if (array->type != GGUF_ARRAY || array->as.array.type != type ||
        array->as.array.count != tokenizer->count)
        return fail(STATUS_FORMAT,
                    "%s: %s does not have one number of the right type for each of the %zu tokens",
                    name, key, tokenizer->count);
    gguf_array_each(file, array, visit, tokenizer);
    return STATUS_OK;
}

static int64_t read_id(const GgufFile *file, const char *key, size_t count) {
    const GgufValue *value = gguf_find(file, key);
    bool is_integer = value && (value->type == GGUF_UINT32 || value->type == GGUF_INT32);
    return is_integer && value->as.integer >= 0 && value->as.integer < (int64_t)count
               ? value->as.integer
               : -1;
}

static bool read_flag(const GgufFile *file, const char *key, bool fallback) {
    const GgufValue *value = gguf_find(file, key);
    return value && value->type == GGUF_BOOL ? value->as.integer != 0 : fallback;
}

static bool string_is(const GgufValue *value, const char *text) {
    return value && value->type == GGUF_STRING && value->as.string.length == strlen(text) &&
           memcmp(value->as.string.bytes, text, strlen(text)) == 0;
}

static Status load(Tokenizer *tokenizer, const GgufFile *file, const char *name) {
    const GgufValue *model = gguf_find(file, "tokenizer.ggml.model");
    const GgufValue *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    if (!tokens || tokens->type != GGUF_ARRAY || tokens->as.array.type != GGUF_STRING)
        return fail(STATUS_FORMAT, "%s holds no tokenizer: tokenizer.ggml.tokens is missing", name);
    if (!string_is(model, "llama")) {
        bool named = model && model->type == GGUF_STRING;
        return fail(STATUS_FORMAT,
                    "%s has a tokenizer of kind \"%.*s\"; tl reads \"llama\" from GGUF files", name,
                    named ? (int)model->as.string.length : 1, named ? model->as.string.bytes : "?");
    }
    tokenizer->count = tokens->as.array.count;
    tokenizer->pieces = memory_allocate_zeroed(tokenizer->count, sizeof *tokenizer->pieces);
    gguf_array_each(file, tokens, load_piece, tokenizer);
    TRY(load_array(file, name, "tokenizer.ggml.scores", GGUF_FLOAT32, load_score, tokenizer));
    TRY(load_array(file, name, "tokenizer.ggml.token_type", GGUF_INT32, load_type, tokenizer));
    tokenizer_index(tokenizer);
    tokenizer->bos = read_id(file, "tokenizer.ggml.bos_token_id", tokenizer->count);
    tokenizer->eos = read_id(file, "tokenizer.ggml.eos_token_id", tokenizer->count);
    tokenizer->unknown = read_id(file, "tokenizer.ggml.unknown_token_id", tokenizer->count);
    if (tokenizer->bos >= 0 && read_flag(file, "tokenizer.ggml.add_bos_token", true))
        VECTOR_PUSH(&tokenizer->before, tokenizer->bos);
    bool add_space = read_flag(file, "tokenizer.ggml.add_space_prefix", true);
    TextStep marks = {.apply = step_metaspace,
                      .content = memory_copy_string(SPACE_MARK, SPACE_MARK_BYTES),
                      .option = add_space ? PREFIX_ALWAYS : PREFIX_NEVER};
    VECTOR_PUSH(&tokenizer->splitters, marks);
    tokenizer->encode_word = tokenizer_encode_merging;
    tokenizer->byte_fallback = true;
    tokenizer->trim_start = tokenizer->trim_after_special = add_space;
    return STATUS_OK;
}

Status tokenizer_from_gguf(const GgufFile *file, const char *name, Tokenizer **out) {
    Tokenizer *tokenizer = tokenizer_new();
    Status status = load(tokenizer, file, name);
    if (status == STATUS_OK)
        *out = tokenizer;
    else
        tokenizer_release(tokenizer);
    return status;
}

// --- writing

static GgufValue piece_text(const Piece *piece) {
    return (GgufValue){.type = GGUF_STRING, .as.string = {piece->bytes, piece->length}};
}

static GgufValue piece_score(const Piece *piece) {
    return (GgufValue){.type = GGUF_FLOAT32, .as.number = (double)piece->score};
}

static GgufValue piece_type(const Piece *piece) {
    return (GgufValue){.type = GGUF_INT32, .as.integer = piece->type};
}

typedef GgufValue (*PieceColumn)(const Piece *piece);

static Status put_column(const Tokenizer *tokenizer, GgufWriter *writer, const char *key,
                         PieceColumn column) {
    GgufValue *values = memory_allocate((tokenizer->count + 1) * sizeof *values);
    values[0].type = GGUF_STRING;
    for (size_t i = 0; i < tokenizer->count; i++) values[i] = column(&tokenizer->pieces[i]);
    Status status = gguf_writer_put_array(writer, key, values[0].type, values, tokenizer->count);
    free(values);
    return status;
}

static Status put_id(GgufWriter *writer, const char *key, int64_t id) {
    return id < 0 ? STATUS_OK : gguf_writer_put_integer(writer, key, GGUF_UINT32, id);
}

Status tokenizer_to_gguf(const Tokenizer *tokenizer, GgufWriter *writer) {
    bool scored = tokenizer->encode_word == tokenizer_encode_merging && !tokenizer->pairs &&
                  tokenizer->byte_fallback && tokenizer->normalizers.count == 0;
    if (!scored)
        return fail(STATUS_VALUE, "only a tokenizer that came from a GGUF file can be written to "
                                  "one: this one has no pieces with scores");
    TRY(gguf_writer_put_string(writer, "tokenizer.ggml.model", "llama"));
    TRY(put_column(tokenizer, writer, "tokenizer.ggml.tokens", piece_text));
    TRY(put_column(tokenizer, writer, "tokenizer.ggml.scores", piece_score));
    TRY(put_column(tokenizer, writer, "tokenizer.ggml.token_type", piece_type));
    TRY(put_id(writer, "tokenizer.ggml.bos_token_id", tokenizer->bos));
    TRY(put_id(writer, "tokenizer.ggml.eos_token_id", tokenizer->eos));
    TRY(put_id(writer, "tokenizer.ggml.unknown_token_id", tokenizer->unknown));
    TRY(gguf_writer_put_integer(writer, "tokenizer.ggml.add_bos_token", GGUF_BOOL,
                                tokenizer->before.count > 0));
    return gguf_writer_put_integer(writer, "tokenizer.ggml.add_space_prefix", GGUF_BOOL,
                                   tokenizer->trim_start);
}
