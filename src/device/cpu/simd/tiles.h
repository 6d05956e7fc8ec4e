// Products of small matrices of bytes: 16 tokens by the 32 weights of a group of 16 rows. The
// instructions are Intel's AMX ("Intel 64 and IA-32 Architectures Software Developer's Manual",
// volume 1, chapter 18); without them loops give the same integers, for tests.
#ifndef DEVICE_CPU_SIMD_TILES_H
#define DEVICE_CPU_SIMD_TILES_H

#include "device/cpu/repacked.h"
#include "device/cpu/simd/lanes.h"

typedef struct TileSum {
    int32_t at[TILE_TOKENS][STRIP_ROWS];
} __attribute__((aligned(LINE_BYTES))) TileSum;
// Of a group by the low digits of activations, and by the high ones.
enum { LOW_SUM = 0, HIGH_SUM = 1, TILE_SUMS = 2 };

#if defined(__AMX_INT8__)
#include <immintrin.h>

// What LDTILECFG reads.
typedef struct TileConfiguration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileConfiguration;

// Tiles 0 and 1 take sums, 2 and 3 digits, 4 weights.
SIMD_INLINE void tile_configure(void) {
    const TileConfiguration configuration = {
        .palette = 1,
        .row_bytes = {LINE_BYTES, LINE_BYTES, GROUP_WEIGHTS, GROUP_WEIGHTS, LINE_BYTES},
        .rows = {TILE_TOKENS, TILE_TOKENS, TILE_TOKENS, TILE_TOKENS, TILE_LINES},
    };
    _tile_loadconfig(&configuration);
}

SIMD_INLINE void tile_release(void) {
    _tile_release();
}

// `digits`: those of the first token, sizeof(ActivationGroup) before those of the next.
SIMD_INLINE void tile_multiply(const char *lines, const int8_t *digits, bool both, TileSum *out) {
    _tile_loadd(4, lines, LINE_BYTES);
    _tile_loadd(2, digits + GROUP_WEIGHTS, sizeof(ActivationGroup));
    _tile_zero(0);
    _tile_dpbssd(0, 2, 4);
    _tile_stored(0, out[LOW_SUM].at, LINE_BYTES);
    if (!both) return;
    _tile_loadd(3, digits, sizeof(ActivationGroup));
    _tile_zero(1);
    _tile_dpbssd(1, 3, 4);
    _tile_stored(1, out[HIGH_SUM].at, LINE_BYTES);
}

#else

SIMD_INLINE void tile_configure(void) {}

SIMD_INLINE void tile_release(void) {}

SIMD_INLINE int32_t tile_sum(const char *weights, const int8_t *digits) {
    int32_t sum = 0;
    for (int w = 0; w < GROUP_WEIGHTS; w++)
        sum += digits[w] * (int8_t)weights[w / 4 * LINE_BYTES + w % 4];
    return sum;
}

static inline void tile_multiply(const char *lines, const int8_t *digits, bool both, TileSum *out) {
    for (int token = 0; token < TILE_TOKENS; token++, digits += sizeof(ActivationGroup))
        for (int row = 0; row < STRIP_ROWS; row++) {
            out[LOW_SUM].at[token][row] = tile_sum(lines + row * 4, digits + GROUP_WEIGHTS);
            if (both) out[HIGH_SUM].at[token][row] = tile_sum(lines + row * 4, digits);
        }
}
#endif

#endif
