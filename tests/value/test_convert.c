// Conversions of values, equality, order, and values as sequences.
#include "tests/library/calling.h"

#include <math.h>

#include "value/convert.h"
#include "value/items.h"

static Value floats(const double *numbers, int64_t count) {
    Tensor *tensor;
    Shape shape = {.rank = 1, .dims = {count}};
    assert_int_equal(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &tensor), STATUS_OK);
    return value_tensor(tensor);
}

static Value rank_0(double number) {
    Tensor *tensor;
    Shape shape = {.rank = 0};
    assert_int_equal(tensor_from_floats(&number, &shape, DTYPE_FLOAT32, &tensor), STATUS_OK);
    return value_tensor(tensor);
}

static void test_whole_numbers(void **state) {
    (void)state;
    int64_t number;
    Value zero = rank_0(3.0);
    assert_int_equal(value_to_int(value_int(-5), "dim", &number), STATUS_OK);
    assert_int_equal(number, -5);
    assert_int_equal(value_to_int(value_float(-0x1p63), "dim", &number), STATUS_OK);
    assert_true(number == INT64_MIN);
    assert_int_equal(value_to_int(zero, "dim", &number), STATUS_OK);
    assert_int_equal(number, 3);
    value_release(zero);
    const struct {
        Value value;
        const char *message;
    } wrong[] = {
        {value_float(2.5), "dim must be an integer, but it is 2.5"},
        {value_float(0x1p63), "dim must be an integer, but it is 9.223372036854776e+18"},
        {value_float(NAN), "dim must be an integer, but it is nan"},
        {value_bool(true), "dim must be an integer, but it is true"},
        {S("3"), "dim must be an integer, but it is \"3\""},
        {value_none(), "dim must be an integer, but it is none"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(value_to_int(wrong[i].value, "dim", &number), STATUS_TYPE);
        assert_string_equal(error_current()->message, wrong[i].message);
    }
}

static void test_conditions(void **state) {
    (void)state;
    bool flag;
    assert_int_equal(value_to_bool(value_bool(true), "the condition", &flag), STATUS_OK);
    assert_true(flag);
    assert_int_equal(value_to_bool(value_int(1), "the condition", &flag), STATUS_TYPE);
    assert_string_equal(error_current()->message, "the condition must be a bool, but it is 1");
    assert_string_equal(error_current()->help, "compare it: `!= 0`");
    Value tensor = floats((double[]){1, 2}, 2);
    assert_int_equal(value_to_bool(tensor, "the condition", &flag), STATUS_TYPE);
    assert_string_equal(error_current()->message,
                        "the condition must be a bool, but it is float32[2]");
    assert_string_equal(error_current()->help, "any(...) or all(...) makes one bool of a tensor");
    value_release(tensor);
}

static void test_shapes_lose_nothing(void **state) {
    (void)state;
    Shape shape;
    // 2^24 + 1 is not a float32: the literal must be read from its exact numbers.
    Value literal = floats((double[]){16777217.0, 2.0}, 2);
    assert_int_equal(value_to_shape(literal, "shape", &shape), STATUS_OK);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.dims[0], 16777217);
    value_release(literal);
    Value list = LIST(value_int(2), value_float(3), rank_0(4));
    assert_int_equal(value_to_shape(list, "shape", &shape), STATUS_OK);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dims[2], 4);
    value_release(list);
    assert_int_equal(value_to_shape(value_range(1, 4, 1), "shape", &shape), STATUS_OK);
    assert_int_equal(shape.dims[2], 3);
    assert_int_equal(value_to_shape(value_int(7), "shape", &shape), STATUS_OK);
    assert_int_equal(shape.rank, 1);
    assert_int_equal(value_to_shape(value_range(0, 9, 1), "shape", &shape), STATUS_SHAPE);
    assert_string_equal(error_current()->message, "shape has 9 dimensions; at most 8 are possible");
    list = LIST(value_int(2), value_float(2.5));
    assert_int_equal(value_to_shape(list, "shape", &shape), STATUS_TYPE);
    assert_string_equal(error_current()->message, "shape[1] must be an integer, but it is 2.5");
    value_release(list);
    assert_int_equal(value_to_shape(S("2"), "shape", &shape), STATUS_TYPE);
    assert_string_equal(error_current()->message, "shape must be integers, but it is \"2\"");
}

