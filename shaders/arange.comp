// ARANGE: start + i * step into a contiguous output; FILL is one of step 0. A thread makes ITEMS items
// of WIDTH neighbours, at most 16 bytes.
#include "types.glsl"
#include "host/arange.h"

const uint GROUP = 256, ITEMS = 2;
layout(local_size_x = 256) in;

real value_at(uint64_t i) {
#ifdef REAL_F64
    precise real value = start + (real(uint(i >> 32)) * R(4294967296.0) + real(uint(i))) * step;
#else
    real value = start + real(i) * step;
#endif
    return value;
}

void main() {
    uint64_t item = group_number() * uint64_t(GROUP * ITEMS) + uint64_t(gl_LocalInvocationID.x);
    uint bytes = element_bytes(OUT_DTYPE), width = bytes == 8 ? 2 : 4;
    bool aligned = (uint(out_address) & width * bytes - 1) == 0;
    for (uint k = 0; k < ITEMS; k++, item += uint64_t(GROUP)) {
        uint64_t i = item * uint64_t(width), end = i + uint64_t(width);
        if (aligned && end <= count) {
            uint64_t address = out_address + i * uint64_t(bytes);
            if (width == 2)
                store2(address, OUT_DTYPE, value_at(i), value_at(i + 1UL));
            else
                store4(address, OUT_DTYPE,
                       real4(value_at(i), value_at(i + 1UL), value_at(i + 2UL), value_at(i + 3UL)));
            continue;
        }
        for (; i < min(end, count); i++)
            store(out_address, int64_t(i), OUT_DTYPE, value_at(i));
    }
}
