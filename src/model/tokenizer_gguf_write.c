// The vocabulary of a tokenizer as the metadata of a GGUF file, from which tokenizer_gguf.c makes
// the same tokenizer. What the format has no words for is refused.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gguf_write.h"
#include "model/tokenizer_internal.h"

static Status refuse(const char *what) {
    return fail(STATUS_VALUE, "this tokenizer cannot be written to a GGUF file: %s", what);
}

// --- columns: an array with one element per piece

typedef struct Column {
    const char *key;
    MetaType type;
    // `text` holds what the value points to, where it has to be made.
    MetaValue (*value)(const Tokenizer *tokenizer, size_t id, Text *text);
} Column;

static MetaValue string_value(const char *bytes, size_t length) {
    return (MetaValue){.type = META_STRING, .as.string = {bytes, length}};
}

// Ids without a piece get a name, as there may be no gaps.
static MetaValue piece_text(const Tokenizer *tokenizer, size_t id, Text *text) {
    const Piece *piece = &tokenizer->pieces[id];
    if (piece->bytes) return string_value(piece->bytes, piece->length);
    text_format(text, "[PAD%zu]", id);
    return string_value(text_get(text), text->length);
}

// See restore_word_piece in tokenizer_gguf.c.
static MetaValue word_piece_text(const Tokenizer *tokenizer, size_t id, Text *text) {
    const Piece *piece = &tokenizer->pieces[id];
    size_t mark = strlen(tokenizer->continuation);
    if (!piece->bytes || tokenizer_is_plain(piece)) return piece_text(tokenizer, id, text);
    bool inside = piece->length >= mark && memcmp(piece->bytes, tokenizer->continuation, mark) == 0;
    if (inside) return string_value(piece->bytes + mark, piece->length - mark);
    text_append_string(text, SPACE_MARK);
    text_append(text, piece->bytes, piece->length);
    return string_value(text_get(text), text->length);
}

static MetaValue piece_score(const Tokenizer *tokenizer, size_t id, Text *text) {
    (void)text;
    return (MetaValue){.type = META_FLOAT32, .as.number = (double)tokenizer->pieces[id].score};
}

static MetaValue piece_type(const Tokenizer *tokenizer, size_t id, Text *text) {
    (void)text;
    const Piece *piece = &tokenizer->pieces[id];
    int type = piece->bytes ? piece->type : TOKEN_UNUSED;
    return (MetaValue){.type = META_INT32, .as.integer = type};
}

static MetaValue piece_edges(const Tokenizer *tokenizer, size_t id, Text *text) {
    (void)text;
    return (MetaValue){.type = META_INT32, .as.integer = tokenizer->pieces[id].edges};
}

static Status put_column(const Tokenizer *tokenizer, GgufWriter *writer, const Column *column) {
    size_t count = tokenizer->count;
    SCOPED_MEMORY MetaValue *values = memory_allocate((count + 1) * sizeof *values);
    SCOPED_MEMORY Text *texts = memory_allocate_zeroed(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) values[i] = column->value(tokenizer, i, &texts[i]);
    Status status = gguf_writer_put_array(writer, column->key, column->type, values, count);
    for (size_t i = 0; i < count; i++) text_free(&texts[i]);
    return status;
}

static Status put_merges(const Tokenizer *tokenizer, GgufWriter *writer) {
    size_t count = tokenizer->pair_count;
    SCOPED_MEMORY MetaValue *values = memory_allocate((count + 1) * sizeof *values);
    SCOPED_MEMORY Text *texts = memory_allocate_zeroed(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        const Piece *left = &tokenizer->pieces[tokenizer->pairs[i].ids.left];
        const Piece *right = &tokenizer->pieces[tokenizer->pairs[i].ids.right];
        text_append(&texts[i], left->bytes, left->length);
        text_append_char(&texts[i], ' ');
        text_append(&texts[i], right->bytes, right->length);
        values[i] = string_value(text_get(&texts[i]), texts[i].length);
    }
    Status status =
        gguf_writer_put_array(writer, "tokenizer.ggml.merges", META_STRING, values, count);
    for (size_t i = 0; i < count; i++) text_free(&texts[i]);
    return status;
}

// --- kinds

static bool steps_are(const TextSteps *steps, const StepFunction *functions, size_t count) {
    if (steps->count != count) return false;
    for (size_t i = 0; i < count; i++)
        if (steps->items[i].apply != functions[i]) return false;
    return true;
}

