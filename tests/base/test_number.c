// Numbers as text: shortest forms that read back, at every width.
#include "base/number.h"

// cmocka.h needs these, and its own `fail` must come after ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

static void assert_text(double value, NumberWidth width, const char *wanted) {
    char text[NUMBER_TEXT_MAX];
    int length = number_format_float(value, width, text);
    assert_string_equal(text, wanted);
    assert_int_equal(length, strlen(wanted));
}

static void test_doubles(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {1.0, "1.0"},
        {0.1, "0.1"},
        {1e21, "1e+21"},
        {1e16, "1e+16"},
        {1e15, "1000000000000000.0"},
        {123456.0, "123456.0"},
        {-0.0, "-0.0"},
        {0.0, "0.0"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {9007199254740993.0, "9007199254740992.0"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {-2.5, "-2.5"},
        {100.25, "100.25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_text(cases[i].value, NUMBER_DOUBLE, cases[i].text);
}

static void test_narrow_widths_are_shorter(void **state) {
    (void)state;
    assert_text((double)0.1f, NUMBER_FLOAT, "0.1");
    assert_text((double)0.1f, NUMBER_DOUBLE, "0.10000000149011612");
    assert_text((double)16777216.0f, NUMBER_FLOAT, "16777216.0");
    assert_text((double)3.4028235e38f, NUMBER_FLOAT, "3.4028235e+38");
    assert_text(number_round(0.1, NUMBER_HALF), NUMBER_HALF, "0.1");
    assert_text(65504, NUMBER_HALF, "65500.0");
    assert_text(number_round(3.14, NUMBER_BFLOAT), NUMBER_BFLOAT, "3.14");
}

static void test_everything_reads_back(void **state) {
    (void)state;
    char text[NUMBER_TEXT_MAX];
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double value;
        memcpy(&value, &random, sizeof value);
        if (!isfinite(value)) continue;
        number_format_float(value, NUMBER_DOUBLE, text);
        assert_true(strtod(text, NULL) == value);
        float narrow = (float)value;
        if (!isfinite(narrow)) continue;
        number_format_float((double)narrow, NUMBER_FLOAT, text);
        assert_true(strtof(text, NULL) == narrow);
    }
    for (uint32_t bits = 0; bits < 0x7C00; bits++) {
        double half = (double)half_to_float((uint16_t)bits);
        number_format_float(half, NUMBER_HALF, text);
        assert_true(half_from_float(strtof(text, NULL)) == bits);
    }
    for (uint32_t bits = 0; bits < 0x7F80; bits++) {
        double bfloat = (double)bfloat_to_float((uint16_t)bits);
        number_format_float(bfloat, NUMBER_BFLOAT, text);
        assert_true(bfloat_from_float(strtof(text, NULL)) == bits);
    }
}

static void test_parts_for_columns(void **state) {
    (void)state;
    char text[NUMBER_TEXT_MAX];
    assert_int_equal(number_format_fixed(2.5, NUMBER_FLOAT, 4, text), 3);
    assert_string_equal(text, "2.5");
    number_format_fixed(4, NUMBER_FLOAT, 4, text);
    assert_string_equal(text, "4.");
    number_format_fixed(-0.00001, NUMBER_FLOAT, 4, text);
    assert_string_equal(text, "-0.");
    number_format_fixed(0.99996, NUMBER_DOUBLE, 4, text);
    assert_string_equal(text, "1.");
    number_format_fixed(65504, NUMBER_HALF, 4, text);
    assert_string_equal(text, "65504.");
    number_format_fixed(67108872, NUMBER_FLOAT, 4, text);
    assert_string_equal(text, "67108872.");
    number_format_fixed(-20736, NUMBER_BFLOAT, 4, text);
    assert_string_equal(text, "-20736.");
    Mantissa digits = number_mantissa(9.99999e9, NUMBER_DOUBLE, 0, 4);
    assert_string_equal(digits.text, "1.");
    assert_int_equal(digits.exponent, 10);
    digits = number_mantissa(-1.5, NUMBER_DOUBLE, 3, 4);
    assert_string_equal(digits.text, "-1.500");
    assert_int_equal(digits.length, 6);
    digits = number_mantissa(0, NUMBER_DOUBLE, 2, 4);
    assert_string_equal(digits.text, "0.00");
    assert_int_equal(digits.exponent, 0);
}

static void test_integers(void **state) {
    (void)state;
    Text out = {0};
    number_append_integer(&out, INT64_MIN);
    text_append_char(&out, ' ');
    number_append_float(&out, 2);
    assert_string_equal(text_get(&out), "-9223372036854775808 2.0");
    text_free(&out);
}

static uint64_t draw(uint64_t *random, uint64_t below) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return (*random >> 11) % below;
}

static void assert_reads(const char *text) {
    int64_t integer;
    double number, wanted = strtod(text, NULL);
    NumberKind kind = number_read(text, strlen(text), &integer, &number);
    if (kind == NUMBER_IS_INTEGER) {
        assert_int_equal(integer, strtoll(text, NULL, 10));
        return;
    }
    assert_int_equal(kind, NUMBER_IS_FLOAT);
    if (memcmp(&number, &wanted, sizeof number) != 0) fail_msg("%s is %.17g", text, number);
}

// As strtod does, to the last bit: texts of many digits, with a point and an exponent or without.
static void test_texts_are_read_exactly(void **state) {
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 300000; i++) {
        char text[64];
        int length = 0, digits = 1 + (int)draw(&random, 22), point = (int)draw(&random, 24);
        if (draw(&random, 3) == 0) text[length++] = '-';
        for (int k = 0; k < digits; k++) {
            if (k == point) text[length++] = '.';
            text[length++] = (char)('0' + draw(&random, 3) * draw(&random, 5));
        }
        text[length] = '\0';
        if (draw(&random, 3) == 0) {
            int exponent = (int)draw(&random, 61) - 30;
            snprintf(text + length, sizeof text - (size_t)length, "e%d", exponent);
        }
        assert_reads(text);
    }
    // Halfway between two doubles, and just above and below.
    for (int tens = -27; tens <= 27; tens++)
        for (int least = 0; least < 10; least++) {
            char text[64];
            snprintf(text, sizeof text, "9007199254740993%d.00e%d", least, tens);
            assert_reads(text);
            snprintf(text, sizeof text, "184467440737095516%de%d", least, tens);
            assert_reads(text);
            snprintf(text, sizeof text, "-0.000%d503599627370497%de%d", least, least, tens);
            assert_reads(text);
        }
}

static void test_odd_texts(void **state) {
    (void)state;
    static const char *const numbers[] = {".5",
                                          "5.",
                                          "+5.0",
                                          "1e5",
                                          "1E-5",
                                          "0e0",
                                          "-0.0",
                                          "1e999",
                                          "1e-999",
                                          "0.0000000000000000000000000001",
                                          "00012.5",
                                          "1e+07",
                                          "12345678901234567890",
                                          "0.1e00005"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) assert_reads(numbers[i]);
    static const char *const words[] = {"",      ".",     "-",   "e5",      "1e",    "1e+",
                                        "1.2.3", "1e5e5", "--1", "1-1",     "1e1.5", ".e1",
                                        "+.",    "0x1",   "1_0", "infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int64_t integer;
        double number;
        assert_int_equal(number_read(words[i], strlen(words[i]), &integer, &number), NUMBER_NONE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_narrow_widths_are_shorter),
        cmocka_unit_test(test_everything_reads_back),
        cmocka_unit_test(test_parts_for_columns),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_texts_are_read_exactly),
        cmocka_unit_test(test_odd_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
