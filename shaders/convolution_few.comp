// CONV2D and CONV2D_IMAGE of groups with few channels of the result: a thread makes one number.
#include "types.glsl"
#include "host/convolution_results.h"
#include "convolution.glsl"

layout(local_size_x = 128) in;

void main() {
    uint64_t number = group_number() * 128UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= count) return;
    uint64_t rest = number;
    uint x = uint(rest % uint64_t(shape.out_dims[1]));
    rest /= uint64_t(shape.out_dims[1]);
    uint y = uint(rest % uint64_t(shape.out_dims[0]));
    rest /= uint64_t(shape.out_dims[0]);
    uint all_outs = shape.out_tiles, o = uint(rest % uint64_t(all_outs));
    int64_t n = int64_t(rest / uint64_t(all_outs));
    uint group = o / shape.outs;
    int top = int(y) * shape.stride[0] - shape.padding[0];
    int left = int(x) * shape.stride[1] - shape.padding[1];
    int64_t image = n * shape.image[0] + int64_t(group * shape.channels) * shape.image[1];
    int64_t weight =
        int64_t(group) * shape.weight_group + int64_t(o % shape.outs) * shape.weight_to;
    real sum = R(0);
    for (uint i = 0; i < shape.window[0]; i++) {
        int row = seen_at(top, i, 0);
        if (row < 0) continue;
        for (uint j = 0; j < shape.window[1]; j++) {
            int column = seen_at(left, j, 1);
            if (column < 0) continue;
            int64_t at = image + int64_t(row) * shape.image[2] + int64_t(column) * shape.image[3];
            int64_t weight_at =
                weight + int64_t(i) * shape.weight_window[0] + int64_t(j) * shape.weight_window[1];
            for (uint c = 0; c < shape.channels; c++)
                sum += load(image_address, at + int64_t(c) * shape.image[1], IN_DTYPE) *
                       load(weight_address, weight_at + int64_t(c) * shape.weight_channel, WEIGHT);
        }
    }
    if (BIAS != NO_DTYPE) sum += load(bias_address, int64_t(o) * shape.bias, BIAS);
    store(out_address,
          n * shape.to[0] + int64_t(o) * shape.to[1] + int64_t(y) * shape.to[2] +
              int64_t(x) * shape.to[3],
          OUT_DTYPE, sum);
}
