// Keys sorted with their places, by digits of 8 bits (shaders/sort_block.comp). Rows that fit a
// block take one dispatch; of longer ones the first few are those of each block's first few; else
// each digit is counted in each block, added up over blocks, and moves the numbers.
#include "device/vulkan/kernels/kernels.h"

enum {
    THREADS_MAX = 256,
    SUBGROUPS_MAX = 8,
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
        uint32_t numbers = threads * SORT_EACH, totals = subgroups * DIGITS;
        uint32_t words = (numbers > totals ? numbers : totals) + DIGITS + subgroups;
        if (words * 4 <= features->shared_bytes_max && threads <= features->group_threads_max)
            return (Blocks){threads, subgroups, numbers};
    }
}

static uint64_t address_of(const TensorView *view) {
    return view && view->buffer ? vulkan_address(view) : 0;
}

typedef struct Step {
    uint32_t kind;
    const TensorView *keys, *places, *out_keys, *out_places, *counts; // NULL: none
    uint32_t count, wanted, out_count, together, first_bit;
    bool first, last; // keys are the numbers; the outputs are those of the sort
} Step;

static VulkanDispatch step_dispatch(const VulkanSort *sort, const Step *step) {
    Blocks size = blocks_of(sort->device);
    return (VulkanDispatch){
        .shader = sort->wide ? SHADER_SORT_BLOCK_64 : SHADER_SORT_BLOCK_32,
        VULKAN_CONSTANTS(sort_block, .GROUP = size.threads, .SUBGROUPS = size.subgroups,
                         .KIND = step->kind, .DTYPE = sort->dtype, .DESCENDING = sort->descending,
                         .FIRST = step->first, .LAST = step->last,
                         .NARROW = vulkan_features(sort->device)->subgroup_size <= 32)};
}

static Status run_step(const VulkanSort *sort, const Step *step) {
    uint32_t block = blocks_of(sort->device).size;
    uint32_t blocks = step->together > 1 ? 1 : (step->count + block - 1) / block;
    SortBlockPush push = {.keys = address_of(step->keys),
                          .places = address_of(step->places),
                          .out_keys = address_of(step->out_keys),
                          .out_places = address_of(step->out_places),
                          .counts = address_of(step->counts),
                          .numbers = step->last ? address_of(&sort->numbers) : 0,
                          .rows = sort->rows,
                          .count = step->count,
                          .blocks = blocks,
                          .together = step->together,
                          .wanted = step->wanted,
                          .out_count = step->out_count,
                          .first_bit = step->first_bit,
                          .end_bit = sort->end_bit,
                          .numbers_count = sort->numbers_count};
    VulkanDispatch dispatch = step_dispatch(sort, step);
    VULKAN_SET_PUSHED(&dispatch, push);
    dispatch.cost = (uint64_t)sort->rows * step->count * 16;
    vulkan_reads(&dispatch, step->keys);
    if (push.places) vulkan_reads(&dispatch, step->places);
    if (push.numbers && !step->first) vulkan_reads(&dispatch, &sort->numbers);
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

static Status scratch(VulkanSort *sort, DType dtype, uint64_t count, TensorView *out) {
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

// What a pass reads: the numbers until there are keys.
static void read_keys(const VulkanSort *sort, Step *step) {
    step->first = sort->keys.buffer == NULL;
    step->keys = step->first ? &sort->numbers : &sort->keys;
    step->places = &sort->places;
}

// The last pass writes the outputs, where it can.
static bool finish(VulkanSort *sort, Step *step) {
    if (!sort->numbers.buffer) return false;
    step->last = true;
    step->out_keys = sort->outputs[0];
    step->out_places = sort->outputs[1];
    sort->finished = true;
    return true;
}

static Status put_blocks(VulkanSort *sort, Step *step, bool keep_keys) {
    TensorView keys = {0}, places = {0};
    uint64_t all = (uint64_t)sort->rows * step->out_count;
    Status status = scratch(sort, DTYPE_INT32, all, &places);
    if (status == STATUS_OK && keep_keys) status = scratch(sort, key_dtype(sort), all, &keys);
    step->out_keys = &keys;
    step->out_places = &places;
    if (status == STATUS_OK) status = run_step(sort, step);
    if (status == STATUS_OK) {
        replace(&sort->keys, &keys);
        replace(&sort->places, &places);
        sort->count = step->out_count;
    }
    drop(&keys);
    drop(&places);
    return status;
}

// The first `wanted` of each block, or of each row where rows fit blocks, in the place of all.
static Status sort_blocks(VulkanSort *sort) {
    uint32_t block = blocks_of(sort->device).size, count = sort->count, wanted = sort->wanted;
    uint32_t blocks = (count + block - 1) / block, last = count - (blocks - 1) * block;
    uint32_t together = block / count;
    if (together > TOGETHER_MAX) together = TOGETHER_MAX;
    if (together == 0) together = 1;
    Step step = {.kind = SORT_WHOLE,
                 .count = count,
                 .wanted = wanted,
                 .out_count = (blocks - 1) * wanted + (last < wanted ? last : wanted),
                 .together = together};
    read_keys(sort, &step);
    if (blocks == 1 && finish(sort, &step)) return run_step(sort, &step);
    return put_blocks(sort, &step, blocks > 1 || sort->keep_keys);
}

// Passes write into two sets of keys and places in turn; one that has an even number of others
// after it writes into the first.
typedef struct Digits {
    TensorView keys[2], places[2], counts, sums;
} Digits;

static uint32_t passes_after(const VulkanSort *sort, uint32_t bit) {
    return (sort->end_bit - bit - 1) / DIGIT_BITS;
}

static bool finishes_digits(const VulkanSort *sort) {
    return sort->numbers.buffer && sort->count == sort->wanted;
}

static Status move_digit(VulkanSort *sort, Digits *sets, uint32_t bit) {
    uint32_t after = passes_after(sort, bit);
    Step step = {.kind = SORT_COUNT,
                 .counts = &sets->counts,
                 .count = sort->count,
                 .together = 1,
                 .first_bit = bit};
    read_keys(sort, &step);
    TRY(run_step(sort, &step));
    KernelCall scan = {.n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = &sets->counts}},
                       .outputs = {&sets->sums},
                       .op_name = sort->op_name};
    TRY(vulkan_kernel_SCAN(sort->device, &scan));
    step.kind = SORT_MOVE;
    step.counts = &sets->sums;
    step.out_keys = &sets->keys[after % 2];
    step.out_places = &sets->places[after % 2];
    if (after == 0 && !sort->keep_keys) step.out_keys = NULL;
    if (after == 0 && finishes_digits(sort)) finish(sort, &step);
    TRY(run_step(sort, &step));
    sort->keys = sets->keys[after % 2];
    sort->places = sets->places[after % 2];
    return STATUS_OK;
}

