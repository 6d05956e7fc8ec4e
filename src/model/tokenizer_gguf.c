// The vocabularies that GGUF files carry, by tokenizer.ggml.model.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "model/gguf.h"
#include "model/tokenizer_internal.h"

typedef struct Source {
    const Metadata *metadata;
    const char *name; // of the file, for messages
    Tokenizer *tokenizer;
} Source;

// --- metadata

// Keys that begin and end so, and what their values are; META_UINT32: any integer.
static const struct {
    const char *begins, *ends;
    MetaType type;
    const char *kind;
} expected[] = {
    {"tokenizer.ggml", ".model", META_STRING, "a text"},
    {"tokenizer.ggml", ".pre", META_STRING, "a text"},
    {"tokenizer.ggml.", "_token_id", META_UINT32, "an integer"},
    {"tokenizer.ggml.add_", "", META_BOOL, "true or false"},
    {"tokenizer.ggml.remove_extra_whitespaces", "", META_BOOL, "true or false"},
};
enum { EXPECTED_COUNT = sizeof expected / sizeof *expected };

static bool begins_and_ends(const char *key, const char *begin, const char *end) {
    size_t length = strlen(key), first = strlen(begin), last = strlen(end);
    return length >= first + last && memcmp(key, begin, first) == 0 &&
           memcmp(key + length - last, end, last) == 0;
}

static Status check_types(const Source *source) {
    for (size_t i = 0; i < source->metadata->count; i++) {
        const MetaPair *pair = &source->metadata->items[i];
        for (int e = 0; e < EXPECTED_COUNT; e++) {
            if (!begins_and_ends(pair->key, expected[e].begins, expected[e].ends)) continue;
            bool fits = expected[e].type == META_UINT32 ? meta_is_integer(&pair->value)
                                                        : pair->value.type == expected[e].type;
            if (!fits)
                return fail(STATUS_FORMAT, "%s: %s is not %s", source->name, pair->key,
                            expected[e].kind);
        }
    }
    return STATUS_OK;
}

static int64_t read_id(const Source *source, const char *word) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", word);
    const MetaValue *value = metadata_find(source->metadata, key);
    bool known =
        value && value->as.integer >= 0 && value->as.integer < (int64_t)source->tokenizer->count;
    return known ? value->as.integer : -1;
}

static bool read_flag(const Source *source, const char *word, bool fallback) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", word);
    const MetaValue *value = metadata_find(source->metadata, key);
    return value ? value->as.integer != 0 : fallback;
}

static const MetaValue *find_string(const Source *source, const char *key) {
    const MetaValue *value = metadata_find(source->metadata, key);
    return value && value->type == META_STRING ? value : NULL;
}

static bool string_is(const MetaValue *value, const char *text) {
    return value && value->as.string.length == strlen(text) &&
           memcmp(value->as.string.bytes, text, strlen(text)) == 0;
}

// --- pieces

static void load_piece(void *context, size_t index, MetaValue value) {
    Tokenizer *tokenizer = context;
    Piece *piece = &tokenizer->pieces[index];
    piece->bytes = memory_copy_string(value.as.string.bytes, value.as.string.length);
    piece->length = value.as.string.length;
    piece->type = TOKEN_NORMAL;
}

static void load_score(void *context, size_t index, MetaValue value) {
    Tokenizer *tokenizer = context;
    tokenizer->pieces[index].score = (float)value.as.number;
}

static void load_edges(void *context, size_t index, MetaValue value) {
    Tokenizer *tokenizer = context;
    tokenizer->pieces[index].edges = (unsigned)value.as.integer;
}

static void load_type(void *context, size_t index, MetaValue value) {
    Tokenizer *tokenizer = context;
    tokenizer->pieces[index].type = (int)value.as.integer;
}

// An optional array of the vocabulary; when there it has one element of `type` per piece.
static Status load_array(const Source *source, const char *key, MetaType type,
                         void (*visit)(void *, size_t, MetaValue)) {
    const MetaValue *array = metadata_find(source->metadata, key);
    if (!array) return STATUS_OK;
    if (array->type != META_ARRAY || array->as.array.type != type ||
        array->as.array.count != source->tokenizer->count)
        return fail(STATUS_FORMAT,
                    "%s: %s does not have one number of the right type for each of the %zu tokens",
                    source->name, key, source->tokenizer->count);
    meta_array_each(array, visit, source->tokenizer);
    return STATUS_OK;
}

