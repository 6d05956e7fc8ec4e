// COPY of bytes as they are, 16 at a time.
#define REAL_I64
#include "types.glsl"
#include "host/copy.h"

const uint GROUP = 256, ITEMS = 2;
layout(local_size_x = 256) in;

void main() {
    uint64_t first = group_number() * uint64_t(GROUP * ITEMS) + uint64_t(gl_LocalInvocationID.x);
    for (uint i = 0; i < ITEMS; i++) {
        uint64_t item = first + uint64_t(i * GROUP);
        if (item < count)
            Word4(out_address + item * 16UL).v = Word4(in_address + item * 16UL).v;
    }
}
