// What is said about memory: the report, the leak warning and the purge, to the letter; imported
// memory; the holders at the peak.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "device/buffer.h"
#include "device/pool.h"
#include "device/statistics.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

enum { MEGABYTE = 1 << 20 };

static const char source[] = "let a = load(\"x.gguf\") // weights\n"
                             "let b = [f(1, 2), cache(3)]\n";
static SourcePos first_line, second_line;

static int set_up(void **state) {
    (void)state;
    unsetenv("TL_MEMORY_CHECK");
    unsetenv("TL_BUFFER_STATS");
    const SourceFile *file;
    assert_int_equal(source_add("model.tl", source, sizeof source - 1, &file), STATUS_OK);
    first_line = file->base + 8;                                            // load(...)
    second_line = file->base + (SourcePos)(strstr(source, "f(1") - source); // f(1, 2)
    origin_current = (Origin){0, 0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    pool_set_origin_describer(NULL);
    source_reset();
    return 0;
}

static Device *open_cpu(void) {
    Device *device;
    assert_int_equal(device_open("cpu", &device), STATUS_OK);
    snprintf(device->description, sizeof device->description, "TestCPU");
    return device;
}

static Buffer *make_at(Device *device, SourcePos at, size_t bytes) {
    static const BufferLabel label = {.dtype = DTYPE_FLOAT32, .rank = 2, .dims = {1024, 1024}};
    Buffer *buffer;
    origin_current.at = at;
    assert_int_equal(buffer_new(device, bytes, &label, &buffer), STATUS_OK);
    return buffer;
}

static void expect_text(Text *text, const char *expected) {
    assert_string_equal(text_get(text), expected);
    text_free(text);
}

static void describe(Text *out, Origin origin) {
    SourcePlace place = source_find(origin.at);
    text_format(out, "%s:%d:%d   in fn load, called from %s:%d", place.file->name, place.line,
                place.column, place.file->name, source_find(origin.called_from).line);
}

static void test_leak(void **state) {
    (void)state;
    Device *device = open_cpu();
    pool_set_origin_describer(describe);
    Buffer *leaked[2];
    for (int i = 0; i < 2; i++) {
        origin_current.called_from = i == 0 ? first_line : second_line;
        leaked[i] = make_at(device, first_line, 4 * MEGABYTE);
        buffer_leak(leaked[i]);
        buffer_release(leaked[i]);
    }
    assert_int_equal(pool_statistics(device).live_bytes, 8 * MEGABYTE);
    Text text = {0};
    assert_int_equal(memory_check(device, &text), 2);
    expect_text(&text,
                "warning: device memory leaked: 2 buffers, 8.00 MB were still held after every "
                "variable was cleared\n"
                "  4.00 MB  float32[1024, 1024]  made at model.tl:1:9   in fn load, called from "
                "model.tl:1\n"
                "  4.00 MB  float32[1024, 1024]  made at model.tl:1:9   in fn load, called from "
                "model.tl:2\n"
                "purged: 8.00 MB returned to the device, 0.00 MB remain\n");
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    assert_int_equal(pool_statistics(device).live_buffers, 0);
    buffer_release(leaked[0]); // a holder that comes too late does no harm
    assert_int_equal(memory_check(device, &text), 0);
    expect_text(&text, "");
    device_close(device);
}

static void test_small_leak(void **state) {
    (void)state;
    Device *device = open_cpu();
    Buffer *buffer;
    origin_current = (Origin){0, 0};
    assert_int_equal(buffer_new(device, 24, NULL, &buffer), STATUS_OK);
    Text text = {0};
    assert_int_equal(memory_check(device, &text), 1);
    expect_text(&text, "warning: device memory leaked: 1 buffer, 0.00 MB (24 bytes) was still held "
                       "after every variable was cleared\n"
                       "  0.00 MB  24 bytes  made at an unknown place\n"
                       "purged: 0.00 MB returned to the device, 0.00 MB remain\n");
    device_close(device);
}

static void test_report(void **state) {
    (void)state;
    setenv("TL_MEMORY_CHECK", "1", 1);
    Device *device = open_cpu();
    Buffer *large = make_at(device, first_line, 96 * MEGABYTE);
    Buffer *small = make_at(device, second_line, 32 * MEGABYTE);
    // After the peak: neither what comes nor what goes changes who held it.
    buffer_release(large);
    large = make_at(device, second_line, 32 * MEGABYTE);
    Text text = {0};
    memory_report(device, &text);
    expect_text(&text, "=== Device memory check: cpu TestCPU ===\n"
                       "before            0.00 MB\n"
                       "peak            128.00 MB   at model.tl:2:10\n"
                       "now              64.00 MB   change +64.00 MB\n"
                       "held at the peak:\n"
                       "    96.00 MB   75.0 %   model.tl:1:9     load(\"x.gguf\")\n"
                       "    32.00 MB   25.0 %   model.tl:2:10    f(1, 2)\n"
                       "pool: 1 cached, 96.00 MB · 3 allocated, 0 reused (0.0 %) · 0 evicted\n");
    buffer_release(large);
    buffer_release(small);
    buffer_release(make_at(device, first_line, 32 * MEGABYTE));
    assert_int_equal(memory_check(device, &text), 0);
    expect_text(&text, "=== Device memory check: cpu TestCPU ===\n"
                       "before            0.00 MB\n"
                       "peak            128.00 MB   at model.tl:2:10\n"
                       "after             0.00 MB   change +0.00 MB\n"
                       "held at the peak:\n"
                       "    96.00 MB   75.0 %   model.tl:1:9     load(\"x.gguf\")\n"
                       "    32.00 MB   25.0 %   model.tl:2:10    f(1, 2)\n"
                       "pool: 3 cached, 160.00 MB · 3 allocated, 1 reused (25.0 %) · 0 evicted\n"
                       "no leak: every buffer was released\n");
    device_close(device);
}

static void test_statistics_block(void **state) {
    (void)state;
    setenv("TL_BUFFER_STATS", "1", 1);
    Device *device = open_cpu();
    Buffer *buffer = make_at(device, first_line, MEGABYTE);
    static char bytes[MEGABYTE / 2];
    assert_int_equal(buffer_upload(buffer, 0, bytes, sizeof bytes), STATUS_OK);
    buffer_release(buffer);
    Text text = {0};
    assert_int_equal(memory_check(device, &text), 0);
    expect_text(&text, "pool: 1 cached, 1.00 MB · 1 allocated, 0 reused (0.0 %) · 0 evicted\n"
                       "live: 0 buffers, 0.00 MB · peak 1.00 MB · 0.50 MB uploaded, 0.00 MB "
                       "downloaded · 0 waits · 1048576 bytes live at most, at any moment\n");
    device_close(device);
}

static void test_reset_peak(void **state) {
    (void)state;
    Device *device = open_cpu();
    Buffer *kept = make_at(device, first_line, MEGABYTE);
    buffer_release(make_at(device, second_line, 8 * MEGABYTE));
    assert_int_equal(pool_statistics(device).peak_bytes, 9 * MEGABYTE);
    pool_reset_peak(device);
    assert_int_equal(pool_statistics(device).peak_bytes, MEGABYTE);
    assert_int_equal(pool_most_bytes(device->pool), 9 * MEGABYTE);
    Text text = {0};
    memory_report(device, &text);
    assert_null(strstr(text_get(&text), "f(1, 2)"));
    assert_non_null(strstr(text_get(&text), "1.00 MB  100.0 %   model.tl:1:9    load("));
    text_free(&text);
    buffer_release(kept);
    device_close(device);
}

// What a limit made the pool do, in numbers that are not those of a run.
static void test_limit_line(void **state) {
    (void)state;
    Device *device = open_cpu();
    PoolStatistics *statistics = &device->pool->statistics;
    device->pool->limit = 64 * MEGABYTE;
    statistics->moves_out = 2;
    statistics->moved_out_bytes = 3 * MEGABYTE;
    statistics->moved_in_bytes = MEGABYTE;
    statistics->forgets = 1;
    statistics->forgotten_bytes = 5 * MEGABYTE;
    statistics->limit_nanoseconds = 2340000000;
    Text text = {0};
    memory_report(device, &text);
    assert_non_null(strstr(text_get(&text),
                           "limit: 64.00 MB · 3.00 MB moved out in 2 parts, 1.00 MB "
                           "brought back, 5.00 MB in 1 part computed again, "
                           "2.34 s of moving\n"));
    text_free(&text);
    device_close(device);
}

static int owners_released;

static void release_owner(void *owner) {
    owners_released += *(int *)owner;
}

static void test_import(void **state) {
    (void)state;
    setenv("TL_MEMORY_CHECK", "1", 1);
    Device *device = open_cpu();
    static const char file[MEGABYTE] = "contents";
    int owner = 1;
    owners_released = 0;
    HostMemory memory = {file, sizeof file, &owner, release_owner, NULL};
    Buffer *buffer;
    assert_int_equal(buffer_import(device, &memory, NULL, &buffer), STATUS_OK);
    assert_ptr_equal(buffer->handle, file);
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    assert_int_equal(pool_statistics(device).mapped_bytes, MEGABYTE);
    Text text = {0};
    memory_report(device, &text);
    assert_non_null(strstr(text_get(&text), "mapped            1.00 MB   of files, used where they "
                                            "are\n"));
    text_free(&text);
    buffer_release(buffer_retain(buffer));
    assert_int_equal(owners_released, 0);
    buffer_release(buffer);
    assert_int_equal(owners_released, 1);
    assert_int_equal(pool_statistics(device).mapped_bytes, 0);

    // Forgotten, it is a leak like any other.
    origin_current.at = first_line;
    assert_int_equal(buffer_import(device, &memory, NULL, &buffer), STATUS_OK);
    assert_int_equal(memory_check(device, &text), 1);
    assert_non_null(strstr(text_get(&text), "  1.00 MB  1048576 bytes  mapped at model.tl:1:9\n"));
    assert_non_null(strstr(text_get(&text), "purged: 1.00 MB returned to the device"));
    assert_null(strstr(text_get(&text), "no leak"));
    text_free(&text);
    assert_int_equal(owners_released, 2);
    device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_small_leak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_report, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_statistics_block, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reset_peak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_import, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
