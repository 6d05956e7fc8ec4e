// MATMUL: chooses among the dot products of few rows, the matrix units and the tiles, and lays the
// batches out.
#include <string.h>

#include "device/vulkan/kernels/matmul.h"

enum {
    ROWS_FEW = 8,
    GROUP = 256,        // threads of matvec.comp
    LANES_NEAR = 32,    // threads of a column, at least,
    EIGHTS_OF_LANE = 2, // and so many eights of it a thread
    RESULTS_OF_TEAM = 8,
    GROUPS_ENOUGH = 128, // to keep a device busy
    COLUMNS_OF_LANES = 32,
    SUPERBLOCK = 256,
    RUN = 1024, // see matvec_blocks.comp
    FOURS_OF_RUN = 264,
    TEAMS = 8,
    ROWS_OF_BLOCKS = 2,
    SUMS_OF_TEAM = 32,
    BESIDE_ROWS_BYTES = 4176, // in shared memory: sums, a table, the bits of 2^23
    SUBGROUP_OF_BLOCKS = 8,   // at least
    PARTS_MOST = 4,
    VISITS_MOST = 64,
    WORK_ENOUGH = 256,  // iterations of a workgroup with one column a team, so that it takes more
    TURNS_ENOUGH = 500, // of workgroups, before they have another
    TILE_LARGE = 128,
    TILE = 64,
    MATRIX_DEPTH = 64,
    TILES_ENOUGH = 100,          // large ones, to keep a device busy
    MATRIX_STRIDE_MAX = 1 << 22, // so that a tile's bytes are counted in 32 bits
    IMPORT_ROWS = 128,           // of shaders/nvidia/matmul.ptx: rows of a tile,
    IMPORT_COLUMNS = 128,        // columns of a small one and of a large one,
    IMPORT_COLUMNS_LARGE = 256,
    IMPORT_THREADS = 288,
    IMPORT_MAPS_BYTES = 256, // of a workgroup
    IMPORT_DEPTH = 512,      // from which on programs are faster for any number of tiles;
    IMPORT_WORK = 24 * 512,  // so many times k, of small tiles, else
    IMPORT_ROOM = 8,         // so many times the results may tiles have room for
    EIGHT = 8,               // numbers of a vector that matrix units are fed with
    PADDED_USES = 128,       // of each number of an operand, for which a copy of it is worth while
    PADDED_WORK = 1 << 24,   // multiplications, at least
};

// See matmul_matrix.comp: what a workgroup makes, and the shared memory it takes.
typedef struct MatrixTile {
    uint32_t rows, columns, shared_bytes;
} MatrixTile;
static const MatrixTile matrix_tiles[] = {{64, 128, 23552}, {128, 256, 47104}};

static bool choose_real(Product *product) {
    DType a = product->a->dtype, b = product->b->dtype, out = product->out->dtype;
    bool whole = !dtype_is_float(a) && a == b && a == out && !dtype_is_quant(a);
    bool floats = dtype_is_float(a) && dtype_is_float(out) &&
                  (dtype_is_float(b) || (dtype_is_quant(b) && a != DTYPE_FLOAT64));
    bool wide = a == DTYPE_FLOAT64 || b == DTYPE_FLOAT64 || out == DTYPE_FLOAT64;
    product->real = whole ? REAL_I64 : wide ? REAL_F64 : REAL_F32;
    return (whole || floats) && !(wide && dtype_is_quant(b));
}

// Leading dimensions over which b does not change are rows of a, where a's strides allow it.
static int fold_rows(Product *product, uint64_t *rows) {
    const TensorView *a = product->a, *b = product->b;
    int rank = a->rank - 2;
    for (; rank > 0; rank--) {
        int d = rank - 1;
        if (a->dims[d] == 1) continue;
        if (b->strides[d] != 0) break;
        if (*rows == 1)
            product->push.a_row = a->strides[d];
        else if (a->strides[d] != (int64_t)*rows * product->push.a_row)
            break;
        *rows *= (uint64_t)a->dims[d];
    }
    return rank;
}

