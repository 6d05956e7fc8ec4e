// ATTENTION and ROPE against plain float64 loops, with every option.
#include "tests/device/arrays.h"

typedef struct Case {
    DType dtype, cache_dtype; // of q and out; of k and v
    int64_t batch, queries, keys, key_heads, group, width, value_width;
    Layout layout;
    bool causal;
    DType mask; // DTYPE_COUNT: none
} Case;

static double rounding(DType dtype) {
    return dtype == DTYPE_FLOAT16    ? 0x1p-10
           : dtype == DTYPE_BFLOAT16 ? 0x1p-7
           : dtype == DTYPE_FLOAT64  ? 1e-13
                                     : 1e-5;
}

// The numbers of an array of rank 4.
typedef struct Numbers {
    const int64_t *dims;
    double *items;
} Numbers;

static Numbers numbers_of(const Array *array) {
    return (Numbers){array->view.dims, array_numbers(array)};
}

// Those of [b, i, h], one behind the other.
static const double *at(const Numbers *of, int64_t b, int64_t i, int64_t h) {
    return of->items + ((b * of->dims[1] + i) * of->dims[2] + h) * of->dims[3];
}

// One row of the result: softmax over the keys that it may see, weighted values.
static void naive_row(const Case *c, const Numbers *q, const Numbers *k, const Numbers *v,
                      const Numbers *mask, const int64_t index[3], double *out) {
    double *scores = calloc((size_t)c->keys + 1, sizeof *scores), total = 0, highest = -INFINITY;
    int64_t b = index[0], i = index[1], h = index[2], kh = h / c->group;
    const double *query = at(q, b, i, h);
    for (int64_t j = 0; j < c->keys; j++) {
        const double *key = at(k, b, j, kh);
        for (int64_t x = 0; x < c->width; x++) scores[j] += query[x] * key[x];
        scores[j] *= 0.25;
        bool hidden = c->causal && j > i + c->keys - c->queries;
        if (mask->items && at(mask, b, h, i)[j] == 0) hidden = true;
        if (hidden) scores[j] = -INFINITY;
        if (scores[j] > highest) highest = scores[j];
    }
    for (int64_t x = 0; x < c->value_width; x++) out[x] = 0;
    for (int64_t j = 0; j < c->keys && highest > -INFINITY; j++) {
        double weight = exp(scores[j] - highest);
        total += weight;
        const double *value = at(v, b, j, kh);
        for (int64_t x = 0; x < c->value_width; x++) out[x] += weight * value[x];
    }
    for (int64_t x = 0; x < c->value_width && total > 0; x++) out[x] /= total;
    free(scores);
}

static void compare(const Case *c, const Array *q, const Array *k, const Array *v,
                    const Array *mask, const Array *out) {
    double *want = malloc((size_t)(c->value_width + 1) * sizeof *want);
    Numbers all[] = {numbers_of(q), numbers_of(k), numbers_of(v), numbers_of(out), {0}};
    if (mask) all[4] = numbers_of(mask);
    int64_t heads = c->group * c->key_heads, rows = c->batch * c->queries * heads;
    for (int64_t row = 0; row<rows; row += rows> 4000 ? 13 : 1) {
        int64_t index[3] = {row / heads / c->queries, row / heads % c->queries, row % heads};
        naive_row(c, &all[0], &all[1], &all[2], &all[4], index, want);
        for (int64_t x = 0; x < c->value_width; x++) {
            double got = at(&all[3], index[0], index[1], index[2])[x];
            if (!(fabs(got - want[x]) <= rounding(c->dtype)))
                fail_msg("%s sq %ld sk %ld: row %ld, %ld is %.9g, not %.9g", dtype_name(c->dtype),
                         (long)c->queries, (long)c->keys, (long)row, (long)x, got, want[x]);
        }
    }
    for (int i = 0; i < 5; i++) free(all[i].items);
    free(want);
}

