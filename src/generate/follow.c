// Models that several ranks compute together, for a program that only the first of them runs: what
// it does with its texts goes to the others, who do the same with texts of their own.
#include "generate/follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ranks/ranks.h"

typedef enum FollowEvent { FOLLOW_STEPS, FOLLOW_FORK, FOLLOW_FREE } FollowEvent;

typedef VECTOR(int64_t) Numbers;

// The network's number, then those of the event.
static Status tell(const Network *network, FollowEvent event, const Numbers *numbers) {
    SCOPED_TEXT(message);
    int64_t of = network->led - 1;
    int kind = (int)event;
    text_append(&message, (const char *)&of, sizeof of);
    text_append(&message, (const char *)numbers->items, numbers->count * sizeof of);
    return ranks_share_line(&kind, &message);
}

Status follow_tell_steps(const Step *steps, size_t count) {
    const Network *network = steps[0].sequence->network;
    if (LIKELY(network->led == 0)) return STATUS_OK;
    SCOPED_MEMORY Numbers numbers = {0};
    VECTOR_PUSH(&numbers, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const Step *step = &steps[i];
        VECTOR_PUSH(&numbers, step->sequence->number);
        VECTOR_PUSH(&numbers, (int64_t)step->sequence->count);
        VECTOR_PUSH(&numbers, (int64_t)step->count);
        for (size_t j = 0; j < step->count; j++) VECTOR_PUSH(&numbers, step->ids[j]);
    }
    ASSERT(count > 0 && numbers.count >= 1 + 4 * count); // a step has an id
    return tell(network, FOLLOW_STEPS, &numbers);
}

Status follow_tell_fork(const Sequence *sequence, const Sequence *copy) {
    if (LIKELY(sequence->network->led == 0)) return STATUS_OK;
    int64_t pair[] = {sequence->number, copy->number};
    return tell(sequence->network, FOLLOW_FORK, &(Numbers){pair, 2, 2});
}

void follow_tell_free(const Sequence *sequence) {
    if (LIKELY(sequence->network->led == 0) || interp_interrupts()) return; // all are ending
    int64_t number = sequence->number;
    if (tell(sequence->network, FOLLOW_FREE, &(Numbers){&number, 1, 1}) != STATUS_OK)
        error_clear(); // the next step says so
}

// --- the others

typedef struct Followed {
    int64_t number;
    Sequence *sequence;
} Followed;

typedef struct Follower {
    Network *const *networks;
    VECTOR(Followed) texts;
} Follower;

static Sequence **find(Follower *follower, const Network *network, int64_t number) {
    for (size_t i = 0; i < follower->texts.count; i++) {
        Followed *one = &follower->texts.items[i];
        if (one->number == number && one->sequence->network == network) return &one->sequence;
    }
    return NULL;
}

static Status sequence_for(Follower *follower, Network *network, int64_t number, Sequence **out) {
    Sequence **known = find(follower, network, number);
    if (known) {
        *out = *known;
        return STATUS_OK;
    }
    TRY(sequence_new(network, out));
    VECTOR_PUSH(&follower->texts, ((Followed){number, *out}));
    return STATUS_OK;
}

static Status make_steps(Follower *follower, Network *network, const int64_t *at) {
    size_t count = (size_t)*at++;
    SCOPED_MEMORY Step *steps = memory_allocate_zeroed(count + 1, sizeof *steps);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Sequence *sequence = NULL;
        size_t known = (size_t)at[1], ids = (size_t)at[2];
        status = sequence_for(follower, network, at[0], &sequence);
        if (status == STATUS_OK) status = sequence_truncate(sequence, known);
        ASSERT(status != STATUS_OK || sequence->count == known); // it has made every step
        steps[i] = (Step){sequence, at + 3, ids, ids, false};
        at += 3 + ids;
    }
    ASSERT(count > 0);
    Tensor *hidden = NULL;
    if (status == STATUS_OK) status = sequences_hidden(steps, count, &hidden);
    if (status == STATUS_OK) tensor_release(hidden);
    return status;
}

static Status fork_text(Follower *follower, Network *network, const int64_t *at) {
    Sequence *sequence, *copy;
    TRY(sequence_for(follower, network, at[0], &sequence));
    TRY(sequence_fork(sequence, &copy));
    VECTOR_PUSH(&follower->texts, ((Followed){at[1], copy}));
    return STATUS_OK;
}

static void free_text(Follower *follower, const Network *network, int64_t number) {
    Sequence **known = find(follower, network, number);
    if (!known) return; // no step has come to it
    sequence_free(*known);
    Followed *last = &follower->texts.items[--follower->texts.count];
    *(Followed *)(void *)((char *)known - offsetof(Followed, sequence)) = *last;
}

static Status follow(Follower *follower, FollowEvent event, const int64_t *at) {
    Network *network = follower->networks[*at++];
    switch (event) {
    case FOLLOW_STEPS: return make_steps(follower, network, at);
    case FOLLOW_FORK: return fork_text(follower, network, at);
    case FOLLOW_FREE: free_text(follower, network, at[0]); break;
    }
    return STATUS_OK;
}

Status networks_follow(Network *const *networks) {
    Follower follower = {.networks = networks};
    SCOPED_TEXT(message);
    Status status = STATUS_OK;
    while (status == STATUS_OK) {
        int event = 0;
        status = ranks_share_line(&event, &message);
        if (status != STATUS_OK) break;
        ASSERT(message.length % sizeof(int64_t) == 0 && message.length > sizeof(int64_t));
        SCOPED_MEMORY int64_t *numbers = memory_allocate(message.length + 1); // aligned
        memcpy(numbers, text_get(&message), message.length);
        status = follow(&follower, (FollowEvent)event, numbers);
    }
    for (size_t i = 0; i < follower.texts.count; i++)
        sequence_free(follower.texts.items[i].sequence);
    VECTOR_FREE(&follower.texts);
    return status;
}