static Status load_pieces(const Source *source) {
    Tokenizer *tokenizer = source->tokenizer;
    const MetaValue *tokens = metadata_find(source->metadata, "tokenizer.ggml.tokens");
    if (!tokens)
        return fail(STATUS_FORMAT, "%s holds no tokenizer: tokenizer.ggml.tokens is missing",
                    source->name);
    if (tokens->type != META_ARRAY || tokens->as.array.type != META_STRING)
        return fail(STATUS_FORMAT, "%s: tokenizer.ggml.tokens is not a list of texts",
                    source->name);
    tokenizer->count = tokens->as.array.count;
    tokenizer->pieces = memory_allocate_zeroed(tokenizer->count, sizeof *tokenizer->pieces);
    meta_array_each(tokens, load_piece, tokenizer);
    TRY(load_array(source, "tokenizer.ggml.scores", META_FLOAT32, load_score));
    TRY(load_array(source, "tokenizer.ggml.token_type", META_INT32, load_type));
    return load_array(source, TOKENIZER_KEY_EDGES, META_INT32, load_edges);
}

// --- merges: "left right", where a piece may be a blank only as the first character

typedef struct MergeReader {
    Tokenizer *tokenizer;
    size_t wrong; // how many name a piece that is not there
} MergeReader;

static void load_merge(void *context, size_t index, MetaValue value) {
    MergeReader *reader = context;
    const char *text = value.as.string.bytes;
    size_t length = value.as.string.length;
    const char *space = length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    const Piece *left = NULL, *right = NULL;
    if (space) {
        left = tokenizer_find(reader->tokenizer, text, (size_t)(space - text));
        right = tokenizer_find(reader->tokenizer, space + 1, length - (size_t)(space - text) - 1);
    }
    reader->wrong += !tokenizer_add_pair(reader->tokenizer, index, left, right);
}

static Status load_merges(const Source *source, bool needed) {
    static const char key[] = "tokenizer.ggml.merges";
    const MetaValue *merges = metadata_find(source->metadata, key);
    if (!merges && !needed) return STATUS_OK;
    if (!merges || merges->type != META_ARRAY || merges->as.array.type != META_STRING)
        return fail(STATUS_FORMAT, "%s: the vocabulary has no merges (%s)", source->name, key);
    MergeReader reader = {.tokenizer = source->tokenizer};
    tokenizer_begin_pairs(source->tokenizer, merges->as.array.count);
    meta_array_each(merges, load_merge, &reader);
    if (reader.wrong == 0) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: %zu merges name a piece that is not in the vocabulary",
                source->name, reader.wrong);
}

// --- kinds

// Spaces are marks, and one is put before the text and after each special token, or none is.
static void push_marks(const Source *source, bool cut, bool otherwise) {
    bool add_space = read_flag(source, "add_space_prefix", otherwise);
    bool first = string_is(find_string(source, TOKENIZER_KEY_PREFIX), "first");
    TextStep marks = {.apply = step_metaspace,
                      .content = tokenizer_copy(SPACE_MARK),
                      .option = !add_space ? PREFIX_NEVER
                                : first    ? PREFIX_FIRST
                                           : PREFIX_ALWAYS,
                      .flag = cut};
    tokenizer_push_step(&source->tokenizer->splitters, marks);
    source->tokenizer->trim_start = add_space;
    source->tokenizer->trim_after_special = add_space && !first;
}

// Whether texts get the tokens at their begin and end, unless the file says otherwise.
typedef struct Ends {
    bool begin, end;
} Ends;

static Status load_marked(const Source *source, bool ranked, Ends *ends) {
    tokenizer_index(source->tokenizer);
    push_marks(source, false, !ranked);
    source->tokenizer->encode_word = tokenizer_encode_merging;
    source->tokenizer->byte_fallback = true;
    *ends = (Ends){.begin = true};
    return load_merges(source, ranked);
}

static Status load_scored(const Source *source, Ends *ends) {
    return load_marked(source, false, ends);
}

