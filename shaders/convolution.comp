// CONV2D and CONV2D_IMAGE as products that are never laid out: a workgroup makes TILE channels of
// 128 pixels, each thread 8 x 8 of them in registers. For one place of the window after the other,
// panels of DEPTH channels go through shared memory: weights as convolution_weights.comp packed
// them, and numbers of the image, of which each thread brings those of one pixel.
#include "types.glsl"
#include "host/convolution_results.h"

const uint PIXELS = 128, TILE = 64, DEPTH = 8, PITCH = PIXELS + 4;
layout(local_size_x = 128) in;

#ifdef REAL_F64
const uint PACKED = FLOAT64;
#else
const uint PACKED = FLOAT32;
#endif

#include "panels.glsl"

shared real weights[DEPTH * TILE], numbers[DEPTH * PITCH];

// What is not there is read elsewhere and dropped by whoever uses it: loads without branches
// overlap.
void fetch(out real4 weight, out real mine[DEPTH], out uint there) {
    weight = load4(weight_at, PACKED);
    there = is_inside ? shape.channels - channel : 0;
    [[unroll]] for (uint d = 0; d < DEPTH; d++)
        mine[d] = load_at(d < there ? tap_at + channel_bytes * uint64_t(d) : weight_at, IN_DTYPE);
}

void store_pixels(uint group, uint first_out, uint64_t first_pixel, real sums[8][8]) {
    uint plane = shape.out_dims[0] * shape.out_dims[1];
    [[unroll]] for (uint j = 0; j < 8; j += 4) {
        uint64_t first = first_pixel + uint64_t(j * 16);
        for (uint p = 0; p < 4; p++) {
            if (first + uint64_t(p) >= uint64_t(shape.pixels)) break;
            uint pixel = uint(first) + p, n = pixel / plane, rest = pixel % plane;
            int64_t at = int64_t(n) * shape.to[0] +
                         int64_t(rest / shape.out_dims[1]) * shape.to[2] +
                         int64_t(rest % shape.out_dims[1]) * shape.to[3];
            [[unroll]] for (uint i = 0; i < 8; i++) {
                uint o = first_out + i % 4 + i / 4 * 32;
                if (o >= shape.outs) continue;
                o += group * shape.outs;
                real shift =
                    BIAS == NO_DTYPE ? R(0) : load(bias_address, int64_t(o) * shape.bias, BIAS);
                int64_t to = at + int64_t(o) * shape.to[1];
                if (OUT_FOURS)
                    store4(element_address(out_address, to, OUT_DTYPE), OUT_DTYPE,
                           real4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]) +
                               shift);
                else
                    store(out_address, to, OUT_DTYPE, sums[i][j + p] + shift);
            }
            if (OUT_FOURS) break;
        }
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint64_t tile = group_number();
    if (tile * uint64_t(PIXELS) >= uint64_t(shape.pixels)) return;
    uint group = gl_WorkGroupID.z / shape.out_tiles;
    uint out_first = gl_WorkGroupID.z % shape.out_tiles * TILE;
    uint64_t my_pixel = tile * uint64_t(PIXELS) + uint64_t(thread);
    uint row_weights = shape.out_tiles * TILE; // of a channel
    uint panels = begin_panels(my_pixel, group, thread / (TILE / 4) * row_weights + out_first +
                                                    thread % (TILE / 4) * 4);

    real sums[8][8];
    [[unroll]] for (uint i = 0; i < 8; i++)
        [[unroll]] for (uint j = 0; j < 8; j++) sums[i][j] = R(0);
    uint my_out = thread / 16 * 4, my_column = thread % 16 * 4;
    real4 weight;
    real mine[DEPTH];
    uint there;
    fetch(weight, mine, there);
    for (uint panel = 0; panel < panels; panel++) {
        barrier();
        [[unroll]] for (uint d = 0; d < DEPTH; d++)
            numbers[d * PITCH + thread] = d < there ? mine[d] : R(0);
        [[unroll]] for (uint i = 0; i < 4; i++) weights[thread * 4 + i] = weight[i];
        barrier();
        if (panel + 1 < panels) {
            step_panel();
            fetch(weight, mine, there);
        }
        [[unroll]] for (uint d = 0; d < DEPTH; d++) {
            real w[8], x[8];
            [[unroll]] for (uint i = 0; i < 8; i++) {
                w[i] = weights[d * TILE + my_out + i % 4 + i / 4 * 32];
                x[i] = numbers[d * PITCH + my_column + i % 4 + i / 4 * 64];
            }
            [[unroll]] for (uint i = 0; i < 8; i++)
                [[unroll]] for (uint j = 0; j < 8; j++) sums[i][j] += w[i] * x[j];
        }
    }
    store_pixels(group, out_first + my_out, tile * uint64_t(PIXELS) + uint64_t(my_column), sums);
}
