// MATMUL against float64 loops: shapes round every block size, all dtypes, all layouts.
#include "tests/device/arrays.h"

static const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 39, 40, 63, 64, 65, 127, 129};
enum { SIZES = sizeof sizes / sizeof *sizes };

static Status multiply(Array *a, Array *b, Array *out) {
    KernelCall call = {.kernel = KERNEL_MATMUL, .n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = array_view(a);
    call.inputs[1].view = array_view(b);
    call.outputs[0] = array_view(out);
    return run_kernel(KERNEL_MATMUL, &call);
}

// The distance that rounding to a dtype and to sums of k float32 products allows.
static double tolerance(DType dtype, int64_t k, double magnitude) {
    double unit = dtype == DTYPE_FLOAT64 ? 0x1p-53 : 0x1p-24;
    double rounding = dtype == DTYPE_FLOAT16 ? 0x1p-11 : dtype == DTYPE_BFLOAT16 ? 0x1p-8 : unit;
    return 4 * unit * sqrt((double)k) * magnitude + rounding * magnitude + 1e-300;
}

static void check(const Array *a, const Array *b, const Array *out) {
    int rank = a->view.rank;
    int64_t m = a->view.dims[rank - 2], k = a->view.dims[rank - 1], n = b->view.dims[rank - 1];
    int64_t count = array_count(&out->view), step = count > 20000 ? 997 : 1;
    double *left = array_numbers(a), *right = array_numbers(b);
    for (int64_t index = 0; index < count; index += step) {
        const double *row = left + index / n * k;
        const double *column = right + index / n / m * k * n + index % n;
        double want = 0, size = 0;
        for (int64_t t = 0; t < k; t++) {
            want += row[t] * column[t * n];
            size += fabs(row[t] * column[t * n]);
        }
        double got = array_get(out, index);
        if (!(fabs(got - want) <= tolerance(out->view.dtype, k, size)))
            fail_msg("%s [%ld, %ld] @ [%ld, %ld]: element %ld is %.9g, not %.9g (terms %.3g)",
                     dtype_name(a->view.dtype), (long)m, (long)k, (long)k, (long)n, (long)index,
                     got, want, size);
    }
    free(left);
    free(right);
}

static void run_case(DType dtype, int64_t m, int64_t n, int64_t k, Layout la, Layout lb) {
    Array a, b, out;
    array_make(&a, dtype, la, 2, (int64_t[]){m, k});
    array_make(&b, dtype, lb, 2, (int64_t[]){k, n});
    array_make(&out, dtype, LAYOUT_PLAIN, 2, (int64_t[]){m, n});
    array_fill_random(&a);
    array_fill_random(&b);
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    check(&a, &b, &out);
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

static void test_sizes_and_layouts(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    int sample = 0;
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++)
            for (int l = 0; l < SIZES; l++) {
                sample++;
                int layout = sample * 7 % (LAYOUT_COUNT * LAYOUT_COUNT);
                if (sample % 5) continue;
                run_case(dtypes[sample / 5 % 4], sizes[i], sizes[j], sizes[l],
                         (Layout)(layout / LAYOUT_COUNT), (Layout)(layout % LAYOUT_COUNT));
            }
}

// Each number of rows that kernels for few rows have loops of, and more than they take at once,
// next to matrices that a cache holds and others, with sums that are short, long, and of odd
// lengths.
static void test_few_rows(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    static const int64_t columns[] = {3, 66, 300}, depths[] = {8, 20, 48, 70, 256, 300};
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 24, 25};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (int i = 0; i < 3 * 6 * 4; i++)
            for (int plain = 0; plain < 2; plain++)
                run_case(dtypes[i % 4], rows[row], columns[i / 24], depths[i / 4 % 6], LAYOUT_PLAIN,
                         plain ? LAYOUT_PLAIN : LAYOUT_TRANSPOSED);
}

