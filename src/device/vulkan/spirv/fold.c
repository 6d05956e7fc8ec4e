// What instructions of SPIR-V make of integers and booleans that are known.
#include "device/vulkan/spirv/fold.h"

// What each makes of a, b (the same with their signs: x, y); `ok` says where that is defined.
#define FOLDS(FOLD)                                                                                \
    FOLD(SpvOpUConvert, true, a)                                                                   \
    FOLD(SpvOpSConvert, true, (uint64_t)x)                                                         \
    FOLD(SpvOpBitcast, true, a)                                                                    \
    FOLD(SpvOpSNegate, true, -a)                                                                   \
    FOLD(SpvOpIAdd, true, a + b)                                                                   \
    FOLD(SpvOpISub, true, a - b)                                                                   \
    FOLD(SpvOpIMul, true, a *b)                                                                    \
    FOLD(SpvOpUDiv, b != 0, a / b)                                                                 \
    FOLD(SpvOpSDiv, y > 0, (uint64_t)(x / y))                                                      \
    FOLD(SpvOpUMod, b != 0, a % b)                                                                 \
    FOLD(SpvOpLogicalEqual, true, a == b)                                                          \
    FOLD(SpvOpLogicalNotEqual, true, a != b)                                                       \
    FOLD(SpvOpLogicalOr, true, a | b)                                                              \
    FOLD(SpvOpLogicalAnd, true, a &b)                                                              \
    FOLD(SpvOpLogicalNot, true, !a)                                                                \
    FOLD(SpvOpIEqual, true, a == b)                                                                \
    FOLD(SpvOpINotEqual, true, a != b)                                                             \
    FOLD(SpvOpUGreaterThan, true, a > b)                                                           \
    FOLD(SpvOpSGreaterThan, true, x > y)                                                           \
    FOLD(SpvOpUGreaterThanEqual, true, a >= b)                                                     \
    FOLD(SpvOpSGreaterThanEqual, true, x >= y)                                                     \
    FOLD(SpvOpULessThan, true, a < b)                                                              \
    FOLD(SpvOpSLessThan, true, x < y)                                                              \
    FOLD(SpvOpULessThanEqual, true, a <= b)                                                        \
    FOLD(SpvOpSLessThanEqual, true, x <= y)                                                        \
    FOLD(SpvOpShiftRightLogical, b < 64, a >> b)                                                   \
    FOLD(SpvOpShiftRightArithmetic, b < 64, (uint64_t)(x >> b))                                    \
    FOLD(SpvOpShiftLeftLogical, b < 64, a << b)                                                    \
    FOLD(SpvOpBitwiseOr, true, a | b)                                                              \
    FOLD(SpvOpBitwiseXor, true, a ^ b)                                                             \
    FOLD(SpvOpBitwiseAnd, true, a &b)                                                              \
    FOLD(SpvOpNot, true, ~a)

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
