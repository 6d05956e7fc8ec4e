// The vocabulary of Hugging Face's tokenizer.json: BPE, WordPiece and Unigram. What the file asks
// for and is not known here is refused by its name.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/base64.h"
#include "model/tokenizer_internal.h"

enum { ID_GAPS_MAX = 4096, WORD_MAX = 1000 };

typedef struct Reader {
    Tokenizer *tokenizer;
    const char *name; // of the file
    const json_t *root;
    size_t ids_max;
} Reader;

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool flag_of(const json_t *object, const char *key, bool fallback) {
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static Status refuse(const Reader *reader, const char *part, const char *what) {
    return fail(STATUS_FORMAT, "%s: tl does not know the %s \"%s\"", reader->name, part, what);
}

static Status broken(const Reader *reader, const char *what) {
    return fail(STATUS_FORMAT, "%s: %s", reader->name, what);
}

// --- the vocabulary

// Ids may have gaps, but how large the largest may be follows from how many there are.
static Status add_piece(Reader *reader, const char *text, size_t length, json_int_t id, int type) {
    Tokenizer *tokenizer = reader->tokenizer;
    if (id < 0 || (size_t)id >= reader->ids_max)
        return fail(STATUS_FORMAT, "%s: token id %lld cannot be", reader->name, (long long)id);
    if ((size_t)id >= tokenizer->count) {
        size_t count = (size_t)id + 1;
        tokenizer->pieces = memory_resize(tokenizer->pieces, count * sizeof(Piece));
        memset(tokenizer->pieces + tokenizer->count, 0, (count - tokenizer->count) * sizeof(Piece));
        tokenizer->count = count;
    }
    Piece *piece = &tokenizer->pieces[id];
    free(piece->bytes);
    piece->bytes = memory_copy_string(text, length);
    piece->length = length;
    piece->type = type;
    if (type == TOKEN_NORMAL && tokenizer_byte_value(piece) >= 0) piece->type = TOKEN_BYTE;
    return STATUS_OK;
}

static Status read_vocabulary(Reader *reader, json_t *vocabulary) {
    const char *text;
    json_t *id;
    json_int_t largest = -1;
    if (!json_is_object(vocabulary)) return broken(reader, "model.vocab is not an object");
    json_object_foreach(vocabulary, text, id) {
        if (!json_is_integer(id)) return broken(reader, "an id in model.vocab is not a number");
        if (json_integer_value(id) > largest) largest = json_integer_value(id);
    }
    if (largest >= 0) TRY(add_piece(reader, "", 0, largest, TOKEN_NORMAL)); // makes room once
    json_object_foreach(vocabulary, text, id)
        TRY(add_piece(reader, text, strlen(text), json_integer_value(id), TOKEN_NORMAL));
    return STATUS_OK;
}

static unsigned edges_of(const json_t *token) {
    unsigned edges = flag_of(token, "lstrip", false) ? EDGE_BLANKS_BEFORE : 0;
    if (flag_of(token, "rstrip", false)) edges |= EDGE_BLANKS_AFTER;
    return flag_of(token, "single_word", false) ? edges | EDGE_WORD : edges;
}

// Every added token is cut out of a text; special ones are left out of what is decoded.
static Status read_added(Reader *reader) {
    size_t i;
    const json_t *token;
    json_array_foreach(json_object_get(reader->root, "added_tokens"), i, token) {
        const json_t *content = json_object_get(token, "content");
        const json_t *id = json_object_get(token, "id");
        if (!json_is_string(content) || !json_is_integer(id))
            return broken(reader, "an added token has no content or no id");
        int type = flag_of(token, "special", false) ? TOKEN_CONTROL : TOKEN_USER;
        TRY(add_piece(reader, json_string_value(content), json_string_length(content),
                      json_integer_value(id), type));
        reader->tokenizer->pieces[json_integer_value(id)].edges = edges_of(token);
    }
    return STATUS_OK;
}

static int64_t id_of(const Reader *reader, const char *text) {
    const Piece *piece = tokenizer_find(reader->tokenizer, text, strlen(text));
    return piece ? piece - reader->tokenizer->pieces : -1;
}

// --- models

static bool read_pair(const json_t *merge, const char **left, size_t *left_length,
                      const char **right) {
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        *left = json_string_value(json_array_get(merge, 0));
        *right = json_string_value(json_array_get(merge, 1));
        *left_length = *left ? strlen(*left) : 0;
        return *left && *right;
    }
    *left = json_string_value(merge);
    const char *space = *left ? strchr(*left, ' ') : NULL;
    if (!space) return false;
    *left_length = (size_t)(space - *left);
    *right = space + 1;
    return true;
}

