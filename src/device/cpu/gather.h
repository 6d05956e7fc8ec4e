// What the indexing kernels share: places along one dim that come from an index tensor.
#ifndef DEVICE_CPU_GATHER_H
#define DEVICE_CPU_GATHER_H

#include <stdatomic.h>

#include "device/cpu/iterate.h"

typedef struct IndexedDim {
    int64_t size;   // of the dim: -size..size-1 are its places
    int64_t stride; // of the dim, in bytes
    DType index_dtype;
    atomic_bool *out_of_range; // set when an index is; place 0 stands in for it
} IndexedDim;

// `count` places, made non-negative, from indexes that are `stride` bytes apart.
void index_read(const IndexedDim *indexed, const char *index, int64_t stride, int64_t count,
                int64_t *out);
Status index_failure(const KernelCall *call, int64_t size);

#endif
