// What optimizer.comp is given.
#ifndef HOST_OPTIMIZER_H
#define HOST_OPTIMIZER_H

#include "language.h"

CONSTANTS(OptimizerConstants)
    CONSTANT(0, uint32_t, RULE, 0)
    CONSTANT(1, bool, VARIANT, false)  // nesterov, amsgrad, centered
    CONSTANT(2, bool, MOMENTUM, false) // is not 0
CONSTANTS_END(OptimizerConstants, 3)

STORED(OptimizerSettings)
    REAL(lr)
    REAL(weight_decay)
    REAL(beta1)
    REAL(fresh1)
    REAL(beta2)
    REAL(fresh2)
    REAL(epsilon)
    REAL(momentum)
    REAL(kept) // of sgd's running sum
    REAL(fresh)
    REAL(step) // of adam; also of adagrad
    REAL(root)
    REAL(shrink)
END(OptimizerSettings, 104)

PUSHED(OptimizerPush)
    ARGUMENTS(OptimizerSettings, s)
    uint64_t parameter_address, state_address, gradient_address, count;
END(OptimizerPush, 32)

#endif
