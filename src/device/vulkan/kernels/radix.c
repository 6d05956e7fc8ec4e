// Keys sorted with their places, by digits of 8 bits (shaders/sort_block.comp). Rows that fit a
// block take one dispatch; of longer ones the first few are those of each block's first few; else
// each digit is counted in each block, summed up, and moves the numbers. Knows no dtype.
#include "device/vulkan/kernels/kernels.h"

enum {
    THREADS_MAX = 256,
    SUBGROUPS_MAX = 8,
    EACH = 16,
    DIGITS = 256,
    DIGIT_BITS = 8,
    TOGETHER_MAX = DIGITS - 1,
    FEW = 4, // a block is worth sorting for so many times fewer numbers
};
typedef struct Blocks {
    uint32_t threads, subgroups, size;
} Blocks;

static Blocks blocks_of(const Device *device) {
    const VulkanFeatures *features = vulkan_features(device);
    uint32_t threads = features->subgroup_size * SUBGROUPS_MAX;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    for (;; threads /= 2) {
        uint32_t subgroups = threads / features->subgroup_size;
        if (subgroups == 0) subgroups = 1;
        uint32_t words = threads * EACH + (subgroups + 1) * DIGITS + subgroups;
        if (words * 4 <= features->shared_bytes_max && threads <= features->group_threads_max)
            return (Blocks){threads, subgroups, threads * EACH};
    }
}

static uint64_t address_of(const TensorView *view) {
    return view && view->buffer ? vulkan_address(view) : 0;
}

typedef struct Step {
    uint32_t kind;
    const TensorView *keys, *places, *out_keys, *out_places, *counts; // NULL: none
    uint32_t count, wanted, out_count, together, first_bit;
} Step;

static Status run_step(const VulkanSort *sort, const Step *step) {
    Blocks size = blocks_of(sort->device);
    uint32_t blocks = step->together > 1 ? 1 : (step->count + size.size - 1) / size.size;
    SortBlockPush push = {.keys = address_of(step->keys),
                          .places = address_of(step->places),
                          .out_keys = address_of(step->out_keys),
                          .out_places = address_of(step->out_places),
                          .counts = address_of(step->counts),
                          .rows = sort->rows,
                          .count = step->count,
                          .blocks = blocks,
                          .together = step->together,
                          .wanted = step->wanted,
                          .out_count = step->out_count,
                          .first_bit = step->first_bit,
                          .end_bit = sort->end_bit};
    VulkanDispatch dispatch = {.shader = sort->wide ? SHADER_SORT_BLOCK_64 : SHADER_SORT_BLOCK_32,
                               VULKAN_CONSTANTS(sort_block, .GROUP = size.threads,
                                                .SUBGROUPS = size.subgroups, .KIND = step->kind),
                               .push = &push,
                               .push_bytes = sizeof push,
                               .cost = (uint64_t)sort->rows * step->count * 16};
    vulkan_reads(&dispatch, step->keys);
    if (push.places) vulkan_reads(&dispatch, step->places);
    if (step->kind == SORT_MOVE) vulkan_reads(&dispatch, step->counts);
    if (step->kind == SORT_COUNT) vulkan_writes(&dispatch, step->counts);
    if (push.out_keys) vulkan_writes(&dispatch, step->out_keys);
    if (push.out_places) vulkan_writes(&dispatch, step->out_places);
    uint64_t units = (sort->rows + step->together - 1) / step->together;
    vulkan_groups_for(sort->device, &dispatch, units * blocks, 1);
    return vulkan_dispatch(sort->device, &dispatch);
}

static DType key_dtype(const VulkanSort *sort) {
    return sort->wide ? DTYPE_INT64 : DTYPE_INT32;
}

static Status scratch(const VulkanSort *sort, DType dtype, uint64_t count, TensorView *out) {
    return vulkan_scratch(sort->device, dtype, (int64_t)count, out);
}

Status vulkan_sort_room(VulkanSort *sort, DType dtype, uint64_t count, TensorView *out) {
    uint64_t bytes = count * dtype_size(dtype);
    for (int r = 0; r < VULKAN_SORT_ROOMS; r++) {
        TensorView *room = &sort->rooms[r];
        if (!room->buffer || (uint64_t)room->dims[0] < bytes || room->offset % 8 != 0) continue;
        *out = (TensorView){.buffer = buffer_retain(room->buffer),
                            .offset = room->offset,
                            .dtype = dtype,
                            .rank = 1,
                            .dims = {(int64_t)count},
                            .strides = {1}};
        room->offset += bytes;
        room->dims[0] -= (int64_t)bytes;
        return STATUS_OK;
    }
    return scratch(sort, dtype, count, out);
}

