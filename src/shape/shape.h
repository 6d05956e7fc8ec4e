// Shapes and types of tensors as numbers and as words. Knows no tensor: tensor/ asks with the sizes
// of real ones, check/ with what it can tell of a program that has not run.
#ifndef SHAPE_SHAPE_H
#define SHAPE_SHAPE_H

#include "base/text.h"
#include "catalog/dtype.h"

enum { RANK_MAX = 8 };

// What tensors have, and what creating functions are given.
typedef struct Shape {
    int64_t dims[RANK_MAX];
    int rank;
} Shape;

typedef struct TensorType {
    Shape shape;
    DType dtype; // DTYPE_COUNT: unknown
} TensorType;

// A size that is not known lies far below every number that a script can give. Tensors never have
// one; functions of this folder take them and never fail because of them. One with a name is the
// same size wherever it stands, and messages show the name.
#define SIZE_UNKNOWN INT64_MIN
static inline bool size_is_known(int64_t size) {
    return size > INT64_MIN / 2;
}
// A number that a script gives, as a size: one that would pass for unknown stays negative all the
// same.
static inline int64_t size_given(int64_t number) {
    return size_is_known(number) ? number : INT64_MIN / 2 + 1;
}
// What was computed of known numbers: not known either where it would pass for unknown.
static inline int64_t size_computed(int64_t number) {
    return size_is_known(number) ? number : SIZE_UNKNOWN;
}
int64_t size_named(const char *name); // the string is borrowed and identifies the size
// Certainly different; certainly equal. Both are false where it cannot be told.
static inline bool sizes_differ(int64_t x, int64_t y) {
    return x != y && size_is_known(x) && size_is_known(y);
}
static inline bool sizes_equal(int64_t x, int64_t y) {
    return x == y && x != SIZE_UNKNOWN;
}
int64_t size_add(int64_t x, int64_t y);      // SIZE_UNKNOWN when either is, or beyond 64 bits
int64_t size_multiply(int64_t x, int64_t y); // the same; 1 changes nothing
void size_append(Text *out, int64_t size);   // "3", "n" or "?"

// Elements; SIZE_UNKNOWN where a size is.
int64_t shape_count(const Shape *shape);
bool shape_is_known(const Shape *shape);
bool shapes_differ(const Shape *x, const Shape *y);
void shape_describe(const Shape *shape, Text *out); // "[2, 3]"

// "float32[2, 3]" in a buffer of the caller's, for messages.
typedef struct TypeName {
    char text[192];
} TypeName;
TypeName type_name(DType dtype, const Shape *shape);
static inline TypeName tensor_type_text(const TensorType *type) {
    return type_name(type->dtype, &type->shape);
}

// A dimension as the user gave it, -rank..rank-1, made 0..rank-1. STATUS_INDEX "dim 3 is out of
// range for float32[2, 3]: it has 2 dimensions".
Status shape_dim(const TensorType *x, int64_t dim, int *out) MUST_USE;
// NumPy's broadcasting; the failure names the op and both types.
Status shape_broadcast(const char *op_name, const TensorType *x, const TensorType *y,
                       Shape *out) MUST_USE;

#endif
