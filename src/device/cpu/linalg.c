// The LINALG kernel: each matrix of a batch is copied to LAPACK's column order, solved or
// decomposed in place, and copied to the outputs. LAPACK cannot be interrupted, so that what takes
// long is done apart.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/apart.h"
#include "device/cpu/lapack.h"
#include "device/cpu/matrix.h"
#include "device/work.h"

// One matrix of the batch. Numbers are of the call's dtype, column by column.
typedef struct Problem {
    const KernelCall *call;
    CpuCompute compute;
    int64_t batch; // which matrix
    bool batched;
    lapack_int m, n, k; // k: min(m, n), or the columns of solve's right side
    void *a;            // [m, n], overwritten
    void *results[KERNEL_OUTPUTS_MAX];
} Problem;

typedef Status (*Solve)(const Problem *problem);

// Multiplications and additions from which on a matrix is worked on apart: some hundredths of a
// second.
static const double apart_work = 1e9;

// Words for messages: "" or "matrix 3 of the batch: ".
static const char *which(const Problem *problem) {
    static _Thread_local char text[48];
    text[0] = '\0';
    if (problem->batched)
        snprintf(text, sizeof text, "matrix %lld of the batch: ", (long long)problem->batch);
    return text;
}

static Status fail_too_large(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view;
    return fail(STATUS_VALUE, "%s: a matrix of %lld x %lld is too large for LAPACK", call->op_name,
                (long long)in->dims[in->rank - 2], (long long)in->dims[in->rank - 1]);
}

static Status fail_singular(const Problem *problem, lapack_int row) {
    return fail(STATUS_VALUE, "%s: %sthe matrix is singular (its pivot %d is 0)",
                problem->call->op_name, which(problem), (int)row - 1);
}

static Status fail_convergence(const Problem *problem) {
    return fail(STATUS_VALUE, "%s: %sthe iteration does not converge", problem->call->op_name,
                which(problem));
}

// The offset of a matrix of a batch: all dims but the last `own`.
static int64_t batch_offset(const TensorView *view, int own, int64_t batch) {
    int64_t offset = 0;
    for (int d = view->rank - own - 1; d >= 0; d--) {
        offset += batch % view->dims[d] * view->strides[d];
        batch /= view->dims[d];
    }
    return offset;
}

// [rows, columns] of the batch to contiguous columns.
static void read_matrix(const Problem *problem, const TensorView *view, void *out) {
    int last = view->rank - 1;
    int64_t rows = view->dims[last - 1], start = batch_offset(view, 2, problem->batch);
    ConvertLoad load = cpu_convert()->load[problem->compute][view->dtype];
    for (int64_t column = 0; column < view->dims[last] && !device_is_interrupted(); column++)
        load((char *)out + (size_t)(column * rows) * compute_bytes(problem->compute),
             cpu_at(view, start + column * view->strides[last]), view->strides[last - 1], rows);
}

// How an output's part of one matrix lies: a matrix, a vector or one number.
typedef struct Part {
    int own; // dims
    int64_t rows, columns, row_stride, column_stride;
} Part;

static Part part_of(const Problem *problem, int output) {
    const TensorView *view = problem->call->outputs[output];
    int own = view->rank - (problem->call->inputs[0].view->rank - 2), first = view->rank - own;
    Part part = {.own = own, .rows = 1, .columns = 1};
    if (own > 0) {
        part.rows = view->dims[first];
        part.row_stride = view->strides[first];
    }
    if (own > 1) {
        part.columns = view->dims[first + 1];
        part.column_stride = view->strides[first + 1];
    }
    return part;
}

static size_t part_bytes(const Problem *problem, int output) {
    Part part = part_of(problem, output);
    return (size_t)(part.rows * part.columns) * compute_bytes(problem->compute);
}

static void store_results(const Problem *problem) {
    for (int output = 0; output < problem->call->n_outputs; output++) {
        const TensorView *view = problem->call->outputs[output];
        Part part = part_of(problem, output);
        int64_t start = batch_offset(view, part.own, problem->batch);
        ConvertStore store = cpu_convert()->store[problem->compute][view->dtype];
        size_t column_bytes = (size_t)part.rows * compute_bytes(problem->compute);
        for (int64_t column = 0; column < part.columns; column++)
            store(cpu_at(view, start + column * part.column_stride), part.row_stride,
                  (const char *)problem->results[output] + (size_t)column * column_bytes,
                  part.rows);
    }
}

