// Devices that account without computing. Knows no kernel: planners say what those take, and what
// is small enough is computed by the CPU's.
#include "device/foretelling.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "device/alike.h"
#include "device/cpu/cast.h"
#include "device/cpu/cpu.h"
#include "device/noise.h"
#include "device/pool.h"
#include "device/report.h"
#include "device/spill.h"
#include "device/walk.h"

enum {
    HELD_BYTES_MAX = 64 << 10, // what is larger is neither held nor known
    VIEWS_MAX = KERNEL_INPUTS_MAX + KERNEL_OUTPUTS_MAX,
    // So many times of what there is are foretold before a pass is interrupted, so that most are
    // told what they need, and those that take memory without end are told, too.
    HOPELESS_TIMES = 8,
};

// Reads and writes of known numbers are computed until they are so many, and each kernel counts as
// so many where what it finds may not be what a run finds: then a loop may have no end.
static const uint64_t work_max = 4000000000u, kernel_work = 16 << 10;

typedef struct ForetoldDevice {
    DeviceBackend backend; // first: a device leads here by its backend
    const ForetellPlanner *planner;
    const DeviceBackend *real;
    Forecast highest; // of the peaks that the program has reset
} ForetoldDevice;

static ForetoldDevice *foretold_of(const Device *device) {
    return (ForetoldDevice *)(uintptr_t)device->backend;
}

void foretelling_begin(const ForetellPlan *plan) {
    Foretelling *made = memory_allocate_zeroed(1, sizeof *made);
    made->plan = plan;
    if (plan->path) plan->path->made = 0;
    DeviceSettings settings = {.buffer_max_bytes = 64 << 20};
    made->computer = memory_allocate_zeroed(1, sizeof *made->computer);
    cpu_open(made->computer);
    made->computer->runtime = runtime_current;
    made->computer->pool = pool_new(made->computer, &settings);
    runtime_current->devices->foretelling = made;
    runtime_current->foretells = true;
}

void foretelling_free(Foretelling *made) {
    if (!made) return;
    device_close(made->computer);
    VECTOR_FREE(&made->loose);
    free(made);
}

// --- memory --------------------------------------------------------------------------------------

static Foretold *memory_of(const TensorView *view) {
    return view->buffer->handle;
}

// Of what is sure; a size that an unknown number decided may be less in a run.
static bool is_hopeless(const Foretelling *now, const Device *device) {
    uint64_t limit = device->memory_limit, live = device->pool->statistics.live_bytes;
    if (now->loose.count > 0) return false;
    if (device->own_bytes > 0 && now->tensor_bytes > device->own_bytes) return true;
    return limit > 0 && live / HOPELESS_TIMES > limit &&
           live / HOPELESS_TIMES - limit > now->away_room;
}

static Status allocate_foretold(Device *device, size_t bytes, void **handle) {
    Foretelling *now = foretelling_current();
    if (!now->asked_room) now->away_room = spill_room(device);
    now->asked_room = true;
    bool too_large = device->own_bytes > 0 && bytes > device->own_bytes;
    if (now->plan->fails && too_large && now->attempts > 0 && now->loose.count == 0)
        return fail(STATUS_MEMORY, "out of memory");
    if (bytes > now->tensor_bytes) {
        now->tensor_bytes = bytes;
        now->tensor_at = origin_current.at;
    }
    if (now->plan->judges && !now->hopeless && is_hopeless(now, device)) {
        now->hopeless = true;
        runtime_interrupt(runtime_current, INTERRUPT_SIGNAL);
    }
    Foretold *memory = memory_allocate_zeroed(1, sizeof *memory);
    if (bytes <= HELD_BYTES_MAX) {
        size_t alignment = device->alignment;
        memory->bytes = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
        if (memory->bytes) memset(memory->bytes, 0, bytes);
    }
    memory->capacity = bytes;
    if (foretold_of(device)->planner->made) foretold_of(device)->planner->made(memory);
    *handle = memory;
    return STATUS_OK;
}

static void free_foretold(Device *device, void *handle, size_t bytes) {
    (void)device;
    (void)bytes;
    Foretold *memory = handle;
    foretelling_current()->held_bytes -= memory->resident;
    free(memory->bytes);
    free(memory);
}

// Of a file, the system brings what is next to a byte that is read, too.
static uint64_t pages_of(size_t bytes) {
    const uint64_t around = 64 << 10;
    return (bytes + around - 1) / around * around;
}

