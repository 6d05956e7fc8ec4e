// The REDUCE kernel: folds the trailing dims of a view, along rows where those are near in memory,
// and in columns where the kept dims are. What is split among threads depends on the shape alone.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/fold.h"
#include "device/cpu/row.h"

enum {
    COLUMNS = 512,           // results that are made side by side
    COLUMNS_MIN = 16,        // fewer are made one by one
    SHORT_ROW = 64,          // rows shorter than this are made side by side
    TASK_ELEMENTS = 1 << 14, // of one task: large against the cost of handing it to a thread
    PART_ELEMENTS = 1 << 16, // a longer reduction to few results is made in parts
    PARTS_MAX = 128,
    FEW_GROUPS = 64,
    PARTIALS_MAX = 1 << 16,
};

// Results are numbered as `kept` walks them; a group is up to COLUMNS of them along its last dim,
// or one where they are made one by one.
typedef struct Reduction {
    ReduceOp op;
    ReductionPlan plan;
    CpuCompute compute;
    const FoldTable *folds;
    Row row;               // the reduced dims of the input
    Iteration kept;        // the other dims: view 0 the output, view 1 the input
    int64_t columns;       // length of the last kept dim, 1 where results are made one by one
    int64_t column_stride; // of the input, in elements
    bool columns_direct;   // columns are contiguous numbers of the compute type
    ConvertStore store;    // of results
    int64_t result_stride; // of a group's results, in elements
    int64_t groups, parts; // groups of results, and parts that each is made of
    int64_t part;          // elements of the reduction in a part
    double correction;     // VAR divides by n minus this
    Fold fold;             // of the present pass, when there are parts:
    Wide *partials;        // [results, parts]
    Wide *parameters;      // [results]
    Wide none;             // stands for parameters that are not given
} Reduction;

typedef struct Group {
    int64_t index, count;
} Group;

static Group group_of(const Reduction *r, int64_t number) {
    if (r->columns == 1) return (Group){number, 1};
    int64_t per_line = (r->columns + COLUMNS - 1) / COLUMNS;
    int64_t first = number % per_line * COLUMNS, left = r->columns - first;
    return (Group){number / per_line * r->columns + first, left < COLUMNS ? left : COLUMNS};
}

static bool is_whole(const Reduction *r) {
    return r->compute == COMPUTE_I64;
}

// What the second pass is told by the first.
static Wide parameter_of(const Reduction *r, Wide first) {
    bool mean = reduction_tells_mean(&r->plan);
    return mean ? (Wide){.f = first.f / (double)r->row.count} : first;
}

// --- the words of results in catalog/reductions.def

static Wide share(Wide state, double count) {
    return (Wide){.f = state.f / fmax(count, 0)};
}

static Wide flag(const Reduction *r, bool holds) {
    return is_whole(r) ? (Wide){.i = holds} : (Wide){.f = holds};
}

static double counted(const Reduction *r, Wide state) {
    return is_whole(r) ? (double)state.i : state.f;
}

// Where the largest is an infinity it is the result: differences from it would be NaN.
static Wide plus_log(Wide parameter, Wide state) {
    return isinf(parameter.f) ? parameter : (Wide){.f = parameter.f + log(state.f)};
}

#define some(state) flag(r, counted(r, state) > 0)
#define every(state, count) flag(r, counted(r, state) == (count))

