// A tokenizer at work: special tokens are cut out of a text, steps prepare what is between them,
// the model makes pieces of the words; and back. Knows no files.
#include "model/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/token_trie.h"
#include "model/tokenizer_internal.h"

int tokenizer_byte_value(const Piece *piece) {
    char digits[3] = {0};
    if (piece->length != 6 || memcmp(piece->bytes, "<0x", 3) != 0 || piece->bytes[5] != '>')
        return -1;
    memcpy(digits, piece->bytes + 3, 2);
    char *end;
    long value = strtol(digits, &end, 16);
    return end == digits + 2 ? (int)value : -1;
}

// Whether a mark follows another character somewhere in a piece.
static bool has_inner_mark(const Piece *piece) {
    bool marks = true;
    for (size_t i = 0; i < piece->length; i++) {
        bool mark = piece->length - i >= SPACE_MARK_BYTES &&
                    memcmp(piece->bytes + i, SPACE_MARK, SPACE_MARK_BYTES) == 0;
        if (mark && !marks) return true;
        marks = mark;
        if (mark) i += SPACE_MARK_BYTES - 1;
    }
    return false;
}

void tokenizer_index(Tokenizer *tokenizer) {
    tokenizer->marks_begin = true;
    for (int i = 0; i < 256; i++) tokenizer->byte_ids[i] = -1;
    for (size_t id = 0; id < tokenizer->count; id++) {
        Piece *piece = &tokenizer->pieces[id], *earlier;
        if (!piece->bytes) continue;
        bool joins = piece->type != TOKEN_CONTROL && piece->type != TOKEN_UNKNOWN;
        if (joins && has_inner_mark(piece)) tokenizer->marks_begin = false;
        if (piece->type == TOKEN_BYTE && tokenizer_byte_value(piece) >= 0)
            tokenizer->byte_ids[tokenizer_byte_value(piece)] = (int64_t)id;
        HASH_FIND(hh, tokenizer->by_text, piece->bytes, piece->length, earlier);
        if (!earlier) HASH_ADD_KEYPTR(hh, tokenizer->by_text, piece->bytes, piece->length, piece);
    }
    tokenizer_index_specials(tokenizer);
}

Tokenizer *tokenizer_new(void) {
    Tokenizer *tokenizer = memory_allocate_zeroed(1, sizeof *tokenizer);
    tokenizer->refs = 1;
    tokenizer->bos = tokenizer->eos = tokenizer->unknown = -1;
    return tokenizer;
}

Tokenizer *tokenizer_retain(Tokenizer *tokenizer) {
    ASSERT(tokenizer->refs > 0);
    tokenizer->refs++;
    return tokenizer;
}

static void release_steps(TextSteps *steps) {
    for (size_t i = 0; i < steps->count; i++) step_release(&steps->items[i]);
    VECTOR_FREE(steps);
}

void tokenizer_release(Tokenizer *tokenizer) {
    ASSERT(tokenizer->refs > 0);
    if (--tokenizer->refs > 0) return;
    HASH_CLEAR(hh, tokenizer->by_text);
    HASH_CLEAR(hh, tokenizer->pairs_by_ids);
    for (size_t i = 0; i < tokenizer->count; i++) free(tokenizer->pieces[i].bytes);
    free(tokenizer->pieces);
    free(tokenizer->pairs);
    tokenizer_free_specials(tokenizer);
    free(tokenizer->continuation);
    release_steps(&tokenizer->normalizers);
    release_steps(&tokenizer->splitters);
    VECTOR_FREE(&tokenizer->before);
    VECTOR_FREE(&tokenizer->after);
    VECTOR_FREE(&tokenizer->ends);
    token_trie_free(tokenizer->trie);
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

bool tokenizer_is_end(const Tokenizer *tokenizer, int64_t id) {
    for (size_t i = 0; i < tokenizer->ends.count; i++)
        if (tokenizer->ends.items[i] == id) return true;
    return false;
}

const Piece *tokenizer_find(const Tokenizer *tokenizer, const char *bytes, size_t length) {
    const Piece *piece;
    HASH_FIND(hh, tokenizer->by_text, bytes, length, piece);
    return piece;
}

// --- encoding

void tokenizer_push_id(TokenIds *out, int64_t id) {
    if (out->count == out->capacity)
        out->ids = vector_grow(out->ids, &out->capacity, sizeof *out->ids);
    out->ids[out->count++] = id;
}

static void push_ids(TokenIds *out, const int64_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) tokenizer_push_id(out, ids[i]);
}