static void run_case(const Case *c) {
    int64_t heads = c->key_heads * c->group;
    Array q, k, v, out, mask;
    array_make(&q, c->dtype, c->layout, 4, (int64_t[]){c->batch, c->queries, heads, c->width});
    array_make(&k, c->cache_dtype, c->layout, 4,
               (int64_t[]){c->batch, c->keys, c->key_heads, c->width});
    array_make(&v, c->cache_dtype, c->layout, 4,
               (int64_t[]){c->batch, c->keys, c->key_heads, c->value_width});
    array_make(&out, c->dtype, c->layout, 4,
               (int64_t[]){c->batch, c->queries, heads, c->value_width});
    array_fill_random(&q);
    array_fill_random(&k);
    array_fill_random(&v);
    KernelCall call = {.kernel = KERNEL_ATTENTION,
                       .n_inputs = 3,
                       .n_outputs = 1,
                       .op_name = "attention",
                       .options = {.flag = c->causal, .scalars = {0.25}}};
    call.inputs[0].view = array_view(&q);
    call.inputs[1].view = array_view(&k);
    call.inputs[2].view = array_view(&v);
    call.outputs[0] = array_view(&out);
    bool masked = c->mask != DTYPE_COUNT;
    if (masked) { // one head's mask for all: a broadcast dimension
        array_make(&mask, c->mask, LAYOUT_PLAIN, 4, (int64_t[]){c->batch, 1, c->queries, c->keys});
        for (int64_t i = 0; i < array_count(&mask.view); i++)
            array_set(&mask, i, i / c->keys % 5 != 3 && array_random() % 3 != 0);
        mask.view.dims[1] = heads;
        mask.view.strides[1] = 0;
        call.inputs[3].view = array_view(&mask);
        call.n_inputs = 4;
    }
    assert_int_equal(run_kernel(KERNEL_ATTENTION, &call), STATUS_OK);
    compare(c, &q, &k, &v, masked ? &mask : NULL, &out);
    if (masked) array_free(&mask);
    array_free(&q);
    array_free(&k);
    array_free(&v);
    array_free(&out);
}

static void test_attention(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    static const int64_t lengths[][2] = {{1, 1},   {1, 300},  {7, 7}, {3, 270},
                                         {70, 70}, {33, 600}, {9, 4}, {2, 1300}};
    static const DType masks[] = {DTYPE_COUNT, DTYPE_BOOL, DTYPE_FLOAT32, DTYPE_INT64,
                                  DTYPE_FLOAT64};
    int sample = 0;
    for (int d = 0; d < 4; d++)
        for (int l = 0; l < 8; l++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
                sample++;
                Case c = {.dtype = dtypes[d],
                          .cache_dtype = dtypes[d],
                          .batch = 1 + sample % 2,
                          .queries = lengths[l][0],
                          .keys = lengths[l][1],
                          .key_heads = 1 + sample % 3,
                          .group = 1 + sample % 4,
                          .width = sample % 5 == 0 ? 13 : 32,
                          .value_width = sample % 7 == 0 ? 9 : 16,
                          .layout = (Layout)layout,
                          .causal = sample % 2 == 0,
                          .mask = masks[sample % 5]};
                run_case(&c);
            }
}

static void test_attention_mixed_and_wide(void **state) {
    (void)state;
    Case c = {.dtype = DTYPE_FLOAT32,
              .cache_dtype = DTYPE_FLOAT16,
              .batch = 1,
              .queries = 1,
              .keys = 100,
              .key_heads = 2,
              .group = 4,
              .width = 64,
              .value_width = 600,
              .mask = DTYPE_COUNT,
              .causal = true};
    run_case(&c);
    c.queries = 20;
    c.cache_dtype = DTYPE_BFLOAT16;
    run_case(&c);
    c.keys = 0; // nothing to see: zeros
    run_case(&c);
    c.keys = 9;
    c.layout = LAYOUT_REVERSED;
    for (int i = 0; i < 4; i++) {
        c.dtype = c.cache_dtype = i % 2 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
        c.queries = 2 + i;
        c.value_width = i < 2 ? 1100 : 20;
        c.width = i == 2 ? 900 : 30;
        run_case(&c);
    }
}

// Queries, keys, key heads, group, width, width of values.
static void set_sizes(Case *c, const int64_t sizes[6]) {
    c->queries = sizes[0];
    c->keys = sizes[1];
    c->key_heads = sizes[2];
    c->group = sizes[3];
    c->width = sizes[4];
    c->value_width = sizes[5];
}