static Status read_merges(Reader *reader, const json_t *merges) {
    Tokenizer *tokenizer = reader->tokenizer;
    if (!json_is_array(merges)) return broken(reader, "model.merges is not an array");
    size_t i;
    const json_t *merge;
    tokenizer_begin_pairs(tokenizer, json_array_size(merges));
    json_array_foreach(merges, i, merge) {
        const char *left, *right;
        size_t length;
        if (!read_pair(merge, &left, &length, &right))
            return broken(reader, "a merge is not a pair of pieces");
        const Piece *one = tokenizer_find(tokenizer, left, length);
        const Piece *other = tokenizer_find(tokenizer, right, strlen(right));
        if (!tokenizer_add_pair(tokenizer, i, one, other))
            return broken(reader, "a merge names a piece that is not in model.vocab");
    }
    return STATUS_OK;
}

static Status finish_bpe(Reader *reader, const json_t *model) {
    Tokenizer *tokenizer = reader->tokenizer;
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++)
        if (*text_of(model, affixes[i])) return refuse(reader, "setting of BPE", affixes[i]);
    tokenizer->encode_word = tokenizer_encode_merging;
    tokenizer->byte_fallback = flag_of(model, "byte_fallback", false);
    tokenizer->fuse_unknown = flag_of(model, "fuse_unk", false);
    tokenizer->whole_words = flag_of(model, "ignore_merges", false);
    tokenizer->unknown = id_of(reader, text_of(model, "unk_token"));
    return read_merges(reader, json_object_get(model, "merges"));
}

static Status finish_wordpiece(Reader *reader, const json_t *model) {
    Tokenizer *tokenizer = reader->tokenizer;
    const char *mark = text_of(model, "continuing_subword_prefix");
    const json_t *longest = json_object_get(model, "max_input_chars_per_word");
    tokenizer->encode_word = tokenizer_encode_longest;
    free(tokenizer->continuation);
    tokenizer->continuation = memory_copy_string(mark, strlen(mark));
    json_int_t limit = json_is_integer(longest) ? json_integer_value(longest) : WORD_DEFAULT;
    tokenizer->word_max = limit < 0 ? 0 : limit > WORD_MAX ? WORD_MAX : (size_t)limit;
    tokenizer->unknown = id_of(reader, text_of(model, "unk_token"));
    return STATUS_OK;
}

static Status finish_unigram(Reader *reader, const json_t *model) {
    Tokenizer *tokenizer = reader->tokenizer;
    const json_t *unknown = json_object_get(model, "unk_id");
    tokenizer_prepare_unigram(tokenizer);
    tokenizer->byte_fallback = flag_of(model, "byte_fallback", false);
    if (!json_is_integer(unknown)) return STATUS_OK;
    int64_t id = json_integer_value(unknown);
    if (id < 0 || (size_t)id >= tokenizer->count)
        return broken(reader, "model.unk_id is not a token");
    tokenizer->unknown = id;
    return STATUS_OK;
}

