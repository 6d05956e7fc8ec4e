// NONZERO in two steps with a running sum between them: how many a block of elements has, then their
// positions, row-major. A workgroup has a block; its threads have EACH neighbours.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "walk.glsl"

const uint GROUP = 256, EACH = 4;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint IN_DTYPE = 0;
layout(constant_id = 2) const bool WRITES = false;
layout(push_constant, scalar) uniform Push {
    Strides shape; // in the order of the dims, not merged: RANK is the tensor's
    uint64_t in_address, out_address;
    uint64_t counts; // [blocks]: counts, then their running sums
    int64_t out_row, out_column;
    uint count;
};

shared uint totals[GROUP];

void write_position(int64_t row, uint element) {
    for (int d = int(RANK) - 1; d >= 0; d--) {
        Long(out_address + uint64_t((row * out_row + int64_t(d) * out_column) * 8L)).v =
            uint64_t(element % shape.dims[d]);
        element /= shape.dims[d];
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint64_t block = group_number();
    uint64_t first = (block * uint64_t(GROUP) + uint64_t(thread)) * uint64_t(EACH);
    bool found[EACH];
    uint mine = 0;
    for (uint i = 0; i < EACH; i++) {
        uint64_t element = first + uint64_t(i);
        found[i] = element < uint64_t(count) &&
                   load(in_address, walk_offset(shape, 0, uint(element)), IN_DTYPE) != R(0);
        mine += found[i] ? 1 : 0;
    }
    totals[thread] = mine;
    for (uint apart = 1; apart < GROUP; apart *= 2) {
        barrier();
        uint before = thread >= apart ? totals[thread - apart] : 0;
        barrier();
        totals[thread] += before;
    }
    barrier();
    uint in_block = totals[GROUP - 1];
    if (!WRITES) {
        if (thread == 0 && block * uint64_t(GROUP * EACH) < uint64_t(count))
            Long(counts + block * 8UL).v = uint64_t(in_block);
        return;
    }
    if (first >= uint64_t(count)) return;
    int64_t row = int64_t(Long(counts + block * 8UL).v) - int64_t(in_block) +
                  int64_t(totals[thread] - mine);
    for (uint i = 0; i < EACH; i++)
        if (found[i]) write_position(row++, uint(first) + i);
}
