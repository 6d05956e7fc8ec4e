// What a device is asked to do: one KernelCall per kernel. Shapes are already broadcast, checked
// and dtypes already decided by tensor/; a kernel only computes. Every input and output may be
// strided unless its kernel says otherwise. Kernels accumulate in float32 or wider; results do not
// depend on the number of threads.
#ifndef DEVICE_KERNEL_H
#define DEVICE_KERNEL_H

#include "device/buffer.h"

// Where the numbers of a tensor are. Strides in elements (a broadcast dimension has stride 0),
// offset in bytes. Block-quantised views are contiguous along one dimension (stride 1), whose size
// is a multiple of the block; all other strides are multiples of the block.
struct TensorView {
    Buffer *buffer;
    size_t offset;
    DType dtype;
    int rank;
    int64_t dims[RANK_MAX];
    int64_t strides[RANK_MAX];
};

// A number given in place of a view: an immediate operand of a map, a fill value.
typedef struct Scalar {
    DType dtype;  // INT64, FLOAT64 or BOOL
    bool unknown; // only a run has it (foretell.h)
    union {
        int64_t i; // INT64 and BOOL
        double f;  // FLOAT64
    } as;
} Scalar;

typedef struct KernelOperand {
    const TensorView *view; // NULL: the scalar
    Scalar scalar;
} KernelOperand;

typedef enum KernelId {
#define KERNEL(code, name, kept, follow, doc) KERNEL_##code,
#include "device/kernels.def"
#undef KERNEL
    KERNEL_COUNT
} KernelId;
_Static_assert(KERNEL_COUNT <= 64, "DeviceBackend.fused has a bit per kernel");

// Map operations, from catalog/maps.def.
typedef enum MapOp {
#define MAP1(code, formula, ...) MAP_##code,
#define MAP2(code, formula, ...) MAP_##code,
#define MAP3(code, formula, ...) MAP_##code,
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3
    MAP_COUNT
} MapOp;

// A map kernel is a short program over registers: registers 0..n_inputs-1 are the operands, each
// step writes register n_inputs + its own index; the last step is the result.
enum { MAP_STEPS_MAX = 8, KERNEL_INPUTS_MAX = 8, KERNEL_OUTPUTS_MAX = 3 };
typedef struct MapStep {
    uint16_t op;     // MapOp
    uint8_t a, b, c; // registers
} MapStep;

// Reductions, from catalog/reductions.def; VAR divides by n - scalars[0].
typedef enum ReduceOp {
#define REDUCTION(code, ...) REDUCE_##code,
#include "catalog/reductions.def"
    REDUCE_COUNT
} ReduceOp;

// REDUCE of one long contiguous row to one number may be made in parts: a call folds some parts of
// it to states, a number of 8 bytes each, and another joins those of all parts.
typedef enum ReduceStage {
    REDUCE_WHOLE,  // all of the work
    REDUCE_STATES, // of the parts in inputs[0], which begins with one
    REDUCE_JOIN,   // of inputs[0], all states
} ReduceStage;
// KernelOptions.integers of such calls: the stage, which of two folds, numbers of the whole row,
// its dtype and that of the result. The second of two folds has what the first was joined to as
// inputs[1].
enum { REDUCE_STAGE, REDUCE_IS_SECOND, REDUCE_NUMBERS, REDUCE_FROM, REDUCE_TO };

// Dense linear algebra: see LINALG in kernels.def for the inputs and outputs of each.
typedef enum LinalgOp {
    LINALG_INV,
    LINALG_DET,
    LINALG_SOLVE,
    LINALG_CHOLESKY,
    LINALG_QR,
    LINALG_SVD,
    LINALG_EIGH,
} LinalgOp;

// Updates of a parameter, from catalog/optimizers.def.
typedef enum OptimizerId {
#define OPTIMIZER(id, signature, doc) OPTIMIZER_##id,
#include "catalog/optimizers.def"
#undef OPTIMIZER
    OPTIMIZER_COUNT
} OptimizerId;

// Options of a kernel; which ones each kernel reads is said in kernels.def.
typedef struct KernelOptions {
    int op; // ReduceOp, scan, pool or random distribution
    int n_steps;
    MapStep steps[MAP_STEPS_MAX];
    DType compute; // the type a map is evaluated in: FLOAT32, FLOAT64 or INT64
    int dim;
    int count;           // trailing dimensions that are reduced or normalised; k of top-k
    bool flag;           // log softmax, causal, descending, half-style rope
    bool fast;           // products with quantised weights may round activations to 8 bits
    double scalars[4];   // eps, scale, base, ...
    int64_t integers[8]; // seed, counter, offset; stride/padding/dilation of convolutions
} KernelOptions;

struct KernelCall {
    KernelId kernel;
    int n_inputs, n_outputs;
    KernelOperand inputs[KERNEL_INPUTS_MAX];
    const TensorView *outputs[KERNEL_OUTPUTS_MAX];
    KernelOptions options;
    int64_t
        all_rows; // of which these are some, and which decide how a row is shared; 0: these are all
    const char *op_name; // the user's word, for errors: "softmax"
};

#endif
