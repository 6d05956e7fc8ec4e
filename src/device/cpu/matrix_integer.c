// Products of integer matrices, in blocks of int64 numbers that wrap.
#include <string.h>

#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum { BLOCK_ROWS = 32, BLOCK_COLUMNS = 256, BLOCK_DEPTH = 128 };

typedef struct Blocks {
    const MatrixProduct *product;
    int64_t across; // blocks along the columns
} Blocks;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

typedef struct Scratch {
    int64_t a[BLOCK_ROWS * BLOCK_DEPTH], b[BLOCK_DEPTH * BLOCK_COLUMNS];
    int64_t out[BLOCK_ROWS * BLOCK_COLUMNS];
} Scratch;

static void run_block(const MatrixProduct *product, int64_t row, int64_t column, Scratch *scratch) {
    int64_t rows = minimum(BLOCK_ROWS, product->a.rows - row);
    int64_t columns = minimum(BLOCK_COLUMNS, product->b.columns - column);
    memset(scratch->out, 0, (size_t)(rows * columns) * sizeof(int64_t));
    for (int64_t k = 0; k < product->a.columns; k += BLOCK_DEPTH) {
        int64_t depth = minimum(BLOCK_DEPTH, product->a.columns - k);
        Matrix a = matrix_part(product->a, row, k, rows, depth);
        Matrix b = matrix_part(product->b, k, column, depth, columns);
        matrix_load(&a, COMPUTE_I64, 0, rows, scratch->a);
        matrix_load(&b, COMPUTE_I64, 0, depth, scratch->b);
        matrix_simd()->integer(&(IntegerProduct){
            .a = scratch->a,
            .a_stride = depth,
            .b = scratch->b,
            .b_stride = columns,
            .out = scratch->out,
            .out_stride = columns,
            .m = rows,
            .n = columns,
            .k = depth,
        });
    }
    ConvertStore store = cpu_convert()->store[COMPUTE_I64][product->out_dtype];
    for (int64_t i = 0; i < rows; i++) {
        int64_t offset = (row + i) * product->out_row_stride + column * product->out_column_stride;
        store(product->out + offset * (int64_t)dtype_size(product->out_dtype),
              product->out_column_stride, scratch->out + i * columns, columns);
    }
}

static void run_blocks(void *context, int64_t begin, int64_t end) {
    const Blocks *blocks = context;
    Scratch *scratch = scratch_take(sizeof *scratch);
    for (int64_t block = begin; block < end; block++)
        run_block(blocks->product, block / blocks->across * BLOCK_ROWS,
                  block % blocks->across * BLOCK_COLUMNS, scratch);
    scratch_give(scratch);
}

void matrix_product_integer(const MatrixProduct *product) {
    Blocks blocks = {product, (product->b.columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS};
    int64_t down = (product->a.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t grain = 32 / product->a.columns + 1;
    cpu_parallel(down * blocks.across, grain, run_blocks, &blocks);
}
