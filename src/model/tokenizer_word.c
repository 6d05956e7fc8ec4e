// How a word becomes pieces: by joining neighbours (BPE), by the longest match (WordPiece), and by
// the likeliest cut (Unigram). Knows no files.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/tokenizer_internal.h"

// A run of the text that is one piece so far; merged runs grow to the right and absorb the next.
typedef struct Symbol {
    size_t begin, length; // 0 length: absorbed
    int64_t previous, next;
    const Piece *piece; // NULL: a character that is none
} Symbol;

// Two neighbouring symbols whose joined text is a piece.
typedef struct Bigram {
    int64_t left, right;
    size_t length; // of both when pushed: stale when it no longer fits
    float score;
    const Piece *joined;
} Bigram;

typedef struct Merger {
    const Tokenizer *tokenizer;
    const char *text;
    VECTOR(Symbol) symbols;
    VECTOR(Bigram) heap;
} Merger;

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
    ASSERT(merger->heap.count > 0);
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

// How soon two neighbours join, and what they become: by the pair where the vocabulary lists pairs,
// else by the score of what they make. False: never.
static bool find_joined(const Merger *merger, const Symbol *left, const Symbol *right,
                        Bigram *out) {
    const Tokenizer *tokenizer = merger->tokenizer;
    if (tokenizer->pairs) {
        if (!left->piece || !right->piece) return false;
        MergePair key = {.ids = {left->piece - tokenizer->pieces,
                                 right->piece - tokenizer->pieces}},
                  *pair;
        HASH_FIND(hh, tokenizer->pairs_by_ids, &key.ids, sizeof key.ids, pair);
        if (!pair) return false;
        out->score = pair->score;
        out->joined = pair->joined;
    } else {
        out->joined = tokenizer_find(tokenizer, merger->text + left->begin, out->length);
        out->score = out->joined ? out->joined->score : 0;
    }
    return out->joined && out->joined->type != TOKEN_CONTROL && out->joined->type != TOKEN_UNKNOWN;
}

static void try_bigram(Merger *merger, int64_t left, int64_t right) {
    if (left < 0 || right < 0) return;
    const Symbol *one = &merger->symbols.items[left], *other = &merger->symbols.items[right];
    ASSERT(one->begin + one->length == other->begin);
    Bigram bigram = {.left = left, .right = right, .length = one->length + other->length};
    if (find_joined(merger, one, other, &bigram)) heap_push(merger, bigram);
}

static Status merge_all(Merger *merger) {
    for (size_t i = 0; merger->heap.count > 0; i++) {
        TRY(tokenizer_go_on(i));
        Bigram bigram = heap_pop(merger);
        Symbol *left = &merger->symbols.items[bigram.left];
        Symbol *right = &merger->symbols.items[bigram.right];
        if (!left->length || !right->length || left->length + right->length != bigram.length)
            continue;
        ASSERT(left->next == bigram.right);
        left->length = bigram.length;
        left->piece = bigram.joined;
        right->length = 0;
        left->next = right->next;
        if (right->next >= 0) merger->symbols.items[right->next].previous = bigram.left;
        try_bigram(merger, left->previous, bigram.left);
        try_bigram(merger, bigram.left, left->next);
    }
    return STATUS_OK;
}

static void push_unknown(const Tokenizer *tokenizer, TokenIds *out) {
    bool again = out->count > 0 && out->ids[out->count - 1] == tokenizer->unknown;
    if (tokenizer->unknown >= 0 && !(tokenizer->fuse_unknown && again))
        tokenizer_push_id(out, tokenizer->unknown);
}

// What is not a piece becomes its bytes, or the unknown token.
static void push_piece(const Tokenizer *tokenizer, const Piece *piece, const char *bytes,
                       size_t length, TokenIds *out) {
    if (piece) {
        tokenizer_push_id(out, piece - tokenizer->pieces);
    } else if (!tokenizer->byte_fallback) {
        push_unknown(tokenizer, out);
    } else {
        for (size_t i = 0; i < length; i++) {
            int64_t id = tokenizer->byte_ids[(unsigned char)bytes[i]];
            if (id >= 0)
                tokenizer_push_id(out, id);
            else
                push_unknown(tokenizer, out);
        }
    }
}

// The character at a place; a byte that is none counts as one.
static size_t character_at(const char *bytes, size_t length) {
    uint32_t codepoint;
    size_t size = utf8_decode(bytes, length, &codepoint);
    return size ? size : 1;
}

// Where the next run of marks begins, or the end. Where marks only begin pieces, none crosses it.
static size_t next_marks(const char *bytes, size_t length, size_t at) {
    bool marks = true;
    for (; at < length; at++) {
        bool mark = length - at >= SPACE_MARK_BYTES &&
                    memcmp(bytes + at, SPACE_MARK, SPACE_MARK_BYTES) == 0;
        if (mark && !marks) return at;
        marks = mark;
        if (mark) at += SPACE_MARK_BYTES - 1;
    }
    return length;
}

