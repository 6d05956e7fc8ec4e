// Strings: code points found through marks, appending that shares bytes, the NUL for functions of
// C.
#include <gc.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "tests/library/calling.h"

enum { CHARACTERS = 3000 };

// Characters of one to four bytes and bytes that are not UTF-8, in an order that repeats late.
static Value mixed_text(size_t *offsets) {
    static const char *const parts[] = {"a", "é", "漢", "🦙", "z", "\xFF", "\xC3"};
    Text text = {0};
    unsigned seed = 7;
    for (int i = 0; i < CHARACTERS; i++) {
        seed = seed * 1103515245u + 12345u;
        offsets[i] = text.length;
        text_append_string(&text, parts[(seed >> 16) % COUNT(parts)]);
    }
    offsets[CHARACTERS] = text.length;
    Value value = value_string(text_get(&text), text.length);
    text_free(&text);
    return value;
}

static void expect_bytes(Value slice, const char *bytes, size_t length) {
    assert_int_equal(slice.as.string->length, length);
    assert_memory_equal(slice.as.string->bytes, bytes, length);
    assert_int_equal(slice.as.string->bytes[length], '\0');
}

static void test_slices_of_long_strings(void **state) {
    (void)state;
    size_t offsets[CHARACTERS + 1];
    const String *text = mixed_text(offsets).as.string;
    assert_int_equal(string_length(text), CHARACTERS);
    static const int counts[] = {0, 1, 2, 15, 16, 17, 100};
    for (int first = 0; first < CHARACTERS; first++) {
        for (size_t i = 0; i < COUNT(counts); i++) {
            if (first + counts[i] > CHARACTERS) continue;
            size_t begin = offsets[first], end = offsets[first + counts[i]];
            expect_bytes(string_slice(text, first, counts[i]), text->bytes + begin, end - begin);
        }
    }
}

// Where a string is cut near an end is found from there: marks would take room in every string that
// a loop of `rest = rest[1:]` makes.
static void test_cuts_at_the_ends_make_no_marks(void **state) {
    (void)state;
    enum { COUNT_OF_CUT = 20000, SIZE = 2 * COUNT_OF_CUT, MARKS = COUNT_OF_CUT / 16 * 8 };
    Text bytes = {0};
    for (int i = 0; i < COUNT_OF_CUT; i++) text_append_string(&bytes, "é");
    const String *text = value_string(text_get(&bytes), bytes.length).as.string;
    assert_int_equal(string_length(text), COUNT_OF_CUT);
    for (int64_t start = 0; start < 2; start++) {
        size_t before = GC_get_total_bytes();
        expect_bytes(string_slice(text, start, COUNT_OF_CUT - 1), text_get(&bytes), SIZE - 2);
        assert_in_range(GC_get_total_bytes() - before, SIZE - 2, SIZE + MARKS - 1);
    }
    text_free(&bytes);
}

static void test_characters_are_made_once(void **state) {
    (void)state;
    const String *text = S("aéa漢é").as.string;
    assert_ptr_equal(string_slice(text, 0, 1).as.string, string_slice(text, 2, 1).as.string);
    assert_ptr_equal(string_slice(text, 1, 1).as.string, string_slice(text, 4, 1).as.string);
    expect_bytes(string_slice(text, 3, 1), "漢", 3);
}

// What a loop of `s += "xy"` makes; `moves` counts how often the bytes were copied.
static Value append_many(int count, int *moves) {
    Value text = S("");
    for (int i = 0; i < count; i++) {
        Value longer = string_concat(text.as.string, S("xy").as.string);
        *moves += longer.as.string->bytes != text.as.string->bytes;
        text = longer;
    }
    return text;
}

static void test_appending_copies_seldom(void **state) {
    (void)state;
    int moves = 0;
    const String *text = append_many(100000, &moves).as.string;
    assert_int_equal(text->length, 200000);
    assert_int_equal(strspn(text->bytes, "xy"), 200000);
    assert_true(moves < 150); // short ones, then once for twice as many bytes
}

static void test_both_of_two_that_append_keep_their_bytes(void **state) {
    (void)state;
    int moves = 0;
    const String *begin = append_many(1000, &moves).as.string;
    const String *one = string_concat(begin, S("one").as.string).as.string;
    const String *two = string_concat(begin, S("two").as.string).as.string;
    assert_ptr_equal(one->bytes, begin->bytes);
    assert_ptr_not_equal(two->bytes, begin->bytes);
    assert_memory_equal(one->bytes + 2000, "one", 4);
    assert_memory_equal(two->bytes + 2000, "two", 4);
    assert_int_equal(begin->length, 2000);
    assert_int_equal(strlen(string_end(begin)->bytes), 2000);
    assert_ptr_not_equal(begin->bytes, one->bytes);
    assert_memory_equal(one->bytes + 2000, "one", 4);
    assert_ptr_equal(string_end(one)->bytes, one->bytes);
}

static void test_keys_end_with_nul(void **state) {
    (void)state;
    int moves = 0;
    Value dict = value_dict(), name = append_many(500, &moves), key, item;
    Value longer = string_concat(name.as.string, S("z").as.string);
    dict_set(dict.as.dict, name, value_int(1));
    dict_set(dict.as.dict, longer, value_int(2));
    dict_entry(dict.as.dict, 0, &key, &item);
    assert_int_equal(strlen(key.as.string->bytes), 1000);
    assert_int_equal(dict_get_word(dict.as.dict, longer.as.string->bytes).as.integer, 2);
    value_release(dict);
}

// Counted once, a string that grows is not counted again, unless the bytes that meet are of one
// code point.
static void test_joined_strings_keep_their_count(void **state) {
    (void)state;
    static const char *const parts[] = {"", "a", "é", "漢", "\xC3", "\xE6\xBC", "\xA9", "\xA2"};
    enum { WHOLE = 6 }; // those before begin as a code point does
    for (size_t i = 0; i < COUNT(parts) * COUNT(parts); i++) {
        size_t second = i % COUNT(parts);
        const String *first = S(parts[i / COUNT(parts)]).as.string;
        assert_true(string_length(first) >= 0);
        const String *joined = string_concat(first, S(parts[second]).as.string).as.string;
        int64_t counted = (int64_t)utf8_count(joined->bytes, joined->length);
        assert_int_equal(joined->codepoints, second < WHOLE ? counted : -1);
        assert_int_equal(string_length(joined), counted);
    }
}

static void test_refused_bytes_are_an_error_or_an_empty_string(void **state) {
    (void)state;
    int moves = 0;
    Value begin = append_many(1000, &moves);
    Value longer = string_concat(begin.as.string, S("z").as.string);
    memory_refuse(0, 1500);
    assert_int_equal(string_concat(begin.as.string, begin.as.string).kind, VALUE_FAIL);
    assert_int_equal(error_current()->code, STATUS_MEMORY);
    assert_int_equal(string_end(begin.as.string)->length, 0);
    assert_string_equal(begin.as.string->bytes, "");
    memory_refuse(0, 0);
    assert_int_equal(memory_exhausted(), STATUS_MEMORY);
    assert_int_equal(longer.as.string->length, 2001);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_of_long_strings),
        cmocka_unit_test(test_cuts_at_the_ends_make_no_marks),
        cmocka_unit_test(test_characters_are_made_once),
        cmocka_unit_test(test_appending_copies_seldom),
        cmocka_unit_test(test_both_of_two_that_append_keep_their_bytes),
        cmocka_unit_test(test_keys_end_with_nul),
        cmocka_unit_test(test_joined_strings_keep_their_count),
        cmocka_unit_test(test_refused_bytes_are_an_error_or_an_empty_string),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
