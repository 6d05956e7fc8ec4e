// Kernels that work on rows: ARG_REDUCE, SCAN, SOFTMAX and the norms; and rows as shaders see them.
#include <string.h>

#include "device/vulkan/bounds.h"
#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 256,
    SKEWED_MIN = 64,   // numbers of a row that begins anywhere, to be read four at a time
    GROUP_SMALL = 128, // for rows of softmax.comp and norm.comp that need no more threads
    GROUP_LARGE = 1024,
    LANES_NEAR = 32, // up to so many threads share a row
    ITEMS_NEAR = 8,  // of which each has so many items,
    ITEMS_FAR = 16,  // and more with these
    ROWS_MANY = 64,  // that keep a device busy with
    HELD_OF_FEW = 2, // more items a thread than this
    HELD_MAX = 8,    // items that a thread of softmax.comp and norm.comp keeps in registers
    SCAN_EACH = 8,   // neighbours that a thread of scan.comp takes at a time
    SCAN_LANES_FEW = 8,
    SCAN_LANES_SOME = 32,
    SCAN_STEPS_MIN = 4,     // a part of a row is worth so many of them,
    SCAN_THREADS = 1 << 18, // and as many parts as keep so many threads busy
};

static const TensorView *first_view(const TensorView *const *views, int n) {
    for (int v = 0; v < n; v++)
        if (views[v]) return views[v];
    return NULL;
}

// Walks need a first view; one that is missing stands aside and gets strides of 0.
static void walk_some(Walk *walk, int n, const TensorView *const *views, WalkDims dims) {
    const TensorView *list[ROW_VIEWS + 1] = {first_view(views, n)};
    if (views[0]) {
        walk_prepare_part(walk, n, views, dims);
        return;
    }
    memcpy(list + 1, views, (size_t)n * sizeof *views);
    walk_prepare_part(walk, n + 1, list, dims);
    memmove(walk->strides, walk->strides + 1, (size_t)n * sizeof *walk->strides);
}

static bool is_vector(const VulkanRows *rows, int view, const TensorView *stored) {
    const Walk *row = &rows->row;
    if (!stored || row->rank != 1 || row->strides[view][0] != 1 || row->dims[0] % 4 != 0)
        return false;
    if (vulkan_address(stored) % (4 * dtype_size(stored->dtype)) != 0) return false;
    for (int d = 0; d < rows->kept.rank; d++)
        if (view < 2 && rows->kept.strides[view][d] % 4 != 0) return false;
    return true;
}

void vulkan_rows_prepare(const RowViews *views, VulkanRows *rows) {
    walk_some(&rows->kept, 2, views->kept, (WalkDims){.rank = views->kept_rank});
    walk_some(&rows->row, ROW_VIEWS, views->row,
              (WalkDims){views->row_first, views->row_rank, views->ordered});
    RowStrides *out = &rows->arguments;
    for (int d = 0; d < rows->kept.rank; d++) {
        out->kept_dims[d] = (uint32_t)rows->kept.dims[d];
        for (int v = 0; v < 2; v++) out->kept_strides[v][d] = rows->kept.strides[v][d];
    }
    for (int d = 0; d < rows->row.rank; d++) {
        out->dims[d] = (uint32_t)rows->row.dims[d];
        for (int v = 0; v < ROW_VIEWS; v++) out->strides[v][d] = rows->row.strides[v][d];
    }
    rows->results = (uint64_t)rows->kept.count;
    rows->count = (uint64_t)rows->row.count;
    rows->ranks = (uint32_t)rows->kept.rank | (uint32_t)rows->row.rank << 4;
    for (int v = 0; v < ROW_VIEWS; v++)
        rows->ranks |= (uint32_t)is_vector(rows, v, views->row[v]) << (8 + v);
}

