// SCATTER that adds numbers in any order (shaders/scatter_add.comp): sums of integers are the same
// in each. Floats are integers in units of their own: those of each place, where a list's places
// fit shared memory; else of the largest number of all, and of a place's largest for smaller ones.
#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 256,
    LISTS_GROUP = 512,   // threads that add up one list
    LISTS_FEW = 64,      // fewer lists leave most of a device idle
    START_GROUPS = 1024, // that look for the largest number, at most
    SLICES_MANY = 16,    // others that share a list: sorting it once is faster
    PLACES_MANY = 4,     // places for each index: to go through all of them takes longer
    AT_A_TIME = 1 << 22, // numbers, or places, of several lists
    SUM_BITS = 62,       // of a sum, without the sign
    FLOAT_BITS = 24,     // of a float32
    SUM_BYTES = 8,
    TOP_BYTES = 4,
    LIST_WORDS = 3,
};

typedef struct Adding {
    const VulkanScatter *scatter;
    ScatterAddPush push;
    bool adjacent;
    TensorView scratch; // sums, tops, sums of small numbers, largest exponents
} Adding;

static Status run_adding(const Adding *a, uint32_t kind, uint32_t group, uint64_t groups) {
    const VulkanScatter *s = a->scatter;
    uint32_t dtypes =
        (uint32_t)s->source->dtype | (uint32_t)s->out->dtype << 4 | (uint32_t)s->index->dtype << 8;
    uint32_t words = kind == ADD_LISTS ? LIST_WORDS : 128, places = 64;
    while (kind == ADD_LISTS && places < a->push.size) places *= 2;
    if (kind == ADD_LISTS) words *= places;
    VulkanDispatch dispatch = {
        .shader = s->real == REAL_I64 ? SHADER_SCATTER_ADD_I64 : SHADER_SCATTER_ADD_F32,
        VULKAN_CONSTANTS(scatter_add, .GROUP = group, .RANK = (uint32_t)s->walk->rank,
                         .DTYPES = dtypes, .KIND = kind, .ADJACENT = a->adjacent, .WORDS = words,
                         .ALONE = a->push.count == 1),
        .arguments = s->strides,
        .arguments_bytes = sizeof *s->strides,
        VULKAN_PUSHED(a->push),
        .cost = (uint64_t)a->push.count * a->push.length * 4};
    vulkan_reads(&dispatch, s->source);
    if (kind != ADD_START) vulkan_reads(&dispatch, s->index);
    if (kind == ADD_RESULTS)
        vulkan_reads(&dispatch, &a->scratch);
    else if (a->scratch.buffer)
        vulkan_writes(&dispatch, &a->scratch);
    if (kind == ADD_INTEGERS || kind >= ADD_RESULTS) vulkan_writes(&dispatch, s->out);
    vulkan_groups_for(s->device, &dispatch, groups, 1);
    return vulkan_dispatch(s->device, &dispatch);
}

static uint64_t groups_of(uint64_t numbers) {
    return (numbers + GROUP * ADD_EACH - 1) / (GROUP * ADD_EACH);
}

static bool fits_shared(const VulkanScatter *s) {
    const VulkanFeatures *features = vulkan_features(s->device);
    uint64_t places = 64;
    while (places < (uint64_t)s->push->size) places *= 2;
    return places * LIST_WORDS * 4 <= features->shared_bytes_max &&
           features->group_threads_max >= LISTS_GROUP;
}

static uint64_t rounded(uint64_t bytes) {
    return (bytes + 15) / 16 * 16;
}

// Sums in memory, of the push's others.
static Status add_in_memory(Adding *a) {
    ScatterAddPush *push = &a->push;
    uint64_t places = (uint64_t)push->count * push->size;
    uint64_t numbers = (uint64_t)push->count * push->length;
    uint64_t cleared = rounded(places * (SUM_BYTES + TOP_BYTES));
    uint64_t bytes = cleared + places * SUM_BYTES + (START_GROUPS + 1) * 4;
    TRY(vulkan_scratch(a->scatter->device, DTYPE_INT64, (int64_t)(bytes / 8 + 1), &a->scratch));
    push->sums = vulkan_address(&a->scratch);
    push->tops = push->sums + places * SUM_BYTES;
    push->small_sums = push->sums + cleared;
    push->largest = push->small_sums + places * SUM_BYTES;
    uint64_t groups = groups_of(numbers > places ? numbers : places);
    push->groups = groups > START_GROUPS ? START_GROUPS : (uint32_t)groups;
    Status status = run_adding(a, ADD_START, GROUP, push->groups);
    if (status == STATUS_OK) status = run_adding(a, ADD_SMALL, GROUP, groups_of(numbers));
    if (status == STATUS_OK) status = run_adding(a, ADD_NUMBERS, GROUP, groups_of(numbers));
    if (status == STATUS_OK) status = run_adding(a, ADD_RESULTS, GROUP, groups_of(places));
    buffer_release(a->scratch.buffer);
    a->scratch = (TensorView){0};
    return status;
}

bool vulkan_can_add(const VulkanScatter *s) {
    bool takes = (vulkan_features(s->device)->has & VULKAN_NEEDS_LONG_ATOMICS) != 0;
    DType out = s->out->dtype;
    if (s->real == REAL_I64) takes &= out == DTYPE_INT32 || out == DTYPE_INT64;
    if (!takes || s->real == REAL_F64) return false;
    uint64_t numbers = (uint64_t)s->push->count * s->push->length;
    uint64_t places = (uint64_t)s->push->count * (uint64_t)s->push->size;
    if (numbers > INT32_MAX || places > INT32_MAX / LIST_WORDS) return false;
    if (s->slices && s->push->count >= SLICES_MANY) return false;
    return s->real == REAL_I64 || places <= numbers * PLACES_MANY;
}

Status vulkan_scatter_add(const VulkanScatter *s) {
    const Walk *walk = s->walk;
    int last = walk->rank - 1;
    Adding a = {.scatter = s,
                .push = {.in_address = s->push->in_address,
                         .out_address = s->push->out_address,
                         .index_address = s->push->index_address,
                         .out_stride = s->push->out_stride,
                         .in_stride = s->push->in_stride,
                         .index_stride = s->push->index_stride,
                         .size = (uint32_t)s->push->size,
                         .length = s->push->length,
                         .count = s->push->count},
                .adjacent =
                    last >= 0 && walk->strides[0][last] == 1 && walk->strides[1][last] == 1};
    ASSERT(s->push->length > 0 && s->push->size > 0);
    if (s->real == REAL_I64)
        return run_adding(&a, ADD_INTEGERS, GROUP,
                          groups_of((uint64_t)a.push.count * a.push.length));
    uint32_t bits = 1, others = a.push.count, longer = a.push.length;
    while (a.push.length >> bits != 0) bits++;
    a.push.shift = SUM_BITS - FLOAT_BITS - bits;
    if (others >= LISTS_FEW && !a.adjacent && fits_shared(s))
        return run_adding(&a, ADD_LISTS, LISTS_GROUP, others);
    if (longer < a.push.size) longer = a.push.size;
    uint32_t most = longer < AT_A_TIME ? AT_A_TIME / longer : 1;
    for (uint32_t first = 0; first < others; first += a.push.count) {
        a.push.first_other = first;
        a.push.count = others - first > most ? most : others - first;
        TRY(add_in_memory(&a));
    }
    return STATUS_OK;
}
