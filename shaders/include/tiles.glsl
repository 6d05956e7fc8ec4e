// What MATMUL on matrix units shares: the tile of a workgroup, TILE_M x TILE_N of SUBGROUPS_M x
// SUBGROUPS_N subgroups, which are given before, and how its results leave.
#ifndef TILES_GLSL
#define TILES_GLSL

#include "matrices.glsl"
#include "matrix_units.glsl"

const uint STEP = 16; // of k
const uint SIDE_M = TILE_M / SUBGROUPS_M, SIDE_N = TILE_N / SUBGROUPS_N;
const uint DOWN = SIDE_M / 16, ACROSS = SIDE_N / 16;
const uint OUT_PITCH = SIDE_N / 4 + 2, OUT_EIGHTS = SIDE_N / 8;

// How a thread brings its vectors of a panel.
struct Carrier {
    uint64_t base;       // of the panel: the same in the whole workgroup
    uint offset;         // of the thread's first vector from there, in bytes
    uint64_t each, next; // from a vector to the thread's next one, from a panel to the next one
    uint side, depth, side_end, side_each, depth_each; // in numbers; side: the dim that is not k
    uint place, place_each;                            // in the panel
    uint k_first;                                      // of the panel
};

// Groups go down eight tiles before they go across: neighbours share both operands in the cache.
#define FIND_TILE                                                                                  \
    uint down = (m + TILE_M - 1) / TILE_M, band = gl_WorkGroupID.x / (8 * across);                 \
    uint band_tiles = min(8, down - band * 8), in_band = gl_WorkGroupID.x - band * 8 * across;     \
    uint row_first = (band * 8 + in_band % band_tiles) * TILE_M;                                   \
    uint column_first = in_band / band_tiles * TILE_N;                                             \
    int64_t a_base, b_base, out_base;                                                              \
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);

// Eight results of a row, from `column` on.
void store_eight(uint64_t base, uint row, uint column, vec4 low, vec4 high) {
    if (!WHOLE && (row >= m || column >= n)) return;
    uint size = element_bytes(OUT_DTYPE);
    uint64_t at = base + (uint64_t(row) * uint64_t(n) + uint64_t(column)) * uint64_t(size);
    if (WHOLE || (column + 8 <= n && (uint(at) & 15u) == 0)) {
        store4(at, OUT_DTYPE, low);
        store4(at + uint64_t(4 * size), OUT_DTYPE, high);
        return;
    }
    for (uint i = 0; i < min(8, n - column); i++)
        store_at(at + uint64_t(i * size), OUT_DTYPE, i < 4 ? low[i] : high[i - 4]);
}

// Each subgroup passes its matrices through a corner of `panels` of its own, sixteen rows at a time.
#define LEAVE(row_first, column_first)                                                             \
    uint corner = gl_SubgroupID * 16 * OUT_PITCH;                                                  \
    uint64_t out_at = out_address + uint64_t(out_base) * uint64_t(element_bytes(OUT_DTYPE));       \
    [[unroll]] for (uint i = 0; i < DOWN; i++) {                                                   \
        [[unroll]] for (uint j = 0; j < ACROSS; j++)                                               \
            coopMatStoreNV(sums[i][j], panels, corner + j * 4, OUT_PITCH, false);                  \
        subgroupMemoryBarrierShared();                                                             \
        subgroupBarrier();                                                                         \
        for (uint at = gl_SubgroupInvocationID; at < 16 * OUT_EIGHTS; at += 32) {                  \
            uint row = at / OUT_EIGHTS, column = at % OUT_EIGHTS;                                  \
            uint place = corner + row * OUT_PITCH + column * 2;                                    \
            store_eight(out_at, row_first + i * 16 + row, column_first + column * 8,               \
                        uintBitsToFloat(panels[place]), uintBitsToFloat(panels[place + 1]));       \
        }                                                                                          \
        subgroupMemoryBarrierShared();                                                             \
        subgroupBarrier();                                                                         \
    }

#endif
