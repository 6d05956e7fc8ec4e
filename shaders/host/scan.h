// What scan.comp is given.
#ifndef HOST_SCAN_H
#define HOST_SCAN_H

#include "rows.h"

// Rows whole; rows in parts take three dispatches: totals of the parts, their running totals, and
// with these the rows.
SHARED_NUMBER(SCAN_ROWS, 0)
SHARED_NUMBER(SCAN_TOTALS, 1)
SHARED_NUMBER(SCAN_RUNNING, 2)

CONSTANTS(ScanConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, DTYPES, 0) // in, out
    CONSTANT(2, bool, PRODUCT, false)
    CONSTANT(3, uint32_t, LANES, 256)
    CONSTANT(4, uint32_t, STEP, 0)
CONSTANTS_END(ScanConstants, 5)

PUSHED(ScanPush)
    ARGUMENTS(RowStrides, rows)
    ROWS_PUSH
    uint64_t totals;            // [results, parts]
    uint64_t parts, part_count; // elements of a part: a multiple of what LANES threads take at once
END(ScanPush, 56)

#endif
