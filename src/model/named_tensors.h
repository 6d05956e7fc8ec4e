// Tensors by name, and the two ways between a tensor and the bytes of a file. Knows no format.
#ifndef MODEL_NAMED_TENSORS_H
#define MODEL_NAMED_TENSORS_H

#include "base/key_index.h"
#include "base/memory.h"
#include "tensor/tensor.h"

typedef struct NamedTensor {
    char *name;     // owned
    Tensor *tensor; // counted
} NamedTensor;
// What a file says next to its tensors: texts by key.
typedef struct NamedText {
    char *key, *text; // owned
} NamedText;
typedef struct NamedTexts {
    NamedText *items;
    size_t count, capacity;
    KeyIndex *index; // by key; NULL without texts
} NamedTexts;
typedef struct NamedTensors {
    NamedTensor *items;
    size_t count, capacity;
    KeyIndex *index; // by name, of the first of them: it grows when one is looked for
    NamedTexts texts;
    NamedTexts unread; // tensors of types that are not supported: these by the name
} NamedTensors;

// Copies the name, takes the reference.
void named_tensors_add(NamedTensors *tensors, const char *name, Tensor *tensor);
// Borrowed; NULL when there is none of that name.
Tensor *named_tensors_find(const NamedTensors *tensors, const char *name);
// The first of that name, which may be its own.
void named_tensors_remove(NamedTensors *tensors, const char *name);
// Whether bytes can be a text or key of a file: UTF-8 without zeros.
bool named_text_fits(const char *bytes, size_t length);
// Copies both; a key that is there already gets the new text.
void named_tensors_add_text(NamedTensors *tensors, const char *key, const char *text);
// Borrowed; NULL when there is none of that key.
const char *named_tensors_text(const NamedTensors *tensors, const char *key);
void named_tensors_add_unread(NamedTensors *tensors, const char *name, const char *type);
const char *named_tensors_unread(const NamedTensors *tensors, const char *name);
Status named_tensors_fail_unread(const char *path, const char *name, const char *type);
void named_tensors_free(NamedTensors *tensors);

// The bytes that a shape takes; false when they are too many to count.
bool stored_bytes(DType dtype, const Shape *shape, size_t *out);
// A tensor for a file's numbers: of that dtype, or uint8 for bools, whose bytes a file may have
// wrong. stored_finish makes bools of those; it takes the reference.
Status stored_new(DType dtype, const Shape *shape, Tensor **out) MUST_USE;
Status stored_finish(Tensor *stored, DType dtype, Tensor **out) MUST_USE;
// The numbers, or blocks, of any tensor in row-major order; free() them.
Status stored_download(Tensor *tensor, void **out, size_t *length) MUST_USE;

#endif
