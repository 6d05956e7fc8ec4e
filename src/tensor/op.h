// Operations on tensors: one row each in catalog/ops.def, one way to run them, op_apply. Knows
// tensors and kernels; knows neither values nor places in a script.
#ifndef TENSOR_OP_H
#define TENSOR_OP_H

#include "tensor/tensor.h"

enum { OP_INPUTS_MAX = 8, OP_OUTPUTS_MAX = 3 };

// Integers of any count; borrowed for the length of the call.
typedef struct IntList {
    const int64_t *items;
    size_t count;
} IntList;

typedef enum AttributeKind {
    ATTRIBUTE_KIND_INT,
    ATTRIBUTE_KIND_NUMBER,
    ATTRIBUTE_KIND_BOOL,
    ATTRIBUTE_KIND_SCALAR,
    ATTRIBUTE_KIND_STRING,
    ATTRIBUTE_KIND_SHAPE,
    ATTRIBUTE_KIND_INTS,
    ATTRIBUTE_KIND_DTYPE,
    ATTRIBUTE_KIND_DEVICE,
} AttributeKind;
typedef int64_t AttributeType_INT;
typedef double AttributeType_NUMBER;
typedef bool AttributeType_BOOL;
typedef Scalar AttributeType_SCALAR;
typedef const char *AttributeType_STRING;
typedef Shape AttributeType_SHAPE;
typedef IntList AttributeType_INTS;
typedef DType AttributeType_DTYPE;
typedef Device *AttributeType_DEVICE;

typedef enum AttributeId {
#define ATTRIBUTE(name, kind) ATTRIBUTE_##name,
#include "tensor/attributes.def"
#undef ATTRIBUTE
    ATTRIBUTE_COUNT
} AttributeId;
_Static_assert(ATTRIBUTE_COUNT <= 64, "OpAttributes.given has a bit per attribute");
#define ATTRIBUTE_BIT(name) (1ull << ATTRIBUTE_##name)

// Everything an operation can be told next to its tensors: a field per row of attributes.def.
typedef struct OpAttributes {
    uint64_t given; // ATTRIBUTE_BIT(name): has a value, from the caller or the signature's default
#define ATTRIBUTE(name, kind) AttributeType_##kind name;
#include "tensor/attributes.def"
#undef ATTRIBUTE
} OpAttributes;

typedef struct AttributeInfo {
    const char *name;
    AttributeKind kind;
    size_t offset; // of the field in OpAttributes
} AttributeInfo;
extern const AttributeInfo attribute_table[ATTRIBUTE_COUNT];
// By parameter name; ATTRIBUTE_COUNT when there is none.
AttributeId attribute_find(const char *name);

// One argument: a tensor, a plain number, or nothing.
typedef struct OpInput {
    Tensor *tensor; // NULL: the scalar
    Scalar scalar;  // dtype DTYPE_COUNT: an optional input that was not given
    bool donate;    // the caller's reference is the last and it will not read the tensor again
} OpInput;

typedef struct OpCall OpCall;

// Computes the results; each output is a new reference. Inputs are materialised tensors on one
// device (numbers have become rank-0 tensors), NULL where an optional one was not given.
typedef Status (*OpRun)(const OpCall *call, Tensor **outputs);

// What a reduction returns for an input dtype.
typedef enum ReduceResult {
    RESULT_SAME,  // the input's dtype
    RESULT_SUM,   // int64 for bools and ints, else the input's
    RESULT_FLOAT, // float32 for bools and ints, else the input's
    RESULT_BOOL,
    RESULT_INT64,
} ReduceResult;

// What an operation computes in where mixed precision is wanted.
typedef enum OpPrecision {
    PRECISION_OWN,    // what it is given
    PRECISION_NARROW, // 16 bits
    PRECISION_WIDE,   // float32
} OpPrecision;

typedef struct OpRow {
    const char *name; // the user's word: "softmax"
    OpRun run;        // NULL for maps
    MapOp map;
    MapRule rule;
    int outputs;
    bool takes_blocks; // quantised tensors as they are
    ReduceOp reduction;
    ReduceResult result; // of the reduction
    OpPrecision precision;
} OpRow;

typedef enum OpId {
#define OP_MAP(id, ...) OP_##id,
#define OP_RUN(id, ...) OP_##id,
#define OP_OVERLOAD(id, ...) OP_##id,
#include "catalog/ops.def"
    OP_COUNT
} OpId;
extern const OpRow op_rows[OP_COUNT];

