// Indexes on the Vulkan device are read before they are used only where nothing is known of them.
// Calls larger than its counters are refused, those at the limit are not.
// Skipped where no Vulkan device is usable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/kernel.h"
#include "device/pool.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

#include "open.h"

enum { ROWS = 5, PICKED = 3 };

typedef struct Fixture {
    Device *device;
    TensorView table, index, out;
} Fixture;

static TensorView make_view(Device *device, DType dtype, int64_t count) {
    TensorView view = {.dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}};
    BufferLabel label = {.dtype = dtype, .rank = 1, .dims = {count}};
    size_t bytes = (size_t)count * dtype_size(dtype);
    assert_int_equal(buffer_new(device, bytes, &label, &view.buffer), STATUS_OK);
    return view;
}

static int set_up(void **state) {
    static Fixture fixture;
    fixture = (Fixture){0};
    *state = NULL;
    int status;
    if (!open_for_fixture(&fixture.device, &status)) return status;
    const float numbers[ROWS] = {10, 11, 12, 13, 14};
    fixture.table = make_view(fixture.device, DTYPE_FLOAT32, ROWS);
    fixture.index = make_view(fixture.device, DTYPE_INT64, PICKED);
    fixture.out = make_view(fixture.device, DTYPE_FLOAT32, PICKED);
    *state = &fixture;
    return buffer_upload(fixture.table.buffer, 0, numbers, sizeof numbers) != STATUS_OK;
}

static int tear_down(void **state) {
    Fixture *fixture = *state;
    if (!fixture) return 0;
    buffer_release(fixture->table.buffer);
    buffer_release(fixture->index.buffer);
    buffer_release(fixture->out.buffer);
    device_close(fixture->device);
    return 0;
}

static Fixture *fixture_of(void **state) {
    if (!*state) skip();
    return *state;
}

static Status gather(const Fixture *fixture) {
    KernelCall call = {.kernel = KERNEL_GATHER,
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .inputs = {{.view = &fixture->table}, {.view = &fixture->index}},
                       .outputs = {&fixture->out},
                       .op_name = "gather"};
    return fixture->device->backend->run(fixture->device, &call);
}

static void put_index(const Fixture *fixture, int64_t a, int64_t b, int64_t c) {
    const int64_t numbers[PICKED] = {a, b, c};
    assert_int_equal(buffer_upload(fixture->index.buffer, 0, numbers, sizeof numbers), STATUS_OK);
}

// One wait, of the read itself.
static void expect_picked(const Fixture *fixture, float a, float b, float c) {
    const float wanted[PICKED] = {a, b, c};
    float picked[PICKED];
    assert_int_equal(buffer_download(fixture->out.buffer, 0, picked, sizeof picked), STATUS_OK);
    assert_memory_equal(picked, wanted, sizeof wanted);
}

static uint64_t waits(const Fixture *fixture) {
    return pool_statistics(fixture->device).waits;
}

static void test_uploaded_indexes_are_known(void **state) {
    const Fixture *fixture = fixture_of(state);
    put_index(fixture, 0, -1, 4);
    assert_int_equal(gather(fixture), STATUS_OK);
    assert_int_equal(waits(fixture), 0);
    expect_picked(fixture, 10, 14, 14);
    put_index(fixture, 0, 5, 4);
    assert_int_equal(gather(fixture), STATUS_INDEX);
    assert_string_equal(error_current()->message,
                        "gather: an index is out of range for a dimension of size 5");
    put_index(fixture, 1, -6, 4);
    assert_int_equal(gather(fixture), STATUS_INDEX);
    put_index(fixture, 1, -5, 2);
    assert_int_equal(gather(fixture), STATUS_OK);
    expect_picked(fixture, 11, 10, 12);
}

static void run_fill(const Fixture *fixture, int64_t value) {
    KernelCall call = {.kernel = KERNEL_FILL,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.scalar = {.dtype = DTYPE_INT64, .as.i = value}}},
                       .outputs = {&fixture->index},
                       .op_name = "full"};
    assert_int_equal(fixture->device->backend->run(fixture->device, &call), STATUS_OK);
}

