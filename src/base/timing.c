// Times of repeated runs.
#include "base/timing.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"

enum { RUNS_MIN = 5, RUNS_MAX = 10000 };
static const double seconds_wanted = 0.5, seconds_enough = 10;

double timing_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void timing_add(Timing *timing, double seconds) {
    if (timing->count == timing->capacity)
        timing->seconds = vector_grow(timing->seconds, &timing->capacity, sizeof *timing->seconds);
    timing->seconds[timing->count++] = seconds;
    timing->total += seconds;
}

bool timing_wants_more(const Timing *timing) {
    if (timing->count == 0) return true;
    if (timing->count >= RUNS_MAX || timing->total >= seconds_enough) return false;
    return timing->count < RUNS_MIN || timing->total < seconds_wanted;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double timing_median(Timing *timing) {
    size_t middle = timing->count / 2;
    ASSERT(timing->count <= timing->capacity);
    if (timing->count == 0) return 0;
    qsort(timing->seconds, timing->count, sizeof *timing->seconds, compare);
    return timing->count % 2 ? timing->seconds[middle]
                             : (timing->seconds[middle - 1] + timing->seconds[middle]) / 2;
}

static void append_seconds(Text *out, double seconds) {
    if (seconds < 1e-3)
        text_format(out, "%.2f us", seconds * 1e6);
    else if (seconds < 1)
        text_format(out, "%.3f ms", seconds * 1e3);
    else
        text_format(out, "%.3f s", seconds);
}

void timing_describe(Timing *timing, Text *out) {
    if (timing->count == 0) return;
    append_seconds(out, timing_median(timing)); // sorts
    text_append_string(out, " (median; ");
    ASSERT(timing->seconds[0] <= timing->seconds[timing->count - 1]);
    append_seconds(out, timing->seconds[0]);
    text_append_string(out, " to ");
    append_seconds(out, timing->seconds[timing->count - 1]);
    text_format(out, ", %zu run%s)", timing->count, timing->count == 1 ? "" : "s");
}

void timing_free(Timing *timing) {
    free(timing->seconds);
    *timing = (Timing){0};
}
