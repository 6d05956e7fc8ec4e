// Models from files of named tensors: safetensors, .npz, or the index of a model in several
// safetensors files. Knows no script.
#ifndef MODEL_MODEL_TABLE_H
#define MODEL_MODEL_TABLE_H

#include "base/file_map.h"
#include "model/gguf.h"
#include "model/named_tensors.h"

// True when the bytes begin as such a file or such an index does.
bool model_is_table(const uint8_t *bytes, size_t length);
// The tensors, and a table of them as a GGUF file has it, without metadata, in the same order.
Status model_table_read(const char *path, const FileMap *map, NamedTensors *tensors,
                        GgufFile **table) MUST_USE;

#endif
