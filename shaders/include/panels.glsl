// How convolution.comp and convolution_matrix.comp go through an image: for one place of the window
// after the other, panels of DEPTH channels, of which a thread brings the numbers of one pixel and
// some weights, as convolution_weights.comp packed them. DEPTH, TILE, and PACKED, the weights' dtype,
// are given before.
#ifndef PANELS_GLSL
#define PANELS_GLSL

#include "convolution.glsl"

// Where the next panel comes from.
uint window_y, window_x, channel;
uint64_t weight_at, tap_at;
bool is_inside;
// The pixel that this thread brings.
int top, left;
uint64_t pixel_at, channel_bytes;
bool is_pixel;

void find_tap() {
    int y = seen_at(top, window_y, 0), x = seen_at(left, window_x, 1);
    is_inside = is_pixel && y >= 0 && x >= 0;
    tap_at =
        pixel_at + bytes_of(int64_t(y) * shape.image[2] + int64_t(x) * shape.image[3], IN_DTYPE);
}

void step_panel() {
    channel += DEPTH;
    tap_at += channel_bytes * uint64_t(DEPTH);
    weight_at += bytes_of(int64_t(shape.out_tiles * TILE * DEPTH), PACKED);
    if (channel < shape.channels) return;
    channel = 0;
    if (++window_x == shape.window[1]) {
        window_x = 0;
        window_y++;
    }
    find_tap();
}

// Begins with the first panel; `first_weight`: in it, of this thread. Returns how many there are.
uint begin_panels(uint64_t my_pixel, uint group, uint first_weight) {
    is_pixel = my_pixel < uint64_t(shape.pixels);
    uint rest = uint(my_pixel);
    left = int(rest % shape.out_dims[1]) * shape.stride[1] - shape.padding[1];
    rest /= shape.out_dims[1];
    top = int(rest % shape.out_dims[0]) * shape.stride[0] - shape.padding[0];
    channel_bytes = bytes_of(shape.image[1], IN_DTYPE);
    pixel_at = image_address +
               bytes_of(int64_t(rest / shape.out_dims[0]) * shape.image[0], IN_DTYPE) +
               channel_bytes * uint64_t(group * shape.channels);
    uint panels = (shape.channels + DEPTH - 1) / DEPTH * shape.window[0] * shape.window[1];
    int64_t panel_weights = int64_t(DEPTH * shape.out_tiles * TILE);
    weight_at = weight_address +
                bytes_of(int64_t(group * panels) * panel_weights + int64_t(first_weight), PACKED);
    window_y = window_x = channel = 0;
    find_tap();
    return panels;
}

#endif
