// Dense linear algebra: shapes and dtypes for the host's kernel, which does the arithmetic.
#include "shape/rules.h"
#include "tensor/compose.h"

// A batch of matrices in float32 or float64; ints become float32, 16-bit floats are refused.
static Status as_matrix(const OpCall *call, Tensor *x, Tensor **out) {
    DType dtype = dtype_floating(tensor_dtype(x));
    if (dtype != DTYPE_FLOAT32 && dtype != DTYPE_FLOAT64) {
        (void)fail(STATUS_DTYPE, "%s works on float32 and float64, but it is given %s",
                   call->op->name, tensor_type_name(x).text);
        return fail_help("convert it first: x as float32");
    }
    TensorType type = tensor_type(x);
    TRY(shape_needs_matrix(call->op->name, &type));
    return tensor_cast(x, dtype, out);
}

static Status as_square(const OpCall *call, Tensor *x, Tensor **out) {
    SCOPED_TENSOR(matrix);
    TRY(as_matrix(call, x, &matrix));
    TensorType type = tensor_type(x);
    TRY(shape_needs_square(call->op->name, &type));
    return compose_give(&matrix, out);
}

static Status linalg_run(const OpCall *call, LinalgOp op, TensorSpan inputs, TensorSpan outputs) {
    KernelCall kernel = {.kernel = KERNEL_LINALG,
                         .n_inputs = inputs.count,
                         .n_outputs = outputs.count,
                         .options = {.op = (int)op},
                         .op_name = call->op->name};
    for (int i = 0; i < inputs.count; i++) kernel.inputs[i] = compose_operand(inputs.items[i]);
    for (int i = 0; i < outputs.count; i++) kernel.outputs[i] = &outputs.items[i]->view;
    return op_run_kernel(&kernel);
}

// A result next to x: x's leading dimensions, then `rank` dimensions of its own.
static Status new_result(const Tensor *x, int rank, int64_t rows, int64_t columns, Tensor **out) {
    Shape shape = tensor_shape(x);
    shape.rank = tensor_rank(x) - 2 + rank;
    if (rank >= 1) shape.dims[tensor_rank(x) - 2] = rows;
    if (rank == 2) shape.dims[tensor_rank(x) - 1] = columns;
    return tensor_new(x->device, tensor_dtype(x), &shape, out);
}

// Square matrices to one result of `rank` dimensions of the same size.
static Status from_square(const OpCall *call, LinalgOp op, int rank, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(result);
    TRY(as_square(call, call->inputs[0].tensor, &x));
    int64_t n = x->view.dims[tensor_rank(x) - 1];
    TRY(new_result(x, rank, n, n, &result));
    TRY(linalg_run(call, op, (TensorSpan){&x, 1}, (TensorSpan){&result, 1}));
    return compose_give(&result, out);
}

Status op_run_inv(const OpCall *call, Tensor **results) {
    return from_square(call, LINALG_INV, 2, results);
}
Status op_run_det(const OpCall *call, Tensor **results) {
    return from_square(call, LINALG_DET, 0, results);
}
Status op_run_cholesky(const OpCall *call, Tensor **results) {
    return from_square(call, LINALG_CHOLESKY, 2, results);
}

// The right side as [.., n, k] with the matrices' dtype; a vector gains a column.
static Status right_side(const OpCall *call, const Tensor *a, DType dtype, Tensor **out) {
    Tensor *b = call->inputs[1].tensor;
    SCOPED_TENSOR(same);
    SCOPED_TENSOR(column);
    TRY(tensor_cast(b, dtype, &same));
    if (tensor_rank(b) == 1)
        TRY(tensor_unsqueeze(same, 1, &column));
    else
        column = tensor_retain(same);
    TensorType matrix = tensor_type(a), side = tensor_type(b);
    TRY(shape_solve_side(&matrix, &side));
    return compose_give(&column, out);
}