static Status describe(Device *device, Product *product) {
    const TensorView *a = product->a, *b = product->b;
    int row = a->rank - 2, column = a->rank - 1;
    ProductPush *push = &product->push;
    *push = (ProductPush){.a_address = vulkan_address(a),
                          .b_address = vulkan_address(b),
                          .out_address = vulkan_address(product->out),
                          .a_row = a->strides[row],
                          .a_column = a->strides[column],
                          .b_row = b->strides[row],
                          .b_column = b->strides[column]};
    if (b->dims[column] == 1 && dtype_is_quant(b->dtype))
        push->b_column = b->dims[row]; // of one column any stride would do
    if (a->dims[column] == 1) push->a_column = push->b_row = 1;
    uint64_t rows = (uint64_t)a->dims[row];
    product->batch_rank = fold_rows(product, &rows);
    product->count = 1;
    for (int d = 0; d < product->batch_rank; d++) {
        product->batches.dims[d] = (uint32_t)a->dims[d];
        product->batches.a_strides[d] = a->strides[d];
        product->batches.b_strides[d] = b->strides[d];
        product->count *= (uint64_t)a->dims[d];
    }
    uint64_t columns = (uint64_t)b->dims[column], depth = (uint64_t)b->dims[row];
    if (rows > INT32_MAX || columns > INT32_MAX || depth > INT32_MAX)
        return fail(STATUS_DEVICE, "%s: a dimension of more than 2^31 on %s",
                    product->call->op_name, device->name);
    push->m = (uint32_t)rows;
    push->n = (uint32_t)columns;
    push->k = (uint32_t)depth;
    return STATUS_OK;
}

// True where `lanes` numbers at a time come along a dim of stride 1 and `length`.
static bool in_lanes(const Product *product, const TensorView *view, const int64_t strides[2],
                     uint32_t length, uint32_t lanes) {
    if (dtype_is_quant(view->dtype) || strides[0] != 1 || length % lanes != 0 ||
        strides[1] % (int64_t)lanes != 0)
        return false;
    if (vulkan_address(view) % (lanes * dtype_size(view->dtype)) != 0) return false;
    for (int d = 0; d < product->batch_rank; d++)
        if (view->strides[d] % (int64_t)lanes != 0) return false;
    return true;
}

static bool in_fours(const Product *product, const TensorView *view, int64_t stride,
                     int64_t other_stride, uint32_t length) {
    return in_lanes(product, view, (int64_t[]){stride, other_stride}, length, 4);
}

static uint32_t choose_fetch(const Product *product, const TensorView *view, int64_t depth_stride,
                             int64_t side_stride, uint32_t side) {
    if (in_fours(product, view, depth_stride, side_stride, product->push.k))
        return FETCH_DEPTH_FOUR;
    if (in_fours(product, view, side_stride, depth_stride, side)) return FETCH_SIDE_FOUR;
    return side_stride == 1 ? FETCH_SIDE : FETCH_DEPTH;
}

// Batches are spread over z, in slices that the device takes.
Status product_dispatch(Device *device, const Product *product, VulkanDispatch *dispatch) {
    uint64_t slice = vulkan_features(device)->groups_max[2];
    if (product->count > slice)
        return fail(STATUS_DEVICE, "%s: more than %llu matrices at once on %s",
                    product->call->op_name, (unsigned long long)slice, device->name);
    const ProductPush *push = &product->push;
    dispatch->groups[1] = 1;
    dispatch->groups[2] = (uint32_t)product->count;
    dispatch->constants.matmul.DTYPES = (uint32_t)product->a->dtype |
                                        (uint32_t)product->out->dtype << 4 |
                                        (uint32_t)product->b->dtype << 8;
    dispatch->constants.matmul.BATCH_RANK = (uint32_t)product->batch_rank;
    dispatch->arguments = &product->batches;
    dispatch->arguments_bytes = sizeof product->batches;
    VULKAN_SET_PUSHED(dispatch, *push);
    dispatch->cost = product->count * push->m * push->n * push->k;
    vulkan_reads(dispatch, product->a);
    vulkan_reads(dispatch, product->b);
    vulkan_writes(dispatch, product->out);
    return vulkan_dispatch(device, dispatch);
}

