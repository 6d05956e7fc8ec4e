// float16 and bfloat16: every pattern there and back, and rounding against a search in doubles.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

#include <cmocka.h>

// The value of a pattern with the given exponent and mantissa widths, straight from the definition.
static double value_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    double mantissa = (double)(bits & ((1u << mantissa_bits) - 1));
    double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? (double)NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + ldexp(1, mantissa_bits), exponent - bias - mantissa_bits);
}

static void test_every_pattern(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits <= 0xFFFF; bits++) {
        double half = value_of(bits, 5, 10), bfloat = value_of(bits, 8, 7);
        float half_read = half_to_float((uint16_t)bits),
              bfloat_read = bfloat_to_float((uint16_t)bits);
        if (isnan(half)) {
            assert_true(isnan(half_read));
            assert_true(isnan(half_to_float(half_from_float(half_read))));
        } else {
            assert_true((double)half_read == half && !signbit(half_read) == !signbit(half));
            assert_int_equal(half_from_float(half_read), bits);
        }
        if (isnan(bfloat)) {
            assert_true(isnan(bfloat_read));
            assert_true(isnan(bfloat_to_float(bfloat_from_float(bfloat_read))));
        } else {
            assert_true((double)bfloat_read == bfloat);
            assert_int_equal(bfloat_from_float(bfloat_read), bits);
        }
    }
}

typedef struct Format {
    int exponent_bits, mantissa_bits;
    uint16_t (*from)(float);
} Format;

// Between two neighbours: the nearer one, at the middle the even one. Positive patterns suffice,
// the sign is one bit.
static void check_rounding(const Format *format) {
    uint32_t infinity = ((1u << format->exponent_bits) - 1) << format->mantissa_bits;
    for (uint32_t low = 0; low < infinity; low++) {
        double a = value_of(low, format->exponent_bits, format->mantissa_bits);
        double b = low + 1 == infinity
                       ? ldexp(1, 1 << (format->exponent_bits - 1)) // where the next would be
                       : value_of(low + 1, format->exponent_bits, format->mantissa_bits);
        float middle = (float)((a + b) / 2);
        if (isinf(middle)) continue; // of bfloat16's largest: float itself has no such value
        uint32_t even = low & 1 ? low + 1 : low;
        assert_int_equal(format->from(middle), even);
        assert_int_equal(format->from(nextafterf(middle, 0)), low);
        assert_int_equal(format->from(nextafterf(middle, INFINITY)), low + 1);
        assert_int_equal(format->from(-middle), even | 0x8000u);
    }
    assert_int_equal(format->from(INFINITY), infinity);
}

static void test_half_rounding(void **state) {
    (void)state;
    check_rounding(&(Format){5, 10, half_from_float});
}

static void test_bfloat_rounding(void **state) {
    (void)state;
    check_rounding(&(Format){8, 7, bfloat_from_float});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_bfloat_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
