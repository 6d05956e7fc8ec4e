// Files of tensors by the ending of their names: .safetensors, .npz, .gguf and .npy. Knows no
// script.
#ifndef MODEL_TENSOR_FILE_H
#define MODEL_TENSOR_FILE_H

#include "model/named_tensors.h"

typedef struct TensorFormat {
    const char *ending;
    const char *lone_name; // what a tensor without a name is called; NULL: nothing here has one
    bool describes;        // holds metadata, vocabularies and quantised tensors (gguf_write.h)
    Status (*read)(const char *path, NamedTensors *out);
    Status (*write)(const char *path, const NamedTensors *tensors);
} TensorFormat;

// The format of a path's ending; STATUS_VALUE names the endings that there are. A .npy file holds
// exactly one tensor: its format has no lone_name, reads one tensor called "", and writes one.
Status tensor_format_find(const char *path, const TensorFormat **out) MUST_USE;
// One that holds tensors with names.
Status tensor_format_find_named(const char *path, const TensorFormat **out) MUST_USE;

#endif
