// Running kernels, and counting what they do.
#include "device/work.h"

#include <stdlib.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "device/cpu/cpu.h"
#include "device/pieces.h"
#include "device/pool.h"
#include "device/spill.h"
#include "device/timeline.h"

enum { SMALL_BYTES = 65536 };

Work *work_new(void) {
    return memory_allocate_zeroed(1, sizeof(Work));
}

void work_free(Work *work) {
    free(work);
}

void device_count_work(DeviceWork *counted) {
    runtime_current->work->counted = counted;
}

static uint64_t elements(const TensorView *view) {
    uint64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        if (view->strides[i] != 0 || view->dims[i] == 0) count *= (uint64_t)view->dims[i];
    return count;
}

static uint64_t bytes(const TensorView *view) {
    if (!view) return 0;
    const DTypeInfo *info = &dtype_info[view->dtype];
    return elements(view) / (uint64_t)info->block_elements * (uint64_t)info->block_bytes;
}

static uint64_t all_elements(const TensorView *view) {
    uint64_t count = 1;
    for (int i = 0; i < view->rank; i++) count *= (uint64_t)view->dims[i];
    return count;
}

// Multiplications and additions, where they are what takes the time.
static uint64_t flops(const KernelCall *call) {
    const TensorView *out = call->outputs[0], *first = call->inputs[0].view;
    const TensorView *second = call->n_inputs > 1 ? call->inputs[1].view : NULL;
    switch (call->kernel) {
    case KERNEL_MATMUL: // [.., M, K] by [.., K, N]
        return 2 * all_elements(out) * (uint64_t)first->dims[first->rank - 1];
    case KERNEL_CONV2D: { // each output sees the weights of its channel
        uint64_t channels = (uint64_t)second->dims[0];
        return channels ? 2 * all_elements(out) * (all_elements(second) / channels) : 0;
    }
    case KERNEL_CONV2D_IMAGE: { // as the forward pass whose result `first` is
        uint64_t channels = (uint64_t)second->dims[0];
        return channels ? 2 * all_elements(first) * (all_elements(second) / channels) : 0;
    }
    case KERNEL_CONV2D_WINDOW: {
        uint64_t channels = (uint64_t)out->dims[0];
        return channels ? 2 * all_elements(second) * (all_elements(out) / channels) : 0;
    }
    case KERNEL_ATTENTION: // queries by keys, then weights by values
        return 4 * all_elements(out) * (uint64_t)second->dims[second->rank - 3];
    default: return 0;
    }
}

static void count(const KernelCall *call, DeviceWork *counted) {
    counted->kernels++;
    for (int i = 0; i < call->n_inputs; i++) counted->bytes += bytes(call->inputs[i].view);
    for (int i = 0; i < call->n_outputs; i++)
        if (call->outputs[i]) counted->bytes += bytes(call->outputs[i]);
    counted->flops += flops(call);
}

// Kernels that take little time for the bytes that they touch: of those with little to do some may
// stand for the others.
static bool is_small(const KernelCall *call) {
    static const uint64_t heavy = 1ull << KERNEL_LINALG | 1ull << KERNEL_SORT |
                                  1ull << KERNEL_ATTENTION | 1ull << KERNEL_ATTENTION_GRADIENT |
                                  1ull << KERNEL_CONV2D | 1ull << KERNEL_CONV2D_IMAGE |
                                  1ull << KERNEL_CONV2D_WINDOW;
    if (heavy >> call->kernel & 1u) return false;
    if (call->outputs[0]->buffer->bytes > SMALL_BYTES) return false;
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view && call->inputs[i].view->buffer->bytes > SMALL_BYTES) return false;
    return true;
}

static TimelineTotal describe(const KernelCall *call) {
    return (TimelineTotal){.kind = TIMELINE_KERNEL,
                           .kernel = call->kernel,
                           .name = call->op_name,
                           .origin = origin_current};
}

