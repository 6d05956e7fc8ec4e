// CONV2D and POOL2D against plain float64 loops.
#include "tests/device/arrays.h"

typedef struct Case {
    int64_t batch, channels, height, width, outs, window_h, window_w;
    int64_t integers[8]; // of the kernel
} Case;

static int64_t positions(int64_t size, int64_t window, int64_t stride, int64_t padding,
                         int64_t dilation) {
    return (size + 2 * padding - (window - 1) * dilation - 1) / stride + 1;
}

static double image_at(const Array *image, int64_t n, int64_t c, int64_t y, int64_t x) {
    const int64_t *dims = image->view.dims;
    if (y < 0 || x < 0 || y >= dims[2] || x >= dims[3]) return 0;
    return array_get(image, ((n * dims[1] + c) * dims[2] + y) * dims[3] + x);
}

static double convolve_at(const Case *c, const Array *image, const Array *weight,
                          const int64_t at[4]) {
    const int64_t *o = c->integers;
    int64_t channels = c->channels / o[6], group = at[1] / (c->outs / o[6]);
    double sum = 0;
    for (int64_t i = 0; i < channels; i++)
        for (int64_t y = 0; y < c->window_h; y++)
            for (int64_t x = 0; x < c->window_w; x++)
                sum +=
                    image_at(image, at[0], group * channels + i, at[2] * o[0] - o[2] + y * o[4],
                             at[3] * o[1] - o[3] + x * o[5]) *
                    array_get(weight, ((at[1] * channels + i) * c->window_h + y) * c->window_w + x);
    return sum;
}

static double bound_of(DType dtype) {
    return dtype == DTYPE_FLOAT64   ? 1e-12
           : dtype == DTYPE_FLOAT32 ? 1e-5
           : dtype == DTYPE_FLOAT16 ? 1e-2
                                    : 8e-2;
}

static void check_convolution(const Case *c, DType dtype, Layout layout, bool biased) {
    const int64_t *o = c->integers;
    int64_t h = positions(c->height, c->window_h, o[0], o[2], o[4]);
    int64_t w = positions(c->width, c->window_w, o[1], o[3], o[5]);
    Array image, weight, bias, out;
    array_make(&image, dtype, layout, 4, (int64_t[]){c->batch, c->channels, c->height, c->width});
    array_make(&weight, dtype, layout, 4,
               (int64_t[]){c->outs, c->channels / o[6], c->window_h, c->window_w});
    array_make(&bias, dtype, layout, 1, (int64_t[]){c->outs});
    array_make(&out, dtype, layout, 4, (int64_t[]){c->batch, c->outs, h, w});
    array_fill_random(&image);
    array_fill_random(&weight);
    array_fill_random(&bias);
    KernelCall call = {.n_inputs = biased ? 3 : 2, .n_outputs = 1, .op_name = "conv2d"};
    memcpy(call.options.integers, o, sizeof c->integers);
    call.inputs[0].view = array_view(&image);
    call.inputs[1].view = array_view(&weight);
    call.inputs[2].view = array_view(&bias);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_CONV2D, &call), STATUS_OK);
    for (int64_t index = 0; index < array_count(&out.view); index++) {
        int64_t at[4] = {index / w / h / c->outs, index / w / h % c->outs, index / w % h,
                         index % w};
        double want = convolve_at(c, &image, &weight, at) + (biased ? array_get(&bias, at[1]) : 0);
        if (!(fabs(array_get(&out, index) - want) <= bound_of(dtype) * (1 + fabs(want))))
            fail_msg("%s: element %ld is %.9g, not %.9g", dtype_name(dtype), (long)index,
                     array_get(&out, index), want);
    }
    array_free(&image);
    array_free(&weight);
    array_free(&bias);
    array_free(&out);
}

