#include "generate/generation.h"

#include <stdlib.h>
#include <string.h>

#include "device/foretell.h"
#include "generate/generation_internal.h"
#include "model/model.h"
#include "tensor/gradient/tape.h"

enum { NGRAM_MAX = 3 };

// --- beginning and end

static char *copy(const char *text) {
    return memory_copy_string(text, strlen(text));
}

static GenerationState *state_new(const GenerationOptions *options, const TokenIds *prompt) {
    GenerationState *state = memory_allocate_zeroed(1, sizeof *state);
    state->options = *options;
    state->stops = memory_allocate_zeroed(options->stop_count + 1, sizeof *state->stops);
    for (size_t i = 0; i < options->stop_count; i++) state->stops[i] = copy(options->stops[i]);
    state->trigger = options->trigger ? copy(options->trigger) : NULL;
    if (options->constraint) constraint_retain(options->constraint);
    for (size_t i = 0; i < prompt->count; i++) VECTOR_PUSH(&state->all, prompt->ids[i]);
    return state;
}

static void state_free(GenerationState *state) {
    for (size_t i = 0; i < state->options.stop_count; i++) free(state->stops[i]);
    free(state->stops);
    free(state->trigger);
    constraint_release(state->options.constraint);
    VECTOR_FREE(&state->all);
    VECTOR_FREE(&state->drafts);
    tensor_release(state->rows);
    text_free(&state->raw);
    free(state);
}

// How many tokens there is room for: the last one need not be read.
static int64_t room(const Network *network, size_t prompt) {
    ASSERT(network->context > 0 && (int64_t)prompt <= network->context);
    return network->context - (int64_t)prompt + 1;
}

static Status resolve_length(const Network *network, GenerationState *state) {
    size_t prompt = state->all.count;
    int64_t context = network->context, wanted = state->options.max_tokens;
    if (prompt == 0) return fail(STATUS_VALUE, "the prompt has no tokens");
    if (context > 0 && (int64_t)prompt > context)
        return fail(STATUS_VALUE, "the prompt has %zu tokens, but the model's context is %lld",
                    prompt, (long long)context);
    state->max_tokens = wanted;
    if (context == 0 || state->options.shift || wanted <= room(network, prompt)) return STATUS_OK;
    if (state->options.at_most) {
        state->max_tokens = room(network, prompt);
        return STATUS_OK;
    }
    (void)fail(STATUS_VALUE,
               "a prompt of %zu tokens and %lld more do not fit the model's context of %lld",
               prompt, (long long)wanted, (long long)context);
    fail_help("max_tokens: %lld fits; shift: true forgets the older half of a full context",
              (long long)room(network, prompt));
    return STATUS_VALUE;
}

static Status begin_constraint(const Network *network, GenerationState *state) {
    Constraint *constraint = state->options.constraint;
    if (!constraint) return STATUS_OK;
    if (!network->tokenizer)
        return fail(STATUS_VALUE, "a constraint is about text, but %s has no vocabulary",
                    model_path(network_model(network).as.handle->payload));
    if (constraint->type->refresh) TRY(constraint->type->refresh(constraint));
    state->constrained = state->trigger == NULL;
    state->place = constraint->type->begin(constraint);
    int64_t shortest = constraint->type->shortest(constraint, state->place);
    if (!state->constrained || shortest <= state->max_tokens) return STATUS_OK;
    if (shortest == CONSTRAINT_NEVER)
        return fail(STATUS_VALUE, "nothing fills the holes of the constraint: no text can end");
    return fail(STATUS_VALUE,
                "the shortest text that the constraint allows has %lld bytes, but "
                "max_tokens is %lld",
                (long long)shortest, (long long)state->max_tokens);
}

