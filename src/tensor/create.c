// Operations that make tensors from numbers: constants, ranges, masks and tables of positions.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "shape/rules.h"
#include "tensor/create.h"

Status create_target(const OpCall *call, DType fallback, CreateTarget *out) {
    out->device = ATTRIBUTE_OR(call, device, NULL);
    if (!out->device) TRY(device_default(&out->device));
    out->dtype = ATTRIBUTE_OR(call, dtype, fallback);
    if (dtype_is_quant(out->dtype))
        return fail(STATUS_DTYPE, "%s: %s is a type of read-only weights; it cannot be made",
                    call->op->name, dtype_name(out->dtype));
    return STATUS_OK;
}

Status create_shape(const OpCall *call, Shape *out) {
    if (!op_has(call, ATTRIBUTE_shape)) {
        (void)fail(STATUS_ARITY, "%s needs a shape", call->op->name);
        return fail_help("for example %s(shape: [2, 3])", call->op->name);
    }
    *out = call->attributes->shape;
    for (int i = 0; i < out->rank; i++)
        if (out->dims[i] < 0)
            return fail(STATUS_SHAPE,
                        "%s: dimension %d of the shape is %lld; it must not be negative",
                        call->op->name, i, (long long)out->dims[i]);
    return STATUS_OK;
}

static Status check_count(const OpCall *call, const char *what, int64_t count) {
    if (count >= 0) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: %s is %lld; it must not be negative", call->op->name, what,
                (long long)count);
}

static Scalar scalar_int(int64_t value) {
    return (Scalar){.dtype = DTYPE_INT64, .as.i = value};
}
static bool scalar_is_float(Scalar value) {
    return value.dtype == DTYPE_FLOAT64;
}

// A tensor of the call's dtype and device with every element `value`.
static Status create_filled(const OpCall *call, const Shape *shape, Scalar value, Tensor **out) {
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    SCOPED_TENSOR(result);
    TRY(tensor_new(target.device, target.dtype, shape, &result));
    TRY(compose_fill(call, &result->view, value));
    return compose_give(&result, out);
}

static Status create_constant(const OpCall *call, Scalar value, Tensor **out) {
    Shape shape;
    TRY(create_shape(call, &shape));
    return create_filled(call, &shape, value, out);
}

Status op_run_zeros(const OpCall *call, Tensor **results) {
    return create_constant(call, scalar_int(0), results);
}
Status op_run_ones(const OpCall *call, Tensor **results) {
    return create_constant(call, scalar_int(1), results);
}
Status op_run_full(const OpCall *call, Tensor **results) {
    return create_constant(call, call->attributes->value, results);
}

Status op_run_empty(const OpCall *call, Tensor **results) {
    Shape shape;
    CreateTarget target;
    TRY(create_shape(call, &shape));
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    return tensor_new(target.device, target.dtype, &shape, results);
}

Status create_like(const OpCall *call, const Tensor *x, CreateTarget *out) {
    DType dtype = dtype_is_quant(tensor_dtype(x)) ? DTYPE_FLOAT32 : tensor_dtype(x);
    TRY(create_target(call, dtype, out));
    if (!ATTRIBUTE_OR(call, device, NULL)) out->device = x->device;
    return STATUS_OK;
}

static Status constant_like(const OpCall *call, int64_t value, Tensor **out) {
    CreateTarget target;
    TRY(create_like(call, call->inputs[0].tensor, &target));
    SCOPED_TENSOR(result);
    Shape shape = tensor_shape(call->inputs[0].tensor);
    TRY(tensor_new(target.device, target.dtype, &shape, &result));
    TRY(compose_fill(call, &result->view, scalar_int(value)));
    return compose_give(&result, out);
}

Status op_run_zeros_like(const OpCall *call, Tensor **results) {
    return constant_like(call, 0, results);
}
Status op_run_ones_like(const OpCall *call, Tensor **results) {
    return constant_like(call, 1, results);
}

Status op_run_eye(const OpCall *call, Tensor **results) {
    int64_t n = call->attributes->n;
    TRY(check_count(call, "n", n));
    Shape shape = {.rank = 2, .dims = {n, n}};
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(diagonal);
    TRY(create_filled(call, &shape, scalar_int(0), &result));
    TRY(tensor_diagonal(result, 0, 1, &diagonal));
    TRY(compose_fill(call, &diagonal->view, scalar_int(1)));
    return compose_give(&result, results);
}