// The numbers of each row are those that it has alone.
static void check_rows_alone(Array *a, Array *b, const Array *out) {
    const TensorView all = a->view;
    Array alone;
    array_make(&alone, out->view.dtype, LAYOUT_PLAIN, 2, (int64_t[]){1, out->view.dims[1]});
    a->view.dims[0] = 1;
    for (int64_t row = 0; row < all.dims[0]; row++) {
        a->view.offset = all.offset + (size_t)(row * all.strides[0]) * dtype_size(all.dtype);
        assert_int_equal(multiply(a, b, &alone), STATUS_OK);
        for (int64_t j = 0; j < out->view.dims[1]; j++)
            if (array_get(&alone, j) != array_get(out, row * out->view.dims[1] + j))
                fail_msg("%s [%ld, %ld] @ [%ld, %ld]: row %ld differs from the row alone at %ld",
                         dtype_name(all.dtype), (long)all.dims[0], (long)all.dims[1],
                         (long)all.dims[1], (long)out->view.dims[1], (long)row, (long)j);
    }
    a->view = all;
    array_free(&alone);
}

// Four rows, which have a loop of their own, with sums so long that they are made in pieces.
static void test_long_rows(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    static const int64_t columns[] = {3, 49, 101}, depths[] = {512, 1024, 1037, 2048, 3001};
    for (int i = 0; i < 3 * 5 * 4; i++) {
        int64_t n = columns[i / 20], k = depths[i / 4 % 5];
        Array a, b, out;
        array_make(&a, dtypes[i % 4], LAYOUT_PLAIN, 2, (int64_t[]){4, k});
        array_make(&b, dtypes[i % 4], LAYOUT_TRANSPOSED, 2, (int64_t[]){k, n});
        array_make(&out, dtypes[i % 4], LAYOUT_PLAIN, 2, (int64_t[]){4, n});
        array_fill_random(&a);
        array_fill_random(&b);
        assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
        check(&a, &b, &out);
        check_rows_alone(&a, &b, &out);
        array_free(&a);
        array_free(&b);
        array_free(&out);
    }
}

static void test_large(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    for (int i = 0; i < 4; i++) {
        run_case(dtypes[i], 2048, 40, 129, LAYOUT_PLAIN, LAYOUT_TRANSPOSED);
        run_case(dtypes[i], 33, 2048, 65, LAYOUT_TRANSPOSED, LAYOUT_PLAIN);
        run_case(dtypes[i], 39, 17, 2048, LAYOUT_PLAIN, LAYOUT_STEPPED);
        run_case(dtypes[i], 1, 2048, 2048, LAYOUT_PLAIN, LAYOUT_TRANSPOSED);
        run_case(dtypes[i], 1, 2048, 2048, LAYOUT_REVERSED, LAYOUT_PLAIN);
        run_case(dtypes[i], 2048, 1, 2048, LAYOUT_PLAIN, LAYOUT_PLAIN);
        run_case(dtypes[i], 2048, 3, 300, LAYOUT_TRANSPOSED, LAYOUT_STEPPED);
        run_case(dtypes[i], 1100, 1030, 9, LAYOUT_STEPPED, LAYOUT_REVERSED);
        run_case(dtypes[i], 12, 13, 8300, LAYOUT_STEPPED, LAYOUT_REVERSED); // two panels deep
    }
}

