// ROPE and ATTENTION.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 256,
    ROWS = 16, // of attention.comp: a workgroup's rows
    ATTENTION_THREADS = 128,
    WIDTH_FEW_MAX = 512, // of heads that few rows are made of
    VALUES_MAX = 1024,   // numbers of a value that the threads' registers hold
    FEW_THREADS = 256,   // of attention_few.comp, or more
    FEW_THREADS_MAX = 1024,
    FEW_LANES_MAX = 32,
    FEW_WIDE_MAX = 2,
    FEW_ROWS = 4,
    FEW_AT_ONCE = 8,          // keys of a thread, with one row
    FEW_STRIDE_MAX = 1 << 20, // so that a step of its keys is counted in 32 bits
    KEYS_MANY = 1024,         // that rows share what is read of them
    TURNS_OF_FEW = 2,         // before more threads share the keys
    TURNS_OF_PART = 3,        // as many as a join of parts takes
    GROUPS_ENOUGH = 512,      // workgroups that keep a large device busy
};

// --- rope ----------------------------------------------------------------------------------------

// Turns per row as a fraction of 2^64: whole turns wrap away, and no row is too large.
static void compute_turns(const KernelOptions *options, RopeShape *shape) {
    for (uint32_t i = 0; i < FREQUENCIES_MAX && shape->first + i < shape->pairs; i++) {
        double part = (double)(shape->first + i) / (double)shape->pairs;
        double frequency = pow(options->scalars[0], -part);
        long double turns = (long double)(options->scalars[1] * frequency) /
                            6.283185307179586476925286766559005768L;
        turns -= floorl(turns);
        shape->turns[i] = turns >= 1 ? 0 : (uint64_t)(turns * 0x1p64L);
    }
}

// The same as the last time, as a rule: a model has one way to rotate.
static void fill_turns(const KernelOptions *options, RopeShape *shape) {
    static _Thread_local struct {
        double base, scale;
        uint32_t pairs;
        uint64_t turns[FREQUENCIES_MAX];
    } last;
    bool known = shape->first == 0 && last.pairs == shape->pairs &&
                 last.base == options->scalars[0] && last.scale == options->scalars[1];
    if (known) {
        memcpy(shape->turns, last.turns, sizeof last.turns);
        return;
    }
    compute_turns(options, shape);
    if (shape->first > 0) return;
    last.base = options->scalars[0];
    last.scale = options->scalars[1];
    last.pairs = shape->pairs;
    memcpy(last.turns, shape->turns, sizeof last.turns);
}

static VulkanReal rope_real(const TensorView *in, const TensorView *out) {
    return in->dtype == DTYPE_FLOAT64 || out->dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
}

