// The embedding API (include/tl.h), each function and its misuse.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/tl.h"

#include <cmocka.h>

enum { ROUND_TRIPS = 100000 };

static tl_runtime *begin(void) {
    const tl_error *error = NULL;
    tl_runtime *tl = tl_runtime_new("cpu", &error);
    if (!tl) fail_msg("%s", error->message);
    return tl;
}

// Nothing is left of what the test has made but `values`.
static void expect_ledger(tl_runtime *tl, uint64_t values) {
    tl_ledger_entry ledger;
    tl_ledger(tl, &ledger);
    assert_int_equal(ledger.values, values);
    if (values > 0) return;
    assert_int_equal(ledger.live_buffers, 0);
    assert_int_equal(ledger.borrowed_bytes, 0);
}

static void end(tl_runtime *tl) {
    expect_ledger(tl, 0);
    tl_runtime_free(tl);
}

static void must(tl_runtime *tl, tl_status status) {
    if (status != TL_OK) fail_msg("%s", tl_last_error(tl)->text);
}

static void must_fail(tl_runtime *tl, tl_status status, const char *kind, const char *message) {
    assert_int_equal(status, TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, kind);
    assert_string_equal(tl_last_error(tl)->message, message);
}

static tl_value *run(tl_runtime *tl, const char *text) {
    tl_value *result = NULL;
    must(tl, tl_run_text(tl, "test.tl", text, &result));
    assert_non_null(result);
    return result;
}

static void expect_text(tl_value *value, const char *expected) {
    tl_value *text;
    const char *bytes;
    size_t length;
    must(tl_runtime_of(value), tl_text(value, &text));
    must(tl_runtime_of(value), tl_to_string(text, &bytes, &length));
    assert_string_equal(bytes, expected);
    assert_int_equal(length, strlen(expected));
    tl_release(text);
}

// --- runtimes

static void test_life(void **state) {
    (void)state;
    assert_non_null(strchr(tl_version(), '.'));
    const tl_error *error = NULL;
    assert_null(tl_runtime_new("gpu9", &error));
    assert_string_equal(error->kind, "setting");
    assert_non_null(strstr(error->message, "gpu9"));
    assert_null(tl_runtime_new("gpu9", NULL));
    tl_runtime_free(NULL);
    for (int i = 0; i < 50; i++) {
        tl_runtime *tl = begin();
        assert_string_equal(tl_last_error(tl)->message, "");
        tl_release(run(tl, "let x = ones([10])\nlet l = [x]\nl.push(l)\nsum(x)"));
        tl_runtime_free(tl);
    }
}

static void test_values_outlive_the_caller(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *tensor = run(tl, "ones([3]) * 2"), *function = run(tl, "fn f(x) { x + 1 }\nf"),
             *result;
    tl_runtime_free(tl);
    expect_text(tensor, "[2. 2. 2.]");
    must(tl_runtime_of(tensor), tl_call(function, &tensor, 1, &result));
    expect_text(result, "[3. 3. 3.]");
    tl_release(function);
    tl_release(tensor);
    tl_release(result); // the last of it
}

// --- programs

static void test_programs_share_variables(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    must(tl, tl_run_text(tl, NULL, "let a = 3\nfn twice(x) { x * 2 }", NULL));
    tl_value *value = run(tl, "twice(a) + 1");
    expect_text(value, "7");
    tl_release(value);
    must_fail(tl, tl_run_text(tl, "t.tl", "a = 10\nlet b = list(1)\nb[a]", NULL), "index",
              "index 10 is out of range for a list of length 1");
    // A warning stands before the error: it is none.
    must_fail(tl, tl_run_text(tl, "t.tl", "let c = a // 2\nlet d = )", NULL), "syntax",
              "expected an expression, found `)`");
    assert_null(strstr(tl_last_error(tl)->text, "warning"));
    value = run(tl, "a"); // as it was
    expect_text(value, "3");
    tl_release(value);
    end(tl);
}

static void test_files(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    char path[] = "/tmp/tl_embed_XXXXXX";
    int descriptor = mkstemp(path);
    assert_int_equal(write(descriptor, "let k = 4\nk * k", 15), 15);
    close(descriptor);
    tl_value *result;
    must(tl, tl_run_file(tl, path, &result));
    expect_text(result, "16");
    tl_release(result);
    unlink(path);
    assert_int_equal(tl_run_file(tl, path, NULL), TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, "io");
    end(tl);
}

