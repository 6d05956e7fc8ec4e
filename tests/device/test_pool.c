// The pool: classes, limits, order of eviction, refusal, poison, threads, and what it costs.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "device/buffer.h"
#include "device/cpu/available.h"
#include "device/kernel.h"
#include "device/pool.h"
#include "runtime/runtime.h"

#include "environment.h"

enum { MEGABYTE = 1 << 20 };

// The CPU, or the device that TL_TEST_DEVICE names.
static Device *open_tested(void) {
    const char *name = getenv("TL_TEST_DEVICE");
    Device *device;
    assert_int_equal(device_open(name ? name : "cpu", &device), STATUS_OK);
    return device;
}

static void fill_bytes(Buffer *buffer, int byte) {
    char *bytes = malloc(buffer->bytes + 1);
    memset(bytes, byte, buffer->bytes);
    assert_int_equal(buffer_upload(buffer, 0, bytes, buffer->bytes), STATUS_OK);
    free(bytes);
}

static void expect_bytes(Buffer *buffer, int byte) {
    unsigned char *bytes = malloc(buffer->bytes + 1);
    assert_int_equal(buffer_download(buffer, 0, bytes, buffer->bytes), STATUS_OK);
    for (size_t i = 0; i < buffer->bytes; i++) assert_int_equal(bytes[i], byte);
    free(bytes);
}

static Buffer *make(Device *device, size_t bytes) {
    Buffer *buffer;
    assert_int_equal(buffer_new(device, bytes, NULL, &buffer), STATUS_OK);
    return buffer;
}

static void test_classes(void **state) {
    (void)state;
    assert_int_equal(pool_class_bytes(0), 256);
    assert_int_equal(pool_class_bytes(256), 256);
    assert_int_equal(pool_class_bytes(257), 320);
    assert_int_equal(pool_class_bytes(1000), 1024);
    assert_int_equal(pool_class_bytes(1025), 1280);
    assert_int_equal(pool_class_bytes(4095), 4096);
    assert_int_equal(pool_class_bytes(64 << 20), 64 << 20);
    assert_int_equal(pool_class_bytes((64 << 20) + 1), 68 << 20);
    assert_int_equal(pool_class_bytes((size_t)100 * MEGABYTE), 100 * MEGABYTE);
    for (size_t bytes = 1; bytes < (size_t)80 * MEGABYTE; bytes += bytes / 7 + 1) {
        size_t capacity = pool_class_bytes(bytes);
        assert_true(capacity >= bytes);
        assert_int_equal(capacity % 64, 0);
        assert_int_equal(pool_class_bytes(capacity), capacity);
        if (bytes >= 256) assert_true((double)capacity <= (double)bytes * 1.25 + 1);
    }
}

static void test_reuse_is_exact(void **state) {
    (void)state;
    Device *device = open_tested();
    Buffer *first = make(device, 1000);
    assert_true(device->alignment >= 64);
    if (!getenv("TL_TEST_DEVICE")) assert_int_equal((uintptr_t)first->handle % 64, 0);
    void *handle = first->handle;
    assert_int_equal(pool_statistics(device).live_bytes, 1000);
    buffer_release(buffer_retain(first));
    assert_int_equal(pool_statistics(device).live_buffers, 1);
    buffer_release(first);
    PoolStatistics after = pool_statistics(device);
    assert_int_equal(after.live_bytes, 0);
    assert_int_equal(after.cached_bytes, 1024);
    Buffer *second = make(device, 1024);
    assert_ptr_equal(second->handle, handle);
    Buffer *third = make(device, 1025);
    assert_ptr_not_equal(third->handle, handle);
    assert_int_equal(pool_statistics(device).reuses, 1);
    assert_int_equal(pool_statistics(device).allocations, 2);
    buffer_release(second);
    buffer_release(third);
    pool_clear_cache(device);
    assert_int_equal(pool_statistics(device).cached_bytes, 0);
    device_close(device);
}