Status vulkan_kernel_ROPE(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    const TensorView *cosines = call->n_inputs == 3 ? call->inputs[1].view : NULL;
    const TensorView *sines = cosines ? call->inputs[2].view : NULL;
    if (!dtype_is_float(in->dtype) || !dtype_is_float(out->dtype) ||
        (cosines && (!dtype_is_float(cosines->dtype) || !dtype_is_float(sines->dtype))))
        return vulkan_no_kernel(device, call);
    int64_t rotary = cosines ? cosines->dims[1] * 2 : call->options.integers[1];
    int last = in->rank - 1;
    int64_t width = in->dims[last], numbers = view_count(in);
    ASSERT(in->rank >= 3 && rotary >= 0 && rotary % 2 == 0 && rotary <= width);
    if (numbers == 0) return STATUS_OK;
    RopeShape shape = {.offset = call->options.integers[0],
                       .pairs = (uint32_t)(rotary / 2),
                       .items = (uint32_t)(width - rotary / 2)};
    for (int d = 0; d < in->rank; d++) {
        shape.in_strides[d] = in->strides[d];
        shape.out_strides[d] = out->strides[d];
        shape.dims[d] = (uint32_t)in->dims[d];
    }
    VulkanReal real = rope_real(in, out);
    for (int i = 0; cosines && i < 2; i++) {
        shape.cosine_strides[i] = cosines->strides[i];
        shape.sine_strides[i] = sines->strides[i];
        if (call->inputs[1 + i].view->dtype == DTYPE_FLOAT64) real = REAL_F64;
    }
    uint64_t threads = (uint64_t)(numbers / width) * shape.items;
    if (threads > UINT32_MAX)
        return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                    device->name);
    RopePush push = {.in_address = vulkan_address(in),
                     .out_address = vulkan_address(out),
                     .cosines = cosines ? vulkan_address(cosines) : 0,
                     .sines = sines ? vulkan_address(sines) : 0};
    uint32_t dtypes = (uint32_t)in->dtype | (uint32_t)out->dtype << 4;
    if (cosines) dtypes |= (uint32_t)cosines->dtype << 8 | (uint32_t)sines->dtype << 12;
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_ROPE_F32, real),
        VULKAN_CONSTANTS(rope, .DTYPES = dtypes, .HALF_STYLE = call->options.flag,
                         .TABLES = cosines != NULL, .RANK = (uint32_t)in->rank),
        .arguments = &shape,
        VULKAN_PUSHED(push),
    };
    if (view_is_contiguous(out) && (cosines || shape.pairs <= FREQUENCIES_MAX))
        dispatch.held_results = (uint64_t)numbers;
    vulkan_reads(&dispatch, in);
    vulkan_reads(&dispatch, cosines);
    vulkan_reads(&dispatch, sines);
    vulkan_writes(&dispatch, out);
    // As many pairs at once as their turns fit; the last time all that is left.
    uint32_t items = shape.items;
    for (; shape.first < items; shape.first += shape.items) {
        bool is_last = cosines || shape.pairs - shape.first <= FREQUENCIES_MAX;
        shape.items = is_last ? items - shape.first : FREQUENCIES_MAX;
        push.count = (uint32_t)(numbers / width) * shape.items;
        size_t turns = cosines ? 0 : shape.pairs - shape.first;
        if (turns > FREQUENCIES_MAX) turns = FREQUENCIES_MAX;
        dispatch.arguments_bytes = offsetof(RopeShape, turns) + turns * sizeof *shape.turns;
        if (!cosines) fill_turns(&call->options, &shape);
        dispatch.cost = (uint64_t)push.count * 4;
        vulkan_groups_for(device, &dispatch, push.count, GROUP);
        TRY(vulkan_dispatch(device, &dispatch));
    }
    return STATUS_OK;
}

// --- attention -----------------------------------------------------------------------------------

static void fill_head_strides(const TensorView *view, int64_t strides[3]) {
    memcpy(strides, view->strides + view->rank - 3, 3 * sizeof *strides);
}

static void describe_attention(const KernelCall *call, AttentionShape *shape) {
    const TensorView *q = call->inputs[0].view, *k = call->inputs[1].view,
                     *v = call->inputs[2].view, *out = call->outputs[0];
    const TensorView *mask = call->n_inputs > 3 ? call->inputs[3].view : NULL;
    int lead = q->rank - 3;
    fill_head_strides(q, shape->q);
    fill_head_strides(k, shape->k);
    fill_head_strides(v, shape->v);
    fill_head_strides(out, shape->to);
    if (mask) fill_head_strides(mask, shape->mask);
    const TensorView *views[5] = {q, k, v, out, mask};
    for (int d = 0; d < lead; d++) {
        shape->batch_dims[d] = (uint32_t)q->dims[d];
        for (int i = 0; i < 5; i++)
            if (views[i]) shape->batch_strides[i][d] = views[i]->strides[d];
    }
    shape->batch_rank = (uint32_t)lead;
    shape->queries = (uint32_t)q->dims[lead];
    shape->keys = (uint32_t)k->dims[lead];
    shape->key_heads = (uint32_t)k->dims[lead + 1];
    shape->shared_heads = (uint32_t)(q->dims[lead + 1] / k->dims[lead + 1]);
    shape->value_width = (uint32_t)v->dims[lead + 2];
    uint64_t rows = (uint64_t)shape->queries * shape->shared_heads;
    shape->row_blocks = (uint32_t)((rows + ROWS - 1) / ROWS);
    shape->k_address = vulkan_address(k);
    shape->v_address = vulkan_address(v);
    shape->mask_address = mask ? vulkan_address(mask) : 0;
    const TensorView *sinks = call->n_inputs > 4 ? call->inputs[4].view : NULL;
    shape->sinks_address = sinks ? vulkan_address(sinks) : 0;
    int64_t window = call->options.integers[0];
    shape->window = window > 0 && window < INT32_MAX ? (uint32_t)window : INT32_MAX;
}