static Status put_byte_level(const Tokenizer *tokenizer, GgufWriter *writer) {
    const Pretokenizer *pre = pretokenizer_of(tokenizer);
    if (!pre) return refuse("the format has no name for how it cuts texts");
    size_t length = strcspn(pre->names, " ");
    TRY(gguf_writer_put_string(writer, "tokenizer.ggml.model", "gpt2"));
    MetaValue name = string_value(pre->names, length);
    TRY(gguf_writer_put(writer, "tokenizer.ggml.pre", &name));
    return put_merges(tokenizer, writer);
}

// The prefix of marked pieces: the step of a pre-tokenizer, or the older two normalizers.
static bool find_prefix(const Tokenizer *tokenizer, bool cut, PrefixScheme *out) {
    const TextSteps *changes = &tokenizer->normalizers, *cuts = &tokenizer->splitters;
    const TextStep *marks = cuts->count == 1 ? &cuts->items[0] : NULL;
    if (marks && marks->apply == step_metaspace && marks->flag == cut) {
        *out = (PrefixScheme)marks->option;
        return true;
    }
    const TextStep *last = changes->count > 0 ? &changes->items[changes->count - 1] : NULL;
    bool replaces = last && last->apply == step_replace && !last->regex &&
                    strcmp(last->pattern, " ") == 0 && strcmp(last->content, SPACE_MARK) == 0;
    *out = changes->count == 2 ? PREFIX_ALWAYS : PREFIX_NEVER;
    return cuts->count == 0 && !cut && replaces &&
           (changes->count == 1 ||
            (changes->count == 2 && changes->items[0].apply == step_prepend &&
             strcmp(changes->items[0].content, SPACE_MARK) == 0));
}

static Status put_prefix(GgufWriter *writer, PrefixScheme prefix) {
    if (prefix == PREFIX_FIRST) TRY(gguf_writer_put_string(writer, TOKENIZER_KEY_PREFIX, "first"));
    return gguf_writer_put_integer(writer, "tokenizer.ggml.add_space_prefix", META_BOOL,
                                   prefix != PREFIX_NEVER);
}

