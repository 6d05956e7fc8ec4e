// Files of models that save_model writes beyond bare tensors.
#ifndef LIBRARY_EXPORT_H
#define LIBRARY_EXPORT_H

#include "model/metadata.h"
#include "model/model.h"
#include "model/named_tensors.h"
#include "value/builtin.h"

typedef struct GgufExport {
    const char *path;
    const NamedTensors *tensors;
    const Metadata *origin; // whose metadata come along; NULL: none
    Value meta;             // a dictionary or ABSENT
    Value tokenizer;        // a tokenizer or ABSENT
    Value dtype;            // a dtype or ABSENT: matrices are stored as it
    Value types;            // a function or ABSENT: the dtype of a matrix by its name and shape
    Interp *interp;         // that calls it
} GgufExport;

Status export_gguf(const GgufExport *export) MUST_USE;

#endif
