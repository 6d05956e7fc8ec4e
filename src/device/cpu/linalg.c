// The LINALG kernel: each matrix of a batch is copied to LAPACK's column order, solved or
// decomposed in place, and copied to the outputs.
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/blas.h"
#include "device/cpu/matrix.h"

// One matrix of the batch. Numbers are of the call's dtype, column by column.
typedef struct Problem {
    const KernelCall *call;
    CpuCompute compute;
    int64_t batch; // which matrix
    bool batched;
    lapack_int m, n, k; // k: min(m, n), or the columns of solve's right side
    void *a;            // [m, n], overwritten
} Problem;

typedef Status (*Solve)(const Problem *problem);

// Words for messages: "" or "matrix 3 of the batch: ".
static const char *which(const Problem *problem) {
    static _Thread_local char text[48];
    text[0] = '\0';
    if (problem->batched)
        snprintf(text, sizeof text, "matrix %lld of the batch: ", (long long)problem->batch);
    return text;
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

static char *view_at(const TensorView *view, int64_t elements) {
    return (char *)cpu_pointer(view) + elements * (int64_t)dtype_size(view->dtype);
}

// [rows, columns] of the batch to contiguous columns.
static void read_matrix(const Problem *problem, const TensorView *view, void *out) {
    int last = view->rank - 1;
    int64_t rows = view->dims[last - 1], start = batch_offset(view, 2, problem->batch);
    ConvertLoad load = cpu_convert()->load[problem->compute][view->dtype];
    for (int64_t column = 0; column < view->dims[last]; column++)
        load((char *)out + (size_t)(column * rows) * compute_bytes(problem->compute),
             view_at(view, start + column * view->strides[last]), view->strides[last - 1], rows);
}

// The first rows of contiguous columns, `leading` numbers apart, to [rows, columns] of the batch.
static void write_matrix(const Problem *problem, int output, const void *numbers,
                         lapack_int leading) {
    const TensorView *view = problem->call->outputs[output];
    int last = view->rank - 1;
    int64_t start = batch_offset(view, 2, problem->batch);
    ConvertStore store = cpu_convert()->store[problem->compute][view->dtype];
    for (int64_t column = 0; column < view->dims[last]; column++)
        store(view_at(view, start + column * view->strides[last]), view->strides[last - 1],
              (const char *)numbers + (size_t)(column * leading) * compute_bytes(problem->compute),
              view->dims[last - 1]);
}

static void write_vector(const Problem *problem, int output, const void *numbers) {
    const TensorView *view = problem->call->outputs[output];
    int last = view->rank - 1;
    cpu_convert()->store[problem->compute][view->dtype](
        view_at(view, batch_offset(view, 1, problem->batch)), view->strides[last], numbers,
        view->dims[last]);
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
    if (m > INT_MAX / 4 || n > INT_MAX / 4 || k > INT_MAX / 4)
        return fail(STATUS_VALUE, "%s: a matrix of %lld x %lld is too large for LAPACK",
                    call->op_name, (long long)m, (long long)n);
    problem.m = (lapack_int)m;
    problem.n = (lapack_int)n;
    problem.k = (lapack_int)k;
    for (int d = 0; d < in->rank - 2; d++) batches *= in->dims[d];
    Status status = STATUS_OK;
    TRY(lapack_load());
    blas_use_one_thread();
    problem.a = memory_allocate((size_t)(m * n) * compute_bytes(problem.compute));
    for (; problem.batch < batches && status == STATUS_OK; problem.batch++) {
        read_matrix(&problem, in, problem.a);
        status = solves[call->options.op][problem.compute == COMPUTE_F64](&problem);
    }
    free(problem.a);
    return status;
}
