// Modules with cooperative matrices in the words that devices want: opcodes, types and uses.
#include "device/vulkan/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "device/vulkan/spirv/spirv.h"

// What a module says, read word by word.
typedef struct Found {
    int loads, stores, multiplications, types, old_words;
    int capability, bfloat_capabilities, extension, bfloat_extension;
    uint32_t uses[3];       // how many types are a, b, sums
    uint32_t encoded_types; // 16-bit floats that are bfloat16
    uint32_t plain_types;   // and that are not
} Found;

static uint32_t constant_of(const uint32_t *words, size_t count, uint32_t id) {
    for (size_t i = 5; i < count; i += words[i] >> 16)
        if ((words[i] & 0xFFFF) == 43 && words[i + 2] == id) return words[i + 3];
    return UINT32_MAX;
}

static Found read_module(const uint32_t *words, size_t count) {
    Found found = {0};
    size_t i = 5;
    for (; i < count; i += words[i] >> 16) {
        const uint32_t *word = words + i;
        uint32_t op = *word & 0xFFFF, length = *word >> 16;
        assert_true(length > 0 && i + length <= count);
        if (op >= 5358 && op <= 5362) found.old_words++;
        if (op == 17 && word[1] == 6022) found.capability++;
        if (op == 17 && (word[1] == 5116 || word[1] == 5118)) found.bfloat_capabilities++;
        if (op == 10 && strcmp((const char *)(word + 1), "SPV_KHR_cooperative_matrix") == 0)
            found.extension++;
        if (op == 10 && strcmp((const char *)(word + 1), "SPV_KHR_bfloat16") == 0)
            found.bfloat_extension++;
        if (op == 22 && word[2] == 16) {
            if (length == 4 && word[3] == 0)
                found.encoded_types++;
            else
                found.plain_types++;
        }
        if (op == 4456) {
            uint32_t use = constant_of(words, count, word[6]);
            assert_in_range(use, 0, 2);
            found.uses[use]++;
        }
        found.loads += op == 4457;
        found.stores += op == 4458;
        found.multiplications += op == 4459;
        // Layouts are numbers now: 0 by rows, 1 by columns.
        if (op == 4457) assert_in_range(constant_of(words, count, word[4]), 0, 1);
        if (op == 4458) assert_in_range(constant_of(words, count, word[3]), 0, 1);
    }
    assert_int_equal(i, count);
    return found;
}

// A module of shaders/kernels.def with all that must be translated.
static void check_module(const VulkanModule *module, bool bfloat) {
    size_t bytes;
    uint32_t *words = dialect_translate(module, bfloat, &bytes);
    Found found = read_module(words, bytes / 4);
    assert_int_equal(found.old_words, 0);
    assert_int_equal(found.capability, 1);
    assert_int_equal(found.extension, 1);
    assert_true(found.loads > 0 && found.stores > 0 && found.multiplications > 0);
    for (int use = 0; use < 3; use++) assert_int_equal(found.uses[use], 1);
    assert_int_equal(found.bfloat_capabilities, bfloat ? 2 : 0);
    assert_int_equal(found.bfloat_extension, bfloat);
    assert_int_equal(found.encoded_types, bfloat);
    assert_int_equal(found.plain_types, !bfloat);
    free(words);
}

static void test_matrix_modules(void **state) {
    (void)state;
    check_module(vulkan_module(SHADER_MATMUL_HALF), false);
    check_module(vulkan_module(SHADER_MATMUL_HALF_LARGE), false);
    check_module(vulkan_module(SHADER_MATMUL_BFLOAT), true);
    check_module(vulkan_module(SHADER_MATMUL_BFLOAT_LARGE), true);
    check_module(vulkan_module(SHADER_MATMUL_PARTS_FLOAT), true);
    check_module(vulkan_module(SHADER_MATMUL_PARTS_BLOCKS), true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrix_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