static void test_errors_have_spans(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    assert_int_equal(tl_run_text(tl, "bad.tl", "let x = 1\nlet y = x +* 2", NULL), TL_FAILED);
    const tl_error *error = tl_last_error(tl);
    assert_string_equal(error->kind, "syntax");
    assert_string_equal(error->file, "bad.tl");
    assert_int_equal(error->line, 2);
    assert_int_equal(error->column, 12);
    assert_non_null(strstr(error->text, "bad.tl:2:12"));
    assert_int_equal(tl_run_text(tl, "product.tl", "let n = 3\nones([2, n]) @ ones([2, n])", NULL),
                     TL_FAILED);
    error = tl_last_error(tl);
    assert_string_equal(error->kind, "shape");
    assert_int_equal(error->line, 2);
    assert_int_equal(error->column, 1);
    assert_int_equal(error->end_line, 2);
    assert_int_equal(error->end_column, 28);
    assert_true(error->help[0] != '\0');
    assert_int_equal(tl_run_text(tl, "exit.tl", "exit(4)", NULL), TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, "exit");
    assert_int_equal(tl_last_error(tl)->exit_status, 4);
    tl_release(run(tl, "1")); // goes on
    end(tl);
}

static void test_names(void **state) {
    (void)state;
    tl_runtime *tl = begin(), *other = begin();
    tl_value *value = tl_from_int(tl, 5), *got, *foreign = tl_from_int(other, 6);
    must(tl, tl_set(tl, "five", value));
    must(tl, tl_get(tl, "five", &got));
    expect_text(got, "5");
    tl_release(got);
    got = run(tl, "five * 2");
    expect_text(got, "10");
    tl_release(got);
    tl_value *text = tl_from_string(tl, "now text", 8);
    must(tl, tl_set(tl, "five", text));
    got = run(tl, "five + \"!\"");
    expect_text(got, "now text!");
    tl_release(got);
    must_fail(tl, tl_get(tl, "none_such", &got), "name",
              "there is no variable or function `none_such`");
    must(tl, tl_run_text(tl, "t.tl", "struct Point { x: int }", NULL));
    must_fail(tl, tl_get(tl, "Point", &got), "name",
              "`Point` is neither a variable nor a function");
    must_fail(tl, tl_set(tl, "two words", value), "name",
              "\"two words\" cannot be the name of a variable");
    must_fail(tl, tl_set(tl, "", value), "name", "\"\" cannot be the name of a variable");
    must_fail(tl, tl_set(tl, "x", foreign), "value", "value 0 belongs to another runtime");
    must_fail(tl, tl_set(tl, "x", NULL), "value", "value 0 is NULL");
    tl_release(text);
    tl_release(value);
    tl_release(foreign);
    end(other);
    end(tl);
}

static void test_calls(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *add = run(tl, "fn add(a, b) { a + b }\nadd"), *result = NULL;
    tl_value *arguments[] = {tl_from_int(tl, 2), tl_from_float(tl, 0.5)};
    must(tl, tl_call(add, arguments, 2, &result));
    expect_text(result, "2.5");
    tl_release(result);
    must(tl, tl_call(add, arguments, 2, NULL));
    must_fail(tl, tl_call(add, arguments, 1, &result), "arity",
              "fn add takes 2 arguments, but 1 is given");
    must_fail(tl, tl_call(arguments[0], NULL, 0, &result), "type",
              "2 is not a function and cannot be called");
    tl_value *deep = run(tl, "fn deep(n) { deep(n + 1) + 1 }\ndeep");
    assert_int_equal(tl_call(deep, arguments, 1, NULL), TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, "depth");
    char first[4096]; // what is said of the first failure is not said of the second
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tl_call(deep, arguments, 1, NULL), TL_FAILED);
        if (i == 0) snprintf(first, sizeof first, "%s", tl_last_error(tl)->text);
    }
    assert_string_equal(tl_last_error(tl)->text, first);
    tl_value *leave = run(tl, "fn leave() { exit(3) }\nleave");
    assert_int_equal(tl_call(leave, NULL, 0, NULL), TL_FAILED);
    assert_int_equal(tl_last_error(tl)->exit_status, 3);
    tl_release(leave);
    tl_release(deep);
    tl_release(add);
    tl_release(arguments[0]);
    tl_release(arguments[1]);
    end(tl);
}

static void *interrupt_soon(void *context) {
    usleep(20000);
    tl_interrupt(context);
    return NULL;
}

