// Tiles of a transposition, in squares of eight by eight that stay in vector registers: three
// rounds that join each line with another.
#include "device/cpu/transpose.h"

#include <string.h>

enum { SQUARE = 8, CACHE_LINE_BYTES = 64 };

// Of elements of four bytes in eight: halves are exchanged, then quarters are interleaved twice,
// which instructions do that keep to 16 bytes.
typedef uint32_t Line_uint32_t __attribute__((vector_size(SQUARE * sizeof(uint32_t))));
static inline __attribute__((always_inline)) void turn_uint32_t(Line_uint32_t *lines) {
    Line_uint32_t other[SQUARE];
    for (int i = 0; i < SQUARE / 2; i++) {
        Line_uint32_t a = lines[i], b = lines[i + 4];
        other[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        other[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
    for (int half = 0; half < SQUARE; half += 4) {
        Line_uint32_t *in = other + half, *out = lines + half;
        Line_uint32_t even_low = LOW(in[0], in[2]), even_high = HIGH(in[0], in[2]);
        Line_uint32_t odd_low = LOW(in[1], in[3]), odd_high = HIGH(in[1], in[3]);
        out[0] = LOW(even_low, odd_low);
        out[1] = HIGH(even_low, odd_low);
        out[2] = LOW(even_high, odd_high);
        out[3] = HIGH(even_high, odd_high);
    }
#undef LOW
#undef HIGH
}

// Of others: three rounds of interleaving each half of the lines with the other.
#define DEFINE_TURN(T)                                                                             \
    typedef T Line_##T __attribute__((vector_size(SQUARE * sizeof(T))));                           \
    static inline                                                                                  \
        __attribute__((always_inline)) void interleave_##T(Line_##T *to, const Line_##T *from) {   \
        for (int i = 0; i < SQUARE / 2; i++) {                                                     \
            Line_##T a = from[i], b = from[i + SQUARE / 2];                                        \
            to[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);                   \
            to[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);             \
        }                                                                                          \
    }                                                                                              \
    static inline __attribute__((always_inline)) void turn_##T(Line_##T *lines) {                  \
        Line_##T other[SQUARE];                                                                    \
        interleave_##T(other, lines);                                                              \
        interleave_##T(lines, other);                                                              \
        interleave_##T(other, lines);                                                              \
        memcpy(lines, other, sizeof other);                                                        \
    }

DEFINE_TURN(uint8_t)
DEFINE_TURN(uint16_t)
DEFINE_TURN(uint64_t)

#define DEFINE_TRANSPOSE(T)                                                                        \
    static inline T *target_##T(const TransposeTile *tile, int64_t row, int64_t column) {          \
        return (T *)(void *)(tile->to + row * tile->to_stride) + column;                           \
    }                                                                                              \
    static inline const T *source_##T(const TransposeTile *tile, int64_t row, int64_t column) {    \
        return (const T *)(const void *)(tile->from + column * tile->from_stride) + row;           \
    }                                                                                              \
                                                                                                   \
    static inline __attribute__((always_inline)) void square_##T(const TransposeTile *tile,        \
                                                                 int64_t row, int64_t column) {    \
        Line_##T lines[SQUARE];                                                                    \
        for (int i = 0; i < SQUARE; i++)                                                           \
            memcpy(&lines[i], source_##T(tile, row, column + i), sizeof lines[i]);                 \
        turn_##T(lines);                                                                           \
        for (int i = 0; i < SQUARE; i++)                                                           \
            memcpy(target_##T(tile, row + i, column), &lines[i], sizeof lines[i]);                 \
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
            for (int64_t column = 0; column < tile->columns; column += SQUARE) {                   \
                for (int i = 0; i < SQUARE; i++)                                                   \
                    __builtin_prefetch(source_##T(tile, end, column + i));                         \
                for (int64_t row = first; row < end; row += SQUARE)                                \
                    if (row + SQUARE <= tile->rows && column + SQUARE <= tile->columns)            \
                        square_##T(tile, row, column);                                             \
                    else                                                                           \
                        edge_##T(tile, row, column);                                               \
            }                                                                                      \
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
