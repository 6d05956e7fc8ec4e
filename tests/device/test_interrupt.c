// An interrupt stops a kernel between its parts, with an error and nothing lost; LAPACK, which
// cannot be stopped, is left behind in a copy of the process.
#include "tests/device/arrays.h"
#include "tests/device/opened.h"

#include "device/buffer.h"
#include "device/cpu/apart.h"
#include "device/work.h"

static int asked, allowed; // how often somebody asked, and from when on the answer is yes

static bool interrupted(void) {
    return __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) > allowed;
}

static Status run_here(KernelId kernel, const KernelCall *call) {
    KernelCall copy = *call;
    copy.kernel = kernel;
    return cpu_backend.run(NULL, &copy);
}

// Runs a kernel on the CPU while the user interrupts at the question number `after`, and then to
// its end.
static void expect_stop(KernelId kernel, KernelCall *call, int after) {
    asked = 0;
    allowed = after;
    device_set_interrupted(interrupted);
    call->op_name = "kernel";
    Status stopped = run_here(kernel, call);
    device_set_interrupted(NULL);
    if (stopped != STATUS_INTERRUPT) fail_msg("kernel %d is not stopped: %d", (int)kernel, stopped);
    assert_string_equal(error_current()->message, "interrupted");
    assert_int_equal(run_here(kernel, call), STATUS_OK);
}

static void make(Array *array, DType dtype, int rank, const int64_t *dims) {
    array_make(array, dtype, LAYOUT_PLAIN, rank, dims);
    array_fill_random(array);
}

static void stop_one(KernelId kernel, const KernelOptions *options, Array *in, int n_inputs,
                     Array *out, int n_outputs) {
    KernelCall call = {.n_inputs = n_inputs, .n_outputs = n_outputs, .options = *options};
    for (int i = 0; i < n_inputs; i++) call.inputs[i].view = array_view(&in[i]);
    for (int i = 0; i < n_outputs; i++) {
        out[i].buffer.device = device; // scratch memory comes from there
        call.outputs[i] = array_view(&out[i]);
    }
    for (int after = 0; after < 3; after++) expect_stop(kernel, &call, after);
    for (int i = 0; i < n_inputs; i++) array_free(&in[i]);
    for (int i = 0; i < n_outputs; i++) array_free(&out[i]);
    assert_int_equal(pool_statistics(device).live_bytes, 0);
}

static void test_rows(void **state) {
    (void)state;
    int64_t row[2] = {1, 1 << 20};
    for (int few = 0; few < 2; few++) {
        Array in, out[2];
        make(&in, DTYPE_FLOAT32, 2, row);
        make(&out[0], DTYPE_FLOAT32, 2, row);
        make(&out[1], DTYPE_INT64, 2, row);
        stop_one(KERNEL_SORT, &(KernelOptions){.count = few ? 100 : 1 << 20}, &in, 1, out, 2);
    }
    Array in, out;
    make(&in, DTYPE_FLOAT32, 2, row);
    make(&out, DTYPE_FLOAT32, 2, row);
    stop_one(KERNEL_SCAN, &(KernelOptions){0}, &in, 1, &out, 1);
}

static void test_products(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT64};
    for (int i = 0; i < 4; i++) {
        Array in[2], out;
        for (int k = 0; k < 2; k++) make(&in[k], dtypes[i], 2, (int64_t[]){600, 600});
        make(&out, dtypes[i], 2, (int64_t[]){600, 600});
        stop_one(KERNEL_MATMUL, &(KernelOptions){0}, in, 2, &out, 1);
    }
    Array in[2], out;
    make(&in[0], DTYPE_FLOAT32, 4, (int64_t[]){8, 8, 64, 64});
    make(&in[1], DTYPE_FLOAT32, 4, (int64_t[]){16, 8, 3, 3});
    make(&out, DTYPE_FLOAT32, 4, (int64_t[]){8, 16, 62, 62});
    KernelOptions options = {.integers = {1, 1, 0, 0, 1, 1, 1}};
    stop_one(KERNEL_CONV2D, &options, in, 2, &out, 1);
}