// Whoever takes it writes before reading.
static void taken_foretold(void *handle, size_t bytes) {
    Foretold *memory = handle;
    Foretelling *now = foretelling_current();
    size_t resident = cpu_resident_bytes(bytes, memory->capacity);
    memory->known = memory->bytes != NULL;
    memory->rounded = memory->bounded = false;
    if (resident <= memory->resident) return;
    now->held_bytes += resident - memory->resident;
    if (now->held_bytes > now->held_most) now->held_most = now->held_bytes;
    memory->resident = resident;
}

static Status import_foretold(Device *device, const void *bytes, size_t count, void **handle) {
    (void)device;
    Foretelling *now = foretelling_current();
    Foretold *memory = memory_allocate_zeroed(1, sizeof *memory);
    memory->mapped = count;
    memory->known = count <= HELD_BYTES_MAX;
    if (memory->known) memory->bytes = (char *)(uintptr_t)bytes;
    now->mapped_bytes += count;
    if (now->mapped_bytes > now->mapped_most) now->mapped_most = now->mapped_bytes;
    *handle = memory;
    return STATUS_OK;
}

static void release_foretold(Device *device, void *handle) {
    (void)device;
    Foretold *memory = handle;
    foretelling_current()->mapped_bytes -= memory->mapped;
    if (memory->read) foretelling_current()->read_bytes -= pages_of(memory->mapped);
    free(memory);
}

// --- bytes in and out ----------------------------------------------------------------------------

static Status upload_foretold(Device *device, Buffer *buffer, size_t offset, const void *source,
                              size_t bytes) {
    Foretold *memory = buffer->handle;
    bool whole = offset == 0 && bytes == buffer->bytes;
    if (memory->bytes) {
        memcpy(memory->bytes + offset, source, bytes);
        memory->known |= whole;
    }
    const ForetellPlanner *planner = foretold_of(device)->planner;
    if (whole && planner->uploaded && !foretelling_current()->planning)
        planner->uploaded(device, buffer, source, bytes);
    return STATUS_OK;
}

static void guess_numbers(const Buffer *buffer, bool holds, void *target, size_t bytes) {
    DType dtype = buffer->label.rank >= 0 ? buffer->label.dtype : DTYPE_UINT8;
    static const Scalar one = {.dtype = DTYPE_INT64, .as.i = 1};
    memset(target, 0, bytes);
    if (holds != (dtype == DTYPE_BOOL)) return;
    size_t size = dtype_size(dtype);
    for (size_t at = 0; at + size <= bytes; at += size)
        cast_scalar(&one, dtype, (char *)target + at);
}

static Status download_foretold(Device *device, Buffer *buffer, size_t offset, void *target,
                                size_t bytes) {
    (void)device;
    const Foretold *memory = buffer->handle;
    Foretelling *now = foretelling_current();
    if (now->planning) { // what a kernel that did not run would have found: nothing wrong
        memset(target, 0, bytes);
    } else if (memory->known) {
        now->rounded_read |= memory->rounded;
        memcpy(target, memory->bytes + offset, bytes);
    } else if (now->ignores_reads) {
        now->reads++;
        memset(target, 0, bytes);
    } else {
        bool choice = bytes == 1 && buffer->label.rank >= 0 && buffer->label.dtype == DTYPE_BOOL;
        guess_numbers(buffer, foretelling_guess(now, origin_current.at, choice), target, bytes);
    }
    return STATUS_OK;
}

// --- kernels -------------------------------------------------------------------------------------

// Kernels that change what is there already.
static bool changes_in_place(KernelId kernel) {
    return kernel == KERNEL_SCATTER || kernel == KERNEL_INDEX_PUT || kernel == KERNEL_OPTIMIZER;
}

// A draw from a stream that nobody has seeded differs from run to run.
static bool is_random(const KernelCall *call) {
    return call->kernel == KERNEL_RANDOM &&
           (uint64_t)call->options.integers[0] == FORETELL_RANDOM_KEY;
}

static bool is_computed(const Foretelling *now, const KernelCall *call) {
    if (now->work > work_max || is_random(call)) return false;
    for (int i = 0; i < call->n_inputs; i++) {
        const KernelOperand *input = &call->inputs[i];
        if (input->view ? !memory_of(input->view)->known : input->scalar.unknown) return false;
    }
    for (int i = 0; i < call->n_outputs; i++)
        if (!memory_of(call->outputs[i])->bytes) return false;
    return true;
}