static Status load_ranked(const Source *source, Ends *ends) {
    return load_marked(source, true, ends);
}

static Status find_pretokenizer(const Source *source, const Pretokenizer **out) {
    const MetaValue *name = find_string(source, "tokenizer.ggml.pre");
    const char *bytes = name ? name->as.string.bytes : "default";
    size_t length = name ? name->as.string.length : strlen(bytes);
    *out = pretokenizer_find(bytes, length);
    if (*out) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: tl does not know the pre-tokenizer \"%.*s\"", source->name,
                length < 40 ? (int)length : 40, bytes);
}

static Status load_byte_level(const Source *source, Ends *ends) {
    Tokenizer *tokenizer = source->tokenizer;
    const Pretokenizer *pre;
    TRY(find_pretokenizer(source, &pre));
    tokenizer_index(tokenizer);
    if (pre->options & PRE_COMPOSES)
        tokenizer_push_step(
            &tokenizer->normalizers,
            (TextStep){.apply = step_unicode_form, .option = UTF8PROC_STABLE | UTF8PROC_COMPOSE});
    if (read_flag(source, "add_space_prefix", false))
        tokenizer_push_step(&tokenizer->splitters, (TextStep){.apply = step_prefix_space});
    for (int i = 0; pre->patterns[i]; i++)
        TRY(tokenizer_push_split(&tokenizer->splitters, pre->patterns[i], SPLIT_ISOLATED, false));
    tokenizer_push_step(&tokenizer->splitters, (TextStep){.apply = step_bytes});
    tokenizer->encode_word = tokenizer_encode_merging;
    tokenizer->whole_words = pre->options & PRE_WHOLE_WORDS;
    tokenizer->decode_style = DECODE_BYTES;
    bool both = pre->options & PRE_SURROUNDS;
    *ends = (Ends){.begin = both || pre->options & PRE_BEGINS, .end = both};
    return load_merges(source, true);
}

// In these files the pieces that begin words have a mark, where the vocabulary had none, and the
// others lost theirs.
static void restore_word_piece(const Tokenizer *tokenizer, Piece *piece) {
    if (tokenizer_is_plain(piece)) return;
    bool begins = piece->length >= SPACE_MARK_BYTES &&
                  memcmp(piece->bytes, SPACE_MARK, SPACE_MARK_BYTES) == 0;
    size_t cut = begins ? SPACE_MARK_BYTES : 0;
    Text text = {0};
    if (!begins) text_append_string(&text, tokenizer->continuation);
    text_append(&text, piece->bytes + cut, piece->length - cut);
    free(piece->bytes);
    piece->length = text.length;
    piece->bytes = text_take(&text);
}

static Status load_word_pieces(const Source *source, Ends *ends) {
    Tokenizer *tokenizer = source->tokenizer;
    tokenizer->continuation = tokenizer_copy("##");
    tokenizer->word_max = WORD_DEFAULT;
    for (size_t i = 0; i < tokenizer->count; i++)
        restore_word_piece(tokenizer, &tokenizer->pieces[i]);
    tokenizer_index(tokenizer);
    tokenizer->encode_word = tokenizer_encode_longest;
    tokenizer->decode_style = DECODE_WORDS;
    tokenizer->tidy = true;
    *ends = (Ends){.begin = true, .end = true};
    // The file does not say it.
    return tokenizer_push_bert(tokenizer, tokenizer_has_capitals(tokenizer));
}

static Status push_map(const Source *source) {
    const MetaValue *map = metadata_find(source->metadata, "tokenizer.ggml.precompiled_charsmap");
    if (!map) return STATUS_OK;
    bool bytes = map->type == META_ARRAY &&
                 (map->as.array.type == META_UINT8 || map->as.array.type == META_INT8);
    if (!bytes)
        return fail(STATUS_FORMAT, "%s: tokenizer.ggml.precompiled_charsmap is not bytes",
                    source->name);
    TextStep step;
    TRY(step_take_map(&step, (const char *)map->as.array.bytes, map->as.array.count));
    tokenizer_push_step(&source->tokenizer->normalizers, step);
    return STATUS_OK;
}

