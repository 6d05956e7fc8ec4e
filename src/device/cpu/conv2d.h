// A convolution as products of matrices: windows of the image are columns [depth, positions] of
// one.
#ifndef DEVICE_CPU_CONV2D_H
#define DEVICE_CPU_CONV2D_H

#include "device/cpu/windows.h"

typedef struct Convolution {
    const TensorView *image; // [N, C, H, W]
    CpuCompute compute;
    const WindowRows *rows;
    Windows windows;
    int64_t groups, channels, outs; // of one group
    int64_t depth;                  // channels * window
    int64_t positions;              // pixels of an output plane
    int64_t tile, tiles;            // positions that are computed together
} Convolution;

// From the call's integers; `image` and `out` are of the forward pass. convolution_free releases.
void convolution_prepare(const KernelCall *call, const TensorView *image, const TensorView *weight,
                         const TensorView *out, Convolution *convolution);
void convolution_free(Convolution *convolution);
// Neighbouring positions of an output plane.
typedef struct Positions {
    int64_t first, count;
} Positions;
// columns[depth, count]: what the windows of these outputs see of image n, group g.
void convolution_fill(const Convolution *convolution, int64_t n, int64_t group, Positions outputs,
                      void *columns);
// The reverse over `channels` channels: adds columns [channels * window, count], which it may
// spoil, to the planes of an image [.., H, W] of the compute type, contiguous, of which the first
// is `planes`.
void convolution_spread(const Convolution *convolution, int64_t channels, Positions outputs,
                        void *columns, void *planes);

#endif
