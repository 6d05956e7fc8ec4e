// Between prune.c, which follows a module of SPIR-V, and fold.c, which knows its arithmetic.
#ifndef VULKAN_SPIRV_PRUNE_H
#define VULKAN_SPIRV_PRUNE_H

#include "device/vulkan/core.h"

enum {
    OP_U_CONVERT = 113,
    OP_S_CONVERT = 114,
    OP_BITCAST = 124,
    OP_S_NEGATE = 126,
    OP_I_ADD = 128,
    OP_I_SUB = 130,
    OP_I_MUL = 132,
    OP_U_DIV = 134,
    OP_S_DIV = 135,
    OP_U_MOD = 137,
    OP_LOGICAL_EQUAL = 164,
    OP_LOGICAL_NOT_EQUAL = 165,
    OP_LOGICAL_OR = 166,
    OP_LOGICAL_AND = 167,
    OP_LOGICAL_NOT = 168,
    OP_SELECT = 169,
    OP_I_EQUAL = 170,
    OP_I_NOT_EQUAL = 171,
    OP_U_GREATER_THAN = 172,
    OP_S_GREATER_THAN = 173,
    OP_U_GREATER_THAN_EQUAL = 174,
    OP_S_GREATER_THAN_EQUAL = 175,
    OP_U_LESS_THAN = 176,
    OP_S_LESS_THAN = 177,
    OP_U_LESS_THAN_EQUAL = 178,
    OP_S_LESS_THAN_EQUAL = 179,
    OP_SHIFT_RIGHT_LOGICAL = 194,
    OP_SHIFT_RIGHT_ARITHMETIC = 195,
    OP_SHIFT_LEFT_LOGICAL = 196,
    OP_BITWISE_OR = 197,
    OP_BITWISE_XOR = 198,
    OP_BITWISE_AND = 199,
    OP_NOT = 200,
};

// A whole number of so many bits, or a truth value of one, without its sign.
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