// Buffers of odd sizes are filled to their class; the neighbours must not notice.
static void test_neighbours_stay_intact(void **state) {
    (void)state;
    static const size_t sizes[] = {1000, 1025, 4095, 2 * 1000, 4 * 1000, 1, 0, 320, 5 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    Device *device = open_tested();
    for (int round = 0; round < 3; round++) {
        Buffer *buffers[COUNT];
        for (int i = 0; i < COUNT; i++) {
            // The second round asks for whole classes, the third for the first sizes again.
            buffers[i] = make(device, round == 1 ? pool_class_bytes(sizes[i]) : sizes[i]);
            assert_true(buffers[i]->capacity >= buffers[i]->bytes);
            fill_bytes(buffers[i], 0x40 + i);
        }
        for (int i = 0; i < COUNT; i++) {
            expect_bytes(buffers[i], 0x40 + i);
            buffer_release(buffers[i]);
        }
    }
    device_close(device);
}

static void test_constants_of_many_caches(void **state) {
    (void)state;
    enum { CACHES = 44, COUNT = 5000 };
    Device *device = open_tested();
    Buffer *caches[CACHES];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CACHES; i++) {
            caches[i] = make(device, COUNT * sizeof(float));
            float values[COUNT];
            for (int j = 0; j < COUNT; j++) values[j] = (float)(i + 100 * round);
            assert_int_equal(buffer_upload(caches[i], 0, values, sizeof values), STATUS_OK);
        }
        for (int i = 0; i < CACHES; i++) {
            float values[COUNT];
            assert_int_equal(buffer_download(caches[i], 0, values, sizeof values), STATUS_OK);
            for (int j = 0; j < COUNT; j++) assert_true(values[j] == (float)(i + 100 * round));
            buffer_release(caches[i]);
        }
    }
    assert_int_equal(pool_statistics(device).bytes_uploaded, 2 * CACHES * COUNT * 4);
    assert_int_equal(pool_statistics(device).bytes_downloaded, 2 * CACHES * COUNT * 4);
    device_close(device);
}

static void test_byte_limit_at_every_return(void **state) {
    (void)state;
    setenv("TL_BUFFER_MAX_MB", "3", 1);
    Device *device = open_tested();
    unsigned seed = 7;
    Buffer *held[16] = {0};
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        int slot = (int)(seed >> 28);
        buffer_release(held[slot]);
        assert_true(pool_statistics(device).cached_bytes <= (uint64_t)3 * MEGABYTE);
        held[slot] = make(device, (seed >> 8) % (2 * MEGABYTE));
    }
    for (int i = 0; i < 16; i++) buffer_release(held[i]);
    assert_true(pool_statistics(device).cached_bytes <= (uint64_t)3 * MEGABYTE);
    assert_true(pool_statistics(device).evictions > 0);
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    device_close(device);
}

static void test_share_of_own_memory(void **state) {
    (void)state;
    const uint64_t half = 512 * (uint64_t)MEGABYTE;
    DeviceSettings settings = {.buffer_max_bytes = half};
    Device device = {.own_bytes = 80000 * (size_t)MEGABYTE};
    assert_int_equal(pool_share(&device, &settings), half);
    device.separate = true;
    assert_int_equal(pool_share(&device, &settings), 10000 * (uint64_t)MEGABYTE);
    device.own_bytes = 4000 * (size_t)MEGABYTE;
    assert_int_equal(pool_share(&device, &settings), half);
    device.own_bytes = 80000 * (size_t)MEGABYTE;
    settings.has_buffer_max = true;
    assert_int_equal(pool_share(&device, &settings), half);
}

static void test_limit_zero_caches_nothing(void **state) {
    (void)state;
    setenv("TL_BUFFER_MAX_MB", "0", 1);
    Device *device = open_tested();
    for (int i = 0; i < 5; i++) buffer_release(make(device, 100));
    assert_int_equal(pool_statistics(device).cached_buffers, 0);
    assert_int_equal(pool_statistics(device).allocations, 5);
    device_close(device);
}

