// Reductions, running sums and products, sorting and what follows from them.
#include <math.h>

#include "tensor/gradient/gradient.h"
#include "tensor/index.h"
#include "tensor/join.h"
#include "tensor/reduce.h"

static DType result_dtype(ReduceResult result, DType input) {
    switch (result) {
    case RESULT_SAME: return input;
    case RESULT_SUM: return dtype_is_float(input) ? input : DTYPE_INT64;
    case RESULT_FLOAT: return dtype_floating(input);
    case RESULT_BOOL: return DTYPE_BOOL;
    case RESULT_INT64: break;
    }
    return DTYPE_INT64;
}

// Which dimensions go, the input with those last, and the result's shapes.
typedef struct ReducePlan {
    TensorView input;
    int count;         // trailing dimensions of `input` that are reduced
    int64_t reduced;   // their elements
    Shape shape;       // as the user sees it: with 1 for reduced ones where keepdim
    TensorView output; // set by reduce_run: the result as the kernel sees it
} ReducePlan;

static Status plan_marked(const OpCall *call, const Tensor *x, const bool *gone, ReducePlan *plan) {
    int rank = tensor_rank(x), kept = 0;
    bool keepdim = ATTRIBUTE_OR(call, keepdim, false);
    *plan = (ReducePlan){.input = x->view, .reduced = 1};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < rank; i++) {
            if (gone[i] != (pass == 1)) continue;
            plan->input.dims[kept] = x->view.dims[i];
            plan->input.strides[kept++] = x->view.strides[i];
        }
        if (pass == 0) plan->count = rank - kept;
    }
    ASSERT(kept == rank);
    for (int i = 0; i < rank; i++) {
        if (gone[i]) plan->reduced *= x->view.dims[i];
        if (!gone[i] || keepdim)
            plan->shape.dims[plan->shape.rank++] = gone[i] ? 1 : x->view.dims[i];
    }
    return STATUS_OK;
}

static Status plan_reduction(const OpCall *call, const Tensor *x, ReducePlan *plan) {
    bool gone[RANK_MAX] = {false};
    int dim;
    if (op_has(call, ATTRIBUTE_dims)) {
        const Shape *dims = &call->attributes->dims;
        for (int i = 0; i < dims->rank; i++) {
            TRY(compose_dim(x, dims->dims[i], &dim));
            if (gone[dim])
                return fail(STATUS_VALUE, "%s: dimension %d is given twice", call->op->name, dim);
            gone[dim] = true;
        }
    } else if (op_has(call, ATTRIBUTE_dim)) {
        TRY(compose_dim(x, call->attributes->dim, &dim));
        gone[dim] = true;
    } else {
        for (int i = 0; i < tensor_rank(x); i++) gone[i] = true;
    }
    return plan_marked(call, x, gone, plan);
}

static Status reduce_run(const OpCall *call, const ReducePlan *plan, KernelOptions options,
                         Tensor *out) {
    ASSERT(plan->count >= 0 && plan->count <= plan->input.rank);
    TensorView output = out->view;
    output.rank = plan->input.rank - plan->count;
    for (int i = output.rank - 1; i >= 0; i--) {
        output.dims[i] = plan->input.dims[i];
        output.strides[i] = i + 1 == output.rank ? 1 : output.strides[i + 1] * output.dims[i + 1];
    }
    options.count = plan->count;
    KernelCall kernel = {.kernel = KERNEL_REDUCE,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {{.view = &plan->input}},
                         .outputs = {&output},
                         .options = options,
                         .op_name = call->op->name};
    return op_run_kernel(&kernel);
}

static Status reduce_as(const OpCall *call, Tensor *x, KernelOptions options, DType dtype,
                        Tensor **out) {
    ReducePlan plan;
    TRY(plan_reduction(call, x, &plan));
    SCOPED_TENSOR(result);
    TRY(tensor_new(x->device, dtype, &plan.shape, &result));
    TRY(reduce_run(call, &plan, options, result));
    return compose_give(&result, out);
}

