// What is said: text out of tokens, held back while a stop string may be in it.
#include <string.h>

#include "generate/generation_internal.h"

static bool begins_with(const char *text, size_t length, const char *stop) {
    size_t whole = strlen(stop), shorter = length < whole ? length : whole;
    return memcmp(text, stop, shorter) == 0;
}

// Cuts the text at the first stop in it. True when there is one; *held is the number of bytes at
// the end that may yet become a stop.
static bool find_stop(Generation *generation, size_t *held) {
    const GenerationState *state = generation->state;
    Text *text = &generation->text;
    *held = 0;
    for (size_t at = state->told; at < text->length; at++)
        for (size_t i = 0; i < state->options.stop_count; i++) {
            size_t left = text->length - at;
            if (!begins_with(text->bytes + at, left, state->stops[i])) continue;
            if (left >= strlen(state->stops[i])) {
                text->length = at;
                text->bytes[at] = '\0';
                *held = 0;
                return true;
            }
            if (*held == 0) *held = left;
        }
    return false;
}

static Status tell(Generation *generation, size_t end) {
    ASSERT(end <= generation->text.length);
    GenerationState *state = generation->state;
    if (end <= state->told) return STATUS_OK;
    size_t begin = state->told;
    state->told = end;
    if (!state->options.tell) return STATUS_OK;
    return state->options.tell(state->options.context, text_get(&generation->text) + begin,
                               end - begin, -1);
}

Status generation_say(Generation *generation, int64_t id, bool *stopped) {
    ASSERT(id >= 0);
    GenerationState *state = generation->state;
    const Tokenizer *tokenizer = generation->sequence->network->tokenizer;
    size_t held = 0;
    *stopped = false;
    if (!tokenizer) {
        if (!state->options.tell) return STATUS_OK;
        return state->options.tell(state->options.context, NULL, 0, id);
    }
    TRY(tokenizer_decode_next(tokenizer, &state->stream, id, true, &generation->text));
    *stopped = !generation->unknown && find_stop(generation, &held);
    return tell(generation, generation->text.length - held);
}

Status generation_tell_rest(Generation *generation) {
    return tell(generation, generation->text.length);
}

bool generation_is_end(const Generation *generation, int64_t id) {
    const Tokenizer *tokenizer = generation->sequence->network->tokenizer;
    if (!tokenizer) return false;
    return tokenizer_is_end(tokenizer, id) ||
           id == tokenizer_bos(tokenizer); // a text of its own begins
}