Status generation_new(Network *network, const GenerationOptions *options, const TokenIds *prompt,
                      Sequence *sequence, Generation **out) {
    Generation *generation = memory_allocate_zeroed(1, sizeof *generation);
    generation->state = state_new(options, prompt);
    ASSERT(!sequence || sequence->network == network);
    generation->sequence = sequence;
    generation->prompt_tokens = prompt->count;
    generation->at = origin_current.at;
    Status status = sequence ? STATUS_OK : sequence_new(network, &generation->sequence);
    if (status == STATUS_OK) status = network_check_ids(network, prompt->ids, prompt->count);
    if (status == STATUS_OK) status = resolve_length(network, generation->state);
    if (status == STATUS_OK) status = begin_constraint(network, generation->state);
    if (status != STATUS_OK) {
        generation_free(generation);
        return status;
    }
    generation->cached_tokens = generation->sequence->count;
    if (generation->state->max_tokens == 0) generation->finish = FINISH_LENGTH;
    *out = generation;
    return STATUS_OK;
}

void generation_free(Generation *generation) {
    if (!generation) return;
    state_free(generation->state);
    sequence_free(generation->sequence);
    text_free(&generation->text);
    free(generation->ids);
    free(generation->scored);
    free(generation);
}

// --- guesses

// What followed the last few ids where they stood before, the longest such run first.
static void guess(const Generation *generation) {
    GenerationState *state = generation->state;
    const Network *network = generation->sequence->network;
    const int64_t *all = state->all.items;
    size_t count = state->all.count, most = (size_t)state->options.speculate;
    state->drafts.count = 0;
    size_t left = (size_t)(state->max_tokens - (int64_t)generation->count);
    if (most >= left) most = left > 0 ? left - 1 : 0;
    if (network->context > 0 && count + most > (size_t)network->context)
        most = (size_t)network->context - count;
    if (most == 0 || network->boundary > 0 || network->cache_field < 0) return;
    if (kv_cache_has_states(generation->sequence->cache)) return; // they are not taken back
    for (size_t run = NGRAM_MAX; run >= 1; run--)
        for (size_t at = count > run ? count - run : 0; at-- > 0;) {
            if (memcmp(all + at, all + count - run, run * sizeof *all) != 0) continue;
            for (size_t i = at + run; i < count && state->drafts.count < most; i++)
                VECTOR_PUSH(&state->drafts, all[i]);
            return;
        }
}

// --- a step

// A full context forgets its older half; what marks the beginning of a text stays.
static Status make_room(Generation *generation) {
    GenerationState *state = generation->state;
    const Network *network = generation->sequence->network;
    size_t context = (size_t)network->context;
    if (context == 0 || state->all.count <= context) return STATUS_OK;
    bool marked = network->tokenizer && state->all.items[0] == tokenizer_bos(network->tokenizer);
    size_t keep = marked ? 1 : 0, tail = context / 2;
    ASSERT(tail <= state->all.count);
    if (keep + tail > context) keep = 0;
    memmove(state->all.items + keep, state->all.items + state->all.count - tail,
            tail * sizeof *state->all.items);
    state->all.count = keep + tail;
    return sequence_truncate(generation->sequence, 0);
}

static bool waits(const Generation *generation) {
    return !generation->finish && !generation->state->rows;
}

// The ids that the sequence lacks, and the guesses behind them. The ids are the caller's to free.
static Status plan(Generation *generation, Step *out) {
    GenerationState *state = generation->state;
    TRY(make_room(generation));
    guess(generation);
    Sequence *sequence = generation->sequence;
    ASSERT(sequence->count < state->all.count); // the last id is still to be read
    size_t fresh = state->all.count - sequence->count, drafts = state->drafts.count;
    int64_t *ids = memory_allocate((fresh + drafts) * sizeof *ids);
    memcpy(ids, state->all.items + sequence->count, fresh * sizeof *ids);
    if (drafts > 0) memcpy(ids + fresh, state->drafts.items, drafts * sizeof *ids);
    *out = (Step){sequence, ids, fresh + drafts, drafts + 1, generation->unknown};
    return STATUS_OK;
}

static Status hand_out(Generation *const *generations, size_t count, Tensor *logits) {
    ASSERT(count == 0 || generations != NULL);
    int64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (!waits(generations[i])) continue;
        GenerationState *state = generations[i]->state;
        ASSERT(!state->rows);
        int64_t rows = (int64_t)state->drafts.count + 1;
        state->row = 0;
        TRY(tensor_slice(logits, 0, at, at + rows, &state->rows));
        at += rows;
    }
    return STATUS_OK;
}