Status op_run_reduction(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    KernelOptions options = {.op = (int)call->op->reduction,
                             .scalars = {(double)ATTRIBUTE_OR(call, correction, 0)}};
    return reduce_as(call, x, options, result_dtype(call->op->result, tensor_dtype(x)), results);
}

// A largest or smallest element needs one to exist.
static Status check_not_empty(const OpCall *call, const Tensor *x) {
    ReducePlan plan;
    TRY(plan_reduction(call, x, &plan));
    if (plan.reduced > 0 || compose_product(plan.shape.dims, 0, plan.shape.rank) == 0)
        return STATUS_OK;
    return fail(STATUS_VALUE, "%s of %s has no value: there are no elements to compare",
                call->op->name, tensor_type_name(x).text);
}

// max and min of something whose rank is 0 next to an int compare the two: both are plain numbers.
static Status extreme(const OpCall *call, ReduceOp op, OpId pairwise, Tensor **out) {
    Tensor *x = call->inputs[0].tensor;
    if (tensor_rank(x) == 0 && op_has(call, ATTRIBUTE_dim))
        return op_binary(pairwise, op_tensor(x), op_int(call->attributes->dim), out);
    TRY(check_not_empty(call, x));
    return reduce_as(call, x, (KernelOptions){.op = (int)op}, tensor_dtype(x), out);
}

Status op_run_max_along(const OpCall *call, Tensor **results) {
    return extreme(call, REDUCE_MAX, OP_max, results);
}
Status op_run_min_along(const OpCall *call, Tensor **results) {
    return extreme(call, REDUCE_MIN, OP_min, results);
}

// A tensor and a float: is the float meant as a dimension or as an operand?
static Status extreme_with_number(const OpCall *call, OpId pairwise, Tensor **out) {
    Tensor *x = call->inputs[0].tensor;
    const char *name = call->op->name;
    Scalar value = call->attributes->value;
    if (tensor_rank(x) == 0) return op_binary(pairwise, op_tensor(x), op_scalar(value), out);
    (void)fail(STATUS_TYPE, "%s of %s and the float %g: a dimension is an integer", name,
               tensor_type_name(x).text, scalar_double(value));
    return fail_help(
        "%simum(x, %g) compares each element with the number; %s(x, dim) reduces along "
        "a dimension",
        name, scalar_double(value), name);
}

Status op_run_max_with_number(const OpCall *call, Tensor **results) {
    return extreme_with_number(call, OP_max, results);
}
Status op_run_min_with_number(const OpCall *call, Tensor **results) {
    return extreme_with_number(call, OP_min, results);
}