static void test_convolution(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64};
    static const Case cases[] = {
        {2, 3, 7, 9, 4, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
        {1, 4, 8, 8, 6, 3, 2, {2, 3, 0, 2, 1, 1, 2}},
        {1, 2, 11, 10, 2, 3, 3, {1, 2, 2, 3, 2, 3, 1}},
        {2, 6, 5, 5, 6, 3, 3, {1, 1, 1, 1, 1, 1, 6}},     // depthwise
        {1, 5, 6, 4, 7, 1, 1, {1, 1, 0, 0, 1, 1, 1}},     // pointwise
        {1, 3, 1, 50, 4, 1, 5, {1, 2, 0, 4, 1, 2, 1}},    // one dimension
        {1, 1, 2, 2, 1, 2, 2, {3, 3, 3, 3, 1, 1, 1}},     // windows in the padding alone
        {1, 2, 40, 40, 3, 3, 3, {1, 1, 1, 1, 1, 1, 1}},   // several tiles
        {1, 40, 12, 12, 70, 3, 3, {1, 1, 1, 1, 1, 1, 1}}, // several panels of channels
        {3, 36, 9, 7, 18, 2, 3, {2, 1, 1, 2, 1, 2, 2}},
        {0, 2, 4, 4, 3, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < 4; d++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++)
                check_convolution(&cases[i], dtypes[d], (Layout)layout, (d + layout) % 2);
}

static void check_pool(DType dtype, Layout layout, bool average, const int64_t o[7]) {
    int64_t height = 7, width = o[6];
    int64_t h = positions(height, o[0], o[2], o[4], 1), w = positions(width, o[1], o[3], o[5], 1);
    Array image, out;
    array_make(&image, dtype, layout, 4, (int64_t[]){2, 3, height, width});
    array_make(&out, dtype, layout, 4, (int64_t[]){2, 3, h, w});
    array_fill_random(&image);
    if (dtype == DTYPE_FLOAT32) array_set(&image, 30, NAN);
    KernelCall call = {.n_inputs = 1, .n_outputs = 1, .op_name = "pool", .options.op = average};
    memcpy(call.options.integers, o, 6 * sizeof *o);
    call.inputs[0].view = array_view(&image);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_POOL2D, &call), STATUS_OK);
    for (int64_t index = 0; index < array_count(&out.view); index++) {
        double best = -INFINITY, sum = 0, count = 0;
        for (int64_t y = 0; y < o[0]; y++)
            for (int64_t x = 0; x < o[1]; x++) {
                int64_t iy = index / w % h * o[2] - o[4] + y, ix = index % w * o[3] - o[5] + x;
                if (iy < 0 || ix < 0 || iy >= height || ix >= width) continue;
                double value = image_at(&image, index / w / h / 3, index / w / h % 3, iy, ix);
                best = isnan(best) || isnan(value) ? NAN : fmax(best, value);
                sum += value;
                count++;
            }
        double want = average ? sum / count : best, got = array_get(&out, index);
        if (average && !dtype_is_float(dtype)) want = trunc(want);
        if (!(fabs(got - want) <= bound_of(dtype)) && !(isnan(got) && isnan(want)))
            fail_msg("%s: element %ld is %g, not %g", dtype_name(dtype), (long)index, got, want);
    }
    array_free(&image);
    array_free(&out);
}

static void test_pooling(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_FLOAT64, DTYPE_INT32};
    // The last is the picture's width: rows of results end within vectors and before them.
    static const int64_t options[][7] = {{2, 2, 2, 2, 0, 0, 9},  {2, 2, 2, 2, 1, 1, 9},
                                         {3, 2, 1, 2, 1, 1, 9},  {7, 9, 1, 1, 0, 0, 9},
                                         {2, 2, 2, 2, 0, 0, 7},  {2, 2, 2, 2, 0, 0, 14},
                                         {2, 2, 2, 2, 0, 0, 29}, {2, 2, 2, 2, 0, 0, 70}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int d = 0; d < 4; d++)
            for (int layout = 0; layout < LAYOUT_COUNT; layout++)
                for (int average = 0; average < 2; average++)
                    check_pool(dtypes[d], (Layout)layout, average, options[i]);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_convolution),
                                       cmocka_unit_test(test_pooling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