static void test_filled_indexes_are_known(void **state) {
    const Fixture *fixture = fixture_of(state);
    run_fill(fixture, 3);
    assert_int_equal(gather(fixture), STATUS_OK);
    assert_int_equal(waits(fixture), 0);
    expect_picked(fixture, 13, 13, 13);
    run_fill(fixture, 5);
    assert_int_equal(gather(fixture), STATUS_INDEX);
}

static void run_add(const Fixture *fixture, int64_t value) {
    KernelCall call = {
        .kernel = KERNEL_MAP,
        .n_inputs = 2,
        .n_outputs = 1,
        .inputs = {{.view = &fixture->index}, {.scalar = {.dtype = DTYPE_INT64, .as.i = value}}},
        .outputs = {&fixture->index},
        .options = {.compute = DTYPE_INT64, .n_steps = 1, .steps = {{MAP_ADD, 0, 1, 0}}},
        .op_name = "add"};
    assert_int_equal(fixture->device->backend->run(fixture->device, &call), STATUS_OK);
}

// Numbers that the device computed are read once, and again when they have changed.
static void test_others_are_read_once(void **state) {
    const Fixture *fixture = fixture_of(state);
    put_index(fixture, 0, 0, 0);
    run_add(fixture, 3);
    assert_int_equal(gather(fixture), STATUS_OK);
    assert_int_equal(waits(fixture), 1);
    assert_int_equal(gather(fixture), STATUS_OK);
    assert_int_equal(waits(fixture), 1);
    expect_picked(fixture, 13, 13, 13);
    run_add(fixture, 2);
    assert_int_equal(gather(fixture), STATUS_INDEX);
}

// What arg_reduce gives, cast or not, is an index of what it was given.
static void test_positions_are_known(void **state) {
    const Fixture *fixture = fixture_of(state);
    TensorView matrix = make_view(fixture->device, DTYPE_FLOAT32, PICKED * ROWS);
    matrix.rank = 2;
    matrix.dims[0] = PICKED, matrix.dims[1] = ROWS;
    matrix.strides[0] = ROWS, matrix.strides[1] = 1;
    const float numbers[PICKED * ROWS] = {0, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    assert_int_equal(buffer_upload(matrix.buffer, 0, numbers, sizeof numbers), STATUS_OK);
    KernelCall call = {.kernel = KERNEL_ARG_REDUCE,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = &matrix}},
                       .outputs = {&fixture->index},
                       .op_name = "argmax"};
    assert_int_equal(fixture->device->backend->run(fixture->device, &call), STATUS_OK);
    Fixture narrow = *fixture;
    narrow.index = make_view(fixture->device, DTYPE_INT32, PICKED);
    KernelCall cast = {.kernel = KERNEL_COPY,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = &fixture->index}},
                       .outputs = {&narrow.index},
                       .op_name = "cast"};
    assert_int_equal(fixture->device->backend->run(fixture->device, &cast), STATUS_OK);
    assert_int_equal(gather(&narrow), STATUS_OK);
    assert_int_equal(gather(fixture), STATUS_OK);
    assert_int_equal(waits(fixture), 0);
    expect_picked(fixture, 12, 10, 14);
    buffer_release(narrow.index.buffer);
    buffer_release(matrix.buffer);
}

// --- sizes

// All elements are the first of the table.
static TensorView wide_view(const Fixture *fixture, int64_t images, int64_t rows, int64_t columns) {
    return (TensorView){.buffer = fixture->table.buffer,
                        .dtype = DTYPE_FLOAT32,
                        .rank = 4,
                        .dims = {images, 1, rows, columns}};
}

typedef struct Large {
    KernelId kernel;
    int64_t inputs[2][3], out[3]; // dims but that of channels, which is 1
    int64_t integers[7];
    const char *refused; // NULL: it is not
} Large;

static void run_large(const Fixture *fixture, const Large *large) {
    TensorView views[2], out = wide_view(fixture, large->out[0], large->out[1], large->out[2]);
    KernelCall call = {.kernel = large->kernel,
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .outputs = {&out},
                       .op_name = "large"};
    for (int i = 0; i < 2; i++) {
        const int64_t *dims = large->inputs[i];
        views[i] = wide_view(fixture, dims[0], dims[1], dims[2]);
        call.inputs[i].view = &views[i];
    }
    memcpy(call.options.integers, large->integers, sizeof large->integers);
    out.buffer = fixture->out.buffer;
    out.strides[2] = out.strides[3] = 1; // of two elements
    Status status = fixture->device->backend->run(fixture->device, &call);
    assert_int_equal(status, large->refused ? STATUS_DEVICE : STATUS_OK);
    if (large->refused) assert_non_null(strstr(error_current()->message, large->refused));
}

