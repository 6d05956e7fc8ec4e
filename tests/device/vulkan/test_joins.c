// Products and the operation that follows them, made by one dispatch of the Vulkan device: the same
// bytes as by several, whatever shares memory. Skipped where no Vulkan device is usable.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/kernel.h"
#include "device/vulkan/core.h"
#include "model/kv_cache.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

#include "open.h"

enum { WIDTH = 64, COLUMNS = 2048, ROWS_MAX = 3, NUMBERS = ROWS_MAX * COLUMNS };

// What a map may read and write. X is the row of the products, at the beginning of its memory.
typedef enum Place { X, W1, W2, O1, O2, R, S, PLACES } Place;

typedef struct Fixture {
    Device *device;
    Buffer *buffers[PLACES];
} Fixture;

static int set_up(void **state) {
    static Fixture fixture;
    fixture = (Fixture){0};
    *state = NULL;
    int status;
    if (!open_for_fixture(&fixture.device, &status)) return status;
    for (int i = 0; i < PLACES; i++) {
        size_t count = i == W1 || i == W2 ? COLUMNS * WIDTH : NUMBERS;
        if (buffer_new(fixture.device, count * sizeof(float), NULL, &fixture.buffers[i]) !=
            STATUS_OK)
            return 1;
    }
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    Fixture *fixture = *state;
    if (!fixture) return 0;
    for (int i = 0; i < PLACES; i++) buffer_release(fixture->buffers[i]);
    device_close(fixture->device);
    return 0;
}

static TensorView matrix_of(Buffer *buffer, int64_t rows, int64_t columns) {
    return (TensorView){buffer, 0, DTYPE_FLOAT32, 2, {rows, columns}, {columns, 1}};
}

static void run(const Fixture *fixture, const KernelCall *call) {
    assert_int_equal(fixture->device->backend->run(fixture->device, call), STATUS_OK);
}

static void fill_random(const Fixture *fixture, Place place, int64_t rows, int64_t columns) {
    TensorView view = matrix_of(fixture->buffers[place], rows, columns);
    run(fixture, &(KernelCall){.kernel = KERNEL_RANDOM,
                               .n_outputs = 1,
                               .outputs = {&view},
                               .options = {.op = 1, .scalars = {0, 1}, .integers = {place + 1}},
                               .op_name = "randn"});
}

static void run_product(const Fixture *fixture, int64_t rows, Place weight, Place out) {
    TensorView row = matrix_of(fixture->buffers[X], rows, WIDTH);
    TensorView to = matrix_of(fixture->buffers[out], rows, COLUMNS);
    TensorView matrix = {fixture->buffers[weight], 0,         DTYPE_FLOAT32, 2,
                         {WIDTH, COLUMNS},         {1, WIDTH}};
    run(fixture, &(KernelCall){.kernel = KERNEL_MATMUL,
                               .n_inputs = 2,
                               .n_outputs = 1,
                               .inputs = {{.view = &row}, {.view = &matrix}},
                               .outputs = {&to},
                               .op_name = "linear"});
}

typedef struct Case {
    int products;
    MapOp op;
    Place a, b, result;
    int kernels; // that are recorded for it
} Case;

static void run_map(const Fixture *fixture, int64_t rows, const Case *entry) {
    TensorView a = matrix_of(fixture->buffers[entry->a], rows, COLUMNS);
    TensorView b = matrix_of(fixture->buffers[entry->b], rows, COLUMNS);
    TensorView to = matrix_of(fixture->buffers[entry->result], rows, COLUMNS);
    run(fixture, &(KernelCall){.kernel = KERNEL_MAP,
                               .n_inputs = 2,
                               .n_outputs = 1,
                               .inputs = {{.view = &a}, {.view = &b}},
                               .outputs = {&to},
                               .options = {.n_steps = 1,
                                           .steps = {{(uint16_t)entry->op, 0, 1, 0}},
                                           .compute = DTYPE_FLOAT32},
                               .op_name = "map"});
}

