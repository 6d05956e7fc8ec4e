// What instructions of SPIR-V make of whole numbers and truth values that are known. Opcodes are
// those of the registry.
#include "device/vulkan/spirv/prune.h"

// What each makes of a, b (the same with their signs: x, y); `ok` says where that is defined.
#define FOLDS(FOLD)                                                                                \
    FOLD(OP_U_CONVERT, true, a)                                                                    \
    FOLD(OP_S_CONVERT, true, (uint64_t)x)                                                          \
    FOLD(OP_BITCAST, true, a)                                                                      \
    FOLD(OP_S_NEGATE, true, -a)                                                                    \
    FOLD(OP_I_ADD, true, a + b)                                                                    \
    FOLD(OP_I_SUB, true, a - b)                                                                    \
    FOLD(OP_I_MUL, true, a *b)                                                                     \
    FOLD(OP_U_DIV, b != 0, a / b)                                                                  \
    FOLD(OP_S_DIV, y > 0, (uint64_t)(x / y))                                                       \
    FOLD(OP_U_MOD, b != 0, a % b)                                                                  \
    FOLD(OP_LOGICAL_EQUAL, true, a == b)                                                           \
    FOLD(OP_LOGICAL_NOT_EQUAL, true, a != b)                                                       \
    FOLD(OP_LOGICAL_OR, true, a | b)                                                               \
    FOLD(OP_LOGICAL_AND, true, a &b)                                                               \
    FOLD(OP_LOGICAL_NOT, true, !a)                                                                 \
    FOLD(OP_I_EQUAL, true, a == b)                                                                 \
    FOLD(OP_I_NOT_EQUAL, true, a != b)                                                             \
    FOLD(OP_U_GREATER_THAN, true, a > b)                                                           \
    FOLD(OP_S_GREATER_THAN, true, x > y)                                                           \
    FOLD(OP_U_GREATER_THAN_EQUAL, true, a >= b)                                                    \
    FOLD(OP_S_GREATER_THAN_EQUAL, true, x >= y)                                                    \
    FOLD(OP_U_LESS_THAN, true, a < b)                                                              \
    FOLD(OP_S_LESS_THAN, true, x < y)                                                              \
    FOLD(OP_U_LESS_THAN_EQUAL, true, a <= b)                                                       \
    FOLD(OP_S_LESS_THAN_EQUAL, true, x <= y)                                                       \
    FOLD(OP_SHIFT_RIGHT_LOGICAL, b < 64, a >> b)                                                   \
    FOLD(OP_SHIFT_RIGHT_ARITHMETIC, b < 64, (uint64_t)(x >> b))                                    \
    FOLD(OP_SHIFT_LEFT_LOGICAL, b < 64, a << b)                                                    \
    FOLD(OP_BITWISE_OR, true, a | b)                                                               \
    FOLD(OP_BITWISE_XOR, true, a ^ b)                                                              \
    FOLD(OP_BITWISE_AND, true, a &b)                                                               \
    FOLD(OP_NOT, true, ~a)

static int64_t with_sign(Number number) {
    int unused = 64 - number.bits;
    return (int64_t)(number.value << unused) >> unused;
}

bool fold_numbers(uint32_t op, int bits, const Number operands[2], uint64_t *value) {
    uint64_t a = operands[0].value, b = operands[1].value;
    int64_t x = with_sign(operands[0]), y = with_sign(operands[1]);
    switch (op) {
#define FOLD(code, ok, result)                                                                     \
    case code:                                                                                     \
        if (!(ok)) return false;                                                                   \
        *value = number_low_bits(result, bits);                                                    \
        return true;
        FOLDS(FOLD)
#undef FOLD
    default: return false;
    }
}
