// ATTENTION of many rows: by an imported program, on matrix units where the device has them for the
// dtype, else in panels.
#include <math.h>
#include <string.h>

#include "device/vulkan/kernels/kernels.h"

enum {
    WIDTH = 64, // of heads and values, in attention_matrix.comp
    WIDTH_LARGE = 128,
    GROUP_ROWS = 64,
    COLUMNS = 128, // of attention_many.comp
    SHARED_BYTES = 4 * (64 * 68 + 2 * 16 * 68 + 64 * 17),
    IMPORT_ROWS = 128, // of shaders/nvidia/attention.ptx
    IMPORT_THREADS = 384,
    IMPORT_MAPS_BYTES = 384, // of a workgroup
    IMPORT_ROOM = 4, // so many times the queries may tiles have room for, when there are many
    MULTIPROCESSORS_MANY = 128, // where the device does not say
};

typedef struct Attention {
    const KernelCall *call;
    const TensorView *q, *k, *v, *out, *mask;
    AttentionShape shape;
    uint64_t batches, rows; // rows of a key head
} Attention;

static void fill_strides(const TensorView *view, int64_t heads[3]) {
    memcpy(heads, view->strides + view->rank - 3, 3 * sizeof *heads);
}

static void describe(Attention *a, const KernelCall *call) {
    *a = (Attention){.call = call,
                     .q = call->inputs[0].view,
                     .k = call->inputs[1].view,
                     .v = call->inputs[2].view,
                     .mask = call->n_inputs > 3 ? call->inputs[3].view : NULL,
                     .out = call->outputs[0],
                     .batches = 1};
    AttentionShape *shape = &a->shape;
    int lead = a->q->rank - 3;
    const TensorView *views[5] = {a->q, a->k, a->v, a->out, a->mask};
    int64_t *heads[5] = {shape->q, shape->k, shape->v, shape->to, shape->mask};
    for (int i = 0; i < 5; i++) {
        if (!views[i]) continue;
        fill_strides(views[i], heads[i]);
        for (int d = 0; d < lead; d++) shape->batch_strides[i][d] = views[i]->strides[d];
    }
    for (int d = 0; d < lead; d++) {
        shape->batch_dims[d] = (uint32_t)a->q->dims[d];
        a->batches *= (uint64_t)a->q->dims[d];
    }
    shape->batch_rank = (uint32_t)lead;
    shape->queries = (uint32_t)a->q->dims[lead];
    shape->keys = (uint32_t)a->k->dims[lead];
    shape->key_heads = (uint32_t)a->k->dims[lead + 1];
    shape->shared_heads = (uint32_t)(a->q->dims[lead + 1] / a->k->dims[lead + 1]);
    shape->width = (uint32_t)a->q->dims[lead + 2];
    shape->value_width = (uint32_t)a->v->dims[lead + 2];
    shape->k_address = vulkan_address(a->k);
    shape->v_address = vulkan_address(a->v);
    shape->mask_address = a->mask ? vulkan_address(a->mask) : 0;
    a->rows = (uint64_t)shape->queries * shape->shared_heads;
}

// Rows of `lanes` numbers can be read and written at once.
static bool in_lanes(const TensorView *view, int64_t lanes) {
    int last = view->rank - 1;
    if (view->strides[last] != 1 || view->dims[last] % lanes != 0) return false;
    for (int d = 0; d < last; d++)
        if (view->strides[d] % lanes != 0) return false;
    return vulkan_address(view) % ((uint64_t)lanes * dtype_size(view->dtype)) == 0;
}

static bool can_use_matrices(Device *device, const Attention *a) {
    DType dtype = a->q->dtype;
    if ((dtype != DTYPE_FLOAT16 && dtype != DTYPE_BFLOAT16) || a->k->dtype != dtype ||
        a->v->dtype != dtype || a->out->dtype == DTYPE_FLOAT64)
        return false;
    uint32_t needs = VULKAN_NEEDS_SUBGROUP | VULKAN_NEEDS_SUBGROUP_32 |
                     (dtype == DTYPE_BFLOAT16 ? VULKAN_NEEDS_MATRIX_BFLOAT : VULKAN_NEEDS_MATRIX);
    if ((vulkan_features(device)->has & needs) != needs) return false;
    return a->shape.width <= WIDTH_LARGE && a->shape.value_width <= WIDTH_LARGE &&
           in_lanes(a->q, 8) && in_lanes(a->k, 8) && in_lanes(a->v, 8) && in_lanes(a->out, 8);
}

