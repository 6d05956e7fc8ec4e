// FILL, COPY and ARANGE against plain loops: every pair of dtypes, awkward layouts, quantised
// sources, sizes on both sides of every tile and piece; bytes around the output stay as they were.
#include "arrays.h"
#include "device/cpu/iterate.h"
#include "device/cpu/quant.h"

static const DType plain_dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                                     DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                     DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { PLAIN_DTYPES = sizeof plain_dtypes / sizeof *plain_dtypes };

static size_t array_bytes(const Array *array, Layout layout) {
    int64_t count = 1, step = layout == LAYOUT_STEPPED ? 2 : 1;
    for (int d = 0; d < array->view.rank; d++) count *= array->view.dims[d] * step;
    return (size_t)(count * step + 1) * dtype_size(array->view.dtype);
}

// Everything that is not an element must still be 0xFF: array_make filled it so.
static void check_surroundings(const Array *array, Layout layout) {
    size_t bytes = array_bytes(array, layout), size = dtype_size(array->view.dtype);
    unsigned char *copy = malloc(bytes);
    memcpy(copy, array->buffer.handle, bytes);
    for (int64_t i = 0; i < array_count(&array->view); i++)
        memset(copy + (array_at(array, i) - (char *)array->buffer.handle), 0xFF, size);
    for (size_t i = 0; i < bytes; i++) assert_int_equal(copy[i], 0xFF);
    free(copy);
}

static double saturated(double value, double low, double high) {
    if (value != value) return 0;
    value = trunc(value);
    return value < low ? low : (value > high ? high : value);
}

// What a value of one dtype becomes in another, for values that are small enough to be exact.
static double expected_cast(double value, DType from, DType to) {
    bool whole = !dtype_is_float(from);
    switch (to) {
    case DTYPE_BOOL: return value != 0;
    case DTYPE_UINT8: return whole ? (uint8_t)(int64_t)value : saturated(value, 0, 255);
    case DTYPE_INT8: return whole ? (int8_t)(int64_t)value : saturated(value, -128, 127);
    case DTYPE_INT16: return whole ? (int16_t)(int64_t)value : saturated(value, -32768, 32767);
    case DTYPE_INT32: return saturated(value, -2147483648.0, 2147483647.0);
    case DTYPE_INT64: return saturated(value, -0x1p63, 0x1p63);
    case DTYPE_FLOAT16: return half_to_float(half_from_float((float)value));
    case DTYPE_BFLOAT16: return bfloat_to_float(bfloat_from_float((float)value));
    case DTYPE_FLOAT32: return (double)(float)value;
    default: return value;
    }
}

static void run_copy(Array *out, Array *in) {
    KernelCall call = {.kernel = KERNEL_COPY,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = array_view(in)}},
                       .outputs = {array_view(out)},
                       .op_name = "copy"};
    assert_int_equal(run_kernel(KERNEL_COPY, &call), STATUS_OK);
}

static void set_copied_value(Array *in, int64_t index) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 1e30, -1e30, 0.5, -0.5, 300};
    bool floating = dtype_is_float(in->view.dtype);
    if (in->view.dtype == DTYPE_BOOL)
        array_set(in, index, (double)(index % 3 == 0));
    else if (floating && index < 9)
        array_set(in, index, specials[index]);
    else
        array_set(in, index,
                  floating ? array_random_real() * 100 : (double)(index * 37 % 251) - 80);
}

static void check_copy(DType from, DType to, Layout in_layout, Layout out_layout, int rank,
                       const int64_t *dims) {
    Array in, out;
    array_make(&in, from, in_layout, rank, dims);
    array_make(&out, to, out_layout, rank, dims);
    for (int64_t i = 0; i < array_count(&in.view); i++) set_copied_value(&in, i);
    run_copy(&out, &in);
    for (int64_t i = 0; i < array_count(&in.view); i++) {
        double expected = expected_cast(array_get(&in, i), from, to), got = array_get(&out, i);
        if (!(got == expected || (got != got && expected != expected)))
            print_error("%s to %s, element %lld: %g becomes %g, not %g\n", dtype_name(from),
                        dtype_name(to), (long long)i, array_get(&in, i), got, expected);
        assert_true(got == expected || (got != got && expected != expected));
    }
    check_surroundings(&out, out_layout);
    array_free(&in);
    array_free(&out);
}

