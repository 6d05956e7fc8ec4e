// The SentencePiece-style tokenizer: bigrams in a heap by score, merged until none is a piece.
#include "model/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/utf8.h"

// Numbers of tokenizer.ggml.token_type.
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_USER = 4, TOKEN_BYTE = 6 };

static const char space_mark[] = "\xE2\x96\x81"; // U+2581 stands for a space in pieces
enum { SPACE_MARK_BYTES = sizeof space_mark - 1 };

typedef struct Piece {
    char *bytes;
    size_t length;
    float score;
    int type;
    UT_hash_handle hh;
} Piece;

struct Tokenizer {
    int refs;
    Piece *pieces; // by id
    size_t count;
    Piece *by_text;
    size_t *specials; // ids of control and user-defined pieces, longest first
    size_t special_count;
    int64_t byte_ids[256]; // -1 where the vocabulary has no piece for a byte
    int64_t bos, eos, unknown;
    bool add_bos, add_space;
    char pending[4]; // an unfinished character of tokenizer_decode_next
    size_t pending_length;
};

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

static int byte_value(const Piece *piece) {
    char digits[3] = {0};
    if (piece->length != 6 || memcmp(piece->bytes, "<0x", 3) != 0 || piece->bytes[5] != '>')
        return -1;
    memcpy(digits, piece->bytes + 3, 2);
    char *end;
    long value = strtol(digits, &end, 16);
    return end == digits + 2 ? (int)value : -1;
}

static void index_pieces(Tokenizer *tokenizer) {
    for (int i = 0; i < 256; i++) tokenizer->byte_ids[i] = -1;
    tokenizer->specials = memory_allocate(tokenizer->count * sizeof *tokenizer->specials);
    for (size_t id = 0; id < tokenizer->count; id++) {
        Piece *piece = &tokenizer->pieces[id], *earlier;
        if (piece->type == TOKEN_BYTE && byte_value(piece) >= 0)
            tokenizer->byte_ids[byte_value(piece)] = (int64_t)id;
        HASH_FIND(hh, tokenizer->by_text, piece->bytes, piece->length, earlier);
        if (!earlier) HASH_ADD_KEYPTR(hh, tokenizer->by_text, piece->bytes, piece->length, piece);
        if ((piece->type == TOKEN_CONTROL || piece->type == TOKEN_USER) && piece->length > 0)
            tokenizer->specials[tokenizer->special_count++] = id;
    }
    // Insertion sort, longest first: there are few.
    for (size_t i = 1; i < tokenizer->special_count; i++)
        for (size_t j = i; j > 0 && tokenizer->pieces[tokenizer->specials[j]].length >
                                        tokenizer->pieces[tokenizer->specials[j - 1]].length;
             j--) {
            size_t other = tokenizer->specials[j];
            tokenizer->specials[j] = tokenizer->specials[j - 1];
            tokenizer->specials[j - 1] = other;
        }
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
    index_pieces(tokenizer);
    tokenizer->bos = read_id(file, "tokenizer.ggml.bos_token_id", tokenizer->count);
    tokenizer->eos = read_id(file, "tokenizer.ggml.eos_token_id", tokenizer->count);
    tokenizer->unknown = read_id(file, "tokenizer.ggml.unknown_token_id", tokenizer->count);
    tokenizer->add_bos = read_flag(file, "tokenizer.ggml.add_bos_token", true);
    tokenizer->add_space = read_flag(file, "tokenizer.ggml.add_space_prefix", true);
    return STATUS_OK;
}

Status tokenizer_from_gguf(const GgufFile *file, const char *name, Tokenizer **out) {
    Tokenizer *tokenizer = memory_allocate_zeroed(1, sizeof *tokenizer);
    tokenizer->refs = 1;
    Status status = load(tokenizer, file, name);
    if (status == STATUS_OK)
        *out = tokenizer;
    else
        tokenizer_release(tokenizer);
    return status;
}

Tokenizer *tokenizer_retain(Tokenizer *tokenizer) {
    tokenizer->refs++;
    return tokenizer;
}

void tokenizer_release(Tokenizer *tokenizer) {
    if (--tokenizer->refs > 0) return;
    HASH_CLEAR(hh, tokenizer->by_text);
    for (size_t i = 0; i < tokenizer->count; i++) free(tokenizer->pieces[i].bytes);
    free(tokenizer->pieces);
    free(tokenizer->specials);
    free(tokenizer);
}

int64_t tokenizer_size(const Tokenizer *tokenizer) {
    return (int64_t)tokenizer->count;
}

int64_t tokenizer_bos(const Tokenizer *tokenizer) {
    return tokenizer->bos;
}

int64_t tokenizer_eos(const Tokenizer *tokenizer) {
    return tokenizer->eos;
}

// --- encoding

// A run of the text that is one piece so far; merged runs grow to the right and absorb the next.
typedef struct Symbol {
    size_t begin, length; // 0 length: absorbed
    int64_t previous, next;
} Symbol;

// Two neighbouring symbols whose joined text is a piece.
typedef struct Bigram {
    int64_t left, right;
    size_t length; // of both when pushed: stale when it no longer fits
    float score;
} Bigram;

