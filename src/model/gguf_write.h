// Writes GGUF files, version 3, little-endian: metadata of every type, tensors in any type that tl
// reads. What is added is checked at once; nothing touches the disk before gguf_writer_save. A
// writer of which a call failed can only be freed. Source: the GGUF specification (ggml project
// documentation, docs/gguf.md).
#ifndef MODEL_GGUF_WRITE_H
#define MODEL_GGUF_WRITE_H

#include "model/reader.h"

typedef struct GgufWriter GgufWriter;

GgufWriter *gguf_writer_new(void);
void gguf_writer_free(GgufWriter *writer);

bool gguf_writer_has(const GgufWriter *writer, const char *key);
// One value: value->type is any but an array. `general.alignment` decides where tensors lie.
// STATUS_KEY for a key that is there already, STATUS_VALUE for one that is not a text of 1 to 65535
// bytes, for a string that is too long, or a number outside its type.
Status gguf_writer_put(GgufWriter *writer, const char *key, const MetaValue *value) MUST_USE;
// An array of `count` values, each of `type`, which is not an array.
Status gguf_writer_put_array(GgufWriter *writer, const char *key, MetaType type,
                             const MetaValue *values, size_t count) MUST_USE;
Status gguf_writer_put_string(GgufWriter *writer, const char *key, const char *text) MUST_USE;
Status gguf_writer_put_integer(GgufWriter *writer, const char *key, MetaType type,
                               int64_t integer) MUST_USE;
// The pair of a file that was read, as it is.
Status gguf_writer_copy(GgufWriter *writer, const MetaPair *pair) MUST_USE;
// Keeps a reference. `stored` is the tensor's own dtype, a float type, or one that quantise_can
// make. STATUS_NAME: a name that is there already or longer than 64 bytes; STATUS_SHAPE: more than
// 4 dimensions, or rows that are not a multiple of the type's block; STATUS_DTYPE: GGUF has no such
// type.
Status gguf_writer_add(GgufWriter *writer, const char *name, Tensor *tensor, DType stored) MUST_USE;
// One tensor of several of one shape, which become its first dimension; STATUS_SHAPE: of several.
Status gguf_writer_add_stack(GgufWriter *writer, const char *name, Tensor **parts, size_t count,
                             DType stored) MUST_USE;

// Writes the file whole or leaves what was there (base/file_replace.h).
Status gguf_writer_save(GgufWriter *writer, const char *path) MUST_USE;

#endif
