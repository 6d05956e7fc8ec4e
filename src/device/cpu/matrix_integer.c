// Products of integer matrices, in blocks of numbers that wrap: of 32 bits where the result has no
// more, since the low bits of a product need no others, else of 64.
#include <string.h>

#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum { BLOCK_ROWS = 32, BLOCK_COLUMNS = 256, BLOCK_DEPTH = 128 };

// Loads rows of a matrix as numbers of the block's type, `stride` apart.
typedef void (*IntegerLoad)(const Matrix *matrix, int64_t stride, void *out);
// Stores `count` numbers, `stride` elements apart.
typedef void (*IntegerStore)(char *target, int64_t stride, const void *numbers, int64_t count);

typedef struct IntegerType {
    size_t bytes; // of a number in a block; 0: no integer
    IntegerLoad load;
    IntegerStore store;
} IntegerType;

#define INTEGER_TYPE(name, stored, number)                                                         \
    static void load_##name(const Matrix *matrix, int64_t stride, void *out) {                     \
        const stored *source = (const stored *)(const void *)matrix->data;                         \
        for (int64_t i = 0; i < matrix->rows; i++)                                                 \
            for (int64_t j = 0; j < matrix->columns; j++)                                          \
                ((number *)out)[i * stride + j] =                                                  \
                    source[i * matrix->row_stride + j * matrix->column_stride];                    \
    }                                                                                              \
    static void store_##name(char *target, int64_t stride, const void *numbers, int64_t count) {   \
        stored *out = (stored *)(void *)target;                                                    \
        for (int64_t j = 0; j < count; j++)                                                        \
            out[j * stride] = (stored)((const number *)numbers)[j];                                \
    }
INTEGER_TYPE(int8, int8_t, int32_t)
INTEGER_TYPE(uint8, uint8_t, int32_t)
INTEGER_TYPE(int16, int16_t, int32_t)
INTEGER_TYPE(int32, int32_t, int32_t)
INTEGER_TYPE(int64, int64_t, int64_t)

static const IntegerType types[DTYPE_COUNT] = {
    [DTYPE_INT8] = {sizeof(int32_t), load_int8, store_int8},
    [DTYPE_UINT8] = {sizeof(int32_t), load_uint8, store_uint8},
    [DTYPE_INT16] = {sizeof(int32_t), load_int16, store_int16},
    [DTYPE_INT32] = {sizeof(int32_t), load_int32, store_int32},
    [DTYPE_INT64] = {sizeof(int64_t), load_int64, store_int64},
};

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
_Static_assert(BLOCK_COLUMNS % INTEGER_PADDING == 0, "rows of a block have their padding");

static void run_block(const MatrixProduct *product, int64_t row, int64_t column, Scratch *scratch) {
    const IntegerType *type = &types[product->out_dtype];
    const MatrixSimd *simd = matrix_simd();
    int64_t rows = minimum(BLOCK_ROWS, product->a.rows - row);
    int64_t columns = minimum(BLOCK_COLUMNS, product->b.columns - column);
    memset(scratch->out, 0, (size_t)(rows * BLOCK_COLUMNS) * type->bytes);
    for (int64_t k = 0; k < product->a.columns; k += BLOCK_DEPTH) {
        int64_t depth = minimum(BLOCK_DEPTH, product->a.columns - k);
        Matrix a = matrix_part(product->a, row, k, rows, depth);
        Matrix b = matrix_part(product->b, k, column, depth, columns);
        type->load(&a, BLOCK_DEPTH, scratch->a);
        type->load(&b, BLOCK_COLUMNS, scratch->b);
        (type->bytes == sizeof(int32_t) ? simd->integer32 : simd->integer64)(&(IntegerProduct){
            .a = scratch->a,
            .a_stride = BLOCK_DEPTH,
            .b = scratch->b,
            .b_stride = BLOCK_COLUMNS,
            .out = scratch->out,
            .out_stride = BLOCK_COLUMNS,
            .m = rows,
            .n = columns,
            .k = depth,
        });
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t offset = (row + i) * product->out_row_stride + column * product->out_column_stride;
        type->store(product->out + offset * (int64_t)dtype_size(product->out_dtype),
                    product->out_column_stride,
                    (char *)scratch->out + (size_t)(i * BLOCK_COLUMNS) * type->bytes, columns);
    }
}

static void run_blocks(void *context, int64_t begin, int64_t end) {
    const Blocks *blocks = context;
    Scratch *scratch = scratch_take(sizeof *scratch);
    memset(scratch->b, 0, sizeof scratch->b); // the padding is read
    for (int64_t block = begin; block < end && !cpu_interrupted(); block++)
        run_block(blocks->product, block / blocks->across * BLOCK_ROWS,
                  block % blocks->across * BLOCK_COLUMNS, scratch);
    scratch_give(scratch);
}

void matrix_product_integer(const MatrixProduct *product) {
    ASSERT(types[product->out_dtype].bytes > 0);
    Blocks blocks = {product, (product->b.columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS};
    int64_t down = (product->a.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t grain = 32 / product->a.columns + 1;
    cpu_parallel(down * blocks.across, grain, run_blocks, &blocks);
}
