// How long something takes: runs are repeated until their times mean something, and summed up by
// their median and spread.
#ifndef BASE_TIMING_H
#define BASE_TIMING_H

#include <stdbool.h>

#include "base/text.h"

double timing_now(void); // seconds of a clock that only goes forward

typedef struct Timing {
    double *seconds; // of each run
    size_t count, capacity;
    double total;
} Timing;

void timing_add(Timing *timing, double seconds);
// At least 5 runs and half a second, at most 10 000 runs; from 10 s on, what there is.
bool timing_wants_more(const Timing *timing);
// "1.234 ms (median; 1.200 ms to 1.500 ms, 405 runs)". Nothing when there was no run.
void timing_describe(Timing *timing, Text *out);
double timing_median(Timing *timing);
void timing_free(Timing *timing);

#endif