static bool in_fours(const TensorView *view) {
    int last = view->rank - 1;
    if (view->strides[last] != 1 || view->dims[last] % 4 != 0) return false;
    for (int d = 0; d < last; d++)
        if (view->strides[d] % 4 != 0) return false;
    return vulkan_address(view) % (4 * dtype_size(view->dtype)) == 0;
}

static Status check_attention(Device *device, const KernelCall *call) {
    for (int i = 0; i < 3; i++)
        if (!dtype_is_float(call->inputs[i].view->dtype)) return vulkan_no_kernel(device, call);
    if (call->n_inputs > 3 && call->inputs[3].view && dtype_is_quant(call->inputs[3].view->dtype))
        return vulkan_no_kernel(device, call);
    return STATUS_OK;
}

// --- attention of few rows

// How attention_few.comp shares its work: threads of a workgroup and of a key, fours of a thread,
// rows of a workgroup, and numbers in shared memory.
typedef struct FewShare {
    uint32_t threads, lanes, wide, rows, numbers;
} FewShare;

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static uint32_t keys_of_turn(const FewShare *share) {
    return share->threads / share->lanes * FEW_AT_ONCE / share->rows;
}

// The teams' sums, highest scores, totals and factors.
static uint32_t numbers_of(const FewShare *share) {
    return share->threads / share->lanes * (share->lanes * share->wide * 4 + 3);
}

// With what is exchanged between subgroups, which have four threads or more.
static bool fits_shared(const Device *device, const FewShare *share, VulkanReal real) {
    uint32_t numbers = numbers_of(share) + share->threads / 4 * FEW_AT_ONCE;
    return numbers * (real == REAL_F64 ? 8 : 4) <= vulkan_features(device)->shared_bytes_max;
}

static FewShare share_few(const Device *device, const AttentionShape *shape, uint32_t key_fours,
                          uint32_t value_fours, VulkanReal real) {
    FewShare share = {.threads = FEW_THREADS, .lanes = 1, .rows = 1};
    uint32_t fours = larger(key_fours, value_fours);
    while (share.lanes < FEW_LANES_MAX && share.lanes < fours) share.lanes *= 2;
    share.wide = (fours + share.lanes - 1) / share.lanes;
    // Each row reads all keys; of few they come from a cache.
    if (shape->keys >= KEYS_MANY && shape->queries * shape->shared_heads >= FEW_ROWS)
        share.rows = FEW_ROWS;
    // Few iterations, where keys are not so many that they are seen in parts.
    uint32_t most = vulkan_features(device)->group_threads_max;
    if (most > FEW_THREADS_MAX) most = FEW_THREADS_MAX;
    for (FewShare wider = share; shape->keys < KEYS_MANY && wider.threads * 2 <= most &&
                                 keys_of_turn(&share) * TURNS_OF_FEW < shape->keys;
         share = wider) {
        wider.threads *= 2;
        if (!fits_shared(device, &wider, real)) break;
    }
    share.numbers = numbers_of(&share);
    return share;
}