// Widths and lengths that shaders in tiles divide, and others.
static void test_attention_of_many(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};
    static const int64_t shapes[][6] = {{128, 128, 1, 1, 128, 128}, {33, 200, 2, 4, 128, 128},
                                        {65, 65, 1, 3, 64, 64},     {40, 37, 2, 2, 80, 96},
                                        {40, 129, 2, 1, 24, 136},   {17, 65, 1, 2, 200, 130}};
    for (int i = 0; i < 30; i++) {
        Case c = {.dtype = dtypes[i / 6 % 3],
                  .cache_dtype = dtypes[i / 6 % 3],
                  .batch = 1 + i / 6 % 2,
                  .causal = i % 7 < 4,
                  .mask = i % 4 == 0 ? DTYPE_BOOL : DTYPE_COUNT};
        set_sizes(&c, shapes[i % 6]);
        run_case(&c);
    }
}

// As many rows to a key head as share its keys' panels, whose edges lie within keys, widths and
// rows.
static void test_attention_of_groups(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};
    static const int64_t shapes[][6] = {{1, 17, 2, 4, 5, 130},    {1, 300, 2, 8, 64, 64},
                                        {3, 40, 1, 5, 130, 33},   {9, 37, 2, 7, 83, 67},
                                        {20, 289, 1, 4, 144, 96}, {2, 530, 1, 32, 300, 200}};
    for (int i = 0; i < 18; i++) {
        Case c = {.dtype = i % 2 ? DTYPE_FLOAT32 : dtypes[i / 6],
                  .cache_dtype = dtypes[i / 6],
                  .batch = 1,
                  .layout = i % 5 == 4 ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN,
                  .causal = i % 3 == 0,
                  .mask = i % 4 == 0 ? DTYPE_BOOL : DTYPE_COUNT};
        set_sizes(&c, shapes[i % 6]);
        run_case(&c);
    }
}

// As many heads as keep a large device busy, with blocks of keys that are cut off, more queries
// than keys, and tiles that see nothing.
static void test_attention_of_many_heads(void **state) {
    (void)state;
    static const int64_t shapes[][6] = {{72, 300, 8, 4, 64, 64},
                                        {300, 140, 4, 3, 128, 120},
                                        {130, 515, 16, 1, 40, 128},
                                        {128, 40, 2, 70, 128, 64}};
    for (int i = 0; i < 4; i++) {
        Case c = {.dtype = i % 2 ? DTYPE_BFLOAT16 : DTYPE_FLOAT16,
                  .cache_dtype = i % 2 ? DTYPE_BFLOAT16 : DTYPE_FLOAT16,
                  .batch = i < 2 ? 2 : 1,
                  .causal = i != 2,
                  .mask = DTYPE_COUNT};
        set_sizes(&c, shapes[i]);
        run_case(&c);
    }
}

// Few queries see so many keys that devices look at them in parts.
static void test_attention_to_many_keys(void **state) {
    (void)state;
    static const int64_t shapes[][6] = {{1, 2500, 2, 1, 128, 128}, {1, 1900, 1, 6, 64, 64},
                                        {3, 1030, 2, 4, 80, 48},   {1, 800, 1, 2, 256, 200},
                                        {2, 4200, 1, 3, 32, 64},   {1, 1025, 1, 16, 128, 128}};
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_FLOAT64};
    for (int i = 0; i < 12; i++) {
        Case c = {.dtype = dtypes[i % 5 % 3],
                  .cache_dtype = dtypes[i % 3],
                  .batch = 1 + i / 6,
                  .layout = i % 4 == 1 ? LAYOUT_TRANSPOSED : LAYOUT_PLAIN,
                  .causal = i % 2 == 0,
                  .mask = i % 4 == 3 ? DTYPE_BOOL : DTYPE_COUNT};
        set_sizes(&c, shapes[i % 6]);
        run_case(&c);
    }
}