bool vulkan_rows_in_columns(const VulkanRows *rows) {
    int last = rows->kept.rank - 1;
    bool near_columns =
        last >= 0 && rows->kept.strides[1][last] == 1 && rows->kept.dims[last] >= 16;
    bool near_rows = rows->row.rank > 0 && rows->row.strides[1][rows->row.rank - 1] == 1;
    return near_columns && !near_rows;
}

uint32_t vulkan_row_lanes(uint64_t items, uint32_t most) {
    uint32_t lanes = 1;
    while (lanes < most && lanes < LANES_NEAR && lanes * ITEMS_NEAR < items) lanes *= 2;
    while (lanes < most && lanes * ITEMS_FAR < items) lanes *= 2;
    return lanes;
}

static int64_t first_number(const TensorView *view) {
    return (int64_t)(vulkan_address(view) / dtype_size(view->dtype));
}

static uint64_t count_items(const VulkanRows *rows, uint32_t items) {
    if (items == ITEMS_SKEWED) return (rows->count + 6) / 4; // with what is before and after
    return items == ITEMS_VECTOR ? rows->count / 4 : rows->count;
}

// Input and output have neighbours next to each other, in items of four that lie alike in both.
static bool is_skewed(const VulkanRows *rows, const TensorView *out, const TensorView *in) {
    const Walk *row = &rows->row, *kept = &rows->kept;
    if (rows->count < SKEWED_MIN || row->rank != 1) return false;
    if (row->strides[0][0] != 1 || row->strides[1][0] != 1) return false;
    int64_t apart = first_number(out) - first_number(in);
    for (int d = 0; d < kept->rank; d++) apart |= kept->strides[0][d] - kept->strides[1][d];
    return (apart & 3) == 0;
}

static uint32_t choose_items(const VulkanRows *rows, bool vector, const TensorView *out,
                             const TensorView *in) {
    if (vector) return ITEMS_VECTOR;
    return is_skewed(rows, out, in) ? ITEMS_SKEWED : ITEMS_SINGLE;
}

// How softmax.comp and norm.comp share a row among threads.
typedef struct RowShare {
    uint32_t group, lanes, held;
} RowShare;

// Rows that leave most of a device idle are shared by more threads; so are those of float64, of
// which registers hold half as many.
static RowShare share_row(const Device *device, uint64_t items, uint64_t rows, VulkanReal real) {
    uint64_t most = vulkan_features(device)->group_threads_max;
    uint32_t held_most = real == REAL_F64 ? HELD_MAX / 2 : HELD_MAX;
    uint32_t held = rows < ROWS_MANY ? HELD_OF_FEW : held_most;
    RowShare share = {GROUP_SMALL, 1, 0};
    while (share.lanes < GROUP_LARGE && share.lanes * 2 <= most && share.lanes * held < items) {
        share.lanes *= 2;
        if (share.lanes == GROUP) held = held_most;
    }
    if (share.lanes > share.group) share.group = share.lanes;
    if (items <= (uint64_t)share.lanes * held_most)
        share.held = (uint32_t)((items + share.lanes - 1) / share.lanes);
    return share;
}

Status vulkan_rows_check(Device *device, const KernelCall *call, const VulkanRows *rows) {
    if (rows->results <= UINT32_MAX && rows->count <= UINT32_MAX) return STATUS_OK;
    return fail(STATUS_DEVICE, "%s: more than 2^32 rows, or elements of a row, at once on %s",
                call->op_name, device->name);
}

uint64_t vulkan_real_bits(double value, VulkanReal real) {
    return vulkan_scalar_bits(&(Scalar){.dtype = DTYPE_FLOAT64, .as.f = value}, real);
}

bool vulkan_has_float64(const Device *device) {
    return (vulkan_features(device)->has & VULKAN_NEEDS_FLOAT64) != 0;
}

// A dispatch over rows, but for its constants and what is pushed.
static VulkanDispatch rows_dispatch(const KernelCall *call, const VulkanRows *rows,
                                    VulkanShader shader) {
    VulkanDispatch dispatch = {.shader = shader,
                               VULKAN_ARGUMENTS(rows->arguments),
                               .cost = rows->results * rows->count * 4};
    vulkan_reads(&dispatch, call->inputs[0].view);
    vulkan_writes(&dispatch, call->outputs[0]);
    return dispatch;
}

