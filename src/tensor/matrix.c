// Matrix products and what is read off matrices.
#include "tensor/matrix.h"

#include "shape/rules.h"
#include "tensor/gradient/gradient.h"

// The operands of a product as matrices: rank-1 ones gain a dimension that the result loses again.
typedef struct Product {
    Tensor *a, *b; // [.., M, K] and [.., K, N], owned
    bool drop_row, drop_column;
    DType dtype; // of the result
    Shape shape; // of the result
    Shape leading;
} Product;

static void product_release(Product *product) {
    tensor_release(product->a);
    tensor_release(product->b);
}

static Status check_operands(const OpCall *call, const Tensor *a, const Tensor *b, Shape *out) {
    TensorType left = tensor_type(a), right = tensor_type(b);
    TRY(shape_matmul(call->op->name, &left, &right, out));
    if (dtype_is_quant(tensor_dtype(a)) && dtype_is_quant(tensor_dtype(b)))
        return fail(STATUS_DTYPE,
                    "%s: both operands are quantised, %s and %s; convert one with "
                    "`as float32`",
                    call->op->name, tensor_type_name(a).text, tensor_type_name(b).text);
    return STATUS_OK;
}

// Floats of any kind stay as they are stored: the kernel converts pieces of them in passing. A
// quantised right operand stays only when its blocks run along K.
static Status prepare_operands(Tensor *a, Tensor *b, Product *product) {
    bool quantised = dtype_is_quant(tensor_dtype(b));
    if (quantised && tensor_dtype(a) == DTYPE_FLOAT64)
        TRY(tensor_cast(a, product->dtype, &product->a));
    else
        TRY(compose_stored_float(a, product->dtype, &product->a));
    if (!quantised || b->view.strides[tensor_rank(b) - 2] != 1)
        return compose_stored_float(b, product->dtype, &product->b);
    product->b = tensor_retain(b);
    return STATUS_OK;
}

static DType product_dtype(DType a, DType b) {
    if (dtype_is_quant(b)) {
        DType floating = dtype_floating(a);
        return floating == DTYPE_FLOAT64 ? DTYPE_FLOAT32 : floating;
    }
    DType dtype = dtype_promote(a, b);
    return dtype == DTYPE_BOOL ? DTYPE_INT64 : dtype;
}

static Status product_prepare(const OpCall *call, Tensor *a, Tensor *b, Product *product) {
    TRY(check_operands(call, a, b, &product->shape));
    SCOPED_TENSOR(wide_a);
    SCOPED_TENSOR(wide_b);
    product->drop_row = tensor_rank(a) == 1;
    product->drop_column = tensor_rank(b) == 1;
    if (product->drop_row)
        TRY(tensor_unsqueeze(a, 0, &wide_a));
    else
        wide_a = tensor_retain(a);
    if (product->drop_column)
        TRY(tensor_unsqueeze(b, 1, &wide_b));
    else
        wide_b = tensor_retain(b);
    product->leading = product->shape;
    product->leading.rank -= 2 - product->drop_row - product->drop_column;
    product->dtype = product_dtype(tensor_dtype(a), tensor_dtype(b));
    return prepare_operands(wide_a, wide_b, product);
}

// Leading dimensions of a next to one matrix b are more rows: one product instead of many.
static void merge_rows(TensorView *a, TensorView *out, const Tensor *b) {
    if (tensor_rank(b) != 2) return;
    while (a->rank > 2) {
        int row = a->rank - 2;
        int64_t above = a->strides[row - 1], below = a->strides[row];
        if (a->dims[row - 1] != 1 && a->dims[row] != 1 && above != below * a->dims[row]) return;
        a->strides[row - 1] = a->dims[row] == 1 ? above : below;
        a->dims[row - 1] *= a->dims[row];
        a->dims[row] = a->dims[row + 1];
        a->strides[row] = a->strides[row + 1];
        out->dims[row - 1] *= out->dims[row];
        out->strides[row - 1] = out->strides[row];
        out->dims[row] = out->dims[row + 1];
        out->strides[row] = out->strides[row + 1];
        a->rank--;
        out->rank--;
    }
}

