// One step of an optimizer over a range of a parameter's elements.
#ifndef DEVICE_CPU_OPTIMIZER_H
#define DEVICE_CPU_OPTIMIZER_H

#include "device/cpu/cpu.h"

typedef struct OptimizerStep {
    void *parameter, *state; // state: rows of `elements` numbers; NULL: none
    const void *gradient;
    int64_t elements;
    double lr, weight_decay, beta1, beta2, epsilon, momentum, dampening;
    double correction1, correction2; // 1 - beta^t, or what else depends on the number of the step
    bool first, variant;             // variant: nesterov, amsgrad, centered
} OptimizerStep;

// Elements [begin, end); `wide`: float64, else float32.
typedef void (*OptimizerUpdate)(const OptimizerStep *step, int64_t begin, int64_t end);
CPU_DECLARE(OptimizerUpdate, optimizer_choose, (OptimizerId id, bool wide));

#endif
