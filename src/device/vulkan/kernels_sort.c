// SORT: keys, bitonic merging, values.
#include "device/vulkan/kernels.h"

enum { GROUP = 256, BLOCK = 1024, KEYS = 0, VALUES = 1 };

typedef struct KeysPush {
    uint64_t in, values, places, entries, results, count, padded, wanted;
} KeysPush;

typedef struct StepPush {
    uint64_t entries, count, stage_first, stage_last, apart, padded;
} StepPush;

typedef struct Sort {
    Device *device;
    const KernelCall *call;
    const TensorView *in, *values; // values: NULL for none
    VulkanRows rows;
    uint64_t padded, wanted;
    TensorView entries, places; // scratch; places contiguous [rows, wanted]
} Sort;

static Status run_keys(const Sort *sort, uint32_t kind) {
    KeysPush push = {.in = vulkan_address(sort->in),
                     .values = sort->values ? vulkan_address(sort->values) : 0,
                     .places = vulkan_address(&sort->places),
                     .entries = vulkan_address(&sort->entries),
                     .results = sort->rows.results,
                     .count = sort->rows.count,
                     .padded = sort->padded,
                     .wanted = sort->wanted};
    uint64_t numbers = push.results * (kind == KEYS ? push.padded : push.wanted);
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_SORT_KEYS_F32, vulkan_real_of(sort->in->dtype)),
        .n_constants = 4,
        .constants = {sort->rows.ranks, sort->in->dtype, kind, sort->call->options.flag},
        .arguments = &sort->rows.arguments,
        .arguments_bytes = sizeof sort->rows.arguments,
        .push = &push,
        .push_bytes = sizeof push,
        .cost = numbers * 4};
    vulkan_reads(&dispatch, sort->in);
    if (kind == KEYS) {
        vulkan_writes(&dispatch, &sort->entries);
    } else {
        vulkan_reads(&dispatch, &sort->entries);
        vulkan_writes(&dispatch, &sort->places);
        if (sort->values) vulkan_writes(&dispatch, sort->values);
    }
    vulkan_groups_for(sort->device, &dispatch, numbers, GROUP);
    return vulkan_dispatch(sort->device, &dispatch);
}

static Status run_step(const Sort *sort, StepPush push, bool local) {
    push.entries = vulkan_address(&sort->entries);
    push.count = sort->rows.results * sort->padded;
    push.padded = sort->padded;
    VulkanDispatch dispatch = {.shader = SHADER_SORT_STEP,
                               .n_constants = 1,
                               .constants = {local},
                               .push = &push,
                               .push_bytes = sizeof push,
                               .cost = push.count * (local ? 20 : 2)};
    vulkan_writes(&dispatch, &sort->entries);
    vulkan_groups_for(sort->device, &dispatch, local ? push.count : push.count / 2,
                      local ? BLOCK : GROUP);
    return vulkan_dispatch(sort->device, &dispatch);
}

static Status run_merges(const Sort *sort) {
    uint64_t block = sort->padded < BLOCK ? sort->padded : BLOCK;
    if (sort->padded < 2) return STATUS_OK;
    TRY(run_step(sort, (StepPush){.stage_first = 2, .stage_last = block}, true));
    for (uint64_t stage = 2 * block; stage <= sort->padded; stage *= 2) {
        for (uint64_t apart = stage / 2; apart >= block; apart /= 2)
            TRY(run_step(sort, (StepPush){.stage_first = stage, .apart = apart}, false));
        TRY(run_step(sort, (StepPush){.stage_first = stage, .stage_last = stage}, true));
    }
    return STATUS_OK;
}

static Status run_sort(Sort *sort) {
    TRY(run_keys(sort, KEYS));
    TRY(run_merges(sort));
    TRY(run_keys(sort, VALUES));
    const TensorView *out = sort->call->outputs[1];
    if (!out) return STATUS_OK;
    TensorView places = *out;
    places.buffer = sort->places.buffer;
    places.offset = 0;
    int64_t stride = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        places.strides[d] = stride;
        stride *= out->dims[d];
    }
    return vulkan_copy_view(sort->device, out, &places, sort->call->op_name);
}

Status vulkan_kernel_SORT(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view;
    TensorView values;
    if (dtype_is_quant(in->dtype)) return vulkan_no_kernel(device, call);
    int leading = in->rank > 0 ? in->rank - 1 : 0;
    Sort sort = {.device = device, .call = call, .in = in};
    if (call->outputs[0]) { // walked as far as it goes: its last dim may be shorter than the
                            // input's
        values = *call->outputs[0];
        for (int d = 0; d < in->rank; d++) values.dims[d] = in->dims[d];
        sort.values = &values;
    }
    vulkan_rows_prepare(&(RowViews){.kept = {sort.values, in},
                                    .row = {sort.values, in},
                                    .kept_rank = leading,
                                    .row_first = leading,
                                    .row_rank = in->rank,
                                    .ordered = true},
                        &sort.rows);
    TRY(vulkan_rows_check(device, call, &sort.rows));
    sort.wanted = in->rank > 0 ? (uint64_t)call->options.count : 1;
    uint64_t results = sort.rows.results;
    if (results == 0 || sort.wanted == 0 || sort.rows.count == 0) return STATUS_OK;
    sort.padded = 1;
    while (sort.padded < sort.rows.count) sort.padded *= 2;
    TRY(vulkan_scratch(device, DTYPE_INT64, (int64_t)(results * sort.padded * 2), &sort.entries));
    Status status =
        vulkan_scratch(device, DTYPE_INT64, (int64_t)(results * sort.wanted), &sort.places);
    if (status == STATUS_OK) {
        status = run_sort(&sort);
        if (status == STATUS_OK && call->outputs[1])
            vulkan_bound(call->outputs[1], 0, (int64_t)sort.rows.count - 1);
        buffer_release(sort.places.buffer);
    }
    buffer_release(sort.entries.buffer);
    return status;
}
