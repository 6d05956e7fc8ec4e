// A product of rows that were normalised just before makes their norm itself instead of waiting for
// it, unless what the norm was made of has changed since. Skipped where no Vulkan device is usable.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/kernel.h"
#include "device/vulkan/core.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

enum { ROWS = 2, WIDTH = 256, COLUMNS = 24, BLOCK = 32, BLOCK_BYTES = 34 };

// x, its norm, the weight of that, two matrices with their numbers, and a product.
typedef struct Fixture {
    Device *device;
    TensorView x, weight, normal, floats, blocks, out;
    float x_numbers[ROWS * WIDTH], weight_numbers[WIDTH];
    float matrices[2][COLUMNS * WIDTH];
} Fixture;

static Buffer *make(Device *device, size_t bytes) {
    Buffer *buffer;
    assert_int_equal(buffer_new(device, bytes, NULL, &buffer), STATUS_OK);
    return buffer;
}

static TensorView make_rows(Device *device, int64_t rows, int64_t width) {
    return (TensorView){make(device, (size_t)(rows * width) * sizeof(float)),
                        0,
                        DTYPE_FLOAT32,
                        2,
                        {rows, width},
                        {width, 1}};
}

static void upload(const TensorView *view, const void *source, size_t bytes) {
    assert_int_equal(buffer_upload(view->buffer, 0, source, bytes), STATUS_OK);
}

static void make_matrices(Fixture *f) {
    for (int i = 0; i < COLUMNS * WIDTH; i++) f->matrices[0][i] = (float)(i * 37 % 101 - 50) / 64;
    unsigned char bytes[COLUMNS * WIDTH / BLOCK * BLOCK_BYTES];
    for (int i = 0; i < COLUMNS * WIDTH; i++) {
        unsigned char *block = bytes + i / BLOCK * BLOCK_BYTES;
        int number = i * 53 % 255 - 127;
        memcpy(block, &(uint16_t){0x2000}, 2); // 2^-7
        block[2 + i % BLOCK] = (unsigned char)number;
        f->matrices[1][i] = (float)number / 128;
    }
    f->floats = make_rows(f->device, WIDTH, COLUMNS);
    f->blocks = f->floats;
    f->blocks.dtype = DTYPE_Q8_0;
    f->blocks.buffer = make(f->device, sizeof bytes);
    for (int i = 0; i < 2; i++) {
        TensorView *view = i == 0 ? &f->floats : &f->blocks;
        view->strides[0] = 1;
        view->strides[1] = WIDTH;
    }
    upload(&f->floats, f->matrices[0], sizeof f->matrices[0]);
    upload(&f->blocks, bytes, sizeof bytes);
}

static int set_up(void **state) {
    static Fixture fixture;
    Fixture *f = &fixture;
    *f = (Fixture){0};
    *state = NULL;
    if (device_open("vulkan", &f->device) != STATUS_OK) {
        if (!getenv("TL_TEST_VULKAN")) return 0;
        print_error("%s\n", error_current()->message);
        return 1;
    }
    *state = f;
    for (int i = 0; i < ROWS * WIDTH; i++) f->x_numbers[i] = (float)(i * 29 % 83 - 40) / 16;
    for (int i = 0; i < WIDTH; i++) f->weight_numbers[i] = 1 + (float)(i % 7) / 8;
    f->x = make_rows(f->device, ROWS, WIDTH);
    f->normal = make_rows(f->device, ROWS, WIDTH);
    f->out = make_rows(f->device, ROWS, COLUMNS);
    f->weight = make_rows(f->device, 1, WIDTH);
    f->weight.rank = 1;
    f->weight.dims[0] = WIDTH;
    f->weight.strides[0] = 1;
    upload(&f->x, f->x_numbers, sizeof f->x_numbers);
    upload(&f->weight, f->weight_numbers, sizeof f->weight_numbers);
    make_matrices(f);
    return 0;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    if (!f) return 0;
    TensorView *const all[] = {&f->x, &f->weight, &f->normal, &f->floats, &f->blocks, &f->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) buffer_release(all[i]->buffer);
    device_close(f->device);
    return 0;
}

static Fixture *fixture_of(void **state) {
    if (!*state) skip();
    return *state;
}

static uint64_t barriers(const Fixture *f) {
    return ((const VulkanDevice *)f->device->state)->stream.epoch;
}

static void run_norm(Fixture *f, const TensorView *out) {
    KernelCall call = {.kernel = KERNEL_RMS_NORM,
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .inputs = {{.view = &f->x}, {.view = &f->weight}},
                       .outputs = {out},
                       .options = {.count = 1, .scalars = {1e-5}},
                       .op_name = "rms_norm"};
    assert_int_equal(f->device->backend->run(f->device, &call), STATUS_OK);
}

