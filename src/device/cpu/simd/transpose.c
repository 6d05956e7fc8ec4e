// Tiles of a transposition, in squares of eight by eight that stay in vector registers: three
// rounds of interleaving each half of the lines with the other.
#include "device/cpu/transpose.h"

#include <string.h>

enum { SQUARE = 8, CACHE_LINE_BYTES = 64 };

#define DEFINE_TRANSPOSE(T)                                                                        \
    typedef T Line_##T __attribute__((vector_size(SQUARE * sizeof(T))));                           \
                                                                                                   \
    static inline                                                                                  \
        __attribute__((always_inline)) void interleave_##T(Line_##T *to, const Line_##T *from) {   \
        for (int i = 0; i < SQUARE / 2; i++) {                                                     \
            Line_##T a = from[i], b = from[i + SQUARE / 2];                                        \
            to[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);                   \
            to[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static inline T *target_##T(const TransposeTile *tile, int64_t row, int64_t column) {          \
        return (T *)(void *)(tile->to + row * tile->to_stride) + column;                           \
    }                                                                                              \
    static inline const T *source_##T(const TransposeTile *tile, int64_t row, int64_t column) {    \
        return (const T *)(const void *)(tile->from + column * tile->from_stride) + row;           \
    }                                                                                              \
                                                                                                   \
    static inline __attribute__((always_inline)) void square_##T(const TransposeTile *tile,        \
                                                                 int64_t row, int64_t column) {    \
        Line_##T lines[SQUARE], other[SQUARE];                                                     \
        for (int i = 0; i < SQUARE; i++)                                                           \
            memcpy(&lines[i], source_##T(tile, row, column + i), sizeof lines[i]);                 \
        interleave_##T(other, lines);                                                              \
        interleave_##T(lines, other);                                                              \
        interleave_##T(other, lines);                                                              \
        for (int i = 0; i < SQUARE; i++)                                                           \
            memcpy(target_##T(tile, row + i, column), &other[i], sizeof other[i]);                 \
    }                                                                                              \
                                                                                                   \
    static void edge_##T(const TransposeTile *tile, int64_t row, int64_t column) {                 \
        for (int64_t r = row; r < tile->rows && r < row + SQUARE; r++)                             \
            for (int64_t c = column; c < tile->columns && c < column + SQUARE; c++)                \
                *target_##T(tile, r, c) = *source_##T(tile, r, c);                                 \
    }                                                                                              \
                                                                                                   \
    /* All of a source's cache line is used before the next is read. */                            \
    static void tile_##T(const TransposeTile *tile) {                                              \
        int64_t band = CACHE_LINE_BYTES / (int64_t)sizeof(T);                                      \
        for (int64_t first = 0; first < tile->rows; first += band) {                               \
            int64_t end = first + band < tile->rows ? first + band : tile->rows;                   \
            for (int64_t column = 0; column < tile->columns; column += SQUARE)                     \
                for (int64_t row = first; row < end; row += SQUARE)                                \
                    if (row + SQUARE <= tile->rows && column + SQUARE <= tile->columns)            \
                        square_##T(tile, row, column);                                             \
                    else                                                                           \
                        edge_##T(tile, row, column);                                               \
        }                                                                                          \
    }

DEFINE_TRANSPOSE(uint8_t)
DEFINE_TRANSPOSE(uint16_t)
DEFINE_TRANSPOSE(uint32_t)
DEFINE_TRANSPOSE(uint64_t)

static void tile_by_size(size_t size, const TransposeTile *tile) {
    if (size == 1)
        tile_uint8_t(tile);
    else if (size == 2)
        tile_uint16_t(tile);
    else if (size == 4)
        tile_uint32_t(tile);
    else
        tile_uint64_t(tile);
}

// The lines of a square of small elements are far shorter than a cache line, and a large stride
// makes the cache lines they lie in evict one another: they meet in a block of their own first.
void ISA(transpose_tile)(size_t size, const TransposeTile *tile) {
    if (size >= sizeof(uint32_t)) {
        tile_by_size(size, tile);
        return;
    }
    _Alignas(
        CACHE_LINE_BYTES) char block[TRANSPOSE_SIDE_MAX * TRANSPOSE_SIDE_MAX * sizeof(uint16_t)];
    TransposeTile inner = *tile;
    inner.to = block;
    inner.to_stride = TRANSPOSE_SIDE_MAX * (int64_t)size;
    tile_by_size(size, &inner);
    for (int64_t row = 0; row < tile->rows; row++)
        memcpy(tile->to + row * tile->to_stride, block + row * inner.to_stride,
               (size_t)tile->columns * size);
}
