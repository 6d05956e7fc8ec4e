// Text, UTF-8, arenas and error records: growth, limits, untrusted bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"

// cmocka has a macro of this name.
static Status raise_error(const char *message) {
    return fail(STATUS_VALUE, "%s", message);
}
static Status raise_again(void) {
    return fail(STATUS_IO, "file x: %s", error_current()->message);
}

#include <cmocka.h>

static void test_text(void **state) {
    (void)state;
    Text text = {0};
    assert_string_equal(text_get(&text), "");
    for (int i = 0; i < 1000; i++) text_append_char(&text, (char)('a' + i % 26));
    assert_int_equal(text.length, 1000);
    assert_int_equal(text.bytes[999], 'a' + 999 % 26);
    text_clear(&text);
    text_format(&text, "%d-%s", 7, "x");
    text_append_repeated(&text, '=', 3);
    text_append_codepoint(&text, 0x1F999);
    text_append(&text, "a\0b", 3);
    assert_memory_equal(text_get(&text), "7-x===🦙a\0b", text.length + 1);
    char *taken = text_take(&text);
    assert_int_equal(text.length, 0);
    assert_string_equal(taken, "7-x===🦙a");
    free(taken);
    char *empty = text_take(&text);
    assert_string_equal(empty, "");
    free(empty);
}

static void test_quoted(void **state) {
    (void)state;
    static const char bytes[] = "a\"b\\c\n\t\r\0\x01\x7F";
    Text text = {0};
    text_append_quoted(&text, bytes, sizeof bytes - 1);
    assert_string_equal(text_get(&text), "\"a\\\"b\\\\c\\n\\t\\r\\u0000\\u0001\\u007f\"");
    text_free(&text);
}

static void test_every_codepoint(void **state) {
    (void)state;
    for (uint32_t codepoint = 0; codepoint <= 0x10FFFF; codepoint++) {
        if (codepoint >= 0xD800 && codepoint <= 0xDFFF) continue;
        char bytes[4];
        uint32_t read = 0;
        size_t size = utf8_encode(codepoint, bytes);
        assert_int_equal(utf8_decode(bytes, size, &read), size);
        assert_int_equal(read, codepoint);
        assert_int_equal(utf8_decode(bytes, size - 1, &read), 0);
    }
}

static void test_invalid_utf8(void **state) {
    (void)state;
    static const char *const wrong[] = {"\x80",
                                        "\xC0\x80",
                                        "\xC1\xBF",
                                        "\xE0\x80\x80",
                                        "\xED\xA0\x80",
                                        "\xF0\x80\x80\x80",
                                        "\xC3(",
                                        "\xF4\x90\x80\x80",
                                        "\xF8\x88\x80\x80\x80",
                                        "\xE4\xB8",
                                        "\xFF"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint32_t codepoint;
        size_t bad = 9;
        assert_int_equal(utf8_decode(wrong[i], strlen(wrong[i]), &codepoint), 0);
        char text[16] = "ab";
        strcat(text, wrong[i]);
        assert_false(utf8_valid(text, strlen(text), &bad));
        assert_int_equal(bad, 2);
    }
    assert_true(utf8_valid("aé中🦙", strlen("aé中🦙"), NULL));
    assert_int_equal(utf8_count("aé中🦙", strlen("aé中🦙")), 4);
    assert_int_equal(utf8_count("a\xFF\xFE", 3), 3);
    assert_int_equal(utf8_count("", 0), 0);
}

static void test_letters(void **state) {
    (void)state;
    static const uint32_t letters[] = {'a', 'Z', '_', 0xE9, 0x3BB, 0x4E2D, 0x5D0, 0x1D4D0};
    static const uint32_t others[] = {'0',  ' ',  '@',   '[',    '`',  '{',
                                      0xD7, 0xF7, 0x301, 0x2211, 0x661};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        assert_true(utf8_is_letter(letters[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(utf8_is_letter(others[i]));
    assert_int_equal(utf8_width('a'), 1);
    assert_int_equal(utf8_width(0x4E2D), 2);
    assert_int_equal(utf8_width(0x301), 0);
}

static void test_arena(void **state) {
    (void)state;
    Arena arena = {0};
    char *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = arena_allocate(&arena, i * 1000);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < i * 1000; j++) assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)i, i * 1000);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t j = 0; j < i * 1000; j++) assert_int_equal((unsigned char)blocks[i][j], i);
    assert_string_equal(arena_copy_string(&arena, "abcdef", 3), "abc");
    arena_free(&arena);
    assert_null(arena.blocks);
}

static void test_vector(void **state) {
    (void)state;
    VECTOR(size_t) numbers = {0};
    for (size_t i = 0; i < 10000; i++) VECTOR_PUSH(&numbers, i);
    for (size_t i = 0; i < 10000; i++) assert_int_equal(numbers.items[i], i);
    VECTOR_FREE(&numbers);
    assert_null(numbers.items);
    assert_int_equal(numbers.capacity, 0);
}

static void test_error_record(void **state) {
    (void)state;
    assert_int_equal(raise_error("bad"), STATUS_VALUE);
    error_place((Span){5, 6});
    error_place((Span){1, 2}); // the innermost place stays
    assert_int_equal(fail_help("try %d", 3), STATUS_VALUE);
    assert_int_equal(fail_label("here"), STATUS_VALUE);
    const ErrorRecord *error = error_current();
    assert_string_equal(error->kind, "value");
    assert_string_equal(error->message, "bad");
    assert_string_equal(error->help, "try 3");
    assert_string_equal(error->label, "here");
    assert_int_equal(error->span.begin, 5);
    // A layer may say more about an error from below.
    assert_int_equal(raise_again(), STATUS_IO);
    assert_string_equal(error->message, "file x: bad");
    assert_string_equal(error->help, "");
    assert_int_equal(error->span.begin, 0);
    // A message that is too long ends in "..." and in a whole code point.
    Text longer = {0};
    for (int i = 0; i < 3000; i++) text_append_string(&longer, "é");
    assert_int_equal(raise_error(text_get(&longer)), STATUS_VALUE);
    size_t length = strlen(error->message);
    assert_true(length < ERROR_TEXT_MAX && length > ERROR_TEXT_MAX - 8);
    assert_true(utf8_valid(error->message, length, NULL));
    assert_string_equal(error->message + length - 3, "...");
    text_free(&longer);
    error_clear();
    assert_int_equal(error->code, STATUS_OK);
}

static void test_base64(void **state) {
    (void)state;
    static const char *const wrong[] = {"AAA", "A===", "AA.A", "AA-A", "AA:A", "A A=", "=AAA"};
    Text out = {0};
    assert_true(base64_decode("Zm9vYg==", 8, &out) && base64_decode("+/8aZz09", 8, &out));
    assert_int_equal(out.length, 10);
    assert_memory_equal(out.bytes, "foob\xfb\xff\x1ag==", 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(base64_decode(wrong[i], strlen(wrong[i]), &out));
    text_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quoted),          cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_codepoint), cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test(test_letters),         cmocka_unit_test(test_arena),
        cmocka_unit_test(test_vector),          cmocka_unit_test(test_error_record),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
