// CONV2D_WINDOW: a workgroup makes 64 channels of what came from above by COLUMNS weights (channel
// and place in the window) from a part of the pixels, each thread 8 x 8 of them in registers.
// Panels of DEPTH pixels go through shared memory; neighbouring threads bring neighbouring pixels.
#include "types.glsl"
#include "host/convolution_results.h"
#include "convolution.glsl"

const uint COLUMNS = 128, TILE = 64, DEPTH = 8, PITCH = COLUMNS + 4, UP_PITCH = TILE + 4;
const uint APART = 128 / DEPTH, EACH = COLUMNS / APART, UP_EACH = TILE / APART;
layout(local_size_x = 128) in;

shared real ups[DEPTH * UP_PITCH], numbers[DEPTH * PITCH];

// What a thread brings: numbers of these columns, at this pixel.
int column_row[EACH], column_column[EACH]; // in the window, dilated; beyond every image for none
uint64_t column_at[EACH];
uint pixel_x, pixel_y;
uint64_t pixels_left, image_at, up_at; // of this and the batch's image

void find_columns(uint first, uint row) {
    uint taps = shape.window[0] * shape.window[1];
    [[unroll]] for (uint r = 0; r < EACH; r++) {
        uint column = first + row + r * APART, channel = column / taps, tap = column % taps;
        column_row[r] = int(tap / shape.window[1]) * shape.dilation[0];
        column_column[r] = int(tap % shape.window[1]) * shape.dilation[1];
        column_at[r] =
            bytes_of(int64_t(channel) * shape.image[1] + int64_t(column_row[r]) * shape.image[2] +
                         int64_t(column_column[r]) * shape.image[3],
                     IN_DTYPE);
        if (channel >= shape.channels) column_row[r] = 0x7FFFFFFF;
    }
}

void step_pixel() {
    pixels_left -= min(pixels_left, uint64_t(DEPTH));
    pixel_x += DEPTH;
    while (pixel_x >= shape.out_dims[1]) {
        pixel_x -= shape.out_dims[1];
        if (++pixel_y < shape.out_dims[0]) continue;
        pixel_y = 0;
        image_at += bytes_of(shape.image[0], IN_DTYPE);
        up_at += bytes_of(shape.to[0], WEIGHT);
    }
}

// What is not there is read elsewhere and dropped by whoever uses it: loads without branches
// overlap. Bits of `there`: of the columns, then of the channels from above.
void fetch(uint first_out, out real up[UP_EACH], out real mine[EACH], out uint there) {
    int top = int(pixel_y) * shape.stride[0] - shape.padding[0];
    int left = int(pixel_x) * shape.stride[1] - shape.padding[1];
    uint64_t from =
        image_at +
        bytes_of(int64_t(top) * shape.image[2] + int64_t(left) * shape.image[3], IN_DTYPE);
    there = 0;
    [[unroll]] for (uint r = 0; r < EACH; r++) {
        uint y = uint(top) + uint(column_row[r]), x = uint(left) + uint(column_column[r]);
        bool is_inside = pixels_left > 0UL && y < shape.image_dims[0] && x < shape.image_dims[1];
        mine[r] = load_at(is_inside ? from + column_at[r] : weight_address, IN_DTYPE);
        there |= uint(is_inside) << r;
    }
    uint64_t up_from =
        up_at + bytes_of(int64_t(pixel_y) * shape.to[2] + int64_t(pixel_x) * shape.to[3], WEIGHT);
    uint64_t apart = bytes_of(shape.to[1], WEIGHT);
    [[unroll]] for (uint r = 0; r < UP_EACH; r++) {
        uint o = first_out + r * APART;
        bool is_there = pixels_left > 0UL && o < shape.outs;
        up[r] = load_at(is_there ? up_from + apart * uint64_t(o) : weight_address, WEIGHT);
        there |= uint(is_there) << EACH + r;
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x, depth = thread % DEPTH, row = thread / DEPTH;
    uint first_out = gl_WorkGroupID.x % shape.out_tiles * TILE;
    uint first_column = gl_WorkGroupID.x / shape.out_tiles * COLUMNS;
    uint group = gl_WorkGroupID.y, part = gl_WorkGroupID.z;
    uint64_t first = uint64_t(part) * count, end = min(first + count, uint64_t(shape.pixels));
    uint64_t my_pixel = first + uint64_t(depth);
    pixels_left = end - min(my_pixel, end);
    uint rest = uint(min(my_pixel, uint64_t(shape.pixels)));
    pixel_x = rest % shape.out_dims[1];
    rest /= shape.out_dims[1];
    pixel_y = rest % shape.out_dims[0];
    int64_t n = int64_t(rest / shape.out_dims[0]);
    image_at =
        image_address +
        bytes_of(n * shape.image[0] + int64_t(group * shape.channels) * shape.image[1], IN_DTYPE);
    up_at = weight_address +
            bytes_of(n * shape.to[0] + int64_t(group * shape.outs) * shape.to[1], WEIGHT);
    find_columns(first_column, row);

    real sums[8][8];
    [[unroll]] for (uint i = 0; i < 8; i++)
        [[unroll]] for (uint j = 0; j < 8; j++) sums[i][j] = R(0);
    uint my_out = thread / 16 * 4, my_column = thread % 16 * 4;
    real up[UP_EACH], mine[EACH];
    uint there;
    fetch(first_out + row, up, mine, there);
    for (uint64_t at = first; at < end; at += uint64_t(DEPTH)) {
        barrier();
        [[unroll]] for (uint r = 0; r < EACH; r++)
            numbers[depth * PITCH + row + r * APART] = (there >> r & 1u) != 0 ? mine[r] : R(0);
        [[unroll]] for (uint r = 0; r < UP_EACH; r++)
            ups[depth * UP_PITCH + row + r * APART] = (there >> EACH + r & 1u) != 0 ? up[r] : R(0);
        barrier();
        step_pixel();
        fetch(first_out + row, up, mine, there);
        [[unroll]] for (uint d = 0; d < DEPTH; d++) {
            real w[8], x[8];
            [[unroll]] for (uint i = 0; i < 8; i++) {
                w[i] = ups[d * UP_PITCH + my_out + i % 4 + i / 4 * 32];
                x[i] = numbers[d * PITCH + my_column + i % 4 + i / 4 * 64];
            }
            [[unroll]] for (uint i = 0; i < 8; i++)
                [[unroll]] for (uint j = 0; j < 8; j++) sums[i][j] += w[i] * x[j];
        }
    }
    uint columns = shape.channels * shape.window[0] * shape.window[1];
    int64_t base =
        (int64_t(part) * int64_t(gl_NumWorkGroups.y) + int64_t(group)) * int64_t(shape.outs);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint o = first_out + my_out + i % 4 + i / 4 * 32;
        [[unroll]] for (uint j = 0; j < 8; j += 4) {
            real4 four = real4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
            uint first = first_column + my_column + j / 4 * 64;
            for (uint lane = 0; lane < 4; lane++)
                if (o < shape.outs && first + lane < columns)
                    store(out_address,
                          (base + int64_t(o)) * int64_t(columns) + int64_t(first + lane), OUT_DTYPE,
                          LANE(four, lane));
        }
    }
}
