// Reductions as rows of catalog/reductions.def, and what they make of no numbers.
#include "device/reduction.h"

#include <math.h>

const FoldKind fold_kinds[FOLD_COUNT] = {
#define FOLD(code, kind, addend) [FOLD_##code] = FOLD_KIND_##kind,
#include "catalog/reductions.def"
};

enum { KEPT = false, AS_FLOATS = true };
const ReductionPlan reduction_plans[REDUCE_COUNT] = {
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    [REDUCE_##code] = {FOLD_##first, FOLD_##second, integers},
#include "catalog/reductions.def"
};

static double neutral(Fold fold) {
    switch (fold_kinds[fold]) {
    case FOLD_KIND_SUM:
    case FOLD_KIND_POSITIVE: return 0;
    case FOLD_KIND_PRODUCT: return 1;
    case FOLD_KIND_LARGEST: return -(double)INFINITY;
    case FOLD_KIND_SMALLEST: break;
    }
    return (double)INFINITY;
}

double reduction_of_nothing(ReduceOp op) {
    ASSERT((unsigned)op < REDUCE_COUNT);
    const ReductionPlan *plan = &reduction_plans[op];
    double s = neutral(plan->second), p = plan->first == FOLD_NONE ? 0 : neutral(plan->first);
    const double n = 0, c = 0;
    if (reduction_tells_mean(plan)) p = (double)NAN;
#define share(state, count) ((state) / (count))
#define some(state) ((state) > 0)
#define every(state, count) ((state) == (count))
#define plus_log(parameter, state) (isinf(parameter) ? (parameter) : (parameter) + log(state))
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    if (op == REDUCE_##code) return finish;
#include "catalog/reductions.def"
    return s;
}

int64_t reduction_limit(DType dtype, bool largest) {
    ASSERT(!dtype_is_float(dtype) && !dtype_is_quant(dtype));
    if (dtype == DTYPE_BOOL) return largest;
    if (dtype == DTYPE_UINT8) return largest ? UINT8_MAX : 0;
    int64_t top = (int64_t)(UINT64_MAX >> (65 - 8 * dtype_size(dtype)));
    return largest ? top : -top - 1;
}
