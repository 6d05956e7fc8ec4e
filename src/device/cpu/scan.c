// The SCAN kernel: running sums and products along the last dim, in doubles or wrapping integers;
// several rows together where these are nearer to each other than their own elements.
#include <stdlib.h>

#include "device/cpu/convert.h"
#include "device/cpu/row.h"

enum {
    SIDE_BY_SIDE = 64,       // rows that are walked together where they are near each other
    PIECE = ROW_PIECE,       // numbers of a row that is walked alone
    TASK_ELEMENTS = 1 << 14, // work of one task
};

typedef union Number {
    double f;
    uint64_t i; // of sums and products: wraps
} Number;

typedef struct Scan {
    bool whole; // integers
    bool product;
    Row in, out;    // the last dim
    Iteration rows; // the other dims: view 0 the output, view 1 the input
} Scan;

// Consecutive rows of the last of the other dims, `step` bytes apart.
typedef struct Band {
    const char *from;
    char *to;
    int64_t from_step, to_step, count;
} Band;

static Band band_of(const Scan *scan, int64_t number) {
    const Iteration *rows = &scan->rows;
    int last = rows->rank - 1;
    int64_t per_line = (rows->count + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE;
    int64_t first = number % per_line * SIDE_BY_SIDE, left = rows->count - first;
    int64_t index = number / per_line * rows->count + first;
    return (Band){rows->pointers[1] + rows_offset(rows, 1, index),
                  rows->pointers[0] + rows_offset(rows, 0, index), rows->strides[1][last],
                  rows->strides[0][last], left < SIDE_BY_SIDE ? left : SIDE_BY_SIDE};
}

static int64_t band_count(const Scan *scan) {
    return scan->rows.rows * ((scan->rows.count + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE);
}

static Number combine(const Scan *scan, Number a, Number b) {
    if (scan->whole) return (Number){.i = scan->product ? a.i * b.i : a.i + b.i};
    return (Number){.f = scan->product ? a.f * b.f : a.f + b.f};
}

static Number scan_start(const Scan *scan) {
    return scan->whole ? (Number){.i = scan->product} : (Number){.f = scan->product};
}

static void scan_row(const Scan *scan, const char *from, char *to) {
    Number numbers[PIECE], state = scan_start(scan);
    for (int64_t first = 0; first < scan->in.count; first += PIECE) {
        int64_t left = scan->in.count - first, count = left < PIECE ? left : PIECE;
        scan->in.load(numbers, from + first * scan->in.strides[0] * scan->in.size,
                      scan->in.strides[0], count);
        for (int64_t i = 0; i < count; i++) numbers[i] = state = combine(scan, state, numbers[i]);
        scan->out.store(to + first * scan->out.strides[0] * scan->out.size, scan->out.strides[0],
                        numbers, count);
    }
}

// All rows of a band advance by one element at a time.
static void scan_band(const Scan *scan, const Band *band) {
    Number states[SIDE_BY_SIDE], numbers[SIDE_BY_SIDE];
    int64_t from_stride = band->from_step / scan->in.size;
    int64_t to_stride = band->to_step / scan->out.size;
    for (int64_t k = 0; k < band->count; k++) states[k] = scan_start(scan);
    for (int64_t i = 0; i < scan->in.count; i++) {
        scan->in.load(numbers, band->from + i * scan->in.strides[0] * scan->in.size, from_stride,
                      band->count);
        for (int64_t k = 0; k < band->count; k++)
            numbers[k] = states[k] = combine(scan, states[k], numbers[k]);
        scan->out.store(band->to + i * scan->out.strides[0] * scan->out.size, to_stride, numbers,
                        band->count);
    }
}

static bool is_side_by_side(const Scan *scan) {
    int64_t along = llabs(scan->in.strides[0] * scan->in.size);
    return llabs(scan->rows.strides[1][scan->rows.rank - 1]) < along && scan->rows.count > 1;
}

static void scan_bands(void *context, int64_t begin, int64_t end) {
    const Scan *scan = context;
    for (int64_t number = begin; number < end; number++) {
        Band band = band_of(scan, number);
        if (is_side_by_side(scan)) {
            scan_band(scan, &band);
            continue;
        }
        for (int64_t k = 0; k < band.count; k++)
            scan_row(scan, band.from + k * band.from_step, band.to + k * band.to_step);
    }
}

Status cpu_kernel_SCAN(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    Scan scan = {.whole = !dtype_is_float(in->dtype), .product = call->options.op == 1};
    if (view_count(out) == 0) return STATUS_OK;
    CpuCompute compute = scan.whole ? COMPUTE_I64 : COMPUTE_F64;
    TRY(row_prepare(in, in->rank > 0, compute, call->op_name, &scan.in));
    TRY(row_prepare(out, out->rank > 0, compute, call->op_name, &scan.out));
    rows_prepare(&scan.rows, 2, (const TensorView *const[]){out, in},
                 in->rank > 0 ? in->rank - 1 : 0);
    int64_t each = scan.in.count * SIDE_BY_SIDE;
    cpu_parallel(band_count(&scan), TASK_ELEMENTS / each + 1, scan_bands, &scan);
    return STATUS_OK;
}