// The result of a last pass that left the state s and was told p.
static Wide finish(const Reduction *r, Wide s, Wide p) {
    const double n = (double)r->row.count, c = r->correction;
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    if (r->op == REDUCE_##code) return finish;
#include "catalog/reductions.def"
    return s;
}

// Elements [begin, end) of each result, folded.
typedef struct Pass {
    Fold fold;
    int64_t begin, end;
} Pass;

static const char *group_numbers(const Reduction *r, Group group) {
    return r->kept.pointers[1] + rows_offset(&r->kept, 1, group.index);
}

static void fold_row(const Reduction *r, Pass pass, Group group, Wide parameter, Wide *state) {
    double buffer[ROW_PIECE];
    const char *base = group_numbers(r, group);
    for (int64_t first = pass.begin; first < pass.end; first += ROW_PIECE) {
        int64_t count = pass.end - first < ROW_PIECE ? pass.end - first : ROW_PIECE;
        const void *numbers = row_read(&r->row, base, first, count, buffer);
        r->folds->row[pass.fold](state, numbers, count, parameter);
    }
}

static void fold_columns(const Reduction *r, Pass pass, Group group, const Wide *parameters,
                         Wide *states) {
    double buffer[COLUMNS];
    const char *base = group_numbers(r, group);
    int last = r->row.rank - 1;
    FoldLines lines = {.stride = r->row.strides[last], .count = group.count};
    for (int64_t element = pass.begin; element < pass.end; element += lines.rows) {
        int64_t offset = 0, left = element;
        for (int d = last; d > 0; d--) {
            offset += left % r->row.dims[d] * r->row.strides[d];
            left /= r->row.dims[d];
        }
        lines.numbers = base + (offset + left * r->row.strides[0]) * r->row.size;
        lines.rows = r->row.dims[last] - element % r->row.dims[last];
        if (lines.rows > pass.end - element) lines.rows = pass.end - element;
        if (!r->columns_direct) {
            r->row.load(buffer, lines.numbers, r->column_stride, group.count);
            lines.numbers = buffer;
            lines.rows = 1;
        }
        r->folds->columns[pass.fold](states, &lines, parameters);
    }
}

static void fold_group(const Reduction *r, Pass pass, Group group, const Wide *parameters,
                       Wide *states) {
    for (int64_t i = 0; i < group.count; i++) states[i] = r->folds->identity[pass.fold];
    if (r->columns == 1)
        fold_row(r, pass, group, parameters[0], states);
    else
        fold_columns(r, pass, group, parameters, states);
}

static void store_group(const Reduction *r, Group group, Wide *states, const Wide *parameters) {
    for (int64_t i = 0; i < group.count; i++) states[i] = finish(r, states[i], parameters[i]);
    char *to = r->kept.pointers[0] + rows_offset(&r->kept, 0, group.index);
    r->store(to, r->result_stride, states, group.count);
}

// Whole reductions, one group after another.
static void reduce_groups(void *context, int64_t begin, int64_t end) {
    const Reduction *r = context;
    Wide states[COLUMNS], parameters[COLUMNS];
    for (int64_t number = begin; number < end; number++) {
        Group group = group_of(r, number);
        for (int64_t i = 0; i < group.count; i++) parameters[i] = (Wide){0};
        if (r->plan.first != FOLD_NONE) {
            fold_group(r, (Pass){r->plan.first, 0, r->row.count}, group, parameters, states);
            for (int64_t i = 0; i < group.count; i++) parameters[i] = parameter_of(r, states[i]);
        }
        fold_group(r, (Pass){r->plan.second, 0, r->row.count}, group, parameters, states);
        store_group(r, group, states, parameters);
    }
}

static void fold_parts(void *context, int64_t begin, int64_t end) {
    const Reduction *r = context;
    Wide states[COLUMNS];
    for (int64_t number = begin; number < end; number++) {
        Group group = group_of(r, number / r->parts);
        int64_t part = number % r->parts, first = part * r->part, last = first + r->part;
        if (last > r->row.count) last = r->row.count;
        fold_group(r, (Pass){r->fold, first, last}, group, r->parameters + group.index, states);
        for (int64_t i = 0; i < group.count; i++)
            r->partials[(group.index + i) * r->parts + part] = states[i];
    }
}

// One pass in parts; a result's first partial becomes its state.
static void run_pass(Reduction *r, Fold fold, int64_t results) {
    r->fold = fold;
    cpu_parallel(r->groups * r->parts, 1, fold_parts, r);
    for (int64_t result = 0; result < results; result++) {
        Wide *partials = r->partials + result * r->parts;
        for (int64_t part = 1; part < r->parts; part++)
            partials[0] = fold_combine(fold, is_whole(r), partials[0], partials[part]);
    }
}

static void reduce_in_parts(Reduction *r, int64_t results) {
    r->partials = memory_allocate((size_t)(results * r->parts) * sizeof *r->partials);
    r->parameters = memory_allocate_zeroed((size_t)results, sizeof *r->parameters);
    if (r->plan.first != FOLD_NONE) {
        run_pass(r, r->plan.first, results);
        for (int64_t i = 0; i < results; i++)
            r->parameters[i] = parameter_of(r, r->partials[i * r->parts]);
    }
    run_pass(r, r->plan.second, results);
    for (int64_t number = 0; number < r->groups; number++) {
        Group group = group_of(r, number);
        Wide states[COLUMNS];
        for (int64_t i = 0; i < group.count; i++)
            states[i] = r->partials[(group.index + i) * r->parts];
        store_group(r, group, states, r->parameters + group.index);
    }
    free(r->partials);
    free(r->parameters);
}

// Rows when the reduced numbers are near each other, columns when the kept ones are, or when rows
// are too short to be worth a call each.
static void choose_columns(Reduction *r) {
    int last = r->kept.walk.rank - 1;
    int64_t kept = r->kept.walk.dims[last], stride = r->kept.walk.strides[1][last] / r->row.size;
    bool near_rows = r->row.strides[r->row.rank - 1] == 1 || stride != 1;
    bool columns = kept >= COLUMNS_MIN && (!near_rows || r->row.count < SHORT_ROW);
    r->columns = columns ? kept : 1;
    r->column_stride = stride;
}

static int64_t count_groups(const Reduction *r, int64_t results) {
    return r->columns == 1 ? results
                           : results / r->columns * ((r->columns + COLUMNS - 1) / COLUMNS);
}

// Of n elements that become `results` results, of which `width` are made side by side.
static int64_t part_of(int64_t n, int64_t width, int64_t results) {
    int64_t parts = n / (PART_ELEMENTS / width) + 1, parts_max = PARTIALS_MAX / results;
    if (parts_max > PARTS_MAX) parts_max = PARTS_MAX;
    if (parts > parts_max) parts = parts_max;
    return (n + parts - 1) / parts;
}

static void choose_parts(Reduction *r, int64_t results) {
    int64_t width = r->columns < COLUMNS ? r->columns : COLUMNS, n = r->row.count;
    r->parts = 1;
    r->part = n;
    if (count_groups(r, results) >= FEW_GROUPS || n < 2 || n <= PART_ELEMENTS / width) return;
    r->part = part_of(n, width, results);
    r->parts = (n + r->part - 1) / r->part;
}

int64_t cpu_reduce_part(Device *device, const KernelCall *call) {
    (void)device;
    int64_t n = view_count(call->inputs[0].view);
    return n > PART_ELEMENTS ? part_of(n, 1, 1) : 0;
}

static Status prepare(const KernelCall *call, Reduction *r) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    ASSERT(call->options.op >= 0 && call->options.op < REDUCE_COUNT);
    r->op = (ReduceOp)call->options.op;
    r->plan = reduction_plans[r->op];
    r->correction = call->options.scalars[0];
    r->compute = compute_of(in->dtype);
    if (is_whole(r) && r->plan.in_floats) r->compute = COMPUTE_F64;
    r->folds = cpu_fold(r->compute);
    TRY(row_prepare_unordered(in, call->options.count, r->compute, call->op_name, &r->row));
    rows_prepare(&r->kept, 2, (const TensorView *const[]){out, in}, out->rank);
    choose_columns(r);
    r->columns_direct = r->column_stride == 1 && in->dtype == compute_dtype(r->compute);
    r->store = cpu_convert()->store[is_whole(r) ? COMPUTE_I64 : COMPUTE_F64][out->dtype];
    r->result_stride =
        r->kept.walk.strides[0][r->kept.walk.rank - 1] / (int64_t)dtype_size(out->dtype);
    int64_t results = r->kept.rows * r->kept.count;
    r->groups = count_groups(r, results);
    choose_parts(r, call->all_rows > 0 ? call->all_rows : results);
    return STATUS_OK;
}

