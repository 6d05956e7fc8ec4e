// Values as print shows them, format specs, and texts with placeholders.
#include "tests/library/calling.h"

#include "base/placeholder.h"
#include "value/format.h"
#include "value/print.h"

static void test_values_print(void **state) {
    (void)state;
    expect_text(value_none(), "none");
    expect_text(value_bool(true), "true");
    expect_text(value_int(INT64_MIN), "-9223372036854775808");
    expect_text(value_float(1), "1.0");
    expect_text(value_float(0.1), "0.1");
    expect_text(value_float(1e21), "1e+21");
    expect_text(value_float(-1.0 / 0.0), "-inf");
    expect_text(S("a\"b\\c\n\t\x01é"), "\"a\\\"b\\\\c\\n\\t\\u0001é\"");
    expect_text(value_range(0, 5, 1), "0..5");
    expect_text(value_range(9, 0, -3), "range(9, 0, -3)");
    expect_text(LIST(S("a"), value_int(1), value_list(0)), "[\"a\", 1, []]");
    expect_text(TUPLE(value_int(1)), "(1,)");
    expect_text(TUPLE(value_int(1), value_float(2)), "(1, 2.0)");
    expect_text(value_tuple(0), "()");
    expect_text((Value){.kind = VALUE_DTYPE, .as.integer = DTYPE_FLOAT16}, "float16");
    expect_text((Value){.kind = VALUE_BUILTIN, .as.builtin = catalog_find("len", 3)}, "<fn len>");
    expect_text(value_function(NULL, NULL, 0), "<fn lambda>");
    Value dict = value_dict();
    dict_set_word(dict.as.dict, "b", value_int(1));
    dict_set(dict.as.dict, value_int(2), S("x"));
    expect_text(dict, "{\"b\": 1, 2: \"x\"}");
    static const char *const fields[] = {"x", "y"};
    static const StructType point = {.name = "Point", .field_count = 2, .field_names = fields};
    Value instance = value_struct(&point);
    instance.as.instance->fields[0] = value_float(1);
    instance.as.instance->fields[1] = S("s");
    expect_text(instance, "Point { x: 1.0, y: \"s\" }");
}

static void test_what_contains_itself(void **state) {
    (void)state;
    Value list = LIST(value_int(1)), dict = value_dict();
    list_push(list.as.list, value_retain(list));
    dict_set_word(dict.as.dict, "list", value_retain(list));
    dict_set_word(dict.as.dict, "self", value_retain(dict));
    expect_text(dict, "{\"list\": [1, [...]], \"self\": {...}}");
    value_release(list);
    Value deep = value_list(0);
    for (int i = 0; i < 100000; i++) deep = LIST(deep);
    Text text = {0};
    assert_int_equal(value_print(deep, false, &text), STATUS_OK);
    assert_true(text.length < 1000);
    text_free(&text);
    value_release(deep);
    heap_clear_all();
}

