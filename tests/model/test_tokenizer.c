// The SentencePiece-style tokenizer against the reference's ids and texts.
#include "model/tokenizer_internal.h" // first: cmocka has a fail of its own

#include "tests/support/fixtures.h"

#include <jansson.h>
#include <utf8proc.h>

#include "device/work.h"
#include "model/reader.h"

static Tokenizer *open_tokenizer(void) {
    Reader *file;
    Tokenizer *tokenizer;
    assert_int_equal(reader_open(fixture("models/stories260K.gguf"), &file), STATUS_OK);
    assert_int_equal(tokenizer_from_metadata(&file->metadata, "stories260K.gguf", &tokenizer),
                     STATUS_OK);
    reader_close(file);
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
        TokenIds tokens = {0};
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
        TokenIds tokens = {0};
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
    TokenIds tokens = {0};
    assert_int_equal(tokenizer_encode(tokenizer, "\xF0\x9F\xA6\x99", 4, false, &tokens), STATUS_OK);
    assert_int_equal(tokens.count, 5); // the space in front, then four bytes
    Text text = {0}, other = {0};
    TokenStream stream = {0}, adjacent = {0};
    for (size_t i = 0; i < tokens.count; i++) {
        assert_int_equal(text.length, i == 0 ? 0 : 1);
        assert_int_equal(tokenizer_decode_next(tokenizer, &stream, tokens.ids[i], true, &text),
                         STATUS_OK);
        // Another text that comes meanwhile is not disturbed, and does not disturb.
        assert_int_equal(tokenizer_decode_next(tokenizer, &adjacent, tokens.ids[0], true, &other),
                         STATUS_OK);
    }
    assert_string_equal(text_get(&other), "     ");
    text_free(&other);
    assert_string_equal(text_get(&text), " \xF0\x9F\xA6\x99");
    text_clear(&text);
    // A character that is broken off is replaced when the next one begins.
    for (size_t i = 2; i-- > 0;)
        assert_int_equal(tokenizer_decode_next(tokenizer, &stream, tokens.ids[i], true, &text),
                         STATUS_OK);
    assert_string_equal(text_get(&text), "\xEF\xBF\xBD ");
    text_free(&text);
    free(tokens.ids);
    tokenizer_release(tokenizer);
}

static void test_special_tokens_in_text(void **state) {
    (void)state;
    Tokenizer *tokenizer = open_tokenizer();
    TokenIds tokens = {0};
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
    Reader *file;
    Tokenizer *tokenizer;
    assert_int_equal(reader_open(fixture("models/quant-blocks.gguf"), &file), STATUS_OK);
    assert_int_equal(tokenizer_from_metadata(&file->metadata, "quant-blocks.gguf", &tokenizer),
                     STATUS_FORMAT);
    reader_close(file);
}

static bool always(void) {
    return true;
}

static Status encode_interrupted(const char *json) {
    Tokenizer *tokenizer;
    assert_int_equal(tokenizer_from_json((const uint8_t *)json, strlen(json), "t", &tokenizer),
                     STATUS_OK);
    TokenIds tokens = {0};
    device_set_interrupted(always);
    Status status = tokenizer_encode(tokenizer, "aaaa bbbb", 9, true, &tokens);
    device_set_interrupted(NULL);
    free(tokens.ids);
    tokenizer_release(tokenizer);
    return status;
}

// Every way to cut a text into pieces ends when the user asks for it.
static void test_interrupts_end_encoding(void **state) {
    (void)state;
    static const char *const models[] = {
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"aa\": 1}, "
        "\"merges\": [\"a a\"]}}",
        "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", -1.0]]}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}, "
        "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}, "
        "\"normalizer\": {\"type\": \"Lowercase\"}}"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        assert_int_equal(encode_interrupted(models[i]), STATUS_INTERRUPT);
}

static int asked; // how often somebody asked whether to stop

static bool count_questions(void) {
    asked++;
    return false;
}

// However long the word is, every step asks often whether to stop.
static void test_steps_ask(void **state) {
    (void)state;
    enum { BYTES = 1 << 20, OFTEN = BYTES >> 16 };
    char nothing[] = "";
    TextStep pattern = {.apply = step_split}, other = {.apply = step_replace, .content = nothing};
    assert_int_equal(step_compile(&pattern, "\\pL+", 4), STATUS_OK);
    assert_int_equal(step_compile(&other, "\\pL+", 4), STATUS_OK);
    const TextStep steps[] = {
        pattern,
        other,
        {.apply = step_replace, .pattern = (char[]){"b"}, .content = (char[]){"ab"}},
        {.apply = step_metaspace, .content = (char[]){SPACE_MARK}, .flag = true},
        {.apply = step_unicode_form, .option = UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
        {.apply = step_lowercase},
        {.apply = step_remove_accents},
        {.apply = step_clean},
        {.apply = step_space_ideographs},
        {.apply = step_bytes},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        Words words = {0};
        while (words.text.length < BYTES) text_append_string(&words.text, "a\u00e9 b ");
        words_end(&words);
        asked = 0;
        device_set_interrupted(count_questions);
        Status status = steps[i].apply(&steps[i], &words);
        device_set_interrupted(NULL);
        words_free(&words);
        assert_int_equal(status, STATUS_OK);
        if (asked < OFTEN) fail_msg("step %zu asks %d times", i, asked);
    }
    other.content = NULL; // static here
    step_release(&pattern);
    step_release(&other);
}

// What the file calls the end, and what pieces are called that end a turn of other models.
static void test_ends(void **state) {
    (void)state;
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 1, \"content\": \"<|im_end|>\", \"special\": true},"
        "{\"id\": 2, \"content\": \"<|endoftext|>\", \"special\": true},"
        "{\"id\": 3, \"content\": \"<tool>\", \"special\": true}],"
        "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}";
    Tokenizer *tokenizer;
    assert_int_equal(tokenizer_from_json((const uint8_t *)json, strlen(json), "t", &tokenizer),
                     STATUS_OK);
    static const bool ends[] = {false, true, true, false};
    for (int64_t id = 0; id < 4; id++) assert_int_equal(tokenizer_is_end(tokenizer, id), ends[id]);
    assert_false(tokenizer_is_end(tokenizer, -1));
    assert_int_equal(tokenizer_eos(tokenizer), 2);
    tokenizer_release(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_equal_the_reference),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_unfinished_characters_wait),
        cmocka_unit_test(test_special_tokens_in_text),
        cmocka_unit_test(test_id_out_of_range),
        cmocka_unit_test(test_file_without_tokenizer),
        cmocka_unit_test(test_interrupts_end_encoding),
        cmocka_unit_test(test_steps_ask),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
