// POOL2D: a thread makes one number of the output from its window.
#include "types.glsl"
#include "host/window.h"

layout(local_size_x = 128) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u;

// Padding never counts; NaN is larger than every number; an empty window has the mean 0.
real pooled(uint n, uint c, int64_t top, int64_t left) {
    int64_t bottom = min(top + shape.window[0], int64_t(shape.image_dims[2]));
    int64_t right = min(left + shape.window[1], int64_t(shape.image_dims[3]));
    top = max(top, 0L);
    left = max(left, 0L);
#ifdef REAL_I64
    real best = -INT64_HIGHEST - 1L;
#else
    real best = -REAL_INFINITY;
#endif
    real sum = R(0);
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++) {
            int64_t at = int64_t(n) * shape.image[0] + int64_t(c) * shape.image[1] +
                         y * shape.image[2] + x * shape.image[3];
            real value = load(image_address, at, IN_DTYPE);
            sum += value;
            if (!real_isnan(best) && (real_isnan(value) || value > best)) best = value;
        }
    int64_t count = bottom > top && right > left ? (bottom - top) * (right - left) : 0L;
    if (!MEAN) return best;
    return count > 0L ? sum / real(count) : R(0);
}

void main() {
    uint64_t number = group_number() * 128UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= count) return;
    uint rest = uint(number);
    uint x = rest % shape.out_dims[3];
    rest /= shape.out_dims[3];
    uint y = rest % shape.out_dims[2];
    rest /= shape.out_dims[2];
    uint o = rest % shape.out_dims[1], n = rest / shape.out_dims[1];
    int64_t top = int64_t(y) * shape.stride[0] - shape.padding[0];
    int64_t left = int64_t(x) * shape.stride[1] - shape.padding[1];
    real value = pooled(n, o, top, left);
    int64_t to = int64_t(n) * shape.to[0] + int64_t(o) * shape.to[1] + int64_t(y) * shape.to[2] +
                 int64_t(x) * shape.to[3];
    store(out_address, to, OUT_DTYPE, value);
}
