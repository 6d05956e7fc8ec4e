// ATTENTION of few rows: what attention.comp left of the parts of the keys becomes the result. A
// workgroup has one row.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "math.glsl"

const uint GROUP = 128, ROWS = 16;
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint OUT_DTYPE = 0;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Shape {
    int64_t to[3]; // strides: query, head, number
    int64_t batch_strides[8];
    uint batch_dims[8];
    uint batch_rank, queries, shared_heads, key_heads, value_width, row_blocks, parts;
};
layout(push_constant, scalar) uniform Push {
    Shape shape;
    uint64_t parts_address, out_address;
};

// Number `at` of the parts.
real part_at(int64_t at) {
#ifdef REAL_F64
    return real_of_bits(Long(parts_address + 8UL * uint64_t(at)).v);
#else
    return real_of_bits(Word(parts_address + 4UL * uint64_t(at)).v);
#endif
}

void main() {
    uint task = gl_WorkGroupID.x / ROWS, row = gl_WorkGroupID.x % ROWS, batch = gl_WorkGroupID.y;
    uint key_head = task / shape.row_blocks, index = task % shape.row_blocks * ROWS + row;
    if (index >= shape.queries * shape.shared_heads) return;
    uint64_t tasks = uint64_t(shape.row_blocks * shape.key_heads);
    uint64_t first = (uint64_t(batch) * tasks + uint64_t(task)) * uint64_t(shape.parts);
    int64_t pitch = int64_t(shape.value_width + 2);
    int64_t apart = int64_t(ROWS) * pitch, at = int64_t(first) * apart + int64_t(row) * pitch;
    real highest = -REAL_INFINITY;
    for (uint p = 0; p < shape.parts; p++) {
        real top = part_at(at + int64_t(p) * apart);
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
        int64_t part = at + int64_t(p) * apart;
        total += part_at(part + 1L) * real_exp(part_at(part) - base);
    }
    for (uint column = gl_LocalInvocationID.x; column < shape.value_width; column += GROUP) {
        real sum = R(0);
        for (uint p = 0; p < shape.parts; p++) {
            int64_t part = at + int64_t(p) * apart;
            sum += part_at(part + 2L + int64_t(column)) * real_exp(part_at(part) - base);
        }
        store(out_address, to + int64_t(column) * shape.to[2], OUT_DTYPE,
              total == R(0) ? R(0) : sum / total);
    }
}
