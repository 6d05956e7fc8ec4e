// What reduce.comp is given.
#ifndef HOST_REDUCE_H
#define HOST_REDUCE_H

#include "rows.h"

// The folds are those of the whole row; of its parts, which are written; or of what was written.
NUMBER(STAGE_WHOLE, 0)
NUMBER(STAGE_PARTS, 1)
NUMBER(STAGE_JOIN, 2)

CONSTANTS(ReduceConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, FOLDS, 0)  // first (NONE), second, finish: four bits each
    CONSTANT(2, uint32_t, DTYPES, 0) // in, out
    CONSTANT(3, uint32_t, STAGE, 0)
    CONSTANT(4, bool, COLUMNS, false)
    CONSTANT(5, uint32_t, WIDTH, 1) // numbers that a thread reads at once: 1 or 4
    CONSTANT(6, uint32_t, EACH, 1)  // items that a thread asks for at once
CONSTANTS_END(ReduceConstants, 7)

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
