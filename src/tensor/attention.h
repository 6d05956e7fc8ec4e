// What attention keeps for its gradient rule.
#ifndef TENSOR_ATTENTION_H
#define TENSOR_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct AttentionLimits {
    bool causal;
    double scale, cap; // cap 0: none
    int64_t window;    // 0: none
} AttentionLimits;

#endif