static void drop(TensorView *view) {
    if (view->buffer) buffer_release(view->buffer);
    *view = (TensorView){0};
}

static void replace(TensorView *view, TensorView *by) {
    drop(view);
    *view = *by;
    *by = (TensorView){0};
}

// The first `wanted` of each block, or of each row where rows fit blocks, in the place of all.
static Status sort_blocks(VulkanSort *sort, bool keep_keys) {
    uint32_t block = blocks_of(sort->device).size, count = sort->count, wanted = sort->wanted;
    uint32_t blocks = (count + block - 1) / block, last = count - (blocks - 1) * block;
    uint32_t together = block / count;
    if (together > TOGETHER_MAX) together = TOGETHER_MAX;
    if (together == 0) together = 1;
    Step step = {.kind = SORT_WHOLE,
                 .keys = &sort->keys,
                 .places = &sort->places,
                 .count = count,
                 .wanted = wanted,
                 .out_count = (blocks - 1) * wanted + (last < wanted ? last : wanted),
                 .together = together,
                 .first_bit = sort->first_bit};
    TensorView keys = {0}, places = {0};
    uint64_t all = (uint64_t)sort->rows * step.out_count;
    Status status = scratch(sort, DTYPE_INT32, all, &places);
    if (status == STATUS_OK && keep_keys) status = scratch(sort, key_dtype(sort), all, &keys);
    step.out_keys = &keys;
    step.out_places = &places;
    if (status == STATUS_OK) status = run_step(sort, &step);
    if (status == STATUS_OK) {
        replace(&sort->keys, &keys);
        replace(&sort->places, &places);
        sort->count = step.out_count;
    }
    drop(&keys);
    drop(&places);
    return status;
}

typedef struct Digits {
    TensorView keys, counts, sums;
    TensorView places[2]; // places[0] takes the last digit's
} Digits;

static Status move_digit(VulkanSort *sort, Digits *other, uint32_t bit) {
    uint32_t left = (sort->end_bit - bit - 1) / DIGIT_BITS; // digits after this one
    TensorView *to = &other->places[left % 2], keys = sort->keys;
    Step step = {.kind = SORT_COUNT,
                 .keys = &sort->keys,
                 .places = &sort->places,
                 .counts = &other->counts,
                 .count = sort->count,
                 .together = 1,
                 .first_bit = bit};
    TRY(run_step(sort, &step));
    KernelCall scan = {.n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = &other->counts}},
                       .outputs = {&other->sums},
                       .op_name = sort->op_name};
    TRY(vulkan_kernel_SCAN(sort->device, &scan));
    step.kind = SORT_MOVE;
    step.counts = &other->sums;
    step.out_keys = left == 0 && !sort->keep_keys ? NULL : &other->keys;
    step.out_places = to;
    TRY(run_step(sort, &step));
    sort->keys = other->keys;
    other->keys = keys;
    sort->places = *to;
    return STATUS_OK;
}

static Status make_digits(VulkanSort *sort, Digits *out) {
    uint32_t block = blocks_of(sort->device).size;
    uint64_t all = (uint64_t)sort->rows * sort->count;
    uint64_t counts = (uint64_t)sort->rows * ((sort->count + block - 1) / block) * DIGITS;
    TRY(vulkan_sort_room(sort, key_dtype(sort), all, &out->keys));
    TRY(vulkan_sort_room(sort, DTYPE_INT32, all, &out->places[1]));
    TRY(scratch(sort, DTYPE_INT32, all, &out->places[0]));
    TRY(scratch(sort, DTYPE_INT32, counts, &out->counts));
    return scratch(sort, DTYPE_INT32, counts, &out->sums);
}

static Status sort_digits(VulkanSort *sort) {
    Digits other = {0};
    Status status = make_digits(sort, &other);
    for (uint32_t bit = sort->first_bit; bit < sort->end_bit && status == STATUS_OK;
         bit += DIGIT_BITS)
        status = move_digit(sort, &other, bit);
    sort->places = other.places[0];
    drop(&other.keys);
    drop(&other.places[1]);
    drop(&other.counts);
    drop(&other.sums);
    return status;
}

Status vulkan_sort(VulkanSort *sort) {
    uint32_t block = blocks_of(sort->device).size;
    while (sort->count > block && sort->wanted * FEW <= block) TRY(sort_blocks(sort, true));
    if (sort->count <= block) return sort_blocks(sort, sort->keep_keys);
    return sort_digits(sort);
}

void vulkan_sort_end(VulkanSort *sort) {
    drop(&sort->keys);
    drop(&sort->places);
}