static Status run_steps(const TextSteps *steps, Words *words) {
    for (size_t i = 0; i < steps->count; i++) TRY(steps->items[i].apply(&steps->items[i], words));
    return STATUS_OK;
}

// Text between special tokens.
static Status encode_segment(const Tokenizer *tokenizer, const char *bytes, size_t length,
                             bool at_start, TokenIds *out) {
    if (length == 0) return STATUS_OK;
    Words words = {.at_start = at_start};
    text_append(&words.text, bytes, length);
    words_end(&words);
    Status status = run_steps(&tokenizer->normalizers, &words);
    if (status == STATUS_OK) status = run_steps(&tokenizer->splitters, &words);
    for (size_t i = 0; i < words.ends.count && status == STATUS_OK; i++) {
        TextWord word = words_at(&words, i);
        status = tokenizer_go_on(i);
        if (status == STATUS_OK && word.length > 0)
            status = tokenizer->encode_word(tokenizer, word.bytes, word.length, out);
    }
    words_free(&words);
    return status;
}

Status tokenizer_encode(const Tokenizer *tokenizer, const char *bytes, size_t length,
                        bool add_special, TokenIds *out) {
    if (add_special) push_ids(out, tokenizer->before.items, tokenizer->before.count);
    size_t begin = 0;
    for (size_t at = 0; at < length;) {
        const Piece *special = tokenizer_special_at(tokenizer, bytes, length, at);
        if (!special) {
            TRY(tokenizer_go_on(at++));
            continue;
        }
        bool before = special->edges & EDGE_BLANKS_BEFORE;
        size_t end = before ? tokenizer_blanks_begin(bytes, begin, at) : at;
        ASSERT(special->length > 0 && end >= begin && end <= at);
        TRY(encode_segment(tokenizer, bytes + begin, end - begin, begin == 0, out));
        tokenizer_push_id(out, special - tokenizer->pieces);
        at += special->length;
        if (special->edges & EDGE_BLANKS_AFTER) at = tokenizer_blanks_end(bytes, length, at);
        begin = at;
    }
    TRY(encode_segment(tokenizer, bytes + begin, length - begin, begin == 0, out));
    if (add_special) push_ids(out, tokenizer->after.items, tokenizer->after.count);
    return STATUS_OK;
}

// --- decoding

// Marks are spaces; the first may be left out.
static void append_marked(const Piece *piece, bool trim, Text *out) {
    for (size_t i = 0; i < piece->length;) {
        bool mark = piece->length - i >= SPACE_MARK_BYTES &&
                    memcmp(piece->bytes + i, SPACE_MARK, SPACE_MARK_BYTES) == 0;
        if (!mark)
            text_append_char(out, piece->bytes[i]);
        else if (i > 0 || !trim)
            text_append_char(out, ' ');
        i += mark ? SPACE_MARK_BYTES : 1;
    }
}

// Each letter is a byte; pieces that were added to the vocabulary are text.
static void append_letters(const Piece *piece, Text *out) {
    for (size_t at = 0; at < piece->length;) {
        uint32_t letter;
        size_t size = utf8_decode(piece->bytes + at, piece->length - at, &letter);
        int byte = size && piece->type != TOKEN_USER ? step_byte_of_letter(letter) : -1;
        if (byte >= 0)
            text_append_char(out, (char)byte);
        else
            text_append(out, piece->bytes + at, size ? size : 1);
        at += size ? size : 1;
    }
}