static Status load_unigram(const Source *source, Ends *ends) {
    Tokenizer *tokenizer = source->tokenizer;
    tokenizer_index(tokenizer);
    TRY(push_map(source));
    if (read_flag(source, "remove_extra_whitespaces", false)) {
        TextStep runs = {.apply = step_replace, .content = tokenizer_copy(" ")};
        Status status = step_compile(&runs, " {2,}", 5);
        tokenizer_push_step(&tokenizer->normalizers, runs);
        TRY(status);
        tokenizer_push_step(&tokenizer->normalizers,
                            (TextStep){.apply = step_strip, .option = 1 | 2});
    }
    push_marks(source, true, true);
    tokenizer_prepare_unigram(tokenizer);
    *ends = (Ends){.end = true};
    return STATUS_OK;
}

typedef struct VocabularyKind {
    const char *model;
    Status (*load)(const Source *source, Ends *ends);
} VocabularyKind;
static const VocabularyKind kinds[] = {
    {"llama", load_scored},     {"gemma4", load_ranked}, {"gpt2", load_byte_level},
    {"bert", load_word_pieces}, {"t5", load_unigram},
};

static Status find_kind(const Source *source, const VocabularyKind **out) {
    const MetaValue *model = find_string(source, "tokenizer.ggml.model");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (string_is(model, kinds[i].model)) {
            *out = &kinds[i];
            return STATUS_OK;
        }
    return fail(STATUS_FORMAT,
                "%s has a tokenizer of kind \"%.*s\"; tl reads llama, gpt2, bert, t5 and gemma4",
                source->name, model ? (int)model->as.string.length : 1,
                model ? model->as.string.bytes : "?");
}

// --- all of it

static int64_t first_id(const Source *source, const char *word, const char *other) {
    int64_t id = read_id(source, word);
    return id >= 0 ? id : read_id(source, other);
}

static Status load(const Source *source) {
    Tokenizer *tokenizer = source->tokenizer;
    const VocabularyKind *kind = NULL;
    Ends ends = {0};
    TRY(check_types(source));
    TRY(load_pieces(source));
    TRY(find_kind(source, &kind));
    TRY(kind->load(source, &ends));
    bool words = kind->load == load_word_pieces;
    tokenizer->bos = words ? first_id(source, "cls", "bos") : read_id(source, "bos");
    // The word is spelt so in files.
    tokenizer->eos = words ? first_id(source, "seperator", "eos") : read_id(source, "eos");
    tokenizer->unknown = read_id(source, "unknown");
    if (tokenizer->bos >= 0 && read_flag(source, "add_bos_token", ends.begin))
        VECTOR_PUSH(&tokenizer->before, tokenizer->bos);
    bool end = read_flag(source, words ? "add_sep_token" : "add_eos_token", ends.end);
    if (tokenizer->eos >= 0 && end) VECTOR_PUSH(&tokenizer->after, tokenizer->eos);
    tokenizer_find_ends(tokenizer);
    tokenizer_add_end(tokenizer, read_id(source, "eot"));
    tokenizer_add_end(tokenizer, read_id(source, "eom"));
    return STATUS_OK;
}

Status tokenizer_from_metadata(const Metadata *metadata, const char *name, Tokenizer **out) {
    Source source = {metadata, name, tokenizer_new()};
    Status status = load(&source);
    if (status == STATUS_OK)
        *out = source.tokenizer;
    else
        tokenizer_release(source.tokenizer);
    return status;
}

// --- files

static Status open_gguf(FileMap *map, Tokenizer **out) {
    Reader file = {0};
    Status status = gguf_open_part(&file, map);
    if (status == STATUS_OK)
        status = tokenizer_from_metadata(&file.metadata, file_map_path(map), out);
    reader_clear(&file);
    return status;
}

Status tokenizer_open(const char *path, Tokenizer **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    bool gguf = length >= 4 && memcmp(bytes, "GGUF", 4) == 0;
    Status read = gguf ? open_gguf(map, out) : tokenizer_from_json(bytes, length, path, out);
    Status status = file_map_check(map);
    if (status != STATUS_OK && read == STATUS_OK) tokenizer_release(*out);
    file_map_release(map);
    return status == STATUS_OK ? read : status;
}
