// Threads that share a row: a power of two of them, next to each other in a workgroup. They are
// numbered by their subgroups, which exchange numbers without waiting; what crosses subgroups goes
// through shared memory.
#ifndef LANES_GLSL
#define LANES_GLSL

#include "sums.glsl"

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

uint thread_number() {
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

// Of the thread whose number differs in the bit `apart`.
real real_beside(real mine, uint apart) {
#ifdef REAL_I64
    return int64_t(packUint2x32(subgroupShuffleXor(unpackUint2x32(uint64_t(mine)), apart)));
#else
    return subgroupShuffleXor(mine, apart);
#endif
}

Sum sum_beside(Sum mine, uint apart) {
#ifdef REAL_F32
    return subgroupShuffleXor(mine, apart);
#else
    return real_beside(mine, apart);
#endif
}

// Of the thread of the subgroup that has this number in it.
Sum sum_at_lane(Sum mine, uint lane) {
#ifdef REAL_I64
    return int64_t(packUint2x32(subgroupShuffle(unpackUint2x32(uint64_t(mine)), lane)));
#else
    return subgroupShuffle(mine, lane);
#endif
}

// Defines `T name(uint how, T mine, uint lanes)`: what all lanes have, combined, in each of them.
// `slots` is shared memory, a T for each subgroup; combine(how, a, b) is combine(how, b, a);
// adjacent(mine, apart) is what the thread has whose number differs in the bit `apart`.
#define JOIN_LANES(name, T, slots, combine, adjacent)                                                \
    T name(uint how, T mine, uint lanes) {                                                         \
        for (uint apart = min(lanes, gl_SubgroupSize) / 2; apart > 0; apart /= 2)                  \
            mine = combine(how, mine, adjacent(mine, apart));                                        \
        if (lanes <= gl_SubgroupSize) return mine;                                                 \
        barrier();                                                                                 \
        if (gl_SubgroupInvocationID == 0) slots[gl_SubgroupID] = mine;                             \
        barrier();                                                                                 \
        uint many = lanes / gl_SubgroupSize, near = min(many, gl_SubgroupSize);                    \
        uint slot = gl_SubgroupID / many * many + gl_SubgroupInvocationID % near;                  \
        mine = slots[slot];                                                                        \
        for (uint i = near; i < many; i += near) mine = combine(how, mine, slots[slot + i]);       \
        for (uint apart = near / 2; apart > 0; apart /= 2)                                         \
            mine = combine(how, mine, adjacent(mine, apart));                                        \
        return mine;                                                                               \
    }

#endif
