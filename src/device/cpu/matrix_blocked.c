// Products in tiles of bounded size, each made by one thread from parts of the operands that it
// packs where they do not lie as the kernels read them fast.
//
// Sums over k are made of blocks of k, each summed one after the other and added to those before.
// Where a sum stands in a tile, and how large tiles are, changes none of its bits.
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"
#include "device/cpu/transpose.h"

enum {
    DEPTH_BYTES = 1536,    // of a row of a in a block: a tile's rows stay in the first-level cache
    DEPTH_QUANTISED = 256, // numbers: whole blocks of every dtype
    BLOCK_ROWS = 126,      // of a: they stay in the second-level cache
    TILE_SIDE = 1024,
    TILE_NARROW = 256,
    TILE_LONG = 2048,
    SUMS_MAX = 1 << 18,       // of a tile, where they wait to be converted
    LOADED_NUMBERS = 1 << 16, // that are converted on their way into what is packed
    TASK_WORK = 1 << 20,      // multiplications that are worth a thread
    SMALL_DEPTH = 128,        // of a product that is made at once: at most a block's
    TASKS_OF_THREAD = 2,
    PASSES_UNPACKED = 2, // over an operand, where it has to be packed to be read fast
    WAYS_STRIDE = 4096,  // rows so many bytes apart drive one another out of a cache
    FAR_BYTES = 2048,    // rows so far apart lie in as many pages
};

typedef struct Tiles {
    const MatrixProduct *product;
    bool accumulate;
    bool packs_a, packs_b, direct; // direct: sums are made where the result lies
    int64_t depth;                 // of a block
    int64_t rows, columns, across; // of a tile; tiles along the columns
    int64_t count;
} Tiles;

typedef struct TileScratch {
    char *a, *b, *loaded, *sums;
} TileScratch;

typedef struct Tile {
    int64_t row, column, rows, columns;
} Tile;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t round_up(int64_t number, int64_t step) {
    return (number + step - 1) / step * step;
}

static const BlockSimd *block_simd(void) {
    return CPU_CHOOSE(&block_simd);
}

static int64_t panel_columns(const MatrixProduct *product) {
    return block_simd()->panel_columns[product->compute];
}

static int64_t row_bytes(const Matrix *matrix) {
    return matrix->row_stride * (int64_t)dtype_size(matrix->dtype);
}

// A tile's rows of a are read side by side...
static bool needs_packing_a(const MatrixProduct *product) {
    const Matrix *a = &product->a;
    if (a->dtype != compute_dtype(product->compute)) return true;
    if (product->b.columns <= PASSES_UNPACKED * panel_columns(product)) return false;
    bool collide = a->row_stride != 0 && row_bytes(a) % WAYS_STRIDE == 0;
    return (a->column_stride != 1 && a->columns > 1) || (collide && a->rows > 1);
}

// ... and those of b one after the other.
static bool needs_packing_b(const MatrixProduct *product) {
    const Matrix *b = &product->b;
    if (b->dtype != compute_dtype(product->compute)) return true;
    if (b->column_stride != 1 && b->columns > 1) return true;
    bool many = product->a.rows > PASSES_UNPACKED * block_simd()->tile_rows;
    return many && row_bytes(b) >= FAR_BYTES;
}

// Whether its numbers are converted or gathered before they are packed.
static bool needs_loading(const MatrixProduct *product, const Matrix *matrix) {
    bool plain = matrix->row_stride == 1 || matrix->column_stride == 1;
    return !plain || matrix->dtype != compute_dtype(product->compute);
}

// Panels and strips are apart by a little more than they need, so that their rows do not collide.
static int64_t spread(int64_t depth, int64_t width) {
    return (depth + 2) * width;
}

static void pack_b(const Matrix *b, const TileScratch *scratch, CpuCompute compute,
                   BlockProduct *block) {
    int64_t size = (int64_t)compute_bytes(compute), width = block_simd()->panel_columns[compute];
    char *to = scratch->b;
    ASSERT(to && b->columns > 0 && b->columns <= LOADED_NUMBERS);
    block->b = to;
    block->b_row_stride = width;
    block->b_panel_stride = spread(b->rows, width);
    if (!matrix_runs_down(b)) {
        int64_t step = LOADED_NUMBERS / b->columns;
        for (int64_t row = 0; row < b->rows; row += step) {
            Matrix part = matrix_part(*b, row, 0, minimum(step, b->rows - row), b->columns);
            part = matrix_prepare(&part, compute, scratch->loaded);
            block_simd()->pack[compute](&(PanelPack){.from = part.data,
                                                     .from_stride = part.row_stride,
                                                     .rows = part.rows,
                                                     .columns = part.columns,
                                                     .to = to + row * width * size,
                                                     .panel_stride = block->b_panel_stride});
        }
        return;
    }
    for (int64_t column = 0; column < b->columns; column += width) {
        int64_t columns = minimum(width, b->columns - column);
        Matrix part = matrix_part(*b, 0, column, b->rows, columns);
        part = matrix_prepare(&part, compute, scratch->loaded);
        CPU_CHOOSE(transpose_tile)
        ((size_t)size, &(TransposeTile){.to = to,
                                        .from = part.data,
                                        .to_stride = width * size,
                                        .from_stride = part.column_stride * size,
                                        .rows = part.rows,
                                        .columns = part.columns});
        to += block->b_panel_stride * size;
    }
}

