// What sort_keys.comp is given.
#ifndef HOST_SORT_KEYS_H
#define HOST_SORT_KEYS_H

#include "rows.h"

// Numbers become keys; or sorted places become values.
SHARED_NUMBER(SORT_KEYS, 0)
SHARED_NUMBER(SORT_VALUES, 1)

CONSTANTS(SortKeysConstants)
    ROWS_CONSTANTS
    CONSTANT(1, uint32_t, DTYPE, 0)
    CONSTANT(2, uint32_t, KIND, 0)
    CONSTANT(3, bool, DESCENDING, false)
CONSTANTS_END(SortKeysConstants, 4)

// Views: the values and the input. The rest lies contiguous, row after row.
PUSHED(SortKeysPush)
    ARGUMENTS(RowStrides, rows)
    uint64_t in_address, values, places;
    uint64_t keys; // or the sorted places, of 32 bits
    uint32_t results, count;
    uint32_t wanted; // of each row, of `sorted` places that it has
    uint32_t sorted;
END(SortKeysPush, 48)

#endif