static void test_interrupts(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_interrupt(tl); // nothing runs
    tl_value *endless = run(tl, "fn endless() { loop { 1 } }\nendless");
    pthread_t thread;
    pthread_create(&thread, NULL, interrupt_soon, tl);
    must_fail(tl, tl_call(endless, NULL, 0, NULL), "interrupt", "interrupted");
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, interrupt_soon, tl);
    must_fail(tl, tl_run_text(tl, "t.tl", "endless()", NULL), "interrupt", "interrupted");
    pthread_join(thread, NULL);
    tl_release(endless);
    end(tl);
}

// --- functions of the host

static int released;

static void note_release(void *context) {
    *(int *)context += 1;
}

static tl_status add_up(void *context, tl_runtime *tl, tl_value *const *arguments, size_t count,
                        tl_value **result) {
    double sum = 0, number;
    (void)context;
    for (size_t i = 0; i < count; i++) {
        if (tl_to_float(arguments[i], &number) != TL_OK) return TL_FAILED;
        sum += number;
    }
    if (sum < 0) return tl_fail(tl, "negative", "the sum is below 0", "add more");
    if (count > 0) *result = tl_from_float(tl, sum);
    return TL_OK;
}

static tl_status call_back(void *context, tl_runtime *tl, tl_value *const *arguments, size_t count,
                           tl_value **result) {
    (void)context;
    if (count == 0) return tl_run_text(tl, "inner.tl", "1", result);
    return tl_call(arguments[0], arguments + 1, count - 1, result);
}

static tl_status fail_silently(void *context, tl_runtime *tl, tl_value *const *arguments,
                               size_t count, tl_value **result) {
    (void)context, (void)tl, (void)arguments, (void)count, (void)result;
    return TL_FAILED;
}

static void test_host_functions(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    released = 0;
    tl_value *function = tl_from_function(tl, add_up, &released, note_release), *value;
    tl_value *back = tl_from_function(tl, call_back, NULL, NULL);
    assert_int_equal(tl_kind_of(function), TL_FUNCTION);
    must(tl, tl_set(tl, "add_up", function));
    must(tl, tl_set(tl, "call_back", back));
    value = run(
        tl, "(add_up(1, 2.5), add_up(), call_back(add_up, 4, 5), call_back(fn(x) { x * 3 }, 7))");
    expect_text(value, "(3.5, none, 9.0, 21)");
    tl_release(value);
    assert_int_equal(tl_run_text(tl, "t.tl", "1\nadd_up(-3)", NULL), TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, "negative");
    assert_string_equal(tl_last_error(tl)->message, "the sum is below 0");
    assert_string_equal(tl_last_error(tl)->help, "add more");
    assert_int_equal(tl_last_error(tl)->line, 2);
    value = run(tl, "try { add_up(\"x\") } catch e { e.kind }");
    expect_text(value, "type");
    tl_release(value);
    must_fail(tl, tl_run_text(tl, "t.tl", "call_back()", NULL), "value",
              "a program of this runtime is running");
    assert_string_equal(tl_last_error(tl)->help,
                        "a function that tl calls may use tl_call, or another runtime");
    tl_value *silent = tl_from_function(tl, fail_silently, NULL, NULL);
    must_fail(tl, tl_call(silent, NULL, 0, NULL), "error", "a function of the host failed");
    tl_release(silent);
    assert_int_equal(released, 0);
    tl_release(back);
    tl_release(function);
    assert_int_equal(released, 0); // the variable has it
    expect_ledger(tl, 0);
    tl_runtime_free(tl);
    assert_int_equal(released, 1);
}

// --- output and progress

typedef struct Written {
    char bytes[2][400];
    size_t lengths[2];
    int epochs;
    double loss;
} Written;

static void note_written(void *context, int is_error, const char *bytes, size_t length) {
    Written *written = context;
    memcpy(written->bytes[is_error] + written->lengths[is_error], bytes, length);
    written->lengths[is_error] += length;
}

static void note_epoch(void *context, int64_t epoch, int64_t epochs, double loss) {
    Written *written = context;
    assert_int_equal(epochs, 5);
    written->epochs++;
    assert_int_equal(epoch, written->epochs);
    written->loss = loss;
}

