// A tensor: a typed, strided view of a counted device buffer. Immutable to the language; views
// share the buffer. Reference-counted (not thread-safe: one interpreter thread owns all tensors).
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include "base/counted.h"
#include "base/number.h"
#include "device/kernel.h"

// Numbers of a literal, kept exactly on the host until an operation needs them on a device.
typedef struct HostNumbers {
    bool is_float; // doubles, else int64
    bool unknown;  // some are what only a run has (foretell.h)
    union {
        int64_t *integers;
        double *floats;
    } as;
} HostNumbers;

typedef struct Tensor {
    Counted counted;
    TensorView view;   // view.buffer is NULL until materialised (tensor_materialize)
    Device *device;    // where it is, or will be when materialised
    HostNumbers *host; // literals only; stays next to the buffer so that shapes read it exactly
    bool learnable;    // a parameter: has identity, updated by training
    int node_output;
    struct TapeNode *node; // counted: gradients flow on to where it came from (tape.h); else NULL
    Origin origin;
} Tensor;

// Uninitialised contents, contiguous, on `device`. Errors: STATUS_SHAPE (too many elements or bytes
// overflow), STATUS_MEMORY.
Status tensor_new(Device *device, DType dtype, const Shape *shape, Tensor **out) MUST_USE;
// A literal: copies the numbers; the language's dtype is INT64, FLOAT32 or BOOL (bools as
// integers).
Status tensor_from_integers(const int64_t *values, const Shape *shape, DType dtype,
                            Tensor **out) MUST_USE;
Status tensor_from_floats(const double *values, const Shape *shape, DType dtype,
                          Tensor **out) MUST_USE;
// A new tensor that shares `source`'s buffer, seen through `view` (whose buffer field is ignored).
Tensor *tensor_view_of(Tensor *source, const TensorView *view);
// Wraps bytes that a buffer already holds (model files); takes the reference to `buffer`.
Tensor *tensor_from_buffer(Buffer *buffer, size_t offset, DType dtype, const Shape *shape);
Tensor *tensor_retain(Tensor *tensor);
void tensor_release(Tensor *tensor); // NULL is allowed
// What a function has made before it fails: the place is NULL then, as a SCOPED_TENSOR needs it.
static inline void tensor_release_of(Tensor **tensor) {
    tensor_release(*tensor);
    *tensor = NULL;
}
// A temporary of this scope: released when the scope is left, by TRY as well as by its end.
#define SCOPED_TENSOR(name) Tensor *name __attribute__((cleanup(tensor_release_of))) = NULL
void tensor_destroy(
    Tensor *tensor); // the count has just become 0; only release functions call this
// Uploads a literal's numbers; nothing to do for others.
Status tensor_materialize(Tensor *tensor) MUST_USE;
// While a program is foretold: only a run has its numbers.
void tensor_forget(Tensor *tensor);

static inline int tensor_rank(const Tensor *tensor) {
    return tensor->view.rank;
}
static inline DType tensor_dtype(const Tensor *tensor) {
    return tensor->view.dtype;
}
int64_t tensor_count(const Tensor *tensor); // number of elements; 1 for rank 0
bool tensor_is_contiguous(const Tensor *tensor);
Shape tensor_shape(const Tensor *tensor);
Shape tensor_shape_told(const Tensor *tensor); // to the program (foretell_shape_read)

// Reads to the host, in row-major order, converted: waits for the device. `count` elements.
Status tensor_read_floats(Tensor *tensor, double *out) MUST_USE;
Status tensor_read_integers(Tensor *tensor, int64_t *out) MUST_USE; // truncates floats
// How many places of a dimension are read: all, or `edge` at both ends where there are more.
static inline int64_t edge_count(int64_t size, int64_t edge) {
    return size <= 2 * edge ? size : 2 * edge;
}
// The elements at such places, `count` of them, into the one of both that is not NULL. Takes no
// memory of the device. Not of quantised tensors.
Status tensor_read_edges(Tensor *tensor, int64_t edge, size_t count, double *floats,
                         int64_t *integers) MUST_USE;
Status tensor_read_bools(Tensor *tensor, uint8_t *out) MUST_USE; // of a bool tensor: 0 or 1
// The one number of a tensor with one element (any rank).
Status tensor_read_scalar(Tensor *tensor, Scalar *out) MUST_USE;

// What numbers of a floating dtype keep; float32 where quantised ones are read.
NumberWidth float_width(DType dtype);
// Appends as LANGUAGE.md section 7 prints; quantised types print their dequantised values.
Status tensor_print(Tensor *tensor, Text *out) MUST_USE;
// "float32[2, 3]"
void tensor_describe(const Tensor *tensor, Text *out);

// shape_dim of a tensor.
Status op_dim(const Tensor *x, int64_t dim, int *out) MUST_USE;
// What messages say of an operand.
TensorType tensor_type(const Tensor *tensor);
TypeName tensor_type_name(const Tensor *tensor);

// A literal's numbers in another dtype, no longer a literal.
Status tensor_from_host(const Tensor *literal, DType dtype, Tensor **out) MUST_USE;

#endif
