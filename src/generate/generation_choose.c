// Which token comes next: what the constraint allows, what the samplers choose of it, and whether
// the text can still be completed after it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/foretell.h"
#include "generate/generation_internal.h"
#include "model/token_trie.h"

static const TokenTrie *vocabulary_of(const Generation *generation) {
    return tokenizer_trie(generation->sequence->network->tokenizer);
}

static bool mask_has(const uint64_t *mask, int64_t id) {
    return mask[id / 64] >> (id % 64) & 1;
}

static void mask_clear(uint64_t *mask, int64_t id) {
    mask[id / 64] &= ~(1ull << (id % 64));
}

// --- where a token leads

// Where the bytes after the trigger begin, when it ends in the last `added` bytes of the text.
static bool trigger_ends(const Text *text, size_t added, const char *trigger, size_t *rest) {
    ASSERT(added <= text->length);
    size_t length = strlen(trigger);
    size_t first = text->length - added;
    first = first >= length ? first - length + 1 : 0;
    for (size_t at = first; at + length <= text->length; at++)
        if (memcmp(text->bytes + at, trigger, length) == 0) {
            *rest = at + length;
            return true;
        }
    return false;
}

// The constraint's place after a token; false when the token cannot come, because it is refused or
// the tokens that are left could not complete what it begins.
static bool lead(Generation *generation, int64_t id, ConstraintState *place, bool *begun) {
    GenerationState *state = generation->state;
    Constraint *constraint = state->options.constraint;
    const TokenTrie *vocabulary = vocabulary_of(generation);
    ASSERT(id >= 0 && id < vocabulary->size);
    const char *bytes = vocabulary->bytes + vocabulary->starts[id];
    size_t length = vocabulary->starts[id + 1] - vocabulary->starts[id], rest;
    *place = state->place;
    *begun = state->constrained;
    if (generation_is_end(generation, id))
        return !*begun || constraint->type->shortest(constraint, *place) == 0;
    if (*begun) {
        *place = constraint->type->advance(constraint, *place, bytes, length);
    } else {
        size_t before = state->raw.length;
        text_append(&state->raw, bytes, length);
        *begun = trigger_ends(&state->raw, length, state->trigger, &rest);
        if (*begun)
            *place = constraint->type->advance(constraint, constraint->type->begin(constraint),
                                               state->raw.bytes + rest, state->raw.length - rest);
        state->raw.length = before;
    }
    if (!*begun) return true;
    int64_t left = state->max_tokens - (int64_t)generation->count - 1;
    return *place != 0 && constraint->type->shortest(constraint, *place) <= left;
}

static void move_on(Generation *generation, int64_t id) {
    ASSERT(id >= 0);
    GenerationState *state = generation->state;
    ConstraintState place;
    bool begun;
    (void)lead(generation, id, &place, &begun);
    if (!state->constrained) {
        const TokenTrie *vocabulary = vocabulary_of(generation);
        text_append(&state->raw, vocabulary->bytes + vocabulary->starts[id],
                    vocabulary->starts[id + 1] - vocabulary->starts[id]);
    }
    state->constrained = begun;
    state->place = place;
}

// --- masks

static void allow_all(const TokenTrie *vocabulary, uint64_t *mask) {
    for (int64_t id = 0; id < vocabulary->size; id++) mask[id / 64] |= 1ull << (id % 64);
}

static void first_mask(const Generation *generation, uint64_t *mask) {
    const GenerationState *state = generation->state;
    Constraint *constraint = state->options.constraint;
    const TokenTrie *vocabulary = vocabulary_of(generation);
    if (!state->constrained) {
        allow_all(vocabulary, mask);
        return;
    }
    const uint64_t *allowed = constraint->type->allowed(constraint, state->place, vocabulary);
    memcpy(mask, allowed, trie_mask_words(vocabulary) * sizeof *mask);
    bool complete = constraint->type->shortest(constraint, state->place) == 0;
    for (size_t i = 0; i < vocabulary->end_count; i++) {
        int64_t id = vocabulary->ends[i];
        mask_clear(mask, id);
        if (complete) mask[id / 64] |= 1ull << (id % 64);
    }
}

static void keep_leading(Generation *generation, uint64_t *mask) {
    ConstraintState place;
    bool begun;
    int64_t size = vocabulary_of(generation)->size;
    for (int64_t id = 0; id < size; id++)
        if (mask_has(mask, id) && !lead(generation, id, &place, &begun)) mask_clear(mask, id);
}

static bool is_empty(const uint64_t *mask, size_t words) {
    for (size_t i = 0; i < words; i++)
        if (mask[i]) return false;
    return true;
}