// --- one row, some parts at a time

// The whole row begins where `first` does.
static Status prepare_row(const KernelCall *call, const TensorView *first, Reduction *r) {
    const int64_t *numbers = call->options.integers;
    TensorView row = {.dtype = (DType)numbers[REDUCE_FROM], .rank = 1, .buffer = first->buffer};
    TensorView one = *call->outputs[0];
    row.offset = first->offset;
    row.dims[0] = numbers[REDUCE_NUMBERS];
    row.strides[0] = 1;
    one.rank = 0;
    KernelCall whole = *call;
    whole.inputs[0].view = &row;
    whole.outputs[0] = &one;
    TRY(prepare(&whole, r));
    bool second = numbers[REDUCE_IS_SECOND], alone = r->plan.first == FOLD_NONE;
    r->fold = second ? r->plan.second : r->plan.first;
    r->none = (Wide){0};
    r->parameters = second && !alone ? cpu_pointer(call->inputs[1].view) : &r->none;
    return STATUS_OK;
}

static Status fold_states(const KernelCall *call) {
    Reduction r;
    const TensorView *in = call->inputs[0].view;
    TRY(prepare_row(call, in, &r));
    r.row.count = view_count(in);
    r.parts = (r.row.count + r.part - 1) / r.part;
    ASSERT(r.parts == view_count(call->outputs[0]));
    r.partials = cpu_pointer(call->outputs[0]);
    cpu_parallel(r.parts, 1, fold_parts, &r);
    return STATUS_OK;
}