static Status read_scored(Reader *reader, json_t *vocabulary) {
    if (!json_is_array(vocabulary)) return broken(reader, "model.vocab is not an array");
    size_t i, count = json_array_size(vocabulary);
    const json_t *row;
    if (count > 0) TRY(add_piece(reader, "", 0, (json_int_t)count - 1, TOKEN_NORMAL));
    json_array_foreach(vocabulary, i, row) {
        const json_t *text = json_array_get(row, 0), *score = json_array_get(row, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return broken(reader, "a row of model.vocab is not a piece with its score");
        TRY(add_piece(reader, json_string_value(text), json_string_length(text), (json_int_t)i,
                      TOKEN_NORMAL));
        reader->tokenizer->pieces[i].score = (float)json_number_value(score);
    }
    return STATUS_OK;
}

typedef struct ModelKind {
    const char *type;
    Status (*read)(Reader *reader, json_t *vocabulary);
    Status (*finish)(Reader *reader, const json_t *model); // after the pieces have been indexed
} ModelKind;
static const ModelKind model_kinds[] = {
    {"BPE", read_vocabulary, finish_bpe},
    {"WordPiece", read_vocabulary, finish_wordpiece},
    {"Unigram", read_scored, finish_unigram},
};

// Files of some years ago have no type: with merges it is BPE.
static const ModelKind *find_model(const json_t *model) {
    const char *type = text_of(model, "type");
    if (!*type && json_object_get(model, "merges")) type = "BPE";
    for (size_t i = 0; i < sizeof model_kinds / sizeof *model_kinds; i++)
        if (strcmp(model_kinds[i].type, type) == 0) return &model_kinds[i];
    return NULL;
}

// --- steps

// A pattern is {"String": text} or {"Regex": text}, or the text itself.
static Status take_pattern(const Reader *reader, const json_t *pattern, bool compile,
                           TextStep *step) {
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *plain = json_string_value(json_object_get(pattern, "String"));
    if (!plain) plain = json_string_value(pattern);
    if (regex) return step_compile(step, regex, strlen(regex));
    if (!plain) return broken(reader, "a step has no pattern");
    if (!compile) {
        step->pattern = tokenizer_copy(plain);
        return STATUS_OK;
    }
    SCOPED_TEXT(quoted);
    for (const char *c = plain; *c; c++) {
        if ((unsigned char)*c < 0x80 && strchr("\\^$.[]|()?*+{}#- ", *c))
            text_append_char(&quoted, '\\');
        text_append_char(&quoted, *c);
    }
    return step_compile(step, text_get(&quoted), quoted.length);
}

static Splitting splitting_of(const json_t *node, Splitting fallback) {
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], text_of(node, "behavior")) == 0) return (Splitting)i;
    return fallback;
}

typedef Status (*StepReader)(const Reader *reader, const json_t *node, TextSteps *steps);
typedef struct StepKind {
    const char *type;
    StepReader read;
} StepKind;

static Status read_steps(const Reader *reader, const json_t *node, TextSteps *steps);

static Status read_prepend(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader;
    tokenizer_push_step(steps, (TextStep){.apply = step_prepend,
                                          .content = tokenizer_copy(text_of(node, "prepend"))});
    return STATUS_OK;
}

static Status read_replace(const Reader *reader, const json_t *node, TextSteps *steps) {
    TextStep step = {.apply = step_replace};
    TRY(take_pattern(reader, json_object_get(node, "pattern"), false, &step));
    step.content = tokenizer_copy(text_of(node, "content"));
    tokenizer_push_step(steps, step);
    return STATUS_OK;
}

static Status read_form(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader;
    const char *type = text_of(node, "type");
    bool compatible = strchr(type, 'K'), composed = type[strlen(type) - 1] == 'C';
    int flags = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                (compatible ? UTF8PROC_COMPAT : 0);
    tokenizer_push_step(steps, (TextStep){.apply = step_unicode_form, .option = flags});
    return STATUS_OK;
}

static Status read_precompiled(const Reader *reader, const json_t *node, TextSteps *steps) {
    const json_t *map = json_object_get(node, "precompiled_charsmap");
    if (!map || json_is_null(map)) return STATUS_OK;
    SCOPED_TEXT(bytes);
    TextStep step;
    Status status = json_is_string(map) &&
                            base64_decode(json_string_value(map), json_string_length(map), &bytes)
                        ? step_take_map(&step, text_get(&bytes), bytes.length)
                        : broken(reader, "precompiled_charsmap is not base64");
    if (status == STATUS_OK) tokenizer_push_step(steps, step);
    return status;
}

