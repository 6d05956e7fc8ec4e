// Axes: round ticks, their words, and ranges that are hard.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "plot/axis.h"
#include "plot/chart.h"

static void expect_ticks(const AxisWish *wish, const char *expected) {
    Axis axis;
    Text text = {0};
    assert_int_equal(axis_new(wish, &axis), STATUS_OK);
    for (int i = 0; i < axis.tick_count; i++)
        text_format(&text, "%s%s", i ? " " : "", axis.ticks[i].text);
    assert_string_equal(text_get(&text), expected);
    text_free(&text);
}

static void test_round_ticks(void **state) {
    (void)state;
    expect_ticks(&(AxisWish){.low = 0, .high = 1, .ticks = 5}, "0.0 0.2 0.4 0.6 0.8 1.0");
    expect_ticks(&(AxisWish){.low = -1.3, .high = 2.9, .ticks = 5}, "-1 0 1 2");
    expect_ticks(&(AxisWish){.low = -1.3, .high = 2.9, .ticks = 3}, "0 2");
    expect_ticks(&(AxisWish){.low = 0.1, .high = 0.3, .ticks = 4}, "0.10 0.15 0.20 0.25 0.30");
    expect_ticks(&(AxisWish){.low = 0, .high = 99, .ticks = 2}, "0 50");
    expect_ticks(&(AxisWish){.low = -0.00002, .high = 0.00002, .ticks = 2}, "-2e-5 0 2e-5");
    expect_ticks(&(AxisWish){.low = 0, .high = 3e7, .ticks = 3}, "0 1e7 2e7 3e7");
    expect_ticks(&(AxisWish){.low = 1000000, .high = 1000002, .ticks = 2},
                 "1.000000e6 1.000001e6 1.000002e6");
}

static void test_whole_ticks(void **state) {
    (void)state;
    expect_ticks(&(AxisWish){.low = 0, .high = 2, .whole = true, .ticks = 8}, "0 1 2");
    expect_ticks(&(AxisWish){.low = 0, .high = 1000, .whole = true, .ticks = 4}, "0 500 1000");
}

static void test_logarithmic_ticks(void **state) {
    (void)state;
    expect_ticks(&(AxisWish){.low = 0.001, .high = 100, .log = true, .ticks = 8},
                 "0.001 0.01 0.1 1 10 100");
    expect_ticks(&(AxisWish){.low = 1e-12, .high = 1, .log = true, .ticks = 4},
                 "1e-12 1e-9 1e-6 0.001 1");
    expect_ticks(&(AxisWish){.low = 0.4, .high = 30, .log = true, .ticks = 8}, "0.5 1 2 5 10 20");
    expect_ticks(&(AxisWish){.low = 3, .high = 70, .log = true, .ticks = 8}, "5 10 20 50");
    expect_ticks(&(AxisWish){.low = 3.1, .high = 4.5, .log = true, .ticks = 4}, "3.5 4.0 4.5");
}

static void test_positions(void **state) {
    (void)state;
    Axis axis;
    assert_int_equal(axis_new(&(AxisWish){.low = 1, .high = 100, .log = true, .ticks = 4}, &axis),
                     STATUS_OK);
    assert_true(fabs(axis_position(&axis, 10) - 0.5) < 1e-12);
    assert_int_equal(axis_new(&(AxisWish){.low = 2, .high = 4, .margin = 0.5, .ticks = 4}, &axis),
                     STATUS_OK);
    assert_true(axis.low == 1 && axis.high == 5);
    axis.down = true;
    assert_true(axis_position(&axis, 1) == 1 && axis_position(&axis, 5) == 0);
}

// No range is widened to one; what has no range in arithmetic is refused.
static void test_hard_ranges(void **state) {
    (void)state;
    expect_ticks(&(AxisWish){.low = 7, .high = 7, .ticks = 4}, "4 6 8 10");
    expect_ticks(&(AxisWish){.low = 0, .high = 0, .ticks = 2}, "-1 0 1");
    expect_ticks(&(AxisWish){.low = -4, .high = -4, .ticks = 4}, "-6 -5 -4 -3 -2");
    expect_ticks(&(AxisWish){.low = 10, .high = 10, .log = true, .ticks = 4}, "5 10 20");
    expect_ticks(&(AxisWish){.low = 1, .high = 1 + 1e-14, .ticks = 2}, "0.5 1.0 1.5");
    Axis axis;
    assert_int_equal(axis_new(&(AxisWish){.low = -1e308, .high = 1e308, .ticks = 4}, &axis),
                     STATUS_VALUE);
    assert_string_equal(error_current()->message,
                        "numbers from -1e+308 to 1e+308 do not fit on one axis");
    assert_int_equal(axis_new(&(AxisWish){.low = 1.7e308, .high = 1.7e308, .ticks = 4}, &axis),
                     STATUS_VALUE);
    assert_int_equal(axis_new(&(AxisWish){.low = 5e-324, .high = 1e-323, .ticks = 4}, &axis),
                     STATUS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_ticks),       cmocka_unit_test(test_whole_ticks),
        cmocka_unit_test(test_logarithmic_ticks), cmocka_unit_test(test_positions),
        cmocka_unit_test(test_hard_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
