// Steps of the optimizers, for both widths of numbers.
#include "device/cpu/optimizer.h"

#include <math.h>

#define MAX(a, b) ((a) > (b) ? (a) : (b)) // a call of fmax would keep loops from vectors

#define Real float
#define SQRT sqrtf
#define LOOP(name) name##_narrow
#include "device/cpu/simd/optimizer_loops.h"
#undef Real
#undef SQRT
#undef LOOP

#define Real double
#define SQRT sqrt
#define LOOP(name) name##_wide
#include "device/cpu/simd/optimizer_loops.h"

static const OptimizerUpdate updates[][2] = {
#define OPTIMIZER(id, signature, doc) {id##_narrow, id##_wide},
#include "catalog/optimizers.def"
#undef OPTIMIZER
};

OptimizerUpdate ISA(optimizer_choose)(OptimizerId id, bool wide) {
    return updates[id][wide];
}