static void test_axes_that_are_too_long(void **state) {
    const Fixture *fixture = fixture_of(state);
    enum { HALF = 1 << 29, MOST = 1 << 30 };
    static const char conv[] = "large: an image of more than 2^30 rows or columns on ";
    static const char pool[] = "large: an image of more than 2^29 rows or columns on ";
    static const Large larges[] = {
        // The image and what is around it.
        {KERNEL_CONV2D, {{1, 1, MOST - 1}, {1, 1, 1}}, {1, 1, 2}, {1, HALF, 0, 1, 1, 1, 1}, conv},
        {KERNEL_CONV2D, {{1, MOST - 1, 1}, {1, 1, 1}}, {1, 2, 1}, {HALF, 1, 1, 0, 1, 1, 1}, conv},
        // The result and what is around it.
        {KERNEL_CONV2D_IMAGE,
         {{1, 1, 2}, {1, 1, 1}},
         {1, 1, MOST - 1},
         {1, HALF, 0, 1, 1, 1, 1},
         conv},
        {KERNEL_CONV2D_IMAGE,
         {{1, 2, 1}, {1, 1, 1}},
         {1, MOST - 1, 1},
         {HALF, 1, 1, 0, 1, 1, 1},
         conv},
        {KERNEL_POOL2D_IMAGE, {{1, 1, 2}, {1, 1, HALF}}, {1, 1, HALF}, {1, 1, 1, HALF, 0, 0}, pool},
        {KERNEL_POOL2D_IMAGE,
         {{1, 1, 2}, {1, 1, HALF}},
         {1, 1, HALF - 2},
         {1, 1, 1, HALF, 0, 1},
         pool},
        {KERNEL_POOL2D_IMAGE,
         {{1, 2, 1}, {1, HALF, 1}},
         {1, HALF - 2, 1},
         {1, 1, HALF, 1, 1, 0},
         pool},
    };
    for (size_t i = 0; i < sizeof larges / sizeof *larges; i++) run_large(fixture, &larges[i]);
}

// A convolution of an image as long as can be: windows in the padding and in the middle.
static void test_longest_axis(void **state) {
    const Fixture *fixture = fixture_of(state);
    static const Large large = {KERNEL_CONV2D,
                                {{1, 1, (1 << 30) - 2}, {1, 1, 1}},
                                {1, 1, 2},
                                {1, 1 << 29, 0, 1, 1, 1, 1},
                                NULL};
    run_large(fixture, &large);
    float got[2];
    assert_int_equal(buffer_download(fixture->out.buffer, 0, got, sizeof got), STATUS_OK);
    assert_true(got[0] == 0 && got[1] == 100);
}

static void test_too_many_pixels(void **state) {
    const Fixture *fixture = fixture_of(state);
    enum { LONG = 1 << 16 };
    static const char many[] = "large: more than 2^32 elements at once on ";
    static const Large larges[] = {
        {KERNEL_CONV2D_WINDOW,
         {{1, LONG, LONG}, {1, LONG, LONG}},
         {1, 1, 1},
         {1, 1, 0, 0, 1, 1, 1},
         many},
        {KERNEL_CONV2D_WINDOW,
         {{1 << 17, 1, LONG}, {1 << 17, 1, LONG}},
         {1, 1, 1},
         {1, 1, 0, 0, 1, 1, 1},
         many},
        {KERNEL_POOL2D, {{1, LONG, LONG}, {1, 1, 1}}, {1, LONG, LONG}, {1, 1, 1, 1, 0, 0}, many},
    };
    for (size_t i = 0; i < sizeof larges / sizeof *larges; i++) run_large(fixture, &larges[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uploaded_indexes_are_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_filled_indexes_are_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_are_read_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_positions_are_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_axes_that_are_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_longest_axis, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_pixels, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
