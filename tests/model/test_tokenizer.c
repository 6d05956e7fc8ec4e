// The SentencePiece-style tokenizer against the reference's ids and texts.
#include "tests/support/fixtures.h"

#include <jansson.h>

#include "model/tokenizer.h"

static Tokenizer *open_tokenizer(void) {
    GgufFile *file;
    Tokenizer *tokenizer;
    assert_int_equal(gguf_open(fixture("models/stories260K.gguf"), &file), STATUS_OK);
    assert_int_equal(tokenizer_from_gguf(file, "stories260K.gguf", &tokenizer), STATUS_OK);
    gguf_close(file);
    return tokenizer;
}

static void test_ids_equal_the_reference(void **state) {
    (void)state;
    Tokenizer *tokenizer = open_tokenizer();
    json_t *expected = json_load_file(fixture("models/expected.json"), 0, NULL);
    json_t *cases = json_object_get(expected, "stories260K"), *item;
    size_t index, position;
    assert_true(json_array_size(cases) > 0);
    json_array_foreach(cases, index, item) {
        const char *prompt = json_string_value(json_object_get(item, "prompt"));
        json_t *ids = json_object_get(item, "tokens"), *id;
        TokenList tokens = {0};
        assert_int_equal(tokenizer_encode(tokenizer, prompt, strlen(prompt), true, &tokens),
                         STATUS_OK);
        assert_int_equal(tokens.count, json_array_size(ids));
        json_array_foreach(ids, position, id)
            assert_int_equal(tokens.ids[position], json_integer_value(id));
        free(tokens.ids);
    }
    json_decref(expected);
    tokenizer_release(tokenizer);
}

// Decoding gives back what was encoded: spaces, newlines, bytes outside the vocabulary.
static void test_round_trips(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "a",
                                        " a",
                                        "  two  spaces ",
                                        "line\nline\n",
                                        "Gr\303\266\303\237e",
                                        "\xF0\x9F\xA6\x99 llama",
                                        "tab\tand \x01 control"};
    Tokenizer *tokenizer = open_tokenizer();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        TokenList tokens = {0};
        Text text = {0};
        assert_int_equal(tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), true, &tokens),
                         STATUS_OK);
        assert_int_equal(tokenizer_decode(tokenizer, tokens.ids, tokens.count, true, &text),
                         STATUS_OK);
        assert_string_equal(text_get(&text), texts[i]);
        text_free(&text);
        free(tokens.ids);
    }
    tokenizer_release(tokenizer);
}

// One id at a time: the four bytes of a llama appear when the last one is there.
static void test_unfinished_characters_wait(void **state) {
    (void)state;
    Tokenizer *tokenizer = open_tokenizer();
    TokenList tokens = {0};
    assert_int_equal(tokenizer_encode(tokenizer, "\xF0\x9F\xA6\x99", 4, false, &tokens), STATUS_OK);
    assert_int_equal(tokens.count, 5); // the space in front, then four bytes
    Text text = {0};
    for (size_t i = 0; i < tokens.count; i++) {
        assert_int_equal(text.length, i == 0 ? 0 : 1);
        assert_int_equal(tokenizer_decode_next(tokenizer, tokens.ids[i], true, &text), STATUS_OK);
    }
    assert_string_equal(text_get(&text), " \xF0\x9F\xA6\x99");
    text_clear(&text);
    // A character that is broken off is replaced when the next one begins.
    assert_int_equal(tokenizer_decode_next(tokenizer, tokens.ids[1], true, &text), STATUS_OK);
    assert_int_equal(tokenizer_decode_next(tokenizer, tokens.ids[0], true, &text), STATUS_OK);
    assert_string_equal(text_get(&text), "\xEF\xBF\xBD ");
    text_free(&text);
    free(tokens.ids);
    tokenizer_release(tokenizer);
}

static void test_special_tokens_in_text(void **state) {
    (void)state;
    Tokenizer *tokenizer = open_tokenizer();
    TokenList tokens = {0};
    assert_int_equal(tokenizer_encode(tokenizer, "</s>", 4, false, &tokens), STATUS_OK);
    assert_int_equal(tokens.count, 1);
    assert_int_equal(tokens.ids[0], tokenizer_eos(tokenizer));
    Text text = {0};
    assert_int_equal(tokenizer_decode(tokenizer, tokens.ids, 1, true, &text), STATUS_OK);
    assert_string_equal(text_get(&text), "");
    assert_int_equal(tokenizer_decode(tokenizer, tokens.ids, 1, false, &text), STATUS_OK);
    assert_string_equal(text_get(&text), "</s>");
    text_free(&text);
    free(tokens.ids);
    tokenizer_release(tokenizer);
}

static void test_id_out_of_range(void **state) {
    (void)state;
    Tokenizer *tokenizer = open_tokenizer();
    Text text = {0};
    int64_t id = 512;
    assert_int_equal(tokenizer_decode(tokenizer, &id, 1, true, &text), STATUS_INDEX);
    assert_string_equal(error_current()->message,
                        "token id 512 is out of range: the vocabulary has 512 tokens");
    text_free(&text);
    tokenizer_release(tokenizer);
}

static void test_file_without_tokenizer(void **state) {
    (void)state;
    GgufFile *file;
    Tokenizer *tokenizer;
    assert_int_equal(gguf_open(fixture("models/quant-blocks.gguf"), &file), STATUS_OK);
    assert_int_equal(tokenizer_from_gguf(file, "quant-blocks.gguf", &tokenizer), STATUS_FORMAT);
    gguf_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_equal_the_reference),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_unfinished_characters_wait),
        cmocka_unit_test(test_special_tokens_in_text),
        cmocka_unit_test(test_id_out_of_range),
        cmocka_unit_test(test_file_without_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