static Status merge_word(Merger *merger, const char *bytes, size_t length, TokenIds *out) {
    const Tokenizer *tokenizer = merger->tokenizer;
    merger->text = bytes;
    merger->symbols.count = merger->heap.count = 0;
    for (size_t at = 0, size; at < length; at += size) {
        size = character_at(bytes + at, length - at);
        int64_t index = (int64_t)merger->symbols.count;
        bool last = at + size == length;
        const Piece *piece = tokenizer_find(tokenizer, bytes + at, size);
        VECTOR_PUSH(&merger->symbols,
                    ((Symbol){at, size, index - 1, last ? -1 : index + 1, piece}));
    }
    for (size_t i = 1; i < merger->symbols.count; i++)
        try_bigram(merger, (int64_t)i - 1, (int64_t)i);
    TRY(merge_all(merger));
    for (size_t i = 0; i < merger->symbols.count; i++) {
        const Symbol *symbol = &merger->symbols.items[i];
        if (symbol->length)
            push_piece(tokenizer, symbol->piece, bytes + symbol->begin, symbol->length, out);
    }
    return STATUS_OK;
}

Status tokenizer_encode_merging(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                TokenIds *out) {
    const Piece *whole = tokenizer->whole_words ? tokenizer_find(tokenizer, bytes, length) : NULL;
    if (whole) {
        tokenizer_push_id(out, whole - tokenizer->pieces);
        return STATUS_OK;
    }
    Merger merger = {.tokenizer = tokenizer};
    Status status = STATUS_OK;
    for (size_t begin = 0, end, count = 0; status == STATUS_OK && begin < length; begin = end) {
        end = tokenizer->marks_begin ? next_marks(bytes, length, begin) : length;
        status = tokenizer_go_on(count++);
        if (status == STATUS_OK) status = merge_word(&merger, bytes + begin, end - begin, out);
    }
    VECTOR_FREE(&merger.symbols);
    VECTOR_FREE(&merger.heap);
    return status;
}

// --- WordPiece: the longest piece from the left, again and again

// The longest piece that a text begins with; inside a word pieces are marked as continuations.
static const Piece *longest_piece(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                  bool inside) {
    SCOPED_TEXT(text);
    if (inside) text_append_string(&text, tokenizer->continuation);
    size_t mark = text.length;
    text_append(&text, bytes, length);
    const Piece *piece = NULL;
    for (size_t end = text.length; end > mark && !piece; end--)
        piece = tokenizer_find(tokenizer, text_get(&text), end);
    return piece;
}

Status tokenizer_encode_longest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                TokenIds *out) {
    size_t begin = out->count, at = 0;
    if (utf8_count(bytes, length) <= tokenizer->word_max) {
        while (at < length) {
            const Piece *piece = longest_piece(tokenizer, bytes + at, length - at, at > 0);
            if (!piece) break;
            ASSERT(piece->length > (at > 0 ? strlen(tokenizer->continuation) : 0));
            tokenizer_push_id(out, piece - tokenizer->pieces);
            at += piece->length - (at > 0 ? strlen(tokenizer->continuation) : 0);
        }
    }
    if (at == length) return STATUS_OK;
    out->count = begin; // a word that cannot be cut to its end is unknown as a whole
    if (tokenizer->unknown >= 0) tokenizer_push_id(out, tokenizer->unknown);
    return STATUS_OK;
}

// --- Unigram: the cut whose pieces' scores have the greatest sum

typedef struct Best { // the best way to this byte
    double score;
    size_t begin; // of its last piece
    const Piece *piece;
} Best;

static void offer(Best *best, double score, size_t begin, const Piece *piece) {
    if (score > best->score) *best = (Best){score, begin, piece};
}

// Fills the best way to each byte.
static Status find_best(const Tokenizer *tokenizer, const char *bytes, size_t length, Best *best) {
    size_t longest = tokenizer->longest;
    for (size_t i = 0; i <= length; i++) best[i] = (Best){-INFINITY, 0, NULL};
    best[0].score = 0;
    size_t count = 0;
    for (size_t at = 0, size; at < length; at += size) {
        TRY(tokenizer_go_on(count++));
        size = character_at(bytes + at, length - at);
        bool single = false;
        for (size_t end = size; at + end <= length && end <= longest;) {
            const Piece *piece = tokenizer_find(tokenizer, bytes + at, end);
            bool usable = piece && piece->type != TOKEN_CONTROL && piece->type != TOKEN_UNKNOWN;
            if (usable) offer(&best[at + end], best[at].score + (double)piece->score, at, piece);
            single |= usable && end == size;
            if (at + end == length) break;
            end += character_at(bytes + at + end, length - at - end);
        }
        if (!single)
            offer(&best[at + size], best[at].score + (double)tokenizer->unknown_score, at, NULL);
    }
    return STATUS_OK;
}

Status tokenizer_encode_likeliest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                  TokenIds *out) {
    SCOPED_MEMORY Best *best = memory_allocate((length + 1) * sizeof *best);
    size_t *cuts = memory_allocate((length + 1) * sizeof *cuts), count = 0;
    Status status = find_best(tokenizer, bytes, length, best);
    for (size_t end = length; status == STATUS_OK && end > 0; end = best[end].begin)
        cuts[count++] = end;
    for (size_t i = count; i-- > 0;) {
        const Best *last = &best[cuts[i]];
        ASSERT(last->begin < cuts[i]);
        push_piece(tokenizer, last->piece, bytes + last->begin, cuts[i] - last->begin, out);
    }
    free(cuts);
    return status;
}
