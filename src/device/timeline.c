// Events are kept as they come, up to a limit; totals have no limit but that of places.
#include "device/timeline.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/runtime.h"
#include "device/pool.h"

enum {
    FIRST_SLOTS = 1024,
    NAMED_MAX = 64, // devices
    ALWAYS_TIMED = 2048,
    SAMPLE_NS = 100000,
    SAMPLE_MAX = 1024,
    QUEUED_TIMED = 8,   // of each total, before it is known how long one takes
    QUEUED_SHARE = 100, // timing takes that part of the time of queued kernels
    QUEUED_CREDIT = 4,  // prices of timing one that a total may have at most
    QUEUED_LOOK = 16,   // queued kernels between two looks at the clock
};

uint64_t timeline_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void timeline_begin(Timeline *timeline) {
    ASSERT(timeline_current() == NULL); // they do not nest
    // What an account holds is told the first time: its last time is 0.
    *timeline = (Timeline){.begun = timeline_now(), .last = 1, .slot_count = FIRST_SLOTS};
    timeline->slots = memory_allocate_zeroed(FIRST_SLOTS, sizeof *timeline->slots);
    runtime_current->work->timeline = timeline;
}

static int compare_events(const void *a, const void *b) {
    uint64_t x = ((const TimelineEvent *)a)->begin, y = ((const TimelineEvent *)b)->begin;
    return (x > y) - (x < y);
}

static Status settle(Device *device) {
    if (!device) return STATUS_OK;
    Status status = device->times_itself ? device->backend->wait(device) : STATUS_OK;
    pool_tell_timeline(device->pool);
    return status;
}

// Those of a total that were not timed count as the others of it did on the average.
static void spread(TimelineTotal *total) {
    if (!total->queued || total->covered == 0 || total->covered == total->count) return;
    double more = (double)total->count / (double)total->covered;
    total->ns = (uint64_t)((double)total->ns * more);
    total->bytes = (uint64_t)((double)total->bytes * more);
    total->flops = (uint64_t)((double)total->flops * more);
}

