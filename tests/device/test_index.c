// GATHER, SCATTER, INDEX_PUT and NONZERO against plain loops: every dtype and layout, every dim,
// negative indexes, places named twice, quantised tables.
#include "arrays.h"
#include "device/cpu/iterate.h"
#include "device/cpu/quant.h"
#include "opened.h"

static const DType dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                               DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                               DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void make(Array *array, DType dtype, Layout layout, int rank, const int64_t *dims) {
    array_make(array, dtype, layout, rank, dims);
    array->buffer.device = device;
    for (int64_t i = 0; i < array_count(&array->view); i++)
        array_set(array, i,
                  dtype == DTYPE_BOOL ? (double)(array_random() % 2)
                                      : (double)(array_random() % 100));
}

static void make_index(Array *index, DType dtype, Layout layout, int rank, const int64_t *dims,
                       int64_t size) {
    array_make(index, dtype, layout, rank, dims);
    for (int64_t i = 0; i < array_count(&index->view); i++)
        array_set(index, i, (double)((int64_t)(array_random() % (uint64_t)(2 * size)) - size));
}

static int64_t index_at(const Array *index, int64_t at, int64_t size) {
    int64_t place = (int64_t)array_get(index, at);
    return place < 0 ? place + size : place;
}

static void split(const Array *array, int64_t at, int64_t *places) {
    for (int d = array->view.rank - 1; d >= 0; d--) {
        places[d] = at % array->view.dims[d];
        at /= array->view.dims[d];
    }
}

static int64_t join(const Array *array, const int64_t *places) {
    int64_t at = 0;
    for (int d = 0; d < array->view.rank; d++) at = at * array->view.dims[d] + places[d];
    return at;
}

// --- gather --------------------------------------------------------------------------------------

static void check_gather(DType dtype, Layout layout, Layout out_layout, int op, int dim) {
    static const int64_t dims[] = {4, 5, 6};
    bool plain = layout == LAYOUT_PLAIN && out_layout == LAYOUT_PLAIN;
    int64_t index_dims[] = {3, 4, 6}, out_dims[] = {4, 5, 6}, one[] = {plain ? 600 : 9};
    if (op == 0)
        out_dims[dim] = one[0];
    else
        memcpy(out_dims, index_dims, sizeof out_dims);
    Array in, index, out;
    make(&in, dtype, layout, 3, dims);
    make(&out, dtype, out_layout, 3, out_dims);
    DType index_dtype = layout == LAYOUT_PLAIN ? DTYPE_INT32 : DTYPE_INT64;
    make_index(&index, index_dtype, (layout + 2) % LAYOUT_COUNT, op == 0 ? 1 : 3,
               op == 0 ? one : index_dims, dims[dim]);
    KernelCall call = {.inputs = {{.view = array_view(&in)}, {.view = array_view(&index)}},
                       .outputs = {array_view(&out)},
                       .options = {.op = op, .dim = dim},
                       .op_name = "gather"};
    assert_int_equal(run_kernel(KERNEL_GATHER, &call), STATUS_OK);
    for (int64_t i = 0; i < array_count(&out.view); i++) {
        int64_t places[3];
        split(&out, i, places);
        places[dim] = index_at(&index, op == 0 ? places[dim] : i, dims[dim]);
        assert_true(array_get(&out, i) == array_get(&in, join(&in, places)));
    }
    array_free(&in);
    array_free(&index);
    array_free(&out);
}

static void test_gather(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
            for (Layout out = 0; out < LAYOUT_COUNT; out++)
                for (int op = 0; op < 2; op++)
                    for (int dim = 0; dim < 3; dim++) check_gather(dtypes[d], layout, out, op, dim);
}

static void test_gather_rows_of_quantised(void **state) {
    (void)state;
    static const DType quants[] = {DTYPE_Q4_0, DTYPE_Q8_0, DTYPE_Q6_K};
    for (int q = 0; q < 3; q++) {
        const DTypeInfo *info = &dtype_info[quants[q]];
        int64_t rows = 5, columns = 512, out_dims[] = {7, columns}, count[] = {7};
        size_t bytes = (size_t)(rows * columns / info->block_elements * info->block_bytes);
        Array table = {
            .buffer = {.handle = malloc(bytes)},
            .view = {
                .dtype = quants[q], .rank = 2, .dims = {rows, columns}, .strides = {columns, 1}}};
        unsigned char *blocks = table.buffer.handle;
        for (size_t i = 0; i < bytes; i++) blocks[i] = (unsigned char)(i * 31 % 59);
        float *numbers = malloc((size_t)(rows * columns) * sizeof(float));
        quant_dequantize(quants[q], blocks, numbers, rows * columns);
        Array index, out;
        make_index(&index, DTYPE_INT64, LAYOUT_STEPPED, 1, count, rows);
        make(&out, DTYPE_FLOAT32, LAYOUT_STEPPED, 2, out_dims);
        KernelCall call = {.inputs = {{.view = array_view(&table)}, {.view = array_view(&index)}},
                           .outputs = {array_view(&out)},
                           .op_name = "embedding"};
        assert_int_equal(run_kernel(KERNEL_GATHER, &call), STATUS_OK);
        for (int64_t i = 0; i < 7 * columns; i++) {
            int64_t row = index_at(&index, i / columns, rows);
            assert_true(array_get(&out, i) == numbers[row * columns + i % columns]);
        }
        free(numbers);
        array_free(&table);
        array_free(&index);
        array_free(&out);
    }
}

