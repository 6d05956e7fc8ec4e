// Test helper: strided arrays of any dtype in host memory, read and written one element at a time,
// so that kernels can be compared with plain loops; and running a suite once per instruction set.
#ifndef TESTS_DEVICE_ARRAYS_H
#define TESTS_DEVICE_ARRAYS_H

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
    for (int d = view->rank - 1; d >= 0; d--) {
        offset += index % view->dims[d] * view->strides[d];
        index /= view->dims[d];
    }
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

// The view points at the buffer beside it, wherever the array was moved since.
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

// Runs the suite in a process of its own for each instruction set that this machine has; the choice
// is made once per process.
__attribute__((unused)) static int run_per_isa(int (*suite)(void)) {
    static const char *const names[] = {"base", "avx2", "avx512"};
    if (getenv("TL_ISA")) return suite();
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