static void test_every_pair_and_layout(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 5, 7}, row[] = {600};
    for (int from = 0; from < PLAIN_DTYPES; from++) {
        for (int to = 0; to < PLAIN_DTYPES; to++) {
            for (Layout in = 0; in < LAYOUT_COUNT; in++)
                for (Layout out = 0; out < LAYOUT_COUNT; out++)
                    check_copy(plain_dtypes[from], plain_dtypes[to], in, out, 3, dims);
            check_copy(plain_dtypes[from], plain_dtypes[to], LAYOUT_PLAIN, LAYOUT_PLAIN, 1, row);
            check_copy(plain_dtypes[from], plain_dtypes[to], LAYOUT_PLAIN, LAYOUT_PLAIN, 0, NULL);
        }
    }
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 200};
    static const DType by_size[] = {DTYPE_INT8, DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < 9; i++) {
            for (int j = 0; j < 9; j++) {
                int64_t dims[] = {2, sizes[i], sizes[j]};
                for (Layout in = 0; in < LAYOUT_COUNT; in++)
                    check_copy(by_size[s], by_size[s], in, LAYOUT_PLAIN, 3, dims);
                check_copy(by_size[s], by_size[s], LAYOUT_PLAIN, LAYOUT_TRANSPOSED, 3, dims);
            }
        }
    }
    static const int64_t large[][2] = {{3, 70000}, {70000, 3}, {900, 300}};
    for (int i = 0; i < 3; i++)
        for (Layout in = 0; in < LAYOUT_COUNT; in++) {
            check_copy(DTYPE_FLOAT32, DTYPE_FLOAT32, in, LAYOUT_PLAIN, 2, large[i]);
            check_copy(DTYPE_FLOAT16, DTYPE_FLOAT32, in, LAYOUT_STEPPED, 2, large[i]);
        }
}

// [2, 1, 3] repeated to [2, 4, 3], with permuted dims and seven of them.
static void test_broadcast_and_rank(void **state) {
    (void)state;
    static const int64_t dims[] = {2, 4, 3}, small[] = {2, 1, 3};
    for (int dtype = 0; dtype < PLAIN_DTYPES; dtype++) {
        Array in, out;
        array_make(&in, plain_dtypes[dtype], LAYOUT_PLAIN, 3, small);
        array_make(&out, plain_dtypes[dtype], LAYOUT_PLAIN, 3, dims);
        for (int64_t i = 0; i < 6; i++) array_set(&in, i, (double)(i % 2));
        in.view.dims[1] = 4;
        in.view.strides[1] = 0;
        run_copy(&out, &in);
        for (int64_t i = 0; i < 24; i++)
            assert_true(array_get(&out, i) == (double)((i / 12 * 3 + i % 3) % 2));
        array_free(&in);
        array_free(&out);
    }
    static const int64_t many[] = {2, 3, 1, 2, 2, 3, 2, 2};
    for (Layout in = 0; in < LAYOUT_COUNT; in++)
        check_copy(DTYPE_INT32, DTYPE_FLOAT64, in, LAYOUT_STEPPED, 8, many);
}

