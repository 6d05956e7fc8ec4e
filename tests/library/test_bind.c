// Arguments bound to signatures, overloads, operations called with values, and the errors.
#include "tests/library/calling.h"

#include "eval/access.h"
#include "tensor/op.h"

static Value invoke(const char *name, const Value *positional, size_t count,
                    const char *const *names, const Value *named, size_t named_count) {
    const Builtin *row = catalog_find(name, strlen(name));
    if (!row) FAIL_TEST("there is no builtin %s", name);
    BuiltinArguments arguments = {.positional = positional,
                                  .count = count,
                                  .names = names,
                                  .named = named,
                                  .named_count = named_count};
    Value result = builtin_invoke(NULL, row, &arguments);
    for (size_t i = 0; i < count; i++) value_release(positional[i]);
    for (size_t i = 0; i < named_count; i++) value_release(named[i]);
    return result;
}
// One named argument next to positional ones.
#define CALL_NAMED(function, word, value, ...)                                                     \
    invoke(function, VALUES(__VA_ARGS__), (const char *const[]){word}, (const Value[]){value}, 1)

static Value make(const char *text) {
    return CALL("tensor", CALL("parse_json", S(text)));
}

static void test_numbers_stay_plain(void **state) {
    (void)state;
    expect_text(CALL("add", value_int(2), value_int(3)), "5");
    expect_text(CALL("abs", value_int(-3)), "3");
    expect_text(CALL("maximum", value_int(2), value_float(2.5)), "2.5");
    expect_text(CALL("exp", value_int(0)), "1.0");
    expect_text(CALL("eq", value_int(0), value_int(0)), "true");
    assert_int_equal(CALL("add", value_int(INT64_MAX), value_int(1)).kind, VALUE_FAIL);
    assert_int_equal(error_current()->code, STATUS_OVERFLOW);
}

static void test_operations_take_values(void **state) {
    (void)state;
    expect_text(CALL("add", make("[1, 2]"), value_int(10)), "[11 12]");
    expect_text(CALL("add", LIST(value_int(1), value_int(2)), make("[10, 20]")), "[11 22]");
    expect_text(CALL("reshape", make("[1, 2, 3, 4]"), LIST(value_int(2), value_int(-1))),
                "[[1 2]\n [3 4]]");
    expect_text(CALL_NAMED("reshape", "shape", make("[4, 1]"), make("[1, 2, 3, 4]")),
                "[[1]\n [2]\n [3]\n [4]]");
    expect_text(CALL("reshape", make("[1, 2, 3, 4]"), value_int(2), value_int(2)),
                "[[1 2]\n [3 4]]");
    expect_text(CALL("concat", LIST(make("[1]"), make("[2, 3]"))), "[1 2 3]");
    expect_text(CALL("concat", make("[1]"), make("[2, 3]")), "[1 2 3]");
    expect_text(CALL("concat", make("[[1]]"), make("[[2]]"), value_int(1)), "[[1 2]]");
    expect_text(CALL_NAMED("concat", "dim", value_int(1), make("[[1]]"), make("[[2]]")), "[[1 2]]");
}

static void test_forms_are_chosen_by_kind(void **state) {
    (void)state;
    expect_text(CALL("split", S("a,b"), S(",")), "[\"a\", \"b\"]");
    expect_text(CALL("split", make("[1, 2, 3]"), value_int(2)), "[[1 2], [3]]");
    expect_text(
        CALL("slice", make("[[1, 2, 3], [4, 5, 6]]"), value_int(1), value_int(0), value_int(2)),
        "[4 5]");
    expect_text(CALL("slice", make("[1, 2, 3]"), value_int(1), value_int(3)), "[2 3]");
    expect_text(CALL("join", LIST(S("a"), value_int(1)), S("-")), "\"a-1\"");
    expect_text(CALL("join", S("-"), LIST(S("a"), value_int(1))), "\"a-1\"");
}

static void test_too_many_missing_unknown_twice(void **state) {
    (void)state;
    expect_failure(CALL("trim", S("a"), S("b")), STATUS_ARITY,
                   "trim takes at most 1 argument (text), but 2 were given");
    assert_string_equal(error_current()->help, "trim(text: string) -> string");
    expect_failure(call_named("time", (Value[]){value_int(1)}, 1), STATUS_ARITY,
                   "time takes no arguments, but 1 was given");
    expect_failure(CALL("replace", S("a"), S("b")), STATUS_ARITY,
                   "replace: the argument `new` is missing");
    assert_string_equal(error_current()->help,
                        "replace(text: string, old: string, new: string) -> string");
    expect_failure(CALL_NAMED("find", "strat", value_int(1), S("a"), S("b")), STATUS_ARITY,
                   "find has no parameter `strat`");
    assert_string_equal(
        error_current()->help,
        "did you mean `start`? find(text: string, part: string, start: int = 0) -> int");
    expect_failure(CALL_NAMED("trim", "text", S("b"), S("a")), STATUS_ARITY,
                   "trim: `text` is given twice, by position and by name");
}