static Status join_states(const KernelCall *call) {
    Reduction r;
    TRY(prepare_row(call, call->inputs[0].view, &r));
    ASSERT(r.parts == view_count(call->inputs[0].view));
    const Wide *states = cpu_pointer(call->inputs[0].view);
    Wide state = states[0];
    for (int64_t part = 1; part < r.parts; part++)
        state = fold_combine(r.fold, is_whole(&r), state, states[part]);
    if (call->options.integers[REDUCE_IS_SECOND])
        store_group(&r, (Group){0, 1}, &state, r.parameters);
    else
        *(Wide *)cpu_pointer(call->outputs[0]) = parameter_of(&r, state);
    return STATUS_OK;
}

Status cpu_kernel_REDUCE(const KernelCall *call) {
    Reduction r;
    if (call->options.integers[REDUCE_STAGE] == REDUCE_STATES) return fold_states(call);
    if (call->options.integers[REDUCE_STAGE] == REDUCE_JOIN) return join_states(call);
    const TensorView *out = call->outputs[0];
    if (view_count(out) == 0) return STATUS_OK;
    TRY(prepare(call, &r));
    FoldTable folds;
    if (r.row.count == 0 && is_whole(&r)) {
        folds = *r.folds;
        folds.identity[FOLD_MAX].i = reduction_limit(out->dtype, false);
        folds.identity[FOLD_MIN].i = reduction_limit(out->dtype, true);
        r.folds = &folds;
    }
    int64_t each = r.row.count * (r.columns < COLUMNS ? r.columns : COLUMNS);
    int64_t grain = each > 0 ? TASK_ELEMENTS / each + 1 : TASK_ELEMENTS;
    if (r.parts > 1)
        reduce_in_parts(&r, r.kept.rows * r.kept.count);
    else
        cpu_parallel(r.groups, grain, reduce_groups, &r);
    return STATUS_OK;
}
