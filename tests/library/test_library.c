// The language's functions: containers, text, regular expressions, conversions, errors.
#include "tests/library/calling.h"

#include <math.h>
#include <stdio.h>

#include "base/runtime.h"

static Value builtin(const char *name) {
    return (Value){.kind = VALUE_BUILTIN, .as.builtin = catalog_find(name, strlen(name))};
}

static Value numbers(int64_t a, int64_t b, int64_t c) {
    return LIST(value_int(a), value_int(b), value_int(c));
}

static void test_lists_change_in_place(void **state) {
    (void)state;
    Value list = numbers(1, 2, 3);
    expect_text(CALL("list.append", value_retain(list), S("x")), "[1, 2, 3, \"x\"]");
    expect_text(CALL("append", value_retain(list), value_int(9)), "[1, 2, 3, \"x\", 9]");
    expect_text(CALL("push", value_retain(list), value_float(4)), "[1, 2, 3, \"x\", 4.0]");
    expect_text(CALL("pop", value_retain(list)), "4.0");
    expect_text(CALL("pop", value_retain(list), value_int(0)), "1");
    expect_text(CALL("insert", value_retain(list), value_int(-1), value_none()),
                "[2, 3, none, \"x\"]");
    expect_text(CALL("insert", value_retain(list), value_int(4), value_int(7)),
                "[2, 3, none, \"x\", 7]");
    expect_text(value_retain(list), "[2, 3, none, \"x\", 7]");
    expect_text(CALL("remove", value_retain(list), value_int(2)), "none");
    expect_text(CALL("set", value_retain(list), value_int(-1), value_int(8)), "none");
    expect_text(CALL("extend", value_retain(list), value_range(0, 2, 1)), "[2, 3, \"x\", 8, 0, 1]");
    expect_text(value_retain(list), "[2, 3, \"x\", 8, 0, 1]");
    value_release(CALL("extend", value_retain(list), value_retain(list)));
    expect_text(CALL("len", value_retain(list)), "12");
    expect_text(CALL("clear", value_retain(list)), "none");
    expect_text(CALL("is_empty", value_retain(list)), "true");
    expect_failure(CALL("pop", value_retain(list)), STATUS_INDEX, "pop: the list is empty");
    value_release(list);
    expect_failure(CALL("get", numbers(1, 2, 3), value_int(3)), STATUS_INDEX,
                   "index 3 is out of range for a list of 3 elements");
    expect_failure(CALL("get", TUPLE(value_int(1)), value_int(-2)), STATUS_INDEX,
                   "index -2 is out of range for a tuple of 1 element");
    expect_text(CALL("get", numbers(1, 2, 3), value_int(3), S("none such")), "\"none such\"");
    expect_text(CALL("get", value_range(0, 10, 3), value_int(-1)), "9");
    expect_text(CALL("get", S("aé🦙"), value_int(1)), "\"é\"");
}

static void test_tensors_do_not_grow(void **state) {
    (void)state;
    Value tensor = CALL("tensor", numbers(1, 2, 3));
    expect_failure(CALL("push", value_retain(tensor), value_int(1)), STATUS_TYPE,
                   "push changes a list, but x is int64[3]");
    expect_text(CALL("append", value_retain(tensor), value_int(4)), "[1 2 3 4]");
    expect_text(CALL("get", value_retain(tensor), value_int(-1)), "3");
    expect_text(CALL("contains", value_retain(tensor), value_int(2)), "true");
    expect_text(CALL("index_of", value_retain(tensor), value_int(3)), "2");
    expect_text(CALL("reversed", value_retain(tensor)), "[3 2 1]");
    expect_text(CALL("to_list", value_retain(tensor)), "[1, 2, 3]");
    expect_text(CALL("chunk", value_retain(tensor), value_int(2)), "[[1 2], [3]]");
    expect_text(CALL("shape", value_retain(tensor)), "[3]");
    expect_text(CALL("numel", value_retain(tensor)), "3");
    expect_text(CALL("rank", tensor), "1");
}