static void test_output_and_progress(void **state) {
    (void)state;
    Written written = {0};
    tl_runtime *tl = begin();
    tl_on_output(tl, note_written, &written);
    tl_on_progress(tl, note_epoch, &written);
    tl_release(run(tl, "print(\"out\")\neprint(\"error\")\nprint(1, 2)"));
    assert_string_equal(written.bytes[0], "out\n1 2\n");
    assert_string_equal(written.bytes[1], "error\n");
    must(tl, tl_run_text(tl, "learn.tl",
                         "tensor w: float32[2] learnable = ones([2])\n"
                         "learn { objective: sum(w ** 2), optimizer: sgd(lr: 0.1), epochs: 5 }",
                         NULL));
    assert_int_equal(written.epochs, 5);
    assert_true(written.loss > 0 && written.loss < 2);
    tl_on_progress(tl, NULL, NULL);
    tl_on_output(tl, NULL, NULL);
    tl_runtime_free(tl);
}

static void test_seed(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *draws[2], *texts[2];
    for (int i = 0; i < 2; i++) {
        tl_seed(tl, 11);
        draws[i] = run(tl, "rand([3])");
        must(tl, tl_text(draws[i], &texts[i]));
    }
    const char *bytes[2];
    size_t length;
    for (int i = 0; i < 2; i++) must(tl, tl_to_string(texts[i], &bytes[i], &length));
    assert_string_equal(bytes[0], bytes[1]);
    for (int i = 0; i < 2; i++) {
        tl_release(draws[i]);
        tl_release(texts[i]);
    }
    end(tl);
}

// --- values

static void test_numbers_and_texts(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *none = tl_from_none(tl), *yes = tl_from_bool(tl, 2), *integer = tl_from_int(tl, -7);
    tl_value *number = tl_from_float(tl, 2.25), *text = tl_from_string(tl, "h\xC3\xA9", 3);
    tl_kind kinds[] = {tl_kind_of(none), tl_kind_of(yes), tl_kind_of(integer), tl_kind_of(number),
                       tl_kind_of(text)};
    for (int i = 0; i < 5; i++) assert_int_equal(kinds[i], TL_NONE + i);
    int boolean;
    int64_t whole;
    double real;
    const char *bytes;
    size_t length;
    must(tl, tl_to_bool(yes, &boolean));
    assert_int_equal(boolean, 1);
    must(tl, tl_to_int(integer, &whole));
    assert_int_equal(whole, -7);
    must(tl, tl_to_float(number, &real));
    assert_true(real == 2.25);
    must(tl, tl_to_string(text, &bytes, &length));
    assert_int_equal(length, 3);
    assert_int_equal(tl_to_int(number, &whole), TL_FAILED);
    assert_int_equal(tl_to_int(text, &whole), TL_FAILED);
    assert_int_equal(tl_to_float(none, &real), TL_FAILED);
    assert_int_equal(tl_to_bool(text, &boolean), TL_FAILED);
    assert_int_equal(tl_to_string(none, &bytes, &length), TL_FAILED);
    assert_string_equal(tl_last_error(tl)->kind, "type");
    assert_null(tl_from_string(tl, "\xFF", 1));
    assert_string_equal(tl_last_error(tl)->message, "the string is not UTF-8 text");
    assert_ptr_equal(tl_retain(none), none);
    assert_ptr_equal(tl_runtime_of(none), tl);
    tl_release(none);
    tl_value *all[] = {none, yes, integer, number, text};
    for (int i = 0; i < 5; i++) tl_release(all[i]);
    tl_release(NULL);
    end(tl);
}

