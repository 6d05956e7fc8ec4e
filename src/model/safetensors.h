// Safetensors files: named tensors under a JSON header. The reader believes no number before it has
// checked it against the file. Knows neither models nor scripts.
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include "model/named_tensors.h"

// Every tensor of the file, on the default device, in the file's order. STATUS_FORMAT names the
// file and what is wrong with it.
Status safetensors_read(const char *path, NamedTensors *out) MUST_USE;
// The same from memory; `name` is for messages.
Status safetensors_parse(const uint8_t *bytes, size_t length, const char *name,
                         NamedTensors *out) MUST_USE;
// Writes next to the path and renames, so that a failure leaves what was there.
Status safetensors_write(const char *path, const NamedTensors *tensors) MUST_USE;

#endif