static void test_dictionaries(void **state) {
    (void)state;
    Value dict = value_dict();
    expect_text(CALL("set", value_retain(dict), S("b"), value_int(1)), "none");
    expect_text(CALL("insert", value_retain(dict), value_float(2), value_int(3)),
                "{\"b\": 1, 2: 3}");
    expect_text(CALL("keys", value_retain(dict)), "[\"b\", 2]");
    expect_text(CALL("values", value_retain(dict)), "[1, 3]");
    expect_text(CALL("contains", value_retain(dict), value_int(2)), "true");
    expect_text(CALL("get", value_retain(dict), S("b")), "1");
    expect_text(CALL("get", value_retain(dict), S("c"), value_int(0)), "0");
    expect_failure(CALL("get", value_retain(dict), S("c")), STATUS_KEY,
                   "the dictionary has no key \"c\"");
    expect_failure(CALL("set", value_retain(dict), value_float(0.5), value_int(0)), STATUS_TYPE,
                   "a dictionary's key must be an integer, but it is 0.5");
    expect_failure(CALL("set", value_retain(dict), value_none(), value_int(0)), STATUS_TYPE,
                   "a dictionary's key must be a string, int or bool, but it is none");
    expect_text(CALL("remove", value_retain(dict), S("b")), "1");
    expect_failure(CALL("remove", value_retain(dict), S("b")), STATUS_KEY,
                   "the dictionary has no key \"b\"");
    expect_text(dict, "{2: 3}");
}

static void test_functions_over_elements(void **state) {
    (void)state;
    expect_text(CALL("map", builtin("abs"), numbers(-1, 2, -3)), "[1, 2, 3]");
    expect_text(CALL("map", numbers(-1, 2, -3), builtin("abs")), "[1, 2, 3]");
    expect_text(CALL("filter", builtin("bool"), numbers(0, 2, 0)), "[2]");
    expect_text(CALL("reduce", builtin("add"), numbers(1, 2, 3)), "6");
    expect_text(CALL("reduce", builtin("add"), numbers(1, 2, 3), value_int(10)), "16");
    expect_failure(CALL("reduce", builtin("add"), LIST()), STATUS_VALUE,
                   "reduce: x is empty and there is no initial value");
    expect_failure(CALL("filter", builtin("abs"), numbers(1, 2, 3)), STATUS_TYPE,
                   "filter: the result of f must be a bool, but it is 1");
    expect_failure(CALL("map", builtin("keys"), numbers(1, 2, 3)), STATUS_TYPE,
                   "keys: x must be a dictionary, but it is 1");
    expect_text(CALL("zip", numbers(1, 2, 3), S("ab")), "[(1, \"a\"), (2, \"b\")]");
    expect_text(CALL("enumerate", S("ab"), value_int(5)), "[(5, \"a\"), (6, \"b\")]");
    expect_text(CALL("reversed", S("aé🦙")), "\"🦙éa\"");
    expect_text(CALL("reversed", numbers(1, 2, 3)), "[3, 2, 1]");
}

static void test_sorting_is_stable(void **state) {
    (void)state;
    expect_text(CALL("sorted", numbers(3, 1, 2)), "[1, 2, 3]");
    expect_text(CALL("sorted", LIST(S("b"), S("a"), S("c")), value_none(), value_bool(true)),
                "[\"c\", \"b\", \"a\"]");
    expect_text(CALL("sorted", LIST(S("bb"), S("a"), S("cc"), S("d")), builtin("len")),
                "[\"a\", \"d\", \"bb\", \"cc\"]");
    expect_text(
        CALL("sorted", LIST(S("bb"), S("a"), S("cc"), S("d")), builtin("len"), value_bool(true)),
        "[\"bb\", \"cc\", \"a\", \"d\"]");
    expect_failure(CALL("sorted", LIST(value_int(1), S("a"))), STATUS_TYPE,
                   "1 and \"a\" have no order");
    Value list = value_list(0);
    uint32_t random = 1;
    for (int i = 0; i < 1001; i++) {
        random = random * 1664525u + 1013904223u;
        list_push(list.as.list, TUPLE(value_int(random >> 28), value_int(i)));
    }
    Value sorted = CALL("sorted", list);
    for (size_t i = 1; i < 1001; i++) {
        const Value *a = sorted.as.list->items[i - 1].as.list->items,
                    *b = sorted.as.list->items[i].as.list->items;
        assert_true(a[0].as.integer < b[0].as.integer ||
                    (a[0].as.integer == b[0].as.integer && a[1].as.integer < b[1].as.integer));
    }
    value_release(sorted);
}