static Status set_groups(Device *device, const Product *product, uint64_t groups,
                         VulkanDispatch *dispatch) {
    if (groups > vulkan_features(device)->groups_max[0])
        return fail(STATUS_DEVICE, "%s: the result is too large for %s", product->call->op_name,
                    device->name);
    dispatch->groups[0] = (uint32_t)groups;
    return STATUS_OK;
}

// How matvec_blocks.comp shares its work: rows and columns at a time, teams along k, and how often
// a team takes its next columns.
typedef struct BlockShare {
    uint32_t rows, each, parts, visits;
} BlockShare;

// How units are read, by what was fastest: fewer columns at once where one takes many registers,
// and the next ones' words asked for before these are used where that leaves room for them.
static uint32_t columns_at_once(DType dtype) {
    return dtype == DTYPE_Q5_K || dtype == DTYPE_Q3_K ? 2 : 4;
}

static uint32_t choose_ahead(DType dtype, uint32_t rows) {
    static const DType small[] = {DTYPE_Q4_0, DTYPE_Q4_1, DTYPE_Q5_1,  DTYPE_Q8_0,
                                  DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_IQ4_NL};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        if (small[i] == dtype && rows == 1) return COLUMNS_AHEAD;
    return COLUMNS_BEHIND;
}

static BlockShare share_blocks(const Device *device, const Product *product) {
    const ProductPush *push = &product->push;
    BlockShare share = {.rows = push->m > 1 ? ROWS_OF_BLOCKS : 1, .each = 1, .parts = 1};
    uint32_t room = vulkan_features(device)->shared_bytes_max - BESIDE_ROWS_BYTES;
    uint32_t most = push->k > PARTS_MOST * RUN ? PARTS_MOST / 2 : PARTS_MOST;
    while (share.parts < most && share.parts * RUN < push->k &&
           share.parts * 2 * FOURS_OF_RUN * 16 <= room)
        share.parts *= 2;
    uint64_t across = (push->m + share.rows - 1) / share.rows;
    uint64_t work = product->count * across * push->n * share.parts / TEAMS;
    if (work >= WORK_ENOUGH) share.each = columns_at_once(product->b->dtype);
    bool whole = share.parts * RUN >= push->k; // else sums of all columns are kept
    uint64_t visits = work / share.each / TURNS_ENOUGH;
    uint32_t visits_most = whole ? VISITS_MOST : SUMS_OF_TEAM / share.rows / share.each;
    share.visits = visits < 1 ? 1 : visits > visits_most ? visits_most : (uint32_t)visits;
    return share;
}

// The largest power of two, from 2 to 16, that all columns and what lies in their blocks begin at
// multiples of. Blocks that begin in the middle of words have words found in them wherever they
// lie.
uint32_t product_align_blocks(const Product *product) {
    const TensorView *b = product->b;
    const DTypeInfo *info = &dtype_info[b->dtype];
    if (info->block_bytes % 4 != 0) return 4;
    uint64_t bits = vulkan_address(b) | (uint64_t)info->block_bytes;
    return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 2;
}

// A product that may be made with what follows it is held until that is known.
static void may_join(const Product *product, VulkanDispatch *dispatch) {
    if (product->count == 1 && product->out->dtype == DTYPE_FLOAT32)
        dispatch->held_results = (uint64_t)product->push.m * product->push.n;
}