// Large scores do not overflow and NaN is not lost.
static void test_attention_extremes(void **state) {
    (void)state;
    Array q, k, v, out;
    int64_t dims[4] = {1, 3, 1, 2};
    Array *all[4] = {&q, &k, &v, &out};
    for (int i = 0; i < 4; i++) array_make(all[i], DTYPE_FLOAT32, LAYOUT_PLAIN, 4, dims);
    for (int i = 0; i < 6; i++) {
        array_set(&q, i, i < 2 ? 1e4 : 1);
        array_set(&k, i, 1e4 * (i / 2 - 1));
        array_set(&v, i, i);
    }
    array_set(&q, 4, NAN);
    KernelCall call = {
        .n_inputs = 3, .n_outputs = 1, .op_name = "attention", .options.scalars = {1}};
    for (int i = 0; i < 3; i++) call.inputs[i].view = array_view(all[i]);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_ATTENTION, &call), STATUS_OK);
    assert_true(array_get(&out, 0) == 4 && array_get(&out, 3) == 5);
    assert_true(isnan(array_get(&out, 4)) && isnan(array_get(&out, 5)));
    for (int i = 0; i < 4; i++) array_free(all[i]);
}

// The same of as many heads as keep a large device busy.
static void test_attention_extremes_many(void **state) {
    (void)state;
    enum { QUERIES = 128, HEADS = 32, WIDTH = 64, LARGE = 3, WRONG = 70 };
    Array q, k, v, out;
    int64_t dims[4] = {1, QUERIES, HEADS, WIDTH};
    Array *all[4] = {&q, &k, &v, &out};
    for (int i = 0; i < 4; i++) array_make(all[i], DTYPE_FLOAT16, LAYOUT_PLAIN, 4, dims);
    for (int64_t i = 0; i < QUERIES * HEADS * WIDTH; i++) {
        int64_t row = i / WIDTH / HEADS;
        array_set(&q, i, row == LARGE ? 100 : 0);
        array_set(&k, i, row == 100 ? 100 : row == 101 ? -100 : 0);
        array_set(&v, i, (double)row);
    }
    array_set(&q, (WRONG * HEADS + 1) * WIDTH, NAN);
    KernelCall call = {
        .n_inputs = 3, .n_outputs = 1, .op_name = "attention", .options.scalars = {1}};
    for (int i = 0; i < 3; i++) call.inputs[i].view = array_view(all[i]);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_ATTENTION, &call), STATUS_OK);
    for (int64_t i = 0; i < QUERIES * HEADS * WIDTH; i++) {
        int64_t row = i / WIDTH / HEADS, head = i / WIDTH % HEADS;
        double got = array_get(&out, i), want = row == LARGE ? 100 : 63.5;
        bool is_nan = row == WRONG && head == 1;
        if (is_nan ? !isnan(got) : !(fabs(got - want) <= 0.04))
            fail_msg("row %d, head %d is %g, not %g", (int)row, (int)head, got, want);
    }
    for (int i = 0; i < 4; i++) array_free(all[i]);
}

// A query of NaN next to more keys than are summed at once.
static void check_attention_nan(DType dtype) {
    enum { QUERIES = 2, KEYS = 2500, WIDTH = 4 };
    Array all[4]; // q, k, v, out
    for (int i = 0; i < 4; i++) {
        int64_t dims[4] = {1, i % 3 == 0 ? QUERIES : KEYS, 1, WIDTH};
        array_make(&all[i], dtype, LAYOUT_PLAIN, 4, dims);
        for (int64_t at = 0; at < dims[1] * WIDTH; at++) array_set(&all[i], at, 1);
    }
    for (int i = 0; i < WIDTH; i++) array_set(&all[0], i, NAN);
    KernelCall call = {
        .n_inputs = 3, .n_outputs = 1, .op_name = "attention", .options.scalars = {1}};
    for (int i = 0; i < 3; i++) call.inputs[i].view = array_view(&all[i]);
    call.outputs[0] = array_view(&all[3]);
    assert_int_equal(run_kernel(KERNEL_ATTENTION, &call), STATUS_OK);
    for (int i = 0; i < WIDTH; i++) {
        assert_true(isnan(array_get(&all[3], i)));
        assert_true(fabs(array_get(&all[3], WIDTH + i) - 1) < 1e-5);
    }
    for (int i = 0; i < 4; i++) array_free(&all[i]);
}

