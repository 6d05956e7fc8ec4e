// Modules that are told how to round to float16: what is added, where, and that nothing else
// changes.
#include "device/vulkan/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/vulkan/spirv/spirv.h"

enum { HEADER_WORDS = 5, ADDED_WORDS = 12 };

// Whether this is one of the instructions that are added.
static bool is_added(const uint32_t *word, uint32_t function) {
    if (*word == (17 | 2 << 16)) return word[1] == 4464 || word[1] == 4467;
    return *word == (16 | 4 << 16) && word[1] == function && word[3] == 16 &&
           (word[2] == 4459 || word[2] == 4462);
}

// The id of the constant; 0 in a module without.
static uint32_t constant_of(const VulkanModule *module) {
    const uint32_t *words = module->data;
    for (size_t i = HEADER_WORDS; i < module->bytes / 4; i += words[i] >> 16) {
        const uint32_t *word = words + i;
        if ((*word & 0xFFFF) == 71 && word[2] == 1 && word[3] == ROUNDING_CONSTANT) return word[1];
    }
    return 0;
}

static void check_module(const VulkanModule *module, uint32_t constant) {
    size_t bytes = module->bytes, at = HEADER_WORDS;
    const uint32_t *before = module->data;
    uint32_t *words = rounding_declare(before, &bytes), function = 0, added = 0;
    uint32_t changed = 0;
    assert_int_equal(bytes, module->bytes + ADDED_WORDS * 4);
    assert_memory_equal(words, before, HEADER_WORDS * 4);
    bool capabilities_over = false;
    for (size_t i = HEADER_WORDS; i < bytes / 4; i += words[i] >> 16) {
        const uint32_t *word = words + i;
        uint32_t op = *word & 0xFFFF, length = *word >> 16;
        assert_true(length > 0);
        capabilities_over |= op != 17;
        if (op == 15) function = word[2];
        if (is_added(word, function)) {
            assert_true(op == 17 ? !capabilities_over : function != 0);
            added += length;
            continue;
        }
        if (op == 48 && word[2] == constant) {
            assert_int_equal(before[at], 49 | 3 << 16);
            changed++;
        } else {
            assert_int_equal(*word, before[at]);
        }
        assert_memory_equal(word + 1, before + at + 1, (length - 1) * 4);
        at += length;
    }
    assert_int_equal(added, ADDED_WORDS);
    assert_int_equal(changed, constant != 0);
    assert_int_equal(at, module->bytes / 4);
    free(words);
}

static void test_modules(void **state) {
    (void)state;
    assert_true(constant_of(vulkan_module(SHADER_MOVE_F32)) != 0);
    for (int shader = 0; shader < VULKAN_SHADER_COUNT; shader++) {
        const VulkanModule *module = vulkan_module((VulkanShader)shader);
        if (!module_is_imported(module)) check_module(module, constant_of(module));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
