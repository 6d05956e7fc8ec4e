// Which token comes next, and how likely it was.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate/generation_internal.h"

Status generation_choose(Generation *generation, Tensor *logits, int64_t *out) {
    GenerationState *state = generation->state;
    TextSoFar text = {state->all.items, state->all.count};
    return sampling_choose(&state->options.sampling, logits, text, out);
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
    double *numbers = memory_allocate((size_t)count * sizeof *numbers);
    Status status = tensor_read_floats(logits, numbers);
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
    free(numbers);
    return status;
}
