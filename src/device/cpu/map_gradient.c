// The MAP_GRADIENT kernel: the derivative of a formula in one loop over all that it reads. Knows no
// derivative: those are in simd/.
#include "device/cpu/iterate.h"
#include "device/cpu/map.h"

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct Slopes {
    MapLoop loop;
    char *out;
    const char *in[SLOPE_OPERANDS];
    int64_t count, size;
} Slopes;

static void run_tasks(void *context, int64_t begin, int64_t end) {
    const Slopes *job = context;
    int64_t first = begin * TASK_ELEMENTS, last = end * TASK_ELEMENTS;
    if (last > job->count) last = job->count;
    const void *in[SLOPE_OPERANDS];
    for (int k = 0; k < SLOPE_OPERANDS; k++) in[k] = job->in[k] + first * job->size;
    job->loop(job->out + first * job->size, in, 0, last - first);
}

Status cpu_kernel_MAP_GRADIENT(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    ASSERT(call->n_inputs == SLOPE_OPERANDS && view_is_contiguous(out));
    ASSERT(out->dtype == DTYPE_FLOAT32 || out->dtype == DTYPE_FLOAT64);
    const SlopeTable *table =
        out->dtype == DTYPE_FLOAT32 ? CPU_CHOOSE(&slopes_f32) : CPU_CHOOSE(&slopes_f64);
    Slopes job = {.loop = (*table)[call->options.op][call->options.dim],
                  .out = cpu_pointer(out),
                  .count = view_count(out),
                  .size = (int64_t)dtype_size(out->dtype)};
    ASSERT(job.loop);
    for (int k = 0; k < SLOPE_OPERANDS; k++) {
        const TensorView *in = call->inputs[k].view;
        ASSERT(in->dtype == out->dtype && view_is_contiguous(in) && view_count(in) == job.count);
        job.in[k] = cpu_pointer(in);
    }
    cpu_parallel((job.count + TASK_ELEMENTS - 1) / TASK_ELEMENTS, 1, run_tasks, &job);
    return STATUS_OK;
}