static void test_attention_nan_to_many_keys(void **state) {
    (void)state;
    check_attention_nan(DTYPE_FLOAT32);
    check_attention_nan(DTYPE_FLOAT64);
}

static void check_rope(DType dtype, Layout layout, bool half_style, int64_t rotary, int64_t offset,
                       bool tables) {
    enum { BATCH = 2, ROWS = 5, HEADS = 3 };
    int64_t width = rotary > 12 ? rotary + 20 : 12;
    Array in, out, cosines, sines;
    int64_t dims[4] = {BATCH, ROWS, HEADS, width}, table[2] = {ROWS + 4, rotary / 2};
    array_make(&in, dtype, layout, 4, dims);
    array_make(&out, dtype, (Layout)((layout + 1) % LAYOUT_COUNT), 4, dims);
    array_make(&cosines, DTYPE_FLOAT32, layout, 2, table);
    array_make(&sines, DTYPE_FLOAT32, layout, 2, table);
    array_fill_random(&in);
    array_fill_random(&cosines);
    array_fill_random(&sines);
    KernelCall call = {
        .n_inputs = tables ? 3 : 1,
        .n_outputs = 1,
        .op_name = "rope",
        .options = {.flag = half_style, .scalars = {10000, 0.5}, .integers = {offset, rotary}}};
    call.inputs[0].view = array_view(&in);
    call.inputs[1].view = array_view(&cosines);
    call.inputs[2].view = array_view(&sines);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_ROPE, &call), STATUS_OK);
    for (int64_t index = 0; index < array_count(&in.view); index++) {
        int64_t x = index % width, row = index / width / HEADS % ROWS, half = rotary / 2;
        double want = array_get(&in, index);
        if (x < rotary) {
            int64_t pair = half_style ? x % half : x / 2;
            bool second = half_style ? x >= half : x % 2 == 1;
            int64_t other = index + (half_style ? half : 1) * (second ? -1 : 1);
            double angle =
                (double)(row + offset) * 0.5 * pow(10000, -2.0 * (double)pair / (double)rotary);
            double c = tables ? array_get(&cosines, (row + offset) * half + pair) : cos(angle);
            double s = tables ? array_get(&sines, (row + offset) * half + pair) : sin(angle);
            want = want * c + array_get(&in, other) * (second ? s : -s);
        }
        double bound = dtype == DTYPE_FLOAT64   ? 1e-12
                       : dtype == DTYPE_FLOAT32 ? 3e-7
                       : dtype == DTYPE_FLOAT16 ? 1e-3
                                                : 8e-3;
        if (!(fabs(array_get(&out, index) - want) <= bound))
            fail_msg("%s half %d rotary %ld offset %ld: element %ld is %.9g, not %.9g",
                     dtype_name(dtype), half_style, (long)rotary, (long)offset, (long)index,
                     array_get(&out, index), want);
    }
    array_free(&in);
    array_free(&out);
    array_free(&cosines);
    array_free(&sines);
}

static void test_rope(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    static const int64_t rotaries[] = {12, 8, 2, 0};
    for (int d = 0; d < 4; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
            for (int r = 0; r < 4; r++)
                for (int half = 0; half < 2; half++) {
                    check_rope(dtypes[d], (Layout)layout, half, rotaries[r], 0, false);
                    check_rope(dtypes[d], (Layout)layout, half, rotaries[r], 100000, false);
                    check_rope(dtypes[d], (Layout)layout, half, rotaries[r], 3, true);
                }
    for (int half = 0; half < 2; half++)
        check_rope(DTYPE_FLOAT32, LAYOUT_PLAIN, half, 1200, 3, false);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_mixed_and_wide),
        cmocka_unit_test(test_attention_to_many_keys),
        cmocka_unit_test(test_attention_of_many),
        cmocka_unit_test(test_attention_of_groups),
        cmocka_unit_test(test_attention_of_many_heads),
        cmocka_unit_test(test_attention_extremes),
        cmocka_unit_test(test_attention_extremes_many),
        cmocka_unit_test(test_attention_nan_to_many_keys),
        cmocka_unit_test(test_rope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