static Status run_queued(Device *device, const KernelCall *call, Timeline *timeline) {
    TimelineTotal what = describe(call);
    what.queued = true;
    TimelineOwner owner = timeline_queue(timeline, &what);
    if (owner.times > 0) {
        DeviceWork done = {0};
        count(call, &done);
        timeline_weigh(timeline, owner, done.bytes, done.flops);
    }
    timeline->running = owner;
    Status status = device->backend->run(device, call);
    timeline->running = (TimelineOwner){0};
    return status;
}

// Decompositions run on the host on every device.
static Status run_timed(Device *device, const KernelCall *call, Timeline *timeline) {
    if (device->times_itself && call->kernel != KERNEL_LINALG)
        return run_queued(device, call, timeline);
    uint64_t times = is_small(call) ? timeline_sample(timeline) : 1;
    if (LIKELY(times == 0)) return device->backend->run(device, call);
    TimelineTotal what = describe(call);
    DeviceWork done = {0};
    count(call, &done);
    what.bytes = done.bytes;
    what.flops = done.flops;
    uint64_t begin = timeline_now();
    Status status = device->backend->run(device, call);
    if (status == STATUS_OK) status = device->backend->wait(device);
    timeline_add(timeline, &what, begin, times);
    return status;
}

static Status run_now(Device *device, const KernelCall *call) {
    Timeline *timeline = runtime_current->work->timeline;
    return UNLIKELY(timeline != NULL) ? run_timed(device, call, timeline)
                                      : device->backend->run(device, call);
}

// Operands may be away.
static Status run_watched(Device *device, const KernelCall *call) {
    Spill *spill = &device->pool->spill;
    bool done;
    TRY(pieces_run(call, run_now, &done));
    if (done) return STATUS_OK;
    spill->running = call;
    spill->turn++;
    Status status = spill_prepare(call);
    if (status == STATUS_OK) status = run_now(device, call);
    spill->running = NULL;
    return spill_finish(call, status);
}

Status device_run(const KernelCall *call) {
    ASSERT(call->n_outputs > 0 && call->n_outputs <= KERNEL_OUTPUTS_MAX);
    DeviceWork *counted = runtime_current->work->counted;
    if (UNLIKELY(counted != NULL)) count(call, counted);
    Device *device = call->outputs[0]->buffer->device;
    ASSERT(device->runtime == runtime_current);
    Spill *spill = &device->pool->spill;
    if (UNLIKELY(spill->watched)) {
        TRY(run_watched(device, call));
    } else {
        spill->running = call;
        spill->turn++;
        Status status = run_now(device, call);
        spill->running = NULL;
        TRY(status);
    }
    return file_map_faulted() ? file_map_faults() : STATUS_OK;
}

bool device_has(const Device *device, KernelId kernel) {
    return device->backend->fused >> kernel & 1u;
}

Status device_wait(Device *device) {
    Timeline *timeline = timeline_current();
    if (LIKELY(!timeline)) return device->backend->wait(device);
    TimelineTotal what = {.kind = TIMELINE_WAIT, .name = "wait", .origin = origin_current};
    uint64_t begin = timeline_now();
    Status status = device->backend->wait(device);
    timeline_add(timeline, &what, begin, 1);
    return status;
}

Status device_finish(void) {
    Device *device = device_default_opened();
    return device ? device_wait(device) : STATUS_OK;
}

void device_set_interrupted(bool (*interrupted)(void)) {
    runtime_current->work->interrupted = interrupted;
}

bool device_hold_interrupts(bool hold) {
    Work *work = runtime_current->work;
    bool before = work->interrupts_held;
    work->interrupts_held = hold;
    return before;
}

void device_share(int64_t count, void (*body)(void *, int64_t, int64_t), void *context) {
    cpu_parallel(count, 1, body, context);
}

bool device_has_threads(void) {
    return cpu_thread_count() > 1;
}

bool device_is_interrupted(void) {
    const Work *work = runtime_current->work;
    return !work->interrupts_held && work->interrupted && work->interrupted();
}
