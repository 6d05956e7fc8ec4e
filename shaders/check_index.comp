// Writes 1 where an index is out of range for a dimension of `size`.
#define REAL_I64
#include "types.glsl"
#include "host/check_index.h"
#include "walk.glsl"

layout(local_size_x = 256) in;

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    int64_t index = load_integer(index_address, walk_offset(shape, 0, uint(number)), INDEX_DTYPE);
    if (index < -size || index >= size) Word(result).v = 1;
}