// dtypes: of a, b and the result. `layouts`: bit 0 and 1 for operands that are transposed, 2 and 3
// for those of which all batches are the first.
static void run_batch(const DType dtypes[3], const int64_t size[4], int layouts) {
    Array a, b, out;
    int64_t count = size[0], m = size[1], n = size[2], k = size[3];
    array_make(&a, dtypes[0], layouts & 1 ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN, 3,
               (int64_t[]){count, m, k});
    array_make(&b, dtypes[1], layouts & 2 ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN, 3,
               (int64_t[]){count, k, n});
    array_make(&out, dtypes[2], LAYOUT_PLAIN, 3, (int64_t[]){count, m, n});
    array_fill_random(&a);
    array_fill_random(&b);
    if (layouts & 4) a.view.strides[0] = 0;
    if (layouts & 8) b.view.strides[0] = 0;
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    check(&a, &b, &out);
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

// Sizes that matrix units take, in tiles of both sizes, whole and cut off, and each way to lie.
static void test_sixteen_bits(void **state) {
    (void)state;
    static const int64_t sizes_of[][4] = {
        {1, 64, 128, 64},    {2, 72, 136, 88},   {1, 16, 8, 8},      {1, 128, 256, 192},
        {4, 640, 1280, 64},  {4, 648, 1288, 40}, {7, 520, 776, 136}, {100, 24, 200, 128},
        {1, 520, 1033, 520}, {140, 72, 233, 72}, {1, 130, 1023, 133}};
    for (size_t i = 0; i < sizeof sizes_of / sizeof *sizes_of; i++)
        for (int layouts = 0; layouts < 4; layouts++) {
            DType dtype = (i + (size_t)layouts) % 2 ? DTYPE_BFLOAT16 : DTYPE_FLOAT16;
            DType result = layouts == 2 ? DTYPE_FLOAT32 : dtype;
            run_batch((DType[]){dtype, dtype, result}, sizes_of[i], layouts);
        }
}

// The same of products that matrix units make from parts of their numbers, some in slices of k.
static void test_parts(void **state) {
    (void)state;
    static const int64_t sizes_of[][4] = {{1, 64, 128, 128},  {2, 72, 136, 88},  {3, 200, 136, 40},
                                          {20, 24, 200, 80},  {2, 256, 256, 32}, {1, 16, 72, 4096},
                                          {1, 130, 1023, 133}};
    static const DType dtypes[][3] = {{DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_FLOAT32},
                                      {DTYPE_FLOAT32, DTYPE_BFLOAT16, DTYPE_FLOAT32},
                                      {DTYPE_FLOAT32, DTYPE_FLOAT32, DTYPE_FLOAT32},
                                      {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32},
                                      {DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT16}};
    for (size_t i = 0; i < sizeof sizes_of / sizeof *sizes_of; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (int layouts = (int)(i + d) % 2; layouts < 4; layouts += 2)
                run_batch(dtypes[d], sizes_of[i], layouts);
}

// The class of every result, and finite ones, where a few numbers are not finite or of sizes far
// apart. `odd` is one number of a, or of b.
static void check_odd(DType dtype, double odd, bool in_a) {
    enum { M = 80, N = 72, K = 192 };
    Array a, b, out;
    array_make(&a, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){M, K});
    array_make(&b, dtype, LAYOUT_TRANSPOSED, 2, (int64_t[]){K, N});
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){M, N});
    array_fill_random(&a);
    array_fill_random(&b);
    array_set(&a, 5 * K + 19, 0);
    array_set(&b, 19 * N + 7, in_a ? 0.5 : odd);
    if (in_a) array_set(&a, 70 * K + 19, odd);
    if (in_a) array_set(&b, 19 * N + 8, 0);
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    double *left = array_numbers(&a), *right = array_numbers(&b);
    for (int64_t i = 0; i < M * N; i++) {
        double want = 0, size = 0, found = array_get(&out, i);
        for (int64_t t = 0; t < K; t++) {
            double term = left[i / N * K + t] * right[t * N + i % N];
            want += term;
            size += fabs(term);
        }
        bool same = isfinite(want) ? fabs(found - want) <= tolerance(DTYPE_FLOAT32, K, size)
                    : isnan(want)  ? isnan(found)
                                   : found == want;
        if (!same)
            fail_msg("float32 by %s with %g in %c: element %ld is %.9g, not %.9g",
                     dtype_name(dtype), odd, in_a ? 'a' : 'b', (long)i, found, want);
    }
    free(left);
    free(right);
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

static void test_parts_of_odd_numbers(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};
    static const double odd[] = {INFINITY, -INFINITY, NAN, 3.4e38, 1e20, 1e-30, 6e-8, 65504};
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            check_odd(dtypes[d], odd[i], true);
            check_odd(dtypes[d], odd[i], false);
        }
}

// More tiles than a device works on at once, each of more steps than are under way, whose operands
// may be shared.
static void test_sixteen_bits_many(void **state) {
    (void)state;
    static const int64_t sizes_of[][4] = {{140, 72, 232, 296}, {140, 80, 120, 456}};
    for (int layouts = 0; layouts < 4; layouts++) {
        DType dtype = layouts % 2 ? DTYPE_FLOAT16 : DTYPE_BFLOAT16;
        DType result = layouts == 1 ? DTYPE_FLOAT32 : dtype;
        int shared = layouts == 0 ? 0 : layouts == 3 ? 4 : 8;
        run_batch((DType[]){dtype, dtype, result}, sizes_of[layouts / 2], layouts | shared);
    }
}

