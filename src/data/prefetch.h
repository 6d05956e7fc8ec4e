// Batches of rows, read on a thread of their own ahead of who takes them.
#ifndef DATA_PREFETCH_H
#define DATA_PREFETCH_H

#include "data/source.h"

typedef struct BatchPlan {
    const DataSource *source;
    int64_t *rows; // in the order in which they are read; from malloc, taken
    int64_t count, batch;
    int ahead; // batches; 0: each is read when it is asked for, in the same thread
} BatchPlan;

typedef struct DataBatch {
    int64_t count;                 // rows; 0: there are no more
    void *fields[DATA_FIELDS_MAX]; // until the next call
} DataBatch;

typedef struct Prefetch Prefetch;
Prefetch *prefetch_start(const BatchPlan *plan);
Status prefetch_next(Prefetch *prefetch, DataBatch *out) MUST_USE;
void prefetch_stop(Prefetch *prefetch); // at any time

#endif