// The buffers of a call as the CPU's kernels want them; one that occurs twice is the same.
typedef struct Shadows {
    int count;
    const Buffer *originals[VIEWS_MAX];
    Buffer buffers[VIEWS_MAX];
    TensorView views[VIEWS_MAX];
} Shadows;

static const TensorView *shadow(Shadows *shadows, Device *computer, const TensorView *view) {
    int i = shadows->count++, same = 0;
    while (same < i && shadows->originals[same] != view->buffer) same++;
    shadows->originals[i] = view->buffer;
    if (same == i)
        shadows->buffers[i] = (Buffer){.device = computer,
                                       .handle = memory_of(view)->bytes,
                                       .bytes = view->buffer->bytes,
                                       .capacity = view->buffer->capacity,
                                       .label = view->buffer->label};
    shadows->views[i] = *view;
    shadows->views[i].buffer = &shadows->buffers[same];
    return &shadows->views[i];
}

// `alike`: whether the device would find the same.
static Status compute(Foretelling *now, const KernelCall *call, bool *alike) {
    Shadows shadows = {0};
    KernelCall shadowed = *call;
    if (now->plan->rounding != FORETELL_AS_IT_LIKES) now->work += kernel_work;
    for (int i = 0; i < call->n_inputs; i++) {
        if (!call->inputs[i].view) continue;
        shadowed.inputs[i].view = shadow(&shadows, now->computer, call->inputs[i].view);
        now->work += call->inputs[i].view->buffer->bytes;
    }
    for (int i = 0; i < call->n_outputs; i++) {
        shadowed.outputs[i] = shadow(&shadows, now->computer, call->outputs[i]);
        now->work += call->outputs[i]->buffer->bytes;
    }
    *alike = !foretold_of(call->outputs[0]->buffer->device)->planner->own_rounding ||
             kernel_is_alike(&shadowed);
    if (*alike || now->plan->rounding < FORETELL_NOISE)
        return now->computer->backend->run(now->computer, &shadowed);
    return noise_run(now->computer, &shadowed, now->plan->rounding);
}

// What the operands occupy together.
static void note_operation(Foretelling *now, const KernelCall *call) {
    const Buffer *seen[VIEWS_MAX];
    int count = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < call->n_inputs + call->n_outputs; i++) {
        const TensorView *view =
            i < call->n_inputs ? call->inputs[i].view : call->outputs[i - call->n_inputs];
        if (!view || view->buffer->import.release) continue;
        int same = 0;
        while (same < count && seen[same] != view->buffer) same++;
        if (same < count) continue;
        seen[count++] = view->buffer;
        bytes += view->buffer->capacity;
    }
    if (bytes <= now->operation_bytes) return;
    now->operation_bytes = bytes;
    now->operation_at = origin_current.at;
}

// Rows that are chosen are a small part; what was repacked is not read any more.
static void note_read_files(Foretelling *now, const KernelCall *call) {
    for (int i = 0; i < call->n_inputs && call->kernel != KERNEL_GATHER; i++) {
        const Buffer *buffer = call->inputs[i].view ? call->inputs[i].view->buffer : NULL;
        if (!buffer || !buffer->import.release || buffer->companion) continue;
        Foretold *memory = buffer->handle;
        if (!memory->read) now->read_bytes += pages_of(memory->mapped);
        memory->read = true;
    }
    uint64_t read = now->read_bytes < now->mapped_bytes ? now->read_bytes : now->mapped_bytes;
    if (read > now->read_most) now->read_most = read;
}

static bool has_bounded_input(const KernelCall *call) {
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view && memory_of(call->inputs[i].view)->bounded) return true;
    return false;
}

static bool has_rounded_input(const KernelCall *call) {
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view && memory_of(call->inputs[i].view)->rounded) return true;
    return false;
}

