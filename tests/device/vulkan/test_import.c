// Programs in a device's own text: constants in it, devices without it, and on hardware that has it
// a product that is made by one.
#include "device/vulkan/core.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/cpu/quant.h"
#include "tests/device/vulkan/open.h"

static Device *device;

static int open_fixture(void **state) {
    int status;
    *state = open_for_fixture(&device, &status) ? &device : NULL;
    return status;
}

static int close_fixture(void **state) {
    if (*state) device_close(device);
    return 0;
}

static void assert_text(const char *text, int n_constants, const char *want) {
    static const uint32_t constants[] = {7, 4294967295u, 0};
    VulkanModule module = {.data = text, .bytes = strlen(text)};
    char *made = import_text(&module, n_constants, constants);
    assert_string_equal(made, want);
    free(made);
}

static void test_text(void **state) {
    (void)state;
    assert_text("a $0, $1;\n$2$0$", 3, "a 7, 4294967295;\n07$");
    assert_text("$0 $1 $x $", 1, "7 $1 $x $");
    assert_text("", 3, "");
}

// Every program says all that is put into it by a dispatch.
static void test_programs(void **state) {
    (void)state;
    static const uint32_t constants[] = {0, 1, 0, 0};
    int programs = 0;
    for (int i = 0; i < VULKAN_SHADER_COUNT; i++) {
        const VulkanModule *module = vulkan_module((VulkanShader)i);
        if (!module_is_imported(module) || !TL_VULKAN_PTX) continue;
        char *text = import_text(module, 4, constants);
        assert_null(strchr(text, '$'));
        assert_null(strchr(text, '#'));
        assert_non_null(strstr(text, ".visible .entry entry("));
        free(text);
        programs++;
    }
    assert_int_equal(programs, TL_VULKAN_PTX ? 20 : 0);
}

static Status multiply(TensorView *a, TensorView *b, TensorView *out) {
    KernelCall call = {.kernel = KERNEL_MATMUL, .n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = a;
    call.inputs[1].view = b;
    call.outputs[0] = out;
    return device->backend->run(device, &call);
}

static void make(TensorView *view, int64_t rows, int64_t columns) {
    BufferLabel label = {.dtype = DTYPE_FLOAT16, .rank = 2, .dims = {rows, columns}};
    *view = (TensorView){
        .dtype = DTYPE_FLOAT16, .rank = 2, .dims = {rows, columns}, .strides = {columns, 1}};
    assert_int_equal(buffer_new(device, (size_t)(rows * columns) * 2, &label, &view->buffer),
                     STATUS_OK);
}

// Rows of n by columns of m ones: every result is k.
static void test_product(void **state) {
    if (!*state) skip();
    enum { M = 1024, N = 2048, K = 192 };
    VulkanDevice *vulkan = vulkan_of(device);
    TensorView views[3];
    make(&views[0], M, K);
    make(&views[1], K, N);
    make(&views[2], M, N);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            vulkan_fill(device, views[i].buffer, 0, views[i].buffer->bytes, 0x3C003C00), STATUS_OK);
    uint32_t before = vulkan->ledger[OBJECT_IMPORTED_FUNCTION];
    assert_int_equal(multiply(&views[0], &views[1], &views[2]), STATUS_OK);
    uint16_t *results = malloc(M * N * sizeof *results);
    assert_int_equal(buffer_download(views[2].buffer, 0, results, M * N * sizeof *results),
                     STATUS_OK);
    for (int i = 0; i < M * N; i++) assert_int_equal(results[i], 0x5A00); // 192
    free(results);
    bool has = (vulkan->physical.features.has & VULKAN_NEEDS_IMPORT) != 0;
    bool takes = has && !vulkan->refuses_imports;
    assert_int_equal(vulkan->ledger[OBJECT_IMPORTED_FUNCTION] - before, takes);
    assert_int_equal(vulkan->ledger[OBJECT_IMPORTED_MODULE],
                     vulkan->ledger[OBJECT_IMPORTED_FUNCTION]);
    print_message("%s, programs taken: %d\n", device->description, takes);
    for (int i = 0; i < 3; i++) buffer_release(views[i].buffer);
}

