// COPY between views whose neighbours lie along different dims: a workgroup reads a tile along one
// and writes it along the other. Elements are moved as bits, of ELEMENT_BYTES bytes.
#define REAL_I64
#include "types.glsl"
#include "host/transpose.h"
#include "walk.glsl"

const uint THREADS = 256, EACH = TILE * TILE / THREADS;
layout(local_size_x = 256) in;

#ifdef WIDE
#define Bits uvec2
#else
#define Bits uint
#endif
shared Bits tile[TILE * (TILE + 1)];

Bits load_bits(uint64_t address) {
#ifdef WIDE
    return Word2(address).v;
#else
    if (ELEMENT_BYTES == 1) return uint(Byte(address).v);
    return ELEMENT_BYTES == 2 ? uint(Short(address).v) : Word(address).v;
#endif
}

void store_bits(uint64_t address, Bits bits) {
#ifdef WIDE
    Word2(address).v = bits;
#else
    if (ELEMENT_BYTES == 1) Byte(address).v = uint8_t(bits);
    else if (ELEMENT_BYTES == 2) Short(address).v = uint16_t(bits);
    else Word(address).v = bits;
#endif
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint number = uint(group_number());
    uint across = (shape.dims[X] + TILE - 1) / TILE, down = (shape.dims[Y] + TILE - 1) / TILE;
    uint x_first = number % across * TILE, y_first = number / across % down * TILE;
    uint rest = number / across / down;
    int64_t to = 0L, from = 0L;
    for (int d = int(RANK) - 1; d >= 0; d--) {
        if (d == int(X) || d == int(Y)) continue;
        int64_t at = int64_t(rest % shape.dims[d]);
        rest /= shape.dims[d];
        to += at * shape.strides[0][d];
        from += at * shape.strides[1][d];
    }
    if (rest > 0) return; // spread_groups rounds up
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint at = thread + i * THREADS, x = at / TILE, y = at % TILE;
        if (x_first + x >= shape.dims[X] || y_first + y >= shape.dims[Y]) continue;
        int64_t element = from + int64_t(x_first + x) * shape.strides[1][X] + int64_t(y_first + y);
        tile[x * (TILE + 1) + y] = load_bits(in_address + uint64_t(element * int64_t(ELEMENT_BYTES)));
    }
    barrier();
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint at = thread + i * THREADS, x = at % TILE, y = at / TILE;
        if (x_first + x >= shape.dims[X] || y_first + y >= shape.dims[Y]) continue;
        int64_t element = to + int64_t(y_first + y) * shape.strides[0][Y] + int64_t(x_first + x);
        store_bits(out_address + uint64_t(element * int64_t(ELEMENT_BYTES)), tile[x * (TILE + 1) + y]);
    }
}
