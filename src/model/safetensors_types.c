// Types of safetensors that no dtype is: their numbers are widened to one that holds all of them.
#include "model/safetensors_types.h"

#include <stdlib.h>
#include <string.h>

// 1 sign, 5 exponent and 2 mantissa bits: the upper half of a float16.
static bool widen_e5m2(const uint8_t *from, uint8_t *to) {
    to[0] = 0;
    to[1] = *from;
    return true;
}

// 1 sign, 4 exponent and 3 mantissa bits, with a bias of 7; all ones are nan, none is infinite.
static bool widen_e4m3(const uint8_t *from, uint8_t *to) {
    unsigned magnitude = *from & 0x7Fu, sign = (*from & 0x80u) << 8, half;
    unsigned exponent = magnitude >> 3, mantissa = magnitude & 7u;
    if (magnitude == 0x7F) {
        half = 0x7E00;
    } else if (exponent > 0) {
        half = (exponent + 8) << 10 | mantissa << 7;
    } else { // mantissa * 2^-9, which float16 holds as a normal number
        unsigned shift = 0;
        while (mantissa != 0 && !(mantissa & 8u)) {
            mantissa <<= 1;
            shift++;
        }
        half = mantissa == 0 ? 0 : (9 - shift) << 10 | (mantissa & 7u) << 7;
    }
    uint16_t bits = (uint16_t)(sign | half);
    memcpy(to, &bits, sizeof bits);
    return true;
}

static bool widen_u16(const uint8_t *from, uint8_t *to) {
    uint16_t narrow;
    memcpy(&narrow, from, sizeof narrow);
    int32_t wide = narrow;
    memcpy(to, &wide, sizeof wide);
    return true;
}

static bool widen_u32(const uint8_t *from, uint8_t *to) {
    uint32_t narrow;
    memcpy(&narrow, from, sizeof narrow);
    int64_t wide = narrow;
    memcpy(to, &wide, sizeof wide);
    return true;
}

static bool widen_u64(const uint8_t *from, uint8_t *to) {
    int64_t number;
    memcpy(&number, from, sizeof number);
    memcpy(to, &number, sizeof number);
    return number >= 0;
}

static const SafetensorsType types[] = {
    {"F8_E5M2", DTYPE_FLOAT16, 1, widen_e5m2}, {"F8_E4M3", DTYPE_FLOAT16, 1, widen_e4m3},
    {"U16", DTYPE_INT32, 2, widen_u16},        {"U32", DTYPE_INT64, 4, widen_u32},
    {"U64", DTYPE_INT64, 8, widen_u64},
};

const SafetensorsType *safetensors_type_find(const char *word) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].word, word) == 0) return &types[i];
    return NULL;
}
