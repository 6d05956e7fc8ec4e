// SORT, between: bitonic merging of rows of entries whose length is a power of two. LOCAL: all steps
// that stay within 1024 entries, in shared memory; else one step of one stage.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

const uint GROUP = 256, BLOCK = 1024;
layout(local_size_x = 256) in;
layout(constant_id = 0) const bool LOCAL = false;

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Entries { u64vec2 v; };
layout(push_constant, scalar) uniform Push {
    uint64_t entries, count; // of all rows
    uint64_t stage_first, stage_last; // lengths that are merged: powers of two
    uint64_t apart;                   // of the step, where it is one
    uint64_t padded;                  // length of a row
};

shared uint64_t keys[BLOCK], places[BLOCK];

bool comes_after(uint64_t key, uint64_t place, uint64_t other_key, uint64_t other_place) {
    return key > other_key || (key == other_key && place > other_place);
}

// `at` counts pairs; the pair's first entry, `apart` before its second.
uint64_t first_of(uint64_t at, uint64_t distance) {
    return at / distance * distance * 2UL + at % distance;
}

void one_step(uint64_t pair) {
    uint64_t first = first_of(pair, apart);
    Entries a = Entries(entries + first * 16UL), b = Entries(entries + (first + apart) * 16UL);
    u64vec2 x = a.v, y = b.v;
    bool rising = (first & (padded - 1UL) & stage_first) == 0UL;
    if (comes_after(x.x, x.y, y.x, y.y) == rising) {
        a.v = y;
        b.v = x;
    }
}

void main() {
    uint64_t group = group_number();
    uint thread = gl_LocalInvocationID.x;
    if (!LOCAL) {
        uint64_t pair = group * uint64_t(GROUP) + uint64_t(thread);
        if (pair < count / 2UL) one_step(pair);
        return;
    }
    uint64_t base = group * uint64_t(BLOCK);
    if (base >= count) return;
    uint size = uint(min(uint64_t(BLOCK), count - base));
    for (uint i = thread; i < size; i += GROUP) {
        u64vec2 entry = Entries(entries + (base + uint64_t(i)) * 16UL).v;
        keys[i] = entry.x;
        places[i] = entry.y;
    }
    for (uint64_t stage = stage_first; stage <= stage_last; stage *= 2UL) {
        uint largest = uint(min(stage, uint64_t(BLOCK)) / 2UL);
        for (uint distance = largest; distance > 0; distance /= 2) {
            barrier();
            for (uint pair = thread; pair < size / 2; pair += GROUP) {
                uint first = pair / distance * distance * 2 + pair % distance;
                uint second = first + distance;
                bool rising = (base + uint64_t(first) & (padded - 1UL) & stage) == 0UL;
                if (comes_after(keys[first], places[first], keys[second], places[second]) == rising) {
                    uint64_t key = keys[first], place = places[first];
                    keys[first] = keys[second];
                    places[first] = places[second];
                    keys[second] = key;
                    places[second] = place;
                }
            }
        }
    }
    barrier();
    for (uint i = thread; i < size; i += GROUP)
        Entries(entries + (base + uint64_t(i)) * 16UL).v = u64vec2(keys[i], places[i]);
}