static void test_index_out_of_range(void **state) {
    (void)state;
    int64_t dims[] = {4}, one[] = {1};
    Array in, index, out;
    make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, dims);
    make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 1, one);
    array_make(&index, DTYPE_INT64, LAYOUT_PLAIN, 1, one);
    array_set(&index, 0, 4);
    KernelCall call = {.inputs = {{.view = array_view(&in)}, {.view = array_view(&index)}},
                       .outputs = {array_view(&out)},
                       .op_name = "take"};
    assert_int_equal(run_kernel(KERNEL_GATHER, &call), STATUS_INDEX);
    assert_string_equal(error_current()->message,
                        "take: an index is out of range for a dimension of size 4");
    array_free(&in);
    array_free(&index);
    array_free(&out);
}

// --- scatter -------------------------------------------------------------------------------------

static double rounded_sum(DType dtype, double a, double b) {
    switch (dtype) {
    case DTYPE_BOOL: return a != 0 || b != 0;
    case DTYPE_INT8: return (int8_t)(int64_t)(a + b);
    case DTYPE_UINT8: return (uint8_t)(int64_t)(a + b);
    case DTYPE_INT16: return (int16_t)(int64_t)(a + b);
    default: return a + b; // exact: sums stay below 2048
    }
}

static void run_scatter(Array *out, Array *source, Array *index, KernelOptions options) {
    KernelCall call = {.inputs = {{.view = array_view(source)}, {.view = array_view(index)}},
                       .outputs = {array_view(out)},
                       .options = options,
                       .op_name = "scatter"};
    assert_int_equal(run_kernel(KERNEL_SCATTER, &call), STATUS_OK);
}

static void check_scatter(DType dtype, Layout layout, int op, bool slices, int dim) {
    static const int64_t dims[] = {4, 5, 6};
    int64_t index_dims[] = {3, 5, 6}, source_dims[] = {4, 5, 6}, length[] = {9};
    if (slices) source_dims[dim] = length[0];
    Array out, source, index;
    make(&out, dtype, layout, 3, dims);
    make(&source, dtype, (layout + 1) % LAYOUT_COUNT, 3, source_dims);
    make_index(&index, DTYPE_INT64, (layout + 2) % LAYOUT_COUNT, slices ? 1 : 3,
               slices ? length : index_dims, dims[dim]);
    double expected[4 * 5 * 6];
    for (int64_t i = 0; i < 4 * 5 * 6; i++) expected[i] = array_get(&out, i);
    const Array *walked = slices ? &source : &index;
    for (int64_t i = 0; i < array_count(&walked->view); i++) {
        int64_t places[3];
        split(walked, i, places);
        double value = array_get(&source, join(&source, places));
        places[dim] = index_at(&index, slices ? places[dim] : i, dims[dim]);
        double *target = &expected[join(&out, places)];
        *target = op == 1 ? rounded_sum(dtype, *target, value) : value;
    }
    run_scatter(&out, &source, &index, (KernelOptions){.op = op, .dim = dim, .integers = {slices}});
    for (int64_t i = 0; i < 4 * 5 * 6; i++) {
        double exact = expected[i];
        if (dtype == DTYPE_BFLOAT16) exact = bfloat_to_float(bfloat_from_float((float)exact));
        assert_true(array_get(&out, i) == exact);
    }
    array_free(&out);
    array_free(&source);
    array_free(&index);
}

static void test_scatter(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int op = 0; op < 2; op++)
                for (int slices = 0; slices < 2; slices++)
                    for (int dim = 0; dim < 3; dim++)
                        check_scatter(dtypes[d], layout, op, slices, dim);
}

