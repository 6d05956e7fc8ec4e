// INDEX_PUT: views are the output, the mask, and the source unless it is a number. A thread has WIDTH
// neighbours.
#include "types.glsl"
#include "host/index_put.h"
#include "walk.glsl"

layout(local_size_x = 256) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u;

real4 numbers_of(uint item) {
#ifdef REAL_I64
    if (IMMEDIATE) return real4(int64_t(in_address));
#endif
    int64_t from = walk_offset(shape, 2, item);
    if (WIDTH == 4) return load4(element_address(in_address, from, IN_DTYPE), IN_DTYPE);
    return real4(load(in_address, from, IN_DTYPE), 0, 0, 0);
}

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    uint item = uint(number);
    uint64_t mask = mask_address + uint64_t(walk_offset(shape, 1, item));
    uint set = WIDTH == 4 ? Word(mask).v : uint(Byte(mask).v);
    if (set == 0) return;
    real4 numbers = numbers_of(item);
    int64_t to = walk_offset(shape, 0, item);
    bool all = (set & 0xFFu) != 0 && (set & 0xFF00u) != 0 && (set & 0xFF0000u) != 0 && set >> 24 != 0;
    if (WIDTH == 4 && all) {
        store4(element_address(out_address, to, OUT_DTYPE), OUT_DTYPE, numbers);
        return;
    }
    if ((set & 0xFFu) != 0) store(out_address, to, OUT_DTYPE, numbers.x);
    if ((set & 0xFF00u) != 0) store(out_address, to + 1L, OUT_DTYPE, numbers.y);
    if ((set & 0xFF0000u) != 0) store(out_address, to + 2L, OUT_DTYPE, numbers.z);
    if (set >> 24 != 0) store(out_address, to + 3L, OUT_DTYPE, numbers.w);
}
