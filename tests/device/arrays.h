// Test helper: strided arrays of any dtype in host memory, read and written one element at a time,
// so that kernels can be compared with plain loops; running a kernel on the CPU or on the device
// that TL_TEST_DEVICE names; and running a suite once per instruction set.
#ifndef TESTS_DEVICE_ARRAYS_H
#define TESTS_DEVICE_ARRAYS_H

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/half.h"
#include "device/cpu/cpu.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

typedef enum Layout {
    LAYOUT_PLAIN,
    LAYOUT_TRANSPOSED, // the last two dims are swapped in memory
    LAYOUT_STEPPED,    // every second element along every dim
    LAYOUT_REVERSED,   // strides of the last two dims are negative
    LAYOUT_COUNT
} Layout;

typedef struct Array {
    Buffer buffer;
    TensorView view;
} Array;

static uint64_t array_random_state = 88172645463325252u;

__attribute__((unused)) static uint64_t array_random(void) {
    array_random_state ^= array_random_state << 13;
    array_random_state ^= array_random_state >> 7;
    array_random_state ^= array_random_state << 17;
    return array_random_state >> 11;
}

// In [-1, 1].
__attribute__((unused)) static double array_random_real(void) {
    return (double)array_random() / (double)(1ull << 52) - 1.0;
}

static int64_t array_count(const TensorView *view) {
    int64_t count = 1;
    for (int d = 0; d < view->rank; d++) count *= view->dims[d];
    return count;
}

// The address of the element with row-major number `index`.
static char *array_at(const Array *array, int64_t index) {
    const TensorView *view = &array->view;
    int64_t offset = 0;
    for (int d = view->rank - 1; d > 0; d--) {
        offset += index % view->dims[d] * view->strides[d];
        index /= view->dims[d];
    }
    if (view->rank > 0) offset += index * view->strides[0];
    return (char *)array->buffer.handle + view->offset + offset * (int64_t)dtype_size(view->dtype);
}

__attribute__((unused)) static double array_get(const Array *array, int64_t index) {
    union {
        uint16_t h;
        float f;
        double d;
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
    } v;
    DType dtype = array->view.dtype;
    memcpy(&v, array_at(array, index), dtype_size(dtype));
    switch (dtype) {
    case DTYPE_FLOAT16: return half_to_float(v.h);
    case DTYPE_BFLOAT16: return bfloat_to_float(v.h);
    case DTYPE_FLOAT32: return v.f;
    case DTYPE_FLOAT64: return v.d;
    case DTYPE_INT8: return v.i8;
    case DTYPE_INT16: return v.i16;
    case DTYPE_INT32: return v.i32;
    case DTYPE_INT64: return (double)v.i64;
    default: return v.u8;
    }
}

// All numbers, in row-major order: for references that read each many times. The caller frees them.
__attribute__((unused)) static double *array_numbers(const Array *array) {
    int64_t count = array_count(&array->view);
    double *numbers = malloc((size_t)count * sizeof *numbers + 1);
    for (int64_t i = 0; i < count; i++) numbers[i] = array_get(array, i);
    return numbers;
}

// Stores the value rounded to the dtype.
__attribute__((unused)) static void array_set(Array *array, int64_t index, double value) {
    union {
        uint16_t h;
        float f;
        double d;
        int64_t i;
    } v;
    DType dtype = array->view.dtype;
    if (dtype == DTYPE_FLOAT16)
        v.h = half_from_float((float)value);
    else if (dtype == DTYPE_BFLOAT16)
        v.h = bfloat_from_float((float)value);
    else if (dtype == DTYPE_FLOAT32)
        v.f = (float)value;
    else if (dtype == DTYPE_FLOAT64)
        v.d = value;
    else
        v.i = (int64_t)value; // little endian: the low bytes come first
    memcpy(array_at(array, index), &v, dtype_size(dtype));
}

// Memory between and around the elements is 0xFF: NaN to every float type.
__attribute__((unused)) static void array_make(Array *array, DType dtype, Layout layout, int rank,
                                               const int64_t *dims) {
    *array = (Array){.view = {.dtype = dtype, .rank = rank}};
    int64_t step = layout == LAYOUT_STEPPED ? 2 : 1, stride = step, offset = 0;
    for (int i = 0; i < rank; i++) {
        int d = rank - 1 - i;
        if (layout == LAYOUT_TRANSPOSED && rank >= 2 && i < 2) d = rank - 2 + i;
        array->view.dims[d] = dims[d];
        array->view.strides[d] = stride;
        if (layout == LAYOUT_REVERSED && d >= rank - 2 && dims[d] > 0) {
            array->view.strides[d] = -stride;
            offset += (dims[d] - 1) * stride;
        }
        stride *= dims[d] * step;
    }
    size_t item = dtype_size(dtype), bytes = (size_t)stride * item + item;
    array->buffer.handle = malloc(bytes);
    memset(array->buffer.handle, 0xFF, bytes);
    array->view.offset = (size_t)offset * item;
}

// The view points at the buffer next to it, wherever the array was moved since.
__attribute__((unused)) static const TensorView *array_view(Array *array) {
    array->view.buffer = &array->buffer;
    return &array->view;
}

__attribute__((unused)) static void array_fill_random(Array *array) {
    bool whole = !dtype_is_float(array->view.dtype);
    for (int64_t i = 0; i < array_count(&array->view); i++)
        array_set(array, i, whole ? (double)(array_random() % 256) - 128 : array_random_real());
}

