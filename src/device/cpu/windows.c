// Which outputs of a window's element read the image, and which its padding.
#include "device/cpu/windows.h"

#include <stdlib.h>

#include "base/memory.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

// The first output i whose input i * stride + shift is at least `bound`.
static int64_t first_reaching(int64_t bound, int64_t shift, int64_t stride) {
    int64_t distance = bound - shift;
    return distance <= 0 ? 0 : (distance - 1) / stride + 1;
}

void windows_prepare(Windows *windows) {
    for (int d = 0; d < 2; d++) {
        int64_t size = windows->size[d], out = windows->out[d];
        windows->places[d] = memory_allocate((size_t)size * sizeof(WindowPlace));
        for (int64_t i = 0; i < size; i++) {
            WindowPlace *place = &windows->places[d][i];
            place->shift = i * windows->dilation[d] - windows->padding[d];
            place->begin = clamp(first_reaching(0, place->shift, windows->stride[d]), 0, out);
            place->end = clamp(first_reaching(windows->image[d], place->shift, windows->stride[d]),
                               place->begin, out);
        }
    }
}

void windows_free(Windows *windows) {
    free(windows->places[0]);
    free(windows->places[1]);
}
