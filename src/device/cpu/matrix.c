// Matrices of stored numbers, and their product in bounded tiles: pieces of the operands are
// converted to the compute type, multiplied by BLAS, and the result is converted once. Knows no
// tensor views.
#include "device/cpu/matrix.h"

#include <limits.h>

#include "device/cpu/blas.h"
#include "device/cpu/quant.h"
#include "device/cpu/scratch.h"

// Tiles of a product: the pieces that one thread converts and multiplies fit in its second-level
// cache, and BLAS still runs near its full speed on them. Operands that need no conversion take
// larger tiles where there are many.
enum {
    TILE_SIDE = 256,
    TILE_DEPTH = 512,
    TILE_LARGE = 512,
    TILE_MANY = 2048,
    PARALLEL_WORK = 1 << 18, // multiplications that are worth a thread
};

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

Matrix matrix_transpose(Matrix matrix) {
    return (Matrix){matrix.dtype, matrix.data,          matrix.columns,
                    matrix.rows,  matrix.column_stride, matrix.row_stride};
}

// The address of an element; strides of quantised types count elements of whole blocks.
static const char *matrix_at(const Matrix *matrix, int64_t row, int64_t column) {
    const DTypeInfo *info = &dtype_info[matrix->dtype];
    int64_t elements = row * matrix->row_stride + column * matrix->column_stride;
    return matrix->data + elements / info->block_elements * info->block_bytes;
}

Matrix matrix_part(Matrix matrix, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    matrix.data = matrix_at(&matrix, row, column);
    matrix.rows = rows;
    matrix.columns = columns;
    return matrix;
}

// A stride along a dimension of one element is never used, so that any value of it does.
static bool suits_blas(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    bool inner = column_stride == 1 || columns == 1;
    bool outer = rows == 1 || (row_stride >= columns && row_stride <= INT_MAX);
    return inner && outer;
}

// Whether BLAS reads it in place: one stride 1, the other at least the length of a row or column.
static bool matrix_suits_blas(const Matrix *matrix) {
    if (matrix->rows > INT_MAX || matrix->columns > INT_MAX) return false;
    return suits_blas(matrix->rows, matrix->columns, matrix->row_stride, matrix->column_stride) ||
           suits_blas(matrix->columns, matrix->rows, matrix->column_stride, matrix->row_stride);
}

void matrix_load(const Matrix *matrix, CpuCompute compute, int64_t begin, int64_t end, void *out) {
    ConvertLoad load = cpu_convert()->load[compute][matrix->dtype];
    size_t bytes = (size_t)matrix->columns * compute_bytes(compute);
    for (int64_t row = begin; row < end; row++) {
        const char *source = matrix_at(matrix, row, 0);
        char *target = (char *)out + (size_t)(row - begin) * bytes;
        if (dtype_is_quant(matrix->dtype))
            quant_dequantize(matrix->dtype, source, (float *)(void *)target, matrix->columns);
        else
            load(target, source, matrix->column_stride, matrix->columns);
    }
}

// What BLAS is told about an operand: whether it is transposed, and its leading dimension.
static CBLAS_TRANSPOSE blas_layout(const Matrix *matrix, int *leading) {
    if (suits_blas(matrix->rows, matrix->columns, matrix->row_stride, matrix->column_stride)) {
        int64_t stride = matrix->rows == 1 ? matrix->columns : matrix->row_stride;
        *leading = (int)(stride > 0 ? stride : 1);
        return CblasNoTrans;
    }
    *leading = (int)(matrix->columns == 1 ? matrix->rows : matrix->column_stride);
    return CblasTrans;
}

void blas_product(const BlasProduct *product) {
    blas_use_one_thread();
    int m = (int)product->a.rows, n = (int)product->b.columns, k = (int)product->a.columns;
    int a_leading, b_leading, c_leading = (int)product->c_stride;
    CBLAS_TRANSPOSE a_layout = blas_layout(&product->a, &a_leading);
    CBLAS_TRANSPOSE b_layout = blas_layout(&product->b, &b_leading);
    const void *a = product->a.data, *b = product->b.data;
    if (product->compute == COMPUTE_F32)
        blas_library.sgemm(CblasRowMajor, a_layout, b_layout, m, n, k, 1.0f, a, a_leading, b,
                           b_leading, product->accumulate ? 1.0f : 0.0f, product->c, c_leading);
    else
        blas_library.dgemm(CblasRowMajor, a_layout, b_layout, m, n, k, 1.0, a, a_leading, b,
                           b_leading, product->accumulate ? 1.0 : 0.0, product->c, c_leading);
}

Matrix matrix_prepare(const Matrix *matrix, CpuCompute compute, void *scratch) {
    if (matrix->dtype == compute_dtype(compute) && matrix_suits_blas(matrix)) return *matrix;
    bool transposed = magnitude(matrix->row_stride) < magnitude(matrix->column_stride);
    Matrix source = transposed ? matrix_transpose(*matrix) : *matrix;
    matrix_load(&source, compute, 0, source.rows, scratch);
    Matrix packed = {compute_dtype(compute), scratch,        source.rows,
                     source.columns,         source.columns, 1};
    return transposed ? matrix_transpose(packed) : packed;
}