static Status product_run(const OpCall *call, const Product *product, Tensor **out) {
    const Tensor *a = product->a, *b = product->b;
    Shape shape = product->leading;
    shape.dims[shape.rank++] = a->view.dims[tensor_rank(a) - 2];
    shape.dims[shape.rank++] = b->view.dims[tensor_rank(b) - 1];
    SCOPED_TENSOR(result);
    TRY(tensor_new(a->device, product->dtype, &shape, &result));
    TensorView left = compose_broadcast_leading(&a->view, &product->leading, 2);
    TensorView target = result->view;
    merge_rows(&left, &target, b);
    Shape leading = compose_shape(target.rank - 2, target.dims);
    TensorView right = compose_broadcast_leading(&b->view, &leading, 2);
    KernelCall kernel = {.kernel = KERNEL_MATMUL,
                         .n_inputs = 2,
                         .n_outputs = 1,
                         .inputs = {{.view = &left}, {.view = &right}},
                         .outputs = {&target},
                         .options = {.flag = ATTRIBUTE_OR(call, by_row, false),
                                     .fast = ATTRIBUTE_OR(call, fast, false)},
                         .op_name = call->op->name};
    TRY(op_run_kernel(&kernel));
    if (!product->drop_row && !product->drop_column) return compose_give(&result, out);
    return tensor_reshape(result, &product->shape, out);
}

// The last two dimensions exchanged, as a view; rank 1 stays as it is.
static Status turned(Tensor *x, Tensor **out) {
    if (tensor_rank(x) >= 2) return tensor_transpose(x, -2, -1, out);
    *out = tensor_retain(x);
    return STATUS_OK;
}

// W @ x with a quantised W is transpose(transpose(x) @ transpose(W)).
static Status product_turned(const OpCall *call, Tensor *a, Tensor *b, Tensor **out) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    SCOPED_TENSOR(result);
    Shape shape;
    TRY(check_operands(call, a, b, &shape));
    TRY(turned(b, &left));
    TRY(turned(a, &right));
    TRY(matrix_product(call, left, right, &result));
    if (tensor_rank(a) == 1 || tensor_rank(b) == 1) return compose_give(&result, out);
    return turned(result, out);
}

static Status product_either(const OpCall *call, Tensor *a, Tensor *b, Tensor **out) {
    if (dtype_is_quant(tensor_dtype(a)) && !dtype_is_quant(tensor_dtype(b)))
        return product_turned(call, a, b, out);
    Product product = {0};
    Status status = product_prepare(call, a, b, &product);
    if (status == STATUS_OK) status = product_run(call, &product, out);
    product_release(&product);
    return status;
}

Status matrix_product(const OpCall *call, Tensor *a, Tensor *b, Tensor **out) {
    TapeRecord record = tape_begin(&gradient_matmul, (Tensor *const[]){a, b}, 2);
    return tape_end(&record, product_either(call, a, b, out), out);
}

Status op_run_matmul(const OpCall *call, Tensor **results) {
    return matrix_product(call, call->inputs[0].tensor, call->inputs[1].tensor, results);
}

Status op_run_bmm(const OpCall *call, Tensor **results) {
    Tensor *a = call->inputs[0].tensor, *b = call->inputs[1].tensor;
    TensorType left = tensor_type(a), right = tensor_type(b);
    TRY(shape_bmm(&left, &right));
    return matrix_product(call, a, b, results);
}

static Status check_linear(const OpCall *call, const Tensor *x, const Tensor *weight,
                           const Tensor *bias, Shape *out) {
    TensorType in = tensor_type(x), matrix = tensor_type(weight), added;
    if (bias) added = tensor_type(bias);
    return shape_linear(call->op->name, &in, &matrix, bias ? &added : NULL, out);
}

// product + bias, which takes no part in the dtype.
static Status add_bias(Tensor *product, Tensor *bias, Tensor **out) {
    SCOPED_TENSOR(same);
    TRY(tensor_cast(bias, tensor_dtype(product), &same));
    return op_binary(OP_add, op_donated(product), op_tensor(same), out);
}

// Whether the kernel reads both operands of x @ transpose(weight) where they lie and nobody records
// it: then there is nothing to prepare.
static bool is_direct_linear(const Tensor *x, const Tensor *weight) {
    DType left = tensor_dtype(x), right = tensor_dtype(weight);
    bool floats = dtype_is_float(left) && (dtype_is_float(right) || left != DTYPE_FLOAT64);
    return !tape_is_recording() && floats && (dtype_is_float(right) || dtype_is_quant(right)) &&
           tensor_is_contiguous(x) && (!dtype_is_quant(right) || weight->view.strides[1] == 1);
}