// How many processes this one has started and not waited for.
static int children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    int count = 0, one;
    while (file && fscanf(file, "%d", &one) == 1) count++;
    if (file) fclose(file);
    return count;
}

// A matrix so large that it is worked on apart.
static void stop_linalg(LinalgOp op, int n_outputs, const int *own) {
    enum { N = 700 };
    Array in[2], out[3];
    int64_t square[2] = {N, N};
    for (int i = 0; i < 2; i++) make(&in[i], DTYPE_FLOAT64, 2, square);
    for (int64_t i = 0; i < N; i++) array_set(&in[0], i * N + i, 2 * N);
    for (int i = 0; i < n_outputs; i++) make(&out[i], DTYPE_FLOAT64, own[i], square);
    stop_one(KERNEL_LINALG, &(KernelOptions){.op = (int)op}, in, op == LINALG_SOLVE ? 2 : 1, out,
             n_outputs);
    if (op != LINALG_SOLVE) array_free(&in[1]);
    assert_int_equal(children(), 0);
}

static void test_linalg(void **state) {
    (void)state;
    stop_linalg(LINALG_INV, 1, (int[]){2});
    stop_linalg(LINALG_DET, 1, (int[]){0});
    stop_linalg(LINALG_SOLVE, 1, (int[]){2});
    stop_linalg(LINALG_CHOLESKY, 1, (int[]){2});
    stop_linalg(LINALG_QR, 2, (int[]){2, 2});
    stop_linalg(LINALG_SVD, 3, (int[]){2, 1, 2});
    stop_linalg(LINALG_EIGH, 2, (int[]){1, 2});
}

static void test_what_is_done_whole(void **state) {
    (void)state;
    Array in, out;
    make(&in, DTYPE_FLOAT32, 2, (int64_t[]){1, 1 << 20});
    make(&out, DTYPE_FLOAT32, 2, (int64_t[]){1, 1 << 20});
    KernelCall call = {.n_inputs = 1, .n_outputs = 1, .op_name = "scan"};
    call.inputs[0].view = array_view(&in);
    call.outputs[0] = array_view(&out);
    allowed = asked = 0;
    device_set_interrupted(interrupted);
    assert_false(device_hold_interrupts(true));
    assert_int_equal(run_here(KERNEL_SCAN, &call), STATUS_OK);
    assert_true(device_hold_interrupts(false));
    assert_int_equal(run_here(KERNEL_SCAN, &call), STATUS_INTERRUPT);
    device_set_interrupted(NULL);
    array_free(&in);
    array_free(&out);
}

// --- apart

static Status fill(const void *context) {
    int *const *shared = context;
    **shared = 42;
    return STATUS_OK;
}

static Status fail_there(const void *context) {
    (void)context;
    return (fail)(STATUS_VALUE, "of the copy");
}

static Status end_there(const void *context) {
    (void)context;
    raise(SIGKILL);
    return STATUS_OK;
}

static void test_apart(void **state) {
    (void)state;
    int *shared = apart_allocate(sizeof *shared);
    assert_int_equal(apart_run(fill, &shared, "fill"), STATUS_OK);
    assert_int_equal(*shared, 42);
    apart_free(shared, sizeof *shared);
    assert_int_equal(apart_run(fail_there, NULL, "fill"), STATUS_VALUE);
    assert_string_equal(error_current()->message, "of the copy");
    assert_int_equal(apart_run(end_there, NULL, "fill"), STATUS_DEVICE);
    assert_string_equal(error_current()->message, "fill: the process that worked on it was ended");
    assert_int_equal(children(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_products),
        cmocka_unit_test(test_linalg), cmocka_unit_test(test_what_is_done_whole),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
