// What LAPACK does with one matrix, in one compute type; included once for float and once for
// double with REAL, NAME(x) and LAPACK(x) set. Matrices are stored column by column; an empty
// matrix never reaches LAPACK, which asks for leading dimensions of at least 1.

// Factors problem->a into L and U; *status is LAPACK's: 0, or the number of the first zero pivot.
static lapack_int *NAME(factor)(const Problem *problem, lapack_int *status) {
    lapack_int n = problem->n;
    lapack_int *pivots = memory_allocate((size_t)n * sizeof *pivots);
    *status = n == 0 ? 0 : LAPACK(getrf_work)(LAPACK_COL_MAJOR, n, n, problem->a, n, pivots);
    return pivots;
}

static Status NAME(solve_right)(const Problem *problem, REAL *right, lapack_int columns) {
    lapack_int n = problem->n, status;
    lapack_int *pivots = NAME(factor)(problem, &status);
    if (status == 0 && n > 0 && columns > 0)
        (void)LAPACK(getrs_work)(LAPACK_COL_MAJOR, 'N', n, columns, problem->a, n, pivots, right,
                                 n);
    free(pivots);
    return status > 0 ? fail_singular(problem, status) : STATUS_OK;
}

static Status NAME(inverse)(const Problem *problem) {
    size_t n = (size_t)problem->n;
    REAL *right = memory_allocate_zeroed(n * n, sizeof *right);
    for (size_t i = 0; i < n; i++) right[i * n + i] = 1;
    Status status = NAME(solve_right)(problem, right, problem->n);
    if (status == STATUS_OK) write_matrix(problem, 0, right, problem->n);
    free(right);
    return status;
}

static Status NAME(solve)(const Problem *problem) {
    REAL *right = memory_allocate((size_t)problem->n * (size_t)problem->k * sizeof *right);
    read_matrix(problem, problem->call->inputs[1].view, right);
    Status status = NAME(solve_right)(problem, right, problem->k);
    if (status == STATUS_OK) write_matrix(problem, 0, right, problem->n);
    free(right);
    return status;
}

static Status NAME(determinant)(const Problem *problem) {
    lapack_int n = problem->n, status;
    lapack_int *pivots = NAME(factor)(problem, &status);
    const REAL *factors = problem->a;
    double product = 1; // the sign changes with every row that was exchanged
    for (lapack_int i = 0; i < n; i++)
        product *=
            (double)factors[(size_t)i * (size_t)n + (size_t)i] * (pivots[i] == i + 1 ? 1 : -1);
    free(pivots);
    const TensorView *out = problem->call->outputs[0];
    cpu_convert()->store[COMPUTE_F64][out->dtype](
        view_at(out, batch_offset(out, 0, problem->batch)), 1, &product, 1);
    return STATUS_OK;
}

static Status NAME(cholesky)(const Problem *problem) {
    lapack_int n = problem->n, status = 0;
    REAL *a = problem->a;
    for (lapack_int column = 1; column < n; column++)
        for (lapack_int row = 0; row < column; row++)
            a[(size_t)column * (size_t)n + (size_t)row] = 0;
    if (n > 0) status = LAPACK(potrf_work)(LAPACK_COL_MAJOR, 'L', n, a, n);
    if (status > 0)
        return fail(STATUS_VALUE,
                    "%s: %sthe matrix is not positive definite (its leading minor of "
                    "size %d is not positive)",
                    problem->call->op_name, which(problem), (int)status);
    write_matrix(problem, 0, a, n);
    return STATUS_OK;
}

// LAPACK neither decomposes other numbers nor says so.
static Status NAME(check_finite)(const Problem *problem) {
    const REAL *a = problem->a;
    for (size_t i = 0; i < (size_t)problem->m * (size_t)problem->n; i++)
        if (!isfinite(a[i]))
            return fail(STATUS_VALUE, "%s: %sthe matrix holds %s", problem->call->op_name,
                        which(problem), isnan(a[i]) ? "nan" : "inf");
    return STATUS_OK;
}

static Status NAME(qr)(const Problem *problem) {
    lapack_int m = problem->m, n = problem->n, k = problem->k;
    if (k == 0) return STATUS_OK;
    TRY(NAME(check_finite)(problem));
    REAL *a = problem->a;
    REAL *scales = memory_allocate((size_t)k * sizeof *scales);
    REAL *r = memory_allocate_zeroed((size_t)k * (size_t)n, sizeof *r);
    (void)LAPACK(geqrf)(LAPACK_COL_MAJOR, m, n, a, m, scales);
    for (size_t column = 0; column < (size_t)n; column++)
        for (size_t row = 0; row <= column && row < (size_t)k; row++)
            r[column * (size_t)k + row] = a[column * (size_t)m + row];
    (void)LAPACK(orgqr)(LAPACK_COL_MAJOR, m, k, k, a, m, scales);
    write_matrix(problem, 0, a, m);
    write_matrix(problem, 1, r, k);
    free(scales);
    free(r);
    return STATUS_OK;
}

static Status NAME(svd)(const Problem *problem) {
    lapack_int m = problem->m, n = problem->n, k = problem->k;
    if (k == 0) return STATUS_OK;
    TRY(NAME(check_finite)(problem));
    REAL *u = memory_allocate((size_t)m * (size_t)k * sizeof *u);
    REAL *values = memory_allocate((size_t)k * sizeof *values);
    REAL *vt = memory_allocate((size_t)k * (size_t)n * sizeof *vt);
    lapack_int status =
        LAPACK(gesdd)(LAPACK_COL_MAJOR, 'S', m, n, problem->a, m, values, u, m, vt, k);
    write_matrix(problem, 0, u, m);
    write_vector(problem, 1, values);
    write_matrix(problem, 2, vt, k);
    free(u);
    free(values);
    free(vt);
    return status == 0 ? STATUS_OK : fail_convergence(problem);
}

static Status NAME(eigh)(const Problem *problem) {
    lapack_int n = problem->n;
    if (n == 0) return STATUS_OK;
    TRY(NAME(check_finite)(problem));
    REAL *values = memory_allocate((size_t)n * sizeof *values);
    lapack_int status = LAPACK(syevd)(LAPACK_COL_MAJOR, 'V', 'L', n, problem->a, n, values);
    write_vector(problem, 0, values);
    write_matrix(problem, 1, problem->a, n);
    free(values);
    return status == 0 ? STATUS_OK : fail_convergence(problem);
}
