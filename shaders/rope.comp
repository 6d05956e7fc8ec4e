// ROPE: a thread rotates one pair of a head, or copies one number behind the rotated ones. Angles are
// integers of 2^-64 turns, exact for any row.
#include "types.glsl"
#include "host/rope.h"
#include "math.glsl"

layout(local_size_x = 256) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, COSINE = DTYPES >> 8 & 15u,
           SINE = DTYPES >> 12;

void store_number(int64_t at, real value) {
    store(out_address, at, OUT_DTYPE, value);
    if (!TWICE) return;
    uint number = uint(at), head = number / copy_width;
    int64_t copy_at = int64_t(head / copy_heads) * copy_row_stride +
                      int64_t(head % copy_heads) * copy_head_stride + int64_t(number % copy_width);
    store(copy_address, copy_at, OUT_DTYPE, value);
}

void rotate(uint pair, int64_t row, out real cosine, out real sine) {
    if (TABLES) {
        cosine = load(cosines, row * shape.cosine_strides[0] + int64_t(pair) * shape.cosine_strides[1],
                      COSINE);
        sine = load(sines, row * shape.sine_strides[0] + int64_t(pair) * shape.sine_strides[1], SINE);
        return;
    }
    uint64_t turn = uint64_t(row) * shape.turns[pair - shape.first];
    uint64_t quarter = turn + 0x2000000000000000UL >> 62;
    int64_t rest = int64_t(turn - (quarter << 62));
    real angle = real_of_int64(rest) * power_of_two(-62) * HALF_PI;
    real s = small_sin(angle), c = small_cos(angle);
    bool odd = (quarter & 1UL) != 0UL;
    cosine = odd ? s : c;
    sine = odd ? c : s;
    if ((quarter + 1UL & 2UL) != 0UL) cosine = -cosine;
    if ((quarter & 2UL) != 0UL) sine = -sine;
}

void main() {
    uint number = uint(group_number()) * 256 + gl_LocalInvocationID.x;
    if (number >= count) return;
    uint item = shape.first + number % shape.items, rest = number / shape.items;
    int64_t from = 0L, to = 0L, row = shape.offset;
    const int last = int(RANK) - 1;
    for (int d = last - 1; d >= 0; d--) {
        int64_t at = int64_t(rest % shape.dims[d]);
        rest /= shape.dims[d];
        if (d == last - 2) row += at;
        from += at * shape.in_strides[d];
        to += at * shape.out_strides[d];
    }
    int64_t in_step = shape.in_strides[last], out_step = shape.out_strides[last];
    if (item >= shape.pairs) {
        int64_t at = int64_t(item + shape.pairs);
        store_number(to + at * out_step, load(in_address, from + at * in_step, IN_DTYPE));
        return;
    }
    int64_t first = HALF_STYLE ? int64_t(item) : int64_t(2 * item);
    int64_t second = HALF_STYLE ? int64_t(item + shape.pairs) : int64_t(2 * item + 1);
    real a = load(in_address, from + first * in_step, IN_DTYPE);
    real b = load(in_address, from + second * in_step, IN_DTYPE);
    real cosine, sine;
    rotate(item, row, cosine, sine);
    store_number(to + first * out_step, a * cosine - b * sine);
    store_number(to + second * out_step, a * sine + b * cosine);
}