// The dtype that squares of x are summed in: those of 16-bit floats would overflow their own.
static DType accumulator_dtype(const Tensor *x) {
    return tensor_dtype(x) == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

Status op_run_std(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    KernelOptions options = {.op = REDUCE_VAR,
                             .scalars = {(double)ATTRIBUTE_OR(call, correction, 0)}};
    SCOPED_TENSOR(variance);
    SCOPED_TENSOR(deviation);
    TRY(reduce_as(call, x, options, accumulator_dtype(x), &variance));
    TRY(op_unary(OP_sqrt, variance, &deviation));
    return tensor_cast(deviation, dtype_floating(tensor_dtype(x)), results);
}

// The overload with a list of dimensions differs in its signature only.
Status op_run_std_dims(const OpCall *call, Tensor **results) {
    return op_run_std(call, results);
}

// sum(|x|^p)^(1/p) for a p that has no reduction of its own.
static Status general_norm(const OpCall *call, Tensor *x, double p, Tensor **out) {
    SCOPED_TENSOR(magnitude);
    SCOPED_TENSOR(powers);
    SCOPED_TENSOR(total);
    TRY(op_unary(OP_abs, x, &magnitude));
    if (isinf(p)) {
        KernelOptions extreme_option = {.op = p > 0 ? REDUCE_MAX : REDUCE_MIN};
        return reduce_as(call, magnitude, extreme_option, tensor_dtype(x), out);
    }
    TRY(compose_with_number(OP_pow, magnitude, p, &powers));
    KernelOptions options = {.op = REDUCE_SUM};
    TRY(reduce_as(call, powers, options, tensor_dtype(x), &total));
    return compose_with_number(OP_pow, total, 1 / p, out);
}

static Status norm_wide(const OpCall *call, Tensor *x, double p, Tensor **out) {
    KernelOptions options = {.op = p == 0   ? REDUCE_COUNT_NONZERO
                                   : p == 1 ? REDUCE_SUM_ABS
                                            : REDUCE_SUM_SQUARE};
    SCOPED_TENSOR(total);
    if (p != 0 && p != 1 && p != 2) return general_norm(call, x, p, out);
    TRY(reduce_as(call, x, options, p == 0 ? DTYPE_INT64 : tensor_dtype(x), &total));
    if (p == 2) return op_unary(OP_sqrt, total, out);
    return compose_give(&total, out);
}

Status op_run_norm(const OpCall *call, Tensor **results) {
    double p = ATTRIBUTE_OR(call, p, 2);
    if (isnan(p)) return fail(STATUS_VALUE, "norm: p must be a number, but it is nan");
    Tensor *x = call->inputs[0].tensor;
    SCOPED_TENSOR(wide);
    SCOPED_TENSOR(result);
    TRY(compose_wide(x, &wide));
    TRY(norm_wide(call, wide, p, &result));
    return tensor_cast(result, dtype_floating(tensor_dtype(x)), results);
}

// Without dim all elements in a row, and the dimension of that row; else x and its dimension.
static Status along(const OpCall *call, bool has_dim, int64_t dim, Tensor **x, int *out) {
    Tensor *input = call->inputs[0].tensor;
    if (!has_dim) {
        Shape flat = {.rank = 1, .dims = {-1}};
        *out = 0;
        if (tensor_count(input) == 0) flat.dims[0] = 0;
        return tensor_reshape(input, &flat, x);
    }
    TRY(compose_dim(input, dim, out));
    return compose_at_least_1d(input, x);
}

static Status arg_extreme(const OpCall *call, int op, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(result);
    int dim;
    bool has_dim = op_has(call, ATTRIBUTE_dim), keepdim = ATTRIBUTE_OR(call, keepdim, false);
    TRY(along(call, has_dim, ATTRIBUTE_OR(call, dim, 0), &x, &dim));
    TRY(check_not_empty(call, call->inputs[0].tensor));
    TensorView input = compose_dim_last(x, dim);
    Shape shape = compose_shape(input.rank - 1, input.dims);
    TRY(tensor_new(x->device, DTYPE_INT64, &shape, &result));
    KernelCall kernel = {.kernel = KERNEL_ARG_REDUCE,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {{.view = &input}},
                         .outputs = {&result->view},
                         .options = {.op = op, .count = 1},
                         .op_name = call->op->name};
    TRY(op_run_kernel(&kernel));
    if (!keepdim) return compose_give(&result, out);
    Shape wide = tensor_shape(call->inputs[0].tensor);
    for (int i = 0; i < wide.rank; i++)
        if (!has_dim || i == dim) wide.dims[i] = 1;
    return tensor_reshape(result, &wide, out);
}

Status op_run_argmax(const OpCall *call, Tensor **results) {
    return arg_extreme(call, 0, results);
}
Status op_run_argmin(const OpCall *call, Tensor **results) {
    return arg_extreme(call, 1, results);
}

static Status scan(const OpCall *call, int op, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(result);
    int dim;
    TRY(along(call, op_has(call, ATTRIBUTE_dim), ATTRIBUTE_OR(call, dim, 0), &x, &dim));
    Shape shape = tensor_shape(x);
    TRY(tensor_new(x->device, result_dtype(RESULT_SUM, tensor_dtype(x)), &shape, &result));
    TensorView input = compose_dim_last(x, dim), output = compose_dim_last(result, dim);
    KernelCall kernel = {.kernel = KERNEL_SCAN,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {{.view = &input}},
                         .outputs = {&output},
                         .options = {.op = op, .count = 1},
                         .op_name = call->op->name};
    TRY(op_run_kernel(&kernel));
    if (tensor_rank(call->inputs[0].tensor) > 0) return compose_give(&result, out);
    return tensor_squeeze(result, 0, out);
}

Status op_run_cumsum(const OpCall *call, Tensor **results) {
    return scan(call, 0, results);
}
Status op_run_cumprod(const OpCall *call, Tensor **results) {
    return scan(call, 1, results);
}

// The first `count` of each sorted row along dim.
typedef struct Sorting {
    int dim;
    int64_t count;
    bool descending;
} Sorting;

// outputs[0] values, outputs[1] int64 indices.
static Status sort_kernel(const OpCall *call, Tensor *x, const Sorting *sorting, Tensor **outputs) {
    int dim = sorting->dim;
    int64_t count = sorting->count;
    if (count > INT32_MAX)
        return fail(STATUS_SHAPE, "%s: %s is too long along dimension %d", call->op->name,
                    tensor_type_name(x).text, dim);
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(indexes);
    Shape shape = tensor_shape(x);
    shape.dims[dim] = count;
    TRY(tensor_new(x->device, tensor_dtype(x), &shape, &values));
    TRY(tensor_new(x->device, DTYPE_INT64, &shape, &indexes));
    TensorView input = compose_dim_last(x, dim);
    TensorView value_view = compose_dim_last(values, dim);
    TensorView index_view = compose_dim_last(indexes, dim);
    KernelCall kernel = {.kernel = KERNEL_SORT,
                         .n_inputs = 1,
                         .n_outputs = 2,
                         .inputs = {{.view = &input}},
                         .outputs = {&value_view, &index_view},
                         .options = {.count = (int)count, .flag = sorting->descending},
                         .op_name = call->op->name};
    TRY(op_run_kernel(&kernel));
    (void)compose_give(&values, &outputs[0]);
    return compose_give(&indexes, &outputs[1]);
}

static Status sort_rows(const OpCall *call, Tensor *x, const Sorting *sorting, Tensor **outputs) {
    TapeRecord record = tape_begin(&gradient_sort, &x, 1);
    tape_keep(&record, &sorting->dim, sizeof sorting->dim);
    Status status = sort_kernel(call, x, sorting, outputs);
    return record.resume ? tape_end_node(&record, status, outputs, 2) : status;
}

static Status sort_all(const OpCall *call, int which, Tensor **out) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(indexes);
    int dim;
    TRY(along(call, true, ATTRIBUTE_OR(call, dim, -1), &x, &dim));
    Tensor *sorted[2] = {NULL, NULL};
    Sorting sorting = {dim, x->view.dims[dim], ATTRIBUTE_OR(call, descending, false)};
    TRY(sort_rows(call, x, &sorting, sorted));
    values = sorted[0];
    indexes = sorted[1];
    Shape shape = tensor_shape(call->inputs[0].tensor);
    return tensor_reshape(sorted[which], &shape, out);
}