#define REAL float
#define NAME(x) x##_float
#define LAPACK(x) lapack_library.s##x
#include "device/cpu/linalg_solve.h"
#undef REAL
#undef NAME
#undef LAPACK
#define REAL double
#define NAME(x) x##_double
#define LAPACK(x) lapack_library.d##x
#include "device/cpu/linalg_solve.h"

static const Solve solves[][2] = {
    [LINALG_INV] = {inverse_float, inverse_double},
    [LINALG_DET] = {determinant_float, determinant_double},
    [LINALG_SOLVE] = {solve_float, solve_double},
    [LINALG_CHOLESKY] = {cholesky_float, cholesky_double},
    [LINALG_QR] = {qr_float, qr_double},
    [LINALG_SVD] = {svd_float, svd_double},
    [LINALG_EIGH] = {eigh_float, eigh_double},
};

static Status solve_problem(const void *context) {
    const Problem *problem = context;
    return solves[problem->call->options.op][problem->compute == COMPUTE_F64](problem);
}

// How many times m * n * (min(m, n) + k) an operation multiplies and adds, roughly.
static const double costs[] = {
    [LINALG_INV] = 1, [LINALG_DET] = 1, [LINALG_SOLVE] = 1, [LINALG_CHOLESKY] = 1,
    [LINALG_QR] = 2,  [LINALG_SVD] = 8, [LINALG_EIGH] = 8,
};

static bool takes_long(const Problem *problem) {
    double m = problem->m, n = problem->n, k = problem->k;
    return m * n * ((m < n ? m : n) + k) * costs[problem->call->options.op] > apart_work;
}

static Status solve_batches(Problem *problem, int64_t batches) {
    const TensorView *in = problem->call->inputs[0].view;
    bool apart = takes_long(problem);
    for (; problem->batch < batches; problem->batch++) {
        read_matrix(problem, in, problem->a);
        if (device_is_interrupted()) return fail(STATUS_INTERRUPT, "interrupted");
        TRY(apart ? apart_run(solve_problem, problem, problem->call->op_name)
                  : solve_problem(problem));
        store_results(problem);
    }
    return STATUS_OK;
}

// Room for a matrix and its results, which a copy of this process can share.
static Status solve_in_room(Problem *problem, int64_t batches) {
    size_t bytes = 1, at = 0;
    for (int i = 0; i < problem->call->n_outputs; i++) bytes += part_bytes(problem, i);
    char *results = takes_long(problem) ? apart_allocate(bytes) : memory_try_resize(NULL, bytes);
    size_t matrix_bytes = (size_t)problem->m * (size_t)problem->n * compute_bytes(problem->compute);
    problem->a = memory_try_resize(NULL, matrix_bytes);
    for (int i = 0; i < problem->call->n_outputs; at += part_bytes(problem, i++))
        problem->results[i] = results + at;
    Status status = results && problem->a ? solve_batches(problem, batches) : memory_exhausted();
    free(problem->a);
    if (takes_long(problem))
        apart_free(results, bytes);
    else
        free(results);
    return status;
}

Status cpu_kernel_LINALG(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view;
    ASSERT(in->rank >= 2 && call->options.op >= 0 &&
           (size_t)call->options.op < sizeof solves / sizeof *solves);
    if (in->dtype != DTYPE_FLOAT32 && in->dtype != DTYPE_FLOAT64)
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s", call->op_name,
                    dtype_name(in->dtype));
    Problem problem = {.call = call, .compute = compute_of(in->dtype), .batched = in->rank > 2};
    int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], batches = 1;
    int64_t k = m < n ? m : n;
    if (call->options.op == LINALG_SOLVE) k = call->inputs[1].view->dims[in->rank - 1];
    if (m > INT_MAX / 4 || n > INT_MAX / 4 || k > INT_MAX / 4) return fail_too_large(call);
    problem.m = (lapack_int)m;
    problem.n = (lapack_int)n;
    problem.k = (lapack_int)k;
    for (int d = 0; d < in->rank - 2; d++) batches *= in->dims[d];
    TRY(lapack_load());
    lapack_use_one_thread();
    return solve_in_room(&problem, batches);
}
