// Sums of bytes by which a file's numbers are known to be what was written: against damage, not
// against malice.
#ifndef MODEL_TENSOR_SUM_H
#define MODEL_TENSOR_SUM_H

#include "model/named_tensors.h"

// Four lanes of 64 bits, so that long rows are summed as fast as they are read. {0} begins one.
typedef struct ByteSum {
    uint64_t lanes[4];
    uint64_t length;
} ByteSum;

void byte_sum_add(ByteSum *sum, const void *bytes, size_t length);
uint64_t byte_sum_end(const ByteSum *sum);
// Bytes of a contiguous tensor, from `begin`.
Status byte_sum_add_part(ByteSum *sum, Tensor *tensor, size_t begin, size_t bytes) MUST_USE;
// The dims and the bytes of any tensor, nothing where these are too many to count.
Status byte_sum_add_tensor(ByteSum *sum, Tensor *tensor) MUST_USE;

// Adds the text "tl.sum" to what is to be written: of names and bytes, in any order, so that it is
// the same in every format.
Status named_tensors_add_sum(NamedTensors *tensors) MUST_USE;
// STATUS_FORMAT where what was read is not what its text "tl.sum" says; one without is believed.
Status named_tensors_check_sum(const NamedTensors *tensors, const char *path) MUST_USE;

#endif