static int kernels_recorded(const Fixture *fixture) {
    const VulkanStream *stream = &((const VulkanDevice *)fixture->device->state)->stream;
    int open = stream->open ? stream->batches[stream->serial % VULKAN_BATCHES].kernels : 0;
    return open + stream->held_count;
}

// All memory after the case; `apart`: with a submission between the products and the map.
static float *run_case(const Fixture *fixture, int64_t rows, const Case *entry, bool apart) {
    const DeviceBackend *backend = fixture->device->backend;
    fill_random(fixture, X, ROWS_MAX, COLUMNS);
    fill_random(fixture, W1, COLUMNS, WIDTH);
    fill_random(fixture, W2, COLUMNS, WIDTH);
    for (Place place = O1; place < PLACES; place++) fill_random(fixture, place, ROWS_MAX, COLUMNS);
    assert_int_equal(backend->wait(fixture->device), STATUS_OK);
    run_product(fixture, rows, W1, O1);
    if (entry->products == 2) run_product(fixture, rows, W2, O2);
    if (apart) assert_int_equal(backend->submit(fixture->device), STATUS_OK);
    run_map(fixture, rows, entry);
    if (!apart) assert_int_equal(kernels_recorded(fixture), entry->kernels);
    float *numbers = malloc(PLACES * NUMBERS * sizeof *numbers);
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(buffer_download(fixture->buffers[i], 0, numbers + i * NUMBERS,
                                         NUMBERS * sizeof *numbers),
                         STATUS_OK);
    return numbers;
}

static void test_bytes_are_those_of_several(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    static const Case cases[] = {
        {1, MAP_ADD, O1, R, S, 1},      {1, MAP_ADD, R, O1, S, 1},
        {1, MAP_ADD, O1, R, O1, 1},     {1, MAP_ADD, R, O1, R, 1},
        {1, MAP_ADD, O1, O1, S, 2},     {1, MAP_ADD, O1, R, X, 2},
        {1, MAP_ADD, O1, X, S, 1},      {1, MAP_ADD, S, R, S, 2},
        {1, MAP_MUL, O1, R, S, 2},      {2, MAP_ADD, O2, R, S, 2},
        {2, MAP_ADD, O1, R, S, 3},      {2, MAP_ADD, O1, O2, S, 2},
        {2, MAP_SWIGLU, O1, O2, S, 1},  {2, MAP_SWIGLU, O1, O2, O1, 1},
        {2, MAP_SWIGLU, O1, O2, O2, 1}, {2, MAP_SWIGLU, O2, O1, S, 3},
        {2, MAP_SWIGLU, O1, R, S, 3},   {2, MAP_SWIGLU, O1, O2, X, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int64_t rows = 1; rows <= ROWS_MAX; rows += 2) {
            float *joined = run_case(fixture, rows, &cases[i], false);
            float *apart = run_case(fixture, rows, &cases[i], true);
            assert_memory_equal(joined, apart, PLACES * NUMBERS * sizeof *joined);
            free(joined);
            free(apart);
        }
    }
}

// A bias is as long as the row but not as the product of several; what comes between is not passed.
static void test_what_is_not_joined(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    assert_int_equal(fixture->device->backend->wait(fixture->device), STATUS_OK);
    run_product(fixture, 2, W1, O1);
    assert_int_equal(kernels_recorded(fixture), 1);
    TensorView product = matrix_of(fixture->buffers[O1], 2, COLUMNS), to = product;
    TensorView bias = {fixture->buffers[R], 0, DTYPE_FLOAT32, 2, {2, COLUMNS}, {0, 1}};
    to.buffer = fixture->buffers[S];
    run(fixture,
        &(KernelCall){
            .kernel = KERNEL_MAP,
            .n_inputs = 2,
            .n_outputs = 1,
            .inputs = {{.view = &product}, {.view = &bias}},
            .outputs = {&to},
            .options = {.n_steps = 1, .steps = {{MAP_ADD, 0, 1, 0}}, .compute = DTYPE_FLOAT32},
            .op_name = "add"});
    assert_int_equal(kernels_recorded(fixture), 2);
    run_product(fixture, 1, W1, O1);
    fill_random(fixture, O2, 1, COLUMNS);
    run_map(fixture, 1, &(Case){1, MAP_ADD, O1, R, S, 0});
    assert_int_equal(kernels_recorded(fixture), 5);
}

