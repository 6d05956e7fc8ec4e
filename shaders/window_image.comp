// POOL2D_IMAGE: a thread adds up what the windows that see one number of the image give it: all of
// a window whose first largest number it is, or an equal part.
#include "types.glsl"
#include "host/window_image.h"

layout(local_size_x = 128) in;

bool is_first_largest(uint64_t plane, ivec2 from, ivec2 end, ivec2 mine) {
    real value = load(plane, int64_t(mine.y) * int64_t(width) + int64_t(mine.x), DTYPE);
    for (int y = from.y; y < end.y; y++)
        for (int x = from.x; x < end.x; x++) {
            real other = load(plane, int64_t(y) * int64_t(width) + int64_t(x), DTYPE);
            bool is_before = y < mine.y || (y == mine.y && x < mine.x);
            bool is_more = real_isnan(other) ? !real_isnan(value) || is_before
                                             : other > value || (is_before && other == value);
            if (is_more) return false;
        }
    return true;
}

void main() {
    uint64_t number = group_number() * 128UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= count) return;
    uint64_t numbers = uint64_t(height) * uint64_t(width), plane = number / numbers;
    uint64_t rest = number - plane * numbers, row = rest / uint64_t(width);
    ivec2 mine = ivec2(int(rest - row * uint64_t(width)), int(row));
    ivec2 size = ivec2(window[1], window[0]), apart = ivec2(stride[1], stride[0]);
    ivec2 around = ivec2(padding[1], padding[0]), all = ivec2(width, height);
    ivec2 padded = mine + around;
    ivec2 last = min(padded / apart, ivec2(up_width, up_height) - 1);
    ivec2 first = max(padded - size + apart, ivec2(0)) / apart;
    uint64_t bytes = uint64_t(element_bytes(DTYPE));
    uint64_t image = image_address + plane * numbers * bytes;
    uint64_t up = up_address + plane * (uint64_t(up_height) * uint64_t(up_width)) * bytes;
    real sum = R(0);
    for (int y = first.y; y <= last.y; y++)
        for (int x = first.x; x <= last.x; x++) {
            ivec2 from = ivec2(x, y) * apart - around, end = min(from + size, all);
            from = max(from, ivec2(0));
            if (!MEAN && !is_first_largest(image, from, end, mine)) continue;
            real given = load(up, int64_t(y) * int64_t(up_width) + int64_t(x), DTYPE);
            ivec2 seen = end - from;
            sum += MEAN ? given / real(seen.x * seen.y) : given;
        }
    store(out_address, int64_t(number), DTYPE, sum);
}