static bool can_attend_few(const Device *device, const KernelCall *call,
                           const AttentionShape *shape, VulkanReal real) {
    const TensorView *q = call->inputs[0].view;
    uint32_t width = (uint32_t)q->dims[q->rank - 1], value_width = shape->value_width;
    if (width == 0 || width % 4 != 0 || value_width % 4 != 0 ||
        larger(width, value_width) > FEW_LANES_MAX * FEW_WIDE_MAX * 4 ||
        (uint64_t)shape->queries * shape->shared_heads > ROWS || shape->key_heads > UINT16_MAX)
        return false;
    const int64_t *const strides[] = {shape->q, shape->k, shape->v, shape->to};
    for (int i = 0; i < 12; i++)
        if (llabs(strides[i / 3][i % 3]) > INT32_MAX) return false;
    if (llabs(shape->k[0]) > FEW_STRIDE_MAX || llabs(shape->v[0]) > FEW_STRIDE_MAX) return false;
    FewShare share = share_few(device, shape, width / 4, value_width / 4, real);
    return fits_shared(device, &share, real);
}

// Few rows leave most of a device idle: then many keys are seen in parts.
static void choose_key_parts(AttentionShape *shape, const FewShare *share, uint64_t groups) {
    uint64_t turn = keys_of_turn(share);
    uint64_t turns = (shape->keys + turn - 1) / turn;
    uint64_t parts = GROUPS_ENOUGH / groups, most = turns / TURNS_OF_PART;
    if (parts > most) parts = most;
    if (parts < 2) parts = 1;
    uint64_t part_turns = (turns + parts - 1) / parts;
    shape->part_keys = (uint32_t)(part_turns * turn);
    shape->parts = (uint32_t)((turns + part_turns - 1) / part_turns);
}

static Status join_parts(Device *device, const AttentionShape *shape, const TensorView *parts,
                         const TensorView *out, const VulkanDispatch *made) {
    AttentionJoinShape join = {.batch_rank = shape->batch_rank,
                               .queries = shape->queries,
                               .shared_heads = shape->shared_heads,
                               .key_heads = shape->key_heads,
                               .value_width = shape->value_width,
                               .parts = shape->parts};
    memcpy(join.to, shape->to, sizeof join.to);
    memcpy(join.batch_strides, shape->batch_strides[3], sizeof join.batch_strides);
    memcpy(join.batch_dims, shape->batch_dims, sizeof join.batch_dims);
    AttentionJoinPush push = {.parts_address = vulkan_address(parts),
                              .out_address = vulkan_address(out)};
    VulkanReal real = parts->dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
    uint32_t rows = shape->key_heads * shape->queries * shape->shared_heads;
    VulkanDispatch dispatch = {.shader = vulkan_shader_of(SHADER_ATTENTION_JOIN_F32, real),
                               VULKAN_CONSTANTS(attention_join, .OUT_DTYPE = out->dtype),
                               VULKAN_ARGUMENTS(join),
                               VULKAN_PUSHED(push),
                               .groups = {rows, made->groups[1], 1},
                               .cost = made->cost / 8};
    vulkan_reads(&dispatch, parts);
    vulkan_writes(&dispatch, out);
    return vulkan_dispatch(device, &dispatch);
}

// The same dispatch over parts of the keys, and their join.
static Status attend_in_parts(Device *device, VulkanDispatch *dispatch, const AttentionShape *shape,
                              const TensorView *out, AttentionFewPush *push) {
    bool is_wide = dispatch->shader == SHADER_ATTENTION_FEW_F64;
    int64_t rows =
        (int64_t)shape->key_heads * shape->queries * shape->shared_heads * dispatch->groups[1];
    SCOPED_SCRATCH(parts);
    TRY(vulkan_scratch(device, is_wide ? DTYPE_FLOAT64 : DTYPE_FLOAT32,
                       rows * shape->parts * ((int64_t)shape->value_width + 2), &parts));
    push->out_address = vulkan_address(&parts);
    dispatch->groups[2] = shape->parts;
    dispatch->constants.attention_few.PARTED = true;
    dispatch->n_writes = 0;
    vulkan_writes(dispatch, &parts);
    TRY(vulkan_dispatch(device, dispatch));
    return join_parts(device, shape, &parts, out, dispatch);
}

