// What matvec_blocks.comp is given.
#ifndef HOST_MATVEC_BLOCKS_H
#define HOST_MATVEC_BLOCKS_H

#include "product.h"

CONSTANTS(MatvecBlocksConstants)
    JOIN_CONSTANTS
    CONSTANT(3, uint32_t, ROWS, 1)          // 1 or 2
    CONSTANT(4, uint32_t, EACH, 1)          // columns at a time: 1, 2 or 4
    CONSTANT(5, uint32_t, PARTS, 1)         // teams that share a column: 1, 2 or 4
    CONSTANT(6, uint32_t, ALIGNED, 4)       // bytes; columns begin at multiples of it
    CONSTANT(7, uint32_t, SUPER_BYTES, 144) // of 256 weights
    CONSTANT(8, uint32_t, ROW_FOURS, 264)   // PARTS * FOURS_OF_RUN
    CONSTANT(9, uint32_t, AHEAD, 0) // the next columns are asked for: never, after these, before
CONSTANTS_END(MatvecBlocksConstants, 10)

#endif