static void expect_tensor(Value value, const char *type, const char *text) {
    Tensor *tensor;
    if (value_to_tensor(value, "x", &tensor) != STATUS_OK)
        FAIL_TEST("%s", error_current()->message);
    Text description = {0};
    tensor_describe(tensor, &description);
    assert_string_equal(text_get(&description), type);
    text_free(&description);
    Value list = call_named("to_list", &(Value){.kind = VALUE_TENSOR, .as.tensor = tensor}, 1);
    expect_text(list, text);
    value_release(value);
}

static void test_lists_become_tensors(void **state) {
    (void)state;
    expect_tensor(LIST(value_int(1), value_int(2)), "int64[2]", "[1, 2]");
    expect_tensor(LIST(value_int(1), value_float(2.5)), "float32[2]", "[1.0, 2.5]");
    expect_tensor(LIST(value_bool(true), value_bool(false)), "bool[2]", "[true, false]");
    expect_tensor(LIST(value_bool(true), value_int(2)), "int64[2]", "[1, 2]");
    expect_tensor(LIST(LIST(value_int(1), value_int(2)), TUPLE(value_int(3), value_int(4))),
                  "int64[2, 2]", "[[1, 2], [3, 4]]");
    expect_tensor(LIST(floats((double[]){1, 2}, 2), LIST(value_int(3), value_int(4))),
                  "float32[2, 2]", "[[1.0, 2.0], [3.0, 4.0]]");
    expect_tensor(LIST(rank_0(1), value_int(2)), "float32[2]", "[1.0, 2.0]");
    expect_tensor(value_range(0, 6, 2), "int64[3]", "[0, 2, 4]");
    expect_tensor(LIST(), "float32[0]", "[]");
    expect_tensor(LIST(LIST(), LIST()), "float32[2, 0]", "[[], []]");
}

static void expect_no_tensor(Value value, Status code, const char *message) {
    Tensor *tensor;
    assert_int_equal(value_to_tensor(value, "x", &tensor), code);
    assert_string_equal(error_current()->message, message);
    value_release(value);
}

static void test_lists_that_are_no_tensors(void **state) {
    (void)state;
    expect_no_tensor(LIST(LIST(value_int(1), value_int(2)), LIST(value_int(3))), STATUS_SHAPE,
                     "x is ragged: one row has 2 elements, another 1");
    expect_no_tensor(LIST(LIST(value_int(1)), value_int(3)), STATUS_SHAPE,
                     "x is ragged: a number stands where other rows have a list");
    expect_no_tensor(LIST(value_int(3), LIST(value_int(1))), STATUS_SHAPE,
                     "x is ragged: a list stands where other rows have a number");
    expect_no_tensor(LIST(value_int(3), S("a")), STATUS_TYPE,
                     "x must be a tensor, but it is a list that holds \"a\"");
    expect_no_tensor(value_none(), STATUS_TYPE, "x must be a tensor, but it is none");
    Value deep = value_list(0);
    for (int i = 0; i < 9; i++) deep = LIST(deep);
    expect_no_tensor(deep, STATUS_SHAPE, "x is nested more than 8 deep");
}

static void expect_equal(Value a, Value b, bool expected) {
    bool equal;
    assert_int_equal(value_equals(a, b, &equal), STATUS_OK);
    assert_int_equal(equal, expected);
    assert_int_equal(value_equals(b, a, &equal), STATUS_OK);
    assert_int_equal(equal, expected);
    value_release(a);
    value_release(b);
}

