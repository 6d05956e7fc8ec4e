// CONV2D_IMAGE, CONV2D_WINDOW and POOL2D_IMAGE against plain float64 loops.
#include "tests/device/arrays.h"

#include "device/work.h"

typedef struct Case {
    int64_t batch, channels, height, width, outs, window_h, window_w;
    int64_t integers[8]; // of the kernel
} Case;

static bool device_lacks(KernelId kernel) {
    Device *device = array_device();
    return device && !device_has(device, kernel);
}

static int64_t positions(int64_t size, int64_t window, int64_t stride, int64_t padding,
                         int64_t dilation) {
    return (size + 2 * padding - (window - 1) * dilation - 1) / stride + 1;
}

static void check_array(const char *what, const Array *array, const double *want) {
    double bound = array->view.dtype == DTYPE_FLOAT64 ? 1e-11 : 2e-4;
    for (int64_t i = 0; i < array_count(&array->view); i++)
        if (!(fabs(array_get(array, i) - want[i]) <= bound * (1 + fabs(want[i]))))
            fail_msg("%s, %s: element %ld is %.9g, not %.9g", what, dtype_name(array->view.dtype),
                     (long)i, array_get(array, i), want[i]);
}

// Adds up both gradients from every product of the forward pass.
static void gradients_of(const Case *c, const Array *image, const Array *weight, const Array *up,
                         double *image_want, double *weight_want) {
    const int64_t *o = c->integers, *out = up->view.dims;
    int64_t each = c->channels / o[6], outs = c->outs / o[6];
    for (int64_t index = 0; index < array_count(&up->view); index++) {
        int64_t x = index % out[3], y = index / out[3] % out[2];
        int64_t f = index / out[3] / out[2] % c->outs, n = index / out[3] / out[2] / c->outs;
        for (int64_t k = 0; k < each * c->window_h * c->window_w; k++) {
            int64_t j = k % c->window_w, i = k / c->window_w % c->window_h;
            int64_t channel = f / outs * each + k / c->window_w / c->window_h;
            int64_t iy = y * o[0] - o[2] + i * o[4], ix = x * o[1] - o[3] + j * o[5];
            if (iy < 0 || ix < 0 || iy >= c->height || ix >= c->width) continue;
            int64_t at = ((n * c->channels + channel) * c->height + iy) * c->width + ix;
            int64_t tap = f * each * c->window_h * c->window_w + k;
            image_want[at] += array_get(up, index) * array_get(weight, tap);
            weight_want[tap] += array_get(up, index) * array_get(image, at);
        }
    }
}

static void check_convolution(const Case *c, DType dtype) {
    const int64_t *o = c->integers;
    int64_t h = positions(c->height, c->window_h, o[0], o[2], o[4]);
    int64_t w = positions(c->width, c->window_w, o[1], o[3], o[5]);
    int64_t image_dims[] = {c->batch, c->channels, c->height, c->width};
    int64_t weight_dims[] = {c->outs, c->channels / o[6], c->window_h, c->window_w};
    Array image, weight, up, image_out, weight_out;
    array_make(&image, dtype, LAYOUT_PLAIN, 4, image_dims);
    array_make(&weight, dtype, LAYOUT_PLAIN, 4, weight_dims);
    array_make(&up, dtype, LAYOUT_PLAIN, 4, (int64_t[]){c->batch, c->outs, h, w});
    array_make(&image_out, dtype, LAYOUT_PLAIN, 4, image_dims);
    array_make(&weight_out, dtype, LAYOUT_PLAIN, 4, weight_dims);
    array_fill_random(&image);
    array_fill_random(&weight);
    array_fill_random(&up);
    double *image_want = calloc((size_t)array_count(&image.view) + 1, sizeof(double));
    double *weight_want = calloc((size_t)array_count(&weight.view) + 1, sizeof(double));
    gradients_of(c, &image, &weight, &up, image_want, weight_want);
    KernelCall call = {.n_inputs = 2, .n_outputs = 1, .op_name = "conv2d"};
    memcpy(call.options.integers, o, sizeof c->integers);
    call.inputs[0].view = array_view(&up);
    call.inputs[1].view = array_view(&weight);
    call.outputs[0] = array_view(&image_out);
    assert_int_equal(run_kernel(KERNEL_CONV2D_IMAGE, &call), STATUS_OK);
    check_array("image", &image_out, image_want);
    call.inputs[0].view = array_view(&image);
    call.inputs[1].view = array_view(&up);
    call.outputs[0] = array_view(&weight_out);
    assert_int_equal(run_kernel(KERNEL_CONV2D_WINDOW, &call), STATUS_OK);
    check_array("window", &weight_out, weight_want);
    Array *all[] = {&image, &weight, &up, &image_out, &weight_out};
    for (int i = 0; i < 5; i++) array_free(all[i]);
    free(image_want);
    free(weight_want);
}

