// GATHER, SCATTER, INDEX_PUT and NONZERO.
#include <string.h>

#include "device/cpu/cast.h"
#include "device/vulkan/kernels.h"

enum { GROUP = 256, SCATTER_GROUP = 64, NONZERO_BLOCK = 1024, WALK_STRIDES = 4 };

// As shaders/include/walk.glsl has it.
typedef struct WalkStrides {
    int64_t strides[WALK_STRIDES][RANK_MAX];
    uint32_t dims[RANK_MAX];
} WalkStrides;

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

static VulkanDispatch walk_dispatch(VulkanShader shader, const Walk *walk,
                                    const WalkStrides *strides) {
    return (VulkanDispatch){.shader = shader,
                            .n_constants = 1,
                            .constants = {(uint32_t)walk->rank},
                            .arguments = strides,
                            .arguments_bytes = sizeof *strides,
                            .cost = (uint64_t)walk->count * 2};
}

static void add_constant(VulkanDispatch *dispatch, uint32_t value) {
    dispatch->constants[dispatch->n_constants++] = value;
}

// --- ranges --------------------------------------------------------------------------------------

typedef struct CheckPush {
    uint64_t index, result;
    int64_t size;
    uint32_t count;
} CheckPush;

static Status run_check(Device *device, const KernelCall *call, const TensorView *index,
                        int64_t size, const TensorView *result) {
    Walk walk;
    walk_prepare(&walk, 1, &index, index->rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    VulkanDispatch dispatch = walk_dispatch(SHADER_CHECK_INDEX, &walk, &strides);
    add_constant(&dispatch, index->dtype);
    CheckPush push = {vulkan_address(index), vulkan_address(result), size, (uint32_t)walk.count};
    dispatch.push = &push;
    dispatch.push_bytes = sizeof push;
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
    TensorView result;
    TRY(vulkan_scratch(device, DTYPE_INT32, 1, &result));
    Status status = run_check(device, call, index, size, &result);
    buffer_release(result.buffer);
    if (status == STATUS_OK) vulkan_bound(index, -size, size - 1);
    return status;
}

// A 1-D (or rank 0) index as a view of the dims of `like`, the same along all dims but `dim`.
static TensorView expand_index(const TensorView *index, const TensorView *like, int dim) {
    TensorView expanded = *like;
    expanded.buffer = index->buffer;
    expanded.offset = index->offset;
    expanded.dtype = index->dtype;
    memset(expanded.strides, 0, sizeof expanded.strides);
    if (index->rank > 0) expanded.strides[dim] = index->strides[0];
    return expanded;
}

// The module for numbers that go from one dtype to another: whole when they only move.
static VulkanReal move_real(TensorView *from, TensorView *to) {
    static const DType bits[] = {
        [1] = DTYPE_INT8, [2] = DTYPE_INT16, [4] = DTYPE_INT32, [8] = DTYPE_INT64};
    if (from->dtype == to->dtype) from->dtype = to->dtype = bits[dtype_size(to->dtype)];
    if (from->dtype == DTYPE_FLOAT64 || to->dtype == DTYPE_FLOAT64) return REAL_F64;
    return vulkan_real_of(from->dtype);
}

typedef struct GatherPush {
    uint64_t in, out, index;
    int64_t size, stride;
    uint32_t count;
} GatherPush;

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
    TensorView expanded = call->options.op == 0 ? expand_index(index, &out, dim) : *index;
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
    VulkanDispatch dispatch = walk_dispatch(shader, &walk, &strides);
    add_constant(&dispatch,
                 (uint32_t)out.dtype | (uint32_t)index->dtype << 4 | (uint32_t)in.dtype << 8);
    push.in = vulkan_address(&in);
    push.out = vulkan_address(&out);
    push.index = vulkan_address(index);
    push.count = (uint32_t)walk.count;
    dispatch.push = &push;
    dispatch.push_bytes = sizeof push;
    vulkan_reads(&dispatch, &in);
    vulkan_reads(&dispatch, index);
    vulkan_writes(&dispatch, &out);
    vulkan_groups_for(device, &dispatch, (uint64_t)walk.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

typedef struct ScatterPush {
    uint64_t in, out, index;
    int64_t size, out_stride, in_stride, index_stride;
    uint32_t count, length;
} ScatterPush;

static Status scatter_into(Device *device, const KernelCall *call, const TensorView *target) {
    TensorView out = *target, source = *call->inputs[0].view;
    const TensorView *index = call->inputs[1].view;
    int dim = call->options.dim;
    bool add = call->options.op == 1;
    TensorView places = call->options.integers[0] == 1 ? expand_index(index, &source, dim) : *index;
    if (view_count(&places) == 0) return STATUS_OK;
    TRY(check_range(device, call, index, out.dims[dim]));
    ScatterPush push = {.size = out.dims[dim],
                        .out_stride = out.strides[dim],
                        .in_stride = source.strides[dim],
                        .index_stride = places.strides[dim],
                        .length = (uint32_t)places.dims[dim]};
    VulkanReal real = out.dtype == DTYPE_FLOAT64 || source.dtype == DTYPE_FLOAT64
                          ? REAL_F64
                          : vulkan_real_of(add ? out.dtype : source.dtype);
    if (!add) real = move_real(&source, &out);
    places.dims[dim] = 1;
    memcpy(out.dims, places.dims, sizeof out.dims);
    memcpy(source.dims, places.dims, sizeof source.dims);
    Walk walk;
    walk_prepare(&walk, 3, (const TensorView *const[]){&out, &source, &places}, out.rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    VulkanDispatch dispatch =
        walk_dispatch(vulkan_shader_of(SHADER_SCATTER_F32, real), &walk, &strides);
    add_constant(&dispatch,
                 (uint32_t)source.dtype | (uint32_t)out.dtype << 4 | (uint32_t)places.dtype << 8);
    add_constant(&dispatch, add);
    dispatch.cost *= push.length;
    push.in = vulkan_address(&source);
    push.out = vulkan_address(&out);
    push.index = vulkan_address(&places);
    push.count = (uint32_t)walk.count;
    dispatch.push = &push;
    dispatch.push_bytes = sizeof push;
    vulkan_reads(&dispatch, &source);
    vulkan_reads(&dispatch, &places);
    vulkan_writes(&dispatch, &out);
    vulkan_groups_for(device, &dispatch, (uint64_t)walk.count, SCATTER_GROUP);
    return vulkan_dispatch(device, &dispatch);
}

// Sums of 16-bit floats are kept in float32 and rounded once.
static Status scatter_add_halves(Device *device, const KernelCall *call, const TensorView *out) {
    TensorView wide = *out, flat;
    TRY(vulkan_scratch(device, DTYPE_FLOAT32, view_count(out), &flat));
    wide.buffer = flat.buffer;
    wide.dtype = DTYPE_FLOAT32;
    wide.offset = 0;
    int64_t count = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        wide.strides[d] = count;
        count *= out->dims[d];
    }
    Status status = vulkan_copy_view(device, &wide, out, call->op_name);
    if (status == STATUS_OK) status = scatter_into(device, call, &wide);
    if (status == STATUS_OK) status = vulkan_copy_view(device, out, &wide, call->op_name);
    buffer_release(flat.buffer);
    return status;
}

Status vulkan_kernel_SCATTER(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0], *source = call->inputs[0].view;
    if (dtype_is_quant(out->dtype) || dtype_is_quant(source->dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s from %s", call->op_name,
                    dtype_name(out->dtype), dtype_name(source->dtype));
    bool half = out->dtype == DTYPE_FLOAT16 || out->dtype == DTYPE_BFLOAT16;
    if (half && call->options.op == 1 && view_count(out) > 0)
        return scatter_add_halves(device, call, out);
    return scatter_into(device, call, out);
}

// --- elements chosen by truth --------------------------------------------------------------------

typedef struct PutPush {
    uint64_t in, out, mask;
    uint32_t count;
} PutPush;

Status vulkan_kernel_INDEX_PUT(Device *device, const KernelCall *call) {
    TensorView out = *call->outputs[0], mask, values;
    view_broadcast(call->inputs[1].view, &out, &mask);
    const TensorView *source = call->inputs[0].view;
    if (dtype_is_quant(out.dtype) || (source && dtype_is_quant(source->dtype)))
        return fail(STATUS_DTYPE, "%s cannot write quantised numbers", call->op_name);
    if (view_count(&out) == 0) return STATUS_OK;
    PutPush push = {.mask = vulkan_address(&mask)};
    if (source) {
        view_broadcast(source, &out, &values);
        push.in = vulkan_address(&values);
    } else { // the bits of the number, as a whole number of its size
        values = (TensorView){.dtype = out.dtype};
        cast_scalar(&call->inputs[0].scalar, out.dtype, &push.in);
    }
    VulkanReal real = move_real(&values, &out);
    Walk walk;
    walk_prepare(&walk, source ? 3 : 2, (const TensorView *const[]){&out, &mask, &values},
                 out.rank);
    TRY(check_count(device, call, walk.count));
    WalkStrides strides;
    fill_strides(&walk, &strides);
    VulkanDispatch dispatch =
        walk_dispatch(vulkan_shader_of(SHADER_INDEX_PUT_F32, real), &walk, &strides);
    add_constant(&dispatch, (uint32_t)values.dtype | (uint32_t)out.dtype << 4);
    add_constant(&dispatch, !source);
    push.out = vulkan_address(&out);
    push.count = (uint32_t)walk.count;
    dispatch.push = &push;
    dispatch.push_bytes = sizeof push;
    vulkan_reads(&dispatch, &mask);
    if (source) vulkan_reads(&dispatch, source);
    vulkan_writes(&dispatch, &out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

typedef struct NonzeroPush {
    uint64_t in, out, counts;
    int64_t out_row, out_column;
    uint32_t count;
} NonzeroPush;

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
    add_constant(&dispatch, in->dtype);
    add_constant(&dispatch, writes);
    NonzeroPush push = {.in = vulkan_address(in),
                        .out = vulkan_address(out),
                        .counts = vulkan_address(counts),
                        .out_row = out->strides[0],
                        .out_column = out->strides[1],
                        .count = (uint32_t)walk.count};
    dispatch.push = &push;
    dispatch.push_bytes = sizeof push;
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
    TensorView counts, sums;
    int64_t blocks = (total + NONZERO_BLOCK - 1) / NONZERO_BLOCK;
    TRY(vulkan_scratch(device, DTYPE_INT64, blocks, &counts));
    Status status = vulkan_scratch(device, DTYPE_INT64, blocks, &sums);
    if (status == STATUS_OK) {
        KernelCall scan = {.kernel = KERNEL_SCAN,
                           .n_inputs = 1,
                           .n_outputs = 1,
                           .inputs = {{.view = &counts}},
                           .outputs = {&sums},
                           .op_name = call->op_name};
        status = run_nonzero(device, call, &counts, false);
        if (status == STATUS_OK) status = vulkan_kernel_SCAN(device, &scan);
        if (status == STATUS_OK) status = run_nonzero(device, call, &sums, true);
        buffer_release(sums.buffer);
    }
    buffer_release(counts.buffer);
    return status;
}