// Lists that devices sort: most indexes are the same few, so that sums go on for long.
static void check_long_lists(DType dtype, Layout layout, int op, bool slices, int dim) {
    enum { PLACES = 40, LENGTH = 1000, BESIDE = 8 };
    int64_t dims[] = {BESIDE, BESIDE}, source_dims[] = {BESIDE, BESIDE}, length[] = {LENGTH};
    dims[dim] = PLACES;
    source_dims[dim] = LENGTH;
    Array out, source, index;
    make(&out, dtype, layout, 2, dims);
    make(&source, dtype, layout, 2, source_dims);
    make_index(&index, DTYPE_INT64, (layout + 2) % LAYOUT_COUNT, slices ? 1 : 2,
               slices ? length : source_dims, PLACES);
    for (int64_t i = 0; i < array_count(&index.view); i++)
        if (i % 3 != 0) array_set(&index, i, (double)(i % 2));
    double expected[PLACES * BESIDE];
    for (int64_t i = 0; i < PLACES * BESIDE; i++) expected[i] = array_get(&out, i);
    for (int64_t i = 0; i < array_count(&source.view); i++) {
        int64_t places[2];
        split(&source, i, places);
        double value = array_get(&source, i);
        places[dim] = index_at(&index, slices ? places[dim] : i, PLACES);
        double *target = &expected[join(&out, places)];
        *target = op == 1 ? rounded_sum(dtype, *target, value) : value;
    }
    run_scatter(&out, &source, &index, (KernelOptions){.op = op, .dim = dim, .integers = {slices}});
    double unit = dtype == DTYPE_BFLOAT16 ? 0x1p-8 : (dtype == DTYPE_FLOAT16 ? 0x1p-11 : 0);
    for (int64_t i = 0; i < PLACES * BESIDE; i++)
        assert_true(fabs(array_get(&out, i) - expected[i]) <= unit * expected[i]);
    array_free(&out);
    array_free(&source);
    array_free(&index);
}

static void test_scatter_of_long_lists(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (int op = 0; op < 2; op++)
            for (int slices = 0; slices < 2; slices++)
                for (int dim = 0; dim < 2; dim++)
                    check_long_lists(dtypes[d], (Layout)((d + dim) % LAYOUT_COUNT), op, slices,
                                     dim);
    for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
        for (int slices = 0; slices < 2; slices++)
            check_long_lists(DTYPE_FLOAT32, layout, 1, slices, 0);
}

// More lists than are sorted at a time: each adds its numbers up in as many places as there are
// lists.
static void test_scatter_of_many_lists(void **state) {
    (void)state;
    enum { LISTS = 5, LENGTH = 1 << 20 };
    int64_t dims[] = {LISTS, LISTS}, source_dims[] = {LISTS, LENGTH};
    Array out, source, index;
    make(&out, DTYPE_INT32, LAYOUT_PLAIN, 2, dims);
    array_make(&source, DTYPE_INT32, LAYOUT_PLAIN, 2, source_dims);
    array_make(&index, DTYPE_UINT8, LAYOUT_PLAIN, 2, source_dims);
    double expected[LISTS * LISTS];
    for (int64_t i = 0; i < LISTS * LISTS; i++) expected[i] = array_get(&out, i);
    for (int64_t i = 0; i < LISTS * LENGTH; i++) {
        int64_t list = i / LENGTH, place = i * 7 % 11 % LISTS;
        ((int32_t *)source.buffer.handle)[i] = (int32_t)(i % 3 + list);
        ((uint8_t *)index.buffer.handle)[i] = (uint8_t)place;
        expected[list * LISTS + place] += (double)(i % 3 + list);
    }
    KernelCall call = {.inputs = {{.view = array_view(&source)}, {.view = array_view(&index)}},
                       .outputs = {array_view(&out)},
                       .options = {.op = 1, .dim = 1},
                       .op_name = "scatter_add"};
    assert_int_equal(run_kernel(KERNEL_SCATTER, &call), STATUS_OK);
    for (int64_t i = 0; i < LISTS * LISTS; i++) assert_true(array_get(&out, i) == expected[i]);
    array_free(&out);
    array_free(&source);
    array_free(&index);
}

// Four thousand ones added to one float16: 2048 + 1 would stay 2048 if every sum were rounded.
static void test_scatter_add_keeps_small_terms(void **state) {
    (void)state;
    int64_t one[] = {1}, many[] = {4000};
    Array out, source, index;
    make(&out, DTYPE_FLOAT16, LAYOUT_PLAIN, 1, one);
    array_set(&out, 0, 0);
    make(&source, DTYPE_FLOAT16, LAYOUT_PLAIN, 1, many);
    make_index(&index, DTYPE_INT64, LAYOUT_PLAIN, 1, many, 1);
    for (int64_t i = 0; i < many[0]; i++) array_set(&source, i, 1);
    KernelCall call = {.inputs = {{.view = array_view(&source)}, {.view = array_view(&index)}},
                       .outputs = {array_view(&out)},
                       .options = {.op = 1},
                       .op_name = "scatter_add"};
    assert_int_equal(run_kernel(KERNEL_SCATTER, &call), STATUS_OK);
    assert_true(array_get(&out, 0) == 4000);
    array_free(&out);
    array_free(&source);
    array_free(&index);
}

