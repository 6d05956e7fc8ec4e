// COPY between views whose neighbours lie along different dims, both reached 16 bytes at a time: a
// workgroup reads a tile along one dim and writes it along the other. In between it lies in shared
// memory as words of PER neighbours along the output; elements have SIZE bytes.
#define REAL_I64
#include "types.glsl"
#include "host/transpose.h"
#include "walk.glsl"

const uint THREADS = 256, BITS = 8 * SIZE, PER = 4 / SIZE, MANY = 4 * PER; // MANY: in 16 bytes
const uint TILE_X = SIZE == 1 ? 128 : 64, TILE_Y = SIZE == 4 ? 64 : 128;
const uint WORDS_X = TILE_X / PER, BLOCKS = WORDS_X * TILE_Y / (MANY * THREADS);
layout(local_size_x = 256) in;

shared uint tile[TILE_Y * WORDS_X];

// Where a word is kept: neither the threads that write nor those that read meet in a bank.
uint place_at(uint word_x, uint y) {
    return y * WORDS_X + (word_x ^ (y / MANY % 8 * 4 + y % 4));
}

// 16 bytes of each of PER neighbours along x become MANY words.
void keep_block(uvec4 lines[PER], uint word_x, uint y) {
    [[unroll]] for (uint i = 0; i < MANY; i++) {
        uint word = 0;
        [[unroll]] for (uint p = 0; p < PER; p++)
            word |= bitfieldExtract(lines[p][i / PER], int(i % PER * BITS), int(BITS)) << p * BITS;
        tile[place_at(word_x, y + i)] = word;
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x, number = uint(group_number());
    uint across = (shape.dims[X] + TILE_X - 1) / TILE_X;
    uint down = (shape.dims[Y] + TILE_Y - 1) / TILE_Y;
    uint tile_x = number % across, tile_y = number / across % down, rest = number / across / down;
    int64_t to = 0L, from = 0L;
    for (int d = int(RANK) - 1; d >= 0; d--) {
        if (d == int(X) || d == int(Y)) continue;
        int64_t at = int64_t(rest % shape.dims[d]);
        rest /= shape.dims[d];
        to += at * shape.strides[0][d];
        from += at * shape.strides[1][d];
    }
    if (rest > 0) return; // spread_groups rounds up
    int64_t step_in = shape.strides[1][X] * int64_t(SIZE);
    int64_t step_out = shape.strides[0][Y] * int64_t(SIZE);
    uint64_t in_base = in_address + uint64_t(from * int64_t(SIZE));
    uint64_t out_base = out_address + uint64_t(to * int64_t(SIZE));
    // Eight threads next to each other have 128 bytes. All is asked for before any of it is used.
    uvec4 lines[BLOCKS][PER];
    [[unroll]] for (uint i = 0; i < BLOCKS; i++) {
        uint at = thread + i * THREADS, word_x = at / 8 % WORDS_X;
        uint y = (at % 8 + at / 8 / WORDS_X * 8) * MANY;
        uint x = min(tile_x * TILE_X + word_x * PER, shape.dims[X] - PER);
        uint far_y = min(tile_y * TILE_Y + y, shape.dims[Y] - MANY);
        uint64_t address = in_base + uint64_t(int64_t(x) * step_in) + uint64_t(far_y * SIZE);
        [[unroll]] for (uint p = 0; p < PER; p++)
            lines[i][p] = Word4(address + uint64_t(int64_t(p) * step_in)).v;
    }
    [[unroll]] for (uint i = 0; i < BLOCKS; i++) {
        uint at = thread + i * THREADS, word_x = at / 8 % WORDS_X;
        keep_block(lines[i], word_x, (at % 8 + at / 8 / WORDS_X * 8) * MANY);
    }
    barrier();
    [[unroll]] for (uint i = 0; i < BLOCKS * PER; i++) {
        uint at = thread + i * THREADS, y = at / 8 % TILE_Y;
        uint word_x = (at % 8 + at / 8 / TILE_Y * 8) * 4;
        uint x = tile_x * TILE_X + word_x * PER, far_y = tile_y * TILE_Y + y;
        if (x >= shape.dims[X] || far_y >= shape.dims[Y]) continue;
        uvec4 line = uvec4(tile[place_at(word_x, y)], tile[place_at(word_x + 1, y)],
                           tile[place_at(word_x + 2, y)], tile[place_at(word_x + 3, y)]);
        Word4(out_base + uint64_t(int64_t(far_y) * step_out) + uint64_t(x * SIZE)).v = line;
    }
}
