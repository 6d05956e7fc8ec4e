// What the matrix kernels share below MATMUL, ATTENTION and CONV2D: products compiled per
// instruction set, and products in tiles. Knows no tensor views.
#ifndef DEVICE_CPU_MATRIX_H
#define DEVICE_CPU_MATRIX_H

#include "device/cpu/convert.h"

// A matrix of stored numbers. Strides in elements. A quantised one has its blocks along the columns
// (column_stride 1) and a row_stride that is a multiple of the block.
typedef struct Matrix {
    DType dtype;
    const char *data;
    int64_t rows, columns, row_stride, column_stride;
} Matrix;

Matrix matrix_transpose(Matrix matrix);
// The part that begins at (row, column); for a quantised matrix column is a multiple of the block.
Matrix matrix_part(Matrix matrix, int64_t row, int64_t column, int64_t rows, int64_t columns);
// Whether its numbers lie closer to each other along its columns than along its rows.
bool matrix_runs_down(const Matrix *matrix);
// Loads rows [begin, end) as contiguous numbers of the compute type (quantised: COMPUTE_F32).
void matrix_load(const Matrix *matrix, CpuCompute compute, int64_t begin, int64_t end, void *out);
// The matrix in the compute type with one stride of 1: itself, or converted into `scratch`, which
// has room for it.
Matrix matrix_prepare(const Matrix *matrix, CpuCompute compute, void *scratch);

enum { THIN_ROWS_MAX = 8, THIN_HALF_ROWS_MAX = 4, STRIP_COLUMNS_MAX = 512 };

// A product with few rows: out[i, j] = sum over k of a[i, k] * b[j, k] (dot) or a[i, k] * b[k, j]
// (strip). a and out are float32, float64 where b is. Quantised b: dot only, k a multiple of 32.
typedef struct ThinProduct {
    const void *a; // [rows, k], rows <= thin_rows(dtype of b), a_stride elements apart
    int64_t a_stride;
    int rows;
    const char *b;          // dot: [n, k]; strip: [k, n], n <= STRIP_COLUMNS_MAX
    int64_t b_stride_bytes; // from one row of b to the next
    int64_t n, k;
    void *out;
    int64_t out_row_stride, out_column_stride;
    bool cached; // the matrix that b is a part of is small enough to lie in a cache
} ThinProduct;
typedef struct ThinRows { // of a or of b
    int64_t first;
    int count;
} ThinRows;
typedef void (*ThinKernel)(const ThinProduct *product);
// How many rows of a are taken at once next to such a b: 16-bit floats are converted so cheaply
// that more rows than leave the first-level cache to a cost more than they save.
static inline int thin_rows(DType b) {
    return b == DTYPE_FLOAT16 || b == DTYPE_BFLOAT16 ? THIN_HALF_ROWS_MAX : THIN_ROWS_MAX;
}
// Products of attention with any number of float32 rows; NULL where there is none. Scores are dots,
// whose rows of out are contiguous and have room for n rounded up to SCORE_PADDING, numbers that do
// not matter. What weigh_values makes is a strip's, with the same bits, of any n above
// STRIP_NARROW_MAX.
enum { STRIP_NARROW_MAX = 32 };
typedef struct AttentionPanels {
    ThinKernel scores[DTYPE_COUNT], weigh_values[DTYPE_COUNT];
} AttentionPanels;
extern const AttentionPanels attention_panels_base, attention_panels_avx2, attention_panels_avx512;

// out[m, n] = a[m, k] @ b[k, n] + (accumulate ? out : 0), each sum over k in one order whatever m
// and n are. b's columns lie in panels, `panel_columns` of them next to each other; rows of a panel
// are b_row_stride apart, panels b_panel_stride. a has any strides. All in elements.
typedef struct BlockProduct {
    const void *a, *b;
    int64_t a_row_stride, a_column_stride, b_row_stride, b_panel_stride;
    int64_t m, n, k;
    void *out;
    int64_t out_stride; // from one row to the next
    bool accumulate;
    // Not 0: a lies in strips as pack_strips makes them, so far apart, and its other strides do not
    // count.
    int64_t a_strip_stride;
} BlockProduct;

// Copies rows of contiguous numbers into panels, whose rows lie one behind the other.
typedef struct PanelPack {
    const void *from;
    int64_t from_stride, rows, columns;
    void *to;
    int64_t panel_stride;
} PanelPack;

typedef struct BlockSimd {
    void (*multiply[COMPUTE_COUNT])(const BlockProduct *product); // F32 and F64
    void (*pack[COMPUTE_COUNT])(const PanelPack *pack);
    void (*pack_strips[COMPUTE_COUNT])(const PanelPack *pack);
    int tile_rows, strip_width; // rows that are multiplied at once, and their place in a strip
    int panel_columns[COMPUTE_COUNT];
} BlockSimd;
extern const BlockSimd block_simd_base, block_simd_avx2, block_simd_avx512;

// out[m, n] += a[m, k] * b[k, n] of wrapping integers of 32 or 64 bits; rows lie a_stride,
// b_stride, out_stride elements apart. b and out have room for n rounded up to INTEGER_PADDING
// columns, whose numbers do not matter.
enum { INTEGER_PADDING = 32 };
typedef struct IntegerProduct {
    const void *a, *b;
    int64_t a_stride, b_stride, out_stride;
    int64_t m, n, k;
    void *out;
} IntegerProduct;

typedef struct MatrixSimd {
    ThinKernel dot[DTYPE_COUNT], strip[DTYPE_COUNT]; // NULL where there is none
    void (*integer32)(const IntegerProduct *product), (*integer64)(const IntegerProduct *product);
    void (*dequantize[DTYPE_COUNT])(const void *blocks, float *out, int64_t count);
} MatrixSimd;
extern const MatrixSimd matrix_simd_base, matrix_simd_avx2, matrix_simd_avx512;
static inline const MatrixSimd *matrix_simd(void) {
    return CPU_CHOOSE(&matrix_simd);
}

// A weight's interleaved strips, kept with its buffer (repacked.c).
typedef struct RepackedWeight RepackedWeight;

// out[m, n] = a @ b. Only b may be quantised, and then float.
typedef struct MatrixProduct {
    CpuCompute compute;
    Matrix a, b;
    RepackedWeight *weight; // of b, with the buffer it belongs to; NULL: none is kept
    const Buffer *weight_buffer;
    DType out_dtype;
    char *out;
    int64_t out_row_stride, out_column_stride; // elements
    bool by_row;                               // each row of a gives the bits that it gives alone
    bool fast;                                 // b's quantised rows may take activations of 8 bits
} MatrixProduct;
// Any strides and dtypes that convert to the compute type F32 or F64, in tiles of bounded size. The
// bits of a row do not depend on the rows next to it.
void matrix_product_blocked(const MatrixProduct *product);

// c[m, n] = a @ b + (accumulate ? c : 0) of compute type F32 or F64, by the thread that asks. c is
// contiguous along its rows, c_stride elements apart.
typedef struct SerialProduct {
    CpuCompute compute;
    Matrix a, b;
    void *c;
    int64_t c_stride;
    bool accumulate;
} SerialProduct;
void matrix_product_serial(const SerialProduct *product);
// The same for few rows or few columns, reading the large operand once where it lies; only for
// products that suit it.
bool matrix_suits_thin(const MatrixProduct *product);
void matrix_product_thin(const MatrixProduct *product);
// Compute type I64: wrapping integers.
void matrix_product_integer(const MatrixProduct *product);

#endif
