// NumPy's .npz: a zip archive with one .npy array per tensor. Archives go through libzip, which is
// loaded at its first use. Source: numpy.lib.format.
#ifndef MODEL_NPZ_H
#define MODEL_NPZ_H

#include "model/named_tensors.h"

// True when the bytes begin as a zip archive does.
bool npz_begins(const uint8_t *bytes, size_t length);
// Every array, stored or deflated, in the archive's order; a tensor's name is its member's without
// ".npy". STATUS_FORMAT names the file, the member and what is wrong with it.
Status npz_parse(const uint8_t *bytes, size_t length, const char *name, NamedTensors *out) MUST_USE;
// Stored members, as numpy.savez writes them, without times: equal tensors make equal files.
// Replaces the file as a whole.
Status npz_write(const char *path, const NamedTensors *tensors) MUST_USE;

#endif