static void test_text(void **state) {
    (void)state;
    expect_text(CALL("split", S(" a  b\n")), "[\"a\", \"b\"]");
    expect_text(CALL("split", S(",a,,"), S(",")), "[\"\", \"a\", \"\", \"\"]");
    expect_text(CALL("split", S("é漢"), S("")), "[\"é\", \"漢\"]");
    expect_text(CALL("trim", S("\t a b \n")), "\"a b\"");
    expect_text(CALL("replace", S("aXbXX"), S("X"), S("--")), "\"a--b----\"");
    expect_failure(CALL("replace", S("a"), S(""), S("b")), STATUS_VALUE,
                   "replace: old must not be empty");
    expect_text(CALL("upper", S("straße é")), "\"STRAẞE É\"");
    expect_text(CALL("lower", S("ÀB")), "\"àb\"");
    expect_text(CALL("find", S("né漢né"), S("é")), "1");
    expect_text(CALL("find", S("né漢né"), S("é"), value_int(2)), "4");
    expect_text(CALL("find", S("abc"), S("x")), "-1");
    expect_text(CALL("string_length", S("né漢")), "3");
    expect_text(CALL("string_substring", S("né漢né"), value_int(1), value_int(-1)), "\"é漢n\"");
    expect_text(CALL("string_substring", S("abc"), value_int(2)), "\"c\"");
    expect_text(CALL("string_substring", S("abc"), value_int(2), value_int(1)), "\"\"");
    expect_text(CALL("starts_with", S("abc"), S("ab")), "true");
    expect_text(CALL("ends_with", S("abc"), S("abcd")), "false");
    expect_text(CALL("count", S("banana"), S("an")), "2");
    expect_text(CALL("count", numbers(1, 2, 1), value_int(1)), "2");
    expect_text(CALL("contains", S("abc"), S("bc")), "true");
    expect_text(CALL("index_of", S("né漢"), S("漢")), "2");
}

static void test_regular_expressions(void **state) {
    (void)state;
    expect_text(CALL("match_regex", S("layer 12"), S("\\d+$")), "true");
    expect_text(CALL("match_regex", S("layer"), S("\\d")), "false");
    expect_text(CALL("find_all", S("a1 b22"), S("[a-z]\\d+")), "[\"a1\", \"b22\"]");
    expect_text(CALL("find_all", S("k=v, x=y"), S("(\\w)=(\\w)(!)?")),
                "[[\"k\", \"v\", none], [\"x\", \"y\", none]]");
    expect_text(CALL("find_all", S("aéb"), S("")), "[\"\", \"\", \"\", \"\"]");
    expect_text(CALL("find_all", S("né漢"), S("\\w")), "[\"n\", \"é\", \"漢\"]");
    expect_text(CALL("replace_regex", S("2024-05-06"), S("(\\d+)-(\\d+)-(\\d+)"), S("$3.$2.$1")),
                "\"06.05.2024\"");
    Value many =
        CALL("replace_regex", S("aaaaaaaaaaaaaaaaaaaa"), S("a"), S("12345678901234567890"));
    assert_int_equal(many.as.string->length, 400);
    expect_failure(
        CALL("match_regex", S("a"), S("(")), STATUS_VALUE,
        "match_regex: pattern is not a regular expression: missing closing parenthesis at "
        "byte 1 of \"(\"");
    Value text = S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    expect_failure(CALL("match_regex", text, S("^(a+)+$")), STATUS_VALUE,
                   "match_regex: the pattern needs too many steps on this text and was stopped");
}