static Status read_lowercase(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader, (void)node;
    tokenizer_push_step(steps, (TextStep){.apply = step_lowercase});
    return STATUS_OK;
}

static Status read_strip_accents(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader, (void)node;
    tokenizer_push_step(steps, (TextStep){.apply = step_remove_accents});
    return STATUS_OK;
}

static Status read_strip(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader;
    int sides = flag_of(node, "strip_left", true) + 2 * flag_of(node, "strip_right", true);
    tokenizer_push_step(steps, (TextStep){.apply = step_strip, .option = sides});
    return STATUS_OK;
}

static Status read_bert(const Reader *reader, const json_t *node, TextSteps *steps) {
    bool lower = flag_of(node, "lowercase", true);
    if (flag_of(node, "clean_text", true))
        tokenizer_push_step(steps, (TextStep){.apply = step_clean});
    if (flag_of(node, "handle_chinese_chars", true))
        tokenizer_push_step(steps, (TextStep){.apply = step_space_ideographs});
    if (flag_of(node, "strip_accents", lower)) {
        int flags = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
        tokenizer_push_step(steps, (TextStep){.apply = step_unicode_form, .option = flags});
        TRY(read_strip_accents(reader, node, steps));
    }
    return lower ? read_lowercase(reader, node, steps) : STATUS_OK;
}

static Status read_metaspace(const Reader *reader, const json_t *node, TextSteps *steps) {
    const char *scheme = text_of(node, "prepend_scheme"), *mark = text_of(node, "replacement");
    PrefixScheme prefix = flag_of(node, "add_prefix_space", true) ? PREFIX_ALWAYS : PREFIX_NEVER;
    if (strcmp(scheme, "first") == 0) prefix = PREFIX_FIRST;
    if (strcmp(scheme, "never") == 0) prefix = PREFIX_NEVER;
    if (strcmp(scheme, "always") == 0) prefix = PREFIX_ALWAYS;
    if (*mark && strcmp(mark, SPACE_MARK) != 0) return refuse(reader, "replacement", mark);
    tokenizer_push_step(steps, (TextStep){.apply = step_metaspace,
                                          .content = tokenizer_copy(SPACE_MARK),
                                          .option = (int)prefix,
                                          .flag = flag_of(node, "split", true)});
    return STATUS_OK;
}

static Status read_byte_level(const Reader *reader, const json_t *node, TextSteps *steps) {
    bool normalizes = steps == &reader->tokenizer->normalizers; // which only writes bytes
    if (!normalizes && flag_of(node, "add_prefix_space", true))
        tokenizer_push_step(steps, (TextStep){.apply = step_prefix_space});
    if (!normalizes && flag_of(node, "use_regex", true))
        TRY(tokenizer_push_split(steps, tokenizer_pattern_words, SPLIT_ISOLATED, false));
    tokenizer_push_step(steps, (TextStep){.apply = step_bytes});
    return STATUS_OK;
}

static Status read_split(const Reader *reader, const json_t *node, TextSteps *steps) {
    TextStep step = {.apply = step_split,
                     .option = (int)splitting_of(node, SPLIT_ISOLATED),
                     .flag = flag_of(node, "invert", false)};
    TRY(take_pattern(reader, json_object_get(node, "pattern"), true, &step));
    tokenizer_push_step(steps, step);
    return STATUS_OK;
}

static Status read_whitespace(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader, (void)node;
    return tokenizer_push_split(steps, "\\w+|[^\\w\\s]+", SPLIT_REMOVED, true);
}

static Status read_whitespace_split(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader, (void)node;
    return tokenizer_push_split(steps, "\\s+", SPLIT_REMOVED, false);
}

static Status read_bert_words(const Reader *reader, const json_t *node, TextSteps *steps) {
    TRY(read_whitespace_split(reader, node, steps));
    return tokenizer_push_split(steps, STEP_PUNCTUATION, SPLIT_ISOLATED, false);
}

