// SORT against qsort of places: order, stability, NaN, first few, every dtype and layout.
#include "arrays.h"
#include "device/cpu/iterate.h"
#include "opened.h"

static const DType dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                               DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                               DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool comes_before(double a, double b, bool descending) {
    if (a != a || b != b) return a == a && b != b;
    return descending ? a > b : a < b;
}

static void fill(Array *in) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, NAN};
    bool floating = dtype_is_float(in->view.dtype);
    for (int64_t i = 0; i < array_count(&in->view); i++) {
        uint64_t random = array_random();
        if (in->view.dtype == DTYPE_BOOL)
            array_set(in, i, (double)(random % 2));
        else if (floating && random % 7 == 0)
            array_set(in, i, specials[random / 7 % 6]);
        else // few values, so that many tie
            array_set(in, i, (double)(random % 41) - 20 + (floating ? 0.5 : 0));
    }
}

typedef struct Case {
    DType dtype;
    Layout layout;
    int64_t rows, length, wanted;
    bool descending;
    bool plain; // outputs lie contiguous
} Case;

// The row whose places are compared.
static struct {
    const Array *in;
    int64_t first;
    bool descending;
} ranked;

static int compare_places(const void *a, const void *b) {
    int64_t place = *(const int64_t *)a, other = *(const int64_t *)b;
    double x = array_get(ranked.in, ranked.first + place);
    double y = array_get(ranked.in, ranked.first + other);
    if (comes_before(x, y, ranked.descending)) return -1;
    if (comes_before(y, x, ranked.descending)) return 1;
    return place < other ? -1 : 1;
}

static void check_row(const Case *c, const Array *in, const Array *values, const Array *places,
                      int64_t row) {
    double *expected = malloc((size_t)c->length * sizeof *expected);
    int64_t *order = malloc((size_t)c->length * sizeof *order);
    for (int64_t i = 0; i < c->length; i++) order[i] = i;
    ranked.in = in;
    ranked.first = row * c->length;
    ranked.descending = c->descending;
    qsort(order, (size_t)c->length, sizeof *order, compare_places);
    for (int64_t i = 0; i < c->length; i++) expected[i] = array_get(in, row * c->length + order[i]);
    for (int64_t i = 0; i < c->wanted; i++) {
        double got = array_get(values, row * c->wanted + i);
        assert_true(got == expected[i] || (got != got && expected[i] != expected[i]));
        assert_true(signbit(got) == signbit(expected[i]) || got != got); // -0 keeps its sign
        assert_int_equal((int64_t)array_get(places, row * c->wanted + i), order[i]);
    }
    free(expected);
    free(order);
}

static void check(const Case *c) {
    int64_t in_dims[] = {c->rows, c->length}, out_dims[] = {c->rows, c->wanted};
    Array in, values, places;
    array_make(&in, c->dtype, c->layout, 2, in_dims);
    fill(&in);
    Layout next = (c->layout + 1) % LAYOUT_COUNT, other = (c->layout + 2) % LAYOUT_COUNT;
    array_make(&values, c->dtype, c->plain ? LAYOUT_PLAIN : next, 2, out_dims);
    array_make(&places, DTYPE_INT64, c->plain ? LAYOUT_PLAIN : other, 2, out_dims);
    values.buffer.device = device;
    KernelCall call = {.inputs = {{.view = array_view(&in)}},
                       .outputs = {array_view(&values), array_view(&places)},
                       .options = {.count = (int)c->wanted, .flag = c->descending},
                       .op_name = "sort"};
    assert_int_equal(run_kernel(KERNEL_SORT, &call), STATUS_OK);
    for (int64_t row = 0; row < c->rows; row++) check_row(c, &in, &values, &places, row);
    array_free(&in);
    array_free(&values);
    array_free(&places);
}

