// 64 bits that tell contents apart, by chance alike in one of 2^64 pairs; no defence against
// someone who looks for such a pair. The same on machines of either byte order is not promised.
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

// The digest of what `digest` stands for, 0 of nothing, followed by these bytes.
uint64_t digest_add(uint64_t digest, const void *data, size_t bytes);

#endif