static Status read_punctuation(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader;
    return tokenizer_push_split(steps, STEP_PUNCTUATION, splitting_of(node, SPLIT_ISOLATED), false);
}

static Status read_digits(const Reader *reader, const json_t *node, TextSteps *steps) {
    (void)reader;
    bool single = flag_of(node, "individual_digits", false);
    return tokenizer_push_split(steps, single ? "\\p{N}" : "\\p{N}+", SPLIT_ISOLATED, false);
}

static Status read_sequence(const Reader *reader, const json_t *node, TextSteps *steps) {
    static const char *const keys[] = {"normalizers", "pretokenizers"};
    for (int k = 0; k < 2; k++) {
        size_t i;
        const json_t *each;
        json_array_foreach(json_object_get(node, keys[k]), i, each)
            TRY(read_steps(reader, each, steps));
    }
    return STATUS_OK;
}

static const StepKind step_kinds[] = {
    {"Sequence", read_sequence},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"NFC", read_form},
    {"NFD", read_form},
    {"NFKC", read_form},
    {"NFKD", read_form},
    {"Precompiled", read_precompiled},
    {"Lowercase", read_lowercase},
    {"StripAccents", read_strip_accents},
    {"Strip", read_strip},
    {"BertNormalizer", read_bert},
    {"Metaspace", read_metaspace},
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"BertPreTokenizer", read_bert_words},
    {"Punctuation", read_punctuation},
    {"Digits", read_digits},
};

static Status read_steps(const Reader *reader, const json_t *node, TextSteps *steps) {
    if (!node || json_is_null(node)) return STATUS_OK;
    const char *type = text_of(node, "type");
    for (size_t i = 0; i < sizeof step_kinds / sizeof *step_kinds; i++)
        if (strcmp(step_kinds[i].type, type) == 0) return step_kinds[i].read(reader, node, steps);
    return refuse(reader, "step", type);
}

// --- what surrounds a text, and decoding

static Status push_special(const Reader *reader, const json_t *post, const char *token,
                           bool before) {
    Tokenizer *tokenizer = reader->tokenizer;
    const json_t *known = json_object_get(json_object_get(post, "special_tokens"), token);
    const json_t *ids = json_object_get(known, "ids");
    int64_t id = json_array_size(ids) == 1 ? json_integer_value(json_array_get(ids, 0))
                                           : id_of(reader, token);
    if (id < 0 || (size_t)id >= tokenizer->count)
        return broken(reader, "the post-processor names a token that is not in the vocabulary");
    if (before)
        VECTOR_PUSH(&tokenizer->before, id);
    else
        VECTOR_PUSH(&tokenizer->after, id);
    return STATUS_OK;
}

static Status read_template(const Reader *reader, const json_t *post) {
    size_t i;
    const json_t *part;
    bool before = true;
    json_array_foreach(json_object_get(post, "single"), i, part) {
        if (json_object_get(part, "Sequence")) before = false;
        const json_t *special = json_object_get(part, "SpecialToken");
        if (special) TRY(push_special(reader, post, text_of(special, "id"), before));
    }
    return STATUS_OK;
}

static Status read_post_processor(const Reader *reader, const json_t *post) {
    const char *type = text_of(post, "type");
    if (!post || json_is_null(post) || strcmp(type, "ByteLevel") == 0) return STATUS_OK;
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(reader, post);
    if (strcmp(type, "Sequence") == 0) {
        size_t i;
        const json_t *each;
        json_array_foreach(json_object_get(post, "processors"), i, each)
            TRY(read_post_processor(reader, each));
        return STATUS_OK;
    }
    if (strcmp(type, "BertProcessing") != 0 && strcmp(type, "RobertaProcessing") != 0)
        return refuse(reader, "post-processor", type);
    const char *first = json_string_value(json_array_get(json_object_get(post, "cls"), 0));
    const char *last = json_string_value(json_array_get(json_object_get(post, "sep"), 0));
    TRY(push_special(reader, post, first ? first : "", true));
    return push_special(reader, post, last ? last : "", false);
}