static Status apply_mask(Tensor *logits, const uint64_t *mask, Tensor **out) {
    int64_t count = tensor_count(logits);
    Shape shape = {.rank = 1, .dims = {count}};
    SCOPED_MEMORY double *numbers = memory_allocate((size_t)count * sizeof *numbers);
    Status status = tensor_read_floats(logits, numbers);
    for (int64_t id = 0; id < count; id++)
        if (!mask_has(mask, id)) numbers[id] = -INFINITY;
    if (status == STATUS_OK)
        status = tensor_from_floats(numbers, &shape, tensor_dtype(logits), out);
    return status;
}

static Status fail_dead(const Generation *generation) {
    const Text *text = &generation->text;
    Constraint *constraint = generation->state->options.constraint;
    if (constraint->type->refresh) TRY(constraint->type->refresh(constraint)); // it may say why
    size_t tail = text->length < 24 ? text->length : 24;
    SCOPED_TEXT(shown);
    text_append_quoted(&shown, text_get(text) + text->length - tail, tail);
    return fail(STATUS_VALUE, "no token of the vocabulary goes on as the constraint asks after %s",
                text_get(&shown));
}

static Status sample(Generation *generation, Tensor *logits, int64_t *out) {
    GenerationState *state = generation->state;
    size_t all = state->all.count, said = generation->count;
    TextSoFar text = {state->all.items, all, said < all ? said : all};
    return sampling_choose(&state->options.sampling, logits, text, out);
}

// A token that leads nowhere is rare: only then all are tried.
static Status choose_masked(Generation *generation, Tensor *logits, uint64_t *mask, int64_t *out) {
    size_t words = trie_mask_words(vocabulary_of(generation));
    ConstraintState place;
    bool begun;
    first_mask(generation, mask);
    for (int tries = 0; tries < 2; tries++) {
        SCOPED_TENSOR(masked);
        if (is_empty(mask, words)) break;
        TRY(apply_mask(logits, mask, &masked));
        TRY(sample(generation, masked, out));
        if (mask_has(mask, *out) && lead(generation, *out, &place, &begun)) {
            move_on(generation, *out);
            return STATUS_OK;
        }
        keep_leading(generation, mask);
    }
    Constraint *constraint = generation->state->options.constraint;
    *out = -1;
    bool complete = generation->state->constrained &&
                    constraint->type->shortest(constraint, generation->state->place) == 0;
    return complete ? STATUS_OK : fail_dead(generation);
}

static Status check_vocabulary(const Generation *generation, const Tensor *logits) {
    int64_t scores = tensor_count(logits), size = vocabulary_of(generation)->size;
    if (scores == size) return STATUS_OK;
    return fail(STATUS_VALUE, "the model gives %lld logits, but its vocabulary has %lld tokens",
                (long long)scores, (long long)size);
}

Status generation_choose(Generation *generation, Tensor *logits, int64_t *out) {
    if (!generation->state->options.constraint) return sample(generation, logits, out);
    TRY(check_vocabulary(generation, logits));
    const Constraint *constraint = generation->state->options.constraint;
    if (constraint->type->refresh)
        TRY(constraint->type->refresh(generation->state->options.constraint));
    size_t words = trie_mask_words(vocabulary_of(generation));
    SCOPED_MEMORY uint64_t *mask = memory_allocate_zeroed(words, sizeof *mask);
    return choose_masked(generation, logits, mask, out);
}

// --- scores

static double log_total(const double *logits, int64_t count) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (logits[i] > top) top = logits[i];
    for (int64_t i = 0; i < count; i++) sum += exp(logits[i] - top);
    return top + log(sum);
}

static void keep_likeliest(const double *logits, int64_t count, Scored *out, int64_t wanted) {
    for (int64_t kept = 0; kept < wanted; kept++) out[kept] = (Scored){-1, -INFINITY};
    for (int64_t id = 0; id < count; id++) {
        int64_t at = wanted;
        while (at > 0 && (out[at - 1].id < 0 || logits[id] > out[at - 1].logprob)) at--;
        if (at == wanted) continue;
        memmove(out + at + 1, out + at, (size_t)(wanted - at - 1) * sizeof *out);
        out[at] = (Scored){id, logits[id]};
    }
}

Status generation_score(Generation *generation, Tensor *logits, int64_t id) {
    int64_t wanted = generation->state->options.logprobs, count = tensor_count(logits);
    if (wanted < 0) return STATUS_OK;
    SCOPED_MEMORY double *numbers = memory_allocate((size_t)count * sizeof *numbers);
    bool before = foretell_ignore_reads(generation->unknown);
    Status status = tensor_read_floats(logits, numbers);
    foretell_ignore_reads(before);
    size_t each = (size_t)wanted + 1;
    if (status == STATUS_OK) {
        generation->scored = memory_resize(generation->scored, (generation->count + 1) * each *
                                                                   sizeof *generation->scored);
        Scored *scored = generation->scored + generation->count * each;
        double total = log_total(numbers, count);
        scored[0] = (Scored){id, numbers[id] - total};
        keep_likeliest(numbers, count, scored + 1, wanted);
        for (int64_t i = 1; i <= wanted; i++) scored[i].logprob -= total;
    }
    return status;
}
