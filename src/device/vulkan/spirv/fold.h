// The arithmetic of SPIR-V on constants.
#ifndef VULKAN_SPIRV_FOLD_H
#define VULKAN_SPIRV_FOLD_H

#include "device/vulkan/core.h"
#include "device/vulkan/spirv/module.h"

// An integer of so many bits, or a boolean of one, without its sign.
typedef struct Number {
    uint64_t value;
    int bits;
} Number;

static inline uint64_t number_low_bits(uint64_t value, int bits) {
    return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
}

// The result, of so many bits, of an instruction on one or two numbers; false where it has none or
// is not known here.
bool fold_numbers(uint32_t op, int bits, const Number operands[2], uint64_t *value);

#endif