static void run_product(Fixture *f, const TensorView *a, const TensorView *b) {
    KernelCall call = {.kernel = KERNEL_MATMUL,
                       .n_inputs = 2,
                       .n_outputs = 1,
                       .inputs = {{.view = a}, {.view = b}},
                       .outputs = {&f->out},
                       .op_name = "matmul"};
    assert_int_equal(f->device->backend->run(f->device, &call), STATUS_OK);
}

static void run_fill(Fixture *f, const TensorView *out, double value) {
    KernelCall call = {.kernel = KERNEL_FILL,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.scalar = {DTYPE_FLOAT64, {.f = value}}}},
                       .outputs = {out},
                       .op_name = "full"};
    assert_int_equal(f->device->backend->run(f->device, &call), STATUS_OK);
}

// The product's rows must be those of `rows`, which are normalised first if that is asked for.
static void expect(Fixture *f, const float *rows, bool normalise, const float *matrix) {
    float found[ROWS * COLUMNS];
    assert_int_equal(buffer_download(f->out.buffer, 0, found, sizeof found), STATUS_OK);
    for (int r = 0; r < ROWS; r++) {
        double squares = 0;
        for (int i = 0; i < WIDTH; i++)
            squares += (double)rows[r * WIDTH + i] * rows[r * WIDTH + i];
        double scale = normalise ? 1 / sqrt(squares / WIDTH + 1e-5) : 1;
        for (int c = 0; c < COLUMNS; c++) {
            double want = 0;
            for (int i = 0; i < WIDTH; i++)
                want += (double)rows[r * WIDTH + i] * scale * matrix[c * WIDTH + i] *
                        (normalise ? f->weight_numbers[i] : 1);
            assert_float_equal(found[r * COLUMNS + c], want, 1e-4);
        }
    }
}

static void test_product_makes_norm_itself(void **state) {
    Fixture *f = fixture_of(state);
    for (int m = 0; m < 2; m++) {
        const TensorView *matrix = m == 0 ? &f->floats : &f->blocks;
        for (int i = 0; i < 2; i++) run_norm(f, &f->normal); // after a barrier, whatever was before
        uint64_t before = barriers(f);
        run_product(f, &f->normal, matrix);
        assert_int_equal(barriers(f), before);
        expect(f, f->x_numbers, true, f->matrices[m]);
        run_product(f, &f->normal, matrix); // the norm is there by now
        expect(f, f->x_numbers, true, f->matrices[m]);
    }
}

static void test_changed_input(void **state) {
    Fixture *f = fixture_of(state);
    run_norm(f, &f->normal);
    run_fill(f, &f->x, 3);
    run_product(f, &f->normal, &f->blocks);
    expect(f, f->x_numbers, true, f->matrices[1]);
}

static void test_changed_weight(void **state) {
    Fixture *f = fixture_of(state);
    run_norm(f, &f->normal);
    run_fill(f, &f->weight, 3);
    run_product(f, &f->normal, &f->floats);
    expect(f, f->x_numbers, true, f->matrices[0]);
}

static void test_changed_result(void **state) {
    Fixture *f = fixture_of(state);
    float twos[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) twos[i] = 2;
    run_norm(f, &f->normal);
    run_fill(f, &f->normal, 2);
    run_product(f, &f->normal, &f->blocks);
    expect(f, twos, false, f->matrices[1]);
}

static void test_norm_in_place(void **state) {
    Fixture *f = fixture_of(state);
    run_norm(f, &f->x);
    run_product(f, &f->x, &f->blocks);
    expect(f, f->x_numbers, true, f->matrices[1]);
}

// The input's memory is taken again before the product.
static void test_input_that_is_gone(void **state) {
    Fixture *f = fixture_of(state);
    run_norm(f, &f->normal);
    buffer_release(f->x.buffer);
    f->x = make_rows(f->device, ROWS, WIDTH);
    run_fill(f, &f->x, 5);
    run_product(f, &f->normal, &f->floats);
    expect(f, f->x_numbers, true, f->matrices[0]);
    run_norm(f, &f->normal);
    buffer_release(f->x.buffer);
    pool_clear_cache(f->device);
    f->x = make_rows(f->device, ROWS, WIDTH);
    run_product(f, &f->normal, &f->floats);
    float fives[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) fives[i] = 5;
    expect(f, fives, true, f->matrices[0]);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_product_makes_norm_itself),
        TEST(test_changed_input),
        TEST(test_changed_weight),
        TEST(test_changed_result),
        TEST(test_norm_in_place),
        TEST(test_input_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
