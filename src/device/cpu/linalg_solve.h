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
    REAL *right = problem->results[0];
    memset(right, 0, n * n * sizeof *right);
    for (size_t i = 0; i < n; i++) right[i * n + i] = 1;
    return NAME(solve_right)(problem, right, problem->n);
}

static Status NAME(solve)(const Problem *problem) {
    read_matrix(problem, problem->call->inputs[1].view, problem->results[0]);
    return NAME(solve_right)(problem, problem->results[0], problem->k);
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
    *(REAL *)problem->results[0] = (REAL)product;
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
    memcpy(problem->results[0], a, (size_t)n * (size_t)n * sizeof *a);
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
    REAL *r = problem->results[1];
    memset(r, 0, (size_t)k * (size_t)n * sizeof *r);
    (void)LAPACK(geqrf)(LAPACK_COL_MAJOR, m, n, a, m, scales);
    for (size_t column = 0; column < (size_t)n; column++)
        for (size_t row = 0; row <= column && row < (size_t)k; row++)
            r[column * (size_t)k + row] = a[column * (size_t)m + row];
    (void)LAPACK(orgqr)(LAPACK_COL_MAJOR, m, k, k, a, m, scales);
    memcpy(problem->results[0], a, (size_t)m * (size_t)k * sizeof *a);
    free(scales);
    return STATUS_OK;
}

// Room for LAPACK to work in, of the size that it asked for in its own numbers, which float rounds.
static Status NAME(work_room)(const Problem *problem, REAL wanted, lapack_int *count, REAL **out) {
    double rounded = (double)wanted * (1 + 0x1p-20) + 1;
    *count = 0;
    *out = NULL;
    if (!(rounded < INT_MAX)) return fail_too_large(problem->call);
    *count = (lapack_int)rounded;
    *out = memory_try_resize(NULL, (size_t)*count * sizeof **out);
    return *out ? STATUS_OK : memory_exhausted();
}

// With a count of -1 LAPACK only says in work[0] how much room it wants.
static lapack_int NAME(call_svd)(const Problem *problem, REAL *work, lapack_int count,
                                 lapack_int *integers) {
    return LAPACK(gesdd_work)(LAPACK_COL_MAJOR, 'S', problem->m, problem->n, problem->a, problem->m,
                              problem->results[1], problem->results[0], problem->m,
                              problem->results[2], problem->k, work, count, integers);
}

static Status NAME(svd)(const Problem *problem) {
    lapack_int count, status;
    REAL wanted, *work;
    if (problem->k == 0) return STATUS_OK;
    TRY(NAME(check_finite)(problem));
    (void)NAME(call_svd)(problem, &wanted, -1, NULL);
    TRY(NAME(work_room)(problem, wanted, &count, &work));
    lapack_int *integers = memory_allocate((size_t)problem->k * 8 * sizeof *integers);
    status = NAME(call_svd)(problem, work, count, integers);
    free(work);
    free(integers);
    return status == 0 ? STATUS_OK : fail_convergence(problem);
}

static Status NAME(eigh)(const Problem *problem) {
    lapack_int n = problem->n, count, integer_count = 3 + 5 * n;
    if (n == 0) return STATUS_OK;
    TRY(NAME(check_finite)(problem));
    double most = 1 + 6.0 * n + 2.0 * n * n; // as LAPACK's manual says
    REAL *work;
    TRY(NAME(work_room)(problem, (REAL)most, &count, &work));
    lapack_int *integers = memory_allocate((size_t)integer_count * sizeof *integers);
    lapack_int status =
        LAPACK(syevd_work)(LAPACK_COL_MAJOR, 'V', 'L', n, problem->a, n, problem->results[0], work,
                           count, integers, integer_count);
    memcpy(problem->results[1], problem->a, (size_t)n * (size_t)n * sizeof(REAL));
    free(work);
    free(integers);
    return status == 0 ? STATUS_OK : fail_convergence(problem);
}
