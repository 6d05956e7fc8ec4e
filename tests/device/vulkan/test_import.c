// Programs in a device's own text: constants in it, devices without it, and on hardware that has it
// a product that is made by one.
#include "device/vulkan/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

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
    char *made = import_text(text, n_constants, constants);
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
        const VulkanModule *module = &vulkan_modules[i];
        assert_true((module->text != NULL) == ((module->needs & VULKAN_NEEDS_IMPORT) != 0));
        if (!module->text) continue;
        assert_int_equal(strlen(module->text) + 1, module->bytes);
        char *text = import_text(module->text, 4, constants);
        assert_null(strchr(text, '$'));
        assert_null(strchr(text, '#'));
        assert_non_null(strstr(text, ".visible .entry entry("));
        free(text);
        programs++;
    }
    assert_int_equal(programs, 8);
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

static void test_refused(void **state) {
    if (!*state) skip();
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanDispatch dispatch = {.shader = SHADER_MATMUL_HALF_IMPORT, .n_constants = 4};
    uint32_t has = vulkan->physical.features.has;
    vulkan->physical.features.has &= ~(uint32_t)VULKAN_NEEDS_IMPORT;
    assert_false(vulkan_imports(device, &dispatch));
    dispatch.constants[0] = 1; // made by nobody before
    VulkanProgram program;
    assert_int_equal(pipeline_find(vulkan, &dispatch, &program), STATUS_DEVICE);
    assert_non_null(strstr(error_current()->message,
                           " has no import of programs, which MATMUL_HALF_IMPORT needs"));
    error_clear();
    vulkan->physical.features.has = has;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_programs),
        cmocka_unit_test_setup_teardown(test_product, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_refused, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