static void test_containers(void **state) {
    (void)state;
    tl_runtime *tl = begin(), *other = begin();
    tl_value *items[] = {tl_from_int(tl, 1), tl_from_string(tl, "b", 1)}, *item = NULL;
    tl_value *list = tl_from_list(tl, items, 2);
    tl_value *dict = tl_from_dict(tl, (const char *[]){"x", "y"}, items, 2);
    expect_text(list, "[1, \"b\"]");
    assert_int_equal(tl_kind_of(list), TL_LIST);
    assert_int_equal(tl_kind_of(dict), TL_DICT);
    size_t count = 0;
    must(tl, tl_count(dict, &count));
    assert_int_equal(count, 2);
    must(tl, tl_item(list, 1, &item));
    expect_text(item, "b");
    tl_release(item);
    must(tl, tl_key(dict, 1, &item));
    expect_text(item, "y");
    tl_release(item);
    must(tl, tl_member(dict, "x", &item));
    expect_text(item, "1");
    tl_release(item);
    must_fail(tl, tl_item(list, 2, &item), "index", "index 2 is out of range: there are 2 items");
    must_fail(tl, tl_member(dict, "z", &item), "key", "there is no `z` in the dict");
    must_fail(tl, tl_member(list, "z", &item), "type",
              "the value must be a dict or struct, but it is a list of 2 values");
    must_fail(tl, tl_key(list, 0, &item), "type",
              "the value must be a dict or struct, but it is a list of 2 values");
    must_fail(tl, tl_count(items[0], &count), "type",
              "the value must be a list, tuple, dict or struct, but it is 1");
    tl_value *point = run(tl, "struct Point { x: int, y: int }\nPoint { x: 3, y: 4 }");
    assert_int_equal(tl_kind_of(point), TL_STRUCT);
    must(tl, tl_member(point, "y", &item));
    expect_text(item, "4");
    tl_release(item);
    tl_value *foreign = tl_from_none(other);
    tl_value *mixed[] = {run(tl, "ones([3])"), foreign}; // the tensor is given back: see end()
    assert_null(tl_from_list(tl, mixed, 2));
    assert_null(tl_from_dict(tl, (const char *[]){"x", "y"}, mixed, 2));
    tl_release(mixed[0]);
    assert_string_equal(tl_last_error(tl)->message, "value 0 belongs to another runtime");
    tl_value *range = run(tl, "0..3");
    assert_int_equal(tl_kind_of(range), TL_OTHER);
    tl_value *all[] = {items[0], items[1], list, dict, point, foreign, range};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tl_release(all[i]);
    end(other);
    end(tl);
}

// --- tensors

static void test_foreign_memory(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    tl_tensor memory = {.dtype = "float32",
                        .rank = 2,
                        .shape = {3, 2},
                        .strides = {1, 3},
                        .data = numbers},
              view;
    tl_value *x, *y;
    released = 0;
    must(tl, tl_from_memory(tl, &memory, note_release, &released, &x));
    expect_text(x, "[[1. 4.]\n [2. 5.]\n [3. 6.]]");
    must(tl, tl_view(x, &view));
    assert_ptr_equal(view.data, numbers);
    assert_string_equal(view.dtype, "float32");
    assert_int_equal(view.rank, 2);
    assert_int_equal(view.shape[0], 3);
    assert_int_equal(view.strides[1], 3);
    tl_ledger_entry ledger;
    tl_ledger(tl, &ledger);
    assert_int_equal(ledger.borrowed_bytes, sizeof numbers);
    must(tl, tl_set(tl, "x", x));
    tl_release(x);
    y = run(tl, "x[0, 0] = 100\nx = x * 2\nx"); // the numbers of others stay
    expect_text(y, "[[200.   8.]\n [  4.  10.]\n [  6.  12.]]");
    assert_true(numbers[0] == 1 && numbers[5] == 6);
    assert_int_equal(released, 1);
    float copied[6];
    must(tl, tl_copy(y, copied, sizeof copied));
    assert_true(copied[0] == 200 && copied[1] == 8 && copied[5] == 12);
    must_fail(tl, tl_copy(y, copied, 4), "value", "the tensor takes 24 bytes, not 4");
    tl_release(y);
    tl_release(run(tl, "x = none"));
    end(tl);
}

static void test_memory_that_is_not_a_tensor(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    float numbers[4] = {0};
    tl_tensor good = {.dtype = "float32", .rank = 1, .shape = {4}, .strides = {1}, .data = numbers};
    tl_tensor bad = good;
    tl_value *x;
    bad.dtype = "float";
    must_fail(tl, tl_from_memory(tl, &bad, NULL, NULL, &x), "dtype",
              "\"float\" is not a dtype of plain numbers");
    bad = good, bad.strides[0] = -1;
    must_fail(tl, tl_from_memory(tl, &bad, NULL, NULL, &x), "shape",
              "dimension 0 has size 4 and stride -1; neither may be negative");
    bad = good, bad.rank = 9;
    must_fail(tl, tl_from_memory(tl, &bad, NULL, NULL, &x), "shape",
              "rank 9 is not between 0 and 8");
    bad = good, bad.shape[0] = INT64_MAX, bad.strides[0] = INT64_MAX;
    must_fail(tl, tl_from_memory(tl, &bad, NULL, NULL, &x), "shape",
              "the tensor is larger than memory can be");
    bad = good, bad.data = (char *)numbers + 1;
    must_fail(tl, tl_from_memory(tl, &bad, NULL, NULL, &x), "value",
              "the numbers must lie at a multiple of 4 bytes");
    bad = good, bad.data = NULL;
    assert_int_equal(tl_from_memory(tl, &bad, NULL, NULL, &x), TL_FAILED);
    bad = good, bad.shape[0] = 0, bad.data = NULL;
    must(tl, tl_from_memory(tl, &bad, NULL, NULL, &x)); // nothing lies nowhere
    tl_release(x);
    tl_tensor view;
    x = tl_from_int(tl, 1);
    must_fail(tl, tl_view(x, &view), "type", "the value must be a tensor, but it is 1");
    must_fail(tl, tl_copy(x, numbers, 4), "type", "the value must be a tensor, but it is 1");
    tl_release(x);
    end(tl);
}

