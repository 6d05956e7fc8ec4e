// Modules that are told how to make float16: rounded to the nearest, halves to even, and as small
// as there are. What compiles them cannot say it, and not every device does it, so it is said when
// a pipeline is made. Opcodes are those of the registry.
#include "device/vulkan/core.h"

enum {
    HEADER_WORDS = 5,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_SPEC_CONSTANT_TRUE = 48,
    OP_SPEC_CONSTANT_FALSE = 49,
    OP_DECORATE = 71,
    SPEC_ID = 1,
    SMALL_MODE = 4459, // DenormPreserve, and its capability
    SMALL_CAPABILITY = 4464,
    ROUNDING_MODE = 4462, // RoundingModeRTE
    ROUNDING_CAPABILITY = 4467,
    WIDTH = 16,
};

static uint32_t *append(uint32_t *to, const uint32_t *words, size_t count) {
    memcpy(to, words, count * sizeof *words);
    return to + count;
}
#define APPEND(to, words) append(to, words, sizeof(words) / sizeof *(words))

// Makes the constant true by default, where the module has it.
static void set_constant(uint32_t *words, size_t count) {
    uint32_t constant = 0;
    for (size_t i = HEADER_WORDS; i < count; i += words[i] >> 16) {
        uint32_t *word = words + i, op = *word & 0xFFFF;
        if (op == OP_DECORATE && word[2] == SPEC_ID && word[3] == ROUNDING_CONSTANT)
            constant = word[1];
        if (op == OP_SPEC_CONSTANT_FALSE && word[2] == constant)
            *word = (*word & ~0xFFFFu) | OP_SPEC_CONSTANT_TRUE;
    }
}

uint32_t *rounding_declare(const uint32_t *words, size_t *bytes) {
    size_t count = *bytes / sizeof *words, entry = HEADER_WORDS;
    while (entry < count && (words[entry] & 0xFFFF) != OP_ENTRY_POINT) entry += words[entry] >> 16;
    ASSERT(entry < count);
    const uint32_t capabilities[] = {OP_CAPABILITY | 2 << 16, SMALL_CAPABILITY,
                                     OP_CAPABILITY | 2 << 16, ROUNDING_CAPABILITY};
    const uint32_t mode = OP_EXECUTION_MODE | 4 << 16, function = words[entry + 2];
    const uint32_t modes[] = {mode, function, SMALL_MODE,    WIDTH,
                              mode, function, ROUNDING_MODE, WIDTH};
    entry += words[entry] >> 16; // there is one, and modes come behind it
    *bytes += sizeof capabilities + sizeof modes;
    uint32_t *out = memory_allocate(*bytes), *to = out;
    to = append(to, words, HEADER_WORDS);
    to = APPEND(to, capabilities);
    to = append(to, words + HEADER_WORDS, entry - HEADER_WORDS);
    to = APPEND(to, modes);
    append(to, words + entry, count - entry);
    set_constant(out, *bytes / sizeof *out);
    return out;
}
