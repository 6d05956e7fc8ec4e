// REDUCE: one dispatch where there are many results, parts that are joined where there are few.
#include <math.h>

#include "device/reduction.h"
#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 256,
    WIDTH = 4,               // numbers that a thread reads at once
    EACH = 4,                // items that a thread asks for at once
    EACH_TWICE = 16,         // the same of rows that are folded twice, and then read once
    ELEMENTS_MANY = 1 << 20, // for which that is worth more of a shader
    COLUMNS_WIDE = 32,       // threads next to each other, where rows are columns
    PARTS_JOINED = 4,        // a thread reads so many times fewer parts than items
    PART_ITEMS = 8,          // that a thread has of a part, at least
    GROUPS_ENOUGH = 512,     // workgroups that fill a large device
};

typedef struct Reduction {
    Device *device;
    const KernelCall *call;
    const ReductionPlan *plan;
    VulkanReal real;
    VulkanRows rows;
    bool columns;
    uint32_t width; // numbers of an item: of a row, or of rows next to each other
    ReducePush push;
    TensorView partials, parameters; // scratch, where the rows are in parts
} Reduction;

static Status fill_nothing(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    ReduceOp op = (ReduceOp)call->options.op;
    Scalar value = {.dtype = DTYPE_FLOAT64, .as.f = reduction_of_nothing(op)};
    if (!dtype_is_float(out->dtype) && (op == REDUCE_MAX || op == REDUCE_MIN))
        value =
            (Scalar){.dtype = DTYPE_INT64, .as.i = reduction_limit(out->dtype, op == REDUCE_MIN)};
    KernelCall fill = {.kernel = KERNEL_FILL,
                       .n_inputs = 1,
                       .n_outputs = 1,
                       .inputs = {{.scalar = value}},
                       .outputs = {out},
                       .op_name = call->op_name};
    return vulkan_kernel_FILL(device, &fill);
}

// Rows next to each other can be read WIDTH at once.
static bool has_wide_columns(const VulkanRows *rows, const TensorView *in) {
    const Walk *kept = &rows->kept, *row = &rows->row;
    if (kept->dims[kept->rank - 1] % WIDTH != 0) return false;
    if (vulkan_address(in) % (WIDTH * dtype_size(in->dtype)) != 0) return false;
    for (int d = 0; d < kept->rank - 1; d++)
        if (kept->strides[1][d] % WIDTH != 0) return false;
    for (int d = 0; d < row->rank; d++)
        if (row->strides[1][d] % WIDTH != 0) return false;
    return true;
}

static void choose_shape(Reduction *r) {
    const TensorView *in = r->call->inputs[0].view;
    r->columns = vulkan_rows_in_columns(&r->rows);
    bool wide = r->columns ? has_wide_columns(&r->rows, in) : vulkan_rows_vector(&r->rows, 1);
    r->width = wide ? WIDTH : 1;
    uint64_t items = r->columns ? r->rows.count : r->rows.count / r->width;
    uint64_t units = r->columns ? r->rows.results / r->width : r->rows.results;
    uint32_t most = GROUP, adjacent = 1;
    while (r->columns && adjacent < COLUMNS_WIDE && adjacent < units) adjacent *= 2;
    r->push.lanes = vulkan_row_lanes(items, most / adjacent);
    if (r->plan->first == FOLD_NONE) return;
    while (r->push.lanes * 2 <= most / adjacent && r->push.lanes * EACH_TWICE < items)
        r->push.lanes *= 2;
}

static uint64_t count_groups(const Reduction *r, uint64_t results, uint64_t lanes, uint32_t width) {
    uint64_t per_group = GROUP / lanes, units = results / (r->columns ? width : 1);
    return (units + per_group - 1) / per_group;
}

static void choose_parts(Reduction *r) {
    uint64_t count = r->push.count, all = vulkan_all_rows(r->call, r->push.results);
    uint64_t groups = count_groups(r, all, r->push.lanes, r->width);
    uint64_t least = r->push.lanes * PART_ITEMS * (r->columns ? 1 : r->width);
    uint64_t parts = groups >= GROUPS_ENOUGH ? 1 : GROUPS_ENOUGH / groups;
    if (parts > count / least) parts = count / least;
    if (parts < 2 || all * parts > UINT32_MAX) parts = 1;
    uint64_t part = (count + parts - 1) / parts;
    part = (part + WIDTH - 1) / WIDTH * WIDTH; // vectors do not straddle parts
    r->push.part = part;
    r->push.parts = (count + part - 1) / part;
}

typedef struct Pass {
    Fold first, second;
    uint32_t finish; // a ReduceOp, or what follows
    uint32_t stage;
} Pass;