// ceil((stop - start) / step) without overflow; the caller checked that step is not 0.
static Status count_integers(const OpCall *call, int64_t start, int64_t stop, int64_t step,
                             int64_t *out) {
    __int128 span = (__int128)stop - start, stride = step;
    if (stride < 0) {
        span = -span;
        stride = -stride;
    }
    __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
    if (count > INT64_MAX)
        return fail(STATUS_SHAPE, "%s: from %lld to %lld are too many numbers", call->op->name,
                    (long long)start, (long long)stop);
    *out = (int64_t)count;
    return STATUS_OK;
}

static Status count_numbers(const OpCall *call, double start, double stop, double step,
                            int64_t *out) {
    ASSERT(step != 0);
    double count = ceil((stop - start) / step);
    if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || count > 9.0e18)
        return fail(STATUS_VALUE, "%s: from %g to %g by %g is not a range that ends",
                    call->op->name, start, stop, step);
    *out = count > 0 ? (int64_t)count : 0;
    return STATUS_OK;
}

typedef struct Progression {
    bool is_float;
    int64_t start, step;
    double first, stride;
    int64_t count;
} Progression;

// The numbers of a progression as a new tensor of the target's dtype.
static Status create_progression(const OpCall *call, const Progression *numbers,
                                 const CreateTarget *target, Tensor **out) {
    DType natural = dtype_is_float(target->dtype) ? target->dtype
                    : numbers->is_float           ? DTYPE_FLOAT64
                                                  : DTYPE_INT64;
    ASSERT(numbers->count >= 0);
    Shape shape = {.rank = 1, .dims = {numbers->count}};
    SCOPED_TENSOR(result);
    TRY(tensor_new(target->device, natural, &shape, &result));
    KernelOptions options = {.scalars = {numbers->first, numbers->stride},
                             .integers = {numbers->start, numbers->step}};
    TRY(compose_kernel(call, KERNEL_ARANGE, &options, (TensorSpan){0}, result));
    return tensor_cast(result, target->dtype, out);
}

static Status arange(const OpCall *call, Scalar start, Scalar stop, Scalar step, Tensor **out) {
    if (scalar_double(step) == 0)
        return fail(STATUS_VALUE, "%s: the step must not be 0", call->op->name);
    Progression numbers = {.is_float = scalar_is_float(start) || scalar_is_float(stop) ||
                                       scalar_is_float(step),
                           .first = scalar_double(start),
                           .stride = scalar_double(step)};
    CreateTarget target;
    TRY(create_target(call, numbers.is_float ? DTYPE_FLOAT32 : DTYPE_INT64, &target));
    if (numbers.is_float) {
        TRY(count_numbers(call, numbers.first, scalar_double(stop), numbers.stride,
                          &numbers.count));
    } else {
        numbers.start = start.as.i;
        numbers.step = step.as.i;
        TRY(count_integers(call, start.as.i, stop.as.i, step.as.i, &numbers.count));
    }
    return create_progression(call, &numbers, &target, out);
}

Status op_run_arange(const OpCall *call, Tensor **results) {
    return arange(call, scalar_int(0), call->attributes->stop, scalar_int(1), results);
}
Status op_run_arange_from(const OpCall *call, Tensor **results) {
    const OpAttributes *given = call->attributes;
    return arange(call, given->start, given->stop, ATTRIBUTE_OR(call, step, scalar_int(1)),
                  results);
}

Status op_run_linspace(const OpCall *call, Tensor **results) {
    const OpAttributes *given = call->attributes;
    int64_t n = given->n;
    TRY(check_count(call, "n", n));
    double start = scalar_double(given->start), stop = scalar_double(given->stop);
    Progression numbers = {.is_float = true,
                           .first = start,
                           .stride = n > 1 ? (stop - start) / (double)(n - 1) : 0,
                           .count = n};
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    SCOPED_TENSOR(result);
    TRY(create_progression(call, &numbers, &target, &result));
    if (n > 1) { // Rounding in the progression must not show in its end.
        SCOPED_TENSOR(last);
        TRY(tensor_select(result, 0, n - 1, &last));
        TRY(compose_fill(call, &last->view, (Scalar){.dtype = DTYPE_FLOAT64, .as.f = stop}));
    }
    return compose_give(&result, results);
}

Status op_run_clone(const OpCall *call, Tensor **results) {
    return tensor_clone(call->inputs[0].tensor, results);
}