static void pack_a(const Matrix *a, const TileScratch *scratch, CpuCompute compute,
                   BlockProduct *block) {
    ASSERT(scratch->a && a->rows <= BLOCK_ROWS && a->rows * a->columns <= LOADED_NUMBERS);
    block->a = scratch->a;
    if (!matrix_runs_down(a)) {
        matrix_load(a, compute, 0, a->rows, scratch->a);
        block->a_row_stride = a->columns;
        block->a_column_stride = 1;
        return;
    }
    Matrix ready = matrix_prepare(a, compute, scratch->loaded);
    block->a_row_stride = 1;
    block->a_strip_stride = spread(a->columns, block_simd()->strip_width);
    block_simd()->pack_strips[compute](&(PanelPack){.from = ready.data,
                                                    .from_stride = ready.column_stride,
                                                    .rows = ready.columns,
                                                    .columns = ready.rows,
                                                    .to = scratch->a,
                                                    .panel_stride = block->a_strip_stride});
}

static void store_sums(const MatrixProduct *product, const Tile *tile, const char *sums) {
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

// Adds the products of one block of k to the tile, whose numbers begin at block->out.
static void run_block(const Tiles *tiles, const Tile *tile, int64_t k, const TileScratch *scratch,
                      BlockProduct block) {
    const MatrixProduct *product = tiles->product;
    CpuCompute compute = product->compute;
    block.k = minimum(tiles->depth, product->a.columns - k);
    Matrix b = matrix_part(product->b, k, tile->column, block.k, tile->columns);
    block.b = b.data;
    block.b_row_stride = b.row_stride;
    block.b_panel_stride = panel_columns(product);
    if (tiles->packs_b) pack_b(&b, scratch, compute, &block);
    char *out = block.out;
    for (int64_t row = 0; row < tile->rows; row += BLOCK_ROWS) {
        block.m = minimum(BLOCK_ROWS, tile->rows - row);
        Matrix a = matrix_part(product->a, tile->row + row, k, block.m, block.k);
        block.a = a.data;
        block.a_row_stride = a.row_stride;
        block.a_column_stride = a.column_stride;
        if (tiles->packs_a) pack_a(&a, scratch, compute, &block);
        block.out = out + row * block.out_stride * (int64_t)compute_bytes(compute);
        block_simd()->multiply[compute](&block);
    }
}

static void run_tile(const Tiles *tiles, const Tile *tile, const TileScratch *scratch) {
    const MatrixProduct *product = tiles->product;
    int64_t place = tile->row * product->out_row_stride + tile->column;
    BlockProduct block = {
        .n = tile->columns,
        .out = tiles->direct ? product->out + place * (int64_t)compute_bytes(product->compute)
                             : scratch->sums,
        .out_stride = tiles->direct ? product->out_row_stride : tile->columns,
        .accumulate = tiles->accumulate,
    };
    for (int64_t k = 0; k < product->a.columns; k += tiles->depth) {
        run_block(tiles, tile, k, scratch, block);
        block.accumulate = true;
    }
    if (!tiles->direct) store_sums(product, tile, scratch->sums);
}

// What a thread needs while it makes tiles, in one piece of memory; NULL: nothing.
static char *take_scratch(const Tiles *tiles, TileScratch *out) {
    const MatrixProduct *product = tiles->product;
    const BlockSimd *simd = block_simd();
    int64_t size = (int64_t)compute_bytes(product->compute);
    int64_t rows = minimum(tiles->rows, product->a.rows);
    int64_t columns = round_up(minimum(tiles->columns, product->b.columns), panel_columns(product));
    int64_t depth = minimum(tiles->depth, product->a.columns);
    int64_t strips = (minimum(rows, BLOCK_ROWS) + simd->tile_rows - 1) / simd->tile_rows;
    int64_t a = tiles->packs_a ? strips * spread(depth, simd->strip_width) * size : 0;
    int64_t b = tiles->packs_b ? spread(depth, columns) * size : 0;
    bool loads = needs_loading(product, &product->a) || needs_loading(product, &product->b);
    int64_t loaded = loads ? LOADED_NUMBERS * size : 0;
    int64_t sums = tiles->direct ? 0 : rows * columns * size;
    if (a + b + sums == 0) return NULL;
    char *scratch = scratch_take((size_t)(a + b + loaded + sums));
    *out = (TileScratch){scratch + b, scratch, scratch + b + a, scratch + b + a + loaded};
    return scratch;
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Tiles *tiles = context;
    const MatrixProduct *product = tiles->product;
    TileScratch scratch = {0};
    char *taken = take_scratch(tiles, &scratch);
    for (int64_t i = begin; i < end && !cpu_interrupted(); i++) {
        Tile tile = {.row = i / tiles->across * tiles->rows,
                     .column = i % tiles->across * tiles->columns};
        tile.rows = minimum(tiles->rows, product->a.rows - tile.row);
        tile.columns = minimum(tiles->columns, product->b.columns - tile.column);
        run_tile(tiles, &tile, &scratch);
    }
    if (taken) scratch_give(taken);
}

static double tile_work(const Tiles *tiles) {
    const MatrixProduct *product = tiles->product;
    return (double)minimum(tiles->rows, product->a.rows) *
           (double)minimum(tiles->columns, product->b.columns) * (double)product->a.columns;
}

static void count_tiles(Tiles *tiles) {
    int64_t m = tiles->product->a.rows, n = tiles->product->b.columns;
    tiles->across = (n + tiles->columns - 1) / tiles->columns;
    tiles->count = (m + tiles->rows - 1) / tiles->rows * tiles->across;
}

// An operand that is packed is packed anew for each tile along the other: where only one is, a tile
// has little of it and much of the other. As many tiles as keep the threads busy.
static void choose_tiles(Tiles *tiles, int threads) {
    const MatrixProduct *product = tiles->product;
    int64_t height = block_simd()->tile_rows, width = panel_columns(product);
    bool both = tiles->packs_a == tiles->packs_b;
    tiles->rows = both ? TILE_SIDE : tiles->packs_a ? TILE_NARROW : TILE_LONG;
    tiles->columns = both ? TILE_SIDE : tiles->packs_b ? TILE_NARROW : TILE_LONG;
    if (!tiles->direct) tiles->rows = minimum(tiles->rows, SUMS_MAX / tiles->columns);
    count_tiles(tiles);
    ASSERT(tiles->count > 0 && tiles->rows > 0);
    int64_t wanted = threads > 1 ? (int64_t)threads * TASKS_OF_THREAD : 1;
    while (tiles->count < wanted && tile_work(tiles) >= 2 * TASK_WORK) {
        int64_t rows = minimum(tiles->rows, product->a.rows);
        int64_t columns = minimum(tiles->columns, product->b.columns);
        bool flat = tiles->packs_a != tiles->packs_b ? tiles->packs_b : columns > rows;
        if (columns > width && (flat || rows <= height))
            tiles->columns = round_up(columns / 2, width);
        else if (rows > height)
            tiles->rows = round_up(rows / 2, height);
        else
            break;
        count_tiles(tiles);
    }
}

static bool is_direct(const MatrixProduct *product) {
    bool in_rows = product->out_column_stride == 1 || product->b.columns == 1;
    return product->out_dtype == compute_dtype(product->compute) && in_rows;
}

static Tiles prepare(const MatrixProduct *product, int threads) {
    ASSERT(product->compute == COMPUTE_F32 || product->compute == COMPUTE_F64);
    ASSERT(product->a.columns == product->b.rows && product->a.columns > 0);
    Tiles tiles = {.product = product,
                   .packs_a = needs_packing_a(product),
                   .packs_b = needs_packing_b(product),
                   .direct = is_direct(product),
                   .depth = dtype_is_quant(product->b.dtype)
                                ? DEPTH_QUANTISED
                                : DEPTH_BYTES / (int64_t)compute_bytes(product->compute)};
    choose_tiles(&tiles, threads);
    return tiles;
}

// A product that is soon done, of operands that lie as the kernels read them: what the others need
// beforehand would take as long. Returns whether it is done.
static bool run_small(const MatrixProduct *product, bool accumulate) {
    const Matrix *a = &product->a, *b = &product->b;
    bool small = a->rows * b->columns <= TASK_WORK / SMALL_DEPTH && a->columns <= SMALL_DEPTH;
    if (!small || !is_direct(product) || needs_packing_a(product) || needs_packing_b(product))
        return false;
    block_simd()->multiply[product->compute](&(BlockProduct){
        .a = a->data,
        .b = b->data,
        .a_row_stride = a->row_stride,
        .a_column_stride = a->column_stride,
        .b_row_stride = b->row_stride,
        .b_panel_stride = panel_columns(product),
        .m = a->rows,
        .n = b->columns,
        .k = a->columns,
        .out = product->out,
        .out_stride = product->out_row_stride,
        .accumulate = accumulate,
    });
    return true;
}

void matrix_product_blocked(const MatrixProduct *product) {
    if (run_small(product, false)) return;
    Tiles tiles = prepare(product, cpu_thread_count());
    cpu_parallel(tiles.count, (int64_t)(TASK_WORK / (tile_work(&tiles) + 1)) + 1, run_tiles,
                 &tiles);
}

void matrix_product_serial(const SerialProduct *product) {
    MatrixProduct whole = {
        .compute = product->compute,
        .a = product->a,
        .b = product->b,
        .out_dtype = compute_dtype(product->compute),
        .out = product->c,
        .out_row_stride = product->c_stride,
        .out_column_stride = 1,
    };
    if (run_small(&whole, product->accumulate)) return;
    Tiles tiles = prepare(&whole, 1);
    tiles.accumulate = product->accumulate;
    run_tiles(&tiles, 0, tiles.count);
}
