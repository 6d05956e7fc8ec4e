// Modules that are told how to make float16: rounded to the nearest, halves to even, and as small
// as there are. What compiles them cannot say it, and not every device does it, so it is said when
// a pipeline is made.
#include "device/vulkan/core.h"
#include "device/vulkan/spirv/module.h"
#include "device/vulkan/spirv/spirv.h"

enum { HALF_BITS = 16, ADDED_WORDS = 12 };

// Makes the constant true by default, where the module has it.
static void set_constant(uint32_t *words, size_t count) {
    uint32_t constant = 0;
    for (size_t i = SPIRV_HEADER_WORDS; i < count; i += spirv_length(words + i)) {
        uint32_t *word = words + i, op = spirv_op(word);
        if (op == SpvOpDecorate && word[2] == SpvDecorationSpecId && word[3] == ROUNDING_CONSTANT)
            constant = word[1];
        if (op == SpvOpSpecConstantFalse && word[2] == constant)
            *word = spirv_head(SpvOpSpecConstantTrue, spirv_length(word));
    }
}

uint32_t *rounding_declare(const uint32_t *words, size_t *bytes) {
    size_t count = *bytes / sizeof *words, entry = SPIRV_HEADER_WORDS;
    while (entry < count && spirv_op(words + entry) != SpvOpEntryPoint)
        entry += spirv_length(words + entry);
    ASSERT(entry < count);
    uint32_t function = words[entry + 2];
    entry += spirv_length(words + entry); // there is one, and modes come after it
    SpirvWriter out = {.words = memory_allocate((count + ADDED_WORDS) * sizeof *words)};
    spirv_append(&out, words, SPIRV_HEADER_WORDS);
    SPIRV_EMIT(&out, SpvOpCapability, SpvCapabilityDenormPreserve);
    SPIRV_EMIT(&out, SpvOpCapability, SpvCapabilityRoundingModeRTE);
    spirv_append(&out, words + SPIRV_HEADER_WORDS, entry - SPIRV_HEADER_WORDS);
    SPIRV_EMIT(&out, SpvOpExecutionMode, function, SpvExecutionModeDenormPreserve, HALF_BITS);
    SPIRV_EMIT(&out, SpvOpExecutionMode, function, SpvExecutionModeRoundingModeRTE, HALF_BITS);
    spirv_append(&out, words + entry, count - entry);
    set_constant(out.words, out.count);
    *bytes = out.count * sizeof *words;
    return out.words;
}
