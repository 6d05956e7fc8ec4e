// GATHER: views are the output, the input with stride 0 along the dim, and the index. A thread makes
// WIDTH neighbours: of one slice, or with OWN each from its own index.
#include "types.glsl"
#include "host/gather.h"
#include "walk.glsl"

layout(local_size_x = 256) in;
const uint OUT_DTYPE = DTYPES & 15u, INDEX_DTYPE = DTYPES >> 4 & 15u, IN_DTYPE = DTYPES >> 8;

int64_t source_of(uint item, uint lane) {
    int64_t at = walk_offset(shape, 2, item) + int64_t(lane) * index_apart;
    int64_t place = place_of(load_integer(index_address, at, INDEX_DTYPE), size);
    return walk_offset(shape, 1, item) + int64_t(lane) * in_apart + place * stride;
}

real number_of(uint item, uint lane) {
    return load(in_address, source_of(item, lane), IN_DTYPE);
}

void main() {
    uint64_t number = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (number >= uint64_t(count)) return;
    uint item = uint(number);
    int64_t to = walk_offset(shape, 0, item);
    if (WIDTH == 1) {
        store(out_address, to, OUT_DTYPE, number_of(item, 0));
        return;
    }
    real4 numbers;
    if (OWN)
        numbers = real4(number_of(item, 0), number_of(item, 1), number_of(item, 2),
                        number_of(item, 3));
    else
        numbers = load4(element_address(in_address, source_of(item, 0), IN_DTYPE), IN_DTYPE);
    store4(element_address(out_address, to, OUT_DTYPE), OUT_DTYPE, numbers);
}
