// The pass of a llama model: what ends it before its time.
#include "tests/support/fixtures.h"

#include "device/work.h"
#include "model/llama.h"

static int asked;

// At the third question.
static bool soon(void) {
    return ++asked > 2;
}

static void test_an_interrupt_ends_the_pass(void **state) {
    (void)state;
    Model *model;
    Llama *llama;
    Tensor *logits = NULL;
    assert_int_equal(model_open(fixture("models/stories260K.gguf"), NULL, &model), STATUS_OK);
    assert_int_equal(llama_new(model, &llama), STATUS_OK);
    device_set_interrupted(soon);
    assert_int_equal(llama_forward(llama, (int64_t[]){1, 2, 3}, 3, &logits), STATUS_INTERRUPT);
    device_set_interrupted(NULL);
    assert_null(logits);
    assert_in_range(asked, 3, 5); // not at the pass's end
    llama_free(llama);
    model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_interrupt_ends_the_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
