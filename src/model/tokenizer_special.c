// Special tokens: finding them in a text, and which of them end what a model says.
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "model/tokenizer_internal.h"

// --- finding

static int compare_lengths(const void *a, const void *b) {
    size_t one = *(const size_t *)a, other = *(const size_t *)b;
    return one > other ? -1 : one < other;
}

static bool is_special(const Piece *piece) {
    return piece->length > 0 && (piece->type == TOKEN_CONTROL || piece->type == TOKEN_USER ||
                                 piece->type == TOKEN_UNKNOWN);
}

// Of two special tokens with the same text the earlier id counts.
static void add_special(Tokenizer *tokenizer, Special *special, bool *seen) {
    const Piece *piece = &tokenizer->pieces[special->id];
    Special *earlier;
    HASH_FIND(hh, tokenizer->special_by_text, piece->bytes, piece->length, earlier);
    if (earlier) return;
    HASH_ADD_KEYPTR(hh, tokenizer->special_by_text, piece->bytes, piece->length, special);
    tokenizer->special_begins[(unsigned char)piece->bytes[0]] = true;
    if (!seen[piece->length]) VECTOR_PUSH(&tokenizer->special_lengths, piece->length);
    seen[piece->length] = true;
}

void tokenizer_index_specials(Tokenizer *tokenizer) {
    size_t count = 0, longest = 0;
    for (size_t id = 0; id < tokenizer->count; id++) {
        if (!is_special(&tokenizer->pieces[id])) continue;
        count++;
        if (tokenizer->pieces[id].length > longest) longest = tokenizer->pieces[id].length;
    }
    bool *seen = memory_allocate_zeroed(longest + 1, sizeof *seen);
    Special *next = tokenizer->specials = memory_allocate_zeroed(count + 1, sizeof *next);
    for (size_t id = 0; id < tokenizer->count; id++) {
        if (!is_special(&tokenizer->pieces[id])) continue;
        next->id = id;
        add_special(tokenizer, next++, seen);
    }
    free(seen);
    if (tokenizer->special_lengths.count == 0) return;
    qsort(tokenizer->special_lengths.items, tokenizer->special_lengths.count,
          sizeof *tokenizer->special_lengths.items, compare_lengths);
}

void tokenizer_free_specials(Tokenizer *tokenizer) {
    HASH_CLEAR(hh, tokenizer->special_by_text);
    free(tokenizer->specials);
    VECTOR_FREE(&tokenizer->special_lengths);
}

// Where the character that ends at a place begins.
static size_t character_before(const char *text, size_t at) {
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && ((unsigned char)text[begin] & 0xC0u) == 0x80u) begin--;
    return begin;
}

static bool is_word(const char *text, size_t length) {
    uint32_t codepoint;
    if (utf8_decode(text, length, &codepoint) == 0) return false;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) ||
           category == UTF8PROC_CATEGORY_PC;
}

static bool stands_alone(const char *text, size_t length, size_t begin, size_t end) {
    size_t before = begin > 0 ? character_before(text, begin) : 0;
    return !(begin > 0 && is_word(text + before, begin - before)) &&
           !is_word(text + end, length - end);
}

const Piece *tokenizer_special_at(const Tokenizer *tokenizer, const char *text, size_t length,
                                  size_t at) {
    if (!tokenizer->special_begins[(unsigned char)text[at]]) return NULL;
    for (size_t i = 0; i < tokenizer->special_lengths.count; i++) {
        size_t size = tokenizer->special_lengths.items[i];
        const Special *special = NULL;
        if (size <= length - at)
            HASH_FIND(hh, tokenizer->special_by_text, text + at, size, special);
        if (!special) continue;
        const Piece *piece = &tokenizer->pieces[special->id];
        if (!(piece->edges & EDGE_WORD) || stands_alone(text, length, at, at + size)) return piece;
    }
    return NULL;
}

// The bytes of the blank at a place; 0 when there is another character.
static size_t blank_at(const char *text, size_t length) {
    uint32_t codepoint;
    size_t size = utf8_decode(text, length, &codepoint);
    if (size == 0) return 0;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    bool blank = (codepoint >= '\t' && codepoint <= '\r') || codepoint == 0x85 ||
                 (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
    return blank ? size : 0;
}

size_t tokenizer_blanks_begin(const char *text, size_t low, size_t at) {
    while (at > low) {
        size_t before = character_before(text, at);
        if (before < low || blank_at(text + before, at - before) != at - before) break;
        at = before;
    }
    return at;
}

size_t tokenizer_blanks_end(const char *text, size_t length, size_t at) {
    for (size_t size; at < length && (size = blank_at(text + at, length - at)) > 0;) at += size;
    return at;
}

// --- ends

void tokenizer_add_end(Tokenizer *tokenizer, int64_t id) {
    if (id >= 0 && !tokenizer_is_end(tokenizer, id)) VECTOR_PUSH(&tokenizer->ends, id);
}

void tokenizer_end_with(Tokenizer *tokenizer, int64_t id) {
    if (id < 0 || (size_t)id >= tokenizer->count) return;
    tokenizer->eos = id;
    tokenizer_add_end(tokenizer, id);
}

static void add_end_called(Tokenizer *tokenizer, const char *name) {
    const Piece *piece = tokenizer_find(tokenizer, name, strlen(name));
    if (piece) tokenizer_add_end(tokenizer, piece - tokenizer->pieces);
}

// What models were trained to say at the end of a text, a turn or a call of a tool; files often
// name only one of them.
void tokenizer_find_ends(Tokenizer *tokenizer) {
    static const char *const names[] = {
        "<eos>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|end_of_turn|>",
        "<turn|>",
        "<|tool_response>",
        "<|eot|>",
        "<EOT>",
        "_<EOT>",
        "< EOT >",
        "<|END_OF_TURN_TOKEN|>",
        ("<\xEF\xBD\x9C"
         "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
    };
    tokenizer_add_end(tokenizer, tokenizer->eos);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) add_end_called(tokenizer, names[i]);
    // Where turns end in Gemma 4's way, it is a tag of HTML.
    if (!tokenizer_find(tokenizer, "<turn|>", strlen("<turn|>"))) add_end_called(tokenizer, "</s>");
}