static Status run_blocks(Device *device, Product *product) {
    ProductPush *push = &product->push;
    const DTypeInfo *info = &dtype_info[product->b->dtype];
    uint32_t super_bytes = (uint32_t)(SUPERBLOCK / info->block_elements * info->block_bytes);
    BlockShare share = share_blocks(device, product);
    push->a_fours = in_fours(product, product->a, push->a_column, push->a_row, push->k);
    uint32_t ahead = COLUMNS_ONCE;
    if (share.visits > 1) ahead = choose_ahead(product->b->dtype, share.rows);
    VulkanDispatch dispatch = {
        .shader = SHADER_MATVEC_BLOCKS,
        VULKAN_CONSTANTS(matvec_blocks, .JOIN = MAP_COPY, .ROWS = share.rows, .EACH = share.each,
                         .PARTS = share.parts, .ALIGNED = product_align_blocks(product),
                         .SUPER_BYTES = super_bytes, .ROW_FOURS = FOURS_OF_RUN * share.parts,
                         .AHEAD = ahead),
    };
    may_join(product, &dispatch);
    push->across = (push->m + share.rows - 1) / share.rows;
    push->visits = share.visits;
    uint32_t columns = TEAMS / share.parts * share.each * share.visits;
    uint64_t groups = (uint64_t)push->across * ((push->n + columns - 1) / columns);
    TRY(set_groups(device, product, groups, &dispatch));
    return product_dispatch(device, product, &dispatch);
}

// How matvec.comp shares its work: threads of a column, and columns of such a team.
static void share_columns(const ProductPush *push, uint32_t *lanes, uint32_t *each) {
    *lanes = LANES_NEAR;
    while (*lanes < GROUP && *lanes * 8 * EIGHTS_OF_LANE < push->k) *lanes *= 2;
    uint32_t teams = GROUP / *lanes;
    *each = 2;
    while (*each > 1 &&
           (*each * push->m > RESULTS_OF_TEAM || push->n < GROUPS_ENOUGH * teams * *each))
        *each /= 2;
}

static Status run_few_rows(Device *device, const Product *product) {
    const ProductPush *push = &product->push;
    bool dot = push->a_column == 1 && push->b_row == 1;
    bool a_fours = in_fours(product, product->a, push->a_column, push->a_row, 4);
    bool b_fours = in_fours(product, product->b, push->b_row, push->b_column, 4);
    bool b_eights = in_lanes(product, product->b, (int64_t[]){push->b_row, push->b_column}, 8, 8);
    uint32_t lanes = COLUMNS_OF_LANES, each = 1, vectors = (uint32_t)a_fours;
    if (dot) share_columns(push, &lanes, &each);
    vectors |= (uint32_t)b_fours << 1 | (uint32_t)b_eights << 2;
    VulkanDispatch dispatch = {
        .shader = SHADER_MATVEC,
        VULKAN_CONSTANTS(matvec, .JOIN = MAP_COPY, .ROWS = push->m, .EACH = each,
                         .TEAMS = GROUP / lanes, .DOT = dot, .VECTORS = vectors),
    };
    if (dot) may_join(product, &dispatch);
    uint32_t columns = dot ? GROUP / lanes * each : lanes;
    dispatch.groups[0] = (push->n + columns - 1) / columns;
    return product_dispatch(device, product, &dispatch);
}

// One group a tile of rows x columns results.
Status product_set_tiles(Device *device, Product *product, uint32_t rows, uint32_t columns,
                         VulkanDispatch *dispatch) {
    ProductPush *push = &product->push;
    push->across = (push->n + columns - 1) / columns;
    uint64_t groups = (uint64_t)push->across * ((push->m + rows - 1) / rows);
    return set_groups(device, product, groups, dispatch);
}