typedef struct Merger {
    const Tokenizer *tokenizer;
    const char *text;
    VECTOR(Symbol) symbols;
    VECTOR(Bigram) heap;
} Merger;

static const Piece *find_piece(const Tokenizer *tokenizer, const char *bytes, size_t length) {
    const Piece *piece;
    HASH_FIND(hh, tokenizer->by_text, bytes, length, piece);
    return piece;
}

// Highest score first; equal scores merge from the left.
static bool bigram_before(const Bigram *a, const Bigram *b) {
    if (a->score != b->score) return a->score > b->score;
    return a->left < b->left;
}

static void heap_swap(Bigram *heap, size_t a, size_t b) {
    Bigram other = heap[a];
    heap[a] = heap[b];
    heap[b] = other;
}

static void heap_push(Merger *merger, Bigram bigram) {
    VECTOR_PUSH(&merger->heap, bigram);
    Bigram *heap = merger->heap.items;
    for (size_t i = merger->heap.count - 1; i > 0 && bigram_before(&heap[i], &heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        heap_swap(heap, i, (i - 1) / 2);
}

static Bigram heap_pop(Merger *merger) {
    Bigram *heap = merger->heap.items;
    Bigram top = heap[0];
    heap[0] = heap[--merger->heap.count];
    size_t count = merger->heap.count;
    for (size_t i = 0, child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && bigram_before(&heap[child + 1], &heap[child])) child++;
        if (!bigram_before(&heap[child], &heap[i])) break;
        heap_swap(heap, i, child);
    }
    return top;
}

static void try_bigram(Merger *merger, int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const Symbol *symbols = merger->symbols.items;
    size_t length = symbols[left].length + symbols[right].length;
    const Piece *piece = find_piece(merger->tokenizer, merger->text + symbols[left].begin, length);
    if (piece && piece->type != TOKEN_CONTROL && piece->type != TOKEN_UNKNOWN)
        heap_push(merger, (Bigram){left, right, length, piece->score});
}

static void merge_all(Merger *merger) {
    while (merger->heap.count > 0) {
        Bigram bigram = heap_pop(merger);
        Symbol *left = &merger->symbols.items[bigram.left];
        Symbol *right = &merger->symbols.items[bigram.right];
        if (!left->length || !right->length || left->length + right->length != bigram.length)
            continue;
        left->length = bigram.length;
        right->length = 0;
        left->next = right->next;
        if (right->next >= 0) merger->symbols.items[right->next].previous = bigram.left;
        try_bigram(merger, left->previous, bigram.left);
        try_bigram(merger, bigram.left, left->next);
    }
}

static void push_id(TokenList *out, int64_t id) {
    if (out->count == out->capacity)
        out->ids = vector_grow(out->ids, &out->capacity, sizeof *out->ids);
    out->ids[out->count++] = id;
}

// A symbol that is no piece becomes its bytes, or the unknown token where a byte has no piece.
static void push_symbol(const Tokenizer *tokenizer, const char *bytes, size_t length,
                        TokenList *out) {
    const Piece *piece = find_piece(tokenizer, bytes, length);
    if (piece) {
        push_id(out, piece - tokenizer->pieces);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        int64_t id = tokenizer->byte_ids[(unsigned char)bytes[i]];
        if (id < 0) id = tokenizer->unknown;
        if (id >= 0) push_id(out, id);
    }
}

// Text without special tokens; spaces are already marks.
static void encode_plain(const Tokenizer *tokenizer, const Text *text, TokenList *out) {
    Merger merger = {.tokenizer = tokenizer, .text = text_get(text)};
    for (size_t at = 0; at < text->length;) {
        uint32_t codepoint;
        size_t length = utf8_decode(merger.text + at, text->length - at, &codepoint);
        if (length == 0) length = 1;
        int64_t index = (int64_t)merger.symbols.count;
        bool last = at + length == text->length;
        VECTOR_PUSH(&merger.symbols, ((Symbol){at, length, index - 1, last ? -1 : index + 1}));
        at += length;
    }
    for (size_t i = 1; i < merger.symbols.count; i++)
        try_bigram(&merger, (int64_t)i - 1, (int64_t)i);
    merge_all(&merger);
    for (size_t i = 0; i < merger.symbols.count; i++) {
        const Symbol *symbol = &merger.symbols.items[i];
        if (symbol->length)
            push_symbol(tokenizer, merger.text + symbol->begin, symbol->length, out);
    }
    VECTOR_FREE(&merger.symbols);
    VECTOR_FREE(&merger.heap);
}

static void encode_segment(const Tokenizer *tokenizer, const char *bytes, size_t length,
                           TokenList *out) {
    if (length == 0) return;
    Text marked = {0};
    if (tokenizer->add_space) text_append(&marked, space_mark, SPACE_MARK_BYTES);
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == ' ')
            text_append(&marked, space_mark, SPACE_MARK_BYTES);
        else
            text_append_char(&marked, bytes[i]);
    }
    encode_plain(tokenizer, &marked, out);
    text_free(&marked);
}

