// Weights of quantised dtypes, interleaved by 16 rows.
#ifndef DEVICE_CPU_REPACK_H
#define DEVICE_CPU_REPACK_H

#include "device/cpu/repacked.h"

// NULL: the dtype has no interleaved layout.
const RepackedForm *repacked_form(DType dtype);
// Bytes of a strip with this many columns.
size_t repacked_strip_bytes(const RepackedForm *form, int64_t columns);
// Up to 16 rows of `columns` weights, row_bytes apart.
typedef struct WeightRows {
    DType dtype;
    const char *first;
    int64_t row_bytes, columns;
    int count;
} WeightRows;
// Interleaves 16 rows; those at and after rows->count are zero.
void repack_strip(const WeightRows *rows, char *strip);

#endif