static Status run_foretold(Device *device, const KernelCall *call) {
    Foretelling *now = foretelling_current();
    bool before = now->planning;
    now->planning = true;
    Status status = foretold_of(device)->planner->plan(device, call);
    now->planning = before;
    TRY(status);
    const PoolStatistics *statistics = &device->pool->statistics;
    uint64_t repacked = statistics->repacked_bytes;
    if (repacked > now->repacked_most) now->repacked_most = repacked;
    note_operation(now, call);
    note_read_files(now, call);
    bool computed = is_computed(now, call), bounded = has_bounded_input(call);
    if (bounded && now->attempts > 0)
        foretelling_note_open(now, origin_current.at); // sizes may not agree
    bool alike = true;
    if (computed) TRY(compute(now, call, &alike));
    now->rounded |= !alike;
    computed &= alike || now->plan->rounding != FORETELL_AS_IT_LIKES;
    bool rounded = !alike || has_rounded_input(call);
    for (int i = 0; i < call->n_outputs; i++) {
        Foretold *memory = memory_of(call->outputs[i]);
        bool changed = changes_in_place(call->kernel); // the shape is one that was there before
        memory->bounded |= bounded && !changed && call->outputs[i]->rank > 0;
        bool replaced = view_fills_buffer(call->outputs[i]) && !changed;
        memory->known = computed && (memory->known || replaced);
        memory->rounded = rounded || (memory->rounded && !replaced);
    }
    return STATUS_OK;
}

static Status nothing_pending(Device *device) {
    (void)device;
    return STATUS_OK;
}

static void destroy_foretold(Device *device) {
    ForetoldDevice *foretold = foretold_of(device);
    device->backend = foretold->real;
    device->backend->destroy(device);
    free(foretold);
}

void foretell_device(Device *device, const ForetellPlanner *planner) {
    ForetoldDevice *foretold = memory_allocate_zeroed(1, sizeof *foretold);
    foretold->planner = planner;
    foretold->real = device->backend;
    foretold->backend = *device->backend;
    DeviceBackend *backend = &foretold->backend;
    backend->memory_allocate = allocate_foretold;
    backend->memory_free = free_foretold;
    backend->memory_taken = taken_foretold;
    backend->upload = upload_foretold;
    backend->download = download_foretold;
    backend->run = run_foretold;
    backend->submit = backend->wait = nothing_pending;
    if (backend->host_import) {
        backend->host_import = import_foretold;
        backend->host_release = release_foretold;
    }
    backend->destroy = destroy_foretold;
    device->backend = backend;
    device->foretold = true;
}

bool foretell_is_exact(const Device *device) {
    if (!foretelling() || !device) return true;
    uint64_t most = device->memory_limit > 0 ? device->memory_limit : device->own_bytes;
    return !foretelling_current()->bounded &&
           (most == 0 || pool_statistics(device).peak_bytes <= most);
}

// --- what was found ------------------------------------------------------------------------------

void foretell_peak_reset(const Device *device) {
    Forecast peak = {0};
    report_forecast(device, &peak);
    ForetoldDevice *foretold = foretold_of(device);
    if (peak.peak_bytes > foretold->highest.peak_bytes) foretold->highest = peak;
}

void foretell_device_report(const Device *device, Forecast *out) {
    Forecast end = {0};
    report_forecast(device, &end);
    const Forecast *highest = &foretold_of(device)->highest;
    *out = highest->peak_bytes > end.peak_bytes ? *highest : end;
    out->cached_bytes = end.cached_bytes;
    out->cached_buffers = end.cached_buffers;
    memcpy(out->purposes_most, end.purposes_most, sizeof end.purposes_most);
}

void foretelling_report(const Device *device, Forecast *out) {
    Foretelling *now = foretelling_current();
    foretell_device_report(device, out);
    out->sure = now->loose.count > 0 ? now->sure : foretelling_sure(now);
    out->mapped_bytes = now->mapped_most;
    out->repacked_bytes = now->repacked_most;
    out->read_bytes = now->read_most;
    out->held_bytes = now->held_most;
    out->operation_bytes = now->operation_bytes;
    out->operation_at = now->operation_at;
    out->tensor_bytes = now->tensor_bytes;
    out->tensor_at = now->tensor_at;
    out->away_room = now->asked_room ? now->away_room : spill_room(device);
    out->claim = now->loose.count > 0 ? FORECAST_BOUND : FORECAST_EXACT;
    out->bounded = now->bounded;
    out->rounded = now->rounded;
    for (size_t i = 0; i < now->loose.count; i++) {
        const LooseRead *read = &now->loose.items[i];
        if (read->open) out->claim = FORECAST_ESTIMATE;
        if (i == FORETELL_LOOSE_MAX) continue;
        out->open[out->loose_count] = read->open;
        out->loose[out->loose_count++] = read->at;
    }
}