// How a product is cut: by its shape and strides alone, never by the number of threads.
typedef struct Tiles {
    const MatrixProduct *product;
    int64_t rows, columns, depth; // of a tile; depth: of the pieces that are summed
    int64_t across;               // tiles along the columns
    bool direct;                  // BLAS writes into the result itself
} Tiles;

// Numbers of the compute type: pieces of a and b that BLAS cannot read in place, and the sums.
typedef struct TileScratch {
    char *a, *b, *sums;
} TileScratch;

typedef struct Tile {
    int64_t row, column, rows, columns;
} Tile;

static void store_tile(const MatrixProduct *product, const Tile *tile, const char *sums) {
    ConvertStore store = cpu_convert()->store[product->compute][product->out_dtype];
    int64_t item = (int64_t)dtype_size(product->out_dtype);
    int64_t row_bytes = tile->columns * (int64_t)compute_bytes(product->compute);
    for (int64_t i = 0; i < tile->rows; i++) {
        int64_t offset =
            (tile->row + i) * product->out_row_stride + tile->column * product->out_column_stride;
        store(product->out + offset * item, product->out_column_stride, sums + i * row_bytes,
              tile->columns);
    }
}

// The part of the result that begins at (row, column), over all of k.
static void run_tile(const Tiles *tiles, int64_t row, int64_t column, const TileScratch *scratch) {
    const MatrixProduct *product = tiles->product;
    int64_t rows = minimum(tiles->rows, product->a.rows - row), depth_all = product->a.columns;
    int64_t columns = minimum(tiles->columns, product->b.columns - column);
    size_t place = (size_t)(row * product->out_row_stride + column);
    for (int64_t k = 0; k < depth_all; k += tiles->depth) {
        int64_t depth = minimum(tiles->depth, depth_all - k);
        Matrix a = matrix_part(product->a, row, k, rows, depth);
        Matrix b = matrix_part(product->b, k, column, depth, columns);
        blas_product(&(BlasProduct){
            .compute = product->compute,
            .a = matrix_prepare(&a, product->compute, scratch->a),
            .b = matrix_prepare(&b, product->compute, scratch->b),
            .c = tiles->direct ? product->out + place * compute_bytes(product->compute)
                               : scratch->sums,
            .c_stride = tiles->direct && rows > 1 ? product->out_row_stride : columns,
            .accumulate = k > 0,
        });
    }
    if (!tiles->direct) store_tile(product, &(Tile){row, column, rows, columns}, scratch->sums);
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Tiles *tiles = context;
    const MatrixProduct *product = tiles->product;
    size_t item = compute_bytes(product->compute);
    size_t rows = (size_t)minimum(tiles->rows, product->a.rows);
    size_t columns = (size_t)minimum(tiles->columns, product->b.columns);
    size_t depth = (size_t)minimum(TILE_DEPTH, product->a.columns);
    char *block = scratch_take((rows * depth + columns * depth + rows * columns) * item);
    TileScratch scratch = {.a = block,
                           .b = block + rows * depth * item,
                           .sums = block + (rows + columns) * depth * item};
    for (int64_t tile = begin; tile < end && !cpu_interrupted(); tile++)
        run_tile(tiles, tile / tiles->across * tiles->rows, tile % tiles->across * tiles->columns,
                 &scratch);
    scratch_give(block);
}

void matrix_product_blocked(const MatrixProduct *product) {
    int64_t m = product->a.rows, n = product->b.columns, k = product->a.columns;
    DType dtype = compute_dtype(product->compute);
    bool in_place = product->a.dtype == dtype && product->b.dtype == dtype &&
                    matrix_suits_blas(&product->a) && matrix_suits_blas(&product->b);
    bool large = in_place && m >= TILE_MANY && n >= TILE_MANY;
    // A product of one tile would leave all threads but one idle.
    int64_t side = m <= TILE_SIDE && n <= TILE_SIDE ? TILE_SIDE / 2 : TILE_SIDE;
    Tiles tiles = {
        .product = product,
        .rows = large ? TILE_LARGE : side,
        .columns = large ? TILE_LARGE : side,
        .depth = in_place ? k : TILE_DEPTH,
        .direct = product->out_dtype == dtype &&
                  suits_blas(m, n, product->out_row_stride, product->out_column_stride),
    };
    tiles.across = (n + tiles.columns - 1) / tiles.columns;
    int64_t down = (m + tiles.rows - 1) / tiles.rows;
    double work = (double)minimum(m, tiles.rows) * (double)minimum(n, tiles.columns) * (double)k;
    cpu_parallel(down * tiles.across, (int64_t)(PARALLEL_WORK / (work + 1)) + 1, run_tiles, &tiles);
}
