// Models from safetensors files: one file, or the index of a model in several. Knows no script.
#ifndef MODEL_MODEL_SAFETENSORS_H
#define MODEL_MODEL_SAFETENSORS_H

#include "model/gguf.h"
#include "model/safetensors.h"

// True when the bytes begin as such a file or such an index does.
bool model_is_safetensors(const uint8_t *bytes, size_t length);
// The tensors, and a table of them as a GGUF file has it, without metadata, in the same order.
Status model_safetensors_read(const char *path, const FileMap *map, NamedTensors *tensors,
                              GgufFile **table) MUST_USE;

#endif