// Numbers whose two-step conversion would round twice or lose bits.
static void test_exact_integers(void **state) {
    (void)state;
    static const int64_t dims[] = {4};
    static const int64_t values[] = {INT64_MAX, INT64_MIN, (1LL << 53) + 1, 16777217};
    Array in, out;
    array_make(&in, DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
    memcpy(in.buffer.handle, values, sizeof values);
    array_make(&out, DTYPE_INT64, LAYOUT_STEPPED, 1, dims);
    run_copy(&out, &in);
    for (int64_t i = 0; i < 4; i++) assert_memory_equal(array_at(&out, i), &values[i], 8);
    array_free(&out);
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    run_copy(&out, &in);
    for (int64_t i = 0; i < 4; i++) assert_true(array_get(&out, i) == (double)(float)values[i]);
    array_free(&out);
    array_free(&in);
}

// Numbers next to and in the middle between two neighbours of 16 bits, small, large and beyond.
static void check_rounding(DType to, Layout layout) {
    enum { EACH = 3 };
    const int64_t dims[1] = {65536 * EACH};
    Array in, out;
    array_make(&in, DTYPE_FLOAT32, layout, 1, dims);
    array_make(&out, to, layout, 1, dims);
    for (int64_t i = 0; i < dims[0]; i++) {
        uint16_t bits = (uint16_t)(i / EACH);
        float low = to == DTYPE_FLOAT16 ? half_to_float(bits) : bfloat_to_float(bits);
        float high = to == DTYPE_FLOAT16 ? half_to_float(bits + 1) : bfloat_to_float(bits + 1);
        float middle = (float)(((double)low + (double)high) / 2);
        // Devices may take float32 below its normal numbers for 0.
        if (!isfinite(low) || !isfinite(high) || fabsf(low) < 0x1p-125f) middle = low;
        if (!isnormal(middle) && isfinite(middle)) middle = 0;
        array_set(&in, i,
                  (double)nextafterf(middle, i % EACH == 0   ? -INFINITY
                                             : i % EACH == 1 ? middle
                                                             : INFINITY));
    }
    run_copy(&out, &in);
    for (int64_t i = 0; i < dims[0]; i++) {
        float value = (float)array_get(&in, i);
        double expected = to == DTYPE_FLOAT16 ? half_to_float(half_from_float(value))
                                              : bfloat_to_float(bfloat_from_float(value));
        double got = array_get(&out, i);
        if (!(got == expected || (got != got && expected != expected)))
            fail_msg("%a becomes %a, expected %a", (double)value, got, expected);
    }
    array_free(&in);
    array_free(&out);
}

static void test_rounding(void **state) {
    (void)state;
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        check_rounding(DTYPE_FLOAT16, (Layout)layout);
        check_rounding(DTYPE_BFLOAT16, (Layout)layout);
    }
}

// --- quantised -----------------------------------------------------------------------------------

static void check_quantised(DType quant, DType to, bool transposed) {
    const DTypeInfo *info = &dtype_info[quant];
    int64_t rows = 3, columns = info->block_elements * 3;
    size_t bytes = (size_t)(rows * columns / info->block_elements * info->block_bytes);
    unsigned char *blocks = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) blocks[i] = (unsigned char)(i * 29 % 60); // finite scales
    float *numbers = malloc((size_t)(rows * columns) * sizeof(float));
    quant_dequantize(quant, blocks, numbers, rows * columns);
    Array in = {
        .buffer = {.handle = blocks},
        .view = {.dtype = quant, .rank = 2, .dims = {rows, columns}, .strides = {columns, 1}}};
    if (transposed)
        in.view = (TensorView){
            .dtype = quant, .rank = 2, .dims = {columns, rows}, .strides = {1, columns}};
    Array out;
    array_make(&out, to, LAYOUT_STEPPED, 2, in.view.dims);
    run_copy(&out, &in);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double expected = expected_cast(numbers[r * columns + c], DTYPE_FLOAT32, to);
            assert_true(array_get(&out, transposed ? c * rows + r : r * columns + c) == expected);
        }
    check_surroundings(&out, LAYOUT_STEPPED);
    free(numbers);
    array_free(&in);
    array_free(&out);
}