// In panels: float32 sums, any strides, any width.
static bool can_use_panels(Device *device, const Attention *a) {
    const TensorView *views[] = {a->q, a->k, a->v, a->out};
    for (int i = 0; i < 4; i++)
        if (views[i]->dtype == DTYPE_FLOAT64) return false;
    return vulkan_features(device)->shared_bytes_max >= SHARED_BYTES;
}

static Status attend(Device *device, Attention *a, bool fours, VulkanDispatch *dispatch) {
    AttentionShape *shape = &a->shape;
    shape->row_blocks = (uint32_t)((a->rows + GROUP_ROWS - 1) / GROUP_ROWS);
    uint64_t groups = (uint64_t)shape->row_blocks * shape->key_heads;
    const VulkanFeatures *features = vulkan_features(device);
    if (groups > features->groups_max[0] || a->batches > features->groups_max[1])
        return fail(STATUS_DEVICE, "%s: too many heads or batches for %s", a->call->op_name,
                    device->name);
    AttentionManyPush push = {
        .q_address = vulkan_address(a->q),
        .out_address = vulkan_address(a->out),
        .scale = vulkan_real_bits(a->call->options.scalars[0] * M_LOG2E, REAL_F32)};
    uint32_t dtypes = (uint32_t)a->q->dtype | (uint32_t)a->k->dtype << 4 |
                      (uint32_t)a->v->dtype << 8 | (uint32_t)a->out->dtype << 12 |
                      (a->mask ? (uint32_t)a->mask->dtype : NO_DTYPE) << 16;
    VULKAN_SET_CONSTANTS(dispatch, attention_many, .DTYPES = dtypes,
                         .CAUSAL = a->call->options.flag, .IN_FOURS = fours);
    dispatch->arguments = shape;
    dispatch->arguments_bytes = sizeof *shape;
    VULKAN_SET_PUSHED(dispatch, push);
    dispatch->groups[0] = (uint32_t)groups;
    dispatch->groups[1] = (uint32_t)a->batches;
    dispatch->cost = a->batches * groups * dispatch->groups[2] * GROUP_ROWS * shape->keys *
                     (shape->width + shape->value_width / dispatch->groups[2]);
    for (int i = 0; i < a->call->n_inputs; i++) vulkan_reads(dispatch, a->call->inputs[i].view);
    vulkan_writes(dispatch, a->out);
    return vulkan_dispatch(device, dispatch);
}

// --- imported programs

// How an operand of shaders/nvidia/attention.ptx lies: strides of rows, heads and batches in
// eights.
typedef struct AttentionPlace {
    uint32_t row, head, batch;
} AttentionPlace;

typedef struct AttentionImport {
    uint64_t q, k, v, out, maps;
    AttentionPlace places[4]; // of q, k, v, out
    uint32_t queries, keys, heads, key_heads, width, value_width, batches;
    float scale;
} AttentionImport;

// A stride in eights; of a single one any that is none of another's.
static bool count_eights(int64_t stride, int64_t count, uint32_t *out) {
    *out = count == 1 ? 1 : (uint32_t)(stride / 8);
    return count == 1 || (stride > 0 && stride / 8 <= UINT32_MAX);
}

// Batches are one dim for it: behind each other at one distance.
static bool place_operand(const Attention *a, const TensorView *view, int which,
                          AttentionPlace *out) {
    const AttentionShape *shape = &a->shape;
    int last = (int)shape->batch_rank - 1;
    const int64_t *strides = shape->batch_strides[which];
    for (int d = last - 1; d >= 0; d--)
        if (strides[d] != strides[d + 1] * (int64_t)shape->batch_dims[d + 1]) return false;
    return count_eights(view->strides[last + 1], view->dims[last + 1], &out->row) &&
           count_eights(view->strides[last + 2], view->dims[last + 2], &out->head) &&
           count_eights(last < 0 ? 0 : strides[last], (int64_t)a->batches, &out->batch);
}

static bool describe_import(const Attention *a, AttentionImport *out) {
    const AttentionShape *shape = &a->shape;
    const TensorView *views[4] = {a->q, a->k, a->v, a->out};
    double scale = a->call->options.scalars[0] * M_LOG2E;
    *out = (AttentionImport){.q = vulkan_address(a->q),
                             .k = shape->k_address,
                             .v = shape->v_address,
                             .out = vulkan_address(a->out),
                             .queries = shape->queries,
                             .keys = shape->keys,
                             .heads = shape->shared_heads * shape->key_heads,
                             .key_heads = shape->key_heads,
                             .width = shape->width,
                             .value_width = shape->value_width,
                             .batches = (uint32_t)a->batches,
                             .scale = (float)scale};
    for (int i = 0; i < 4; i++)
        if (!place_operand(a, views[i], i, &out->places[i])) return false;
    return scale > 0 && isfinite(out->scale) && !a->mask && shape->keys > 0 &&
           (a->out->dtype == a->q->dtype || a->out->dtype == DTYPE_FLOAT32);
}

