// Reductions next to plain loops, for the tests of REDUCE, ARG_REDUCE and SCAN. Those of floats and
// of integers are programs of their own: a device may need a pipeline for each of thousands of
// combinations, and programs run next to each other.
#ifndef TESTS_DEVICE_REDUCTIONS_H
#define TESTS_DEVICE_REDUCTIONS_H

#include "arrays.h"

static const char *const op_names[] = {"sum",   "prod",      "max",        "min",
                                       "any",   "all",       "sum of abs", "sum of squares",
                                       "count", "logsumexp", "mean",       "var"};
enum { OP_COUNT = sizeof op_names / sizeof *op_names };

// Reference: `values` are the n numbers of one result.
static inline double expect_reduction(ReduceOp op, const double *values, int64_t n,
                                      double correction) {
    double sum = 0, product = 1, largest = -INFINITY, smallest = INFINITY, absolute = 0,
           squares = 0;
    int64_t nonzero = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = values[i];
        sum += x;
        product *= x;
        absolute += fabs(x);
        squares += x * x;
        nonzero += x != 0;
        if (x > largest || x != x) largest = largest != largest ? largest : x;
        if (x < smallest || x != x) smallest = smallest != smallest ? smallest : x;
    }
    double deviation = 0, exponentials = 0;
    for (int64_t i = 0; i < n; i++) {
        deviation += (values[i] - sum / (double)n) * (values[i] - sum / (double)n);
        exponentials += exp(values[i] - largest);
    }
    switch (op) {
    case REDUCE_SUM: return sum;
    case REDUCE_PROD: return product;
    case REDUCE_MAX: return largest;
    case REDUCE_MIN: return smallest;
    case REDUCE_ANY: return nonzero > 0;
    case REDUCE_ALL: return nonzero == n;
    case REDUCE_SUM_ABS: return absolute;
    case REDUCE_SUM_SQUARE: return squares;
    case REDUCE_COUNT_NONZERO: return (double)nonzero;
    case REDUCE_LOGSUMEXP: return isinf(largest) ? largest : largest + log(exponentials);
    case REDUCE_MEAN: return sum / (double)n;
    case REDUCE_VAR: return deviation / fmax((double)n - correction, 0);
    case REDUCE_COUNT: break;
    }
    return 0;
}

static inline KernelCall reduce_call(ReduceOp op, Array *in, Array *out, int count) {
    KernelCall call = {.kernel = KERNEL_REDUCE,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = array_view(in)}},
                       .outputs = {array_view(out)},
                       .op_name = "test"};
    call.options.op = (int)op;
    call.options.count = count;
    call.options.scalars[0] = 1;
    return call;
}

static inline void run_reduce(ReduceOp op, Array *in, Array *out, int count) {
    KernelCall call = reduce_call(op, in, out, count);
    assert_int_equal(run_kernel(KERNEL_REDUCE, &call), STATUS_OK);
}

// Half a unit of the stored type next to the error of a sum: 1e-6 in what was summed.
static inline double tolerance(DType out, double expected, double magnitude) {
    double unit = out == DTYPE_FLOAT16    ? 0x1p-11
                  : out == DTYPE_BFLOAT16 ? 0x1p-8
                  : out == DTYPE_FLOAT32  ? 0x1p-23
                  : out == DTYPE_FLOAT64  ? 1e-13
                                          : 0;
    double exact = out == DTYPE_FLOAT64 ? 1e-13 : 2e-7;
    return unit * fabs(expected) + (dtype_is_float(out) ? exact * magnitude : 0);
}

static inline void fill_for(Array *array, ReduceOp op) {
    bool whole = !dtype_is_float(array->view.dtype);
    for (int64_t i = 0; i < array_count(&array->view); i++) {
        double value = whole ? (double)(array_random() % 5) : array_random_real() * 2;
        if (array->view.dtype == DTYPE_BOOL) value = array_random() % 4 != 0;
        if (op == REDUCE_PROD)
            value = whole ? 1 + (double)(array_random() % 400 == 0) : 1 + value / 50;
        if (op == REDUCE_PROD && array->view.dtype == DTYPE_BOOL) value = 1;
        if (op >= REDUCE_ANY && op <= REDUCE_ALL)
            value = (array_random() % 37 == 0) != (op == REDUCE_ALL);
        array_set(array, i, value);
    }
}

static inline DType result_dtype(ReduceOp op, DType in) {
    if (op == REDUCE_ANY || op == REDUCE_ALL) return DTYPE_BOOL;
    if (op == REDUCE_COUNT_NONZERO) return DTYPE_INT64;
    if (dtype_is_float(in)) return in;
    if (op >= REDUCE_LOGSUMEXP) return DTYPE_FLOAT32;
    return op == REDUCE_MAX || op == REDUCE_MIN ? in : DTYPE_INT64;
}

static inline void check_reduce(ReduceOp op, DType dtype, Layout layout, int rank,
                                const int64_t *dims, int count) {
    Array in, out;
    array_make(&in, dtype, layout, rank, dims);
    fill_for(&in, op);
    DType result = result_dtype(op, dtype);
    array_make(&out, result, (Layout)((layout + 1) % LAYOUT_COUNT), rank - count, dims);
    run_reduce(op, &in, &out, count);
    int64_t results = array_count(&out.view), n = 1;
    for (int d = rank - count; d < rank; d++) n *= dims[d];
    double *values = malloc((size_t)(n + 1) * sizeof *values);
    for (int64_t r = 0; r < results; r++) {
        double magnitude = 0;
        for (int64_t i = 0; i < n; i++) {
            values[i] = array_get(&in, r * n + i);
            magnitude += op == REDUCE_SUM || op == REDUCE_MEAN ? fabs(values[i]) : 0;
        }
        if (op == REDUCE_MEAN) magnitude /= (double)n;
        if (op == REDUCE_PROD || op >= REDUCE_LOGSUMEXP) magnitude += 1;
        double expected = expect_reduction(op, values, n, 1), got = array_get(&out, r);
        bool same = expected != expected ? got != got : got == expected;
        if (!same && !(fabs(got - expected) <= tolerance(result, expected, magnitude)))
            fail_msg("%s of %s, layout %d, [%lld, %lld, %lld] over %d: result %lld is %.9g, "
                     "expected %.9g",
                     op_names[op], dtype_name(dtype), layout, (long long)dims[0],
                     (long long)dims[1], (long long)dims[2], count, (long long)r, got, expected);
    }
    free(values);
    array_free(&in);
    array_free(&out);
}

// Every operation in awkward layouts, over the last 0 to 3 dims.
static inline void check_reductions(const DType *dtypes, int n_dtypes) {
    static const int64_t shapes[][3] = {{2, 3, 5},   {4, 17, 33},  {1, 1, 1},  {3, 40, 7},
                                        {2, 600, 3}, {1, 5, 1030}, {3, 70, 70}};
    for (int op = 0; op < OP_COUNT; op++)
        for (int d = 0; d < n_dtypes; d++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++)
                for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                    for (int count = 0; count <= 3; count++)
                        if ((count > 0 || op == REDUCE_SUM))
                            check_reduce((ReduceOp)op, dtypes[d], (Layout)layout, 3, shapes[s],
                                         count);
}

#endif
