// ATTENTION of few rows: what attention_few.comp left of the parts of the keys becomes the result. A
// workgroup has one row: highest score, total and sums of each part.
#include "types.glsl"
#include "host/attention_join.h"
#include "math.glsl"

const uint GROUP = 128;
layout(local_size_x = 128) in;

// Number `at` of the parts.
real part_at(int64_t at) {
#ifdef REAL_F64
    return real_of_bits(Long(parts_address + 8UL * uint64_t(at)).v);
#else
    return real_of_bits(Word(parts_address + 4UL * uint64_t(at)).v);
#endif
}

void main() {
    uint rows = shape.queries * shape.shared_heads, batch = gl_WorkGroupID.y;
    uint key_head = gl_WorkGroupID.x / rows, index = gl_WorkGroupID.x % rows;
    int64_t pitch = int64_t(shape.value_width + 2);
    int64_t at = (int64_t(batch) * int64_t(shape.key_heads * rows) + int64_t(gl_WorkGroupID.x)) *
                 int64_t(shape.parts) * pitch;
    real highest = -REAL_INFINITY;
    for (uint p = 0; p < shape.parts; p++) {
        real top = part_at(at + int64_t(p) * pitch);
        if (!real_isnan(highest) && (real_isnan(top) || top > highest)) highest = top;
    }
    int64_t to = int64_t(index / shape.shared_heads) * shape.to[0] +
                 int64_t(key_head * shape.shared_heads + index % shape.shared_heads) * shape.to[1];
    for (int d = int(shape.batch_rank) - 1; d >= 0; d--) {
        to += int64_t(batch % shape.batch_dims[d]) * shape.batch_strides[d];
        batch /= shape.batch_dims[d];
    }
    real base = highest == -REAL_INFINITY ? R(0) : highest, total = R(0);
    for (uint p = 0; p < shape.parts; p++) {
        int64_t part = at + int64_t(p) * pitch;
        total += part_at(part + 1L) * falling_exp(part_at(part) - base);
    }
    for (uint column = gl_LocalInvocationID.x; column < shape.value_width; column += GROUP) {
        real sum = R(0);
        for (uint p = 0; p < shape.parts; p++) {
            int64_t part = at + int64_t(p) * pitch;
            sum += part_at(part + 2L + int64_t(column)) * falling_exp(part_at(part) - base);
        }
        store(out_address, to + int64_t(column) * shape.to[2], OUT_DTYPE,
              total == R(0) ? R(0) : sum / total);
    }
}
