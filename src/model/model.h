// A model: what a reader (model/reader.h) has, with its tensors on the default device. A tensor is
// made when it is first asked for and kept, so that every way of asking yields the same bytes; on
// the CPU those bytes are the mapped file. Reference-counted: tensors taken from a model outlive
// it.
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "model/reader.h"
#include "model/tokenizer.h"

typedef struct Model Model;
// A tensor's name, or the beginning of one before a dot: "blk", "blk.0", "blk.0.attn_q".
typedef struct ModelEntry ModelEntry;

// Opens by content, not extension. With `convert` each tensor of a float or quantised type becomes
// `dtype` on first access. STATUS_IO, STATUS_FORMAT; STATUS_MEMORY with the numbers when the device
// can never hold it.
typedef struct ModelOptions {
    bool convert;
    DType dtype;
    DType cache; // of keys and values, where has_cache; else TL_CACHE says, or the model
    bool has_cache;
    bool fast; // projections round activations to 8 bits; TL_FAST says so for every model
} ModelOptions;
Status model_open(const char *path, const ModelOptions *options, Model **out) MUST_USE;
Model *model_retain(Model *model);
void model_release(Model *model);
const Reader *model_reader(const Model *model);
const char *model_path(const Model *model);
bool model_is_fast(const Model *model);
DType model_cache_dtype(const Model *model); // what its pages hold keys and values in
bool model_has_tokenizer(const Model *model);
// The tokenizer that the file carries, or the folder has, made at the first call. Borrowed.
Status model_tokenizer(Model *model, Tokenizer **out) MUST_USE;
// A new reference. STATUS_NAME with the nearest name when there is none, STATUS_DTYPE when its type
// is not one that tl has.
Status model_tensor(Model *model, const char *name, Tensor **out) MUST_USE;
// Appends every tensor that its pages use, in the file's order; what was appended before a failure
// stays.
Status model_add_tensors(Model *model, NamedTensors *out) MUST_USE;
bool model_has_tensor(const Model *model, const char *name);
// One step down the names, which dots cut into words: from the model itself (`from` NULL) or from
// the beginning of a name to a longer one. Either *out is the tensor of that name, a new reference,
// or it is NULL and *entry, which lives as long as the model, the beginning of several.
// STATUS_NAME.
Status model_step(Model *model, const ModelEntry *from, const char *word, const ModelEntry **entry,
                  Tensor **out) MUST_USE;
// The same where the word is a number.
Status model_step_number(Model *model, const ModelEntry *from, int64_t number,
                         const ModelEntry **entry, Tensor **out) MUST_USE;
Model *model_entry_model(const ModelEntry *entry); // borrowed
const char *model_entry_name(const ModelEntry *entry);

#endif
