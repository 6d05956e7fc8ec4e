// SPIR-V as words: instructions one after the other, read and written. Names are those of Debian's
// spirv-headers; what is newer than they are is named here.
#ifndef VULKAN_SPIRV_MODULE_H
#define VULKAN_SPIRV_MODULE_H

#include <spirv/unified1/spirv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// SPV_KHR_cooperative_matrix, SPV_KHR_bfloat16.
enum {
    SPIRV_OP_TYPE_MATRIX = 4456,
    SPIRV_OP_MATRIX_LOAD = 4457,
    SPIRV_OP_MATRIX_STORE = 4458,
    SPIRV_OP_MATRIX_MULTIPLY_ADD = 4459,
    SPIRV_CAPABILITY_MATRIX = 6022,
    SPIRV_CAPABILITY_BFLOAT = 5116,
    SPIRV_CAPABILITY_BFLOAT_MATRIX = 5118,
    SPIRV_ENCODING_BFLOAT = 0,
};

// What stands before the first instruction; the number of ids is at SPIRV_BOUND.
enum { SPIRV_HEADER_WORDS = 5, SPIRV_BOUND = 3 };

static inline uint32_t spirv_op(const uint32_t *word) {
    return *word & SpvOpCodeMask;
}
static inline uint32_t spirv_length(const uint32_t *word) {
    return *word >> SpvWordCountShift;
}
static inline const uint32_t *spirv_next(const uint32_t *word) {
    return word + spirv_length(word);
}
static inline uint32_t spirv_head(uint32_t op, uint32_t length) {
    return op | length << SpvWordCountShift;
}

// Appends to words that have room.
typedef struct SpirvWriter {
    uint32_t *words;
    size_t count;
} SpirvWriter;

static inline void spirv_append(SpirvWriter *out, const uint32_t *words, size_t count) {
    memcpy(out->words + out->count, words, count * sizeof *words);
    out->count += count;
}
static inline void spirv_copy(SpirvWriter *out, const uint32_t *word) {
    spirv_append(out, word, spirv_length(word));
}
static inline void spirv_emit(SpirvWriter *out, uint32_t op, size_t n, const uint32_t *operands) {
    out->words[out->count++] = spirv_head(op, (uint32_t)n + 1);
    if (n > 0) spirv_append(out, operands, n);
}
#define SPIRV_EMIT(out, op, ...)                                                                   \
    spirv_emit(out, op, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                      \
               (uint32_t[]){__VA_ARGS__})

#endif