static void read_decoder(Tokenizer *tokenizer, const json_t *decoder) {
    const char *type = text_of(decoder, "type");
    size_t i;
    const json_t *each;
    json_array_foreach(json_object_get(decoder, "decoders"), i, each) read_decoder(tokenizer, each);
    if (strcmp(type, "ByteLevel") == 0) tokenizer->decode_style = DECODE_BYTES;
    if (strcmp(type, "WordPiece") == 0) {
        tokenizer->decode_style = DECODE_WORDS;
        tokenizer->tidy = flag_of(decoder, "cleanup", true);
    }
    bool metaspace = strcmp(type, "Metaspace") == 0 && flag_of(decoder, "add_prefix_space", true) &&
                     strcmp(text_of(decoder, "prepend_scheme"), "never") != 0;
    bool strip =
        strcmp(type, "Strip") == 0 && json_integer_value(json_object_get(decoder, "start")) > 0;
    tokenizer->trim_start |= metaspace || strip;
}

static int64_t first_known(const Reader *reader, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int64_t id = id_of(reader, names[i]);
        if (id >= 0) return id;
    }
    return -1;
}

// The file does not say which token begins and which ends a text.
static void find_ends(Reader *reader) {
    static const char *const begins[] = {"<s>", "<bos>", "<|begin_of_text|>", "[CLS]",
                                         "<|startoftext|>"};
    static const char *const ends[] = {"</s>",  "<eos>",      "<|end_of_text|>", "<|endoftext|>",
                                       "[SEP]", "<|im_end|>", "<|eot_id|>"};
    Tokenizer *tokenizer = reader->tokenizer;
    tokenizer->bos = tokenizer->before.count > 0
                         ? tokenizer->before.items[0]
                         : first_known(reader, begins, sizeof begins / sizeof *begins);
    tokenizer->eos = first_known(reader, ends, sizeof ends / sizeof *ends);
}

static Status read_tokenizer(Reader *reader) {
    Tokenizer *tokenizer = reader->tokenizer;
    json_t *model = json_object_get(reader->root, "model");
    const ModelKind *kind = find_model(model);
    if (!kind) return refuse(reader, "model", text_of(model, "type"));
    tokenizer->continuation = tokenizer_copy("##");
    TRY(kind->read(reader, json_object_get(model, "vocab")));
    TRY(read_added(reader));
    tokenizer_index(tokenizer);
    TRY(kind->finish(reader, model));
    TRY(read_steps(reader, json_object_get(reader->root, "normalizer"), &tokenizer->normalizers));
    TRY(read_steps(reader, json_object_get(reader->root, "pre_tokenizer"), &tokenizer->splitters));
    TRY(read_post_processor(reader, json_object_get(reader->root, "post_processor")));
    read_decoder(tokenizer, json_object_get(reader->root, "decoder"));
    find_ends(reader);
    tokenizer_find_ends(tokenizer);
    return STATUS_OK;
}

Status tokenizer_from_json(const uint8_t *bytes, size_t length, const char *name, Tokenizer **out) {
    json_error_t error;
    json_t *root = json_loadb((const char *)bytes, length, JSON_ALLOW_NUL, &error);
    if (!root)
        return fail(STATUS_FORMAT, "%s is not a tokenizer: line %d: %s", name, error.line,
                    error.text);
    const json_t *vocabulary = json_object_get(json_object_get(root, "model"), "vocab");
    size_t pieces = json_object_size(vocabulary) + json_array_size(vocabulary) +
                    json_array_size(json_object_get(root, "added_tokens"));
    Reader reader = {tokenizer_new(), name, root, ID_GAPS_MAX + 4 * pieces};
    Status status = read_tokenizer(&reader);
    json_decref(root);
    if (status == STATUS_OK)
        *out = reader.tokenizer;
    else
        tokenizer_release(reader.tokenizer);
    return status;
}