// int64 [count]: 0, 1, 2, ...
static Status create_indexes(const OpCall *call, int64_t count, Device *device, Tensor **out) {
    Progression numbers = {.step = 1, .stride = 1, .count = count};
    ASSERT(count >= 0);
    CreateTarget target = {.device = device, .dtype = DTYPE_INT64};
    return create_progression(call, &numbers, &target, out);
}

// bool [rows, columns]: where column - row <= k.
static Status below_diagonal(const OpCall *call, const int64_t *rows_columns, int64_t k,
                             Device *device, Tensor **out) {
    SCOPED_TENSOR(columns);
    SCOPED_TENSOR(flat_rows);
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(limits);
    TRY(create_indexes(call, rows_columns[0], device, &flat_rows));
    TRY(create_indexes(call, rows_columns[1], device, &columns));
    TRY(tensor_unsqueeze(flat_rows, 1, &rows));
    TRY(op_binary(OP_add, op_tensor(rows), op_int(k), &limits));
    // Both as [rows, columns], so that [n, 1] next to [n] is not taken for a mistake.
    Shape shape = {.rank = 2, .dims = {rows_columns[0], rows_columns[1]}};
    SCOPED_TENSOR(wide_columns);
    SCOPED_TENSOR(wide_limits);
    TRY(tensor_broadcast_to(columns, &shape, &wide_columns));
    TRY(tensor_broadcast_to(limits, &shape, &wide_limits));
    return op_binary(OP_le, op_tensor(wide_columns), op_tensor(wide_limits), out);
}

static Status triangle(const OpCall *call, bool lower, Tensor **out) {
    Tensor *x = call->inputs[0].tensor;
    int rank = tensor_rank(x);
    TensorType type = tensor_type(x);
    TRY(shape_needs_matrix(call->op->name, &type));
    int64_t k = ATTRIBUTE_OR(call, k, 0);
    int64_t limit = compose_product(x->view.dims, rank - 2, rank) + 1;
    k = k > limit ? limit : k < -limit ? -limit : k;
    SCOPED_TENSOR(mask);
    TRY(below_diagonal(call, &x->view.dims[rank - 2], lower ? k : k - 1, x->device, &mask));
    if (lower) return op_ternary(OP_where, op_tensor(mask), op_tensor(x), op_int(0), out);
    return op_ternary(OP_where, op_tensor(mask), op_int(0), op_tensor(x), out);
}

Status op_run_tril(const OpCall *call, Tensor **results) {
    return triangle(call, true, results);
}
Status op_run_triu(const OpCall *call, Tensor **results) {
    return triangle(call, false, results);
}

// A negative id counts from the end, as everywhere.
static Status check_ids(const OpCall *call, const Tensor *ids, int64_t n) {
    int64_t wrong;
    if (tensor_count(ids) == 0) return STATUS_OK;
    TRY(compose_within(ids, -n, n - 1, &wrong));
    if (wrong >= -n && wrong < n) return STATUS_OK;
    return fail(STATUS_INDEX, "%s: id %lld is out of range: there are %lld places", call->op->name,
                (long long)wrong, (long long)n);
}

Status op_run_one_hot(const OpCall *call, Tensor **results) {
    int64_t n = call->attributes->n;
    TRY(check_count(call, "n", n));
    SCOPED_TENSOR(ids);
    SCOPED_TENSOR(column);
    SCOPED_TENSOR(classes);
    SCOPED_TENSOR(equal);
    TRY(compose_whole(call, call->inputs[0].tensor, "ids", &ids));
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    TRY(create_indexes(call, n, ids->device, &classes));
    TRY(check_ids(call, ids, n));
    TRY(tensor_unsqueeze(ids, -1, &column));
    Shape wide = tensor_shape(column);
    wide.dims[wide.rank - 1] = n;
    SCOPED_TENSOR(wide_ids);
    SCOPED_TENSOR(wide_classes);
    SCOPED_TENSOR(positive);
    TRY(op_binary(OP_mod, op_tensor(column), op_int(n > 0 ? n : 1), &positive));
    TRY(tensor_broadcast_to(positive, &wide, &wide_ids));
    TRY(tensor_broadcast_to(classes, &wide, &wide_classes));
    TRY(op_binary(OP_eq, op_tensor(wide_ids), op_tensor(wide_classes), &equal));
    return tensor_cast(equal, target.dtype, results);
}