static void put_strides(const int64_t strides[3], int32_t out[3]) {
    for (int i = 0; i < 3; i++) out[i] = (int32_t)strides[i];
}

static AttentionFewPush describe_few(const AttentionShape *shape, const AttentionPush *push) {
    AttentionFewPush few = {.q_address = push->q_address,
                            .k_address = shape->k_address,
                            .v_address = shape->v_address,
                            .out_address = push->out_address,
                            .keys = shape->keys,
                            .heads = shape->key_heads | shape->shared_heads << 16,
                            .queries_and_rank = shape->queries | shape->batch_rank << 8,
                            .row_blocks = shape->row_blocks,
                            .part_keys = shape->part_keys,
                            .parts = shape->parts,
                            .scale = push->scale};
    put_strides(shape->q, few.q_strides);
    put_strides(shape->k, few.k_strides);
    put_strides(shape->v, few.v_strides);
    put_strides(shape->to, few.to_strides);
    return few;
}

// `dispatch` is that of attention.comp but for its groups.
static Status attend_few(Device *device, const KernelCall *call, AttentionShape *shape,
                         VulkanDispatch *dispatch, VulkanReal real) {
    AttentionConstants given = dispatch->constants.attention;
    uint32_t key_fours = given.WIDTH / 4, value_fours = shape->value_width / 4;
    FewShare share = share_few(device, shape, key_fours, value_fours, real);
    for (int i = 0; i < 3; i++)
        given.DTYPES |= (uint32_t)in_fours(call->inputs[i].view) << (20 + i);
    dispatch->shader = vulkan_shader_of(SHADER_ATTENTION_FEW_F32, real);
    VULKAN_SET_CONSTANTS(dispatch, attention_few, .DTYPES = given.DTYPES, .CAUSAL = given.CAUSAL,
                         .WIDTH = key_fours | value_fours << 16, .LANES = share.lanes,
                         .WIDE = share.wide, .ROWS = share.rows, .SHARED_NUMBERS = share.numbers,
                         .GROUP = share.threads);
    uint32_t rows = shape->queries * shape->shared_heads;
    shape->row_blocks = (rows + share.rows - 1) / share.rows;
    dispatch->groups[0] = shape->row_blocks * shape->key_heads;
    choose_key_parts(shape, &share, (uint64_t)dispatch->groups[0] * dispatch->groups[1]);
    AttentionFewPush push = describe_few(shape, dispatch->push);
    VULKAN_SET_PUSHED(dispatch, push);
    if (shape->parts > 1) return attend_in_parts(device, dispatch, shape, call->outputs[0], &push);
    return vulkan_dispatch(device, dispatch);
}

// Whether a window leaves a single query only the last keys, which then are all that there are.
static bool is_cut(const KernelCall *call) {
    const TensorView *q = call->inputs[0].view, *k = call->inputs[1].view;
    bool masked = call->n_inputs > 3 && call->inputs[3].view;
    int64_t window = call->options.integers[0];
    return window > 0 && q->dims[q->rank - 3] == 1 && k->dims[k->rank - 3] > window && !masked;
}

static Status attend_last(Device *device, const KernelCall *call) {
    KernelCall part = *call;
    TensorView views[2];
    for (int i = 0; i < 2; i++) {
        TensorView *view = &views[i];
        *view = *call->inputs[i + 1].view;
        int dim = view->rank - 3;
        int64_t before = view->dims[dim] - call->options.integers[0];
        view->offset += (size_t)(before * view->strides[dim]) * dtype_size(view->dtype);
        view->dims[dim] -= before;
        part.inputs[i + 1].view = view;
    }
    part.options.integers[0] = 0;
    return vulkan_kernel_ATTENTION(device, &part);
}

