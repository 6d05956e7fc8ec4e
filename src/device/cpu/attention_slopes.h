// One row of attention's gradient.
#ifndef DEVICE_CPU_ATTENTION_SLOPES_H
#define DEVICE_CPU_ATTENTION_SLOPES_H

#include "device/cpu/convert.h"

// slopes = shares * (slopes - sum(shares * slopes)) * scale: from the gradient of a softmax's
// result to that of the scores before they were scaled. Of compute type F32 or F64.
CPU_DECLARE(void, attention_slopes,
            (CpuCompute compute, const void *shares, void *slopes, int64_t count, double scale));

#endif