// Heads of 64 numbers without gaps: [rows, heads, 64].
static TensorView heads_of(Buffer *buffer, int64_t rows, int64_t heads) {
    return (TensorView){buffer, 0, DTYPE_FLOAT32, 3, {rows, heads, 64}, {heads * 64, 64, 1}};
}

// Rotates what X has of the shape.
static void run_rope(const Fixture *fixture, const TensorView *out) {
    TensorView in = heads_of(fixture->buffers[X], out->dims[0], out->dims[1]);
    run(fixture, &(KernelCall){.kernel = KERNEL_ROPE,
                               .n_inputs = 1,
                               .n_outputs = 1,
                               .inputs = {{.view = &in}},
                               .outputs = {out},
                               .options = {.scalars = {10000, 1}, .integers = {5, 48}},
                               .op_name = "rope"});
}

static void run_copy(const Fixture *fixture, const TensorView *in, const TensorView *out) {
    run(fixture, &(KernelCall){.kernel = KERNEL_COPY,
                               .n_inputs = 1,
                               .n_outputs = 1,
                               .inputs = {{.view = in}},
                               .outputs = {out},
                               .op_name = "append"});
}

// A copy of all that was rotated is made with it; one of a part, or to where it came from, is not.
static void test_copies_of_rotated_heads(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    static const struct {
        Place to;
        size_t offset;
        int64_t count;
        int kernels;
    } cases[] = {{R, 0, 256, 1}, {R, 512, 256, 1}, {R, 0, 128, 2}, {X, 2048, 256, 2}};
    enum { HEADS = 4, ROTATED = HEADS * 64 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TensorView heads = heads_of(fixture->buffers[O1], 1, HEADS);
        TensorView in = matrix_of(heads.buffer, 1, cases[i].count), out = in;
        out.buffer = fixture->buffers[cases[i].to];
        out.offset = cases[i].offset;
        fill_random(fixture, X, ROWS_MAX, COLUMNS);
        fill_random(fixture, R, ROWS_MAX, COLUMNS);
        assert_int_equal(fixture->device->backend->wait(fixture->device), STATUS_OK);
        run_rope(fixture, &heads);
        run_copy(fixture, &in, &out);
        assert_int_equal(kernels_recorded(fixture), cases[i].kernels);
        float rotated[ROTATED], copied[ROTATED], after;
        size_t bytes = (size_t)cases[i].count * sizeof *copied;
        Buffer *to = fixture->buffers[cases[i].to], *guard = fixture->buffers[O2];
        assert_int_equal(buffer_download(fixture->buffers[O1], 0, rotated, sizeof rotated),
                         STATUS_OK);
        assert_int_equal(buffer_download(to, cases[i].offset, copied, bytes), STATUS_OK);
        assert_memory_equal(copied, rotated, bytes);
        fill_random(fixture, cases[i].to, ROWS_MAX, COLUMNS);
        VulkanPlace behind = {to, cases[i].offset + bytes};
        assert_int_equal(vulkan_copy(fixture->device, behind, (VulkanPlace){guard, 0}, 4),
                         STATUS_OK);
        assert_int_equal(buffer_download(guard, 0, &after, 4), STATUS_OK);
        run_rope(fixture, &heads);
        run_copy(fixture, &in, &out);
        assert_int_equal(buffer_download(to, cases[i].offset + bytes, copied, 4), STATUS_OK);
        assert_memory_equal(copied, &after, 4);
    }
}