static void test_growing_large_sizes_stay_bounded(void **state) {
    (void)state;
    setenv("TL_BUFFER_MAX_MB", "512", 1); // a GPU's own share is larger
    Device *device = open_tested();
    for (size_t i = 0; i < 200; i++) {
        buffer_release(make(device, ((size_t)65 + i) * MEGABYTE));
        assert_true(pool_statistics(device).cached_bytes <= (uint64_t)512 * MEGABYTE);
    }
    device_close(device);
}

static void test_hundred_megabytes_a_hundred_times(void **state) {
    (void)state;
    Device *device = open_tested();
    Buffer *variable = NULL;
    for (int i = 0; i < 100; i++) {
        Buffer *value = make(device, (size_t)100 * MEGABYTE);
        buffer_release(variable);
        variable = value;
    }
    buffer_release(variable);
    assert_int_equal(pool_statistics(device).peak_bytes, (uint64_t)200 * MEGABYTE);
    assert_int_equal(pool_statistics(device).allocations, 2);
    device_close(device);
}

static void test_count_limit(void **state) {
    (void)state;
    enum { COUNT = 6000 };
    static Buffer *buffers[COUNT];
    Device *device = open_tested();
    for (int i = 0; i < COUNT; i++) buffers[i] = make(device, 64);
    for (int i = 0; i < COUNT; i++) buffer_release(buffers[i]);
    assert_int_equal(pool_statistics(device).cached_buffers, 4096);
    assert_int_equal(pool_statistics(device).evictions, COUNT - 4096);
    device_close(device);
}

// The oldest return goes first, whatever its class.
static void test_least_recently_used_goes_first(void **state) {
    (void)state;
    setenv("TL_BUFFER_MAX_MB", "1", 1);
    Device *device = open_tested();
    Buffer *small = make(device, 256), *middle = make(device, 512 << 10);
    Buffer *last = make(device, 640 << 10);
    buffer_release(middle);
    buffer_release(small);
    buffer_release(last); // 512 + 640 KiB do not fit, 640 KiB + 256 B do
    PoolStatistics statistics = pool_statistics(device);
    assert_int_equal(statistics.evictions, 1);
    assert_int_equal(statistics.cached_bytes, (640 << 10) + 256);
    device_close(device);
}

static void test_idle_buffers_go(void **state) {
    (void)state;
    Device *device = open_tested();
    buffer_release(make(device, 10 << 20));
    Buffer *held[70];
    for (int i = 0; i < 70; i++) held[i] = make(device, 100);
    assert_int_equal(pool_statistics(device).cached_bytes, 0);
    for (int i = 0; i < 70; i++) buffer_release(held[i]);
    device_close(device);
}

static void test_poison(void **state) {
    (void)state;
    setenv("TL_POISON", "1", 1);
    Device *device = open_tested();
    for (int round = 0; round < 2; round++) {
        Buffer *buffer = make(device, 10000);
        expect_bytes(buffer, 0xFF);
        float number;
        assert_int_equal(buffer_download(buffer, 0, &number, sizeof number), STATUS_OK);
        assert_true(number != number);
        fill_bytes(buffer, 0);
        buffer_release(buffer);
    }
    assert_int_equal(pool_statistics(device).reuses, 1);
    device_close(device);
}

// --- refusal -------------------------------------------------------------------------------------

static Buffer *garbage;
static int collections;

static void collect(void) {
    collections++;
    buffer_release(garbage);
    garbage = NULL;
}

static void test_refusal_trims_then_collects(void **state) {
    (void)state;
    setenv("TL_DEVICE_MEMORY_MB", "16", 1);
    Device *device = open_tested();
    pool_set_collector(collect);
    collections = 0;
    buffer_release(make(device, 10 * MEGABYTE));
    Buffer *other = make(device, 8 * MEGABYTE); // fits only without the cached 10 MB
    assert_int_equal(collections, 0);
    assert_int_equal(pool_statistics(device).evictions, 1);
    assert_int_equal(pool_statistics(device).waits, 1);
    garbage = other;
    Buffer *third = make(device, 12 * MEGABYTE); // fits only without the garbage
    assert_int_equal(collections, 1);
    buffer_release(third);
    pool_set_collector(NULL);
    device_close(device);
}