static void test_long_k(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        run_case(DTYPE_FLOAT16, 1, 5, 32000, LAYOUT_PLAIN, (Layout)layout);
        run_case(DTYPE_FLOAT16, 9, 11, 32000, (Layout)layout, LAYOUT_TRANSPOSED);
        run_case(DTYPE_BFLOAT16, 2, 1, 100003, (Layout)layout, LAYOUT_PLAIN);
        run_case(DTYPE_FLOAT32, 1, 1, 200001, (Layout)layout, LAYOUT_PLAIN);
    }
}

static void test_batched_and_broadcast(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_FLOAT64, DTYPE_INT32};
    for (int i = 0; i < 4; i++)
        for (int share = 0; share < 9; share++)
            for (int size = 0; size < 3; size++) {
                int64_t m = size == 0 ? 1 : 5 * size + 12, k = size == 2 ? 33 : 7,
                        n = 19 - 9 * size;
                Array a, b, out;
                array_make(&a, dtypes[i], (Layout)(share % 4), 4, (int64_t[]){3, 4, m, k});
                array_make(&b, dtypes[i], (Layout)(size + 1), 4, (int64_t[]){3, 4, k, n});
                array_make(&out, dtypes[i], LAYOUT_PLAIN, 4, (int64_t[]){3, 4, m, n});
                array_fill_random(&a);
                array_fill_random(&b);
                if (share % 3 == 1) a.view.strides[0] = 0;
                if (share % 3 == 2) a.view.strides[1] = 0;
                if (share / 3 >= 1) b.view.strides[1] = 0;
                if (share / 3 == 2) b.view.strides[0] = 0;
                assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
                check(&a, &b, &out);
                array_free(&a);
                array_free(&b);
                array_free(&out);
            }
}

static void test_integers(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_INT8, DTYPE_UINT8, DTYPE_INT16, DTYPE_INT32, DTYPE_INT64};
    for (int i = 0; i < 5; i++)
        for (int shape = 0; shape < 6; shape++) {
            int64_t m = sizes[shape * 2 + 1], n = sizes[14 - shape],
                    k = shape == 5 ? 300 : sizes[shape * 2];
            Array a, b, out;
            array_make(&a, dtypes[i], (Layout)(shape % 4), 2, (int64_t[]){m, k});
            array_make(&b, dtypes[i], (Layout)((shape + i) % 4), 2, (int64_t[]){k, n});
            array_make(&out, dtypes[i], LAYOUT_PLAIN, 2, (int64_t[]){m, n});
            uint64_t mask =
                dtype_size(dtypes[i]) == 8 ? UINT64_MAX : (1ull << 8 * dtype_size(dtypes[i])) - 1;
            array_fill_random(&a);
            array_fill_random(&b);
            if (dtypes[i] == DTYPE_INT64) // products that overflow
                for (int64_t x = 0; x < m * k; x++) {
                    int64_t value = (int64_t)(array_random() << 13 ^ array_random());
                    memcpy(array_at(&a, x), &value, 8);
                }
            assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
            for (int64_t index = 0; index < m * n; index++) {
                uint64_t want = 0, got = 0;
                for (int64_t t = 0; t < k; t++) {
                    int64_t x, y = (int64_t)array_get(&b, t * n + index % n);
                    if (dtypes[i] == DTYPE_INT64)
                        memcpy(&x, array_at(&a, index / n * k + t), 8);
                    else
                        x = (int64_t)array_get(&a, index / n * k + t);
                    want += (uint64_t)x * (uint64_t)y;
                }
                memcpy(&got, array_at(&out, index), dtype_size(dtypes[i]));
                if (got != (want & mask))
                    fail_msg("%s %ld: %lx", dtype_name(dtypes[i]), (long)index, (long)got);
            }
            array_free(&a);
            array_free(&b);
            array_free(&out);
        }
}

// A mixed product: float16 weights with float32 rows.
static void test_mixed_floats(void **state) {
    (void)state;
    for (int rows = 1; rows <= 20; rows += 6) {
        Array a, b, out;
        array_make(&a, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){rows, 70});
        array_make(&b, DTYPE_FLOAT16, LAYOUT_TRANSPOSED, 2, (int64_t[]){70, 50});
        array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){rows, 50});
        array_fill_random(&a);
        array_fill_random(&b);
        assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
        check(&a, &b, &out);
        array_free(&a);
        array_free(&b);
        array_free(&out);
    }
}

