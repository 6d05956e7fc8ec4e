// MATMUL of 16-bit floats on the device's matrix units: a workgroup makes TILE_M x TILE_N numbers, a
// subgroup DOWN x ACROSS matrices of 16 x 16 in registers. Panels of DEPTH go through shared memory;
// the next ones are fetched while these are multiplied. Written for GL_NV_cooperative_matrix, and
// given to devices in the words of SPV_KHR_cooperative_matrix (device/vulkan/dialect.c), which also
// makes bfloat16 of it: nothing here may compute with float16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "matrices.glsl"

const uint THREADS = 32 * SUBGROUPS_M * SUBGROUPS_N;
layout(local_size_x = 32 * SUBGROUPS_M * SUBGROUPS_N) in;

layout(constant_id = 2) const bool A_ACROSS = false; // numbers are neighbours across k, not along it
layout(constant_id = 3) const bool B_ACROSS = false;
layout(constant_id = 4) const bool WHOLE = false; // no tile and no panel is cut off
// 16 each, by names of their own: dialect.c tells the factors apart by them. Sizes of arrays and ends
// of loops are plain numbers, or drivers keep the matrices in memory.
layout(constant_id = 5) const uint M = 16;
layout(constant_id = 6) const uint N = 16;
layout(constant_id = 7) const uint K = 16;
const uint SIDE_M = TILE_M / SUBGROUPS_M, SIDE_N = TILE_N / SUBGROUPS_N;
const uint DOWN = SIDE_M / 16, ACROSS = SIDE_N / 16;

// In vectors of eight numbers. A row of a panel is padded by one, so that the rows of a matrix lie in
// different banks.
const uint A_PITCH = (A_ACROSS ? TILE_M / 8 : DEPTH / 8) + 1;
const uint B_PITCH = (B_ACROSS ? TILE_N / 8 : DEPTH / 8) + 1;
const uint A_VECTORS = TILE_M * (DEPTH / 8 + 1), B_VECTORS = TILE_N * (DEPTH / 8 + 1);
const uint A_EACH = TILE_M * DEPTH / 8 / THREADS, B_EACH = TILE_N * DEPTH / 8 / THREADS;
shared uvec4 panels[A_VECTORS + B_VECTORS];

layout(buffer_reference, scalar, buffer_reference_align = 16) restrict readonly buffer Eight {
    uvec4 v;
};

// How a thread brings its vectors of a panel: where the first one is, and what is added for each
// further one and for the next panel.
struct Carrier {
    uint64_t at, each, next;
    uint side, depth, side_end, side_each, depth_each; // in numbers
    uint place, place_each;                            // in the panel
};

// side: the dim that is not k.
Carrier carrier_of(bool is_across, uint tile, uint64_t base, int64_t side_stride,
                   int64_t depth_stride, uint side_first, uint side_end) {
    uint row_vectors = is_across ? tile / 8 : DEPTH / 8, thread = gl_LocalInvocationID.x;
    uint rows_each = THREADS / row_vectors, pitch = row_vectors + 1;
    uint row = thread / row_vectors, column = thread % row_vectors;
    Carrier c;
    c.side = side_first + (is_across ? column * 8 : row);
    c.depth = is_across ? row : column * 8;
    c.side_end = side_end;
    c.side_each = is_across ? 0 : rows_each;
    c.depth_each = is_across ? rows_each : 0;
    c.at = base + 2UL * uint64_t(int64_t(c.side) * side_stride + int64_t(c.depth) * depth_stride);
    c.each = 2UL * uint64_t(int64_t(rows_each) * (is_across ? depth_stride : side_stride));
    c.next = 2UL * uint64_t(int64_t(DEPTH) * depth_stride);
    c.place = row * pitch + column;
    c.place_each = rows_each * pitch;
    return c;
}

uvec4 fetch(Carrier c, uint i, uint k_first) {
    bool is_inside = WHOLE || (c.side + i * c.side_each < c.side_end &&
                               k_first + c.depth + i * c.depth_each < k);
    return is_inside ? Eight(c.at + uint64_t(i) * c.each).v : uvec4(0);
}

// Eight results of a row, from `column` on.
void store_eight(uint64_t base, uint row, uint column, vec4 low, vec4 high) {
    if (!WHOLE && (row >= m || column >= n)) return;
    uint size = element_bytes(OUT_DTYPE);
    uint64_t at = base + (uint64_t(row) * uint64_t(n) + uint64_t(column)) * uint64_t(size);
    if (WHOLE || (column + 8 <= n && (uint(at) & 15u) == 0)) {
        if (OUT_DTYPE == FLOAT32) {
            Word4(at).v = floatBitsToUint(low);
            Word4(at + 16UL).v = floatBitsToUint(high);
            return;
        }
        uvec4 first, second;
        for (uint i = 0; i < 4; i++) {
            first[i] = bits_of_real_as(low[i], OUT_DTYPE);
            second[i] = bits_of_real_as(high[i], OUT_DTYPE);
        }
        Word4(at).v = uvec4(first.x | first.y << 16, first.z | first.w << 16,
                            second.x | second.y << 16, second.z | second.w << 16);
        return;
    }
    for (uint i = 0; i < min(8, n - column); i++)
        store_at(at + uint64_t(i * size), OUT_DTYPE, i < 4 ? low[i] : high[i - 4]);
}