// Other programs join pieces by scores alone: what a pair makes gets the pair's rank.
static Status put_pair_scores(const Tokenizer *tokenizer, GgufWriter *writer) {
    size_t count = tokenizer->count;
    SCOPED_MEMORY MetaValue *values = memory_allocate((count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (MetaValue){.type = META_FLOAT32, .as.number = -(double)tokenizer->pair_count};
    for (size_t i = tokenizer->pair_count; i-- > 0;) { // the first pair that makes it counts
        const Piece *joined = tokenizer->pairs[i].joined;
        if (joined) values[joined - tokenizer->pieces].as.number = -(double)i;
    }
    return gguf_writer_put_array(writer, "tokenizer.ggml.scores", META_FLOAT32, values, count);
}

static Status put_scored(const Tokenizer *tokenizer, GgufWriter *writer) {
    static const Column scores = {"tokenizer.ggml.scores", META_FLOAT32, piece_score};
    PrefixScheme prefix;
    if (!find_prefix(tokenizer, false, &prefix) || tokenizer->whole_words)
        return refuse("the format has no name for how it cuts texts");
    TRY(gguf_writer_put_string(writer, "tokenizer.ggml.model", "llama"));
    TRY(put_prefix(writer, prefix));
    if (!tokenizer->pairs) return put_column(tokenizer, writer, &scores);
    TRY(put_pair_scores(tokenizer, writer));
    return put_merges(tokenizer, writer);
}

static Status put_word_pieces(const Tokenizer *tokenizer, GgufWriter *writer) {
    static const StepFunction changes[] = {step_clean, step_space_ideographs, step_unicode_form,
                                           step_remove_accents, step_lowercase};
    static const StepFunction cuts[] = {step_split, step_split};
    size_t count = tokenizer_has_capitals(tokenizer) ? 2 : 5; // as tokenizer_push_bert has them
    if (!steps_are(&tokenizer->normalizers, changes, count) ||
        !steps_are(&tokenizer->splitters, cuts, 2) ||
        strcmp(tokenizer->splitters.items[1].pattern, STEP_PUNCTUATION) != 0)
        return refuse("it does not prepare texts as BERT does");
    if (strcmp(tokenizer->continuation, "##") != 0 || tokenizer->word_max != WORD_DEFAULT)
        return refuse("its pieces are not marked as those of BERT are");
    return gguf_writer_put_string(writer, "tokenizer.ggml.model", "bert");
}

static Status put_map(const TextStep *step, GgufWriter *writer) {
    SCOPED_MEMORY MetaValue *values = memory_allocate((step->content_length + 1) * sizeof *values);
    for (size_t i = 0; i < step->content_length; i++)
        values[i] = (MetaValue){.type = META_UINT8, .as.integer = (uint8_t)step->content[i]};
    return gguf_writer_put_array(writer, "tokenizer.ggml.precompiled_charsmap", META_UINT8, values,
                                 step->content_length);
}

// Perhaps a map of characters, perhaps runs of spaces that become one; then marks.
static Status put_unigram(const Tokenizer *tokenizer, GgufWriter *writer) {
    static const Column scores = {"tokenizer.ggml.scores", META_FLOAT32, piece_score};
    const TextSteps *changes = &tokenizer->normalizers;
    bool map = changes->count > 0 && changes->items[0].apply == step_precompiled;
    size_t left = changes->count - map;
    const TextStep *rest = left > 0 ? changes->items + map : NULL;
    bool runs = left == 2 && rest[0].apply == step_replace && rest[0].regex &&
                strcmp(rest[0].pattern, " {2,}") == 0 && strcmp(rest[0].content, " ") == 0 &&
                rest[1].apply == step_strip && rest[1].option == (1 | 2);
    PrefixScheme prefix;
    if ((left > 0 && !runs) || !find_prefix(tokenizer, true, &prefix) || tokenizer->byte_fallback)
        return refuse("it does not prepare texts as T5 does");
    TRY(gguf_writer_put_string(writer, "tokenizer.ggml.model", "t5"));
    TRY(put_prefix(writer, prefix));
    TRY(gguf_writer_put_integer(writer, "tokenizer.ggml.remove_extra_whitespaces", META_BOOL,
                                runs));
    if (map) TRY(put_map(&changes->items[0], writer));
    return put_column(tokenizer, writer, &scores);
}

// --- all of it

static Status put_id(GgufWriter *writer, const char *word, int64_t id) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", word);
    return id < 0 ? STATUS_OK : gguf_writer_put_integer(writer, key, META_UINT32, id);
}

static Status put_ends(const Tokenizer *tokenizer, GgufWriter *writer, bool words) {
    size_t before = tokenizer->before.count, after = tokenizer->after.count;
    if (before > 1 || after > 1 || (before == 1 && tokenizer->before.items[0] != tokenizer->bos))
        return refuse("it puts more than one token before or after a text");
    int64_t end = after == 1 ? tokenizer->after.items[0] : tokenizer->eos;
    TRY(put_id(writer, words ? "cls" : "bos", tokenizer->bos));
    TRY(put_id(writer, words ? "seperator" : "eos", end)); // the word is spelt so in files
    TRY(put_id(writer, "unknown", tokenizer->unknown));
    TRY(gguf_writer_put_integer(writer, "tokenizer.ggml.add_bos_token", META_BOOL, before > 0));
    return gguf_writer_put_integer(
        writer, words ? "tokenizer.ggml.add_sep_token" : "tokenizer.ggml.add_eos_token", META_BOOL,
        after > 0);
}

static Status put_pieces(const Tokenizer *tokenizer, GgufWriter *writer, bool words) {
    static const Column columns[] = {{"tokenizer.ggml.tokens", META_STRING, piece_text},
                                     {"tokenizer.ggml.tokens", META_STRING, word_piece_text},
                                     {"tokenizer.ggml.token_type", META_INT32, piece_type},
                                     {TOKENIZER_KEY_EDGES, META_INT32, piece_edges}};
    unsigned edges = 0;
    for (size_t i = 0; i < tokenizer->count; i++) edges |= tokenizer->pieces[i].edges;
    TRY(put_column(tokenizer, writer, &columns[words ? 1 : 0]));
    TRY(put_column(tokenizer, writer, &columns[2]));
    return edges ? put_column(tokenizer, writer, &columns[3]) : STATUS_OK;
}

Status tokenizer_to_gguf(const Tokenizer *tokenizer, GgufWriter *writer) {
    bool words = tokenizer->encode_word == tokenizer_encode_longest;
    if (words)
        TRY(put_word_pieces(tokenizer, writer));
    else if (tokenizer->encode_word == tokenizer_encode_likeliest)
        TRY(put_unigram(tokenizer, writer));
    else if (tokenizer->byte_fallback)
        TRY(put_scored(tokenizer, writer));
    else
        TRY(put_byte_level(tokenizer, writer));
    TRY(put_pieces(tokenizer, writer, words));
    return put_ends(tokenizer, writer, words);
}
