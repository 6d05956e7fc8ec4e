// Safetensors files: named tensors under a JSON header. The reader believes no number before it has
// checked it against the file. Knows neither models nor scripts.
#ifndef MODEL_SAFETENSORS_H
#define MODEL_SAFETENSORS_H

#include "base/text.h"
#include "model/reader.h"

// A tensor of a file that was checked. The name lives as long as the visit.
typedef struct SafetensorsEntry {
    const char *name;
    DType dtype;
    const struct SafetensorsType *foreign; // its numbers become dtype; NULL: they are
    const char *type;                      // the file's word for it
    bool known;                            // false: no type of ours is like it
    Shape shape;
    size_t begin, end; // in the file
} SafetensorsEntry;
typedef struct SafetensorsVisit {
    Status (*tensor)(void *context, const SafetensorsEntry *entry);
    void *context;
    NamedTensors *texts; // gets the texts of the file; may be NULL
} SafetensorsVisit;

// Visits the tensors of a file in its order; `name` is for messages.
Status safetensors_each(const uint8_t *bytes, size_t length, const char *name,
                        const SafetensorsVisit *visit) MUST_USE;
// A tensor with the numbers of an entry, on the default device; NULL when its type is not supported
// or holds a number that no dtype does.
Status safetensors_tensor(const uint8_t *bytes, const SafetensorsEntry *entry,
                          Tensor **out) MUST_USE;
// What a folder makes of the files in it: another name, into an empty text, and how the numbers of
// a tensor with that name differ.
typedef struct SafetensorsNaming {
    void *context;
    void (*name)(void *context, const char *name, Text *out);
    TensorChange (*change)(void *context, const char *source, const char *name);
    // Whether a second tensor is made of the same numbers: its name, into an empty text. Or NULL.
    bool (*twin)(void *context, const char *name, Text *out);
} SafetensorsNaming;
// As safetensors_open and safetensors_open_index (model/reader.h), without the files' texts.
Status safetensors_open_named(Reader *reader, FileMap *map,
                              const SafetensorsNaming *naming) MUST_USE;
Status safetensors_open_index_named(Reader *reader, FileMap *map,
                                    const SafetensorsNaming *naming) MUST_USE;
// Writes next to the path and renames, so that a failure leaves what was there.
Status safetensors_write(const char *path, const NamedTensors *tensors) MUST_USE;

#endif