// Counts are added up over blocks, each digit's by themselves.
static void rows_by_blocks(TensorView *counts, int64_t rows) {
    int64_t blocks = counts->dims[0] / rows;
    counts->rank = 2;
    counts->dims[0] = rows;
    counts->dims[1] = blocks;
    counts->strides[0] = blocks;
    counts->strides[1] = 1;
}

// Keys that were given are those of the set that the first pass does not write. What the last pass
// reads stays out of the outputs' memory where it writes these, and what it writes where it does
// not.
static Status make_digits(VulkanSort *sort, Digits *sets) {
    uint32_t block = blocks_of(sort->device).size, passes = passes_after(sort, 0) + 1;
    uint64_t all = (uint64_t)sort->rows * sort->count;
    uint64_t counts = (uint64_t)sort->rows * ((sort->count + block - 1) / block) * DIGITS;
    bool finishes = finishes_digits(sort);
    sets->keys[passes % 2] = sort->keys;
    TRY(scratch(sort, DTYPE_INT32, counts, &sets->counts));
    TRY(scratch(sort, DTYPE_INT32, counts, &sets->sums));
    rows_by_blocks(&sets->counts, (int64_t)sort->rows * DIGITS);
    rows_by_blocks(&sets->sums, (int64_t)sort->rows * DIGITS);
    for (uint32_t set = 0; set < 2; set++) {
        Status (*make)(VulkanSort *, DType, uint64_t, TensorView *) =
            finishes == (set == 0) ? vulkan_sort_room : scratch;
        uint32_t least = set == 1 ? 2 : finishes ? 3 : 1; // passes that write places there
        if (passes >= least) TRY(make(sort, DTYPE_INT32, all, &sets->places[set]));
        if (set == 0 && !sort->keep_keys) least = 3;
        if (passes >= least && !sets->keys[set].buffer)
            TRY(make(sort, key_dtype(sort), all, &sets->keys[set]));
    }
    return STATUS_OK;
}

static Status sort_digits(VulkanSort *sort) {
    Digits sets = {0};
    Status status = make_digits(sort, &sets);
    for (uint32_t bit = 0; bit < sort->end_bit && status == STATUS_OK; bit += DIGIT_BITS)
        status = move_digit(sort, &sets, bit);
    sort->keys = sets.keys[0];
    sort->places = sets.places[0];
    drop(&sets.keys[1]);
    drop(&sets.places[1]);
    drop(&sets.counts);
    drop(&sets.sums);
    return status;
}

Status vulkan_sort(VulkanSort *sort) {
    uint32_t block = blocks_of(sort->device).size;
    sort->numbers_count = sort->count;
    while (sort->count > block && sort->wanted * FEW <= block) TRY(sort_blocks(sort));
    return sort->count <= block ? sort_blocks(sort) : sort_digits(sort);
}

void vulkan_sort_end(VulkanSort *sort) {
    drop(&sort->keys);
    drop(&sort->places);
}
