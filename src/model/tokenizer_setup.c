// What the readers of GGUF files and of tokenizer.json have in common: steps, pairs, scores.
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "model/tokenizer_internal.h"

char *tokenizer_copy(const char *text) {
    return memory_copy_string(text, strlen(text));
}

void tokenizer_push_step(TextSteps *steps, TextStep step) {
    VECTOR_PUSH(steps, step);
}

Status tokenizer_push_split(TextSteps *steps, const char *pattern, Splitting splitting,
                            bool invert) {
    TextStep step = {.apply = step_split, .option = (int)splitting, .flag = invert};
    TRY(step_compile(&step, pattern, strlen(pattern)));
    tokenizer_push_step(steps, step);
    return STATUS_OK;
}

bool tokenizer_has_capitals(const Tokenizer *tokenizer) {
    bool all = true;
    for (char letter = 'A'; letter <= 'Z' && all; letter++)
        all = tokenizer_find(tokenizer, &letter, 1) != NULL;
    return all;
}

Status tokenizer_push_bert(Tokenizer *tokenizer, bool capitals) {
    TextSteps *changes = &tokenizer->normalizers;
    tokenizer_push_step(changes, (TextStep){.apply = step_clean});
    tokenizer_push_step(changes, (TextStep){.apply = step_space_ideographs});
    TextStep decompose = {.apply = step_unicode_form,
                          .option = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE};
    if (!capitals) {
        tokenizer_push_step(changes, decompose);
        tokenizer_push_step(changes, (TextStep){.apply = step_remove_accents});
        tokenizer_push_step(changes, (TextStep){.apply = step_lowercase});
    }
    TRY(tokenizer_push_split(&tokenizer->splitters, "\\s+", SPLIT_REMOVED, false));
    return tokenizer_push_split(&tokenizer->splitters, STEP_PUNCTUATION, SPLIT_ISOLATED, false);
}

bool tokenizer_is_plain(const Piece *piece) {
    bool bracketed =
        piece->length > 1 && piece->bytes[0] == '[' && piece->bytes[piece->length - 1] == ']';
    return piece->type == TOKEN_CONTROL || piece->type == TOKEN_UNKNOWN || bracketed;
}

void tokenizer_begin_pairs(Tokenizer *tokenizer, size_t count) {
    tokenizer->pairs = memory_allocate_zeroed(count + 1, sizeof *tokenizer->pairs);
    tokenizer->pair_count = count;
}

// Of two equal pairs the first counts.
bool tokenizer_add_pair(Tokenizer *tokenizer, size_t index, const Piece *left, const Piece *right) {
    if (!left || !right) return false;
    MergePair *pair = &tokenizer->pairs[index], *earlier;
    pair->ids.left = left - tokenizer->pieces;
    pair->ids.right = right - tokenizer->pieces;
    pair->score = -(float)index;
    SCOPED_TEXT(both);
    text_append(&both, left->bytes, left->length);
    text_append(&both, right->bytes, right->length);
    pair->joined = tokenizer_find(tokenizer, text_get(&both), both.length);
    HASH_FIND(hh, tokenizer->pairs_by_ids, &pair->ids, sizeof pair->ids, earlier);
    if (!earlier) HASH_ADD(hh, tokenizer->pairs_by_ids, ids, sizeof pair->ids, pair);
    return true;
}

void tokenizer_prepare_unigram(Tokenizer *tokenizer) {
    float lowest = 0;
    tokenizer->longest = 1;
    for (size_t i = 0; i < tokenizer->count; i++) {
        const Piece *piece = &tokenizer->pieces[i];
        if (piece->type == TOKEN_NORMAL) lowest = fminf(lowest, piece->score);
        if (piece->length > tokenizer->longest) tokenizer->longest = piece->length;
    }
    tokenizer->unknown_score = lowest - 10.0f; // as SentencePiece has it
    tokenizer->encode_word = tokenizer_encode_likeliest;
    tokenizer->fuse_unknown = true;
}