static Status compute(Generation *const *generations, size_t count) {
    SCOPED_MEMORY Step *steps = memory_allocate_zeroed(count, sizeof *steps);
    size_t planned = 0;
    Status status = STATUS_OK;
    SCOPED_TENSOR(logits);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (waits(generations[i])) status = plan(generations[i], &steps[planned++]);
    if (status == STATUS_OK && planned > 0) {
        status = sequences_advance(steps, planned, &logits);
        if (status == STATUS_OK) status = hand_out(generations, count, logits);
    }
    for (size_t i = 0; i < planned; i++) free((int64_t *)(uintptr_t)steps[i].ids);
    return status;
}

// What was guessed wrongly, or computed for nothing, goes out of the sequence.
static Status settle(Generation *generation, bool guessed) {
    ASSERT(generation->state->rows != NULL);
    GenerationState *state = generation->state;
    if (guessed) {
        state->row++;
        return STATUS_OK;
    }
    tensor_release(state->rows);
    state->rows = NULL;
    size_t last = generation->finish ? 0 : 1;
    if (generation->sequence->count <= state->all.count - last) return STATUS_OK;
    return sequence_truncate(generation->sequence, state->all.count - last);
}

static Status take(Generation *generation, int64_t id) {
    ASSERT(id >= 0);
    GenerationState *state = generation->state;
    bool stopped = false;
    generation->ids = memory_resize(generation->ids, (generation->count + 1) * sizeof id);
    generation->ids[generation->count++] = id;
    VECTOR_PUSH(&state->all, id);
    TRY(generation_say(generation, id, &stopped));
    if (stopped)
        generation->finish = FINISH_STOP;
    else if ((int64_t)generation->count == state->max_tokens)
        generation->finish = FINISH_LENGTH;
    return STATUS_OK;
}

// Whether nothing but the end of the text depends on what the tokens are.
static bool is_bounded(const GenerationState *state) {
    const GenerationOptions *options = &state->options;
    bool plain = options->sampling.chain.kind == VALUE_NONE && options->speculate == 0;
    return foretelling() && plain && !options->constraint && !options->tell;
}

static Status choose_token(Generation *generation, Tensor *logits, int64_t *id) {
    bool bounded = is_bounded(generation->state);
    if (LIKELY(!bounded)) return generation_choose(generation, logits, id);
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_reads(true);
    Status status = generation_choose(generation, logits, id);
    foretell_ignore_reads(before);
    if (foretell_reads() == reads) return status;
    generation->unknown = true;
    foretell_at_most(generation->at);
    return status;
}

static bool is_end(const Generation *generation, int64_t id) {
    return id < 0 || (!generation->unknown && generation_is_end(generation, id));
}

static Status choose(Generation *generation) {
    GenerationState *state = generation->state;
    SCOPED_TENSOR(logits);
    int64_t id = -1;
    ASSERT(state->rows != NULL && state->row >= 0);
    if (interp_interrupts()) {
        (void)interp_fail_interrupted((Span){origin_current.at, origin_current.at});
        return error_current()->code;
    }
    TRY(tensor_select(state->rows, 0, state->row, &logits));
    TRY(choose_token(generation, logits, &id));
    if (is_end(generation, id)) {
        generation->finish = FINISH_END;
    } else {
        TRY(generation_score(generation, logits, id));
        TRY(take(generation, id));
    }
    size_t row = (size_t)state->row;
    bool guessed =
        !generation->finish && row < state->drafts.count && state->drafts.items[row] == id;
    TRY(settle(generation, guessed));
    return generation->finish ? generation_tell_rest(generation) : STATUS_OK;
}

// Nothing is learned from what is said: no operation is recorded.
Status generations_step(Generation *const *generations, size_t count) {
    bool recording = tape_set_enabled(false);
    Status status = compute(generations, count);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (!generations[i]->finish) status = choose(generations[i]);
    tape_set_enabled(recording);
    return status;
}

Status network_encode(const Network *network, const char *text, size_t length, bool begins,
                      TokenIds *out) {
    ASSERT(text != NULL || length == 0);
    Tokenizer *tokenizer = network->tokenizer;
    if (!tokenizer) TRY(model_tokenizer(network_model(network).as.handle->payload, &tokenizer));
    return tokenizer_encode(tokenizer, text, length, begins, out);
}