static Status run_tiles(Device *device, Product *product) {
    ProductPush *push = &product->push;
    bool quantised = dtype_is_quant(product->b->dtype);
    uint64_t large = ((uint64_t)push->m + TILE_LARGE - 1) / TILE_LARGE *
                     ((push->n + TILE_LARGE - 1) / TILE_LARGE) * product->count;
    bool is_large = product->real == REAL_F32 && large >= TILES_ENOUGH;
    uint32_t tile = is_large ? TILE_LARGE : TILE;
    VulkanDispatch dispatch = {.shader = vulkan_shader_of(SHADER_MATMUL_F32, product->real)};
    if (is_large) dispatch.shader = SHADER_MATMUL_F32_LARGE;
    if (quantised)
        dispatch.shader = is_large ? SHADER_MATMUL_QUANTISED_LARGE : SHADER_MATMUL_QUANTISED;
    VULKAN_SET_CONSTANTS(
        &dispatch, matmul,
        .A_FETCH = choose_fetch(product, product->a, push->a_column, push->a_row, push->m),
        .B_FETCH = choose_fetch(product, product->b, push->b_row, push->b_column, push->n));
    TRY(product_set_tiles(device, product, tile, tile, &dispatch));
    return product_dispatch(device, product, &dispatch);
}

// --- matrix units

// Whether eight numbers at a time come along k (0) or along the other dim (1); else -1.
int product_across(const Product *product, const TensorView *view, int64_t depth_stride,
                   int64_t side_stride, uint32_t side) {
    if (depth_stride < 0 || depth_stride > MATRIX_STRIDE_MAX || side_stride < 0 ||
        side_stride > MATRIX_STRIDE_MAX)
        return -1;
    bool padded = product->padded[view == product->b];
    uint32_t depth = padded ? EIGHT : product->push.k, length = padded ? EIGHT : side;
    if (in_lanes(product, view, (int64_t[]){depth_stride, side_stride}, depth, EIGHT)) return 0;
    return in_lanes(product, view, (int64_t[]){side_stride, depth_stride}, length, EIGHT) ? 1 : -1;
}

// --- operands whose lines do not begin at multiples of eight numbers

// An operand as a matrix of lines, whose numbers are neighbours in the copy that is made of it.
typedef struct Lines {
    TensorView view, copy; // dims: lines, numbers of a line
    bool wanted;
} Lines;

static void describe_lines(const TensorView *view, const int64_t strides[2], const uint32_t dims[2],
                           Lines *out) {
    int inner = strides[0] == 1 ? 0 : 1;
    out->view = *view;
    out->view.rank = 2;
    for (int d = 0; d < 2; d++) {
        out->view.dims[d] = dims[d == 0 ? 1 - inner : inner];
        out->view.strides[d] = strides[d == 0 ? 1 - inner : inner];
    }
}

static Status copy_lines(Device *device, const char *op_name, Lines *lines) {
    int64_t pitch = (lines->view.dims[1] + EIGHT - 1) / EIGHT * EIGHT;
    TensorView room;
    TRY(vulkan_scratch(device, lines->view.dtype, lines->view.dims[0] * pitch, &room));
    lines->copy = lines->view;
    lines->copy.buffer = room.buffer;
    lines->copy.offset = 0;
    lines->copy.strides[0] = pitch;
    lines->copy.strides[1] = 1;
    Status status = STATUS_OK;
    if (pitch != lines->view.dims[1])
        status = vulkan_fill(device, room.buffer, 0, room.buffer->bytes, 0);
    if (status == STATUS_OK) status = vulkan_copy_view(device, &lines->copy, &lines->view, op_name);
    if (status != STATUS_OK) buffer_release(room.buffer);
    return status;
}

// Whether matrix units could take both operands, if some were copied; which ones.
static bool choose_padded(const Device *device, const Product *product, Lines lines[2]) {
    const ProductPush *push = &product->push;
    const TensorView *views[] = {product->a, product->b};
    const int64_t strides[2][2] = {{push->a_row, push->a_column}, {push->b_row, push->b_column}};
    const uint32_t dims[2][2] = {{push->m, push->k}, {push->k, push->n}};
    const uint32_t uses[] = {push->n, push->m};
    int across[] = {product_across(product, product->a, push->a_column, push->a_row, push->m),
                    product_across(product, product->b, push->b_row, push->b_column, push->n)};
    if (!(vulkan_features(device)->has & VULKAN_NEEDS_MATRIX_BFLOAT) || product->real != REAL_F32 ||
        product->count != 1 || (uint64_t)push->m * push->n * push->k < PADDED_WORK)
        return false;
    for (int i = 0; i < 2; i++) {
        bool quantised = dtype_is_quant(views[i]->dtype);
        lines[i].wanted = across[i] < 0 && !quantised;
        if (lines[i].wanted && uses[i] < PADDED_USES) return false;
        describe_lines(views[i], strides[i], dims[i], &lines[i]);
    }
    return lines[0].wanted || lines[1].wanted;
}