// Continuations follow the word, other pieces a space, where no punctuation begins.
static void append_word(const Tokenizer *tokenizer, const Piece *piece, bool first, Text *out) {
    static const char *const close[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    size_t mark = strlen(tokenizer->continuation);
    if (piece->length > mark && memcmp(piece->bytes, tokenizer->continuation, mark) == 0 &&
        !first) {
        text_append(out, piece->bytes + mark, piece->length - mark);
        return;
    }
    bool joined = first;
    for (size_t i = 0; i < sizeof close / sizeof *close && tokenizer->tidy; i++)
        joined |= strcmp(close[i], piece->bytes) == 0;
    if (!joined) text_append_char(out, ' ');
    text_append(out, piece->bytes, piece->length);
}

Status tokenizer_check_id(const Tokenizer *tokenizer, int64_t id) {
    if (id >= 0 && id < (int64_t)tokenizer->count) return STATUS_OK;
    return fail(STATUS_INDEX, "token id %lld is out of range: the vocabulary has %zu tokens",
                (long long)id, tokenizer->count);
}

// The bytes that an id stands for. `first`: the space that encoding put in front is left out.
static Status append_piece(const Tokenizer *tokenizer, int64_t id, bool skip_special, bool first,
                           Text *out) {
    TRY(tokenizer_check_id(tokenizer, id));
    const Piece *piece = &tokenizer->pieces[id];
    if (!piece->bytes) return STATUS_OK; // a gap between the ids
    if (piece->type == TOKEN_BYTE && tokenizer_byte_value(piece) >= 0) {
        text_append_char(out, (char)tokenizer_byte_value(piece));
        return STATUS_OK;
    }
    if (piece->type == TOKEN_CONTROL || piece->type == TOKEN_UNKNOWN) {
        if (!skip_special) text_append(out, piece->bytes, piece->length);
        return STATUS_OK;
    }
    if (tokenizer->decode_style == DECODE_WORDS)
        append_word(tokenizer, piece, first, out);
    else if (tokenizer->decode_style == DECODE_BYTES)
        append_letters(piece, out);
    else
        append_marked(piece, first && tokenizer->trim_start, out);
    return STATUS_OK;
}

static bool is_special(const Tokenizer *tokenizer, int64_t id) {
    return id >= 0 && id < (int64_t)tokenizer->count &&
           (tokenizer->pieces[id].type == TOKEN_CONTROL ||
            tokenizer->pieces[id].type == TOKEN_UNKNOWN);
}

Status tokenizer_decode(const Tokenizer *tokenizer, const int64_t *ids, size_t count,
                        bool skip_special, Text *out) {
    SCOPED_TEXT(raw);
    Status status = STATUS_OK;
    bool first = true;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = append_piece(tokenizer, ids[i], skip_special, first, &raw);
        bool after = is_special(tokenizer, ids[i]);
        first = after ? first || tokenizer->trim_after_special : false;
    }
    for (size_t at = 0; at < raw.length && status == STATUS_OK;) {
        uint32_t codepoint;
        size_t length = utf8_decode(raw.bytes + at, raw.length - at, &codepoint);
        text_append_codepoint(out, length ? codepoint : 0xFFFD);
        at += length ? length : 1;
    }
    return status;
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

void tokenizer_token_bytes(const Tokenizer *tokenizer, int64_t id, Text *out) {
    if (id >= 0 && id < (int64_t)tokenizer->count)
        (void)append_piece(tokenizer, id, true, false, out);
}

Status tokenizer_decode_next(const Tokenizer *tokenizer, TokenStream *stream, int64_t id,
                             bool skip_special, Text *out) {
    SCOPED_TEXT(raw);
    text_append(&raw, stream->pending, stream->pending_length);
    Status status = append_piece(tokenizer, id, skip_special, false, &raw);
    if (status != STATUS_OK) return status;
    stream->pending_length = 0;
    for (size_t at = 0; at < raw.length;) {
        uint32_t codepoint;
        size_t length = utf8_decode(raw.bytes + at, raw.length - at, &codepoint);
        if (length == 0 && unfinished(raw.bytes + at, raw.length - at)) {
            stream->pending_length = raw.length - at;
            ASSERT(stream->pending_length < sizeof stream->pending);
            memcpy(stream->pending, raw.bytes + at, stream->pending_length);
            break;
        }
        text_append_codepoint(out, length ? codepoint : 0xFFFD);
        at += length ? length : 1;
    }
    return STATUS_OK;
}
