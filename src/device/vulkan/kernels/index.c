// GATHER, SCATTER, INDEX_PUT and NONZERO.
#include <string.h>

#include "device/cpu/cast.h"
#include "device/vulkan/bounds.h"
#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 256,
    NONZERO_BLOCK = 4096,
    SCATTER_TILE = 16,        // of a sorted list, that a thread goes through
    FOUR = 4,                 // numbers side by side that a thread takes
    SCATTER_LANES = 32,       // threads that join partial sums, where few others do
    SCATTER_SORTED = 1 << 22, // indexes of several lists that are sorted at a time
    SCATTER_SHORT = 32,       // a list that need not be sorted
    SCATTER_MANY = 1 << 17,   // others that keep a device busy
};

static void fill_strides(const Walk *walk, WalkStrides *out) {
    memset(out, 0, sizeof *out);
    for (int d = 0; d < walk->rank; d++) {
        out->dims[d] = (uint32_t)walk->dims[d];
        for (int v = 0; v < walk->n_views; v++) out->strides[v][d] = walk->strides[v][d];
    }
}

static Status check_count(Device *device, const KernelCall *call, int64_t count) {
    if (count <= UINT32_MAX) return STATUS_OK;
    return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                device->name);
}

// But for its constants and what is pushed.
static VulkanDispatch walk_dispatch(VulkanShader shader, const Walk *walk,
                                    const WalkStrides *strides) {
    return (VulkanDispatch){
        .shader = shader, VULKAN_ARGUMENTS(*strides), .cost = (uint64_t)walk->count * 2};
}

// Whether four neighbours of a view can be read or written at once; the dims of the walk are such.
static bool goes_by_fours(const Walk *walk, int view, const TensorView *stored) {
    int last = walk->rank - 1;
    if (last < 0 || walk->dims[last] % FOUR != 0 || walk->strides[view][last] != 1) return false;
    for (int d = 0; d < last; d++)
        if (walk->strides[view][d] % FOUR != 0) return false;
    return vulkan_address(stored) % (FOUR * dtype_size(stored->dtype)) == 0;
}

// Every item of the walk becomes four. Returns their number.
static uint32_t take_fours(const Walk *walk, WalkStrides *strides) {
    int last = walk->rank - 1;
    strides->dims[last] /= FOUR;
    for (int v = 0; v < walk->n_views; v++) strides->strides[v][last] *= FOUR;
    return (uint32_t)(walk->count / FOUR);
}

// --- ranges --------------------------------------------------------------------------------------

