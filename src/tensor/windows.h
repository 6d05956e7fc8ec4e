// What convolution and pooling keep for their gradient rules.
#ifndef TENSOR_WINDOWS_H
#define TENSOR_WINDOWS_H

#include <stdint.h>

// Height and width of an option.
typedef struct Pair {
    int64_t h, w;
} Pair;

typedef struct Convolution {
    Pair stride, padding, dilation;
    int64_t groups;
} Convolution;

typedef struct Pooling {
    Pair size, stride, padding;
} Pooling;

#endif