static void test_tensors_without_a_view(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *blocks = run(tl, "load_model(\"examples/data/tales.gguf\").token_embd.weight");
    tl_tensor view;
    must_fail(tl, tl_view(blocks, &view), "dtype", "the numbers of a q8_0 tensor lie in blocks");
    uint8_t bytes[55 * 96 / 32 * 34];
    must(tl, tl_copy(blocks, bytes, sizeof bytes));
    tl_release(blocks);
    end(tl);
    const char *device = getenv("TL_TEST_DEVICE");
    if (!device || strcmp(device, "vulkan:0") != 0) return;
    tl = tl_runtime_new(device, NULL);
    tl_value *far = run(tl, "ones([2])");
    must_fail(tl, tl_view(far, &view), "device", "the tensor lies on vulkan:0, not in host memory");
    assert_string_equal(tl_last_error(tl)->help, "tl_copy copies it");
    float numbers[2];
    must(tl, tl_copy(far, numbers, sizeof numbers));
    assert_true(numbers[0] == 1 && numbers[1] == 1);
    tl_release(far);
    end(tl);
}

static void test_round_trips_leave_nothing(void **state) {
    (void)state;
    tl_runtime *tl = begin();
    tl_value *twice = run(tl, "fn twice(x) { x + x }\ntwice"), *x, *y;
    double numbers[2] = {1, 2};
    tl_tensor memory = {
        .dtype = "float64", .rank = 1, .shape = {2}, .strides = {1}, .data = numbers};
    tl_ledger_entry before, after;
    tl_ledger(tl, &before);
    released = 0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        tl_tensor view;
        must(tl, tl_from_memory(tl, &memory, note_release, &released, &x));
        must(tl, tl_call(twice, &x, 1, &y));
        must(tl, tl_view(y, &view));
        if (((double *)view.data)[1] != 4) fail();
        tl_release(x);
        tl_release(y);
    }
    assert_int_equal(released, ROUND_TRIPS);
    tl_ledger(tl, &after);
    assert_int_equal(after.values, before.values);
    assert_int_equal(after.objects, before.objects);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.borrowed_bytes, 0);
    tl_release(twice);
    end(tl);
}

// --- threads

static void *use_own(void *context) {
    tl_runtime *tl = tl_runtime_new("cpu", NULL);
    tl_value *result = NULL;
    int64_t number = 0;
    if (tl && tl_run_text(tl, "t.tl", "let s = 0\nfor i in 0..100000 { s += i % 3 }\ns", &result) ==
                  TL_OK)
        (void)tl_to_int(result, &number);
    tl_release(result);
    tl_runtime_free(tl);
    *(int64_t *)context = number;
    return NULL;
}

static void *use_shared(void *context) {
    tl_runtime *tl = context;
    for (int i = 0; i < 200; i++) {
        tl_value *list = NULL;
        if (tl_run_text(tl, "t.tl", "shared = shared + 1\n[ones([8]), shared]", &list) != TL_OK)
            break;
        tl_release(list);
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    int64_t numbers[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, use_own, &numbers[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(numbers[i], 99999);
    }
    tl_runtime *tl = begin();
    tl_release(run(tl, "let shared = 0"));
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, use_shared, tl);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    tl_value *count = run(tl, "shared");
    expect_text(count, "800");
    tl_release(count);
    end(tl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_values_outlive_the_caller),
        cmocka_unit_test(test_programs_share_variables),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_errors_have_spans),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_interrupts),
        cmocka_unit_test(test_host_functions),
        cmocka_unit_test(test_output_and_progress),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_numbers_and_texts),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_foreign_memory),
        cmocka_unit_test(test_memory_that_is_not_a_tensor),
        cmocka_unit_test(test_tensors_without_a_view),
        cmocka_unit_test(test_round_trips_leave_nothing),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