static uint32_t each_of(const Reduction *r, Pass pass) {
    if (pass.stage == STAGE_JOIN || r->rows.results * r->rows.count < ELEMENTS_MANY) return 1;
    return pass.first == FOLD_NONE ? EACH : EACH_TWICE;
}

// Stages differ in what they read and write, not in what they leave alone: fewer pipelines.
static uint32_t ranks_of(const Reduction *r, Pass pass) {
    return pass.stage == STAGE_JOIN ? r->rows.ranks & 15u : r->rows.ranks; // those of what is kept
}

static uint32_t dtypes_of(const Reduction *r, Pass pass) {
    uint32_t in = r->call->inputs[0].view->dtype, out = r->call->outputs[0]->dtype;
    bool writes = pass.stage != STAGE_PARTS && pass.finish != FINISH_PARAMETER;
    return (pass.stage == STAGE_JOIN ? 0 : in) | (writes ? out : 0) << 4;
}

static Status run_pass(const Reduction *r, Pass pass, ReducePush push) {
    const TensorView *in = r->call->inputs[0].view, *out = r->call->outputs[0];
    uint32_t width = r->width;
    uint64_t repeats = pass.stage == STAGE_PARTS ? push.parts : 1;
    if (pass.stage == STAGE_JOIN) {
        width = 1;
        push.lanes = vulkan_row_lanes(push.parts * PARTS_JOINED, GROUP);
    }
    VulkanDispatch dispatch = {
        .shader = vulkan_shader_of(SHADER_REDUCE_F32, r->real),
        VULKAN_CONSTANTS(reduce, .RANKS = ranks_of(r, pass), .FIRST = pass.first,
                         .SECOND = pass.second, .FINISH = pass.finish, .DTYPES = dtypes_of(r, pass),
                         .STAGE = pass.stage, .COLUMNS = r->columns, .WIDTH = width,
                         .EACH = each_of(r, pass)),
        VULKAN_ARGUMENTS(r->rows.arguments),
        VULKAN_PUSHED(push),
        .cost = pass.stage == STAGE_JOIN ? push.results * push.parts : push.results * push.count,
    };
    vulkan_groups_for(r->device, &dispatch,
                      count_groups(r, push.results, push.lanes, width) * repeats, 1);
    if (pass.stage == STAGE_JOIN) {
        vulkan_reads(&dispatch, &r->partials);
        if (pass.finish == FINISH_PARAMETER) {
            vulkan_writes(&dispatch, &r->parameters);
        } else {
            if (push.parameters) vulkan_reads(&dispatch, &r->parameters);
            vulkan_writes(&dispatch, out);
        }
    } else {
        vulkan_reads(&dispatch, in);
        if (pass.stage == STAGE_PARTS && push.parameters) vulkan_reads(&dispatch, &r->parameters);
        vulkan_writes(&dispatch, pass.stage == STAGE_PARTS ? &r->partials : out);
    }
    return vulkan_dispatch(r->device, &dispatch);
}

static Status run_parts(Reduction *r) {
    const ReductionPlan *plan = r->plan;
    ReducePush push = r->push;
    push.partials = vulkan_address(&r->partials);
    push.parameters = 0;
    if (plan->first != FOLD_NONE) {
        TRY(run_pass(r, (Pass){FOLD_NONE, plan->first, FINISH_NOT, STAGE_PARTS}, push));
        push.parameters = vulkan_address(&r->parameters);
        TRY(run_pass(r, (Pass){plan->first, plan->first, FINISH_PARAMETER, STAGE_JOIN}, push));
    }
    TRY(run_pass(r, (Pass){plan->first, plan->second, FINISH_NOT, STAGE_PARTS}, push));
    return run_pass(r, (Pass){plan->first, plan->second, (uint32_t)r->call->options.op, STAGE_JOIN},
                    push);
}

static Status reduce_in_parts(Reduction *r) {
    int64_t results = (int64_t)r->push.results, parts = (int64_t)r->push.parts;
    SCOPED_SCRATCH(partials);
    SCOPED_SCRATCH(parameters);
    TRY(vulkan_scratch(r->device, DTYPE_INT64, results * parts, &partials));
    TRY(vulkan_scratch(r->device, DTYPE_INT64, results, &parameters));
    r->partials = partials;
    r->parameters = parameters;
    return run_parts(r);
}

static VulkanReal reduction_real(Device *device, const KernelCall *call,
                                 const ReductionPlan *plan) {
    VulkanReal real = vulkan_real_of(call->inputs[0].view->dtype);
    if (real == REAL_I64 && plan->in_floats)
        real = vulkan_has_float64(device) ? REAL_F64 : REAL_F32;
    return call->outputs[0]->dtype == DTYPE_FLOAT64 ? REAL_F64 : real;
}

