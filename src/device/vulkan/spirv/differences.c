// Differences of operands. Ids mostly grow from instruction to instruction, and types repeat: what
// is left are small numbers that recur. Nothing is known of an instruction but its opcode and
// length.
#include "device/vulkan/spirv/differences.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/vulkan/spirv/module.h"

enum { OPCODES = 1 << 16 };

// out[i] = in[i] + sign * the operand that is subtracted, which is taken from `words`.
static void combine(uint32_t *out, const uint32_t *in, const uint32_t *words, size_t count,
                    uint32_t sign) {
    SCOPED_MEMORY uint32_t *last =
        memory_allocate_zeroed(OPCODES, sizeof *last); // index of an instruction; 0: none
    memmove(out, in, SPIRV_HEADER_WORDS * sizeof *in);
    for (size_t at = SPIRV_HEADER_WORDS; at < count; at += spirv_length(in + at)) {
        uint32_t length = spirv_length(in + at), *before = &last[spirv_op(in + at)];
        uint32_t known = *before ? spirv_length(words + *before) : 0;
        ASSERT(length > 0 && length <= count - at);
        out[at] = in[at];
        for (uint32_t i = 1; i < length; i++)
            out[at + i] = in[at + i] + (i < known ? sign * words[*before + i] : 0);
        *before = (uint32_t)at;
    }
}

void spirv_to_differences(uint32_t *out, const uint32_t *words, size_t count) {
    combine(out, words, words, count, UINT32_MAX);
}

void spirv_from_differences(uint32_t *words, size_t count) {
    combine(words, words, words, count, 1);
}
