// What matvec_blocks.comp is given.
#ifndef HOST_MATVEC_BLOCKS_H
#define HOST_MATVEC_BLOCKS_H

#include "product.h"

// When a team asks for its next columns: never, after those before them, ahead of these.
SHARED_NUMBER(COLUMNS_ONCE, 0)
SHARED_NUMBER(COLUMNS_BEHIND, 1)
SHARED_NUMBER(COLUMNS_AHEAD, 2)

CONSTANTS(MatvecBlocksConstants)
    JOIN_CONSTANTS
    CONSTANT(3, uint32_t, ROWS, 1)          // 1 or 2
    CONSTANT(4, uint32_t, EACH, 1)          // columns at a time: 1, 2 or 4
    CONSTANT(5, uint32_t, PARTS, 1)         // teams that share a column: 1, 2 or 4
    CONSTANT(6, uint32_t, ALIGNED, 4)       // bytes; columns begin at multiples of it
    CONSTANT(7, uint32_t, SUPER_BYTES, 144) // of 256 weights
    CONSTANT(8, uint32_t, ROW_FOURS, 264)   // PARTS * FOURS_OF_RUN
    CONSTANT(9, uint32_t, AHEAD, COLUMNS_ONCE)
CONSTANTS_END(MatvecBlocksConstants, 10)

#endif