static void test_sort(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},    {20, 20},   {300, 300}, {300, 1},
                                       {300, 18}, {300, 100}, {1000, 50}, {0, 0}};
    for (int d = 0; d < DTYPES; d++)
        for (Layout layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int s = 0; s < 8; s++)
                for (int way = 0; way < (layout == LAYOUT_PLAIN ? 4 : 2); way++)
                    check(
                        &(Case){dtypes[d], layout, 3, sizes[s][0], sizes[s][1], way % 2, way / 2});
    for (int plain = 0; plain < 2; plain++) {
        check(&(Case){DTYPE_FLOAT32, LAYOUT_PLAIN, 200, 60, 60, false, plain});
        check(&(Case){DTYPE_FLOAT32, LAYOUT_PLAIN, 1, 20000, 40, true, plain});
    }
}

// Rows that devices sort in several passes, and the first few of those.
static void test_long_rows(void **state) {
    (void)state;
    static const DType kinds[] = {DTYPE_UINT8,    DTYPE_INT16,   DTYPE_INT64,
                                  DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    for (int d = 0; d < 6; d++) {
        for (int plain = 0; plain < 2; plain++) {
            check(&(Case){kinds[d], LAYOUT_PLAIN, 3, 9001, 9001, d % 2 == plain, plain});
            check(&(Case){kinds[d], LAYOUT_STEPPED, 2, 4097, 2000, d % 2 != plain, plain});
            check(&(Case){kinds[d], LAYOUT_PLAIN, 2, 9001, 33, d % 2 != plain, plain});
        }
        // Values, or places, that lie side by side may be worked in.
        check(&(Case){kinds[d], LAYOUT_REVERSED, 2, 5000, 5000, d % 2 == 0, false});
        check(&(Case){kinds[d], LAYOUT_STEPPED, 2, 5000, 5000, d % 2 == 0, false});
    }
    for (int plain = 0; plain < 2; plain++) {
        check(&(Case){DTYPE_FLOAT32, LAYOUT_PLAIN, 1, 300000, 300000, false, plain});
        check(&(Case){DTYPE_FLOAT32, LAYOUT_PLAIN, 5000, 3, 3, true, plain});
    }
}

static void test_extremes_of_int64(void **state) {
    (void)state;
    static const int64_t given[] = {0, INT64_MAX, INT64_MIN, -1, INT64_MAX - 1};
    static const int64_t sorted[] = {INT64_MIN, -1, 0, INT64_MAX - 1, INT64_MAX};
    int64_t dims[] = {5};
    for (int descending = 0; descending < 2; descending++) {
        Array in, values, places;
        array_make(&in, DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
        array_make(&values, DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
        array_make(&places, DTYPE_INT64, LAYOUT_PLAIN, 1, dims);
        memcpy(in.buffer.handle, given, sizeof given);
        values.buffer.device = device;
        KernelCall call = {.inputs = {{.view = array_view(&in)}},
                           .outputs = {array_view(&values), array_view(&places)},
                           .options = {.count = 5, .flag = descending},
                           .op_name = "sort"};
        assert_int_equal(run_kernel(KERNEL_SORT, &call), STATUS_OK);
        const int64_t *got = values.buffer.handle;
        for (int i = 0; i < 5; i++) assert_true(got[i] == sorted[descending ? 4 - i : i]);
        array_free(&in);
        array_free(&values);
        array_free(&places);
    }
}

static void test_one_number(void **state) {
    (void)state;
    Array in, values, places;
    array_make(&in, DTYPE_FLOAT32, LAYOUT_PLAIN, 0, NULL);
    array_make(&values, DTYPE_FLOAT32, LAYOUT_PLAIN, 0, NULL);
    array_make(&places, DTYPE_INT64, LAYOUT_PLAIN, 0, NULL);
    array_set(&in, 0, 3);
    values.buffer.device = device;
    KernelCall call = {.inputs = {{.view = array_view(&in)}},
                       .outputs = {array_view(&values), array_view(&places)},
                       .options = {.count = 1},
                       .op_name = "sort"};
    assert_int_equal(run_kernel(KERNEL_SORT, &call), STATUS_OK);
    assert_true(array_get(&values, 0) == 3 && array_get(&places, 0) == 0);
    array_free(&in);
    array_free(&values);
    array_free(&places);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_extremes_of_int64),
        cmocka_unit_test(test_one_number),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

int main(void) {
    return run_per_isa(suite);
}
