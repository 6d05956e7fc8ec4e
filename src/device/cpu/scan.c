// The SCAN kernel: running sums and products along the last dim, in doubles or wrapping integers.
#include "device/cpu/row.h"
#include "device/cpu/rows.h"

enum { TASK_ELEMENTS = 1 << 14 };

// Continues `*state` through the numbers, each of which becomes the state after it.
typedef void (*ScanLoop)(void *to, const void *from, int64_t count, void *state);

#define SCAN_LOOP(name, T, operator)                                                               \
    static void name(void *to, const void *from, int64_t count, void *state) {                     \
        T *out = to;                                                                               \
        const T *in = from;                                                                        \
        T running = *(T *)state;                                                                   \
        for (int64_t i = 0; i < count; i++) out[i] = running = running operator in[i];             \
        *(T *)state = running;                                                                     \
    }
SCAN_LOOP(sum_floats, double, +)
SCAN_LOOP(multiply_floats, double, *)
SCAN_LOOP(sum_integers, uint64_t, +) // unsigned: wraps
SCAN_LOOP(multiply_integers, uint64_t, *)

typedef struct Scan {
    ScanLoop loop;
    union {
        double f;
        uint64_t i;
    } start;
} Scan;

static void make_row(const void *context, const Row *in, const char *from, const Row *out,
                     char *to) {
    Scan scan = *(const Scan *)context;
    double buffer[ROW_PIECE];
    for (int64_t first = 0; first < in->count && !cpu_interrupted(); first += ROW_PIECE) {
        int64_t left = in->count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(in, from, first, count, buffer);
        void *work = row_target(out, to, first, buffer);
        scan.loop(work, numbers, count, &scan.start);
        row_write(out, to, first, count, work);
    }
}

Status cpu_kernel_SCAN(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    bool whole = !dtype_is_float(in->dtype), product = call->options.op == 1;
    Scan scan = {.loop = product ? (whole ? multiply_integers : multiply_floats)
                                 : (whole ? sum_integers : sum_floats)};
    if (whole)
        scan.start.i = product;
    else
        scan.start.f = product;
    if (view_count(out) == 0) return STATUS_OK;
    CpuCompute compute = whole ? COMPUTE_I64 : COMPUTE_F64;
    RowsJob job = {.make = make_row, .context = &scan};
    return rows_make_last(&job, call, compute, TASK_ELEMENTS);
}
