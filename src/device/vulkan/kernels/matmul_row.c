// MATMUL of a row by many weights in blocks as an imported program (shaders/nvidia/matvec.ptx):
// which rows it takes, and how groups share the columns.
#include "device/vulkan/kernels/matmul.h"

enum {
    WARPS = 16, // of a group: see shaders/kernels.def and shaders/nvidia/matvec.ptx
    STAGES = 3, // of memory, each of a superblock
    SUPERBLOCK = 256,
    COLUMNS = 16,          // that a warp takes at a time
    UNIT = 32,             // numbers of the row,
    UNIT_BYTES = 176,      // their bytes in shared memory,
    UNITS_LEAST = 128,     // and for how many there is room at least
    SHARED_BYTES = 232384, // that there are, without what is of one size
    WARPS_ENOUGH =
        12, // of a multiprocessor with columns of their own; else shaders, which share them
    TURNS_MOST = 8,
    GROUPS_AT_ONCE = 100, // where the device does not say
};

// The parameters of shaders/nvidia/matvec.ptx: addresses, bytes from a column to the next one,
// sizes, and how many times a warp takes columns.
typedef struct RowPush {
    uint64_t a, b, out, column_bytes;
    uint32_t n, k, turns, unused;
} RowPush;

// Programs for types of blocks. Those that are not here gain less than 15 % by one.
static const struct {
    DType dtype;
    VulkanShader shader;
} row_programs[] = {
    {DTYPE_Q6_K, SHADER_MATVEC_Q6_K_IMPORT},     {DTYPE_Q4_1, SHADER_MATVEC_Q4_1_IMPORT},
    {DTYPE_Q5_0, SHADER_MATVEC_Q5_0_IMPORT},     {DTYPE_Q5_1, SHADER_MATVEC_Q5_1_IMPORT},
    {DTYPE_Q2_K, SHADER_MATVEC_Q2_K_IMPORT},     {DTYPE_Q3_K, SHADER_MATVEC_Q3_K_IMPORT},
    {DTYPE_Q4_K, SHADER_MATVEC_Q4_K_IMPORT},     {DTYPE_Q5_K, SHADER_MATVEC_Q5_K_IMPORT},
    {DTYPE_IQ4_NL, SHADER_MATVEC_IQ4_NL_IMPORT}, {DTYPE_IQ4_XS, SHADER_MATVEC_IQ4_XS_IMPORT},
    {DTYPE_TQ1_0, SHADER_MATVEC_TQ1_0_IMPORT},   {DTYPE_TQ2_0, SHADER_MATVEC_TQ2_0_IMPORT},
};

static bool find_row_program(DType dtype, VulkanShader *out) {
    for (size_t i = 0; i < sizeof row_programs / sizeof *row_programs; i++) {
        if (row_programs[i].dtype != dtype) continue;
        *out = row_programs[i].shader;
        return true;
    }
    return false;
}

// For how many units of the row there is to be room, a few numbers of them, so that there are few
// programs; 0 where they do not fit next to the stages.
static uint32_t room_for_units(const DTypeInfo *info, uint32_t k) {
    uint32_t stage_bytes = (uint32_t)(SUPERBLOCK / info->block_elements * info->block_bytes);
    uint32_t pitch = ((stage_bytes + 15) / 16 + 1) | 1;
    uint64_t slots = (uint64_t)WARPS * STAGES * COLUMNS * pitch * 16, units = UNITS_LEAST;
    while (units * UNIT < k) units *= 2;
    return slots + units * UNIT_BYTES <= SHARED_BYTES ? (uint32_t)units : 0;
}

static uint64_t count_multiprocessors(const VulkanFeatures *features) {
    return features->multiprocessors ? features->multiprocessors : GROUPS_AT_ONCE;
}

// How many times warps take columns: so that groups end together, and few of them make the row
// ready for themselves, which takes a third of an iteration.
static uint32_t choose_turns(uint64_t at_once, uint64_t tiles) {
    uint64_t least = UINT64_MAX;
    uint32_t best = 1;
    for (uint32_t turns = 1; turns <= TURNS_MOST; turns++) {
        uint64_t groups = (tiles + WARPS * turns - 1) / (WARPS * turns);
        uint64_t time = (groups + at_once - 1) / at_once * (3 * turns + 1);
        if (time >= least) continue;
        least = time;
        best = turns;
    }
    return best;
}

static bool describe_row(const Product *product, RowPush *out) {
    const ProductPush *push = &product->push;
    const DTypeInfo *info = &dtype_info[product->b->dtype];
    uint64_t bytes =
        (uint64_t)push->b_column / (uint64_t)info->block_elements * (uint64_t)info->block_bytes;
    uint32_t align = info->block_bytes % 16 == 0 ? 16 : 4; // where blocks begin in words at all
    *out = (RowPush){.a = push->a_address,
                     .b = push->b_address,
                     .out = push->out_address,
                     .column_bytes = bytes,
                     .n = push->n,
                     .k = push->k};
    return push->m == 1 && product->count == 1 && push->b_column > 0 && push->a_column == 1 &&
           push->a_address % 16 == 0 && product->a->dtype == DTYPE_FLOAT32 &&
           product->out->dtype == DTYPE_FLOAT32 && product_align_blocks(product) >= align &&
           bytes <= INT32_MAX;
}

bool product_run_row(Device *device, const Product *product, Status *status) {
    const VulkanFeatures *features = vulkan_features(device);
    RowPush push;
    VulkanDispatch dispatch = {VULKAN_PUSHED(push), .group_threads = WARPS * 32};
    if (!(features->has & VULKAN_NEEDS_IMPORT) || !describe_row(product, &push) ||
        !find_row_program(product->b->dtype, &dispatch.shader))
        return false;
    uint64_t tiles = ((uint64_t)push.n + COLUMNS - 1) / COLUMNS;
    uint64_t at_once = count_multiprocessors(features);
    uint32_t units = room_for_units(&dtype_info[product->b->dtype], push.k);
    VULKAN_SET_CONSTANTS(&dispatch, matvec_import, .units = units);
    if (tiles < WARPS_ENOUGH * at_once || units == 0 || !vulkan_imports(device, &dispatch))
        return false;
    push.turns = choose_turns(at_once, tiles);
    uint64_t groups = (tiles + WARPS * push.turns - 1) / (WARPS * push.turns);
    dispatch.groups[0] = (uint32_t)groups;
    dispatch.groups[1] = dispatch.groups[2] = 1;
    dispatch.cost = (uint64_t)push.n * push.k;
    vulkan_reads(&dispatch, product->a);
    vulkan_reads(&dispatch, product->b);
    vulkan_writes(&dispatch, product->out);
    *status = vulkan_dispatch(device, &dispatch);
    return true;
}
