// Linear attention: each head keeps a state that rows decay, add to and read.
// Source: Katharopoulos et al. 2020; Dao, Gu 2024 (state space duality); Yang, Kautz, Hatamizadeh
// 2024 (gated delta rule).
#include "base/memory.h"
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"

enum { Q, K, V, DECAY, STATE, BETA, OPERANDS };

// All in one dtype; the decay a number for each of a key's, the state never NULL.
typedef struct Operands {
    Tensor *items[OPERANDS];
    Shape result;
} Operands;

static void operands_release(Operands *operands) {
    for (int i = 0; i < OPERANDS; i++) tensor_release(operands->items[i]);
}

static Status check(const OpCall *call, DType *dtype, Shape *out) {
    TensorType types[OPERANDS];
    const TensorType *given[OPERANDS] = {0};
    *dtype = DTYPE_FLOAT32;
    for (int i = 0; i < OPERANDS; i++) {
        const Tensor *x = compose_input(call, i);
        if (!x) continue;
        types[i] = tensor_type(x);
        given[i] = &types[i];
        if (types[i].dtype == DTYPE_FLOAT64) *dtype = DTYPE_FLOAT64;
    }
    return shape_linear_attention(given, out);
}

static Status widen_decay(const Tensor *k, Tensor **decay) {
    if (tensor_rank(*decay) == 3) return STATUS_OK;
    SCOPED_TENSOR(column);
    Shape shape = tensor_shape(k);
    TRY(tensor_unsqueeze(*decay, 2, &column));
    tensor_release(*decay);
    *decay = NULL;
    return tensor_broadcast_to(column, &shape, decay);
}

static Status begin_state(const Operands *operands, DType dtype, Tensor **out) {
    Shape k = tensor_shape(operands->items[K]), v = tensor_shape(operands->items[V]);
    OpAttributes zeros = {.given =
                              ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device),
                          .shape = {.rank = 3, .dims = {k.dims[2], k.dims[1], v.dims[2]}},
                          .dtype = dtype,
                          .device = operands->items[K]->device};
    return op_with(OP_zeros, NULL, 0, &zeros, out);
}

static Status read_operands(const OpCall *call, Operands *operands) {
    DType dtype;
    TRY(check(call, &dtype, &operands->result));
    for (int i = 0; i < OPERANDS; i++) {
        Tensor *x = compose_input(call, i);
        if (x) TRY(tensor_cast(x, dtype, &operands->items[i]));
    }
    TRY(widen_decay(operands->items[K], &operands->items[DECAY]));
    if (operands->items[STATE]) return STATUS_OK;
    return begin_state(operands, dtype, &operands->items[STATE]);
}

static Status by_kernel(const OpCall *call, const Operands *operands, Tensor **results) {
    SCOPED_TENSOR(result);
    int count = operands->items[BETA] ? OPERANDS : BETA;
    Tensor *like = operands->items[Q];
    TRY(tensor_new(like->device, tensor_dtype(like), &operands->result, &result));
    KernelOptions options = {0};
    TRY(compose_kernel(call, KERNEL_LINEAR_ATTENTION, &options,
                       (TensorSpan){operands->items, count}, result));
    return compose_give(&result, results);
}

// --- row by row, by operations that gradients flow through

// A row of q, k or the decay as [d, h, 1].
static Status key_column(Tensor *x, int64_t row, Tensor **out) {
    SCOPED_TENSOR(heads);
    SCOPED_TENSOR(columns);
    TRY(tensor_select(x, 0, row, &heads));
    TRY(tensor_transpose(heads, 0, 1, &columns));
    return tensor_unsqueeze(columns, 2, out);
}

// The sum over keys of the state times a column: [h, e].
static Status read_state(Tensor *state, Tensor *column, Tensor **out) {
    SCOPED_TENSOR(products);
    OpAttributes along = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    TRY(op_binary(OP_mul, op_tensor(state), op_tensor(column), &products));
    return op_with(OP_sum, &products, 1, &along, out);
}

// What is added to the state with a key: v, or by the delta rule what the state lacks of it.
static Status added(const Operands *operands, int64_t row, Tensor *state, Tensor *k, Tensor **out) {
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(known);
    SCOPED_TENSOR(rest);
    SCOPED_TENSOR(share);
    SCOPED_TENSOR(column);
    TRY(tensor_select(operands->items[V], 0, row, &v));
    if (!operands->items[BETA]) return compose_give(&v, out);
    TRY(read_state(state, k, &known));
    TRY(op_binary(OP_sub, op_tensor(v), op_tensor(known), &rest));
    TRY(tensor_select(operands->items[BETA], 0, row, &share));
    TRY(tensor_unsqueeze(share, 1, &column));
    return op_binary(OP_mul, op_tensor(rest), op_tensor(column), out);
}

// One row: `state` becomes the next; gives the row of the result.
static Status take_row(const Operands *operands, int64_t row, Tensor **state, Tensor **out) {
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(decay);
    SCOPED_TENSOR(decayed);
    SCOPED_TENSOR(u);
    SCOPED_TENSOR(product);
    TRY(key_column(operands->items[Q], row, &q));
    TRY(key_column(operands->items[K], row, &k));
    TRY(key_column(operands->items[DECAY], row, &decay));
    TRY(op_binary(OP_mul, op_tensor(*state), op_tensor(decay), &decayed));
    TRY(added(operands, row, decayed, k, &u));
    TRY(op_binary(OP_mul, op_tensor(k), op_tensor(u), &product));
    tensor_release(*state);
    *state = NULL;
    TRY(op_binary(OP_add, op_tensor(decayed), op_tensor(product), state));
    return read_state(*state, q, out);
}

static Status by_rows(const Operands *operands, Tensor **results) {
    int64_t rows = operands->items[Q]->view.dims[0], done = 0;
    SCOPED_MEMORY Tensor **parts = memory_allocate_zeroed((size_t)rows + 1, sizeof *parts);
    SCOPED_TENSOR(state);
    state = tensor_retain(operands->items[STATE]);
    Status status = STATUS_OK;
    for (; done < rows && status == STATUS_OK; done++) {
        SCOPED_TENSOR(row);
        status = take_row(operands, done, &state, &row);
        if (status == STATUS_OK) status = tensor_unsqueeze(row, 0, &parts[done]);
    }
    parts[rows] = state;
    if (status == STATUS_OK) status = tensor_concat(parts, (size_t)rows + 1, 0, results);
    for (int64_t i = 0; i < done; i++) tensor_release(parts[i]);
    return status;
}

Status op_run_linear_attention(const OpCall *call, Tensor **results) {
    Operands operands = {0};
    bool learns = false;
    for (int i = 0; tape_is_recording() && i < call->n_inputs; i++)
        learns =
            learns || (call->inputs[i].tensor && tensor_needs_gradient(call->inputs[i].tensor));
    Status status = read_operands(call, &operands);
    if (status == STATUS_OK)
        status = learns ? by_rows(&operands, results) : by_kernel(call, &operands, results);
    operands_release(&operands);
    return status;
}