// Rows of heads are copied to where a cache has them, one head after the other.
static void test_copies_of_rotated_rows(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    enum { ROWS = 3, HEADS = 4, CAPACITY = 7, AT = 2 };
    TensorView rotated = heads_of(fixture->buffers[O1], ROWS, HEADS), copy = rotated;
    copy.buffer = fixture->buffers[R];
    copy.offset = AT * 64 * sizeof(float);
    copy.strides[0] = 64;
    copy.strides[1] = CAPACITY * 64;
    fill_random(fixture, X, ROWS_MAX, COLUMNS);
    fill_random(fixture, R, ROWS_MAX, COLUMNS);
    static float before[HEADS][CAPACITY][64], after[HEADS][CAPACITY][64], made[ROWS][HEADS][64];
    assert_int_equal(buffer_download(copy.buffer, 0, before, sizeof before), STATUS_OK);
    run_rope(fixture, &rotated);
    run_copy(fixture, &rotated, &copy);
    assert_int_equal(kernels_recorded(fixture), 1);
    assert_int_equal(buffer_download(rotated.buffer, 0, made, sizeof made), STATUS_OK);
    assert_int_equal(buffer_download(copy.buffer, 0, after, sizeof after), STATUS_OK);
    for (int row = 0; row < ROWS; row++)
        for (int head = 0; head < HEADS; head++)
            memcpy(before[head][AT + row], made[row][head], sizeof made[row][head]);
    assert_memory_equal(after, before, sizeof after);
}

// Keys that are rotated are in the cache without a dispatch of their own.
static void test_rotated_keys_of_a_cache(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    KvCache *cache;
    Tensor *keys, *values;
    Shape shape = {.rank = 3, .dims = {1, 4, 64}};
    assert_int_equal(kv_cache_new(1, 16, DTYPE_FLOAT32, &cache), STATUS_OK);
    assert_int_equal(tensor_new(fixture->device, DTYPE_FLOAT32, &shape, &keys), STATUS_OK);
    assert_int_equal(tensor_new(fixture->device, DTYPE_FLOAT32, &shape, &values), STATUS_OK);
    for (int token = 0; token < 2; token++) {
        assert_int_equal(fixture->device->backend->wait(fixture->device), STATUS_OK);
        run_rope(fixture, &keys->view);
        assert_int_equal(kv_cache_append(cache, 0, keys, values), STATUS_OK);
        assert_int_equal(kernels_recorded(fixture), 2); // rotated keys, and values
    }
    kv_cache_release(cache);
    tensor_release(keys);
    tensor_release(values);
}

// Memory that is released while a product that uses it is held stays until that is done.
static void test_memory_of_what_is_held(void **state) {
    const Fixture *fixture = *state;
    if (!fixture) skip();
    setenv("TL_BUFFER_MAX_MB", "0", 1);
    Device *device;
    assert_int_equal(device_open("vulkan", &device), STATUS_OK);
    Fixture own = {.device = device};
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(buffer_new(device, COLUMNS * WIDTH * sizeof(float), NULL, &own.buffers[i]),
                         STATUS_OK);
    fill_random(&own, X, ROWS_MAX, COLUMNS);
    fill_random(&own, W1, COLUMNS, WIDTH);
    assert_int_equal(device->backend->wait(device), STATUS_OK);
    run_product(&own, 1, W1, O1);
    float wanted[COLUMNS], back[COLUMNS];
    assert_int_equal(buffer_download(own.buffers[O1], 0, wanted, sizeof wanted), STATUS_OK);
    run_product(&own, 1, W1, O2);
    buffer_release(own.buffers[X]);
    buffer_release(own.buffers[W1]);
    assert_int_equal(buffer_download(own.buffers[O2], 0, back, sizeof back), STATUS_OK);
    assert_memory_equal(back, wanted, sizeof wanted);
    run_product(&(Fixture){device, {own.buffers[S], own.buffers[W2], NULL, own.buffers[R]}}, 1, W1,
                O1);
    for (int i = W2; i < PLACES; i++) buffer_release(own.buffers[i]);
    device_close(device);
    unsetenv("TL_BUFFER_MAX_MB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_are_those_of_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_not_joined, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies_of_rotated_heads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies_of_rotated_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rotated_keys_of_a_cache, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_of_what_is_held, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