static Status pad_operands(Device *device, Product *product, Lines lines[2]) {
    ProductPush *push = &product->push;
    const char *op_name = product->call->op_name;
    for (int i = 0; i < 2; i++) {
        if (!lines[i].wanted) continue;
        TRY(copy_lines(device, op_name, &lines[i]));
        product->padded[i] = true;
    }
    if (product->padded[0]) {
        bool turned = push->a_row == 1; // lines are columns
        product->a = &lines[0].copy;
        push->a_address = vulkan_address(product->a);
        push->a_row = turned ? 1 : product->a->strides[0];
        push->a_column = turned ? product->a->strides[0] : 1;
    }
    if (product->padded[1]) {
        bool turned = push->b_row == 1;
        product->b = &lines[1].copy;
        push->b_address = vulkan_address(product->b);
        push->b_row = turned ? 1 : product->b->strides[0];
        push->b_column = turned ? product->b->strides[0] : 1;
    }
    return STATUS_OK;
}

// Whether the device's matrix units can make this product, and how its operands lie for them.
static bool choose_matrix(Device *device, const Product *product, int across[2]) {
    const ProductPush *push = &product->push;
    DType dtype = product->a->dtype, out = product->out->dtype;
    if ((dtype != DTYPE_FLOAT16 && dtype != DTYPE_BFLOAT16) || product->b->dtype != dtype ||
        out == DTYPE_FLOAT64 ||
        vulkan_features(device)->shared_bytes_max < matrix_tiles[0].shared_bytes)
        return false;
    uint32_t needs = dtype == DTYPE_BFLOAT16 ? VULKAN_NEEDS_MATRIX_BFLOAT : VULKAN_NEEDS_MATRIX;
    if (!(vulkan_features(device)->has & needs)) return false;
    across[0] = product_across(product, product->a, push->a_column, push->a_row, push->m);
    across[1] = product_across(product, product->b, push->b_row, push->b_column, push->n);
    return across[0] >= 0 && across[1] >= 0;
}

// Large tiles where they keep the whole device busy.
static bool choose_large(Device *device, const Product *product) {
    const MatrixTile *large = &matrix_tiles[1];
    const ProductPush *push = &product->push;
    uint64_t tiles = ((uint64_t)push->m + large->rows - 1) / large->rows *
                     ((push->n + large->columns - 1) / large->columns) * product->count;
    return tiles >= TILES_ENOUGH &&
           vulkan_features(device)->shared_bytes_max >= large->shared_bytes;
}

static Status run_matrix(Device *device, Product *product, const int across[2]) {
    ProductPush *push = &product->push;
    bool is_large = choose_large(device, product), bfloat = product->a->dtype == DTYPE_BFLOAT16;
    const MatrixTile *tile = &matrix_tiles[is_large];
    // Results are stored eight at a time where nothing is cut off.
    bool whole = push->m % tile->rows == 0 && push->n % tile->columns == 0 &&
                 push->k % MATRIX_DEPTH == 0 && vulkan_address(product->out) % 16 == 0;
    VulkanDispatch dispatch = {
        .shader = bfloat ? SHADER_MATMUL_BFLOAT : SHADER_MATMUL_HALF,
        VULKAN_CONSTANTS(matmul_matrix, .A_ACROSS = (uint32_t)across[0],
                         .B_ACROSS = (uint32_t)across[1], .WHOLE = whole),
    };
    if (is_large) dispatch.shader++;
    TRY(product_set_tiles(device, product, tile->rows, tile->columns, &dispatch));
    return product_dispatch(device, product, &dispatch);
}

