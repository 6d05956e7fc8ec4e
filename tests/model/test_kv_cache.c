// KV caches: rows grow, views keep their contents, forks do not disturb each other.
#include "tests/support/fixtures.h"

#include "base/memory.h"
#include "device/statistics.h"
#include "model/kv_cache.h"
#include "tensor/op.h"

enum { WIDTH = 3 };

// [rows, WIDTH] with the numbers first, first + 1, ...
static Tensor *rows_from(double first, int64_t rows) {
    double values[64 * WIDTH];
    for (int64_t i = 0; i < rows * WIDTH; i++) values[i] = first + (double)i;
    Shape shape = {.rank = 2, .dims = {rows, WIDTH}};
    Tensor *tensor;
    assert_int_equal(tensor_from_floats(values, &shape, DTYPE_FLOAT32, &tensor), STATUS_OK);
    assert_int_equal(tensor_materialize(tensor), STATUS_OK);
    return tensor;
}

static void append(KvCache *cache, int64_t layer, double first, int64_t rows) {
    Tensor *k = rows_from(first, rows), *v = rows_from(-first, rows);
    assert_int_equal(kv_cache_append(cache, layer, k, v), STATUS_OK);
    tensor_release(k);
    tensor_release(v);
}

static void expect_row(Tensor *tensor, int64_t row, double first) {
    double values[256 * WIDTH];
    assert_int_equal(tensor_read_floats(tensor, values), STATUS_OK);
    for (int64_t i = 0; i < WIDTH; i++) assert_true(values[row * WIDTH + i] == first + (double)i);
}

static KvCache *new_cache(int64_t layers, DType dtype) {
    KvCache *cache;
    assert_int_equal(kv_cache_new(layers, 0, dtype, &cache), STATUS_OK);
    return cache;
}

// MEMORY (15): 22 caches with distinct constants read back distinct.
static void test_layers_are_distinct(void **state) {
    (void)state;
    KvCache *cache = new_cache(22, DTYPE_FLOAT32);
    for (int step = 0; step < 100; step++)
        for (int64_t layer = 0; layer < 22; layer++)
            append(cache, layer, (double)(layer * 1000 + step), 1);
    for (int64_t layer = 0; layer < 22; layer++) {
        Tensor *k, *v;
        assert_int_equal(kv_cache_keys(cache, layer, &k), STATUS_OK);
        assert_int_equal(kv_cache_values(cache, layer, &v), STATUS_OK);
        assert_int_equal(k->view.dims[0], 100);
        for (int step = 0; step < 100; step++) {
            expect_row(k, step, (double)(layer * 1000 + step));
            expect_row(v, step, (double)-(layer * 1000 + step));
        }
        tensor_release(k);
        tensor_release(v);
    }
    kv_cache_release(cache);
}

static void test_growth_is_amortised(void **state) {
    (void)state;
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    KvCache *cache = new_cache(1, DTYPE_FLOAT32);
    append(cache, 0, 0, 1);
    Tensor *k;
    int moves = 0;
    void *handle = NULL;
    for (int i = 0; i < 1000; i++) {
        append(cache, 0, i, 1);
        assert_int_equal(kv_cache_keys(cache, 0, &k), STATUS_OK);
        moves += k->view.buffer->handle != handle;
        handle = k->view.buffer->handle;
        tensor_release(k);
    }
    assert_true(moves <= 6);
    kv_cache_release(cache);
}

static void test_views_survive_truncation(void **state) {
    (void)state;
    KvCache *cache = new_cache(1, DTYPE_FLOAT32);
    append(cache, 0, 10, 4);
    Tensor *before, *after;
    assert_int_equal(kv_cache_keys(cache, 0, &before), STATUS_OK);
    assert_int_equal(kv_cache_truncate(cache, 2), STATUS_OK);
    append(cache, 0, 500, 1);
    assert_int_equal(kv_cache_rows(cache), 3);
    expect_row(before, 2, 16);
    assert_int_equal(kv_cache_keys(cache, 0, &after), STATUS_OK);
    expect_row(after, 1, 13);
    expect_row(after, 2, 500);
    tensor_release(before);
    tensor_release(after);
    kv_cache_release(cache);
}

static void test_forks_are_independent(void **state) {
    (void)state;
    KvCache *cache = new_cache(1, DTYPE_FLOAT32);
    append(cache, 0, 10, 2);
    KvCache *fork = kv_cache_fork(cache);
    append(cache, 0, 100, 1);
    append(fork, 0, 200, 1);
    append(cache, 0, 110, 1);
    Tensor *a, *b;
    assert_int_equal(kv_cache_keys(cache, 0, &a), STATUS_OK);
    assert_int_equal(kv_cache_keys(fork, 0, &b), STATUS_OK);
    expect_row(a, 1, 13);
    expect_row(b, 1, 13);
    expect_row(a, 2, 100);
    expect_row(a, 3, 110);
    expect_row(b, 2, 200);
    tensor_release(a);
    tensor_release(b);
    // A truncated original must not write into what the fork still sees, not even one row.
    KvCache *second = kv_cache_fork(cache);
    assert_int_equal(kv_cache_truncate(cache, 3), STATUS_OK);
    append(cache, 0, 800, 1);
    assert_int_equal(kv_cache_truncate(cache, 1), STATUS_OK);
    append(cache, 0, 900, 1);
    assert_int_equal(kv_cache_keys(second, 0, &b), STATUS_OK);
    expect_row(b, 1, 13);
    expect_row(b, 3, 110);
    tensor_release(b);
    kv_cache_release(second);
    kv_cache_release(fork);
    kv_cache_release(cache);
}