static void test_quantised(void **state) {
    (void)state;
    static const DType quants[] = {DTYPE_Q4_0, DTYPE_Q8_0, DTYPE_Q6_K};
    static const DType targets[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64,
                                    DTYPE_INT32};
    for (int q = 0; q < 3; q++)
        for (int t = 0; t < 5; t++)
            for (int transposed = 0; transposed < 2; transposed++)
                check_quantised(quants[q], targets[t], transposed);
    Array in, out = {.view = {.dtype = DTYPE_Q8_0, .rank = 1, .dims = {32}, .strides = {1}}};
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, out.view.dims);
    KernelCall call = {
        .inputs = {{.view = array_view(&in)}}, .outputs = {array_view(&out)}, .op_name = "copy"};
    assert_int_equal(run_kernel(KERNEL_COPY, &call), STATUS_DTYPE);
    assert_string_equal(error_current()->message, "copy cannot write q8_0 from float32");
    array_free(&in);
}

// --- fill and arange -----------------------------------------------------------------------------

static void test_fill(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{3, 5, 7}, {1, 1, 40000}, {2, 0, 3}};
    static const Scalar scalars[] = {
        {.dtype = DTYPE_INT64, .as.i = 0},        {.dtype = DTYPE_INT64, .as.i = 77},
        {.dtype = DTYPE_BOOL, .as.i = 1},         {.dtype = DTYPE_FLOAT64, .as.f = 2.75},
        {.dtype = DTYPE_FLOAT64, .as.f = -1e300}, {.dtype = DTYPE_FLOAT64, .as.f = NAN}};
    for (int dtype = 0; dtype < PLAIN_DTYPES; dtype++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int shape = 0; shape < 3; shape++)
                for (int s = 0; s < 6; s++) {
                    Array out;
                    array_make(&out, plain_dtypes[dtype], layout, 3, shapes[shape]);
                    KernelCall call = {.inputs = {{.scalar = scalars[s]}},
                                       .outputs = {array_view(&out)},
                                       .op_name = "full"};
                    assert_int_equal(run_kernel(KERNEL_FILL, &call), STATUS_OK);
                    bool whole = scalars[s].dtype != DTYPE_FLOAT64;
                    double value = whole ? (double)scalars[s].as.i : scalars[s].as.f;
                    double expected = expected_cast(value, whole ? DTYPE_INT64 : DTYPE_FLOAT64,
                                                    plain_dtypes[dtype]);
                    for (int64_t i = 0; i < array_count(&out.view); i++) {
                        double got = array_get(&out, i);
                        assert_true(got == expected || (got != got && expected != expected));
                    }
                    check_surroundings(&out, layout);
                    array_free(&out);
                }
}

static void test_arange(void **state) {
    (void)state;
    static const int64_t counts[][1] = {{0}, {1}, {511}, {40001}};
    for (int dtype = 1; dtype < PLAIN_DTYPES; dtype++)
        for (int c = 0; c < 4; c++) {
            Array out;
            DType to = plain_dtypes[dtype];
            array_make(&out, to, LAYOUT_PLAIN, 1, counts[c]);
            KernelCall call = {.outputs = {array_view(&out)}, .op_name = "arange"};
            call.options.scalars[0] = 1.5;
            call.options.scalars[1] = 0.1;
            call.options.integers[0] = 100;
            call.options.integers[1] = -3;
            assert_int_equal(run_kernel(KERNEL_ARANGE, &call), STATUS_OK);
            for (int64_t i = 0; i < counts[c][0]; i++) {
                double expected = dtype_is_float(to)
                                      ? expected_cast(1.5 + (double)i * 0.1, DTYPE_FLOAT64, to)
                                      : expected_cast((double)(100 - 3 * i), DTYPE_INT64, to);
                double got = array_get(&out, i);
                // A double that becomes a 16-bit float by way of float32 may round twice in the
                // loop.
                double slack = dtype_size(to) == 2 && dtype_is_float(to) ? expected / 128 : 0;
                assert_true(fabs(got - expected) <= slack);
            }
            check_surroundings(&out, LAYOUT_PLAIN);
            array_free(&out);
        }
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_and_layout),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_broadcast_and_rank),
        cmocka_unit_test(test_exact_integers),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_quantised),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_arange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