// What is pushed to shaders of rows first: the initialisers of ROWS_PUSH.
#define ROWS_PUSHED(call, rows)                                                                    \
    .in_address = vulkan_address((call)->inputs[0].view),                                          \
    .out_address = vulkan_address((call)->outputs[0]), .results = (rows)->results,                 \
    .count = (rows)->count

static int last_dim(const TensorView *view) {
    return view->rank > 0 ? view->rank - 1 : 0;
}

Status vulkan_kernel_ARG_REDUCE(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (dtype_is_quant(in->dtype)) return vulkan_no_kernel(device, call);
    if (view_count(out) == 0) return STATUS_OK;
    if (view_count(in) == 0)
        return fail(STATUS_SHAPE, "%s of no elements: there is no index to give", call->op_name);
    VulkanRows rows;
    vulkan_rows_prepare(&(RowViews){.kept = {out, in},
                                    .row = {NULL, in},
                                    .kept_rank = out->rank,
                                    .row_first = last_dim(in),
                                    .row_rank = in->rank,
                                    .ordered = true},
                        &rows);
    TRY(vulkan_rows_check(device, call, &rows));
    VulkanDispatch dispatch = rows_dispatch(
        call, &rows, vulkan_shader_of(SHADER_ARG_REDUCE_F32, vulkan_real_of(in->dtype)));
    uint64_t items = vulkan_rows_vector(&rows, 1) ? rows.count / 4 : rows.count;
    uint32_t lanes = vulkan_rows_in_columns(&rows) ? 1 : vulkan_row_lanes(items, GROUP);
    VULKAN_SET_CONSTANTS(&dispatch, arg_reduce, .RANKS = rows.ranks, .IN_DTYPE = in->dtype,
                         .SMALLEST = call->options.op == 1, .LANES = lanes);
    ArgReducePush push = {ROWS_PUSHED(call, &rows)};
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_groups_for(device, &dispatch, rows.results, GROUP / lanes);
    TRY(vulkan_dispatch(device, &dispatch));
    vulkan_bound(out, 0, (int64_t)rows.count - 1);
    return STATUS_OK;
}

// How scan.comp shares rows: so many threads each row, or each of the parts that rows are cut into
// where there are few.
typedef struct ScanShare {
    uint32_t lanes;
    uint64_t parts, part_count;
    const TensorView *totals; // of the parts; NULL: there is one a row
} ScanShare;

static ScanShare share_scan(const KernelCall *call, const VulkanRows *rows) {
    ScanShare share = {.lanes = vulkan_rows_in_columns(rows) ? 1 : SCAN_LANES_FEW, .parts = 1};
    if (share.lanes > 1 && rows->count > share.lanes * SCAN_EACH) share.lanes = SCAN_LANES_SOME;
    if (share.lanes > 1 && rows->count > share.lanes * SCAN_EACH) share.lanes = GROUP;
    uint64_t threads = vulkan_all_rows(call, rows->results) * share.lanes;
    uint64_t step = share.lanes * SCAN_EACH;
    uint64_t most = rows->count / (step * SCAN_STEPS_MIN);
    if (threads < SCAN_THREADS / 2) share.parts = SCAN_THREADS / threads;
    if (share.parts > most) share.parts = most > 1 ? most : 1;
    share.part_count = (rows->count / share.parts / step + 1) * step;
    share.parts = (rows->count + share.part_count - 1) / share.part_count;
    return share;
}