static void test_set_replaces_even_by_its_own_rows(void **state) {
    (void)state;
    KvCache *cache = new_cache(1, DTYPE_FLOAT16);
    append(cache, 0, 10, 3);
    Tensor *k, *v;
    assert_int_equal(kv_cache_keys(cache, 0, &k), STATUS_OK);
    assert_int_equal(kv_cache_values(cache, 0, &v), STATUS_OK);
    assert_int_equal(tensor_dtype(k), DTYPE_FLOAT16);
    assert_int_equal(kv_cache_set(cache, 0, v, k), STATUS_OK);
    tensor_release(k);
    tensor_release(v);
    assert_int_equal(kv_cache_keys(cache, 0, &k), STATUS_OK);
    expect_row(k, 0, -10);
    tensor_release(k);
    kv_cache_release(cache);
}

static void test_refusals(void **state) {
    (void)state;
    KvCache *cache = new_cache(2, DTYPE_FLOAT32), *none;
    Tensor *k = rows_from(0, 2), *v = rows_from(0, 3), *out;
    assert_int_equal(kv_cache_append(cache, 2, k, k), STATUS_INDEX);
    assert_string_equal(error_current()->message,
                        "layer 2 is out of range: the KV cache has 2 layers");
    assert_int_equal(kv_cache_append(cache, 0, k, v), STATUS_SHAPE);
    assert_string_equal(error_current()->message,
                        "keys float32[2, 3] and values float32[3, 3] differ in rows");
    assert_int_equal(kv_cache_keys(cache, 1, &out), STATUS_VALUE);
    assert_string_equal(error_current()->message, "layer 1 of the KV cache is empty");
    assert_int_equal(kv_cache_new(0, 0, DTYPE_FLOAT32, &none), STATUS_VALUE);
    assert_int_equal(kv_cache_new(1, 0, DTYPE_INT64, &none), STATUS_DTYPE);
    tensor_release(k);
    tensor_release(v);
    kv_cache_release(cache);
}

// Views do not make an append copy what is there: the new row lies behind what they see.
static void test_append_keeps_the_storage(void **state) {
    (void)state;
    KvCache *cache = new_cache(1, DTYPE_FLOAT32);
    Tensor *before, *after;
    append(cache, 0, 0, 2);
    assert_int_equal(kv_cache_keys(cache, 0, &before), STATUS_OK);
    append(cache, 0, 10, 1);
    assert_int_equal(kv_cache_keys(cache, 0, &after), STATUS_OK);
    assert_ptr_equal(before->view.buffer, after->view.buffer);
    tensor_release(before);
    tensor_release(after);
    kv_cache_release(cache);
}

// Where the values do not fit, the keys are not there either.
static void test_refused_memory(void **state) {
    (void)state;
    enum { WIDE = 1 << 20 };
    KvCache *cache;
    Device *device;
    Tensor *k = rows_from(0, 1), *v;
    Shape shape = {.rank = 2, .dims = {1, WIDE}};
    assert_int_equal(kv_cache_new(1, 1, DTYPE_FLOAT32, &cache), STATUS_OK);
    assert_int_equal(device_default(&device), STATUS_OK);
    assert_int_equal(tensor_new(device, DTYPE_FLOAT32, &shape, &v), STATUS_OK);
    memory_refuse(0, WIDE);
    assert_int_equal(kv_cache_append(cache, 0, k, v), STATUS_MEMORY);
    memory_refuse(0, 0);
    assert_int_equal(kv_cache_rows(cache), 0);
    assert_int_equal(kv_cache_append(cache, 0, k, v), STATUS_OK);
    assert_int_equal(kv_cache_rows(cache), 1);
    tensor_release(k);
    tensor_release(v);
    kv_cache_release(cache);
}

static int close_device(void **state) {
    (void)state;
    Text report = {0};
    uint64_t leaked = memory_check(device_default_opened(), &report);
    text_free(&report);
    device_default_close();
    return leaked ? 1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_are_distinct),
        cmocka_unit_test(test_growth_is_amortised),
        cmocka_unit_test(test_views_survive_truncation),
        cmocka_unit_test(test_forks_are_independent),
        cmocka_unit_test(test_set_replaces_even_by_its_own_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_append_keeps_the_storage),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
