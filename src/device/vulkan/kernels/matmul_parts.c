// MATMUL of float32 rows on matrix units of bfloat16: whether they can make a product, and in how
// many slices of k.
#include "device/vulkan/kernels/matmul.h"

enum {
    TILE_ROWS = 64, // see matmul_parts.comp
    TILE_COLUMNS = 128,
    DEPTH = 32, // of k, that is multiplied together
    SHARED_BYTES = 41600,
    SUPERBLOCK = 256,
    WORK_LEAST = 1 << 20, // multiplications; fewer are not worth another pipeline
    SLICE_LEAST = 256,    // of k
    SLICES_MOST = 8,
    GROUPS_BESIDE = 2,    // workgroups that a multiprocessor has
    MULTIPROCESSORS = 64, // where their number is unknown
    GROUP_COSTS = 100,    // as much of k, to begin and end
    SLICE_COSTS = 80,     // the same of a tile that is stored and added
    SLICES_COST = 65,     // and of one more dispatch
};

// A product, and how its operands lie for the shader.
typedef struct PartsProduct {
    Product product;
    int across[2];
} PartsProduct;

static VulkanShader choose_shader(DType b) {
    if (dtype_is_quant(b)) return SHADER_MATMUL_PARTS_BLOCKS;
    if (b == DTYPE_FLOAT32) return SHADER_MATMUL_PARTS_FLOAT;
    return b == DTYPE_FLOAT16 ? SHADER_MATMUL_PARTS_HALF : SHADER_MATMUL_PARTS_BFLOAT;
}

static uint64_t count_tiles(const Product *product) {
    const ProductPush *push = &product->push;
    return (uint64_t)((push->m + TILE_ROWS - 1) / TILE_ROWS) *
           ((push->n + TILE_COLUMNS - 1) / TILE_COLUMNS) * product->count;
}

static bool fits(const Device *device, const Product *product) {
    const VulkanFeatures *features = vulkan_features(device);
    const ProductPush *push = &product->push;
    uint64_t work = (uint64_t)push->m * push->n * push->k * product->count;
    return product->real == REAL_F32 && work >= WORK_LEAST &&
           (features->has & VULKAN_NEEDS_MATRIX_BFLOAT) != 0 &&
           features->shared_bytes_max >= SHARED_BYTES;
}

static bool choose(const Device *device, PartsProduct *parts) {
    const Product *product = &parts->product;
    const ProductPush *push = &product->push;
    const TensorView *a = product->a, *b = product->b;
    bool blocks = dtype_is_quant(b->dtype);
    if (!fits(device, product) || (blocks && !product_reads_units(b->dtype))) return false;
    parts->across[0] = product_across(product, a, push->a_column, push->a_row, push->m);
    if (!blocks)
        parts->across[1] = product_across(product, b, push->b_row, push->b_column, push->n);
    else if (parts->across[0] != 0 || push->b_row != 1)
        return false;
    return parts->across[0] >= 0 && parts->across[1] >= 0;
}

static Status run_whole(Device *device, PartsProduct *parts) {
    Product *product = &parts->product;
    const ProductPush *push = &product->push;
    const DTypeInfo *info = &dtype_info[product->b->dtype];
    bool blocks = dtype_is_quant(product->b->dtype); // else what follows means nothing
    uint32_t aligned = blocks ? product_align_blocks(product) : 0;
    uint32_t super_bytes =
        blocks ? (uint32_t)(SUPERBLOCK / info->block_elements * info->block_bytes) : 0;
    bool whole = push->m % TILE_ROWS == 0 && push->n % TILE_COLUMNS == 0 && push->k % DEPTH == 0 &&
                 vulkan_address(product->out) % 16 == 0;
    VulkanDispatch dispatch = {
        .shader = choose_shader(product->b->dtype),
        VULKAN_CONSTANTS(matmul_parts, .A_ACROSS = (uint32_t)parts->across[0],
                         .B_ACROSS = (uint32_t)parts->across[1], .WHOLE = whole, .ALIGNED = aligned,
                         .SUPER_BYTES = super_bytes),
    };
    TRY(product_set_tiles(device, product, TILE_ROWS, TILE_COLUMNS, &dispatch));
    return product_dispatch(device, product, &dispatch);
}

// How long a product takes in so many slices of k, in time that a tile takes for one of k. All
// workgroups that there is room for run at a time; fewer than multiprocessors are faster.
static uint64_t estimate_cost(const Product *product, uint64_t multiprocessors, uint32_t slices) {
    uint64_t groups = count_tiles(product) * slices, room = multiprocessors * GROUPS_BESIDE;
    uint64_t tenths = groups <= multiprocessors ? 6 : (groups + room - 1) / room * 10;
    uint64_t cost = tenths * (product->push.k / slices + GROUP_COSTS) / 10;
    return slices == 1 ? cost : cost + groups * SLICE_COSTS / room + SLICES_COST;
}

// Into how many slices k is cut, so that few tiles become more workgroups.
static uint32_t choose_slices(const Device *device, const Product *product) {
    uint32_t unit = dtype_is_quant(product->b->dtype) ? SUPERBLOCK : DEPTH, best = 1;
    uint64_t multiprocessors = vulkan_features(device)->multiprocessors;
    if (multiprocessors == 0) multiprocessors = MULTIPROCESSORS;
    uint64_t least = estimate_cost(product, multiprocessors, 1);
    for (uint32_t slices = 2; slices <= SLICES_MOST; slices *= 2) {
        if (product->push.k % (slices * unit) != 0 || product->push.k / slices < SLICE_LEAST ||
            product->count * slices > vulkan_features(device)->groups_max[2])
            break;
        uint64_t cost = estimate_cost(product, multiprocessors, slices);
        if (cost >= least) continue;
        least = cost;
        best = slices;
    }
    return best;
}

// Slices of k are matrices of a leading dim, whose products are added.
static Status run_slices(Device *device, const PartsProduct *parts, uint32_t slices) {
    PartsProduct sliced = *parts;
    Product *product = &sliced.product;
    Batches *batches = &product->batches;
    ProductPush *push = &product->push;
    const Batches *whole = &parts->product.batches;
    product->batch_rank++;
    for (int d = product->batch_rank - 1; d > 0; d--) {
        batches->dims[d] = whole->dims[d - 1];
        batches->a_strides[d] = whole->a_strides[d - 1];
        batches->b_strides[d] = whole->b_strides[d - 1];
    }
    push->k /= slices;
    batches->dims[0] = slices;
    batches->a_strides[0] = (int64_t)push->k * push->a_column;
    batches->b_strides[0] = (int64_t)push->k * push->b_row;
    product->count *= slices;
    const TensorView *out = parts->product.out;
    SCOPED_SCRATCH(sums);
    TRY(vulkan_scratch(device, DTYPE_FLOAT32, view_count(out) * slices, &sums));
    product->out = &sums;
    push->out_address = vulkan_address(&sums);
    TRY(run_whole(device, &sliced));
    return vulkan_add_parts(device, product->call, &sums, out);
}

bool product_run_parts(Device *device, const Product *product, Status *status) {
    PartsProduct parts = {.product = *product};
    if (!choose(device, &parts)) return false;
    uint32_t slices = choose_slices(device, product);
    *status = slices > 1 ? run_slices(device, &parts, slices) : run_whole(device, &parts);
    return true;
}
