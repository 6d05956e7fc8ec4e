// Walks over strided views of the same dims (include/walk.glsl).
#ifndef HOST_WALK_H
#define HOST_WALK_H

#include "language.h"

SHARED_NUMBER(WALK_VIEWS, 4)

STORED(WalkStrides)
    int64_t strides[WALK_VIEWS][RANK_MAX]; // in elements
    uint32_t dims[RANK_MAX];
END(WalkStrides, 288)

#define WALK_CONSTANTS CONSTANT(0, uint32_t, RANK, 0)

#endif