// --- what a device has left ----------------------------------------------------------------------

static uint64_t left_bytes;

static uint64_t left_of_device(const Device *device) {
    (void)device;
    return left_bytes;
}

static void test_what_others_take_limits_a_pool(void **state) {
    (void)state;
    setenv("TL_TEST_DEVICE_MB", "64", 1); // of which 4 are not given
    Device *device = open_tested();
    const DeviceBackend *backend = device->backend;
    DeviceBackend changed = *backend;
    changed.available = left_of_device;
    device->backend = &changed;
    left_bytes = 14 * MEGABYTE;
    Buffer *first = make(device, 8 * MEGABYTE);
    fill_bytes(first, 5);
    assert_int_equal(pool_statistics(device).moves_out, 0);
    left_bytes = 6 * MEGABYTE;
    Buffer *second = make(device, 8 * MEGABYTE);
    fill_bytes(second, 6);
    assert_int_equal(pool_statistics(device).moves_out, 1);
    assert_int_equal(pool_statistics(device).live_bytes, 8 * MEGABYTE);
    left_bytes = 40 * MEGABYTE; // others have let go
    Buffer *third = make(device, 8 * MEGABYTE);
    expect_bytes(first, 5);
    expect_bytes(second, 6);
    assert_int_equal(pool_statistics(device).moves_out, 1);
    assert_int_equal(pool_statistics(device).live_bytes, 24 * MEGABYTE);
    buffer_release(first);
    buffer_release(second);
    buffer_release(third);
    device->backend = backend;
    device_close(device);
}

static const DeviceBackend *real_backend;
static size_t given_bytes;

static Status allocate_few(Device *device, size_t bytes, void **handle) {
    if (given_bytes + bytes > 20 * MEGABYTE) return STATUS_MEMORY;
    Status status = real_backend->memory_allocate(device, bytes, handle);
    if (status == STATUS_OK) given_bytes += bytes;
    return status;
}

static void free_few(Device *device, void *handle, size_t bytes) {
    given_bytes -= bytes;
    real_backend->memory_free(device, handle, bytes);
}

static void test_what_a_device_refuses_limits_a_pool(void **state) {
    (void)state;
    setenv("TL_TEST_DEVICE_MB", "64", 1);
    Device *device = open_tested();
    real_backend = device->backend;
    DeviceBackend changed = *real_backend;
    changed.memory_allocate = allocate_few;
    changed.memory_free = free_few;
    device->backend = &changed;
    given_bytes = 0;
    Buffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = make(device, 8 * MEGABYTE);
        fill_bytes(buffers[i], i);
    }
    assert_int_equal(pool_statistics(device).moves_out, 1); // the first left, for the third
    assert_int_equal(pool_statistics(device).lends, 0);
    for (int i = 0; i < 3; i++) {
        expect_bytes(buffers[i], i);
        buffer_release(buffers[i]);
    }
    device->backend = real_backend;
    device_close(device);
}

static void test_what_a_kernel_takes_for_itself_stays(void **state) {
    (void)state;
    setenv("TL_TEST_DEVICE_MB", "64", 1);
    Device *device = open_tested();
    real_backend = device->backend;
    DeviceBackend changed = *real_backend;
    changed.memory_allocate = allocate_few;
    changed.memory_free = free_few;
    device->backend = &changed;
    given_bytes = 0;
    KernelCall call = {0};
    device->pool->spill.running = &call;
    device->pool->spill.turn++;
    Buffer *buffers[3];
    for (int i = 0; i < 3; i++) buffers[i] = make(device, 8 * MEGABYTE);
    assert_int_equal(pool_statistics(device).moves_out, 0);
    assert_int_equal(pool_statistics(device).lends, 1); // the third lies elsewhere
    device->pool->spill.running = NULL;
    for (int i = 0; i < 3; i++) buffer_release(buffers[i]);
    device->backend = real_backend;
    device_close(device);
}

