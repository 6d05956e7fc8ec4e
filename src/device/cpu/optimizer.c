// The OPTIMIZER kernel: one pass over a parameter, its gradient and its state.
#include "device/cpu/optimizer.h"
#include "device/walk.h"

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct OptimizerJob {
    OptimizerUpdate update;
    OptimizerStep step;
} OptimizerJob;

static void update_piece(void *context, int64_t begin, int64_t end) {
    const OptimizerJob *job = context;
    job->update(&job->step, begin, end);
}

Status cpu_kernel_OPTIMIZER(const KernelCall *call) {
    const TensorView *parameter = call->outputs[0];
    int64_t elements = 1;
    for (int i = 0; i < parameter->rank; i++) elements *= parameter->dims[i];
    ASSERT(view_is_contiguous(parameter) && elements == view_count(call->inputs[0].view));
    bool wide = parameter->dtype == DTYPE_FLOAT64;
    OptimizerJob job = {
        .update = CPU_CHOOSE(optimizer_choose)((OptimizerId)call->options.op, wide),
        .step = {.parameter = cpu_pointer(parameter),
                 .state = call->n_outputs > 1 ? cpu_pointer(call->outputs[1]) : NULL,
                 .gradient = cpu_pointer(call->inputs[0].view),
                 .elements = elements,
                 .lr = call->inputs[1].scalar.as.f,
                 .weight_decay = call->inputs[2].scalar.as.f,
                 .beta1 = call->inputs[3].scalar.as.f,
                 .beta2 = call->inputs[4].scalar.as.f,
                 .epsilon = call->inputs[5].scalar.as.f,
                 .momentum = call->inputs[6].scalar.as.f,
                 .dampening = call->inputs[7].scalar.as.f,
                 .correction1 = call->options.scalars[0],
                 .correction2 = call->options.scalars[1],
                 .first = call->options.integers[0] != 0,
                 .variant = call->options.flag}};
    cpu_parallel(elements, TASK_ELEMENTS, update_piece, &job);
    return STATUS_OK;
}
