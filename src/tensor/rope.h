// What rotary positions keep for their gradient rule.
#ifndef TENSOR_ROPE_H
#define TENSOR_ROPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Rope {
    bool half;
    int64_t rotary, offset; // the first `rotary` numbers of a head are turned
    double base, scale;
} Rope;

#endif