Status vulkan_kernel_ATTENTION(Device *device, const KernelCall *call) {
    TRY(check_attention(device, call));
    const TensorView *q = call->inputs[0].view, *out = call->outputs[0];
    if (view_count(out) == 0) return STATUS_OK;
    if (is_cut(call)) return attend_last(device, call);
    AttentionShape shape = {0};
    describe_attention(call, &shape);
    Status status;
    bool is_many = shape.row_blocks > 1 || q->dims[q->rank - 1] > WIDTH_FEW_MAX;
    bool limited = shape.window < shape.keys || call->options.scalars[1] > 0 || shape.sinks_address;
    if (is_many && !limited && vulkan_attend_many(device, call, &status)) return status;
    if (shape.value_width > VALUES_MAX) return vulkan_attend_slices(device, call, VALUES_MAX);
    VulkanReal real = REAL_F32;
    uint32_t dtypes = (uint32_t)out->dtype << 12 | (uint32_t)NO_DTYPE << 16, sinks = NO_DTYPE;
    if (out->dtype == DTYPE_FLOAT64) real = REAL_F64;
    uint64_t batches = 1;
    for (int d = 0; d < q->rank - 3; d++) batches *= (uint64_t)q->dims[d];
    uint32_t width = (uint32_t)q->dims[q->rank - 1];
    VulkanDispatch dispatch = {VULKAN_ARGUMENTS(shape)};
    for (int i = 0; i < call->n_inputs; i++) {
        const TensorView *view = call->inputs[i].view;
        if (!view) continue;
        if (view->dtype == DTYPE_FLOAT64) real = REAL_F64;
        if (i < 3)
            dtypes |= (uint32_t)view->dtype << 4 * i;
        else if (i == 3)
            dtypes = (dtypes & 0xFFFFu) | (uint32_t)view->dtype << 16;
        else
            sinks = (uint32_t)view->dtype;
        vulkan_reads(&dispatch, view);
    }
    vulkan_writes(&dispatch, out);
    dispatch.shader = vulkan_shader_of(SHADER_ATTENTION_F32, real);
    uint32_t wide = (shape.value_width + ATTENTION_THREADS - 1) / ATTENTION_THREADS;
    VULKAN_SET_CONSTANTS(&dispatch, attention, .DTYPES = dtypes, .CAUSAL = call->options.flag,
                         .WIDTH = width, .WIDE = wide, .K_FOURS = in_fours(call->inputs[1].view),
                         .QUERY_NUMBERS = width > 0 ? ROWS * width : 1,
                         .CAPPED = call->options.scalars[1] > 0, .SINKS_DTYPE = sinks);
    AttentionPush push = {.q_address = vulkan_address(q),
                          .out_address = vulkan_address(out),
                          .scale = vulkan_real_bits(call->options.scalars[0], real),
                          .cap = vulkan_real_bits(call->options.scalars[1], real)};
    VULKAN_SET_PUSHED(&dispatch, push);
    uint64_t groups = (uint64_t)shape.row_blocks * shape.key_heads;
    const VulkanFeatures *features = vulkan_features(device);
    if (groups > features->groups_max[0] || batches > features->groups_max[1])
        return fail(STATUS_DEVICE, "%s: too many heads or batches for %s", call->op_name,
                    device->name);
    dispatch.groups[0] = (uint32_t)groups;
    dispatch.groups[1] = (uint32_t)batches;
    dispatch.groups[2] = 1;
    dispatch.cost = batches * groups * ROWS * shape.keys * (width + shape.value_width);
    if (!limited && can_attend_few(device, call, &shape, real))
        return attend_few(device, call, &shape, &dispatch, real);
    size_t shared = (ROWS * (size_t)width + ROWS * 43) * (real == REAL_F64 ? 8 : 4);
    if (shared > features->shared_bytes_max)
        return fail(STATUS_DEVICE, "%s: heads of %u numbers are too wide for %s", call->op_name,
                    width, device->name);
    return vulkan_dispatch(device, &dispatch);
}
