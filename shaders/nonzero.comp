// NONZERO in two steps with a running sum between them: how many a block of elements has, then their
// positions, row-major. A workgroup has a block; its threads have EACH neighbours. Positions are put
// in order in shared memory, so that neighbours write to neighbours.
#include "types.glsl"
#include "host/nonzero.h"
#include "walk.glsl"
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

const uint GROUP = 256, EACH = 16, BLOCK = GROUP * EACH;
layout(local_size_x = 256) in;

shared uint totals[GROUP]; // of subgroups
shared uint found_in_block[BLOCK];

void write_position(int64_t row, uint element) {
    for (int d = int(RANK) - 1; d >= 0; d--) {
        Long(out_address + uint64_t((row * out_row + int64_t(d) * out_column) * 8L)).v =
            uint64_t(element % shape.dims[d]);
        element /= shape.dims[d];
    }
}

// A bit for each of four elements that is not zero.
uint bits_at(uint64_t element) {
    if (FOURS && element + 4UL <= uint64_t(count)) {
        real4 x = load4(element_address(in_address, int64_t(element), IN_DTYPE), IN_DTYPE);
        return uint(x.x != R(0)) | uint(x.y != R(0)) << 1 | uint(x.z != R(0)) << 2 |
               uint(x.w != R(0)) << 3;
    }
    uint bits = 0;
    for (uint i = 0; i < 4; i++) {
        uint64_t at = element + uint64_t(i);
        if (at >= uint64_t(count)) break;
        bool found = load(in_address, walk_offset(shape, 0, uint(at)), IN_DTYPE) != R(0);
        bits |= uint(found) << i;
    }
    return bits;
}

void main() {
    uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint64_t block = group_number(), first = block * uint64_t(BLOCK);
    uint bits = 0;
    for (uint i = 0; i < EACH; i += 4)
        bits |= bits_at(first + uint64_t(thread * EACH + i)) << i;
    uint mine = bitCount(bits), before = subgroupExclusiveAdd(mine);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) totals[gl_SubgroupID] = before + mine;
    barrier();
    uint in_block = 0;
    for (uint s = 0; s < gl_NumSubgroups; s++) {
        if (s == gl_SubgroupID) before += in_block;
        in_block += totals[s];
    }
    if (first >= uint64_t(count)) return;
    if (!WRITES) {
        if (thread == 0) Long(counts + block * 8UL).v = uint64_t(in_block);
        return;
    }
    for (; bits != 0; bits &= bits - 1)
        found_in_block[before++] = thread * EACH + uint(findLSB(bits));
    barrier();
    int64_t row = int64_t(Long(counts + block * 8UL).v) - int64_t(in_block);
    for (uint i = thread; i < in_block; i += GROUP)
        write_position(row + int64_t(i), uint(first) + found_in_block[i]);
}