static void test_numbers_from_text(void **state) {
    (void)state;
    expect_text(CALL("int", S(" 1_000 ")), "1000");
    expect_text(CALL("int", S("-0x10")), "-16");
    expect_text(CALL("int", S("0b101")), "5");
    expect_text(CALL("int", S("-9223372036854775808")), "-9223372036854775808");
    expect_text(CALL("int", value_float(-2.9)), "-2");
    expect_text(CALL("int", value_bool(true)), "1");
    expect_text(CALL("float", S("1e-3")), "0.001");
    expect_text(CALL("float", S("-inf")), "-inf");
    expect_text(CALL("float", value_int(2)), "2.0");
    expect_text(CALL("bool", S("false")), "false");
    expect_text(CALL("bool", value_list(0)), "false");
    expect_text(CALL("str", value_float(1)), "\"1.0\"");
    expect_text(CALL("type", numbers(1, 2, 3)), "\"list\"");
    expect_failure(CALL("int", S("12a")), STATUS_VALUE, "\"12a\" does not read as an int");
    expect_failure(CALL("int", S("")), STATUS_VALUE, "\"\" does not read as an int");
    expect_failure(CALL("int", S("0x")), STATUS_VALUE, "\"0x\" does not read as an int");
    expect_failure(CALL("int", S("--5")), STATUS_VALUE, "\"--5\" does not read as an int");
    expect_failure(CALL("int", S("9223372036854775808")), STATUS_OVERFLOW,
                   "9223372036854775808 does not fit a 64-bit int");
    expect_failure(CALL("int", value_float(NAN)), STATUS_VALUE, "nan is not an integer");
    expect_failure(CALL("int", value_float(1e300)), STATUS_OVERFLOW,
                   "1e+300 does not fit a 64-bit int");
    expect_failure(CALL("float", S("0x10")), STATUS_VALUE, "\"0x10\" does not read as a float");
    expect_failure(CALL("int", CALL("tensor", numbers(1, 2, 3))), STATUS_TYPE,
                   "int: x must be a number, bool or string, but it is int64[3]");
    assert_string_equal(error_current()->help, "`x as int64` converts every element");
}

static void test_small_mathematics(void **state) {
    (void)state;
    expect_text(CALL("factorial", value_int(20)), "2432902008176640000");
    expect_failure(CALL("factorial", value_int(21)), STATUS_OVERFLOW,
                   "factorial(21) does not fit a 64-bit int; 20 is the largest n");
    expect_failure(CALL("factorial", value_int(-1)), STATUS_VALUE,
                   "factorial: n must not be negative, but it is -1");
    expect_text(CALL("divmod", value_int(-7), value_int(2)), "(-4, 1)");
    expect_text(CALL("range", value_int(3)), "0..3");
    expect_text(CALL("range", value_int(3), value_int(0), value_int(-1)), "range(3, 0, -1)");
    expect_failure(CALL("range", value_int(3), value_int(0), value_int(0)), STATUS_VALUE,
                   "range: step must not be 0");
}

