// Digests of contents: whatever changes in them changes the digest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"

#include <cmocka.h>

enum { BYTES = 200 };

static void fill(unsigned char *bytes) {
    for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(37 * i + 11);
}

static void test_each_bit(void **state) {
    (void)state;
    unsigned char bytes[BYTES];
    fill(bytes);
    uint64_t plain = digest_add(0, bytes, BYTES);
    for (int bit = 0; bit < 8 * BYTES; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(digest_add(0, bytes, BYTES) != plain);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(digest_add(0, bytes, BYTES) == plain);
}

static void test_order_and_length(void **state) {
    (void)state;
    unsigned char bytes[BYTES], zeros[BYTES] = {0}, swapped[BYTES];
    fill(bytes);
    memcpy(swapped, bytes + 64, 64);
    memcpy(swapped + 64, bytes, 64);
    memcpy(swapped + 128, bytes + 128, BYTES - 128);
    assert_true(digest_add(0, swapped, BYTES) != digest_add(0, bytes, BYTES));
    memcpy(swapped, bytes + 8, 8); // of one chain and the next
    memcpy(swapped + 8, bytes, 8);
    memcpy(swapped + 16, bytes + 16, BYTES - 16);
    assert_true(digest_add(0, swapped, BYTES) != digest_add(0, bytes, BYTES));
    for (size_t bytes_less = 1; bytes_less < BYTES; bytes_less++)
        assert_true(digest_add(0, zeros, BYTES - bytes_less) != digest_add(0, zeros, BYTES));
}

static void test_what_came_before(void **state) {
    (void)state;
    unsigned char bytes[BYTES];
    fill(bytes);
    uint64_t first = digest_add(0, bytes, 100), other = digest_add(0, bytes, 101);
    assert_true(first != other);
    assert_true(digest_add(first, bytes, 50) != digest_add(other, bytes, 50));
    assert_true(digest_add(first, bytes, 0) != first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_bit),
        cmocka_unit_test(test_order_and_length),
        cmocka_unit_test(test_what_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