static Status linear_direct(const OpCall *call, Tensor *x, Tensor *weight, const Shape *shape,
                            Tensor **out) {
    SCOPED_TENSOR(result);
    DType dtype = product_dtype(tensor_dtype(x), tensor_dtype(weight));
    TRY(tensor_new(x->device, dtype, shape, &result));
    const TensorView *matrix = &weight->view;
    int64_t in = matrix->dims[1], outs = matrix->dims[0];
    int64_t rows = compose_product(shape->dims, 0, shape->rank - 1);
    TensorView left = {.buffer = x->view.buffer,
                       .offset = x->view.offset,
                       .dtype = x->view.dtype,
                       .rank = 2,
                       .dims = {rows, in},
                       .strides = {in, 1}};
    TensorView right = *matrix, target = left;
    right.dims[0] = in;
    right.dims[1] = outs;
    right.strides[0] = matrix->strides[1];
    right.strides[1] = matrix->strides[0];
    target.buffer = result->view.buffer;
    target.offset = result->view.offset;
    target.dtype = dtype;
    target.dims[1] = target.strides[0] = outs;
    KernelCall kernel;
    kernel.kernel = KERNEL_MATMUL;
    kernel.n_inputs = 2;
    kernel.n_outputs = 1;
    kernel.inputs[0] = (KernelOperand){.view = &left};
    kernel.inputs[1] = (KernelOperand){.view = &right};
    kernel.outputs[0] = &target;
    kernel.op_name = call->op->name;
    kernel.options.flag = ATTRIBUTE_OR(call, by_row, false);
    kernel.options.fast = ATTRIBUTE_OR(call, fast, false);
    TRY(op_run_kernel(&kernel));
    return compose_give(&result, out);
}

Status op_run_linear(const OpCall *call, Tensor **results) {
    Tensor *weight = call->inputs[1].tensor, *bias = compose_input(call, 2);
    Shape shape;
    TRY(check_linear(call, call->inputs[0].tensor, weight, bias, &shape));
    if (!bias && is_direct_linear(call->inputs[0].tensor, weight))
        return linear_direct(call, call->inputs[0].tensor, weight, &shape, results);
    SCOPED_TENSOR(across);
    SCOPED_TENSOR(product);
    TRY(tensor_transpose(weight, 0, 1, &across));
    TRY(matrix_product(call, call->inputs[0].tensor, across, &product));
    if (!bias) return compose_give(&product, results);
    return add_bias(product, bias, results);
}

Status op_run_fused_gelu_linear(const OpCall *call, Tensor **results) {
    Tensor *bias = compose_input(call, 2);
    SCOPED_TENSOR(active);
    SCOPED_TENSOR(product);
    TRY(op_unary(OP_gelu, call->inputs[0].tensor, &active));
    TRY(matrix_product(call, active, call->inputs[1].tensor, &product));
    if (!bias) return compose_give(&product, results);
    return op_binary(OP_add, op_donated(product), op_tensor(bias), results);
}

Status op_run_outer(const OpCall *call, Tensor **results) {
    Tensor *a = call->inputs[0].tensor, *b = call->inputs[1].tensor;
    TensorType left_type = tensor_type(a), right_type = tensor_type(b);
    Shape column = left_type.shape, shape;
    TRY(shape_outer(&left_type, &right_type, &shape));
    while (column.rank < shape.rank) column.dims[column.rank++] = 1;
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(wide_left);
    SCOPED_TENSOR(wide_right);
    TRY(tensor_reshape(a, &column, &left));
    TRY(tensor_broadcast_to(left, &shape, &wide_left));
    TRY(tensor_broadcast_to(b, &shape, &wide_right));
    return op_binary(OP_mul, op_tensor(wide_left), op_tensor(wide_right), results);
}

static Status check_matrix(const OpCall *call, const Tensor *x) {
    TensorType type = tensor_type(x);
    return shape_needs_matrix(call->op->name, &type);
}

Status op_run_trace(const OpCall *call, Tensor **results) {
    TRY(check_matrix(call, call->inputs[0].tensor));
    SCOPED_TENSOR(diagonal);
    TRY(tensor_diagonal(call->inputs[0].tensor, -2, -1, &diagonal));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = -1};
    return op_with(OP_sum, &diagonal, 1, &attributes, results);
}

// A vector becomes the diagonal of a matrix of zeros; a matrix gives its diagonal.
Status op_run_diag(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    if (tensor_rank(x) != 1) {
        TRY(check_matrix(call, x));
        return tensor_diagonal(x, -2, -1, results);
    }
    int64_t n = x->view.dims[0];
    Shape shape = {.rank = 2, .dims = {n, n}};
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(diagonal);
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &result));
    TRY(compose_fill(call, &result->view, (Scalar){.dtype = DTYPE_INT64}));
    TRY(tensor_diagonal(result, 0, 1, &diagonal));
    TRY(op_copy(x, diagonal));
    if (tape_follows(x)) tape_record_place(x, &diagonal->view, result);
    return compose_give(&result, results);
}