// --- imported programs

// The parameters of shaders/nvidia/matmul.ptx: addresses, bytes from a row (across k: a k) to the
// next one and from a batch to the next one, sizes, and how many batches each operand has: 1, or
// all.
typedef struct ImportPush {
    uint64_t a, b, out, maps;
    uint64_t a_far, b_far, a_next, b_next;
    uint32_t m, n, k, count, a_batches, b_batches;
} ImportPush;

// How an operand lies for it: batches behind each other at one distance, or the same one for all.
typedef struct OperandPlace {
    uint64_t far, next; // bytes
    uint32_t batches;
} OperandPlace;

static bool place_operand(const Product *product, const int64_t strides[], int64_t far,
                          OperandPlace *out) {
    int last = product->batch_rank - 1;
    int64_t next = last < 0 ? 0 : strides[last];
    for (int d = last - 1; d >= 0; d--)
        if (strides[d] != strides[d + 1] * (int64_t)product->batches.dims[d + 1]) return false;
    out->far = (uint64_t)far * sizeof(uint16_t);
    out->next = (uint64_t)(next > 0 ? next : far) * sizeof(uint16_t);
    out->batches = next > 0 ? (uint32_t)product->count : 1;
    return far > 0 && next >= 0;
}

static uint64_t count_tiles(const Product *product, uint32_t columns) {
    const ProductPush *push = &product->push;
    return ((uint64_t)push->m + IMPORT_ROWS - 1) / IMPORT_ROWS *
           ((push->n + columns - 1) / columns) * product->count;
}

// Large tiles where they keep the whole device busy, else small ones; 0 where a shader is as fast:
// for small products, and where most of each tile would be no results.
static uint32_t choose_columns(const Product *product) {
    const ProductPush *push = &product->push;
    uint64_t small = count_tiles(product, IMPORT_COLUMNS);
    uint64_t room = IMPORT_ROOM * product->count * push->m * push->n;
    bool enough = push->k >= IMPORT_DEPTH || small * push->k >= IMPORT_WORK;
    if (!enough || small > INT32_MAX || small * IMPORT_ROWS * IMPORT_COLUMNS > room) return 0;
    uint64_t large = count_tiles(product, IMPORT_COLUMNS_LARGE);
    bool fits = large >= TILES_ENOUGH &&
                large * IMPORT_ROWS * IMPORT_COLUMNS_LARGE * (IMPORT_ROOM / 2) <= room;
    return fits ? IMPORT_COLUMNS_LARGE : IMPORT_COLUMNS;
}

static bool describe_import(const Product *product, const int across[2], ImportPush *out) {
    const ProductPush *push = &product->push;
    DType dtype = product->a->dtype, to = product->out->dtype;
    int64_t a_far = across[0] ? push->a_column : push->a_row;
    int64_t b_far = across[1] ? push->b_row : push->b_column;
    OperandPlace a, b;
    if ((to != dtype && to != DTYPE_FLOAT32) ||
        !place_operand(product, product->batches.a_strides, a_far, &a) ||
        !place_operand(product, product->batches.b_strides, b_far, &b))
        return false;
    *out = (ImportPush){.a = push->a_address,
                        .b = push->b_address,
                        .out = push->out_address,
                        .a_far = a.far,
                        .b_far = b.far,
                        .a_next = a.next,
                        .b_next = b.next,
                        .m = push->m,
                        .n = push->n,
                        .k = push->k,
                        .count = (uint32_t)product->count,
                        .a_batches = a.batches,
                        .b_batches = b.batches};
    return true;
}

