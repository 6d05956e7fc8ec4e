// Random numbers as a function of key and counter: Philox4x32-10. Element e of a stream has half a
// block, the words 2 (e % 2) and 2 (e % 2) + 1 of block e / 2. Normal numbers come in pairs, e and
// e + 1 of one block. Every instruction set gives the same bits.
#ifndef DEVICE_CPU_RANDOM_H
#define DEVICE_CPU_RANDOM_H

#include "device/cpu/cpu.h"

// Blocks that are computed at a time, and the group of which their number is a multiple: a number
// is then made by the same instructions whatever is computed with it.
enum { RANDOM_CHUNK = 256, RANDOM_GROUP = 8 };

// Four words a block, each in an array of its own.
typedef struct RandomBlocks {
    int count;
    uint32_t words[4][RANDOM_CHUNK];
} RandomBlocks;

CPU_DECLARE(void, random_blocks, (uint64_t key, uint64_t first, RandomBlocks *out));
// The elements' upper 53 bits, as numbers in [0, 1).
CPU_DECLARE(void, random_fractions, (const RandomBlocks *blocks, double *out));
// Standard normal numbers of the blocks' elements, in the order of the elements.
CPU_DECLARE(void, random_normals, (const RandomBlocks *blocks, float *out));
// The largest number of a float dtype below `bound`, so that rounding cannot reach it.
double random_largest_below(DType dtype, double bound);
// The number that RANDOM writes into a tensor of one, in float32 or int64, without a tensor.
Scalar random_alone(const KernelOptions *options);

#endif