#define OP_MAP(id, ...)
#define OP_RUN(id, ...) Status op_run_##id(const OpCall *call, Tensor **results);
#define OP_OVERLOAD(id, ...) Status op_run_##id(const OpCall *call, Tensor **results);
#define OP_REDUCE(id, ...)
#include "catalog/ops.def"

// Only the first n_inputs inputs need to be set; attributes may be NULL when none has a value.
struct OpCall {
    const OpRow *op;
    const OpAttributes *attributes;
    const OpInput *many; // the inputs of a `tensors` or a `tensor...` parameter, any number
    int n_many;
    int n_inputs; // parameters of kind tensor, in order
    OpInput inputs[OP_INPUTS_MAX];
};

static inline bool op_has(const OpCall *call, AttributeId attribute) {
    return call->attributes && (call->attributes->given >> attribute & 1u);
}

// Runs an operation: the only way that tensors are computed. The inputs stay the caller's.
Status op_apply(const OpCall *call, Tensor **outputs) MUST_USE;

// Called after every operation with its results while something learns; NULL: nobody is.
void op_set_watch(void (*watch)(const OpCall *call, Tensor *const *outputs));

// For code that composes; inputs are borrowed, results new references.
Status op_unary(OpId op, Tensor *x, Tensor **out) MUST_USE;
Status op_binary(OpId op, OpInput x, OpInput y, Tensor **out) MUST_USE;
Status op_ternary(OpId op, OpInput x, OpInput y, OpInput z, Tensor **out) MUST_USE;
// Rows that need attributes; `attributes` as written, defaults of signatures are not filled in.
Status op_with(OpId op, Tensor *const *inputs, int n_inputs, const OpAttributes *attributes,
               Tensor **outputs) MUST_USE;
static inline OpInput op_tensor(Tensor *tensor) {
    return (OpInput){.tensor = tensor};
}
// A temporary that the caller releases next and no longer reads: the result may take its buffer.
static inline OpInput op_donated(Tensor *tensor) {
    return (OpInput){.tensor = tensor, .donate = true};
}
static inline OpInput op_scalar(Scalar scalar) {
    return (OpInput){.scalar = scalar};
}
static inline OpInput op_float(double f) {
    return (OpInput){.scalar = {.dtype = DTYPE_FLOAT64, .as.f = f}};
}
static inline OpInput op_int(int64_t i) {
    return (OpInput){.scalar = {.dtype = DTYPE_INT64, .as.i = i}};
}
static inline OpInput op_absent(void) {
    return (OpInput){.scalar = {.dtype = DTYPE_COUNT}};
}
static inline bool op_is_absent(const OpInput *input) {
    return !input->tensor && input->scalar.dtype == DTYPE_COUNT;
}

// --- for the files that implement rows -----------------------------------------------------------

// Where the tensors of a call are; NULL where it has none.
Device *op_device(const OpCall *call);
// An input as a materialised tensor: a new reference; plain numbers become rank-0 tensors on that
// device, or on the default one. For the inputs of `many`, which op_apply leaves as they are.
Status op_input_tensor(const OpInput *input, Device *device, Tensor **out) MUST_USE;
// Queues one kernel on the device of its outputs; kernel.op_name should be the user's word.
Status op_run_kernel(const KernelCall *kernel) MUST_USE;
Status op_fill_view(const TensorView *view, Scalar value, const char *op_name) MUST_USE;
// Converted, between views of one shape.
Status op_copy_view(const TensorView *from, const TensorView *to, const char *op_name) MUST_USE;
// to += x, of one shape and dtype.
Status op_add_view(const TensorView *x, const TensorView *to, const char *op_name) MUST_USE;
// out = x converted and laid out as out is, broadcast to its shape.
Status op_copy(Tensor *x, Tensor *out) MUST_USE;
// x converted to a dtype (a new reference to x itself when it has it already).
Status tensor_cast(Tensor *x, DType dtype, Tensor **out) MUST_USE;
// A contiguous tensor of the same contents (x itself when it is one already).
Status tensor_contiguous(Tensor *x, Tensor **out) MUST_USE;

Status op_fail_quantised(const char *op_name, const Tensor *x) MUST_USE;
Status op_fail_devices(const char *op_name, const Tensor *x, const Tensor *y) MUST_USE;

// A copy of the contents in a buffer of its own, contiguous.
Status tensor_clone(Tensor *x, Tensor **out) MUST_USE;

#endif
