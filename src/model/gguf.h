// GGUF files, versions 1 to 3, little-endian. Every number of the header is checked against the
// file before it is used; nothing is allocated by a number that the file's own size does not bound.
// Source: the GGUF specification (ggml project documentation, docs/gguf.md).
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include "model/reader.h"

// One file, which may be a part of a model in several. gguf_open (model/reader.h) reads them all.
Status gguf_open_part(Reader *reader, FileMap *map) MUST_USE;
// The tables from bytes in memory; where the numbers lie is not said.
Status gguf_parse(Reader *reader, const uint8_t *bytes, size_t length, const char *name) MUST_USE;

#endif
