// The catalog: every row is sound, names and aliases are found, help and suggestions read well.
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/signature.h"

// cmocka.h needs these, and its own `fail` must come after ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_every_row_parses_and_has_words(void **state) {
    (void)state;
    assert_true(catalog_count() > 100);
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        Signature signature;
        if (signature_parse(row->signature_text, &signature) != STATUS_OK)
            fail_msg("%s", row->signature_text);
        assert_true(strlen(row->doc) > 4);
        assert_true(strlen(row->section) > 2);
        for (int p = 0; p < signature.count; p++) {
            const Param *param = &signature.params[p];
            for (int other = 0; other < p; other++)
                assert_string_not_equal(param->name, signature.params[other].name);
        }
        const Builtin *found = catalog_find(signature.name, strlen(signature.name));
        bool in_chain = false;
        for (; found; found = found->next_overload) in_chain = in_chain || found == row;
        assert_true(in_chain);
    }
    assert_null(catalog_get(catalog_count()));
}

static void test_signature_parts(void **state) {
    (void)state;
    Signature s;
    assert_int_equal(signature_parse("f(x: tensor, dim: int = -1, eps: number = 1e-5, "
                                     "causal: bool = true, style: string = 'half', mask: tensor?, "
                                     "rest: any...) -> (tensor, tensor)",
                                     &s),
                     STATUS_OK);
    assert_string_equal(s.name, "f");
    assert_string_equal(s.result, "(tensor, tensor)");
    assert_int_equal(s.count, 7);
    assert_int_equal(s.params[0].default_kind, DEFAULT_REQUIRED);
    assert_int_equal(s.params[0].kind, PARAM_TENSOR);
    assert_int_equal(s.params[1].fallback.integer, -1);
    assert_int_equal(s.params[1].default_kind, DEFAULT_INT);
    assert_true(s.params[2].fallback.number == 1e-5);
    assert_int_equal(s.params[2].default_kind, DEFAULT_FLOAT);
    assert_true(s.params[3].fallback.boolean);
    assert_string_equal(s.params[4].fallback.string, "half");
    assert_int_equal(s.params[5].default_kind, DEFAULT_ABSENT);
    assert_false(s.params[5].rest);
    assert_true(s.params[6].rest);
    assert_int_equal(signature_parse("none() -> none", &s), STATUS_OK);
    assert_int_equal(s.count, 0);
}

static void test_wrong_signatures_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "f",
                                        "f(",
                                        "f(x) -> int",
                                        "f(x: thing) -> int",
                                        "f(x: int",
                                        "f(x: int,) -> int",
                                        "f(x: int) ->",
                                        "f(x: int = ) -> int",
                                        "f(x: string = 'unfinished) -> int",
                                        "f(x: int) int"};
    Signature s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (signature_parse(wrong[i], &s) != STATUS_FORMAT) fail_msg("accepted: %s", wrong[i]);
}

static void test_names_and_aliases(void **state) {
    (void)state;
    const Builtin *relu = catalog_find("relu", 4);
    assert_non_null(relu);
    assert_int_equal(relu->kind, ROW_OP);
    assert_string_equal(relu->section, "Elementwise");
    assert_null(catalog_find("relu", 3));
    assert_null(catalog_find("", 0));
    assert_null(catalog_find("no_such_thing", 13));
    assert_ptr_equal(catalog_find("cat", 3), catalog_find("concat", 6));
    assert_ptr_equal(catalog_find("cndl_relu", 9), relu);
    assert_ptr_equal(catalog_find("cndl_cat", 8), catalog_find("concat", 6));
    assert_ptr_not_equal(catalog_find("cndl_embedding", 14), catalog_find("embedding", 9));
    assert_null(catalog_find("cndl_", 5));
    Text aliases = {0};
    catalog_aliases(catalog_find("concat", 6), &aliases);
    assert_non_null(strstr(text_get(&aliases), "cat"));
    text_free(&aliases);
    // Ids count the rows of each kind in the order of their files.
    assert_int_equal(catalog_get(0)->id, 0);
    assert_int_equal(catalog_get(1)->id, 1);
}

static void test_overloads_are_chained_in_order(void **state) {
    (void)state;
    const Builtin *slice = catalog_find("slice", 5);
    assert_non_null(slice);
    assert_int_equal(slice->signature.count, 4);
    assert_non_null(slice->next_overload);
    assert_int_equal(slice->next_overload->signature.count, 3);
}