__attribute__((unused)) static void array_free(Array *array) {
    free(array->buffer.handle);
}

// The device that TL_TEST_DEVICE names, opened at first use; NULL: the CPU's kernels, called as
// they are.
__attribute__((unused)) static Device *array_device(void) {
    static Device *device;
    const char *name = getenv("TL_TEST_DEVICE");
    if (!name || device) return device;
    if (device_open(name, &device) != STATUS_OK) {
        fprintf(stderr, "TL_TEST_DEVICE=%s: %s\n", name, error_current()->message);
        exit(1);
    }
    return device;
}

enum { MIRRORS_MAX = KERNEL_INPUTS_MAX + KERNEL_OUTPUTS_MAX };

// The host memory behind the views of a call, and its copy on the device.
typedef struct Mirror {
    char *memory;
    size_t bytes;
    Buffer *copy;
} Mirror;

typedef struct Mirrors {
    Device *device;
    int count;
    Mirror each[MIRRORS_MAX];
    TensorView views[MIRRORS_MAX];
    int n_views;
} Mirrors;

static const TensorView *mirror_view(Mirrors *mirrors, const TensorView *view) {
    char *memory = view->buffer->handle;
    Mirror *mirror = mirrors->each, *end = mirrors->each + mirrors->count;
    while (mirror < end && mirror->memory != memory) mirror++;
    if (mirror == end) {
        *mirror = (Mirror){.memory = memory, .bytes = malloc_usable_size(memory)};
        mirrors->count++;
        BufferLabel label = {.rank = -1};
        assert_int_equal(buffer_new(mirrors->device, mirror->bytes, &label, &mirror->copy),
                         STATUS_OK);
        assert_int_equal(buffer_upload(mirror->copy, 0, memory, mirror->bytes), STATUS_OK);
    }
    TensorView *mirrored = &mirrors->views[mirrors->n_views++];
    *mirrored = *view;
    mirrored->buffer = mirror->copy;
    return mirrored;
}

// Bytes of an output that belong to none of its elements must be what they were.
static void check_guards(const TensorView *view, const char *before, const char *after,
                         size_t bytes) {
    int64_t count = array_count(view);
    size_t item = dtype_size(view->dtype);
    if (count > 1 << 20) return;
    Array array = {.buffer = *view->buffer, .view = *view};
    char *ours = calloc(bytes, 1);
    for (int64_t i = 0; i < count; i++)
        memset(ours + (array_at(&array, i) - (char *)array.buffer.handle), 1, item);
    for (size_t i = 0; i < bytes; i++)
        if (!ours[i] && before[i] != after[i])
            fail_msg("byte %zu of %zu does not belong to the output, but was written", i, bytes);
    free(ours);
}

static void mirrors_take_outputs(Mirrors *mirrors, const KernelCall *call) {
    for (int i = 0; i < mirrors->count; i++) {
        Mirror *mirror = &mirrors->each[i];
        char *after = malloc(mirror->bytes);
        assert_int_equal(buffer_download(mirror->copy, 0, after, mirror->bytes), STATUS_OK);
        bool written = false;
        for (int k = 0; k < KERNEL_OUTPUTS_MAX; k++) {
            const TensorView *view = call->outputs[k];
            if (!view || view->buffer->handle != mirror->memory) continue;
            check_guards(view, mirror->memory, after, mirror->bytes);
            written = true;
        }
        if (written && mirror->bytes > 0)
            memcpy(mirror->memory, after, mirror->bytes);
        else if (!written)
            assert_memory_equal(mirror->memory, after, mirror->bytes);
        free(after);
        buffer_release(mirror->copy);
    }
}

// Runs a kernel over host memory: on another device than the CPU through a copy of it.
__attribute__((unused)) static Status run_kernel(KernelId kernel, const KernelCall *call) {
    KernelCall copy = *call;
    copy.kernel = kernel;
    Device *device = array_device();
    if (!device) return cpu_backend.run(NULL, &copy);
    Mirrors mirrors = {.device = device};
    for (int k = 0; k < KERNEL_INPUTS_MAX; k++)
        if (call->inputs[k].view) copy.inputs[k].view = mirror_view(&mirrors, call->inputs[k].view);
    for (int k = 0; k < KERNEL_OUTPUTS_MAX; k++)
        if (call->outputs[k]) copy.outputs[k] = mirror_view(&mirrors, call->outputs[k]);
    Status status = device->backend->run(device, &copy);
    mirrors_take_outputs(&mirrors, call);
    return status;
}

// Runs the suite in a process of its own for each instruction set that this machine has; the choice
// is made once per process.
__attribute__((unused)) static int run_per_isa(int (*suite)(void)) {
    static const char *const names[] = {"base", "avx2", "avx512"};
    if (getenv("TL_ISA") || getenv("TL_TEST_DEVICE")) return suite();
    int failed = 0;
    for (int i = 0; i < 3; i++) {
#if defined(__x86_64__)
        if (i == 1 && !__builtin_cpu_supports("avx2")) continue;
        if (i == 2 && !__builtin_cpu_supports("avx512bw")) continue;
#else
        if (i > 0) continue;
#endif
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("TL_ISA", names[i], 1);
            fprintf(stderr, "TL_ISA=%s\n", names[i]);
            exit(suite());
        }
        int status;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    return failed;
}

#endif