// The matrices under x with its leading dimensions broadcast to `leading`.
static Status broadcast_matrices(Tensor *x, const Shape *leading, Tensor **out) {
    Shape shape = *leading;
    shape.dims[shape.rank++] = x->view.dims[tensor_rank(x) - 2];
    shape.dims[shape.rank++] = x->view.dims[tensor_rank(x) - 1];
    return tensor_broadcast_to(x, &shape, out);
}

Status op_run_solve(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(square);
    SCOPED_TENSOR(a);
    SCOPED_TENSOR(b);
    SCOPED_TENSOR(result);
    TRY(as_square(call, call->inputs[0].tensor, &square));
    DType dtype = dtype_promote(tensor_dtype(square), tensor_dtype(call->inputs[1].tensor));
    TRY(tensor_cast(square, dtype, &a));
    TRY(right_side(call, a, dtype, &b));
    TensorType left = tensor_type(a), right = tensor_type(b);
    left.shape.rank -= 2;
    right.shape.rank -= 2;
    Shape leading;
    TRY(shape_broadcast("solve", &left, &right, &leading));
    SCOPED_TENSOR(matrices);
    SCOPED_TENSOR(sides);
    TRY(broadcast_matrices(a, &leading, &matrices));
    TRY(broadcast_matrices(b, &leading, &sides));
    TRY(new_result(sides, 2, sides->view.dims[leading.rank], sides->view.dims[leading.rank + 1],
                   &result));
    Tensor *inputs[2] = {matrices, sides};
    TRY(linalg_run(call, LINALG_SOLVE, (TensorSpan){inputs, 2}, (TensorSpan){&result, 1}));
    if (tensor_rank(call->inputs[1].tensor) == 1) return tensor_squeeze(result, -1, results);
    return compose_give(&result, results);
}

Status op_run_qr(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(r);
    TRY(as_matrix(call, call->inputs[0].tensor, &x));
    int64_t m = x->view.dims[tensor_rank(x) - 2], n = x->view.dims[tensor_rank(x) - 1];
    int64_t k = m < n ? m : n;
    TRY(new_result(x, 2, m, k, &q));
    TRY(new_result(x, 2, k, n, &r));
    Tensor *outputs[2] = {q, r};
    TRY(linalg_run(call, LINALG_QR, (TensorSpan){&x, 1}, (TensorSpan){outputs, 2}));
    (void)compose_give(&q, &results[0]);
    return compose_give(&r, &results[1]);
}

Status op_run_svd(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(u);
    SCOPED_TENSOR(s);
    SCOPED_TENSOR(vt);
    TRY(as_matrix(call, call->inputs[0].tensor, &x));
    int64_t m = x->view.dims[tensor_rank(x) - 2], n = x->view.dims[tensor_rank(x) - 1];
    int64_t k = m < n ? m : n;
    TRY(new_result(x, 2, m, k, &u));
    TRY(new_result(x, 1, k, 0, &s));
    TRY(new_result(x, 2, k, n, &vt));
    Tensor *outputs[3] = {u, s, vt};
    TRY(linalg_run(call, LINALG_SVD, (TensorSpan){&x, 1}, (TensorSpan){outputs, 3}));
    (void)compose_give(&u, &results[0]);
    (void)compose_give(&s, &results[1]);
    return compose_give(&vt, &results[2]);
}

Status op_run_eigh(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(vectors);
    TRY(as_square(call, call->inputs[0].tensor, &x));
    int64_t n = x->view.dims[tensor_rank(x) - 1];
    TRY(new_result(x, 1, n, 0, &values));
    TRY(new_result(x, 2, n, n, &vectors));
    Tensor *outputs[2] = {values, vectors};
    TRY(linalg_run(call, LINALG_EIGH, (TensorSpan){&x, 1}, (TensorSpan){outputs, 2}));
    (void)compose_give(&values, &results[0]);
    return compose_give(&vectors, &results[1]);
}
