// Operations on tensors: one row each in catalog/ops.def, one way to run them, op_apply.
#ifndef TENSOR_OP_H
#define TENSOR_OP_H

#include "tensor/tensor.h"

enum { OP_INPUTS_MAX = 8, OP_OUTPUTS_MAX = 3 };

// Everything an operation can be told beside its tensors. Names are the parameter names of the
// signatures, so that a call binds by name without code of its own (tensor/attributes.def).
typedef struct OpAttributes {
    uint64_t given;        // bit per attribute (ATTRIBUTE_xxx): set when the caller gave it
    Shape shape;           // shape, sizes: whole numbers, -1 allowed where the op says
    Shape dims;            // dims: a list of dimensions
    int64_t dim, d0, d1, k, n, start, stop, step, row, offset, seed, groups;
    double eps, p, scale, value, base, lo, hi, mean, std, alpha;
    int64_t stride[2], padding[2], dilation[2], size[2];
    bool keepdim, causal, descending, exact, training;
    DType dtype;
    Device *device;
    const char *mode;      // style, norm kind, reduction: a word
} OpAttributes;

// One argument: a tensor or a plain number.
typedef struct OpInput {
    Tensor *tensor; // NULL: the scalar
    Scalar scalar;
    bool donate;    // the caller's reference is the last and it will not read the tensor again
} OpInput;

typedef struct OpCall OpCall;
typedef struct OpRow OpRow;

// Computes the results; each out is a new reference. The call is read-only.
typedef Status (*OpRun)(const OpCall *call, Tensor **outputs);
// The op's dtypes and shapes from its inputs' (used by the check before running, without data).
typedef struct TensorType {
    DType dtype;
    Shape shape;
} TensorType;

struct OpRow {
    const char *name;
    OpRun run;
    MapOp map;             // for MAP rows
    int outputs;
    const char *signature; // "softmax(x: tensor, dim: int = -1) -> tensor"
    const char *doc;
};

struct OpCall {
    const OpRow *op;
    int n_inputs;          // absent optional inputs in the middle: tensor NULL and scalar dtype COUNT
    OpInput inputs[OP_INPUTS_MAX];
    OpAttributes attributes;
};

// Runs an operation: the only way that tensors are computed.
Status op_apply(const OpCall *call, Tensor **outputs) MUST_USE;
const OpRow *op_find(const char *name);

// The same for C code that composes: results through out, inputs borrowed.
typedef enum OpId {
#define OP(name, ...) OP_##name,
#include "catalog/ops.def"
#undef OP
    OP_COUNT
} OpId;
extern const OpRow op_rows[OP_COUNT];
Status op_unary(OpId op, Tensor *x, Tensor **out) MUST_USE;
Status op_binary(OpId op, OpInput a, OpInput b, Tensor **out) MUST_USE;
Status op_with(OpId op, Tensor *const *inputs, int n_inputs, const OpAttributes *attributes,
               Tensor **out) MUST_USE;
static inline OpInput op_tensor(Tensor *tensor) { return (OpInput){.tensor = tensor}; }
static inline OpInput op_float(double f) {
    return (OpInput){.scalar = {.dtype = DTYPE_FLOAT64, .as.f = f}};
}
static inline OpInput op_int(int64_t i) {
    return (OpInput){.scalar = {.dtype = DTYPE_INT64, .as.i = i}};
}

#endif
