// A model's file, whatever its format: its metadata and a table of its tensors, whose numbers lie
// in mapped files or were read when it was opened. A format is one row in reader.c and one file:
// gguf.c, safetensors_reader.c, npz.c, folder.c. Knows no script.
#ifndef MODEL_READER_H
#define MODEL_READER_H

#include "base/file_map.h"
#include "model/metadata.h"
#include "model/named_tensors.h"

// How the numbers differ from those of the file (model/folder.h): when a tensor is first used.
typedef struct TensorChange {
    int64_t heads;  // not 0: of so many heads, the rows of each half become neighbours
    int64_t groups; // not 0: of so many groups of queries, a key, a value, all queries come first
    bool plus_one;  // 1 is added
    int part;       // not 0: of what is two in one, the first (1) or the second (2)
    int part_dim;   // along which the two lie, counted from the end: 1 or 2
    bool alternate; // in turns; otherwise one after the other
    bool transpose; // of the last two dimensions rows become columns, after that
    int64_t cut;    // so many of the first rows are left out
    bool squeeze;   // sizes of 1 between the first and the last are left out
    bool unused;    // no page of its architecture asks for it: it is not saved again
} TensorChange;

typedef struct StoredTensor {
    char *name;
    char *type_name; // "q4_k"; of a type that is not supported the file's word for it
    Shape shape;     // row-major, and after `change`
    DType dtype;
    bool usable;      // false: dtype says nothing; with the file's other tensors nothing is wrong
    Status refusal;   // of one that is not usable, with the words after the tensor's name and
    char *why, *help; // advice, both owned; why NULL: its type is not supported
    size_t bytes;     // in the file
    // One of the two, where it is usable: the file that the numbers lie in, kept by the reader, and
    // where, inside it; or the tensor, which lies in no file as it is.
    FileMap *map;
    size_t offset;
    Tensor *tensor; // counted
    TensorChange change;
    // Of MXFP4 whose scales lie apart (model/mxfp4.h): where, and which rows are meant: every first
    // (1) or second (2) of two, or all (0).
    FileMap *scales_map;
    size_t scales_offset;
    int turn;
    bool is_part; // of such tensors, which have its numbers
} StoredTensor;

typedef struct Reader {
    Metadata metadata;
    VECTOR(StoredTensor) tensors; // in the file's order; names differ
    VECTOR(FileMap *) maps;       // counted
    uint8_t *header;              // that metadata points into; NULL when it owns its strings
} Reader;

// Opens by content: a folder, GGUF and its parts, safetensors or the index of several, .npz.
// STATUS_IO when it cannot be read, STATUS_FORMAT naming the file and what is wrong in it.
Status reader_open(const char *path, Reader **out) MUST_USE;
// Of a format that is known (below); NULL: a folder.
typedef Status ReaderOpen(Reader *reader, FileMap *map);
Status reader_open_as(const char *path, ReaderOpen *open, Reader **out) MUST_USE;
void reader_close(Reader *reader);
void reader_clear(Reader *reader);         // of one that was not allocated
size_t reader_bytes(const Reader *reader); // of all tensors but parts of others
// Says why a tensor of the file at `path` is not usable.
Status reader_fail_unusable(const StoredTensor *tensor, const char *path);
// A usable tensor on the default device, as its file has it: `change` is not made. Floats and
// quantised numbers stay in the mapped file where the device reads host memory, unless `copy`.
Status reader_tensor(const StoredTensor *tensor, bool copy, Tensor **out) MUST_USE;
// All tensors of a file, in its order, and the texts of its metadata; tensors of types that are not
// supported are listed as unread.
Status reader_read(const char *path, ReaderOpen *open, bool copy, NamedTensors *out) MUST_USE;

// --- for formats, which fill an empty reader; what a failure leaves in it is closed with it

ReaderOpen gguf_open, safetensors_open, safetensors_open_index, npz_open;
// A row with copies of both and nothing else said; it is good until the next is added.
StoredTensor *reader_add(Reader *reader, const char *name, const char *type_name);
int reader_compare_names(const void *a, const void *b); // of StoredTensor *, for qsort
// A tensor that was read; keeps a reference.
void reader_add_tensor(Reader *reader, const char *name, Tensor *tensor);
// The strings of a file that has no other metadata.
void reader_add_texts(Reader *reader, const NamedTexts *texts);

#endif