static void test_empty(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_INT32};
    for (int i = 0; i < 3; i++) {
        run_case(dtypes[i], 0, 5, 3, LAYOUT_PLAIN, LAYOUT_PLAIN);
        run_case(dtypes[i], 5, 0, 3, LAYOUT_PLAIN, LAYOUT_TRANSPOSED);
        run_case(dtypes[i], 5, 4, 0, LAYOUT_PLAIN, LAYOUT_PLAIN); // all zeros
    }
}

static void test_special_values(void **state) {
    (void)state;
    Array a, b, out;
    array_make(&a, DTYPE_FLOAT16, LAYOUT_PLAIN, 2, (int64_t[]){1, 3});
    array_make(&b, DTYPE_FLOAT16, LAYOUT_TRANSPOSED, 2, (int64_t[]){3, 3});
    array_make(&out, DTYPE_FLOAT16, LAYOUT_PLAIN, 2, (int64_t[]){1, 3});
    for (int i = 0; i < 3; i++) array_set(&a, i, 1);
    const double values[9] = {INFINITY, NAN, 6e-8, 1, 1, 6e-8, 1, 1, 6e-8};
    for (int i = 0; i < 9; i++) array_set(&b, i, values[i]);
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    assert_true(isinf(array_get(&out, 0)) && isnan(array_get(&out, 1)));
    assert_true(array_get(&out, 2) == 3 * 0x1p-24);
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

// The same in a product that keeps a large device busy.
static void test_special_values_many(void **state) {
    (void)state;
    enum { M = 800, N = 640, K = 512 };
    Array a, b, out;
    array_make(&a, DTYPE_FLOAT16, LAYOUT_PLAIN, 2, (int64_t[]){M, K});
    array_make(&b, DTYPE_FLOAT16, LAYOUT_TRANSPOSED, 2, (int64_t[]){K, N});
    array_make(&out, DTYPE_FLOAT16, LAYOUT_PLAIN, 2, (int64_t[]){M, N});
    for (int i = 0; i < M * K; i++) array_set(&a, i, i / K == 700 ? 0x1p-24 : i / K == 3 ? 6e4 : 1);
    for (int i = 0; i < K * N; i++) array_set(&b, i, 1);
    array_set(&a, 5 * K + 3, INFINITY);
    array_set(&a, 6 * K, NAN);
    array_set(&b, 2 * N + 607, -INFINITY);
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    for (int i = 0; i < M * N; i++) {
        int row = i / N;
        bool negative = i % N == 607;
        double got = array_get(&out, i), want = row == 700 ? 0x1p-15 : K;
        if (row == 3 || row == 5) want = INFINITY;
        if (negative) want = -INFINITY;
        bool is_nan = row == 6 || (row == 5 && negative);
        if (is_nan ? !isnan(got) : got != want) fail_msg("element %d is %g, not %g", i, got, want);
    }
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

static void test_refuses(void **state) {
    (void)state;
    Array a, b, out;
    array_make(&a, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){2, 3});
    array_make(&b, DTYPE_INT32, LAYOUT_PLAIN, 2, (int64_t[]){3, 2});
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){2, 2});
    assert_int_equal(multiply(&a, &b, &out), STATUS_DTYPE);
    assert_non_null(strstr(error_current()->message, "matmul has no kernel on "));
    assert_non_null(strstr(error_current()->message, " for float32 by int32 giving float32"));
    array_free(&a);
    array_free(&b);
    array_free(&out);
}

// The bytes of several products, run together into one number.
static uint64_t hash_products(void) {
    static const int64_t shapes[][3] = {{1, 700, 3000},  {5, 7, 50000},   {100, 100, 100},
                                        {300, 257, 600}, {9, 1100, 64},   {130, 512, 500},
                                        {260, 40, 1024}, {1100, 1290, 40}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16, DTYPE_INT32};
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < 4 * SHAPES; i++) {
        const int64_t *shape = shapes[i / 4];
        int64_t m = shape[0], n = shape[1], k = shape[2];
        Array a, b, out;
        array_make(&a, dtypes[i % 4], (Layout)(i / 4 % 2), 2, (int64_t[]){m, k});
        array_make(&b, dtypes[i % 4], (Layout)(i % 3), 2, (int64_t[]){k, n});
        array_make(&out, dtypes[i % 4], LAYOUT_PLAIN, 2, (int64_t[]){m, n});
        array_fill_random(&a);
        array_fill_random(&b);
        if (multiply(&a, &b, &out) != STATUS_OK) return 0;
        const unsigned char *bytes = out.buffer.handle;
        for (size_t x = 0; x < (size_t)(m * n) * dtype_size(dtypes[i % 4]); x++)
            hash = (hash ^ bytes[x]) * 1099511628211u;
        array_free(&a);
        array_free(&b);
        array_free(&out);
    }
    return hash;
}

