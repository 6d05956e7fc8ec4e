// ARANGE: start + i * step into a contiguous output.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint OUT_DTYPE = 0;
layout(push_constant, scalar) uniform Push {
    uint64_t out_address, count;
    real start, step;
};

void main() {
    uint64_t i = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (i >= count) return;
    precise real value = start + real(i) * step;
    store(out_address, int64_t(i), OUT_DTYPE, value);
}
