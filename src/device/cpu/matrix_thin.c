// Products that read one large operand once: few rows by a weight, a matrix by few columns, long
// dot products. The large operand is never converted in memory.
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/matrix.h"

enum {
    PIECE_NUMBERS = 1 << 16,    // of the large operand in a tile: worth waking a thread for two
    PARALLEL_NUMBERS = 1 << 17, // below this one thread does everything
    TILES_MANY = 16,            // with fewer tiles a long k is cut as well
    CHUNK_DEPTH = 8192,         // a multiple of every quantised block
    STRIP_NARROW = 128,
    STRIP_COLUMNS_MANY = STRIP_COLUMNS_MAX * TILES_MANY,
    PASSES_MAX = 4,         // over b
    PASSES_TRANSPOSED = 3,  // over floats that blocks would transpose
    COLUMNS_FEW = 32,       // of b: blocks transpose them in no time
    COLUMNS_STEP = 12,      // of a tile next to several rows: a multiple of what is taken at once
    CACHED_BYTES = 1 << 18, // of a matrix that is likely to lie in a cache
};

// The work is cut along the columns of b into tiles and along k into chunks; the sums of each chunk
// are kept apart and added in order, so that the result does not depend on the number of threads.
typedef struct Thin {
    ThinProduct whole; // whole.b is set for each piece, from b
    Matrix b;
    ThinKernel kernel;
    size_t real_bytes;
    int64_t rows, rows_of_pass; // of a; a kernel takes few at once
    int64_t tile, tiles, chunk, chunks;
    char *sums; // [chunks, rows, n]; NULL: straight into out
} Thin;

static int64_t ceiling_divide(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

// A tile of b stays in the cache while the rows of a pass by.
static void run_passes(const Thin *thin, const ThinProduct *tile) {
    for (int64_t row = 0; row < thin->rows; row += thin->rows_of_pass) {
        ThinProduct part = *tile;
        int64_t left = thin->rows - row;
        part.rows = (int)(left < thin->rows_of_pass ? left : thin->rows_of_pass);
        part.a = (const char *)part.a + (size_t)(row * part.a_stride) * thin->real_bytes;
        part.out = (char *)part.out + row * part.out_row_stride * (int64_t)thin->real_bytes;
        thin->kernel(&part);
    }
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Thin *thin = context;
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++) {
        int64_t column = task / thin->chunks * thin->tile, chunk = task % thin->chunks;
        int64_t k = chunk * thin->chunk;
        ThinProduct part = thin->whole;
        part.n = column + thin->tile < part.n ? thin->tile : part.n - column;
        part.k = k + thin->chunk < part.k ? thin->chunk : part.k - k;
        part.a = (const char *)part.a + (size_t)k * thin->real_bytes;
        part.b = matrix_part(thin->b, k, column, part.k, part.n).data;
        int64_t offset = column * part.out_column_stride;
        if (thin->sums) {
            part.out = thin->sums;
            part.out_row_stride = thin->whole.n;
            part.out_column_stride = 1;
            offset = chunk * thin->rows * thin->whole.n + column;
        }
        part.out = (char *)part.out + offset * (int64_t)thin->real_bytes;
        run_passes(thin, &part);
    }
}

// Columns of a tile whose rows of b lie one after the other. Four rows of a are worth sums that
// stay in registers, which takes narrow tiles, where those rows lie near by or vectors are wide;
// else rows of b are read in pieces as long as leave one for each thread.
static int64_t strip_columns(const Thin *thin) {
    int64_t n = thin->whole.n, threads = cpu_thread_count();
    int64_t near_by = cpu_isa() == CPU_ISA_AVX2 ? STRIP_COLUMNS_MAX : STRIP_COLUMNS_MANY;
    if (thin->rows >= THIN_HALF_ROWS_MAX && n <= near_by) return STRIP_NARROW;
    int64_t share = ceiling_divide(n, threads * STRIP_NARROW) * STRIP_NARROW;
    return share < STRIP_COLUMNS_MAX ? share : STRIP_COLUMNS_MAX;
}

// Chunks, which decide the order of additions, depend on the shape alone.
static void choose_pieces(Thin *thin, bool dot) {
    int64_t n = thin->whole.n, k = thin->whole.k;
    int64_t unit = n > STRIP_COLUMNS_MANY ? STRIP_COLUMNS_MAX : STRIP_NARROW;
    if (dot) unit = PIECE_NUMBERS / k / 4 * 4;
    if (unit < 4) unit = 4;
    thin->tile = dot ? unit : strip_columns(thin);
    if (dot && thin->rows > 1) thin->tile = ceiling_divide(unit, COLUMNS_STEP) * COLUMNS_STEP;
    thin->tiles = ceiling_divide(n, thin->tile);
    thin->chunk = k;
    if (ceiling_divide(n, unit) < TILES_MANY && k > CHUNK_DEPTH) {
        int64_t wanted = ceiling_divide(k, TILES_MANY);
        thin->chunk = ceiling_divide(wanted, CHUNK_DEPTH) * CHUNK_DEPTH;
    }
    thin->chunks = ceiling_divide(k, thin->chunk);
}

