// Bytes that go to and from a device while the host goes on: what comes of copies, and what is kept
// for the next use.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/buffer.h"
#include "device/staging.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

enum { BYTES = 300000, OFFSET = 1024, PART = 100000 };

static Device *device;

static int open_device(void **state) {
    (void)state;
    const char *name = getenv("TL_TEST_DEVICE");
    return device_open(name ? name : "cpu", &device) == STATUS_OK ? 0 : -1;
}

static int close_device(void **state) {
    (void)state;
    device_close(device);
    return 0;
}

static void fill(unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)((i * 31 + seed) >> 3);
}

static Buffer *make(unsigned seed) {
    static unsigned char bytes[BYTES];
    Buffer *buffer;
    fill(bytes, BYTES, seed);
    assert_int_equal(buffer_new(device, BYTES, NULL, &buffer), STATUS_OK);
    assert_int_equal(buffer_upload(buffer, 0, bytes, BYTES), STATUS_OK);
    return buffer;
}

static void test_parts_there_and_back(void **state) {
    (void)state;
    static unsigned char wanted[BYTES], got[BYTES];
    Buffer *from = make(1), *to = make(2);
    Staging *staging = staging_new(device, 2 * PART);
    // Two parts change places on their way.
    const StagingCopy out[] = {{from, OFFSET, PART, PART}, {from, OFFSET + PART, 0, PART}};
    for (int i = 0; i < 2; i++) assert_int_equal(staging_read(staging, &out[i]), STATUS_OK);
    assert_int_equal(staging_wait(staging), STATUS_OK);
    fill(wanted, BYTES, 1);
    assert_memory_equal(staging_bytes(staging), wanted + OFFSET + PART, PART);
    assert_memory_equal(staging_bytes(staging) + PART, wanted + OFFSET, PART);
    const StagingCopy in = {to, OFFSET, 0, 2 * PART}, nothing = {to, 0, 0, 0};
    assert_int_equal(staging_write(staging, &in), STATUS_OK);
    assert_int_equal(staging_write(staging, &nothing), STATUS_OK);
    assert_int_equal(staging_read(staging, &nothing), STATUS_OK);
    staging_release(staging); // what was asked for still comes
    assert_int_equal(buffer_download(to, 0, got, BYTES), STATUS_OK);
    fill(wanted, BYTES, 2);
    assert_memory_equal(got, wanted, OFFSET);
    assert_memory_equal(got + OFFSET + 2 * PART, wanted + OFFSET + 2 * PART,
                        BYTES - OFFSET - 2 * PART);
    fill(wanted, BYTES, 1);
    assert_memory_equal(got + OFFSET, wanted + OFFSET + PART, PART);
    assert_memory_equal(got + OFFSET + PART, wanted + OFFSET, PART);
    buffer_release(from);
    buffer_release(to);
}

static void test_what_is_released_serves_again(void **state) {
    (void)state;
    Staging *first = staging_new(device, PART), *second = staging_new(device, PART);
    static char *bytes; // found by a search for leaks, as the abandoned buffer's place is
    bytes = staging_bytes(first);
    assert_ptr_not_equal(bytes, staging_bytes(second));
    staging_release(first);
    Staging *large = staging_new(device, 100 * PART);
    assert_ptr_not_equal(bytes, staging_bytes(large));
    first = staging_new(device, PART - 1);
    assert_ptr_equal(bytes, staging_bytes(first));
    staging_abandon(first);
    Staging *other = staging_new(device, PART);
    assert_ptr_not_equal(bytes, staging_bytes(other));
    bytes[PART - 2] = 'x'; // until the process ends
    staging_release(second);
    staging_release(large);
    staging_release(other);
    staging_release(NULL);
}

// A buffer whose address others know forever takes its memory with it.
static void test_abandoned_buffers(void **state) {
    (void)state;
    Buffer *first, *second;
    assert_int_equal(buffer_new(device, BYTES, NULL, &first), STATUS_OK);
    static const void *place;
    place = first->handle;
    assert_int_equal(buffer_hold(first), STATUS_OK);
    buffer_abandon(first);
    buffer_release(first);
    assert_int_equal(buffer_new(device, BYTES, NULL, &second), STATUS_OK);
    assert_ptr_not_equal(second->handle, place);
    buffer_release(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_there_and_back),
        cmocka_unit_test(test_what_is_released_serves_again),
        cmocka_unit_test(test_abandoned_buffers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