// In a process of its own: the number of threads is read once.
static uint64_t hash_with_threads(const char *threads) {
    int ends[2];
    uint64_t hash = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("TL_THREADS", threads, 1);
        hash = hash_products();
        _exit(write(ends[1], &hash, sizeof hash) != sizeof hash);
    }
    assert_int_equal(read(ends[0], &hash, sizeof hash), sizeof hash);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return hash;
}

static void test_thread_counts(void **state) {
    (void)state;
    uint64_t one = hash_with_threads("1");
    assert_true(one != 0);
    assert_true(hash_with_threads("2") == one);
    assert_true(hash_with_threads("3") == one);
    assert_true(hash_with_threads("11") == one);
}

// Rows [first, first + rows) of a by columns [column, column + columns) of b give the bits that
// they give among all others.
static void check_part(const Array *a, const Array *b, const Array *whole, const int64_t part[4]) {
    Array left = *a, right = *b, out;
    size_t size = dtype_size(a->view.dtype);
    left.view.dims[0] = part[1];
    left.view.offset += (size_t)(part[0] * left.view.strides[0]) * size;
    right.view.dims[1] = part[3];
    right.view.offset += (size_t)(part[2] * right.view.strides[1]) * size;
    left.view.buffer = &left.buffer;
    right.view.buffer = &right.buffer;
    array_make(&out, a->view.dtype, LAYOUT_PLAIN, 2, (int64_t[]){part[1], part[3]});
    assert_int_equal(multiply(&left, &right, &out), STATUS_OK);
    for (int64_t i = 0; i < part[1]; i++)
        assert_memory_equal(array_at(&out, i * part[3]),
                            array_at(whole, (part[0] + i) * whole->view.dims[1] + part[2]),
                            (size_t)part[3] * size);
    array_free(&out);
}

// With more rows than kernels for few rows take, whether they are packed, how tiles are cut and
// where a number stands in one changes nothing.
static void test_parts_of_a_product(void **state) {
    (void)state;
    if (array_device()) skip(); // a promise of the CPU's
    static const int64_t parts[][4] = {{0, 300, 0, 41},
                                       {7, 25, 0, 1100},
                                       {13, 43, 64, 130},
                                       {0, 31, 31, 1050},
                                       {100, 113, 1, 700}};
    static const int64_t depths[] = {9, 193, 385, 1024};
    for (int i = 0; i < 2 * 4 * 9; i++) {
        DType dtype = i % 2 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
        int64_t k = depths[i / 2 % 4];
        Layout la = (Layout)(i / 8 % 3), lb = (Layout)(i / 24);
        Array a, b, out;
        array_make(&a, dtype, la, 2, (int64_t[]){300, k});
        array_make(&b, dtype, lb, 2, (int64_t[]){k, 1100});
        array_make(&out, dtype, LAYOUT_PLAIN, 2, (int64_t[]){300, 1100});
        array_fill_random(&a);
        array_fill_random(&b);
        assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
        check(&a, &b, &out);
        for (int p = 0; p < 5; p++) check_part(&a, &b, &out, parts[p]);
        array_free(&a);
        array_free(&b);
        array_free(&out);
    }
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_layouts),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_sixteen_bits),
        cmocka_unit_test(test_sixteen_bits_many),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_of_odd_numbers),
        cmocka_unit_test(test_long_k),
        cmocka_unit_test(test_batched_and_broadcast),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_mixed_floats),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_special_values_many),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_parts_of_a_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest first[] = {cmocka_unit_test(test_thread_counts)};
    int failed = cmocka_run_group_tests(first, NULL, NULL);
    return failed + run_per_isa(suite);
}
