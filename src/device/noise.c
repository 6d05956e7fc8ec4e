// Noise on what kernels read and make, to find what does not depend on rounding.
#include "device/noise.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/cast.h"

// A number that is changed by this times itself is 64 roundings away, or 4 of the short types.
static double noise_of(DType dtype) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return 0x1p-6;
    case DTYPE_FLOAT16: return 0x1p-9;
    case DTYPE_FLOAT32: return 0x1p-18;
    case DTYPE_FLOAT64: return 0x1p-47;
    default: return dtype_is_quant(dtype) ? 0x1p-9 : 0;
    }
}

// That of the shortest type among the operands.
static double noise_of_call(const KernelCall *call) {
    double most = 0;
    for (int i = 0; i < call->n_inputs + call->n_outputs; i++) {
        const TensorView *view =
            i < call->n_inputs ? call->inputs[i].view : call->outputs[i - call->n_inputs];
        double noise = view ? noise_of(view->dtype) : 0;
        if (noise > most) most = noise;
    }
    return most;
}

static uint64_t mix(uint64_t number) {
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    return number ^ number >> 31;
}

// Each number of the buffer becomes a little more or less.
static void add_noise(const TensorView *view, double noise, uint64_t *draw) {
    size_t width = dtype_size(view->dtype), count = view->buffer->bytes / width;
    char *bytes = view->buffer->handle;
    ASSERT(bytes && dtype_is_float(view->dtype));
    double numbers[CAST_CHUNK];
    for (size_t first = 0; first < count; first += CAST_CHUNK) {
        int64_t part = (int64_t)(count - first < CAST_CHUNK ? count - first : CAST_CHUNK);
        char *at = bytes + first * width;
        RowCopy out = {numbers, sizeof *numbers, at, (int64_t)width, part};
        cast_row((CastRow){view->dtype, DTYPE_FLOAT64}, &out);
        for (int64_t i = 0; i < part; i++) numbers[i] *= 1 + (mix(++*draw) & 1 ? noise : -noise);
        RowCopy back = {at, (int64_t)width, numbers, sizeof *numbers, part};
        cast_row((CastRow){DTYPE_FLOAT64, view->dtype}, &back);
    }
}

static bool is_written(const KernelCall *call, const Buffer *buffer) {
    for (int i = 0; i < call->n_outputs; i++)
        if (call->outputs[i]->buffer == buffer) return true;
    return false;
}

// Sums of large numbers that cancel differ by more than the result's own rounding, so that operands
// have noise, too.
Status noise_run(Device *device, const KernelCall *call, int chosen) {
    double noise = chosen % 2 ? -noise_of_call(call) : noise_of_call(call);
    void *kept[KERNEL_INPUTS_MAX] = {0};
    ASSERT(device->backend->memory_taken == NULL); // it computes
    uint64_t draw = mix((uint64_t)(chosen / 2) << 32 | (uint64_t)call->kernel << 8);
    for (int i = 0; i < call->n_inputs; i++) {
        const TensorView *view = call->inputs[i].view;
        if (!view || !dtype_is_float(view->dtype)) continue;
        if (is_written(call, view->buffer)) continue;
        kept[i] = memory_allocate(view->buffer->bytes);
        memcpy(kept[i], view->buffer->handle, view->buffer->bytes);
        add_noise(view, noise, &draw);
    }
    Status status = device->backend->run(device, call);
    for (int i = call->n_inputs - 1; i >= 0; i--) {
        if (!kept[i]) continue;
        memcpy(call->inputs[i].view->buffer->handle, kept[i], call->inputs[i].view->buffer->bytes);
        free(kept[i]);
    }
    for (int i = 0; i < call->n_outputs; i++)
        if (dtype_is_float(call->outputs[i]->dtype)) add_noise(call->outputs[i], noise, &draw);
    return status;
}
