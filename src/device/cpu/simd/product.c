// Products of blocks of float32 and float64 matrices, once per instruction set.
#include "device/cpu/matrix.h"
#include "device/cpu/simd/lanes.h"

// Rows of a tile: as many sums as there are registers for, and one macro for each height.
#if defined(TL_ISA_avx512)
enum { TILE_ROWS = 14, STRIP_WIDTH = 16 };
#define EACH_HEIGHT(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14)
#else
enum { TILE_ROWS = 6, STRIP_WIDTH = 8 };
#define EACH_HEIGHT(F) F(1) F(2) F(3) F(4) F(5) F(6)
#endif

// Makes an address one that the compiler cannot derive from another.
#define KEEP_APART(pointer) __asm__("" : "+r"(pointer))

// Loads of what follows wait for a sum: clang loads a tile's column of numbers first and has no
// registers left for the sums.
#if defined(__clang__) && defined(__x86_64__)
#define ADD_BEFORE_LOADS(sum) __asm__ volatile("" : "+v"(sum) : : "memory")
#else
#define ADD_BEFORE_LOADS(sum) (void)0
#endif

enum {
    ROWS_OF_BASE = 5, // of a tile
    PACK_AHEAD = 8,   // rows that are fetched before they are packed
    LINE_BYTES = 64
};

// Of the strips that rows are cut into: nearly one for all, so that none is much slower.
static int64_t strip_height(int64_t rows) {
    int64_t strips = (rows + TILE_ROWS - 1) / TILE_ROWS;
    return (rows + strips - 1) / strips;
}

#define REAL float
#define VECTOR Floats
#define WIDTH LANES
#define NAME(x) float_##x
#include "device/cpu/simd/product_body.h"
#undef REAL
#undef VECTOR
#undef WIDTH
#undef NAME
#define REAL double
#define VECTOR Doubles
#define WIDTH DOUBLE_LANES
#define NAME(x) double_##x
#include "device/cpu/simd/product_body.h"

const BlockSimd ISA(block_simd) = {
    .multiply = {[COMPUTE_F32] = float_block, [COMPUTE_F64] = double_block},
    .pack = {[COMPUTE_F32] = float_pack, [COMPUTE_F64] = double_pack},
    .pack_strips = {[COMPUTE_F32] = float_pack_strips, [COMPUTE_F64] = double_pack_strips},
    .tile_rows = TILE_ROWS,
    .strip_width = STRIP_WIDTH,
    .panel_columns = {[COMPUTE_F32] = 2 * LANES, [COMPUTE_F64] = 2 * DOUBLE_LANES},
};
