// Elements of a walk over strided views of the same dims (device/vulkan/kernels/kernels.h).
#ifndef WALK_GLSL
#define WALK_GLSL

#include "types.glsl"

int64_t walk_offset(WalkStrides shape, uint view, uint item) {
    if (RANK == 0) return 0L;
    int64_t offset = 0L;
    for (int d = int(RANK) - 1; d > 0; d--) {
        offset += int64_t(item % shape.dims[d]) * shape.strides[view][d];
        item /= shape.dims[d];
    }
    return offset + int64_t(item) * shape.strides[view][0];
}

// An integral number of any dtype, exactly.
int64_t load_integer(uint64_t base, int64_t index, uint dtype) {
    uint64_t address = element_address(base, index, dtype);
    if (dtype == INT64) return int64_t(Long(address).v);
    if (dtype == INT32) return int64_of_int(int(Word(address).v));
    if (dtype == INT16) return int64_of_int(int(uint(Short(address).v) << 16) >> 16);
    if (dtype == INT8) return int64_of_int(int(uint(Byte(address).v) << 24) >> 24);
    return int64_of_int(int(uint(Byte(address).v)));
}

// A place along a dim of `size`, from an index that counts from the end when it is negative.
int64_t place_of(int64_t index, int64_t size) {
    int64_t place = index < 0L ? index + size : index;
    return place < 0L || place >= size ? 0L : place; // found out of range before: check_index.comp
}

#endif
