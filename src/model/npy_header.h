// The header of a .npy array: a Python dictionary of three entries, {'descr': '<f4',
// 'fortran_order': False, 'shape': (2, 3), }. Only npy.c includes it.
#ifndef MODEL_NPY_HEADER_H
#define MODEL_NPY_HEADER_H

#include "base/text.h"
#include "model/named_tensors.h"

typedef struct NpyHeader {
    DType dtype;
    bool swapped; // the numbers have the other byte order
    bool fortran; // the first index runs fastest
    Shape shape;
} NpyHeader;

// STATUS_FORMAT with `name` and the place in the header.
Status npy_header_parse(const char *text, const char *name, NpyHeader *out) MUST_USE;
// Appends the dictionary of a tensor. STATUS_DTYPE when NumPy has no such type; `name` is what the
// error calls it, NULL: there is only one.
Status npy_header_write(const Tensor *tensor, const char *name, Text *out) MUST_USE;

#endif