void main() {
    // Groups go down eight tiles before they go across: neighbours share both operands in the cache.
    uint down = (m + TILE_M - 1) / TILE_M, band = gl_WorkGroupID.x / (8 * across);
    uint band_tiles = min(8, down - band * 8), in_band = gl_WorkGroupID.x - band * 8 * across;
    uint row_first = (band * 8 + in_band % band_tiles) * TILE_M;
    uint column_first = in_band / band_tiles * TILE_N;
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    Carrier a = carrier_of(A_ACROSS, TILE_M, a_address + 2UL * uint64_t(a_base), a_row, a_column,
                           row_first, m);
    Carrier b = carrier_of(B_ACROSS, TILE_N, b_address + 2UL * uint64_t(b_base), b_column, b_row,
                           column_first, n);
    b.place += A_VECTORS;

    // Of this subgroup.
    uint part_row = gl_SubgroupID / SUBGROUPS_N * SIDE_M;
    uint part_column = gl_SubgroupID % SUBGROUPS_N * SIDE_N;
    uint a_first = A_ACROSS ? part_row / 8 : part_row * A_PITCH;
    uint b_first = A_VECTORS + (B_ACROSS ? part_column / 8 : part_column * B_PITCH);
    const uint A_DOWN = A_ACROSS ? 2 : 16 * A_PITCH, A_DEEPER = A_ACROSS ? 16 * A_PITCH : 2;
    const uint B_ASIDE = B_ACROSS ? 2 : 16 * B_PITCH, B_DEEPER = B_ACROSS ? 16 * B_PITCH : 2;
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> sums[DOWN][ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            sums[i][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);

    [[unroll]] for (uint i = 0; i < A_EACH; i++) panels[a.place + i * a.place_each] = fetch(a, i, 0);
    [[unroll]] for (uint i = 0; i < B_EACH; i++) panels[b.place + i * b.place_each] = fetch(b, i, 0);
    barrier();
    for (uint k_next = DEPTH;; k_next += DEPTH) {
        uvec4 a_next[A_EACH], b_next[B_EACH];
        bool is_last = k_next >= k;
        if (!is_last) {
            a.at += a.next;
            b.at += b.next;
            [[unroll]] for (uint i = 0; i < A_EACH; i++) a_next[i] = fetch(a, i, k_next);
            [[unroll]] for (uint i = 0; i < B_EACH; i++) b_next[i] = fetch(b, i, k_next);
        }
        [[unroll]] for (uint step = 0; step < DEPTH / 16; step++) {
            fcoopmatNV<16, gl_ScopeSubgroup, M, K> left[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                uint at = a_first + i * A_DOWN + step * A_DEEPER;
                if (A_ACROSS) coopMatLoadNV(left[i], panels, at, A_PITCH, true);
                else coopMatLoadNV(left[i], panels, at, A_PITCH, false);
            }
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                fcoopmatNV<16, gl_ScopeSubgroup, K, N> right;
                uint at = b_first + j * B_ASIDE + step * B_DEEPER;
                if (B_ACROSS) coopMatLoadNV(right, panels, at, B_PITCH, false);
                else coopMatLoadNV(right, panels, at, B_PITCH, true);
                [[unroll]] for (uint i = 0; i < DOWN; i++)
                    sums[i][j] = coopMatMulAddNV(left[i], right, sums[i][j]);
            }
        }
        barrier();
        if (is_last) break;
        [[unroll]] for (uint i = 0; i < A_EACH; i++) panels[a.place + i * a.place_each] = a_next[i];
        [[unroll]] for (uint i = 0; i < B_EACH; i++) panels[b.place + i * b.place_each] = b_next[i];
        barrier();
    }

    // Each subgroup passes its matrices through a corner of its own: two vectors a thread.
    const uint OUT_PITCH = 5;
    uint corner = gl_SubgroupID * 16 * OUT_PITCH;
    uint my_row = gl_SubgroupInvocationID / 2, my_column = gl_SubgroupInvocationID % 2 * 8;
    uint my_place = corner + my_row * OUT_PITCH + my_column / 4;
    uint64_t out_at = out_address + uint64_t(out_base) * uint64_t(element_bytes(OUT_DTYPE));
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        [[unroll]] for (uint j = 0; j < ACROSS; j++) {
            coopMatStoreNV(sums[i][j], panels, corner, OUT_PITCH, false);
            subgroupMemoryBarrierShared();
            subgroupBarrier();
            store_eight(out_at, row_first + part_row + i * 16 + my_row,
                        column_first + part_column + j * 16 + my_column,
                        uintBitsToFloat(panels[my_place]), uintBitsToFloat(panels[my_place + 1]));
            subgroupMemoryBarrierShared();
            subgroupBarrier();
        }
    }
}