static Status prepare(Device *device, const KernelCall *call, Reduction *out_reduction) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    Reduction r = {.device = device, .call = call, .plan = &reduction_plans[call->options.op]};
    r.real = reduction_real(device, call, r.plan);
    vulkan_rows_prepare(&(RowViews){.kept = {out, in},
                                    .row = {NULL, in},
                                    .kept_rank = out->rank,
                                    .row_first = out->rank,
                                    .row_rank = in->rank},
                        &r.rows);
    TRY(vulkan_rows_check(device, call, &r.rows));
    r.push = (ReducePush){.in_address = vulkan_address(in),
                          .out_address = vulkan_address(out),
                          .results = r.rows.results,
                          .count = r.rows.count,
                          .correction = vulkan_real_bits(call->options.scalars[0], r.real)};
    choose_shape(&r);
    choose_parts(&r);
    *out_reduction = r;
    return STATUS_OK;
}

int64_t vulkan_reduce_part(Device *device, const KernelCall *call) {
    Reduction r;
    if (prepare(device, call, &r) != STATUS_OK) return 0;
    return r.push.parts > 1 ? (int64_t)r.push.part : 0;
}

// One row, some parts at a time: the whole row is taken to begin where the part in `inputs[0]`
// does.
static Status reduce_stage(Device *device, const KernelCall *call) {
    const int64_t *numbers = call->options.integers;
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    TensorView row = *in, one = *out;
    row.dtype = (DType)numbers[REDUCE_FROM];
    row.rank = 1;
    row.dims[0] = numbers[REDUCE_NUMBERS];
    row.strides[0] = 1;
    one.rank = 0;
    one.dtype = (DType)numbers[REDUCE_TO];
    KernelCall whole = *call;
    whole.inputs[0].view = &row;
    whole.outputs[0] = &one;
    Reduction r;
    TRY(prepare(device, &whole, &r));
    bool second = numbers[REDUCE_IS_SECOND], joins = numbers[REDUCE_STAGE] == REDUCE_JOIN;
    Pass pass = {second || joins ? r.plan->first : FOLD_NONE,
                 second ? r.plan->second : r.plan->first, FINISH_NOT,
                 joins ? STAGE_JOIN : STAGE_PARTS};
    if (joins) pass.finish = second ? (uint32_t)call->options.op : FINISH_PARAMETER;
    r.partials = joins ? *in : *out;
    r.push.partials = vulkan_address(&r.partials);
    if (second && r.plan->first != FOLD_NONE) r.parameters = *call->inputs[1].view;
    if (joins && !second) r.parameters = *out;
    r.push.parameters = r.parameters.buffer ? vulkan_address(&r.parameters) : 0;
    if (!joins) r.push.count = (uint64_t)view_count(in);
    if (!joins) r.push.parts = (uint64_t)view_count(out);
    return run_pass(&r, pass, r.push);
}

Status vulkan_kernel_REDUCE(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    ASSERT(call->options.op >= 0 && call->options.op < REDUCE_COUNT);
    if (call->options.integers[REDUCE_STAGE] != REDUCE_WHOLE) return reduce_stage(device, call);
    if (dtype_is_quant(in->dtype)) return vulkan_no_kernel(device, call);
    if (view_count(out) == 0) return STATUS_OK;
    if (view_count(in) == 0) return fill_nothing(device, call);
    Reduction r;
    TRY(prepare(device, call, &r));
    if (r.push.parts > 1) return reduce_in_parts(&r);
    return run_pass(
        &r, (Pass){r.plan->first, r.plan->second, (uint32_t)call->options.op, STAGE_WHOLE}, r.push);
}

Status vulkan_add_parts(Device *device, const KernelCall *call, const TensorView *parts,
                        const TensorView *out) {
    int64_t count = view_count(out);
    TensorView sums = *out, terms = *parts;
    sums.rank = 1;
    sums.dims[0] = count;
    sums.strides[0] = 1;
    terms.rank = 2;
    terms.dims[0] = count;
    terms.dims[1] = view_count(parts) / count;
    terms.strides[0] = 1;
    terms.strides[1] = count;
    KernelCall reduce = {.kernel = KERNEL_REDUCE,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = {{.view = &terms}},
                         .outputs = {&sums},
                         .options = {.op = REDUCE_SUM, .count = 1},
                         .op_name = call->op_name};
    return vulkan_kernel_REDUCE(device, &reduce);
}