static void test_wrong_kinds(void **state) {
    (void)state;
    expect_failure(CALL("relu", S("abc")), STATUS_TYPE,
                   "relu: x must be a tensor, but it is \"abc\"");
    assert_string_equal(error_current()->help, "relu(x: tensor) -> tensor");
    expect_failure(CALL("flatten", make("[1]"), value_float(0.5)), STATUS_TYPE,
                   "flatten: start must be an integer, but it is 0.5");
    expect_failure(CALL("keys", LIST(value_int(1))), STATUS_TYPE,
                   "keys: x must be a dictionary, but it is a list of 1 value");
    expect_failure(CALL("tensor", value_int(1), S("float31")), STATUS_DTYPE,
                   "tensor: dtype names no dtype: \"float31\"");
    expect_failure(CALL("squeeze", make("[1]"), make("[0, 1]")), STATUS_TYPE,
                   "squeeze: dim must be an integer, but it is int64[2]");
    expect_failure(CALL("range", S("a")), STATUS_TYPE,
                   "range: stop must be an integer, but it is \"a\"");
    expect_failure(CALL("split", value_none(), value_int(1)), STATUS_TYPE,
                   "split does not take (none, 1)");
    assert_string_equal(
        error_current()->help,
        "split(text: string, separator: string?) -> list or split(x: tensor, size: ints, "
        "dim: int = 0) -> list");
    expect_failure(CALL("add", LIST(S("a")), value_int(1)), STATUS_TYPE,
                   "add: x must be a tensor, but it is a list that holds \"a\"");
}

static void test_none_is_an_absent_option(void **state) {
    (void)state;
    expect_text(CALL("split", S("a b"), value_none()), "[\"a\", \"b\"]");
    expect_text(CALL("squeeze", make("[[1]]"), value_none()), "1");
}

static void test_dtype_words(void **state) {
    (void)state;
    Value dtype = {.kind = VALUE_DTYPE, .as.integer = DTYPE_FLOAT16};
    expect_text(CALL("dtype", CALL("tensor", make("[1, 2]"), dtype)), "float16");
    expect_text(CALL("dtype", CALL("tensor", make("[1, 2]"), S("f64"))), "float64");
    Value word = {.kind = VALUE_BUILTIN, .as.builtin = catalog_find("float", 5)};
    expect_text(CALL("dtype", CALL("tensor", make("[1, 2]"), word)), "float32");
}

static void test_every_operation_has_attributes_for_its_parameters(void **state) {
    (void)state;
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        for (int p = 0; row->kind == ROW_OP && p < row->signature.count; p++) {
            const Param *param = &row->signature.params[p];
            bool input = param->kind == PARAM_TENSOR || param->kind == PARAM_TENSORS;
            if (!input && attribute_find(param->name) == ATTRIBUTE_COUNT)
                FAIL_TEST("%s: no attribute carries %s", row->signature_text, param->name);
        }
    }
}

static void test_methods_and_properties(void **state) {
    (void)state;
    Value list = LIST(value_int(1)), tensor = make("[[1, 2, 3]]");
    assert_non_null(builtin_find_method(list, "append", 6));
    assert_null(builtin_find_method(tensor, "append", 6));
    assert_null(builtin_find_method(list, "appendx", 7));
    expect_text(value_get_property(tensor, "shape", 5), "[1, 3]");
    expect_text(value_get_property(tensor, "T", 1), "[[1]\n [2]\n [3]]");
    expect_text(value_get_property(tensor, "dtype", 5), "int64");
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    Value name = value_get_property(tensor, "device", 6);
    assert_int_equal(name.kind, VALUE_STRING);
    assert_string_equal(name.as.string->bytes, device->name);
    value_release(name);
    assert_int_equal(value_get_property(tensor, "shapes", 6).kind, VALUE_ABSENT);
    value_release(list);
    value_release(tensor);
}

int main(void) {
    heap_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_stay_plain),
        cmocka_unit_test(test_operations_take_values),
        cmocka_unit_test(test_forms_are_chosen_by_kind),
        cmocka_unit_test(test_too_many_missing_unknown_twice),
        cmocka_unit_test(test_wrong_kinds),
        cmocka_unit_test(test_none_is_an_absent_option),
        cmocka_unit_test(test_dtype_words),
        cmocka_unit_test(test_every_operation_has_attributes_for_its_parameters),
        cmocka_unit_test(test_methods_and_properties),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