static void add_sums(const Thin *thin, CpuCompute compute) {
    int64_t count = thin->rows * thin->whole.n;
    for (int64_t chunk = 1; chunk < thin->chunks; chunk++)
        for (int64_t i = 0; i < count; i++)
            if (compute == COMPUTE_F32)
                ((float *)(void *)thin->sums)[i] +=
                    ((float *)(void *)thin->sums)[chunk * count + i];
            else
                ((double *)(void *)thin->sums)[i] +=
                    ((double *)(void *)thin->sums)[chunk * count + i];
}

static void store_sums(const Thin *thin, const MatrixProduct *product) {
    ConvertStore store = cpu_convert()->store[product->compute][product->out_dtype];
    int64_t n = thin->whole.n;
    for (int64_t row = 0; row < thin->rows; row++)
        store(product->out +
                  (size_t)(row * product->out_row_stride) * dtype_size(product->out_dtype),
              product->out_column_stride, thin->sums + (size_t)(row * n) * thin->real_bytes, n);
}

static void run_thin(Thin *thin, const MatrixProduct *product, bool dot) {
    choose_pieces(thin, dot);
    bool direct = thin->chunks == 1 && product->out_dtype == compute_dtype(product->compute);
    if (!direct)
        thin->sums =
            memory_allocate((size_t)(thin->chunks * thin->rows * thin->whole.n) * thin->real_bytes);
    int64_t piece = thin->tile * thin->chunk + 1;
    cpu_parallel(thin->tiles * thin->chunks, PARALLEL_NUMBERS / piece + 1, run_tiles, thin);
    if (direct) return;
    add_sums(thin, product->compute);
    store_sums(thin, product);
    free(thin->sums);
}

static MatrixProduct product_transpose(const MatrixProduct *product) {
    MatrixProduct flipped = *product;
    flipped.a = matrix_transpose(product->b);
    flipped.b = matrix_transpose(product->a);
    flipped.out_row_stride = product->out_column_stride;
    flipped.out_column_stride = product->out_row_stride;
    return flipped;
}

static bool is_dot(const Matrix *b) {
    return b->row_stride == 1 || b->rows == 1;
}

// How many rows of a next to b pay. Converting b again for each THIN_ROWS_MAX of them is still
// faster than converting it in memory, and so is reading it again where blocks would transpose it,
// but with vectors so narrow that blocks are soon faster; other floats suit blocks from there on.
static int64_t rows_max(const Matrix *b) {
    if (b->dtype != DTYPE_FLOAT32 && b->dtype != DTYPE_FLOAT64) return PASSES_MAX * THIN_ROWS_MAX;
    if (!is_dot(b) || b->columns <= COLUMNS_FEW) return THIN_ROWS_MAX;
    return cpu_isa() == CPU_ISA_BASE ? THIN_HALF_ROWS_MAX : PASSES_TRANSPOSED * THIN_ROWS_MAX;
}

// The product, or its transpose, so that its few rows are those of a.
static bool orient(const MatrixProduct *given, MatrixProduct *out) {
    bool flip = given->a.rows > rows_max(&given->b) && !given->by_row;
    if (flip && (given->b.columns > THIN_ROWS_MAX || dtype_is_quant(given->b.dtype))) return false;
    *out = flip ? product_transpose(given) : *given;
    return true;
}

static ThinKernel choose_kernel(const Matrix *b) {
    const MatrixSimd *simd = matrix_simd();
    return is_dot(b) ? simd->dot[b->dtype] : simd->strip[b->dtype];
}

bool matrix_suits_thin(const MatrixProduct *given) {
    MatrixProduct product;
    if (!orient(given, &product)) return false;
    const Matrix *b = &product.b;
    bool reads = is_dot(b) || b->column_stride == 1 || b->columns == 1;
    return reads && choose_kernel(b) &&
           (product.compute == COMPUTE_F64) == (b->dtype == DTYPE_FLOAT64);
}

static void run_rows(const MatrixProduct *product) {
    const Matrix *a = &product->a, *b = &product->b;
    bool dot = is_dot(b);
    Thin thin = {
        .whole = {.a = a->data,
                  .a_stride = a->row_stride,
                  .n = b->columns,
                  .k = a->columns,
                  .out = product->out,
                  .out_row_stride = product->out_row_stride,
                  .out_column_stride = product->out_column_stride},
        .b = *b,
        .kernel = choose_kernel(b),
        .real_bytes = compute_bytes(product->compute),
        .rows = a->rows,
        .rows_of_pass = thin_rows(b->dtype),
    };
    const DTypeInfo *info = &dtype_info[b->dtype];
    int64_t step = dot ? b->column_stride : b->row_stride;
    thin.whole.b_stride_bytes = step / info->block_elements * info->block_bytes;
    thin.whole.cached = dot && b->columns * thin.whole.b_stride_bytes <= CACHED_BYTES;
    SCOPED_MEMORY void *rows = NULL;
    if (a->dtype != compute_dtype(product->compute) || (a->column_stride != 1 && a->columns > 1)) {
        rows = memory_allocate((size_t)(a->rows * a->columns) * thin.real_bytes);
        matrix_load(a, product->compute, 0, a->rows, rows);
        thin.whole.a = rows;
        thin.whole.a_stride = a->columns;
    }
    run_thin(&thin, product, dot);
}

void matrix_product_thin(const MatrixProduct *given) {
    MatrixProduct product;
    ASSERT(orient(given, &product));
    run_rows(&product);
}
