// What training makes as tensors and texts by name, for files: tensors, plain values, and the state
// of optimizers and schedulers, whose moments go by the names of the parameters. Loading has two
// steps: everything is read, compared and converted before the first value changes.
#ifndef VALUE_ARCHIVE_H
#define VALUE_ARCHIVE_H

#include "model/tensor_file.h"
#include "tensor/optimizer.h"
#include "value/walk.h"

typedef struct Archive {
    const char *path;
    NamedTensors tensors;
    ParameterList parameters; // of what was added, or is loaded into
    Value ready;              // a list: what goes to each part, in the order of the walk
    size_t taken;             // of `ready`
    bool in_parts;            // states that lack elements are left out, and fail otherwise
} Archive;

// Adds a value under a name, "" for none. Parameters are added before the optimizers that move
// them: first every value by archive_add_parameters, then by archive_add.
Status archive_add_parameters(Archive *archive, const char *name, Value value) MUST_USE;
Status archive_add(Archive *archive, const char *name, Value value) MUST_USE;
// The states that lack elements, by the names of parameters and their first element: the file of
// one of the ranks that share them. Read into one archive they make the whole.
void archive_add_parts(Archive *archive, const char *name, const Optimizer *optimizer);
// Finds in the file what the value needs; the parameters have been added. Nothing changes yet.
Status archive_prepare(Archive *archive, const char *name, Value value) MUST_USE;
// Gives what was prepared, value by value in the same order. Cannot fail.
void archive_give(Archive *archive, Value value);
// A tensor of the file, borrowed; STATUS_NAME when there is none of that name.
Status archive_find(const Archive *archive, const char *name, Tensor **out) MUST_USE;
void archive_free(Archive *archive);

#endif