// The special token that begins here, or the number of pieces.
static size_t special_at(const Tokenizer *tokenizer, const char *bytes, size_t length) {
    for (size_t i = 0; i < tokenizer->special_count; i++) {
        const Piece *piece = &tokenizer->pieces[tokenizer->specials[i]];
        if (piece->length <= length && memcmp(piece->bytes, bytes, piece->length) == 0)
            return tokenizer->specials[i];
    }
    return tokenizer->count;
}

Status tokenizer_encode(const Tokenizer *tokenizer, const char *bytes, size_t length,
                        bool add_special, TokenList *out) {
    if (add_special && tokenizer->add_bos && tokenizer->bos >= 0) push_id(out, tokenizer->bos);
    size_t begin = 0;
    for (size_t at = 0; at < length;) {
        size_t special = special_at(tokenizer, bytes + at, length - at);
        if (special == tokenizer->count) {
            at++;
            continue;
        }
        encode_segment(tokenizer, bytes + begin, at - begin, out);
        push_id(out, (int64_t)special);
        at += tokenizer->pieces[special].length;
        begin = at;
    }
    encode_segment(tokenizer, bytes + begin, length - begin, out);
    return STATUS_OK;
}

// --- decoding

// The bytes that an id stands for. `first`: the space that encoding put in front is left out.
static Status append_piece(const Tokenizer *tokenizer, int64_t id, bool skip_special, bool first,
                           Text *out) {
    if (id < 0 || id >= (int64_t)tokenizer->count)
        return fail(STATUS_INDEX, "token id %lld is out of range: the vocabulary has %zu tokens",
                    (long long)id, tokenizer->count);
    const Piece *piece = &tokenizer->pieces[id];
    if (piece->type == TOKEN_BYTE && byte_value(piece) >= 0) {
        text_append_char(out, (char)byte_value(piece));
        return STATUS_OK;
    }
    if (piece->type == TOKEN_CONTROL || piece->type == TOKEN_UNKNOWN) {
        if (!skip_special) text_append(out, piece->bytes, piece->length);
        return STATUS_OK;
    }
    bool trim = first && tokenizer->add_space;
    for (size_t i = 0; i < piece->length;) {
        bool mark = piece->length - i >= SPACE_MARK_BYTES &&
                    memcmp(piece->bytes + i, space_mark, SPACE_MARK_BYTES) == 0;
        if (!mark)
            text_append_char(out, piece->bytes[i]);
        else if (i > 0 || !trim)
            text_append_char(out, ' ');
        i += mark ? SPACE_MARK_BYTES : 1;
    }
    return STATUS_OK;
}

static bool is_special(const Tokenizer *tokenizer, int64_t id) {
    return id >= 0 && id < (int64_t)tokenizer->count &&
           (tokenizer->pieces[id].type == TOKEN_CONTROL ||
            tokenizer->pieces[id].type == TOKEN_UNKNOWN);
}

Status tokenizer_decode(const Tokenizer *tokenizer, const int64_t *ids, size_t count,
                        bool skip_special, Text *out) {
    Text raw = {0};
    Status status = STATUS_OK;
    bool first = true;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = append_piece(tokenizer, ids[i], skip_special, first, &raw);
        first = is_special(tokenizer, ids[i]);
    }
    for (size_t at = 0; at < raw.length && status == STATUS_OK;) {
        uint32_t codepoint;
        size_t length = utf8_decode(raw.bytes + at, raw.length - at, &codepoint);
        text_append_codepoint(out, length ? codepoint : 0xFFFD);
        at += length ? length : 1;
    }
    text_free(&raw);
    return status;
}

void tokenizer_decode_reset(Tokenizer *tokenizer) {
    tokenizer->pending_length = 0;
}

// How many bytes the character that begins with this byte should have; 0 when none begins so.
static size_t expected_bytes(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead < 0xE0) return 2;
    if (lead >= 0xE0 && lead < 0xF0) return 3;
    return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

static bool unfinished(const char *bytes, size_t length) {
    if (length >= expected_bytes((unsigned char)bytes[0])) return false;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)bytes[i] & 0xC0u) != 0x80u) return false;
    return true;
}

Status tokenizer_decode_next(Tokenizer *tokenizer, int64_t id, bool skip_special, Text *out) {
    Text raw = {0};
    text_append(&raw, tokenizer->pending, tokenizer->pending_length);
    Status status = append_piece(tokenizer, id, skip_special, false, &raw);
    if (status != STATUS_OK) {
        text_free(&raw);
        return status;
    }
    tokenizer->pending_length = 0;
    for (size_t at = 0; at < raw.length;) {
        uint32_t codepoint;
        size_t length = utf8_decode(raw.bytes + at, raw.length - at, &codepoint);
        if (length == 0 && unfinished(raw.bytes + at, raw.length - at)) {
            tokenizer->pending_length = raw.length - at;
            memcpy(tokenizer->pending, raw.bytes + at, tokenizer->pending_length);
            break;
        }
        text_append_codepoint(out, length ? codepoint : 0xFFFD);
        at += length ? length : 1;
    }
    text_free(&raw);
    return STATUS_OK;
}
