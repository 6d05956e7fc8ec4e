// The ROPE kernel: rotates pairs of each head by angles of its row. Angles are computed in double,
// so that row 100000 is as exact as row 0.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/convert.h"
#include "device/cpu/scratch.h"

enum { TASK_NUMBERS = 1 << 13 }; // that are worth a thread

typedef struct Rope {
    const TensorView *in, *out, *cosines, *sines; // tables: NULL when angles are computed
    CpuCompute compute;
    int64_t rotary, offset;
    double scale;
    double *frequencies; // [rotary / 2]; NULL where there are tables
    bool half_style;
    bool in_place; // heads need no conversion
} Rope;

// Cosines and sines of one row, as numbers of the compute type.
static void row_angles(const Rope *rope, int64_t row, void *cosines, void *sines) {
    int64_t count = rope->rotary / 2;
    if (rope->cosines) {
        const ConvertTable *convert = cpu_convert();
        const TensorView *c = rope->cosines, *s = rope->sines;
        int64_t at = row + rope->offset;
        convert->load[rope->compute][c->dtype](cosines, cpu_at(c, at * c->strides[0]),
                                               c->strides[1], count);
        convert->load[rope->compute][s->dtype](sines, cpu_at(s, at * s->strides[0]), s->strides[1],
                                               count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double angle = ((double)row + (double)rope->offset) * rope->scale * rope->frequencies[i];
        double cosine = cos(angle), sine = sin(angle);
        if (rope->compute == COMPUTE_F32) {
            ((float *)cosines)[i] = (float)cosine;
            ((float *)sines)[i] = (float)sine;
        } else {
            ((double *)cosines)[i] = cosine;
            ((double *)sines)[i] = sine;
        }
    }
}

// Pair i is from[i * step] and from[i * step + apart]; `from` may be `to`.
#define DEFINE_ROTATE(real)                                                                        \
    static void rotate_##real(const Rope *rope, const char *angles, const void *from, void *to) {  \
        int64_t count = rope->rotary / 2;                                                          \
        int64_t step = rope->half_style ? 1 : 2, apart = rope->half_style ? count : 1;             \
        const real *cosines = (const real *)(const void *)angles, *sines = cosines + count;        \
        const real *in = from;                                                                     \
        real *out = to;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real a = in[i * step], b = in[i * step + apart];                                       \
            out[i * step] = a * cosines[i] - b * sines[i];                                         \
            out[i * step + apart] = a * sines[i] + b * cosines[i];                                 \
        }                                                                                          \
    }
DEFINE_ROTATE(float)
DEFINE_ROTATE(double)

static void rotate(const Rope *rope, const char *angles, const void *from, void *to) {
    if (rope->compute == COMPUTE_F32)
        rotate_float(rope, angles, from, to);
    else
        rotate_double(rope, angles, from, to);
}

// Heads of the compute type are read and written where they lie, others in scratch behind the
// angles.
static void rotate_head(const Rope *rope, int64_t in_offset, int64_t out_offset, char *angles) {
    const TensorView *in = rope->in, *out = rope->out;
    int last = in->rank - 1;
    int64_t width = in->dims[last];
    size_t real = compute_bytes(rope->compute);
    char *to = (char *)cpu_pointer(out) + out_offset * (int64_t)dtype_size(out->dtype);
    if (rope->in_place) {
        const char *from = cpu_at(in, in_offset);
        rotate(rope, angles, from, to);
        size_t done = (size_t)rope->rotary * real;
        if (from != to) memcpy(to + done, from + done, (size_t)width * real - done);
        return;
    }
    char *x = angles + (size_t)rope->rotary * real;
    cpu_convert()->load[rope->compute][in->dtype](x, cpu_at(in, in_offset), in->strides[last],
                                                  width);
    rotate(rope, angles, x, x);
    cpu_convert()->store[rope->compute][out->dtype](to, out->strides[last], x, width);
}

static bool is_in_place(const Rope *rope) {
    const TensorView *in = rope->in, *out = rope->out;
    DType dtype = compute_dtype(rope->compute);
    return in->dtype == dtype && out->dtype == dtype && in->strides[in->rank - 1] == 1 &&
           out->strides[out->rank - 1] == 1;
}

// Row `row` of the sequence in every head of every leading index.
static void rotate_row(const Rope *rope, int64_t row, char *scratch) {
    const TensorView *in = rope->in;
    int sequence = in->rank - 3, head = in->rank - 2;
    size_t table_bytes = (size_t)(rope->rotary / 2) * compute_bytes(rope->compute);
    row_angles(rope, row, scratch, scratch + table_bytes);
    int64_t batches = 1;
    for (int d = 0; d < sequence; d++) batches *= in->dims[d];
    for (int64_t batch = 0; batch < batches; batch++) {
        int64_t from = row * in->strides[sequence], to = row * rope->out->strides[sequence];
        int64_t rest = batch;
        for (int d = sequence - 1; d >= 0; d--) {
            from += rest % in->dims[d] * in->strides[d];
            to += rest % in->dims[d] * rope->out->strides[d];
            rest /= in->dims[d];
        }
        for (int64_t h = 0; h < in->dims[head]; h++)
            rotate_head(rope, from + h * in->strides[head], to + h * rope->out->strides[head],
                        scratch);
    }
}

static void rotate_rows(void *context, int64_t begin, int64_t end) {
    const Rope *rope = context;
    int64_t numbers = rope->rotary + rope->in->dims[rope->in->rank - 1];
    char *scratch = scratch_take((size_t)numbers * compute_bytes(rope->compute));
    for (int64_t row = begin; row < end; row++) rotate_row(rope, row, scratch);
    scratch_give(scratch);
}

static double *frequencies_of(const Rope *rope, double base) {
    int64_t count = rope->rotary / 2;
    double *frequencies = memory_allocate((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        frequencies[i] = pow(base, -2.0 * (double)i / (double)rope->rotary);
    return frequencies;
}

Status cpu_kernel_ROPE(const KernelCall *call) {
    const KernelOptions *options = &call->options;
    Rope rope = {.in = call->inputs[0].view,
                 .out = call->outputs[0],
                 .half_style = options->flag,
                 .rotary = options->integers[1],
                 .offset = options->integers[0],
                 .scale = options->scalars[1]};
    ASSERT(rope.in && rope.in->rank >= 3 && rope.in->rank == rope.out->rank);
    if (!dtype_is_float(rope.in->dtype) || !dtype_is_float(rope.out->dtype))
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s giving %s", call->op_name,
                    dtype_name(rope.in->dtype), dtype_name(rope.out->dtype));
    rope.compute = compute_of(rope.in->dtype);
    rope.in_place = is_in_place(&rope);
    if (call->n_inputs == 3) {
        rope.cosines = call->inputs[1].view;
        rope.sines = call->inputs[2].view;
        rope.rotary = rope.cosines->dims[1] * 2;
    }
    int64_t width = rope.in->dims[rope.in->rank - 1], rows = rope.in->dims[rope.in->rank - 3];
    ASSERT(rope.rotary >= 0 && rope.rotary % 2 == 0 && rope.rotary <= width);
    int64_t numbers = 1;
    for (int d = 0; d < rope.in->rank; d++) numbers *= rope.in->dims[d];
    if (numbers == 0) return STATUS_OK;
    if (!rope.cosines) rope.frequencies = frequencies_of(&rope, options->scalars[0]);
    cpu_parallel(rows, TASK_NUMBERS / (numbers / rows) + 1, rotate_rows, &rope);
    free(rope.frequencies);
    return STATUS_OK;
}