Status op_run_sort(const OpCall *call, Tensor **results) {
    return sort_all(call, 0, results);
}
Status op_run_argsort(const OpCall *call, Tensor **results) {
    return sort_all(call, 1, results);
}

Status op_run_topk(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    int dim;
    int64_t k = call->attributes->k;
    TRY(along(call, true, ATTRIBUTE_OR(call, dim, -1), &x, &dim));
    if (k < 0 || k > x->view.dims[dim])
        return fail(STATUS_VALUE, "topk: k is %lld, but dimension %d of %s has %lld elements",
                    (long long)k, dim, tensor_type_name(x).text, (long long)x->view.dims[dim]);
    return sort_rows(call, x, &(Sorting){dim, k, .descending = true}, results);
}

// sorted: [.., n] along its last dimension, n > 0. Even counts give the mean of the middle two.
static Status middle_of_sorted(Tensor *sorted, Tensor **out) {
    int64_t n = sorted->view.dims[tensor_rank(sorted) - 1];
    SCOPED_TENSOR(low);
    SCOPED_TENSOR(high);
    SCOPED_TENSOR(total);
    SCOPED_TENSOR(middle);
    SCOPED_TENSOR(last);
    SCOPED_TENSOR(unordered);
    TRY(tensor_select(sorted, -1, (n - 1) / 2, &low));
    TRY(tensor_select(sorted, -1, n / 2, &high));
    TRY(tensor_select(sorted, -1, n - 1, &last));
    TRY(op_binary(OP_sub, op_tensor(high), op_tensor(low), &total));
    TRY(compose_with_number(OP_mul, total, 0.5, &middle));
    SCOPED_TENSOR(value);
    TRY(op_binary(OP_add, op_tensor(low), op_tensor(middle), &value));
    // inf - inf is not a number, but the middle of two equal infinities is.
    SCOPED_TENSOR(equal);
    SCOPED_TENSOR(exact);
    TRY(op_binary(OP_eq, op_tensor(low), op_tensor(high), &equal));
    TRY(op_ternary(OP_where, op_tensor(equal), op_tensor(low), op_tensor(value), &exact));
    TRY(op_unary(OP_isnan, last, &unordered)); // NaN is sorted last
    return op_ternary(OP_where, op_tensor(unordered), op_tensor(last), op_tensor(exact), out);
}