static void test_specs(void **state) {
    (void)state;
    const struct {
        Value value;
        const char *spec, *text;
    } cases[] = {
        {value_float(0.12345), ".3", "0.123"},
        {value_float(2), ".3", "2.000"},
        {value_int(5), ".2", "5.00"},
        {value_float(3.14159), ">8.3", "   3.142"},
        {value_int(42), "05", "00042"},
        {value_int(-42), "05", "-0042"},
        {value_int(42), "+", "+42"},
        {value_int(42), " ", " 42"},
        {value_int(-42), "+d", "-42"},
        {value_int(255), "x", "ff"},
        {value_int(255), "X", "FF"},
        {value_int(5), "b", "101"},
        {value_int(8), "o", "10"},
        {value_int(-255), "x", "-ff"},
        {value_int(1234567), ",", "1,234,567"},
        {value_int(123), ",", "123"},
        {value_float(1234567.891), ",.2", "1,234,567.89"},
        {value_float(-1234.5), ",", "-1,234.5"},
        {value_float(1234.5), "e", "1.234500e+03"},
        {value_float(1234.5), ".2e", "1.23e+03"},
        {value_float(0.5), "%", "50.000000%"},
        {value_float(0.5), ".1%", "50.0%"},
        {value_float(1e-7), "g", "1e-07"},
        {value_float(0.0 / 0.0), ".3", "nan"},
        {value_float(1.0 / 0.0), "+.1", "+inf"},
        {value_float(1.0 / 0.0), "06", "   inf"},
        {value_float(-1.5), "08.2", "-0001.50"},
        {value_float(3), "d", "3"},
        {value_int(7), "<4", "7   "},
        {value_int(7), "^5", "  7  "},
        {value_int(7), "*^5", "**7**"},
        {value_int(7), "4", "   7"},
        {S("ab"), "4", "ab  "},
        {S("ab"), ">4", "  ab"},
        {S("é漢"), ">4", "  é漢"},
        {S("abcdef"), ".3", "abc"},
        {S("abcdef"), "→<8", "abcdef→→"},
        {S("ab"), "s", "ab"},
        {value_bool(true), ">6", "  true"},
        {value_none(), "<6", "none  "},
        {value_int(INT64_MIN), "d", "-9223372036854775808"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Text text = {0};
        Status status = format_value(cases[i].value, cases[i].spec, &text);
        if (status != STATUS_OK) FAIL_TEST("{:%s}: %s", cases[i].spec, error_current()->message);
        assert_string_equal(text_get(&text), cases[i].text);
        text_free(&text);
    }
}

static void test_specs_that_do_not_fit(void **state) {
    (void)state;
    const struct {
        Value value;
        const char *spec, *message;
    } cases[] = {
        {value_int(1), "hello", "{:hello} is not a format: `hello` is not understood"},
        {value_int(1), ".", "{:.} has no digits after the point"},
        {value_int(1), "99999", "the width in {:99999} is over 10000"},
        {value_float(1), ".101", "the precision in {:.101} is over 100"},
        {S("a"), "x", "{:x} is for a number, but the value is \"a\""},
        {value_float(1.5), "x", "{:x} is for an integer, but the value is 1.5"},
        {value_int(5), ".2x", "{:.2x}: an integer has no precision"},
        {value_int(5), "s", "{:s} is for a string, but the value is 5"},
        {value_none(), ".3", "{:.3} is for a number or a string, but the value is none"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Text text = {0};
        assert_int_equal(format_value(cases[i].value, cases[i].spec, &text), STATUS_FORMAT);
        assert_string_equal(error_current()->message, cases[i].message);
        text_free(&text);
    }
}

static void test_placeholders(void **state) {
    (void)state;
    assert_true(placeholder_any("a {} b", 6));
    assert_true(placeholder_any("{:.3}", 5));
    assert_false(placeholder_any("{{}}", 4));
    assert_false(placeholder_any("{x} {", 5));
    expect_text(CALL("format", S("{}|{:>4}|{{}}|{x}"), value_int(1), S("é")), "\"1|   é|{}|{x}\"");
    expect_text(CALL("format", S("{\"a\": {}}"), value_int(1)), "\"{\\\"a\\\": 1}\"");
    expect_text(CALL("format", S("plain")), "\"plain\"");
    expect_failure(CALL("format", S("{} {}"), value_int(1)), STATUS_FORMAT,
                   "the format \"{} {}\" has 2 placeholders, but 1 value was given");
    expect_failure(CALL("format", S("{}"), value_int(1), value_int(2)), STATUS_FORMAT,
                   "the format \"{}\" has 1 placeholder, but 2 values were given");
}

static void test_descriptions(void **state) {
    (void)state;
    const struct {
        Value value;
        const char *text;
    } cases[] = {
        {value_int(5), "5"},
        {S("abc"), "\"abc\""},
        {S("0123456789012345678901234567890123456789tail"),
         "\"0123456789012345678901234567890123456789\"..."},
        {LIST(value_int(1)), "a list of 1 value"},
        {value_tuple(0), "a tuple of 0 values"},
        {value_dict(), "a dictionary of 0 entries"},
        {value_range(0, 3, 1), "the range 0..3"},
        {value_none(), "none"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(value_text(cases[i].value).text, cases[i].text);
        value_release(cases[i].value);
    }
}

int main(void) {
    heap_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_print), cmocka_unit_test(test_what_contains_itself),
        cmocka_unit_test(test_specs),        cmocka_unit_test(test_specs_that_do_not_fit),
        cmocka_unit_test(test_placeholders), cmocka_unit_test(test_descriptions),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
