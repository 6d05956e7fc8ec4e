// Tiles of a transposition, in squares that the compiler keeps in vector registers.
#include "device/cpu/transpose.h"

#include <string.h>

#define SQUARE 8

#define DEFINE_TILE(T)                                                                             \
    static void tile_##T(const TransposeTile *tile) {                                              \
        int64_t rows = tile->rows, columns = tile->columns, row = 0;                               \
        for (; row + SQUARE <= rows; row += SQUARE) {                                              \
            int64_t column = 0;                                                                    \
            for (; column + SQUARE <= columns; column += SQUARE) square_##T(tile, row, column);    \
            edge_##T(tile, row, row + SQUARE, column, columns);                                    \
        }                                                                                          \
        edge_##T(tile, row, rows, 0, columns);                                                     \
    }

#define DEFINE_EDGE(T)                                                                             \
    static inline T *place_##T(const TransposeTile *tile, int64_t row, int64_t column) {           \
        return (T *)(void *)(tile->to + row * tile->to_stride) + column;                           \
    }                                                                                              \
    static inline const T *source_##T(const TransposeTile *tile, int64_t row, int64_t column) {    \
        return (const T *)(const void *)(tile->from + column * tile->from_stride) + row;           \
    }                                                                                              \
    static void edge_##T(const TransposeTile *tile, int64_t row, int64_t row_end, int64_t column,  \
                         int64_t column_end) {                                                     \
        for (int64_t r = row; r < row_end; r++)                                                    \
            for (int64_t c = column; c < column_end; c++)                                          \
                *place_##T(tile, r, c) = *source_##T(tile, r, c);                                  \
    }                                                                                              \
    static inline __attribute__((always_inline)) void square_##T(const TransposeTile *tile,        \
                                                                 int64_t row, int64_t column) {    \
        T block[SQUARE][SQUARE];                                                                   \
        for (int c = 0; c < SQUARE; c++)                                                           \
            memcpy(block[c], source_##T(tile, row, column + c), sizeof block[c]);                  \
        for (int r = 0; r < SQUARE; r++) {                                                         \
            T line[SQUARE];                                                                        \
            for (int c = 0; c < SQUARE; c++) line[c] = block[c][r];                                \
            memcpy(place_##T(tile, row + r, column), line, sizeof line);                           \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TILE(T)

DEFINE_EDGE(uint8_t)
DEFINE_EDGE(uint16_t)
DEFINE_EDGE(uint32_t)
DEFINE_EDGE(uint64_t)

void ISA(transpose_tile)(size_t size, const TransposeTile *tile) {
    if (size == 1)
        tile_uint8_t(tile);
    else if (size == 2)
        tile_uint16_t(tile);
    else if (size == 4)
        tile_uint32_t(tile);
    else
        tile_uint64_t(tile);
}
