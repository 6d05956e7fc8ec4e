// Windows over images [batch, channels, height, width]: their geometry, and what is done to rows.
// Knows neither convolution nor pooling.
#ifndef DEVICE_CPU_WINDOWS_H
#define DEVICE_CPU_WINDOWS_H

#include "device/cpu/convert.h"

// The best of each window, and its gradient until the first place that is the best has taken it.
typedef struct LargestShare {
    const void *best;
    void *left;
} LargestShare;

// On `count` numbers of the compute type; steps count numbers of the strided side.
typedef struct WindowRows {
    void (*copy)(void *target, const void *source, int64_t step, int64_t count);
    void (*gather_add)(void *target, const void *source, int64_t step, int64_t count);
    void (*scatter_add)(void *target, const void *source, int64_t step, int64_t count);
    void (*add_number)(void *target, double number, int64_t count);
    void (*begin_largest)(void *target, int64_t count);
    void (*take_largest)(void *target, const void *source, int64_t step, int64_t count);
    // The largest of windows of two by two, side by side, over two rows of the image.
    void (*largest_of_four)(void *target, const void *upper, const void *lower, int64_t count);
    // Both target and source are strided: the place of each window in the image and its gradient.
    void (*share_largest)(void *target, const void *source, int64_t step, int64_t count,
                          const LargestShare *share);
    // The gradient `up` of each window of two by two, written to the first of its largest places.
    void (*share_of_four)(void *const *targets, const void *const *rows, const void *up,
                          int64_t count);
    void (*divide)(void *target, const int64_t *counts, int64_t count); // 0 where there are none
} WindowRows;
CPU_DECLARE(const WindowRows *, window_rows, (CpuCompute compute));

typedef struct WindowPlace { // along one dimension
    int64_t begin, end;      // the outputs [begin, end) whose input lies inside the image
    int64_t shift;           // output i reads input i * stride + shift
} WindowPlace;

// The geometry along height (0) and width (1).
typedef struct Windows {
    int64_t image[2], out[2], size[2], stride[2], padding[2], dilation[2];
    WindowPlace *places[2]; // of each element of the window
} Windows;

// Fills in `places` from the rest.
void windows_prepare(Windows *windows);
void windows_free(Windows *windows);

#endif
