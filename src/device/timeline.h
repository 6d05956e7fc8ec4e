// What a run does with its devices, written down while somebody profiles it: kernels, transfers,
// waits, and who holds memory when. Knows places only as numbers.
#ifndef DEVICE_TIMELINE_H
#define DEVICE_TIMELINE_H

#include "base/memory.h"
#include "base/origin.h"
#include "base/runtime.h"
#include "device/work.h"

typedef enum TimelineKind {
    TIMELINE_KERNEL,
    TIMELINE_UPLOAD,
    TIMELINE_DOWNLOAD,
    TIMELINE_WAIT,
} TimelineKind;

// All that was done for one operation at one place, by one kernel.
typedef struct TimelineTotal {
    TimelineKind kind;
    KernelId kernel;  // of TIMELINE_KERNEL
    const char *name; // the user's word; static
    Origin origin;
    bool queued; // it ran while the host went on
    uint64_t count, ns, bytes, flops;
    uint64_t covered; // queued: so many of `count` are in ns, bytes and flops before timeline_end
    int64_t credit;   // ns of kernels that have not paid for timing one yet
} TimelineTotal;

// What a queued kernel counts as when its device tells how long it took; times 0: it is not timed.
typedef struct TimelineOwner {
    uint32_t total, times;
} TimelineOwner;

typedef struct TimelineEvent {
    uint64_t begin, end; // ns since it began
    uint32_t total;      // whose part it is
} TimelineEvent;

// From then on what was made at a place holds so many bytes.
typedef struct TimelineHolding {
    uint64_t at; // ns
    Origin origin;
    uint64_t bytes;
} TimelineHolding;

enum { TIMELINE_EVENTS_MAX = 1 << 18 }; // of each kind; what comes later is in the totals only

typedef struct Timeline {
    VECTOR(TimelineTotal) totals;
    VECTOR(TimelineEvent) events;
    VECTOR(TimelineHolding) holdings;
    uint32_t *slots; // a table of totals by what they are of; number + 1, 0: free
    size_t slot_count;
    uint64_t last;           // the latest time that was taken, ns since it began
    uint64_t begun, ns;      // ns: how long it took, after timeline_end
    bool cut;                // there were more events or holdings
    bool queued;             // some of the totals are
    TimelineOwner running;   // the kernel that is being queued
    uint64_t stamp_ns;       // what it costs a device to time one of its kernels
    uint64_t small, sampled; // kernels of which some may stand for others, of these timed
    uint32_t skip, gap;      // small kernels that are not timed: from now on; since the last one
    uint64_t sampled_at;     // when the last one was timed
} Timeline;

// From now on everything that the runtime of this thread does goes into the timeline, until
// timeline_end. Kernels that are queued are timed by their device. Timing takes a small part of the
// time: where kernels are short some are timed, and stand for the others.
void timeline_begin(Timeline *timeline);
// Waits for what is queued; fails as that does, with the timeline ended.
Status timeline_end(void) MUST_USE;
void timeline_free(Timeline *timeline);

// --- for those who do it

uint64_t timeline_now(void); // ns
// Something that was done from `begin` to now, and stands for so many of its total.
void timeline_add(Timeline *timeline, const TimelineTotal *what, uint64_t begin, uint64_t times);
// Counts a kernel that is about to be queued, whose bytes and flops timeline_weigh tells if it is
// to be timed.
TimelineOwner timeline_queue(Timeline *timeline, const TimelineTotal *what);
void timeline_weigh(Timeline *timeline, TimelineOwner owner, uint64_t bytes, uint64_t flops);
typedef struct TimelineSpan {
    uint64_t begin, end; // ns
    uint64_t times;      // it stands for so many
} TimelineSpan;
// When what was counted was done.
void timeline_spend(Timeline *timeline, uint32_t total, TimelineSpan span);
// Of a small kernel or transfer: 0 when it is not to be timed, else for how many it stands.
uint64_t timeline_sample_now(Timeline *timeline);
static inline uint64_t timeline_sample(Timeline *timeline) {
    if (UNLIKELY(timeline->skip == 0)) return timeline_sample_now(timeline);
    timeline->skip--;
    return 0;
}
// Takes the time, at which what follows is held.
void timeline_look(Timeline *timeline);
void timeline_hold(Timeline *timeline, Origin origin, uint64_t bytes);
// The timeline of this thread's runtime; NULL mostly.
static inline Timeline *timeline_current(void) {
    return runtime_current ? runtime_current->work->timeline : NULL;
}

#endif
