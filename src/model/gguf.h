// GGUF files, versions 1 to 3, little-endian: metadata and the table of tensors, read from a mapped
// file. Every number of the header is checked against the file before it is used; nothing is
// allocated by a number that the file's own size does not bound.
// Source: the GGUF specification (ggml project documentation, docs/gguf.md).
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include "base/file_map.h"
#include "tensor/tensor.h"

typedef enum GgufType {
    GGUF_UINT8,
    GGUF_INT8,
    GGUF_UINT16,
    GGUF_INT16,
    GGUF_UINT32,
    GGUF_INT32,
    GGUF_FLOAT32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_UINT64,
    GGUF_INT64,
    GGUF_FLOAT64,
    GGUF_TYPE_COUNT
} GgufType;

// A metadata value. Strings point into the file's header and are not NUL-terminated.
typedef struct GgufValue {
    GgufType type;
    union {
        int64_t integer; // every integer type and bool; uint64 beyond int64 is refused
        double number;
        struct {
            const char *bytes;
            size_t length;
        } string;
        struct {
            GgufType type;
            size_t count;
            size_t offset;
        } array; // offset of element 0 in the file
    } as;
} GgufValue;

typedef struct GgufPair {
    char *key;
    GgufValue value;
} GgufPair;

// How the numbers differ from those of the file (model/folder.h): when a tensor is first used.
typedef struct TensorChange {
    int64_t heads;  // not 0: of so many heads, the rows of each half become neighbours
    bool plus_one;  // 1 is added
    bool transpose; // rows become columns
} TensorChange;

typedef struct GgufTensor {
    char *name;
    Shape shape;           // row-major: GGUF's dimensions reversed
    const char *type_name; // "q4_k"; known even when tl has no such dtype; "unknown"
    char *type_text;       // owned: type_name where it is not a type of GGUF; else NULL
    uint32_t type_number;
    int block_elements;
    bool removed;   // the type is no longer one of the format
    bool has_dtype; // false: it cannot be used (model.c says why), only the others can
    DType dtype;
    size_t offset, bytes; // in the file; inside it, checked
    FileMap *map;         // of the file that it lies in; NULL when parsed from memory
    TensorChange change;
} GgufTensor;

typedef struct GgufFile GgufFile;
struct GgufFile {
    FileMap *map;         // of the tensors; NULL when parsed from memory
    uint8_t *copy;        // of the header, which nobody else can change; NULL likewise
    const uint8_t *bytes; // the header: all that comes before the tensors
    size_t header_bytes;
    size_t length; // of the whole file
    uint32_t version;
    GgufPair *pairs;
    size_t pair_count;
    GgufTensor *tensors;
    size_t tensor_count;
    GgufFile **parts; // the other files of a model in several; their tensors are in `tensors`
    size_t part_count;
};

// STATUS_IO when the file cannot be read, STATUS_FORMAT naming the file and what is wrong in it.
Status gguf_open(const char *path, GgufFile **out) MUST_USE;
// The same of a model that may be in several files: `path` is the first.
Status gguf_open_parts(const char *path, GgufFile **out) MUST_USE;
// The same from bytes in memory that outlive the file (fuzzing, tests); `map` stays NULL.
Status gguf_parse(const uint8_t *bytes, size_t length, const char *name, GgufFile **out) MUST_USE;
void gguf_close(GgufFile *file);
// Says that a tensor of another format is of a type that is not supported.
void gguf_tensor_unread(GgufTensor *tensor, const char *type);
const GgufValue *gguf_find(const GgufFile *file, const char *key); // NULL when absent
// Visits the elements of an array in order. Arrays of arrays are refused when the file is opened.
void gguf_array_each(const GgufFile *file, const GgufValue *array,
                     void (*visit)(void *context, size_t index, GgufValue value), void *context);

#endif