static Status run_check(Device *device, const KernelCall *call, const TensorView *index,
                        int64_t size, const TensorView *result) {
    Walk walk;
    walk_prepare(&walk, 1, &index, index->rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    VulkanDispatch dispatch = walk_dispatch(SHADER_CHECK_INDEX, &walk, &strides);
    VULKAN_SET_CONSTANTS(&dispatch, check_index, .RANK = (uint32_t)walk.rank,
                         .INDEX_DTYPE = index->dtype);
    CheckIndexPush push = {.index_address = vulkan_address(index),
                           .result = vulkan_address(result),
                           .size = size,
                           .count = (uint32_t)walk.count};
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_reads(&dispatch, index);
    vulkan_writes(&dispatch, result);
    vulkan_groups_for(device, &dispatch, (uint64_t)walk.count, GROUP);
    TRY(vulkan_fill(device, result->buffer, 0, 4, 0));
    TRY(vulkan_dispatch(device, &dispatch));
    uint32_t out_of_range = 0;
    TRY(buffer_download(result->buffer, 0, &out_of_range, sizeof out_of_range));
    if (!out_of_range) return STATUS_OK;
    return fail(STATUS_INDEX, "%s: an index is out of range for a dimension of size %lld",
                call->op_name, (long long)size);
}

// Indexes are data: unless they are known to be in range, they must be read to know, and at once,
// because the error belongs to this operation and may be caught.
static Status check_range(Device *device, const KernelCall *call, const TensorView *index,
                          int64_t size) {
    if (view_count(index) == 0 || vulkan_is_bound(index, -size, size - 1)) return STATUS_OK;
    SCOPED_SCRATCH(result);
    TRY(vulkan_scratch(device, DTYPE_INT32, 1, &result));
    TRY(run_check(device, call, index, size, &result));
    vulkan_bound(index, -size, size - 1);
    return STATUS_OK;
}

// The module for numbers that go from one dtype to another: whole when they only move.
static VulkanReal move_real(TensorView *from, TensorView *to) {
    static const DType bits[] = {
        [1] = DTYPE_INT8, [2] = DTYPE_INT16, [4] = DTYPE_INT32, [8] = DTYPE_INT64};
    if (from->dtype == to->dtype) from->dtype = to->dtype = bits[dtype_size(to->dtype)];
    if (from->dtype == DTYPE_FLOAT64 || to->dtype == DTYPE_FLOAT64) return REAL_F64;
    return vulkan_real_of(from->dtype);
}

// Four numbers of one slice, or with `own` four that have each an index.
static bool gathers_fours(const Walk *walk, const TensorView *out, const TensorView *in, bool own,
                          int64_t stride) {
    if (dtype_is_quant(in->dtype) || !goes_by_fours(walk, 0, out)) return false;
    return own || (goes_by_fours(walk, 1, in) && stride % FOUR == 0);
}

Status vulkan_kernel_GATHER(Device *device, const KernelCall *call) {
    TensorView out = *call->outputs[0], in = *call->inputs[0].view;
    const TensorView *index = call->inputs[1].view;
    int dim = call->options.dim;
    bool quantised = dtype_is_quant(in.dtype);
    if (quantised && (call->options.op != 0 || dim != 0 || dtype_is_quant(out.dtype)))
        return fail(STATUS_DTYPE, "%s takes only whole rows of %s, and gives floats", call->op_name,
                    dtype_name(in.dtype));
    if (quantised && out.dtype == DTYPE_FLOAT64) return vulkan_no_kernel(device, call);
    if (view_count(&out) == 0) return STATUS_OK;
    TRY(check_range(device, call, index, in.dims[dim]));
    TensorView expanded = call->options.op == 0 ? view_expand_index(index, &out, dim) : *index;
    GatherPush push = {.size = in.dims[dim], .stride = in.strides[dim]};
    VulkanShader shader = SHADER_GATHER_QUANTISED;
    if (!quantised) shader = vulkan_shader_of(SHADER_GATHER_F32, move_real(&in, &out));
    memcpy(in.dims, out.dims, sizeof in.dims);
    in.strides[dim] = 0;
    Walk walk;
    walk_prepare(&walk, 3, (const TensorView *const[]){&out, &in, &expanded}, out.rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    int last = walk.rank - 1;
    push.in_address = vulkan_address(&in);
    push.out_address = vulkan_address(&out);
    push.index_address = vulkan_address(index);
    push.count = (uint32_t)walk.count;
    push.in_apart = last < 0 ? 0 : walk.strides[1][last];
    push.index_apart = last < 0 ? 0 : walk.strides[2][last];
    bool own = push.index_apart != 0, fours = gathers_fours(&walk, &out, &in, own, push.stride);
    if (fours) push.count = take_fours(&walk, &strides);
    VulkanDispatch dispatch = walk_dispatch(shader, &walk, &strides);
    uint32_t dtypes = (uint32_t)out.dtype | (uint32_t)index->dtype << 4 | (uint32_t)in.dtype << 8;
    VULKAN_SET_CONSTANTS(&dispatch, gather, .RANK = (uint32_t)walk.rank, .DTYPES = dtypes,
                         .WIDTH = fours ? FOUR : 1, .OWN = fours && own);
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_reads(&dispatch, &in);
    vulkan_reads(&dispatch, index);
    vulkan_writes(&dispatch, &out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    TRY(vulkan_dispatch(device, &dispatch));
    vulkan_bound_as(call->outputs[0], call->inputs[0].view);
    return STATUS_OK;
}

typedef struct Scatter {
    Device *device;
    const KernelCall *call;
    TensorView out, source, index; // without the dim; dtypes as the shader moves them
    VulkanReal real;
    bool add, slices;
    uint32_t width; // others that lie side by side and go together: 1 or 4
    Walk walk;
    WalkStrides strides;
    ScatterPush push;
    VulkanSort sorted;
    TensorView partials;
} Scatter;

static Status run_scatter(const Scatter *s, uint32_t kind) {
    ScatterPush push = s->push;
    VulkanDispatch dispatch =
        walk_dispatch(vulkan_shader_of(SHADER_SCATTER_F32, s->real), &s->walk, &s->strides);
    uint64_t units = (uint64_t)push.count * (kind == SCATTER_DIRECT ? 1 : push.tiles);
    if (kind == SCATTER_KEYS) units = (uint64_t)s->sorted.rows * push.length;
    if (kind == SCATTER_ENDS) units *= push.lanes;
    uint32_t width = kind >= SCATTER_LAST ? s->width : 1;
    uint32_t dtypes =
        (uint32_t)s->source.dtype | (uint32_t)s->out.dtype << 4 | (uint32_t)s->index.dtype << 8;
    VULKAN_SET_CONSTANTS(&dispatch, scatter, .RANK = (uint32_t)s->walk.rank, .DTYPES = dtypes,
                         .KIND = kind, .ADD = kind == SCATTER_DIRECT && s->add, .SLICES = s->slices,
                         .WIDTH = width);
    dispatch.cost *= push.length;
    VULKAN_SET_PUSHED(&dispatch, push);
    if (kind == SCATTER_KEYS) {
        vulkan_reads(&dispatch, &s->index);
        vulkan_writes(&dispatch, &s->sorted.keys);
    } else {
        vulkan_reads(&dispatch, &s->source);
        vulkan_reads(&dispatch, kind == SCATTER_DIRECT ? &s->index : &s->sorted.keys);
        if (kind != SCATTER_DIRECT) vulkan_reads(&dispatch, &s->sorted.places);
        if (kind == SCATTER_ENDS) vulkan_reads(&dispatch, &s->partials);
        if (kind == SCATTER_SUMS) vulkan_writes(&dispatch, &s->partials);
        vulkan_writes(&dispatch, &s->out);
    }
    vulkan_groups_for(s->device, &dispatch, units, GROUP);
    return vulkan_dispatch(s->device, &dispatch);
}

// Others of slices that lie side by side go by fours.
static void widen_scatter(Scatter *s) {
    if (!s->slices || (s->push.out_stride | s->push.in_stride) % FOUR != 0) return;
    if (!goes_by_fours(&s->walk, 0, &s->out) || !goes_by_fours(&s->walk, 1, &s->source)) return;
    s->width = FOUR;
    s->push.count = take_fours(&s->walk, &s->strides);
}

static Status scatter_lists(Scatter *s) {
    if (s->add) {
        int64_t sums = (int64_t)s->push.tiles * s->push.count * s->width * 2;
        TRY(vulkan_scratch(s->device, DTYPE_INT64, sums, &s->partials));
        s->push.partials = vulkan_address(&s->partials);
    }
    s->push.keys = vulkan_address(&s->sorted.keys);
    s->push.places = vulkan_address(&s->sorted.places);
    Status status = run_scatter(s, s->add ? SCATTER_SUMS : SCATTER_LAST);
    if (status == STATUS_OK && s->add) status = run_scatter(s, SCATTER_ENDS);
    if (s->add) buffer_release(s->partials.buffer);
    return status;
}

// Lists of indexes are sorted, so that numbers for one place are neighbours.
static Status sort_lists(Scatter *s) {
    uint32_t lists = s->slices ? 1 : s->push.count;
    s->sorted = (VulkanSort){.device = s->device,
                             .op_name = s->call->op_name,
                             .rows = lists,
                             .count = s->push.length,
                             .wanted = s->push.length,
                             .end_bit = 1,
                             .keep_keys = true};
    while (s->sorted.end_bit < 32 && s->push.size >> s->sorted.end_bit != 0) s->sorted.end_bit++;
    TRY(vulkan_scratch(s->device, DTYPE_INT32, (int64_t)lists * s->push.length, &s->sorted.keys));
    s->push.keys = vulkan_address(&s->sorted.keys);
    Status status = run_scatter(s, SCATTER_KEYS);
    if (status == STATUS_OK) status = vulkan_sort(&s->sorted);
    if (status == STATUS_OK) status = scatter_lists(s);
    vulkan_sort_end(&s->sorted);
    return status;
}

// Slices share one list. The others' lists are taken some at a time: what is sorted stays near.
static Status scatter_sorted(Scatter *s) {
    uint32_t others = s->push.count, most = SCATTER_SORTED / s->push.length;
    if (most == 0) most = 1;
    s->push.tiles = (s->push.length + SCATTER_TILE - 1) / SCATTER_TILE;
    s->push.lanes = SCATTER_LANES;
    if (s->slices) {
        widen_scatter(s);
        if (s->push.count >= SCATTER_LANES) s->push.lanes = 1;
        return sort_lists(s);
    }
    for (uint32_t first = 0; first < others; first += s->push.count) {
        s->push.first_other = first;
        s->push.count = others - first > most ? most : others - first;
        TRY(sort_lists(s));
    }
    return STATUS_OK;
}

// In order without sorting: short lists, or as many of the others as keep the device busy, when
// neighbours write to neighbours. Sums of 16-bit floats are rounded once, which takes lists.
static bool is_direct(const Scatter *s) {
    const Walk *walk = &s->walk;
    DType dtype = s->out.dtype;
    if (s->add && (dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16)) return false;
    bool adjacent = walk->rank > 0 && walk->strides[0][walk->rank - 1] == 1 &&
                    walk->strides[1][walk->rank - 1] == 1;
    return (adjacent && s->push.count >= SCATTER_MANY) || s->push.length <= SCATTER_SHORT;
}

static Status scatter_into(Scatter *s, const TensorView *index) {
    int dim = s->call->options.dim;
    s->index = s->slices ? view_expand_index(index, &s->source, dim) : *index;
    int64_t count = view_count(&s->index), size = s->out.dims[dim];
    if (count == 0) return STATUS_OK;
    TRY(check_range(s->device, s->call, index, size));
    s->push = (ScatterPush){.size = size,
                            .out_stride = s->out.strides[dim],
                            .in_stride = s->source.strides[dim],
                            .index_stride = s->index.strides[dim],
                            .length = (uint32_t)s->index.dims[dim]};
    s->index.dims[dim] = 1;
    memcpy(s->out.dims, s->index.dims, sizeof s->out.dims);
    memcpy(s->source.dims, s->index.dims, sizeof s->source.dims);
    const TensorView *views[] = {&s->out, &s->source, &s->index};
    walk_prepare(&s->walk, 3, views, s->out.rank);
    TRY(check_count(s->device, s->call, s->walk.count));
    fill_strides(&s->walk, &s->strides);
    s->push.in_address = vulkan_address(&s->source);
    s->push.out_address = vulkan_address(&s->out);
    s->push.index_address = vulkan_address(&s->index);
    s->push.count = (uint32_t)s->walk.count;
    s->width = 1;
    if (is_direct(s)) return run_scatter(s, SCATTER_DIRECT);
    VulkanScatter scatter = {.device = s->device,
                             .op_name = s->call->op_name,
                             .out = &s->out,
                             .source = &s->source,
                             .index = &s->index,
                             .real = s->real,
                             .walk = &s->walk,
                             .strides = &s->strides,
                             .push = &s->push,
                             .slices = s->slices};
    if (s->add && vulkan_can_add(&scatter)) return vulkan_scatter_add(&scatter);
    int64_t keys = s->slices ? s->push.length : count;
    TRY(check_count(s->device, s->call, size > keys ? size : keys));
    return scatter_sorted(s);
}

Status vulkan_kernel_SCATTER(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0], *source = call->inputs[0].view;
    if (dtype_is_quant(out->dtype) || dtype_is_quant(source->dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s from %s", call->op_name,
                    dtype_name(out->dtype), dtype_name(source->dtype));
    Scatter s = {.device = device,
                 .call = call,
                 .out = *out,
                 .source = *source,
                 .add = call->options.op == 1,
                 .slices = call->options.integers[0] == 1};
    s.real = vulkan_real_of(out->dtype);
    if (!s.add)
        s.real = move_real(&s.source, &s.out);
    else if (out->dtype == DTYPE_FLOAT64 || source->dtype == DTYPE_FLOAT64)
        s.real = REAL_F64;
    return scatter_into(&s, call->inputs[1].view);
}

// --- elements chosen by a condition
// --------------------------------------------------------------------

Status vulkan_kernel_INDEX_PUT(Device *device, const KernelCall *call) {
    TensorView out = *call->outputs[0], mask, values;
    view_broadcast(call->inputs[1].view, &out, &mask);
    const TensorView *source = call->inputs[0].view;
    if (dtype_is_quant(out.dtype) || (source && dtype_is_quant(source->dtype)))
        return fail(STATUS_DTYPE, "%s cannot write quantised numbers", call->op_name);
    if (view_count(&out) == 0) return STATUS_OK;
    IndexPutPush push = {.mask_address = vulkan_address(&mask)};
    if (source) {
        view_broadcast(source, &out, &values);
        push.in_address = vulkan_address(&values);
    } else { // the bits of the number, as an integral number of its size
        values = (TensorView){.dtype = out.dtype};
        cast_scalar(&call->inputs[0].scalar, out.dtype, &push.in_address);
    }
    VulkanReal real = move_real(&values, &out);
    Walk walk;
    walk_prepare(&walk, source ? 3 : 2, (const TensorView *const[]){&out, &mask, &values},
                 out.rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    bool fours = goes_by_fours(&walk, 0, &out) && goes_by_fours(&walk, 1, &mask) &&
                 (!source || goes_by_fours(&walk, 2, &values));
    push.count = fours ? take_fours(&walk, &strides) : (uint32_t)walk.count;
    VulkanDispatch dispatch =
        walk_dispatch(vulkan_shader_of(SHADER_INDEX_PUT_F32, real), &walk, &strides);
    VULKAN_SET_CONSTANTS(&dispatch, index_put, .RANK = (uint32_t)walk.rank,
                         .DTYPES = (uint32_t)values.dtype | (uint32_t)out.dtype << 4,
                         .IMMEDIATE = !source, .WIDTH = fours ? FOUR : 1);
    push.out_address = vulkan_address(&out);
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_reads(&dispatch, &mask);
    if (source) vulkan_reads(&dispatch, source);
    vulkan_writes(&dispatch, &out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

static Status run_nonzero(Device *device, const KernelCall *call, const TensorView *counts,
                          bool writes) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    WalkStrides strides = {0};
    for (int d = 0; d < in->rank; d++) {
        strides.dims[d] = (uint32_t)in->dims[d];
        strides.strides[0][d] = in->strides[d];
    }
    Walk walk = {.rank = in->rank, .count = view_count(in)};
    VulkanDispatch dispatch = walk_dispatch(
        vulkan_shader_of(SHADER_NONZERO_F32, vulkan_real_of(in->dtype)), &walk, &strides);
    bool fours = view_is_contiguous(in) && vulkan_address(in) % (FOUR * dtype_size(in->dtype)) == 0;
    VULKAN_SET_CONSTANTS(&dispatch, nonzero, .RANK = (uint32_t)walk.rank, .IN_DTYPE = in->dtype,
                         .WRITES = writes, .FOURS = fours);
    NonzeroPush push = {.in_address = vulkan_address(in),
                        .out_address = vulkan_address(out),
                        .counts = vulkan_address(counts),
                        .out_row = out->strides[0],
                        .out_column = out->strides[1],
                        .count = (uint32_t)walk.count};
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_reads(&dispatch, in);
    if (writes) {
        vulkan_reads(&dispatch, counts);
        vulkan_writes(&dispatch, out);
    } else {
        vulkan_writes(&dispatch, counts);
    }
    vulkan_groups_for(device, &dispatch, (uint64_t)walk.count, NONZERO_BLOCK);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_NONZERO(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (dtype_is_quant(in->dtype))
        return fail(STATUS_DTYPE, "%s cannot read %s", call->op_name, dtype_name(in->dtype));
    int64_t total = view_count(in);
    if (view_count(out) == 0 || total == 0) return STATUS_OK;
    TRY(check_count(device, call, total));
    SCOPED_SCRATCH(counts);
    SCOPED_SCRATCH(sums);
    int64_t blocks = (total + NONZERO_BLOCK - 1) / NONZERO_BLOCK;
    TRY(vulkan_scratch(device, DTYPE_INT64, blocks, &counts));
    TRY(vulkan_scratch(device, DTYPE_INT64, blocks, &sums));
    KernelCall scan = {.kernel = KERNEL_SCAN,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.view = &counts}},
                       .outputs = {&sums},
                       .op_name = call->op_name};
    TRY(run_nonzero(device, call, &counts, false));
    TRY(vulkan_kernel_SCAN(device, &scan));
    return run_nonzero(device, call, &sums, true);
}