static Status run_scan(Device *device, const KernelCall *call, const VulkanRows *rows,
                       ScanShare share, uint32_t step) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    VulkanReal real = vulkan_real_of(in->dtype);
    if (real == REAL_F32 && out->dtype == DTYPE_FLOAT64) real = REAL_F64;
    VulkanDispatch dispatch = rows_dispatch(call, rows, vulkan_shader_of(SHADER_SCAN_F32, real));
    if (step == SCAN_RUNNING) share.lanes = GROUP;
    VULKAN_SET_CONSTANTS(&dispatch, scan, .RANKS = rows->ranks,
                         .DTYPES = (uint32_t)in->dtype | (uint32_t)out->dtype << 4,
                         .PRODUCT = call->options.op == 1, .LANES = share.lanes, .STEP = step);
    ScanPush push = {ROWS_PUSHED(call, rows), .parts = share.parts, .part_count = share.part_count};
    if (share.totals) {
        push.totals = vulkan_address(share.totals);
        vulkan_writes(&dispatch, share.totals);
    }
    VULKAN_SET_PUSHED(&dispatch, push);
    uint64_t units = rows->results * (step == SCAN_RUNNING ? 1 : share.parts);
    vulkan_groups_for(device, &dispatch, units, GROUP / share.lanes);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_SCAN(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (dtype_is_quant(in->dtype)) return vulkan_no_kernel(device, call);
    if (view_count(out) == 0) return STATUS_OK;
    VulkanRows rows;
    vulkan_rows_prepare(&(RowViews){.kept = {out, in},
                                    .row = {out, in},
                                    .kept_rank = last_dim(in),
                                    .row_first = last_dim(in),
                                    .row_rank = in->rank,
                                    .ordered = true},
                        &rows);
    TRY(vulkan_rows_check(device, call, &rows));
    ScanShare share = share_scan(call, &rows);
    if (share.parts == 1) return run_scan(device, call, &rows, share, SCAN_ROWS);
    SCOPED_SCRATCH(totals);
    TRY(vulkan_scratch(device, DTYPE_INT64, (int64_t)(rows.results * share.parts), &totals));
    share.totals = &totals;
    static const uint32_t steps[] = {SCAN_TOTALS, SCAN_RUNNING, SCAN_ROWS};
    for (int i = 0; i < 3; i++) TRY(run_scan(device, call, &rows, share, steps[i]));
    return STATUS_OK;
}

static Status float_only(Device *device, const KernelCall *call) {
    (void)device;
    return fail(STATUS_DTYPE, "%s works on float types, not on %s", call->op_name,
                dtype_name(call->inputs[0].view->dtype));
}

static VulkanReal float_real(const TensorView *a, const TensorView *b) {
    bool wide = a->dtype == DTYPE_FLOAT64 || b->dtype == DTYPE_FLOAT64;
    return wide ? REAL_F64 : REAL_F32;
}

Status vulkan_kernel_SOFTMAX(Device *device, const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    if (!dtype_is_float(in->dtype)) return float_only(device, call);
    if (view_count(out) == 0) return STATUS_OK;
    VulkanRows rows;
    vulkan_rows_prepare(&(RowViews){.kept = {out, in},
                                    .row = {out, in},
                                    .kept_rank = last_dim(in),
                                    .row_first = last_dim(in),
                                    .row_rank = in->rank},
                        &rows);
    TRY(vulkan_rows_check(device, call, &rows));
    VulkanReal real = float_real(in, out);
    VulkanDispatch dispatch =
        rows_dispatch(call, &rows, vulkan_shader_of(SHADER_SOFTMAX_F32, real));
    bool vector = vulkan_rows_vector(&rows, 0) && vulkan_rows_vector(&rows, 1);
    uint32_t items = choose_items(&rows, vector, out, in);
    uint64_t all = vulkan_all_rows(call, rows.results);
    RowShare share = share_row(device, count_items(&rows, items), all, real);
    VULKAN_SET_CONSTANTS(&dispatch, softmax, .RANKS = rows.ranks,
                         .DTYPES = (uint32_t)in->dtype | (uint32_t)out->dtype << 4,
                         .LOGARITHM = call->options.flag, .GROUP = share.group,
                         .LANES = share.lanes, .HELD = share.held, .ITEMS = items);
    SoftmaxPush push = {ROWS_PUSHED(call, &rows)};
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_groups_for(device, &dispatch, rows.results, share.group / share.lanes);
    return vulkan_dispatch(device, &dispatch);
}