static void test_help(void **state) {
    (void)state;
    Text page = {0};
    assert_int_equal(catalog_help("clamp", &page), STATUS_OK);
    assert_string_equal(text_get(&page), "clamp(x: tensor, lo: tensor, hi: tensor) -> tensor\n"
                                         "    x limited to lo..hi.\n"
                                         "        clamp([-1.0, 0.5, 2.0], 0.0, 1.0)\n"
                                         "section: Elementwise\n");
    text_clear(&page);
    assert_int_equal(catalog_help("concat", &page), STATUS_OK);
    assert_non_null(strstr(text_get(&page), "also: cat\n"));
    text_clear(&page);
    assert_int_equal(catalog_help("cosine", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "scheduler::cosine(t_max: int?", 29);
    assert_non_null(strstr(text_get(&page), "section: Training\n"));
    text_clear(&page);
    assert_int_equal(catalog_help("KVCache", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "KVCache::new(layers: int", 24);
    assert_non_null(strstr(text_get(&page), "\n\nKVCache.fork(cache: cache) -> cache\n"));
    assert_null(strstr(text_get(&page), "buffer"));
    text_clear(&page);
    assert_int_equal(catalog_help("learnable", &page), STATUS_OK);
    assert_non_null(strstr(text_get(&page), "in the language: tensor w: float32[2] learnable"));
    text_clear(&page);
    assert_int_equal(catalog_help("with", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "in the language: with buffer", 28);
    text_clear(&page);
    assert_int_equal(catalog_help("no_grad", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "in the language: with no_grad", 29);
    text_clear(&page);
    assert_int_equal(catalog_help("f16::eye", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "eye(n: int", 10);
    text_clear(&page);
    assert_int_equal(catalog_help("Tensor::eye", &page), STATUS_OK);
    assert_memory_equal(text_get(&page), "eye(n: int", 10);
    text_clear(&page);
    text_free(&page);
    assert_int_equal(catalog_help("new_", &page), STATUS_NAME);
    assert_int_equal(catalog_help("Nothing::eye", &page), STATUS_NAME);
    assert_int_equal(page.length, 0);
    assert_int_equal(catalog_help("sofmtax", &page), STATUS_NAME);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const words[] = {"softmax", "sigmoid", "reshape", "sum", "x"};
    assert_string_equal(catalog_nearest("sofmtax", words, 5), "softmax"); // exchanged neighbours
    assert_string_equal(catalog_nearest("smu", words, 5), "sum"); // which count as one mistake
    assert_string_equal(catalog_nearest("Reshape", words, 5), "reshape"); // case
    assert_string_equal(catalog_nearest("sigmod", words, 5), "sigmoid");
    assert_string_equal(catalog_nearest("sums", words, 5), "sum");
    assert_string_equal(catalog_nearest("X", words, 5), "x");
    assert_null(catalog_nearest("y", words, 5));
    assert_null(catalog_nearest("", words, 5));
    assert_null(catalog_nearest("transposition", words, 5));
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[199] = '\0';
    assert_null(catalog_nearest(longest, words, 5));
}

static void test_every_name_is_listed(void **state) {
    (void)state;
    const char *names[4096];
    size_t count = catalog_names(names, 4096);
    assert_true(count > 100 && count < 4096);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        assert_true(catalog_find(names[i], length) || catalog_constant(names[i], length));
    }
    assert_int_equal(catalog_names(NULL, 0), count);
}

static void test_dtypes_are_found_by_both_names(void **state) {
    (void)state;
    DType dtype;
    assert_true(dtype_find("float16", 7, &dtype));
    assert_int_equal(dtype, DTYPE_FLOAT16);
    assert_true(dtype_find("f32", 3, &dtype));
    assert_int_equal(dtype, DTYPE_FLOAT32);
    assert_false(dtype_find("", 0, &dtype));
    assert_false(dtype_find("float", 5, &dtype));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_parses_and_has_words),
        cmocka_unit_test(test_signature_parts),
        cmocka_unit_test(test_wrong_signatures_are_refused),
        cmocka_unit_test(test_names_and_aliases),
        cmocka_unit_test(test_overloads_are_chained_in_order),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_every_name_is_listed),
        cmocka_unit_test(test_dtypes_are_found_by_both_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
