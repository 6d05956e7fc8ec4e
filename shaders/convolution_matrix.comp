// CONV2D of 16-bit floats on the device's matrix units: convolution.comp with panels of DEPTH
// channels and matrices of 16 x 16, of which a subgroup has 2 x 4.
#include "matrix_units.glsl"
#include "host/convolution_results.h"

const uint PIXELS = 128, TILE = 64, DEPTH = 32;
layout(local_size_x = 128) in;
const uint PACKED = FLOAT16; // or bfloat16
#include "panels.glsl"

// In vectors of eight numbers: weights [channel][out], numbers [pixel][channel].
const uint W_PITCH = TILE / 8 + 1, X_PITCH = DEPTH / 8 + 1, X_FIRST = DEPTH * W_PITCH;
shared uvec4 panels[X_FIRST + PIXELS * X_PITCH];

// What is not there is read elsewhere and dropped by whoever uses it: loads without branches
// overlap.
void fetch(out uvec4 weight[2], out uint mine[DEPTH], out uint there) {
    uint64_t row = uint64_t(2 * shape.out_tiles * TILE);
    [[unroll]] for (uint i = 0; i < 2; i++)
        weight[i] = Word4(weight_at + uint64_t(i * 16) * row).v;
    there = is_inside ? shape.channels - channel : 0;
    [[unroll]] for (uint d = 0; d < DEPTH; d++)
        mine[d] = uint(Short(d < there ? tap_at + channel_bytes * uint64_t(d) : weight_at).v);
}

uint pair_of(uint mine[DEPTH], uint d, uint there) {
    return (d < there ? mine[d] : 0) | (d + 1 < there ? mine[d + 1] : 0) << 16;
}

// Four pixels of one channel of the result, from `pixel` on.
void store_pixels(uint o, uint64_t pixel, vec4 values) {
    if (pixel >= uint64_t(shape.pixels)) return;
    uint plane = shape.out_dims[0] * shape.out_dims[1];
    if (BIAS != NO_DTYPE) values += load(bias_address, int64_t(o) * shape.bias, BIAS);
    for (uint p = 0; p < 4; p++) {
        if (pixel + uint64_t(p) >= uint64_t(shape.pixels)) return;
        uint n = (uint(pixel) + p) / plane, rest = (uint(pixel) + p) % plane;
        int64_t at = int64_t(n) * shape.to[0] + int64_t(o) * shape.to[1] +
                     int64_t(rest / shape.out_dims[1]) * shape.to[2] +
                     int64_t(rest % shape.out_dims[1]) * shape.to[3];
        if (OUT_FOURS) {
            store4(element_address(out_address, at, OUT_DTYPE), OUT_DTYPE, values);
            return;
        }
        store(out_address, at, OUT_DTYPE, values[p]);
    }
}

const uint OUT_PITCH = 9;

// Results that passed through: pixels `column` and on of each half.
void leave(uint group, uint out_first, uint64_t first_pixel, uint column) {
    for (uint at = gl_LocalInvocationID.x; at < TILE * 8; at += 128) {
        uint o = at / 8, four = at % 8, pixel = four / 4 * 64 + column + four % 4 * 4;
        if (out_first + o < shape.outs)
            store_pixels(group * shape.outs + out_first + o, first_pixel + uint64_t(pixel),
                         uintBitsToFloat(panels[o * OUT_PITCH + four]));
    }
}

#define PASS(j)                                                                                    \
    barrier();                                                                                     \
    [[unroll]] for (uint i = 0; i < 2; i++)                                                       \
        coopMatStoreNV(sums[i][j], panels, (part_out + i * 16) * OUT_PITCH + part_pixel / 16,      \
                       OUT_PITCH, false);                                                          \
    barrier();                                                                                     \
    leave(group, out_first, tile *uint64_t(PIXELS), j * 16);

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint64_t tile = group_number();
    if (tile * uint64_t(PIXELS) >= uint64_t(shape.pixels)) return;
    uint group = gl_WorkGroupID.z / shape.out_tiles;
    uint out_first = gl_WorkGroupID.z % shape.out_tiles * TILE;
    uint64_t my_pixel = tile * uint64_t(PIXELS) + uint64_t(thread);
    uint row_weights = shape.out_tiles * TILE; // of a channel
    uint panels_all =
        begin_panels(my_pixel, group, thread / 8 * row_weights + out_first + thread % 8 * 8);

    uint part_out = gl_SubgroupID / 2 * 32, part_pixel = gl_SubgroupID % 2 * 64; // of this subgroup
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> sums[2][4];
    [[unroll]] for (uint i = 0; i < 2; i++)
        [[unroll]] for (uint j = 0; j < 4; j++)
            sums[i][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
    uvec4 weight[2];
    uint mine[DEPTH], there;
    fetch(weight, mine, there);
    [[dont_unroll]] for (uint panel = 0; panel < panels_all; panel++) {
        barrier();
        [[unroll]] for (uint i = 0; i < 2; i++)
            panels[(thread / 8 + i * 16) * W_PITCH + thread % 8] = weight[i];
        [[unroll]] for (uint d = 0; d < DEPTH; d += 8)
            panels[X_FIRST + thread * X_PITCH + d / 8] =
                uvec4(pair_of(mine, d, there), pair_of(mine, d + 2, there),
                      pair_of(mine, d + 4, there), pair_of(mine, d + 6, there));
        barrier();
        if (panel + 1 < panels_all) {
            step_panel();
            fetch(weight, mine, there);
        }
        [[unroll]] for (uint step = 0; step < DEPTH / 16; step++) {
            fcoopmatNV<16, gl_ScopeSubgroup, M, K> w[2];
            [[unroll]] for (uint i = 0; i < 2; i++)
                coopMatLoadNV(w[i], panels, step * 16 * W_PITCH + part_out / 8 + i * 2, W_PITCH,
                              true);
            [[unroll]] for (uint j = 0; j < 4; j++) {
                fcoopmatNV<16, gl_ScopeSubgroup, K, N> x;
                coopMatLoadNV(x, panels, X_FIRST + (part_pixel + j * 16) * X_PITCH + step * 2,
                              X_PITCH, true);
                [[unroll]] for (uint i = 0; i < 2; i++)
                    sums[i][j] = coopMatMulAddNV(w[i], x, sums[i][j]);
            }
        }
    }
    // Of each half of the pixels 16 at a time pass through shared memory. Loops over matrices hold
    // nothing else, or compilers leave them, and the matrices in memory.
    PASS(0)
    PASS(1)
    PASS(2)
    PASS(3)
}