// Where the device has a program for this product. A workgroup takes tile after tile.
static bool run_import(Device *device, const Product *product, const int across[2],
                       Status *status) {
    const VulkanFeatures *features = vulkan_features(device);
    ImportPush push;
    uint32_t columns = choose_columns(product);
    if (!(features->has & VULKAN_NEEDS_IMPORT) || columns == 0 ||
        !describe_import(product, across, &push))
        return false;
    bool bfloat = product->a->dtype == DTYPE_BFLOAT16;
    uint64_t tiles = count_tiles(product, columns);
    uint64_t groups = features->multiprocessors ? features->multiprocessors : TILES_ENOUGH;
    if (groups > tiles) groups = tiles;
    VulkanDispatch dispatch = {
        .shader = bfloat ? SHADER_MATMUL_BFLOAT_IMPORT : SHADER_MATMUL_HALF_IMPORT,
        VULKAN_CONSTANTS(matmul_import, .a_across = (uint32_t)across[0],
                         .b_across = (uint32_t)across[1],
                         .out_float32 = product->out->dtype == DTYPE_FLOAT32,
                         .out_anywhere = push.n % 8 != 0 || push.out % 16 != 0),
        .groups = {(uint32_t)groups, 1, 1},
        .group_threads = IMPORT_THREADS,
        VULKAN_PUSHED(push),
        .cost = product->count * push.m * push.n * push.k / VULKAN_IMPORT_SPEED,
    };
    if (columns == IMPORT_COLUMNS_LARGE) dispatch.shader++;
    if (!vulkan_imports(device, &dispatch)) return false;
    vulkan_reads(&dispatch, product->a);
    vulkan_reads(&dispatch, product->b);
    vulkan_writes(&dispatch, product->out);
    *status = vulkan_dispatch_mapped(device, &dispatch, groups * IMPORT_MAPS_BYTES, &push.maps);
    return true;
}

bool product_reads_units(DType dtype) {
    enum { HOST = false, SINGLE = false, UNITS = true };
    static const bool in_units[DTYPE_COUNT] = {
#define DTYPE(code, name, kind, block, bytes, short_name, gguf, units) units,
#include "catalog/dtypes.def"
#undef DTYPE
    };
    return in_units[dtype];
}

// Few rows by dot products, others on matrix units where the device has them, else in tiles.
static Status run_product(Device *device, Product *product, bool few) {
    int across[2];
    Status status;
    if (!few && choose_matrix(device, product, across)) {
        if (run_import(device, product, across, &status)) return status;
        return run_matrix(device, product, across);
    }
    if (!few && product_run_parts(device, product, &status)) return status;
    bool blocks = dtype_is_quant(product->b->dtype);
    if (few && blocks && product_run_row(device, product, &status)) return status;
    if (few && product_reads_units(product->b->dtype) &&
        vulkan_features(device)->subgroup_size >= SUBGROUP_OF_BLOCKS)
        return run_blocks(device, product);
    return few && !blocks ? run_few_rows(device, product) : run_tiles(device, product);
}

Status vulkan_kernel_MATMUL(Device *device, const KernelCall *call) {
    Product product = {.call = call,
                       .a = call->inputs[0].view,
                       .b = call->inputs[1].view,
                       .out = call->outputs[0]};
    if (!choose_real(&product))
        return fail(STATUS_DTYPE, "%s has no kernel on %s for %s by %s giving %s", call->op_name,
                    device->name, dtype_name(product.a->dtype), dtype_name(product.b->dtype),
                    dtype_name(product.out->dtype));
    if (view_count(product.out) == 0) return STATUS_OK;
    TRY(describe(device, &product));
    if (product.push.k == 0) return vulkan_fill_zeros(device, call);
    bool few = product.real == REAL_F32 && product.push.m <= ROWS_FEW;
    Lines lines[2];
    if (few || !choose_padded(device, &product, lines)) return run_product(device, &product, few);
    Product padded = product;
    Status status = pad_operands(device, &padded, lines);
    bool full = status == STATUS_MEMORY; // tiles need no copies
    if (full) error_clear();
    if (full) status = run_product(device, &product, few);
    if (status == STATUS_OK && !full) status = run_product(device, &padded, few);
    for (int i = 0; i < 2; i++)
        if (padded.padded[i]) buffer_release(lines[i].copy.buffer);
    return status;
}
