// LINALG, which runs on the host by contract: operands are fetched, LAPACK works, results are sent.
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "device/vulkan/kernels/kernels.h"

enum { VIEWS_MAX = KERNEL_INPUTS_MAX + KERNEL_OUTPUTS_MAX };

// Views of a call as contiguous host memory.
typedef struct Hosted {
    int count;
    Buffer buffers[VIEWS_MAX];
    TensorView views[VIEWS_MAX];
} Hosted;

static size_t bytes_of(const TensorView *view) {
    return (size_t)view_count(view) * dtype_size(view->dtype);
}

static void make_contiguous(TensorView *view) {
    int64_t stride = 1;
    view->offset = 0;
    for (int d = view->rank - 1; d >= 0; d--) {
        view->strides[d] = stride;
        stride *= view->dims[d];
    }
}

static TensorView *host_view(Hosted *hosted, const TensorView *view) {
    int i = hosted->count++;
    size_t bytes = bytes_of(view);
    hosted->buffers[i] = (Buffer){.handle = memory_allocate(bytes > 0 ? bytes : 1)};
    hosted->views[i] = *view;
    make_contiguous(&hosted->views[i]);
    hosted->views[i].buffer = &hosted->buffers[i];
    return &hosted->views[i];
}

// Between a view on the device and contiguous host memory, by way of a contiguous copy.
static Status fetch(Device *device, const TensorView *view, void *target, const char *op_name) {
    SCOPED_SCRATCH(flat);
    if (bytes_of(view) == 0) return STATUS_OK;
    TRY(vulkan_scratch(device, view->dtype, view_count(view), &flat));
    TensorView copy = *view;
    make_contiguous(&copy);
    copy.buffer = flat.buffer;
    TRY(vulkan_copy_view(device, &copy, view, op_name));
    return buffer_download(flat.buffer, 0, target, bytes_of(view));
}

static Status send(Device *device, const TensorView *view, const void *source,
                   const char *op_name) {
    SCOPED_SCRATCH(flat);
    if (bytes_of(view) == 0) return STATUS_OK;
    TRY(vulkan_scratch(device, view->dtype, view_count(view), &flat));
    TensorView copy = *view;
    make_contiguous(&copy);
    copy.buffer = flat.buffer;
    TRY(buffer_upload(flat.buffer, 0, source, bytes_of(view)));
    return vulkan_copy_view(device, view, &copy, op_name);
}

static Status run_hosted(Device *device, const KernelCall *call, Hosted *hosted) {
    KernelCall on_host = *call;
    for (int k = 0; k < call->n_inputs; k++) {
        TensorView *view = host_view(hosted, call->inputs[k].view);
        on_host.inputs[k].view = view;
        TRY(fetch(device, call->inputs[k].view, view->buffer->handle, call->op_name));
    }
    for (int k = 0; k < call->n_outputs; k++)
        on_host.outputs[k] = host_view(hosted, call->outputs[k]);
    if (!device->foretold) TRY(cpu_kernel_LINALG(&on_host));
    for (int k = 0; k < call->n_outputs; k++)
        TRY(send(device, call->outputs[k], on_host.outputs[k]->buffer->handle, call->op_name));
    return STATUS_OK;
}

Status vulkan_kernel_LINALG(Device *device, const KernelCall *call) {
    Hosted hosted = {0};
    Status status = run_hosted(device, call, &hosted);
    for (int i = 0; i < hosted.count; i++) free(hosted.buffers[i].handle);
    return status;
}
