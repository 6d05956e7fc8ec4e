// Packs the weights of a convolution for convolution.comp: [group][place in the
// window][channel][out], channels and outs filled up with zeros to whole panels.
#include "types.glsl"
#include "host/convolution_weights.h"
#include "convolution.glsl"

layout(local_size_x = 128) in;

void main() {
    uint64_t number = group_number() * 128UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= count) return;
    uint outs_packed = shape.out_tiles * TILE;
    uint channels_packed = (shape.channels + DEPTH - 1) / DEPTH * DEPTH;
    uint rest = uint(number), o = rest % outs_packed;
    rest /= outs_packed;
    uint channel = rest % channels_packed;
    rest /= channels_packed;
    uint x = rest % shape.window[1];
    rest /= shape.window[1];
    uint y = rest % shape.window[0], group = rest / shape.window[0];
    real weight = R(0);
    if (o < shape.outs && channel < shape.channels)
        weight = load(weight_address,
                      int64_t(group) * shape.weight_group +
                          int64_t(channel) * shape.weight_channel + int64_t(o) * shape.weight_to +
                          int64_t(y) * shape.weight_window[0] + int64_t(x) * shape.weight_window[1],
                      WEIGHT);
    store(out_address, int64_t(number), PACKED_AS, weight);
}