static void test_equality(void **state) {
    (void)state;
    expect_equal(value_int(1), value_float(1), true);
    expect_equal(value_int(INT64_MAX), value_float(0x1p63), false);
    expect_equal(value_int(1), value_bool(true), false);
    expect_equal(S("1"), value_int(1), false);
    expect_equal(value_float(NAN), value_float(NAN), false);
    expect_equal(value_none(), value_none(), true);
    expect_equal(S("é"), S("é"), true);
    expect_equal(rank_0(2), value_int(2), true);
    expect_equal(LIST(value_int(1), S("a")), LIST(value_float(1), S("a")), true);
    expect_equal(LIST(value_int(1)), TUPLE(value_int(1)), false);
    expect_equal(LIST(value_int(1)), LIST(value_int(1), value_int(2)), false);
    expect_equal(floats((double[]){1, 2}, 2), floats((double[]){1, 2}, 2), true);
    expect_equal(floats((double[]){1, 2}, 2), floats((double[]){1, 3}, 2), false);
    expect_equal(floats((double[]){1, 2}, 2), floats((double[]){1}, 1), false);
    expect_equal(floats((double[]){1, 2}, 2), LIST(value_int(1), value_int(2)), true);
    expect_equal(floats((double[]){1, 2}, 2), LIST(S("a")), false);
    Value a = value_dict(), b = value_dict();
    dict_set_word(a.as.dict, "x", value_int(1));
    dict_set_word(a.as.dict, "y", value_int(2));
    dict_set_word(b.as.dict, "y", value_int(2));
    dict_set_word(b.as.dict, "x", value_float(1));
    expect_equal(a, b, true);
}

static void test_equality_of_endless_lists(void **state) {
    (void)state;
    Value a = value_list(0), b = value_list(0);
    list_push(a.as.list, value_retain(a));
    list_push(b.as.list, value_retain(b));
    bool equal;
    assert_int_equal(value_equals(a, b, &equal), STATUS_DEPTH);
    value_release(a);
    value_release(b);
    heap_clear_all();
}

static void test_order(void **state) {
    (void)state;
    const struct {
        Value a, b;
        int order;
    } cases[] = {
        {value_int(1), value_int(2), -1},
        {value_int(INT64_MAX), value_float(0x1p63), -1},
        {value_int(INT64_MIN), value_float(-0x1p63), 0},
        {value_float(2.5), value_int(2), 1},
        {value_float(-2.5), value_int(-2), -1},
        {value_float(NAN), value_float(INFINITY), 1},
        {S("a"), S("b"), -1},
        {value_bool(false), value_bool(true), -1},
        {LIST(value_int(1), S("b")), LIST(value_int(1), S("a")), 1},
        {LIST(value_int(1)), LIST(value_int(1), value_int(0)), -1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int order;
        assert_int_equal(value_compare(cases[i].a, cases[i].b, &order), STATUS_OK);
        assert_int_equal(order, cases[i].order);
        assert_int_equal(value_compare(cases[i].b, cases[i].a, &order), STATUS_OK);
        assert_int_equal(order, -cases[i].order);
        value_release(cases[i].a);
        value_release(cases[i].b);
    }
    int order;
    assert_int_equal(value_compare(value_int(1), S("a"), &order), STATUS_TYPE);
    assert_string_equal(error_current()->message, "1 and \"a\" have no order");
}

static void test_sequences(void **state) {
    (void)state;
    expect_text(value_to_items(value_range(3, 0, -1), "x"), "[3, 2, 1]");
    expect_text(value_to_items(S("aé🦙"), "x"), "[\"a\", \"é\", \"🦙\"]");
    Value dict = value_dict();
    dict_set_word(dict.as.dict, "k", value_int(1));
    expect_text(value_to_items(dict, "x"), "[\"k\"]");
    value_release(dict);
    assert_int_equal(value_to_items(value_range(0, INT64_MAX, 1), "x").kind, VALUE_FAIL);
    assert_string_equal(error_current()->message,
                        "x: a range of 9223372036854775807 numbers is too long for a list");
    assert_int_equal(value_to_items(value_int(3), "x").kind, VALUE_FAIL);
    assert_string_equal(
        error_current()->message,
        "x must be a list, tuple, range, tensor, string or dictionary, but it is 3");
}

int main(void) {
    heap_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_shapes_lose_nothing),
        cmocka_unit_test(test_lists_become_tensors),
        cmocka_unit_test(test_lists_that_are_no_tensors),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_equality_of_endless_lists),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