// --- a row by blocks

// Where a block holds its float16 factors; -1: it has one only.
typedef struct Type {
    DType dtype;
    int factor, second;
} Type;
static const Type types[] = {
    {DTYPE_Q6_K, 208, -1}, {DTYPE_Q4_1, 0, 2},    {DTYPE_Q5_0, 0, -1},   {DTYPE_Q5_1, 0, 2},
    {DTYPE_Q2_K, 80, 82},  {DTYPE_Q3_K, 108, -1}, {DTYPE_Q4_K, 0, 2},    {DTYPE_Q5_K, 0, 2},
    {DTYPE_IQ4_NL, 0, -1}, {DTYPE_IQ4_XS, 0, -1}, {DTYPE_TQ1_0, 52, -1}, {DTYPE_TQ2_0, 64, -1},
};

static uint32_t random_word(void) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

// Random bits with factors of 2^-7 to 2^-6, on the device and here.
static uint8_t *make_blocks(const Type *type, int64_t n, int64_t k, TensorView *view) {
    const DTypeInfo *info = &dtype_info[type->dtype];
    int64_t count = n * k / info->block_elements;
    size_t bytes = (size_t)(count * info->block_bytes);
    uint8_t *blocks = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) blocks[i] = (uint8_t)random_word();
    for (int64_t i = 0; i < count; i++) {
        uint8_t *block = blocks + i * info->block_bytes;
        block[type->factor + 1] = 0x20;
        if (type->second >= 0) block[type->second + 1] = 0x20;
    }
    *view = (TensorView){.dtype = type->dtype, .rank = 2, .dims = {k, n}, .strides = {1, k}};
    BufferLabel label = {.dtype = type->dtype, .rank = 2, .dims = {n, k}};
    assert_int_equal(buffer_new(device, bytes, &label, &view->buffer), STATUS_OK);
    assert_int_equal(buffer_upload(view->buffer, 0, blocks, bytes), STATUS_OK);
    return blocks;
}

static void make_floats(TensorView *view, int64_t count) {
    BufferLabel label = {.dtype = DTYPE_FLOAT32, .rank = 2, .dims = {1, count}};
    *view =
        (TensorView){.dtype = DTYPE_FLOAT32, .rank = 2, .dims = {1, count}, .strides = {count, 1}};
    assert_int_equal(buffer_new(device, (size_t)count * 4, &label, &view->buffer), STATUS_OK);
}

// A column's product is nearer than float32 sums of k products would have to be (as near where
// minima are added, which may cancel), and of the same class where it is not finite.
static void check_column(const Type *type, const float *row, const uint8_t *column, int64_t k,
                         float found) {
    float *weights = malloc((size_t)k * sizeof *weights);
    quant_dequantize(type->dtype, column, weights, k);
    double want = 0, size = 0;
    for (int64_t i = 0; i < k; i++) {
        want += (double)row[i] * (double)weights[i];
        size += fabs((double)row[i] * (double)weights[i]);
    }
    free(weights);
    double bound = (type->second < 0 ? 0x1p-22 : 4 * 0x1p-24 * sqrt((double)k)) * size;
    bool same = isfinite(want) ? fabs((double)found - want) <= bound
                : isnan(want)  ? isnan(found)
                               : (double)found == want;
    if (!same)
        fail_msg("%s, k %lld: %.9g, not %.9g", dtype_name(type->dtype), (long long)k, (double)found,
                 want);
}

