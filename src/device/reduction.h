// What catalog/reductions.def says of reductions, for every device.
#ifndef DEVICE_REDUCTION_H
#define DEVICE_REDUCTION_H

#include "device/kernel.h"

typedef enum Fold {
#define FOLD(code, ...) FOLD_##code,
#include "catalog/reductions.def"
    FOLD_COUNT,
    FOLD_NONE = FOLD_COUNT
} Fold;

typedef enum FoldKind {
    FOLD_KIND_SUM,
    FOLD_KIND_POSITIVE,
    FOLD_KIND_PRODUCT,
    FOLD_KIND_LARGEST,
    FOLD_KIND_SMALLEST
} FoldKind;
extern const FoldKind fold_kinds[FOLD_COUNT];

// How a reduction is made: one or two folds.
typedef struct ReductionPlan {
    Fold first, second; // first FOLD_NONE: none
    bool in_floats;     // integers are read as floats
} ReductionPlan;
extern const ReductionPlan reduction_plans[REDUCE_COUNT];
// The second fold is told the mean of what the first one has summed, else what it has found.
static inline bool reduction_tells_mean(const ReductionPlan *plan) {
    return plan->first != FOLD_NONE && fold_kinds[plan->first] <= FOLD_KIND_POSITIVE;
}

// The result for no numbers, of floats.
double reduction_of_nothing(ReduceOp op);
// The smallest or largest number of an integer type: the extreme of nothing.
int64_t reduction_limit(DType dtype, bool largest);

#endif
