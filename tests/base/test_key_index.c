// Places by keys: the first of each, whatever bytes they have.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/key_index.h"

#include <cmocka.h>

static void test_first_places(void **state) {
    (void)state;
    size_t at = 0;
    KeyIndex *index = key_index_new();
    assert_false(key_index_find(index, "a", 1, &at));
    key_index_add(index, "a", 1);
    key_index_add(index, "", 0);
    key_index_add(index, "a", 1);
    key_index_add(index, "a\0b", 3);
    assert_int_equal(key_index_count(index), 4);
    assert_true(key_index_find(index, "a", 1, &at) && at == 0);
    assert_true(key_index_find(index, "", 0, &at) && at == 1);
    assert_true(key_index_find(index, "a\0b", 3, &at) && at == 3);
    assert_false(key_index_find(index, "a\0c", 3, &at));
    key_index_clear(index);
    assert_false(key_index_find(index, "a", 1, &at));
    key_index_add(index, "b", 1);
    assert_true(key_index_find(index, "b", 1, &at) && at == 0);
    key_index_free(index);
    key_index_free(NULL);
}

static void test_many(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    KeyIndex *index = key_index_new();
    char key[16];
    for (int i = 0; i < KEYS; i++) {
        int length = snprintf(key, sizeof key, "%d", i);
        key_index_add(index, key, (size_t)length);
    }
    for (size_t i = 0; i < KEYS; i++) {
        size_t at;
        int length = snprintf(key, sizeof key, "%zu", i);
        assert_true(key_index_find(index, key, (size_t)length, &at) && at == i);
    }
    key_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_places),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
