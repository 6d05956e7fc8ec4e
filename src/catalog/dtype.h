// Element types of tensors: names and sizes, projected from dtypes.def.
#ifndef CATALOG_DTYPE_H
#define CATALOG_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
#define DTYPE(code, name, kind, block, bytes, short_name, ...) DTYPE_##code,
#include "catalog/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef enum DTypeKind {
    DTYPE_KIND_BOOL,
    DTYPE_KIND_INT,
    DTYPE_KIND_FLOAT,
    DTYPE_KIND_QUANT
} DTypeKind;

typedef struct DTypeInfo {
    const char *name, *short_name;
    DTypeKind kind;
    int block_elements, block_bytes;
    int gguf; // the number that files of that format have for it; -1: none
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

static inline const char *dtype_name(DType dtype) {
    return dtype_info[dtype].name;
}
static inline DTypeKind dtype_kind(DType dtype) {
    return dtype_info[dtype].kind;
}
static inline bool dtype_is_float(DType dtype) {
    return dtype_kind(dtype) == DTYPE_KIND_FLOAT;
}
static inline bool dtype_is_quant(DType dtype) {
    return dtype_kind(dtype) == DTYPE_KIND_QUANT;
}
// Bytes of one element; 0 for block-quantised types.
static inline size_t dtype_size(DType dtype) {
    return dtype_info[dtype].block_elements == 1 ? (size_t)dtype_info[dtype].block_bytes : 0;
}
// By full name or short name ("float32", "f32"); false when there is none.
bool dtype_find(const char *name, size_t length, DType *out);
// The promoted dtype of two tensors of rank > 0.
DType dtype_promote(DType x, DType y);
// The floating dtype an operation on `dtype` computes in and returns: itself, or float32 for ints.
DType dtype_floating(DType dtype);

#endif
