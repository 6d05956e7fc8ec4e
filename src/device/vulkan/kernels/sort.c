// SORT: numbers become keys, keys are sorted with their places, and places become values.
#include "device/vulkan/bounds.h"
#include "device/vulkan/kernels/kernels.h"

enum { GROUP = 256 };

typedef struct Sort {
    Device *device;
    const KernelCall *call;
    const TensorView *in, *values; // values: NULL for none
    VulkanRows rows;
    VulkanSort keys;
    uint32_t wanted;
} Sort;

static Status run_keys(const Sort *sort, uint32_t kind, const TensorView *places) {
    const TensorView *keys = kind == SORT_KEYS ? &sort->keys.keys : &sort->keys.places;
    SortKeysPush push = {.in_address = vulkan_address(sort->in),
                         .values = sort->values ? vulkan_address(sort->values) : 0,
                         .places = places ? vulkan_address(places) : 0,
                         .keys = vulkan_address(keys),
                         .results = (uint32_t)sort->rows.results,
                         .count = (uint32_t)sort->rows.count,
                         .wanted = sort->wanted,
                         .sorted = sort->keys.count};
    uint64_t numbers = sort->rows.results * (kind == SORT_KEYS ? push.count : push.wanted);
    VulkanDispatch dispatch = {
        .shader = sort->keys.wide ? SHADER_SORT_KEYS_64 : SHADER_SORT_KEYS_32,
        VULKAN_CONSTANTS(sort_keys, .RANKS = sort->rows.ranks, .DTYPE = sort->in->dtype,
                         .KIND = kind, .DESCENDING = kind == SORT_KEYS && sort->keys.descending),
        VULKAN_ARGUMENTS(sort->rows.arguments),
        VULKAN_PUSHED(push),
        .cost = numbers * 4};
    vulkan_reads(&dispatch, sort->in);
    if (kind == SORT_KEYS) {
        vulkan_writes(&dispatch, keys);
    } else {
        vulkan_reads(&dispatch, keys);
        if (places) vulkan_writes(&dispatch, places);
        if (sort->values) vulkan_writes(&dispatch, sort->values);
    }
    vulkan_groups_for(sort->device, &dispatch, numbers, GROUP);
    return vulkan_dispatch(sort->device, &dispatch);
}

// Places are written side by side; where they shall not lie so, by way of a copy.
static Status run_values(const Sort *sort) {
    const TensorView *out = sort->call->outputs[1];
    if (!out || view_is_contiguous(out)) return run_keys(sort, SORT_VALUES, out);
    SCOPED_SCRATCH(flat);
    TensorView places = *out;
    TRY(vulkan_scratch(sort->device, DTYPE_INT64, view_count(out), &flat));
    places.buffer = flat.buffer;
    places.offset = 0;
    int64_t stride = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        places.strides[d] = stride;
        stride *= out->dims[d];
    }
    TRY(run_keys(sort, SORT_VALUES, &places));
    return vulkan_copy_view(sort->device, out, &places, sort->call->op_name);
}

static bool lies_plain(const TensorView *out, const TensorView *in) {
    return !out || (view_is_contiguous(out) && out->buffer != in->buffer);
}

// What lies contiguous is read by the first pass and written by the last; else numbers become keys
// before, and places become values after.
static Status run_sort(Sort *sort, DType keys) {
    VulkanSort *by = &sort->keys;
    const TensorView *const *outputs = sort->call->outputs;
    if (view_is_contiguous(sort->in) && lies_plain(outputs[0], sort->in) &&
        lies_plain(outputs[1], sort->in)) {
        by->numbers = *sort->in;
        for (int i = 0; i < 2; i++) by->outputs[i] = outputs[i];
    } else {
        uint64_t all = sort->rows.results * sort->rows.count;
        TRY(vulkan_sort_room(by, keys, all, &by->keys));
        TRY(run_keys(sort, SORT_KEYS, NULL));
    }
    TRY(vulkan_sort(by));
    if (!by->finished) TRY(run_values(sort));
    if (outputs[1]) vulkan_bound(outputs[1], 0, (int64_t)sort->rows.count - 1);
    return STATUS_OK;
}

// How many of the last bits of keys decide: those that numbers known to be small have.
static uint32_t deciding_bits(const TensorView *in) {
    uint32_t bits = (uint32_t)dtype_size(in->dtype) * 8;
    for (uint32_t few = 8; few < bits; few += 8)
        if (!dtype_is_float(in->dtype) && vulkan_is_bound(in, 0, (INT64_C(1) << few) - 1))
            return few;
    return bits;
}

static Status prepare(Sort *sort, TensorView *values) {
    const KernelCall *call = sort->call;
    const TensorView *in = sort->in;
    int leading = in->rank > 0 ? in->rank - 1 : 0;
    if (call->outputs[0]) { // walked as far as it goes: its last dim may be shorter than the
                            // input's
        *values = *call->outputs[0];
        for (int d = 0; d < in->rank; d++) values->dims[d] = in->dims[d];
        sort->values = values;
    }
    vulkan_rows_prepare(&(RowViews){.kept = {sort->values, in},
                                    .row = {sort->values, in},
                                    .kept_rank = leading,
                                    .row_first = leading,
                                    .row_rank = in->rank,
                                    .ordered = true},
                        &sort->rows);
    sort->wanted = in->rank > 0 ? (uint32_t)call->options.count : 1;
    TRY(vulkan_rows_check(sort->device, call, &sort->rows));
    if (sort->rows.results * sort->rows.count <= UINT32_MAX) return STATUS_OK;
    return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                sort->device->name);
}

// Outputs are written last: until then what is sorted may lie there, which saves as much scratch.
static void offer_rooms(Sort *sort) {
    for (int i = 0; i < VULKAN_SORT_ROOMS; i++) {
        const TensorView *out = sort->call->outputs[1 - i];
        if (!out || !view_is_contiguous(out) || out->buffer == sort->in->buffer) continue;
        sort->keys.rooms[i] = *out;
        sort->keys.rooms[i].dims[0] = view_count(out) * (int64_t)dtype_size(out->dtype);
    }
}

Status vulkan_kernel_SORT(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view;
    if (dtype_is_quant(in->dtype)) return vulkan_no_kernel(device, call);
    Sort sort = {.device = device, .call = call, .in = in};
    TensorView values;
    TRY(prepare(&sort, &values));
    uint64_t results = sort.rows.results, count = sort.rows.count;
    if (results == 0 || sort.wanted == 0 || count == 0) return STATUS_OK;
    sort.keys = (VulkanSort){.device = device,
                             .op_name = call->op_name,
                             .rows = (uint32_t)results,
                             .count = (uint32_t)count,
                             .wanted = sort.wanted};
    sort.keys.dtype = in->dtype;
    sort.keys.wide = dtype_size(in->dtype) == 8;
    sort.keys.end_bit = deciding_bits(in);
    sort.keys.descending = call->options.flag;
    offer_rooms(&sort);
    Status status = run_sort(&sort, sort.keys.wide ? DTYPE_INT64 : DTYPE_INT32);
    vulkan_sort_end(&sort.keys);
    return status;
}