static void test_a_full_disk_gives_its_place_back(void **state) {
    (void)state;
    setenv("TL_TEST_DEVICE_MB", "64", 1);
    Device *device = open_tested();
    real_backend = device->backend;
    DeviceBackend changed = *real_backend;
    changed.memory_allocate = allocate_few;
    changed.memory_free = free_few;
    device->backend = &changed;
    given_bytes = 0;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){MEGABYTE, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    Buffer *buffers[3];
    for (int i = 0; i < 3; i++) buffers[i] = make(device, 8 * MEGABYTE);
    // The first could not be written: its place is the third's. A GPU needs no file.
    bool to_file = device->backend->host_import != NULL;
    assert_int_equal(device->pool->spill.end, to_file ? 8 * MEGABYTE : 0);
    for (int i = 0; i < 3; i++) buffer_release(buffers[i]);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    device->backend = real_backend;
    device_close(device);
}

static void write_into(const char *folder, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_what_control_groups_leave(void **state) {
    (void)state;
    char root[] = "/tmp/tl-groups-XXXXXX", part[128], path[256];
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/groups", root);
    assert_int_equal(cpu_group_available(path, root), UINT64_MAX); // there is no such file
    static const char *const folders[] = {"outer", "outer/inner", "memory", "memory/old"};
    for (int i = 0; i < 4; i++) {
        snprintf(part, sizeof part, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(part, 0700), 0);
    }
    write_into(root, "groups", "9:name=systemd:/x\n0::/outer/inner\n");
    assert_int_equal(cpu_group_available(path, root), UINT64_MAX);
    write_into(root, "outer/inner/memory.max", "max\n");
    write_into(root, "outer/inner/memory.current", "500\n");
    assert_int_equal(cpu_group_available(path, root), UINT64_MAX);
    write_into(root, "outer/memory.max", "10000\n");
    write_into(root, "outer/memory.current", "6000\n");
    assert_int_equal(cpu_group_available(path, root), 4000);
    write_into(root, "outer/memory.stat", "anon 9\ninactive_file 1500\n");
    assert_int_equal(cpu_group_available(path, root), 5500);
    write_into(root, "outer/inner/memory.max", "400\n");
    assert_int_equal(cpu_group_available(path, root), 0);
    write_into(root, "groups", "4:memory:/old\n5:cpu:/outer\n");
    write_into(root, "memory/old/memory.limit_in_bytes", "900\n");
    write_into(root, "memory/old/memory.usage_in_bytes", "200\n");
    assert_int_equal(cpu_group_available(path, root), 700);
    char remove[256];
    snprintf(remove, sizeof remove, "rm -r %s", root);
    assert_int_equal(system(remove), 0);
}

static int asked;

static Status refuse_large(void *context, uint64_t limit) {
    asked++;
    assert_ptr_equal(context, &asked);
    assert_int_equal(limit, 64 * MEGABYTE);
    return (fail)(STATUS_MEMORY, "it will not fit");
}

static void test_a_large_program_is_foretold_once(void **state) {
    (void)state;
    setenv("TL_TEST_DEVICE_MB", "64", 1);
    setenv("TL_DEVICE", getenv("TL_TEST_DEVICE") ? getenv("TL_TEST_DEVICE") : "cpu", 1);
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    asked = 0;
    pool_set_foresight(&(Foresight){.large = refuse_large, .context = &asked});
    Buffer *first = make(device, 7 * MEGABYTE), *second;
    assert_int_equal(asked, 0);
    assert_int_equal(buffer_new(device, 2 * MEGABYTE, NULL, &second), STATUS_MEMORY);
    assert_string_equal(error_current()->message, "it will not fit");
    second = make(device, 40 * MEGABYTE);
    assert_int_equal(asked, 1);
    buffer_release(first);
    buffer_release(second);
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    device_default_close();
}

static void test_refusal_names_the_holders(void **state) {
    (void)state;
    setenv("TL_DEVICE_MEMORY_MB", "64", 1);
    const SourceFile *file;
    static const char text[] = "a\nb\nc\nd\ne\nf\ng\n";
    assert_int_equal(source_add("big.tl", text, sizeof text - 1, &file), STATUS_OK);
    Device *device = open_tested();
    Buffer *held[7];
    for (unsigned i = 0; i < 7; i++) {
        origin_current.at = file->base + 2 * i;
        held[i] = make(device, (size_t)(i + 1) * MEGABYTE);
    }
    buffer_release(held[6]);
    held[6] = NULL;
    BufferLabel label = {.dtype = DTYPE_FLOAT32, .rank = 2, .dims = {4096, 4096}};
    Buffer *refused;
    assert_int_equal(buffer_new(device, (size_t)64 * MEGABYTE, &label, &refused), STATUS_MEMORY);
    assert_string_equal(error_current()->kind, "memory");
    Text words = {0};
    text_format(&words,
                "%s has no memory for float32[4096, 4096]: 64.00 MB requested, 21.00 MB "
                "live, 0.00 MB cached, the device has 64.00 MB",
                device->name);
    assert_string_equal(error_current()->message, text_get(&words));
    text_free(&words);
    assert_string_equal(error_current()->help,
                        "the most is held by big.tl:6 (6.00 MB), big.tl:5 (5.00 MB), big.tl:4 "
                        "(4.00 MB), big.tl:3 (3.00 MB), big.tl:2 (2.00 MB); assign none to a "
                        "variable that is no longer needed, or make smaller tensors");
    // The largest numbers there are end in words too.
    assert_int_equal(buffer_new(device, SIZE_MAX, NULL, &refused), STATUS_MEMORY);
    assert_int_equal(buffer_new(device, SIZE_MAX / 2, NULL, &refused), STATUS_MEMORY);
    Buffer *small = make(device, 30 * MEGABYTE);
    buffer_release(small);
    for (int i = 0; i < 7; i++) buffer_release(held[i]);
    device_close(device);
    source_reset();
}

// A refusal counts what is held line by line; the report of a peak tells expressions of a line
// apart.
static void test_holders_of_a_line(void **state) {
    (void)state;
    setenv("TL_DEVICE_MEMORY_MB", "16", 1);
    const SourceFile *file;
    static const char text[] = "a = b + c\nd\n";
    assert_int_equal(source_add("sum.tl", text, sizeof text - 1, &file), STATUS_OK);
    Device *device = open_tested();
    static const unsigned places[] = {4, 10, 8};
    Buffer *held[3], *refused;
    for (int i = 0; i < 3; i++) {
        origin_current.at = file->base + places[i];
        held[i] = make(device, (size_t)(i + 1) * MEGABYTE);
    }
    assert_int_equal(buffer_new(device, (size_t)16 * MEGABYTE, NULL, &refused), STATUS_MEMORY);
    assert_non_null(strstr(error_current()->help,
                           "the most is held by sum.tl:1 (4.00 MB), sum.tl:2 (2.00 MB); assign"));
    Text report = {0};
    memory_report(device, &report);
    const char *first = strstr(text_get(&report), "    3.00 MB   50.0 %   sum.tl:1:9");
    const char *last = strstr(text_get(&report), "    1.00 MB   16.7 %   sum.tl:1:5");
    assert_true(first && last && first < last);
    text_free(&report);
    for (int i = 0; i < 3; i++) buffer_release(held[i]);
    device_close(device);
    source_reset();
}

// --- devices -------------------------------------------------------------------------------------

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Drivers of real devices take a tenth of a second each time: there, as often as 10 s allow.
static void test_device_a_thousand_times(void **state) {
    (void)state;
    double start = seconds();
    for (int i = 0; i < 1000 && seconds() - start < 10; i++) {
        Device *device = open_tested();
        buffer_release(make(device, 100));
        device_close(device);
    }
}

// --- threads and time ----------------------------------------------------------------------------

// Threads take turns in a runtime, as those of a host do.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *churn(void *context) {
    Device *device = context;
    Buffer *held[8] = {0};
    Status status = STATUS_OK;
    for (int i = 0; i < 500000 && status == STATUS_OK; i++) {
        Buffer **slot = &held[i & 7];
        pthread_mutex_lock(&turn);
        Runtime *before = runtime_enter(device->runtime);
        buffer_release(*slot);
        status = buffer_new(device, (size_t)(i % 5) * 1000, NULL, slot);
        if (status == STATUS_OK && i % 3 == 0) buffer_release(buffer_retain(*slot));
        runtime_enter(before);
        pthread_mutex_unlock(&turn);
    }
    pthread_mutex_lock(&turn);
    for (int i = 0; i < 8; i++) buffer_release(held[i]);
    pthread_mutex_unlock(&turn);
    return status == STATUS_OK ? NULL : context;
}