Status op_run_median(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(floats);
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(middle);
    int dim;
    bool has_dim = op_has(call, ATTRIBUTE_dim);
    TRY(along(call, has_dim, ATTRIBUTE_OR(call, dim, 0), &x, &dim));
    TRY(check_not_empty(call, call->inputs[0].tensor));
    TRY(compose_floating(x, &floats));
    TRY(tensor_move_dim_last(floats, dim, &rows));
    Tensor *sorted[2] = {NULL, NULL};
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(indexes);
    int last = tensor_rank(rows) - 1;
    TRY(sort_rows(call, rows, &(Sorting){last, rows->view.dims[last], false}, sorted));
    values = sorted[0];
    indexes = sorted[1];
    if (tensor_count(values) == 0) {
        KernelOptions options = {.op = REDUCE_MEAN};
        return reduce_as(call, call->inputs[0].tensor, options, tensor_dtype(values), results);
    }
    TRY(middle_of_sorted(values, &middle));
    if (!ATTRIBUTE_OR(call, keepdim, false)) return compose_give(&middle, results);
    Shape wide = tensor_shape(call->inputs[0].tensor);
    for (int i = 0; i < wide.rank; i++)
        if (!has_dim || i == dim) wide.dims[i] = 1;
    return tensor_reshape(middle, &wide, results);
}

// The sorted numbers without those equal to their left neighbour.
static Status drop_repeated(Tensor *sorted, int64_t n, Tensor **out) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    SCOPED_TENSOR(changes);
    SCOPED_TENSOR(first);
    SCOPED_TENSOR(mask);
    TRY(tensor_slice(sorted, 0, 0, n - 1, &left));
    TRY(tensor_slice(sorted, 0, 1, n, &right));
    TRY(op_binary(OP_ne, op_tensor(right), op_tensor(left), &changes));
    SCOPED_TENSOR(start);
    TRY(tensor_slice(sorted, 0, 0, 1, &start));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dtype), .dtype = DTYPE_BOOL};
    TRY(op_with(OP_ones_like, &start, 1, &attributes, &first));
    Tensor *parts[2] = {first, changes};
    TRY(tensor_concat(parts, 2, 0, &mask));
    IndexItem item = {.kind = INDEX_TENSOR, .tensor = mask};
    return index_get(sorted, &item, 1, out);
}

Status op_run_unique(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    int dim;
    TRY(along(call, false, 0, &x, &dim));
    int64_t n = tensor_count(x);
    Tensor *sorted[2] = {NULL, NULL};
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(indexes);
    TRY(sort_rows(call, x, &(Sorting){.dim = 0, .count = n}, sorted));
    values = sorted[0];
    indexes = sorted[1];
    if (n == 0) return compose_give(&values, results);
    return drop_repeated(values, n, results);
}