// Where the device has a program for it, unless most rows of tiles would be empty and others wait.
// A workgroup takes tile after tile.
static bool attend_import(Device *device, const Attention *a, Status *status) {
    const VulkanFeatures *features = vulkan_features(device);
    AttentionImport push;
    uint64_t blocks = ((uint64_t)a->shape.queries + IMPORT_ROWS - 1) / IMPORT_ROWS;
    uint64_t tiles = blocks * a->shape.shared_heads * a->shape.key_heads * a->batches;
    uint64_t all = tiles / a->batches * vulkan_all_rows(a->call, a->batches);
    uint64_t groups = features->multiprocessors ? features->multiprocessors : MULTIPROCESSORS_MANY;
    bool full = blocks * IMPORT_ROWS <= IMPORT_ROOM * (uint64_t)a->shape.queries;
    if (!(features->has & VULKAN_NEEDS_IMPORT) || tiles > INT32_MAX || (all > groups && !full) ||
        !describe_import(a, &push))
        return false;
    if (groups > tiles) groups = tiles;
    bool wide = a->shape.width > WIDTH || a->shape.value_width > WIDTH;
    VulkanDispatch dispatch = {
        .shader = a->q->dtype == DTYPE_BFLOAT16 ? SHADER_ATTENTION_BFLOAT_IMPORT
                                                : SHADER_ATTENTION_HALF_IMPORT,
        VULKAN_CONSTANTS(attention_import, .causal = a->call->options.flag,
                         .out_float32 = a->out->dtype == DTYPE_FLOAT32),
        .groups = {(uint32_t)groups, 1, 1},
        .group_threads = IMPORT_THREADS,
        VULKAN_PUSHED(push),
        .cost =
            tiles * IMPORT_ROWS * push.keys * (push.width + push.value_width) / VULKAN_IMPORT_SPEED,
    };
    if (wide) dispatch.shader++;
    if (!vulkan_imports(device, &dispatch)) return false;
    vulkan_reads(&dispatch, a->q);
    vulkan_reads(&dispatch, a->k);
    vulkan_reads(&dispatch, a->v);
    vulkan_writes(&dispatch, a->out);
    *status = vulkan_dispatch_mapped(device, &dispatch, groups * IMPORT_MAPS_BYTES, &push.maps);
    return true;
}

// --- which

bool vulkan_attend_many(Device *device, const KernelCall *call, Status *status) {
    Attention a;
    describe(&a, call);
    if (can_use_matrices(device, &a)) {
        if (attend_import(device, &a, status)) return true;
        bool wide = a.shape.width > WIDTH || a.shape.value_width > WIDTH;
        bool bfloat = a.q->dtype == DTYPE_BFLOAT16;
        VulkanDispatch dispatch = {
            .shader = bfloat ? SHADER_ATTENTION_BFLOAT : SHADER_ATTENTION_HALF,
            .groups = {0, 0, 1},
        };
        if (wide) dispatch.shader++;
        *status = attend(device, &a, false, &dispatch);
        return true;
    }
    if (!can_use_panels(device, &a)) return false;
    VulkanDispatch dispatch = {
        .shader = SHADER_ATTENTION_MANY,
        .groups = {0, 0, (a.shape.value_width + COLUMNS - 1) / COLUMNS},
    };
    bool fours = in_lanes(a.q, 4) && in_lanes(a.k, 4) && in_lanes(a.v, 4);
    *status = attend(device, &a, fours, &dispatch);
    return true;
}

Status vulkan_attend_slices(Device *device, const KernelCall *call, int64_t columns) {
    KernelCall part = *call;
    TensorView v = *call->inputs[2].view, out = *call->outputs[0];
    int last = v.rank - 1;
    part.inputs[2].view = &v;
    part.outputs[0] = &out;
    for (int64_t left = v.dims[last]; left > 0; left -= columns) {
        v.dims[last] = out.dims[last] = left < columns ? left : columns;
        TRY(vulkan_kernel_ATTENTION(device, &part));
        v.offset += (size_t)(columns * v.strides[last]) * dtype_size(v.dtype);
        out.offset += (size_t)(columns * out.strides[last]) * dtype_size(out.dtype);
    }
    return STATUS_OK;
}
