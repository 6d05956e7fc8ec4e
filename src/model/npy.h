// NumPy's .npy: one array. Believes no number before it has checked it against the file. Source:
// the format's description, numpy.lib.format, versions 1.0 to 3.0. Knows no archive.
#ifndef MODEL_NPY_H
#define MODEL_NPY_H

#include "base/text.h"
#include "tensor/tensor.h"

// Where an array's bytes come from. `name` is for messages; `read` gives exactly `bytes` more and
// is never asked for more than `length` in all.
typedef struct NpySource NpySource;
struct NpySource {
    const char *name;
    uint64_t length;
    Status (*read)(NpySource *source, void *out, size_t bytes);
};
// The array on the default device. Either byte order; an array in Fortran order is a transposed
// view. STATUS_FORMAT names the source and what is wrong or what tl has not (uint16, text, ...).
Status npy_read_source(NpySource *source, Tensor **out) MUST_USE;
// The same from memory and from a file.
Status npy_parse(const uint8_t *bytes, size_t length, const char *name, Tensor **out) MUST_USE;
Status npy_read(const char *path, Tensor **out) MUST_USE;

// Appends what stands before the numbers of a tensor, in version 1.0. STATUS_DTYPE when NumPy has
// no such type (bfloat16, quantised); `name` is for that message.
Status npy_header(const Tensor *tensor, const char *name, Text *out) MUST_USE;
// Replaces the file as a whole.
Status npy_write(const char *path, Tensor *tensor) MUST_USE;

#endif
