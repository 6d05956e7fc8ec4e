// Values written shortly, builtins called by name and results compared as text, for tests of
// interp.
#ifndef TESTS_LIBRARY_CALLING_H
#define TESTS_LIBRARY_CALLING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
// cmocka's fail() would hide the function that records an error.
#undef fail
#define FAIL_TEST(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

#include "device/buffer.h"
#include "device/statistics.h"
#include "eval/bind.h"
#include "value/heap.h"
#include "value/print.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define VALUES(...)                                                                                \
    (const Value[]){__VA_ARGS__}, sizeof((const Value[]){__VA_ARGS__}) / sizeof(Value)

static inline Value S(const char *text) {
    return value_cstring(text);
}

// A list or tuple that takes its items.
static inline Value items_of(Value list, const Value *items, size_t count) {
    for (size_t i = 0; i < count; i++) list_push(list.as.list, items[i]);
    return list;
}
#define LIST(...) items_of(value_list(0), VALUES(__VA_ARGS__))
#define TUPLE(...) items_of(value_tuple(0), VALUES(__VA_ARGS__))

// Calls a builtin with arguments that the call takes.
static inline Value call_named(const char *name, const Value *arguments, size_t count) {
    const Builtin *row = catalog_find(name, strlen(name));
    if (!row) FAIL_TEST("there is no builtin %s", name);
    Value result = interp_call_builtin(NULL, row, arguments, count);
    for (size_t i = 0; i < count; i++) value_release(arguments[i]);
    return result;
}
#define CALL(name, ...) call_named(name, VALUES(__VA_ARGS__))

// The result prints so; takes it.
static inline void expect_text(Value value, const char *expected) {
    if (value.kind == VALUE_FAIL) FAIL_TEST("failed: %s", error_current()->message);
    Text text = {0};
    assert_int_equal(value_print(value, true, &text), STATUS_OK);
    assert_string_equal(text_get(&text), expected);
    text_free(&text);
    value_release(value);
}

// The call failed with this code and message.
static inline void expect_failure(Value value, Status code, const char *message) {
    assert_int_equal(value.kind, VALUE_FAIL);
    assert_string_equal(error_current()->message, message);
    assert_int_equal(error_current()->code, code);
}

static inline int start_heap(void **state) {
    (void)state;
    heap_start();
    return 0;
}

// Everything was given back: no object lives, and with it no buffer.
static inline int end_heap(void **state) {
    (void)state;
    assert_int_equal(heap_object_count(), 0);
    assert_int_equal(heap_clear_all(), 0);
    Device *device = device_default_opened();
    if (device) assert_int_equal(pool_statistics(device).live_buffers, 0);
    device_default_close();
    return 0;
}

#endif