Status op_run_causal_mask(const OpCall *call, Tensor **results) {
    int64_t n = call->attributes->n;
    TRY(check_count(call, "n", n));
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    int64_t size[2] = {n, n};
    SCOPED_TENSOR(mask);
    TRY(below_diagonal(call, size, 0, target.device, &mask));
    return tensor_cast(mask, target.dtype, results);
}

Status op_run_padding_mask(const OpCall *call, Tensor **results) {
    int64_t max_len = call->attributes->max_len;
    TRY(check_count(call, "max_len", max_len));
    SCOPED_TENSOR(lengths);
    SCOPED_TENSOR(limits);
    SCOPED_TENSOR(columns);
    SCOPED_TENSOR(mask);
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    TRY(compose_whole(call, call->inputs[0].tensor, "lengths", &lengths));
    TRY(tensor_unsqueeze(lengths, -1, &limits));
    TRY(create_indexes(call, max_len, lengths->device, &columns));
    Shape wide = tensor_shape(limits);
    wide.dims[wide.rank - 1] = max_len;
    SCOPED_TENSOR(wide_limits);
    SCOPED_TENSOR(wide_columns);
    TRY(tensor_broadcast_to(limits, &wide, &wide_limits));
    TRY(tensor_broadcast_to(columns, &wide, &wide_columns));
    TRY(op_binary(OP_lt, op_tensor(wide_columns), op_tensor(wide_limits), &mask));
    return tensor_cast(mask, target.dtype, results);
}

Status op_run_combine_masks(const OpCall *call, Tensor **results) {
    return op_binary(OP_mul, call->inputs[0], call->inputs[1], results);
}

typedef double (*TableFormula)(int64_t row, int64_t column, int64_t columns, double base);

// [rows, columns] of a formula evaluated on the host in double.
static Status create_table(const OpCall *call, const int64_t *size, double base,
                           TableFormula formula, Tensor **out) {
    CreateTarget target;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    SCOPED_TENSOR(table);
    Shape shape = {.rank = 2, .dims = {size[0], size[1]}};
    ASSERT(size[0] >= 0 && size[1] >= 0);
    TRY(tensor_new(target.device, DTYPE_FLOAT64, &shape, &table));
    size_t count = (size_t)tensor_count(table);
    double *values = memory_allocate_zeroed(count + 1, sizeof *values);
    for (int64_t row = 0; row < size[0]; row++)
        for (int64_t column = 0; column < size[1]; column++)
            values[row * size[1] + column] = formula(row, column, size[1], base);
    Status status =
        buffer_upload(table->view.buffer, table->view.offset, values, count * sizeof *values);
    free(values);
    TRY(status);
    return tensor_cast(table, target.dtype, out);
}

static double position_formula(int64_t row, int64_t column, int64_t columns, double base) {
    double exponent = (double)(column / 2 * 2) / (double)columns;
    double angle = (double)row / pow(base, exponent);
    return column % 2 == 0 ? sin(angle) : cos(angle);
}

Status op_run_positional_encoding(const OpCall *call, Tensor **results) {
    int64_t size[2] = {call->attributes->seq, call->attributes->d};
    TRY(check_count(call, "seq", size[0]));
    TRY(check_count(call, "d", size[1]));
    return create_table(call, size, 10000.0, position_formula, results);
}

static double rope_angle(int64_t row, int64_t pair, int64_t pairs, double base) {
    return (double)row * pow(base, -(double)pair / (double)pairs);
}
static double rope_cos_formula(int64_t row, int64_t pair, int64_t pairs, double base) {
    return cos(rope_angle(row, pair, pairs, base));
}
static double rope_sin_formula(int64_t row, int64_t pair, int64_t pairs, double base) {
    return sin(rope_angle(row, pair, pairs, base));
}

static Status rope_table(const OpCall *call, TableFormula formula, Tensor **out) {
    int64_t head_dim = call->attributes->head_dim, max_len = call->attributes->max_len;
    TRY(check_count(call, "max_len", max_len));
    if (head_dim <= 0 || head_dim % 2 != 0)
        return fail(STATUS_VALUE, "%s: head_dim is %lld; it must be even and positive",
                    call->op->name, (long long)head_dim);
    int64_t size[2] = {max_len, head_dim / 2};
    return create_table(call, size, ATTRIBUTE_OR(call, base, 10000.0), formula, out);
}

Status op_run_precompute_rope_cos(const OpCall *call, Tensor **results) {
    return rope_table(call, rope_cos_formula, results);
}
Status op_run_precompute_rope_sin(const OpCall *call, Tensor **results) {
    return rope_table(call, rope_sin_formula, results);
}