static Status run_norm(Device *device, const KernelCall *call, bool centred) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    const TensorView *weight = call->n_inputs > 1 ? call->inputs[1].view : NULL;
    const TensorView *bias = call->n_inputs > 2 ? call->inputs[2].view : NULL;
    if (!dtype_is_float(in->dtype)) return float_only(device, call);
    if ((weight && dtype_is_quant(weight->dtype)) || (bias && dtype_is_quant(bias->dtype)))
        return vulkan_no_kernel(device, call);
    if (view_count(out) == 0) return STATUS_OK;
    int kept = in->rank - call->options.count;
    // Weight and bias have the row's dims only: as views of the input's rank their dims are
    // shifted.
    TensorView wide[2] = {0};
    const TensorView *trailing[2] = {weight, bias};
    VulkanReal real = float_real(in, out);
    for (int k = 0; k < 2; k++) {
        const TensorView *view = trailing[k];
        if (!view) continue;
        wide[k] = *view;
        for (int d = kept; d < in->rank; d++) {
            int own = d - kept - (in->rank - kept - view->rank);
            wide[k].dims[d] = in->dims[d];
            wide[k].strides[d] = own < 0 || view->dims[own] == 1 ? 0 : view->strides[own];
        }
        wide[k].rank = in->rank;
        if (view->dtype == DTYPE_FLOAT64) real = REAL_F64;
    }
    VulkanRows rows;
    vulkan_rows_prepare(
        &(RowViews){.kept = {out, in},
                    .row = {out, in, weight ? &wide[0] : NULL, bias ? &wide[1] : NULL},
                    .kept_rank = kept,
                    .row_first = kept,
                    .row_rank = in->rank},
        &rows);
    TRY(vulkan_rows_check(device, call, &rows));
    VulkanDispatch dispatch = rows_dispatch(call, &rows, vulkan_shader_of(SHADER_NORM_F32, real));
    vulkan_reads(&dispatch, weight);
    vulkan_reads(&dispatch, bias);
    bool vector = true;
    for (int v = 0; v < ROW_VIEWS; v++)
        if (v < 2 || trailing[v - 2]) vector = vector && vulkan_rows_vector(&rows, v);
    uint32_t items = choose_items(&rows, vector, out, in);
    uint64_t all = vulkan_all_rows(call, rows.results);
    RowShare share = share_row(device, count_items(&rows, items), all, real);
    uint32_t dtypes = (uint32_t)in->dtype | (uint32_t)out->dtype << 4 |
                      (weight ? (uint32_t)weight->dtype : NO_DTYPE) << 8 |
                      (bias ? (uint32_t)bias->dtype : NO_DTYPE) << 12;
    VULKAN_SET_CONSTANTS(&dispatch, norm, .RANKS = rows.ranks, .DTYPES = dtypes, .CENTRED = centred,
                         .GROUP = share.group, .LANES = share.lanes, .HELD = share.held,
                         .ITEMS = items, .EARLY = share.held > 0 && share.held <= HELD_OF_FEW);
    NormPush push = {ROWS_PUSHED(call, &rows),
                     .weight_address = weight ? vulkan_address(weight) : 0,
                     .bias_address = bias ? vulkan_address(bias) : 0,
                     .eps = vulkan_real_bits(call->options.scalars[0], real)};
    VULKAN_SET_PUSHED(&dispatch, push);
    vulkan_groups_for(device, &dispatch, rows.results, share.group / share.lanes);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_RMS_NORM(Device *device, const KernelCall *call) {
    return run_norm(device, call, false);
}

Status vulkan_kernel_LAYER_NORM(Device *device, const KernelCall *call) {
    return run_norm(device, call, true);
}
