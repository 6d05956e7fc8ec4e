// What reduce.comp is given.
#ifndef HOST_REDUCE_H
#define HOST_REDUCE_H

#include "rows.h"

// The folds are those of the whole row; of its parts, which are written; or of what was written.
SHARED_NUMBER(STAGE_WHOLE, 0)
SHARED_NUMBER(STAGE_PARTS, 1)
SHARED_NUMBER(STAGE_JOIN, 2)
// Instead of a reduction's finish: the state stays as it is; it becomes the second fold's
// parameter.
SHARED_NUMBER(FINISH_NOT, 254)
SHARED_NUMBER(FINISH_PARAMETER, 255)

CONSTANTS(ReduceConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, FIRST, 0) // folds; FOLD_NONE: none
    CONSTANT(2, uint32_t, SECOND, 0)
    CONSTANT(3, uint32_t, FINISH, 0) // a reduction, or one of the above
    CONSTANT(4, uint32_t, DTYPES, 0) // in, out
    CONSTANT(5, uint32_t, STAGE, 0)
    CONSTANT(6, bool, COLUMNS, false)
    CONSTANT(7, uint32_t, WIDTH, 1) // numbers that a thread reads at once: 1 or 4
    CONSTANT(8, uint32_t, EACH, 1)  // items that a thread asks for at once
CONSTANTS_END(ReduceConstants, 9)

PUSHED(ReducePush)
    ARGUMENTS(RowStrides, rows)
    ROWS_PUSH
    uint64_t partials;   // of parts: results next to each other with COLUMNS, else parts
    uint64_t parameters; // [results], of the second fold in STAGE_PARTS
    uint64_t parts, part;
    uint32_t lanes, unused; // a power of two
    REAL(correction)
END(ReducePush, 80)

#endif