static void test_convolution(void **state) {
    (void)state;
    static const Case cases[] = {
        {2, 3, 7, 9, 4, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
        {1, 4, 8, 8, 6, 3, 2, {2, 3, 0, 2, 1, 1, 2}},
        {1, 2, 11, 10, 2, 3, 3, {1, 2, 2, 3, 2, 3, 1}},
        {2, 6, 5, 5, 6, 3, 3, {1, 1, 1, 1, 1, 1, 6}},    // depthwise
        {1, 5, 6, 4, 7, 1, 1, {1, 1, 0, 0, 1, 1, 1}},    // pointwise
        {1, 3, 1, 50, 4, 1, 5, {1, 2, 0, 4, 1, 2, 1}},   // one dimension
        {1, 1, 2, 2, 1, 2, 2, {3, 3, 3, 3, 1, 1, 1}},    // windows in the padding alone
        {1, 2, 3, 3, 2, 7, 7, {1, 1, 3, 3, 1, 1, 1}},    // windows wider than the image
        {2, 40, 40, 34, 5, 3, 3, {1, 1, 1, 1, 1, 1, 1}}, // several tiles and blocks of channels
        {1, 40, 30, 31, 5, 3, 3, {1, 1, 2, 2, 2, 2, 1}}, // moved rows with a dilation
        {19, 2, 40, 40, 3, 3, 3, {1, 1, 1, 1, 1, 1, 1}}, // several parts of the batch, one short
        {0, 2, 4, 4, 3, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    };
    if (device_lacks(KERNEL_CONV2D_IMAGE)) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_convolution(&cases[i], DTYPE_FLOAT32);
        check_convolution(&cases[i], DTYPE_FLOAT64);
    }
}

// The gradient of each window goes to the first of its largest numbers, or to all in equal parts.
static void share_window(const Array *image, const Array *up, const int64_t *o, bool average,
                         int64_t index, double *want) {
    int64_t height = image->view.dims[2], width = image->view.dims[3];
    int64_t x = index % up->view.dims[3], y = index / up->view.dims[3] % up->view.dims[2];
    int64_t plane = index / up->view.dims[3] / up->view.dims[2] * height * width;
    int64_t best = -1, count = 0, inside[64];
    for (int64_t k = 0; k < o[0] * o[1]; k++) {
        int64_t iy = y * o[2] - o[4] + k / o[1], ix = x * o[3] - o[5] + k % o[1];
        if (iy < 0 || ix < 0 || iy >= height || ix >= width) continue;
        int64_t at = plane + iy * width + ix;
        inside[count++] = at;
        if (best < 0 || array_get(image, at) > array_get(image, best)) best = at;
    }
    for (int64_t k = 0; average && k < count; k++)
        want[inside[k]] += array_get(up, index) / (double)count;
    if (!average) want[best] += array_get(up, index);
}

static void check_pool(DType dtype, bool average, const int64_t o[7]) {
    int64_t dims[] = {2, 3, 8, o[6]};
    int64_t h = positions(dims[2], o[0], o[2], o[4], 1),
            w = positions(dims[3], o[1], o[3], o[5], 1);
    Array image, up, out;
    array_make(&image, dtype, LAYOUT_PLAIN, 4, dims);
    array_make(&out, dtype, LAYOUT_PLAIN, 4, dims);
    array_make(&up, dtype, LAYOUT_PLAIN, 4, (int64_t[]){2, 3, h, w});
    array_fill_random(&up);
    // Few different numbers, so that windows have several largest ones.
    for (int64_t i = 0; i < array_count(&image.view); i++)
        array_set(&image, i, (double)(i * 7919 % 5));
    double *want = calloc((size_t)array_count(&image.view), sizeof(double));
    for (int64_t i = 0; i < array_count(&up.view); i++)
        share_window(&image, &up, o, average, i, want);
    KernelCall call = {
        .n_inputs = average ? 1 : 2, .n_outputs = 1, .op_name = "pool", .options.op = average};
    memcpy(call.options.integers, o, 6 * sizeof *o);
    call.inputs[0].view = array_view(&up);
    if (!average) call.inputs[1].view = array_view(&image);
    call.outputs[0] = array_view(&out);
    assert_int_equal(run_kernel(KERNEL_POOL2D_IMAGE, &call), STATUS_OK);
    check_array(average ? "average" : "largest", &out, want);
    array_free(&image);
    array_free(&up);
    array_free(&out);
    free(want);
}

static void test_pooling(void **state) {
    (void)state;
    // The last is the picture's width: rows of results end within vectors and before them.
    static const int64_t options[][7] = {
        {2, 2, 2, 2, 0, 0, 13}, {2, 2, 2, 2, 1, 1, 13}, {3, 2, 1, 2, 1, 1, 13},
        {8, 8, 1, 1, 0, 0, 13}, {1, 1, 3, 2, 0, 0, 13}, {2, 2, 2, 2, 0, 0, 7},
        {2, 2, 2, 2, 0, 0, 16}, {2, 2, 2, 2, 0, 0, 29}, {2, 2, 2, 2, 0, 0, 70}};
    if (device_lacks(KERNEL_POOL2D_IMAGE)) skip();
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int average = 0; average < 2; average++) {
            check_pool(DTYPE_FLOAT32, average, options[i]);
            check_pool(DTYPE_FLOAT64, average, options[i]);
        }
}

static int suite(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_convolution),
                                       cmocka_unit_test(test_pooling)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