static void test_two_threads_balance(void **state) {
    (void)state;
    Device *device = open_tested();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, device);
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    PoolStatistics statistics = pool_statistics(device);
    assert_int_equal(statistics.live_bytes, 0);
    assert_int_equal(statistics.live_buffers, 0);
    assert_int_equal(statistics.reuses + statistics.allocations, 1000000);
    device_close(device);
}

static void test_cost_of_reuse(void **state) {
    (void)state;
    enum { COUNT = 1000000 };
    Device *device = open_tested();
    BufferLabel label = {.dtype = DTYPE_FLOAT32, .rank = 2, .dims = {16, 16}};
    double start = seconds();
    for (int i = 0; i < COUNT; i++) {
        Buffer *buffer;
        assert_int_equal(buffer_new(device, 1024, &label, &buffer), STATUS_OK);
        buffer_release(buffer);
    }
    print_message("a buffer made and released: %.1f ns\n", (seconds() - start) * 1e9 / COUNT);
    assert_int_equal(pool_statistics(device).allocations, 1);
    device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_classes, clean_environment),
        cmocka_unit_test_setup(test_reuse_is_exact, clean_environment),
        cmocka_unit_test_setup(test_neighbours_stay_intact, clean_environment),
        cmocka_unit_test_setup(test_constants_of_many_caches, clean_environment),
        cmocka_unit_test_setup(test_byte_limit_at_every_return, clean_environment),
        cmocka_unit_test_setup(test_share_of_own_memory, clean_environment),
        cmocka_unit_test_setup(test_limit_zero_caches_nothing, clean_environment),
        cmocka_unit_test_setup(test_growing_large_sizes_stay_bounded, clean_environment),
        cmocka_unit_test_setup(test_hundred_megabytes_a_hundred_times, clean_environment),
        cmocka_unit_test_setup(test_count_limit, clean_environment),
        cmocka_unit_test_setup(test_least_recently_used_goes_first, clean_environment),
        cmocka_unit_test_setup(test_idle_buffers_go, clean_environment),
        cmocka_unit_test_setup(test_poison, clean_environment),
        cmocka_unit_test_setup(test_refusal_trims_then_collects, clean_environment),
        cmocka_unit_test_setup(test_what_others_take_limits_a_pool, clean_environment),
        cmocka_unit_test_setup(test_what_a_device_refuses_limits_a_pool, clean_environment),
        cmocka_unit_test_setup(test_what_a_kernel_takes_for_itself_stays, clean_environment),
        cmocka_unit_test_setup(test_a_full_disk_gives_its_place_back, clean_environment),
        cmocka_unit_test_setup(test_what_control_groups_leave, clean_environment),
        cmocka_unit_test_setup(test_a_large_program_is_foretold_once, clean_environment),
        cmocka_unit_test_setup(test_refusal_names_the_holders, clean_environment),
        cmocka_unit_test_setup(test_holders_of_a_line, clean_environment),
        cmocka_unit_test_setup(test_device_a_thousand_times, clean_environment),
        cmocka_unit_test_setup(test_two_threads_balance, clean_environment),
        cmocka_unit_test_setup(test_cost_of_reuse, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
