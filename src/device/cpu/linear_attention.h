// A block of columns of a head's state, and what rows do to it.
#ifndef DEVICE_CPU_LINEAR_ATTENTION_H
#define DEVICE_CPU_LINEAR_ATTENTION_H

#include "device/cpu/convert.h"

enum { LINEAR_COLUMNS = 32 }; // that are kept at a time; their numbers stay in the first cache

// Rows of one head as contiguous numbers of the compute type.
typedef struct LinearRow {
    int64_t keys, columns; // columns: at most LINEAR_COLUMNS
    const void *q, *k, *decay, *v;
    const void *beta; // NULL: no delta rule
    void *state;      // [keys, LINEAR_COLUMNS]
    void *out;
} LinearRow;

typedef void (*LinearStep)(const LinearRow *row);
CPU_DECLARE(LinearStep, linear_attention_step, (bool wide));

#endif