// `strange`: one number of the row is this, unless it is 0. Every result must be there; those of a
// few columns, the last ones among them, are compared.
static void check_row(const Type *type, int64_t k, float strange) {
    const DTypeInfo *info = &dtype_info[type->dtype];
    int64_t row_bytes = k / info->block_elements * info->block_bytes;
    int64_t n = 40003; // enough for the largest device there is
    TensorView a, b, out;
    uint8_t *blocks = make_blocks(type, n, k, &b);
    make_floats(&a, k);
    make_floats(&out, n);
    float *row = malloc((size_t)k * sizeof *row), *results = malloc((size_t)n * sizeof *results);
    for (int64_t i = 0; i < k; i++)
        row[i] = (float)((double)random_word() * 0x1p-31 - 1) * (i % 97 == 5 ? 1000.0f : 1.0f);
    if (strange != 0) row[k / 2 + 1] = strange;
    assert_int_equal(buffer_upload(a.buffer, 0, row, (size_t)k * sizeof *row), STATUS_OK);
    assert_int_equal(
        vulkan_fill(device, out.buffer, 0, (size_t)n * sizeof *results / 4 * 4, 0x7F800000),
        STATUS_OK);
    assert_int_equal(multiply(&a, &b, &out), STATUS_OK);
    assert_int_equal(buffer_download(out.buffer, 0, results, (size_t)n * sizeof *results),
                     STATUS_OK);
    for (int64_t i = 0; i < n && strange == 0; i++) assert_true(isfinite(results[i]));
    for (int64_t i = 0; i < n; i += i < 40 || i > n - 40 ? 1 : 61)
        check_column(type, row, blocks + i * row_bytes, k, results[i]);
    free(row);
    free(results);
    free(blocks);
    buffer_release(a.buffer);
    buffer_release(b.buffer);
    buffer_release(out.buffer);
}

static void test_rows(void **state) {
    if (!*state) skip();
    VulkanDevice *vulkan = vulkan_of(device);
    if (!(vulkan->physical.features.has & VULKAN_NEEDS_IMPORT)) skip();
    enum { TYPES = sizeof types / sizeof *types };
    uint32_t before = vulkan->ledger[OBJECT_IMPORTED_FUNCTION];
    for (int i = 0; i < TYPES; i++) {
        bool small = dtype_info[types[i].dtype].block_elements == 32;
        check_row(&types[i], small ? 288 : 256, 0);
        check_row(&types[i], 768, 0);
        check_row(&types[i], 512, i % 2 ? INFINITY : -INFINITY);
        check_row(&types[i], 256, NAN);
    }
    check_row(&types[0], 4352, 0);
    bool takes = !vulkan->refuses_imports; // the last one with more room
    assert_int_equal(vulkan->ledger[OBJECT_IMPORTED_FUNCTION] - before, takes ? TYPES + 1 : 0);
}

static void test_refused(void **state) {
    if (!*state) skip();
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanDispatch dispatch = {.shader = SHADER_MATMUL_HALF_IMPORT,
                               VULKAN_CONSTANTS(matmul_import)};
    uint32_t has = vulkan->physical.features.has;
    vulkan->physical.features.has &= ~(uint32_t)VULKAN_NEEDS_IMPORT;
    assert_false(vulkan_imports(device, &dispatch));
    dispatch.constants.matmul_import.a_across = 1; // made by nobody before
    VulkanProgram program;
    assert_int_equal(pipeline_find(vulkan, &dispatch, &program), STATUS_DEVICE);
    assert_non_null(strstr(error_current()->message,
                           " has no import of programs, which MATMUL_HALF_IMPORT needs"));
    error_clear();
    vulkan->physical.features.has = has;
}

// The switch leaves a device that takes programs as one that does not.
static void test_switch(void **state) {
    (void)state;
    setenv("TL_VULKAN_PTX", "0", 1);
    Device *without;
    int status;
    bool opened = open_for_fixture(&without, &status);
    unsetenv("TL_VULKAN_PTX");
    if (!opened) skip();
    assert_int_equal(vulkan_of(without)->physical.features.has & VULKAN_NEEDS_IMPORT, 0);
    device_close(without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_programs),
        cmocka_unit_test_setup_teardown(test_product, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_rows, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_refused, open_fixture, close_fixture),
        cmocka_unit_test(test_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