// --- index_put and nonzero -----------------------------------------------------------------------

static void check_put(DType dtype, Layout layout, int source_kind) {
    static const int64_t dims[] = {3, 4, 700}, last[] = {700}, middle[] = {4, 1};
    Array out, mask, source;
    make(&out, dtype, layout, 3, dims);
    bool narrow = layout == LAYOUT_REVERSED; // a mask that is broadcast
    make(&mask, DTYPE_BOOL, (layout + 1) % LAYOUT_COUNT, narrow ? 2 : 3, narrow ? middle : dims);
    make(&source, source_kind == 2 ? DTYPE_INT32 : dtype, (layout + 2) % LAYOUT_COUNT, 1, last);
    Array before;
    make(&before, dtype, LAYOUT_PLAIN, 3, dims);
    int64_t count = array_count(&out.view);
    for (int64_t i = 0; i < count; i++) array_set(&before, i, array_get(&out, i));
    KernelCall call = {.inputs = {{.view = source_kind ? array_view(&source) : NULL,
                                   .scalar = {.dtype = DTYPE_INT64, .as.i = 1}},
                                  {.view = array_view(&mask)}},
                       .outputs = {array_view(&out)},
                       .op_name = "index_put"};
    assert_int_equal(run_kernel(KERNEL_INDEX_PUT, &call), STATUS_OK);
    for (int64_t i = 0; i < count; i++) {
        bool put = array_get(&mask, narrow ? i / 700 % 4 : i) != 0;
        double value = source_kind ? array_get(&source, i % 700) : 1;
        if (dtype == DTYPE_BOOL) value = value != 0;
        assert_true(array_get(&out, i) == (put ? value : array_get(&before, i)));
    }
    array_free(&out);
    array_free(&mask);
    array_free(&source);
    array_free(&before);
}

static void test_index_put(void **state) {
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int source = 0; source < 3; source++) check_put(dtypes[d], layout, source);
}

static void check_nonzero(DType dtype, Layout layout, int rank, const int64_t *dims) {
    Array in, out;
    make(&in, dtype, layout, rank, dims);
    int64_t total = array_count(&in.view), found = 0;
    for (int64_t i = 0; i < total; i++) {
        // Half a unit is not zero, nor is NaN.
        static const double values[] = {0, 0.5, -0.0, NAN, 3};
        bool floating = dtype_is_float(dtype);
        array_set(&in, i, floating ? values[array_random() % 5] : (double)(array_random() % 2));
        found += array_get(&in, i) != 0;
    }
    int64_t out_dims[] = {found, rank};
    make(&out, DTYPE_INT64, (layout + 1) % LAYOUT_COUNT, 2, out_dims);
    KernelCall call = {
        .inputs = {{.view = array_view(&in)}}, .outputs = {array_view(&out)}, .op_name = "nonzero"};
    assert_int_equal(run_kernel(KERNEL_NONZERO, &call), STATUS_OK);
    int64_t row = 0;
    for (int64_t i = 0; i < total; i++) {
        if (array_get(&in, i) == 0) continue;
        int64_t places[8];
        split(&in, i, places);
        for (int d = 0; d < rank; d++)
            assert_true(array_get(&out, row * rank + d) == (double)places[d]);
        row++;
    }
    array_free(&in);
    array_free(&out);
}

static void test_nonzero(void **state) {
    (void)state;
    static const int64_t dims[] = {3, 5, 7}, long_dims[] = {200, 700}, empty[] = {0, 3};
    for (int d = 0; d < DTYPES; d++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++) {
            check_nonzero(dtypes[d], layout, 3, dims);
            check_nonzero(dtypes[d], layout, 0, NULL);
            check_nonzero(dtypes[d], layout, 2, empty);
        }
    check_nonzero(DTYPE_FLOAT32, LAYOUT_PLAIN, 2, long_dims);
    check_nonzero(DTYPE_FLOAT32, LAYOUT_TRANSPOSED, 2, long_dims);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_rows_of_quantised),
        cmocka_unit_test(test_index_out_of_range),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_of_long_lists),
        cmocka_unit_test(test_scatter_of_many_lists),
        cmocka_unit_test(test_scatter_add_keeps_small_terms),
        cmocka_unit_test(test_index_put),
        cmocka_unit_test(test_nonzero),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

int main(void) {
    return run_per_isa(suite);
}
