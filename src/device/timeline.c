// Events are kept as they come, up to a limit; totals have no limit but that of places.
#include "device/timeline.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/runtime.h"

enum { FIRST_SLOTS = 1024 };

uint64_t timeline_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

Timeline *timeline_current(void) {
    return runtime_current ? runtime_current->work->timeline : NULL;
}

void timeline_begin(Timeline *timeline) {
    ASSERT(timeline_current() == NULL); // they do not nest
    *timeline = (Timeline){.begun = timeline_now(), .slot_count = FIRST_SLOTS};
    timeline->slots = memory_allocate_zeroed(FIRST_SLOTS, sizeof *timeline->slots);
    runtime_current->work->timeline = timeline;
}

void timeline_end(void) {
    Timeline *timeline = timeline_current();
    ASSERT(timeline != NULL);
    timeline->ns = timeline_now() - timeline->begun;
    runtime_current->work->timeline = NULL;
}

void timeline_free(Timeline *timeline) {
    VECTOR_FREE(&timeline->totals);
    VECTOR_FREE(&timeline->events);
    VECTOR_FREE(&timeline->holdings);
    free(timeline->slots);
}

static bool same(const TimelineTotal *a, const TimelineTotal *b) {
    return a->origin.at == b->origin.at && a->origin.called_from == b->origin.called_from &&
           a->name == b->name && a->kind == b->kind && a->kernel == b->kernel;
}

static uint32_t *slot_of(const Timeline *timeline, const TimelineTotal *what) {
    ASSERT(timeline->totals.count < timeline->slot_count); // so that the search ends
    uint64_t key = (uint64_t)what->origin.at << 32 | what->origin.called_from;
    key = (key ^ (uintptr_t)what->name ^ (uint64_t)what->kernel << 8 ^ (uint64_t)what->kind) *
          0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(key >> 32) & (timeline->slot_count - 1);
    while (timeline->slots[slot] && !same(&timeline->totals.items[timeline->slots[slot] - 1], what))
        slot = (slot + 1) & (timeline->slot_count - 1);
    return &timeline->slots[slot];
}

static void grow(Timeline *timeline) {
    free(timeline->slots);
    timeline->slot_count *= 2;
    timeline->slots = memory_allocate_zeroed(timeline->slot_count, sizeof *timeline->slots);
    for (size_t i = 0; i < timeline->totals.count; i++)
        *slot_of(timeline, &timeline->totals.items[i]) = (uint32_t)i + 1;
}

void timeline_add(Timeline *timeline, const TimelineTotal *what, uint64_t begin) {
    uint64_t end = timeline_now();
    ASSERT(begin >= timeline->begun && begin <= end);
    timeline->last = end - timeline->begun;
    uint32_t *slot = slot_of(timeline, what);
    if (UNLIKELY(!*slot)) {
        TimelineTotal total = *what;
        total.bytes = total.flops = 0;
        VECTOR_PUSH(&timeline->totals, total);
        *slot = (uint32_t)timeline->totals.count;
        if (timeline->totals.count * 2 > timeline->slot_count) {
            grow(timeline);
            slot = slot_of(timeline, what);
        }
    }
    ASSERT(*slot > 0 && *slot <= timeline->totals.count);
    TimelineTotal *total = &timeline->totals.items[*slot - 1];
    total->count++;
    total->ns += end - begin;
    total->bytes += what->bytes;
    total->flops += what->flops;
    timeline->cut = timeline->cut || timeline->events.count == TIMELINE_EVENTS_MAX;
    if (timeline->cut) return;
    TimelineEvent event = {begin - timeline->begun, end - timeline->begun, *slot - 1};
    VECTOR_PUSH(&timeline->events, event);
}

void timeline_hold(Timeline *timeline, Origin origin, uint64_t bytes) {
    timeline->cut = timeline->cut || timeline->holdings.count == TIMELINE_EVENTS_MAX;
    if (timeline->cut) return;
    TimelineHolding holding = {timeline->last, origin, bytes};
    VECTOR_PUSH(&timeline->holdings, holding);
}