Status timeline_end(void) {
    Timeline *timeline = timeline_current();
    ASSERT(timeline != NULL);
    timeline_look(timeline);
    Device *named[NAMED_MAX];
    size_t count = devices_named(named, NAMED_MAX);
    Status status = settle(device_default_opened());
    for (size_t i = 0; i < count && status == STATUS_OK; i++) status = settle(named[i]);
    timeline->ns = timeline_now() - timeline->begun;
    runtime_current->work->timeline = NULL;
    for (size_t i = 0; i < timeline->totals.count; i++) spread(&timeline->totals.items[i]);
    // Queued kernels tell of themselves later than what the host did meanwhile.
    if (timeline->queued)
        qsort(timeline->events.items, timeline->events.count, sizeof *timeline->events.items,
              compare_events);
    return status;
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

static uint32_t find(Timeline *timeline, const TimelineTotal *what) {
    uint32_t *slot = slot_of(timeline, what);
    if (UNLIKELY(!*slot)) {
        TimelineTotal total = *what;
        total.count = total.ns = total.bytes = total.flops = 0;
        VECTOR_PUSH(&timeline->totals, total);
        timeline->queued = timeline->queued || what->queued;
        *slot = (uint32_t)timeline->totals.count;
        if (timeline->totals.count * 2 > timeline->slot_count) {
            grow(timeline);
            slot = slot_of(timeline, what);
        }
    }
    ASSERT(*slot > 0 && *slot <= timeline->totals.count);
    return *slot - 1;
}

// The time of kernels that pays for timing one.
static int64_t price(const Timeline *timeline) {
    return (int64_t)timeline->stamp_ns * QUEUED_SHARE;
}

// Each kernel of a total earns it the time that one takes on the average. When exactly one is timed
// is drawn, or of a loop's kernels always the same would be seen.
static bool is_due(const Timeline *timeline, const TimelineTotal *total) {
    if (total->covered < QUEUED_TIMED) return true;
    double drawn = (double)(total->covered * 0x9E3779B97F4A7C15u >> 40) / (1 << 24);
    return (double)total->credit > (double)price(timeline) * (0.5 + drawn);
}

TimelineOwner timeline_queue(Timeline *timeline, const TimelineTotal *what) {
    uint32_t found = find(timeline, what);
    TimelineTotal *total = &timeline->totals.items[found];
    if (timeline->small++ % QUEUED_LOOK == 0) timeline_look(timeline);
    total->count++;
    if (total->credit < price(timeline) * QUEUED_CREDIT && total->covered > 0)
        total->credit += (int64_t)(total->ns / total->covered);
    uint64_t waiting = total->count - total->covered;
    if (!is_due(timeline, total)) return (TimelineOwner){0};
    timeline->sampled++;
    total->credit -= price(timeline);
    total->covered = total->count;
    return (TimelineOwner){found, waiting < UINT32_MAX ? (uint32_t)waiting : UINT32_MAX};
}

void timeline_weigh(Timeline *timeline, TimelineOwner owner, uint64_t bytes, uint64_t flops) {
    ASSERT(owner.times > 0 && owner.total < timeline->totals.count);
    TimelineTotal *total = &timeline->totals.items[owner.total];
    total->bytes += bytes * owner.times;
    total->flops += flops * owner.times;
}

void timeline_spend(Timeline *timeline, uint32_t total, TimelineSpan span) {
    ASSERT(total < timeline->totals.count && span.begin <= span.end);
    // The clock of a device may be a little behind.
    uint64_t begin = span.begin > timeline->begun ? span.begin - timeline->begun : 0;
    uint64_t end = span.end > timeline->begun ? span.end - timeline->begun : 0;
    timeline->totals.items[total].ns += (end - begin) * span.times;
    timeline->cut = timeline->cut || timeline->events.count == TIMELINE_EVENTS_MAX;
    if (timeline->cut) return;
    TimelineEvent event = {begin, end, total};
    VECTOR_PUSH(&timeline->events, event);
}

void timeline_add(Timeline *timeline, const TimelineTotal *what, uint64_t begin, uint64_t times) {
    uint64_t end = timeline_now();
    timeline->last = end - timeline->begun;
    uint32_t found = find(timeline, what);
    TimelineTotal *total = &timeline->totals.items[found];
    total->count += times;
    total->bytes += what->bytes * times;
    total->flops += what->flops * times;
    timeline_spend(timeline, found, (TimelineSpan){begin, end, times});
}

// One is timed every SAMPLE_NS or less often, so that timing takes a small part of the time; how
// many are left out is drawn, or a loop's kernels would never be seen in turn.
uint64_t timeline_sample_now(Timeline *timeline) {
    uint64_t stands_for = timeline->gap + 1, now = timeline_now();
    ASSERT(timeline->skip == 0);
    timeline->small += stands_for;
    timeline->sampled++;
    timeline->gap = 0;
    if (timeline->small > ALWAYS_TIMED) {
        uint64_t each = (now - timeline->sampled_at) / stands_for + 1;
        uint64_t every = SAMPLE_NS / each < SAMPLE_MAX ? SAMPLE_NS / each : SAMPLE_MAX;
        uint64_t drawn = timeline->small * 0x9E3779B97F4A7C15u >> 32;
        timeline->gap = timeline->skip = every > 1 ? (uint32_t)(drawn % (2 * every - 1)) : 0;
    }
    timeline->sampled_at = now;
    return stands_for;
}

void timeline_look(Timeline *timeline) {
    timeline->last = timeline_now() - timeline->begun;
}

void timeline_hold(Timeline *timeline, Origin origin, uint64_t bytes) {
    timeline->cut = timeline->cut || timeline->holdings.count == TIMELINE_EVENTS_MAX;
    if (timeline->cut) return;
    TimelineHolding holding = {timeline->last, origin, bytes};
    VECTOR_PUSH(&timeline->holdings, holding);
}