static void test_assertions(void **state) {
    (void)state;
    expect_text(CALL("assert", value_bool(true)), "none");
    expect_failure(CALL("assert", value_bool(false)), STATUS_ASSERT, "the assertion does not hold");
    expect_failure(CALL("assert", value_bool(false), S("step {}"), value_int(3)), STATUS_ASSERT,
                   "step 3");
    expect_failure(CALL("assert", value_int(1)), STATUS_TYPE,
                   "the condition of assert must be a bool, but it is 1");
    expect_text(CALL("assert_eq", numbers(1, 2, 3), CALL("tensor", numbers(1, 2, 3))), "none");
    expect_failure(CALL("assert_eq", value_int(1), value_int(2)), STATUS_ASSERT,
                   "1 is not equal to 2");
    expect_failure(CALL("assert_eq", S("a"), S("b"), S("names")), STATUS_ASSERT,
                   "names: \"a\" is not equal to \"b\"");
    expect_failure(
        CALL("assert_eq", CALL("tensor", numbers(1, 2, 3)), CALL("tensor", numbers(1, 2, 4))),
        STATUS_ASSERT, "[1 2 3] is not equal to [1 2 4] (int64[3] and int64[3])");
    expect_text(CALL("assert_about_eq", value_float(1.000001), value_int(1)), "none");
    expect_text(
        CALL("assert_about_eq", CALL("tensor", numbers(1, 2, 3)), numbers(1, 2, 4), value_int(1)),
        "none");
    expect_failure(CALL("assert_about_eq", value_float(1.5), value_int(1), value_float(0.25)),
                   STATUS_ASSERT, "1.5 is not within 0.25 of 1");
    expect_failure(CALL("assert_about_eq", value_float(1.5), value_int(1)), STATUS_ASSERT,
                   "1.5 is not about equal to 1");
    expect_failure(CALL("panic", S("cannot read {}"), S("a.txt")), STATUS_PANIC,
                   "cannot read a.txt");
    expect_failure(CALL("error", S("no data"), S("io")), STATUS_USER, "no data");
    assert_string_equal(error_current()->kind, "io");
}

static void test_memory_numbers(void **state) {
    (void)state;
    Value memory = call_named("memory", NULL, 0);
    expect_text(call_named("keys", &memory, 1), "[\"live\", \"peak\", \"cached\", \"buffers\", "
                                                "\"allocations\", \"reuses\", \"reuse_rate\", "
                                                "\"waits\", \"relations\", \"away\", \"host\"]");
    Value devices = call_named("devices", NULL, 0);
    assert_true(devices.as.list->count >= 2); // the CPU, and what there is of Vulkan or why not
    expect_text(value_retain(devices.as.list->items[0]), "\"cpu\"");
    value_release(devices);
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\"", device->name);
    expect_text(call_named("device", NULL, 0), quoted);
    expect_text(CALL("device", CALL("tensor", numbers(1, 2, 3))), quoted);
    unsetenv("TL_TEST_LEAK");
    expect_failure(CALL("__leak_buffer", CALL("tensor", numbers(1, 2, 3))), STATUS_SETTING,
                   "__leak_buffer works only when TL_TEST_LEAK=1 is set");
    expect_text(CALL("env", S("TL_NO_SUCH_NAME"), value_int(5)), "5");
    expect_text(CALL("env", S("TL_NO_SUCH_NAME")), "none");
}

// What they have until then nobody sees: the next statement fails.
static void test_an_interrupt_ends_what_goes_through_a_text(void **state) {
    (void)state;
    runtime_interrupt(runtime_current, INTERRUPT_SIGNAL);
    expect_text(CALL("split", S("a,b,c"), S(",")), "[\"a\"]");
    expect_text(CALL("split", S("a b c")), "[]");
    expect_text(CALL("upper", S("abc")), "\"\"");
    (void)runtime_take_interrupts(runtime_current, INTERRUPT_SIGNAL);
    expect_text(CALL("split", S("a,b,c"), S(",")), "[\"a\", \"b\", \"c\"]");
}

int main(void) {
    heap_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_change_in_place),
        cmocka_unit_test(test_tensors_do_not_grow),
        cmocka_unit_test(test_dictionaries),
        cmocka_unit_test(test_functions_over_elements),
        cmocka_unit_test(test_sorting_is_stable),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_an_interrupt_ends_what_goes_through_a_text),
        cmocka_unit_test(test_regular_expressions),
        cmocka_unit_test(test_numbers_from_text),
        cmocka_unit_test(test_small_mathematics),
        cmocka_unit_test(test_assertions),
        cmocka_unit_test(test_memory_numbers),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
