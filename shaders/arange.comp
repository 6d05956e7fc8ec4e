// ARANGE: start + i * step into a contiguous output; FILL is one of step 0. A thread makes ITEMS items
// of four neighbours.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

const uint GROUP = 256, ITEMS = 2;
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OUT_DTYPE = 0;
layout(push_constant, scalar) uniform Push {
    uint64_t out_address, count;
    real start, step;
};

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
    uint bytes = element_bytes(OUT_DTYPE);
    bool aligned = (uint(out_address) & 4 * bytes - 1) == 0;
    for (uint k = 0; k < ITEMS; k++, item += uint64_t(GROUP)) {
        uint64_t i = item * 4UL;
        if (aligned && i + 4UL <= count) {
            store4(out_address + i * uint64_t(bytes), OUT_DTYPE,
                   real4(value_at(i), value_at(i + 1UL), value_at(i + 2UL), value_at(i + 3UL)));
            continue;
        }
        for (uint64_t end = min(i + 4UL, count); i < end; i++)
            store(out_address, int64_t(i), OUT_DTYPE, value_at(i));
    }
}
