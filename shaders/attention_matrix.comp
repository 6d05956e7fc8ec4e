// ATTENTION of many rows of 16-bit floats on the device's matrix units. A workgroup has ROWS rows
// of one key head: (query, head of the group), group fastest. A subgroup makes the scores of half
// of them with half of a block of KEYS, and half of the columns of their results. Keys, then
// values, come through one panel of shared memory. Weights are those of an online softmax, in base
// 2, whose base follows the highest score only when that has grown by much.
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "matrix_units.glsl"
#include "host/attention_many.h"
#include "attention.glsl"

const uint KEYS = 64, ROWS = 64, THREADS = 128;
const uint DOWN = 2, ASIDE = KEYS / 32, COLUMNS = WIDTH / 32; // matrices of a subgroup
layout(local_size_x = 128) in;
const uint DTYPE = Q_DTYPE;
const float GROWTH = 8.0; // of the highest score that is let be: weights reach 2^8 then

// In vectors of eight 16-bit numbers, or four scores. Rows are padded so that those of a matrix lie
// in different banks. The queries come through the panel as well.
const uint EIGHTS = WIDTH / 8, PITCH = EIGHTS + 1, SCORE_PITCH = KEYS / 4 + 2;
const uint EACH = KEYS * EIGHTS / THREADS, ROWS_EACH = THREADS / EIGHTS;
shared uvec4 panel[KEYS * PITCH];
shared uvec4 score_rows[ROWS * SCORE_PITCH]; // and the weights that they become
shared float factors[ROWS];                  // of the rows' sums
shared bool grown[4];                        // rows of a subgroup have other factors than 1

// What a thread brings of a block of keys or values: rows of `pitch` bytes. What is not there is
// read elsewhere and dropped by put: loads without branches overlap.
void fetch(uint64_t base, uint64_t pitch, uint first, uint numbers, out uvec4 mine[EACH]) {
    uint row = gl_LocalInvocationID.x / EIGHTS, column = gl_LocalInvocationID.x % EIGHTS * 8;
    uint there = column < numbers ? shape.keys : 0;
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint key = first + row + i * ROWS_EACH;
        mine[i] = Eight(key < there ? base + uint64_t(key) * pitch + uint64_t(column * 2) : base).v;
    }
}

void put(uvec4 mine[EACH], uint first, uint numbers) {
    uint row = gl_LocalInvocationID.x / EIGHTS, column = gl_LocalInvocationID.x % EIGHTS;
    uint there = column * 8 < numbers ? shape.keys - first : 0;
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint key = row + i * ROWS_EACH;
        panel[key * PITCH + column] = key < there ? mine[i] : uvec4(0);
    }
}

void bring_queries(int64_t base, uint key_head, uint first_row) {
    for (uint at = gl_LocalInvocationID.x; at < ROWS * EIGHTS; at += THREADS) {
        uint index = first_row + at / EIGHTS, column = at % EIGHTS * 8;
        int64_t place = base + int64_t(index / shape.shared_heads) * shape.q[0] +
                        int64_t(head_of(key_head, index)) * shape.q[1] + int64_t(column);
        uvec4 eight = uvec4(0);
        if (index < shape.queries * shape.shared_heads && column < shape.width)
            eight = Eight(q_address + 2UL * uint64_t(place)).v;
        panel[at / EIGHTS * PITCH + at % EIGHTS] = eight;
    }
}

void meet() { // the threads of a subgroup
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

uint pair_of(float low, float high) {
    if (DTYPE == FLOAT16) return packHalf2x16(vec2(low, high));
    return bfloat_of_float(low) | bfloat_of_float(high) << 16;
}

// A thread sees half of a row of scores, every other four of the keys; its neighbour sees the rest.
const uint FOURS = KEYS / 8;
struct Row {
    uint at;           // its first four in score_rows
    int last;          // the last key that it may see
    int64_t mask_base; // of its query and head
    float highest, total;
};

// A bit for each score that the mask hides.
uint hidden_scores(Row row, uint first) {
    uint hidden = 0;
    for (uint i = 0; i < FOURS * 4; i++) {
        uint key = first + (i / 4 * 2 + gl_SubgroupInvocationID % 2) * 4 + i % 4;
        if (key < shape.keys &&
            !mask_shows(row.mask_base + int64_t(key) * shape.mask[2], MASK_DTYPE))
            hidden |= 1u << i;
    }
    return hidden;
}

// Turns a row of scores into weights; returns the factor of what was summed up before.
float weigh(inout Row row, uint first, bool is_cut, uint hidden) {
    uint half_row = gl_SubgroupInvocationID % 2;
    vec4 fours[FOURS];
    float top = row.highest;
    [[unroll]] for (uint i = 0; i < FOURS; i++) {
        fours[i] = uintBitsToFloat(score_rows[row.at + 2 * i]) * scale;
        if (is_cut) {
            ivec4 key = int(first + (2 * i + half_row) * 4) + ivec4(0, 1, 2, 3);
            fours[i] = mix(fours[i], vec4(-REAL_INFINITY), greaterThan(key, ivec4(row.last)));
        }
        if (MASK_DTYPE != NO_DTYPE) {
            uvec4 bits = uvec4(hidden >> i * 4) & uvec4(1, 2, 4, 8);
            fours[i] = mix(fours[i], vec4(-REAL_INFINITY), notEqual(bits, uvec4(0)));
        }
        vec2 most = max(fours[i].xy, fours[i].zw);
        top = max(top, max(most.x, most.y));
    }
    top = max(top, subgroupShuffleXor(top, 1));
    if (!(top > row.highest + GROWTH)) top = row.highest;
    float base = top == -REAL_INFINITY ? 0.0 : top, part = 0.0;
    [[unroll]] for (uint i = 0; i < FOURS; i++) {
        fours[i] = exp2(fours[i] - base);
        part += (fours[i].x + fours[i].y) + (fours[i].z + fours[i].w);
    }
    float factor = exp2(row.highest - base);
    row.total = row.total * factor + (part + subgroupShuffleXor(part, 1));
    row.highest = top;
    meet();
    // The weights take the place of the scores: four of them half of a vector.
    [[unroll]] for (uint i = 0; i < FOURS; i++) {
        uint place = row.at - half_row + i;
        uvec2 four = uvec2(pair_of(fours[i].x, fours[i].y), pair_of(fours[i].z, fours[i].w));
        if (half_row == 0)
            score_rows[place].xy = four;
        else
            score_rows[place].zw = four;
    }
    return factor;
}

// Numbers of the results that passed through: of each half of the columns 32, from `column` on.
void leave(uint key_head, uint first_row, uint batch, uint column) {
    uint size = element_bytes(OUT_DTYPE);
    for (uint at = gl_LocalInvocationID.x; at < ROWS * 16; at += THREADS) {
        uint row = at / 16, four = at % 16, index = first_row + row;
        uint to_column = four / 8 * (WIDTH / 2) + column + four % 8 * 4;
        if (index >= shape.queries * shape.shared_heads || to_column >= shape.value_width) continue;
        int64_t to = batch_offset(3, batch) + int64_t(index / shape.shared_heads) * shape.to[0] +
                     int64_t(head_of(key_head, index)) * shape.to[1] + int64_t(to_column);
        store4(out_address + uint64_t(to) * uint64_t(size), OUT_DTYPE,
               uintBitsToFloat(score_rows[row * SCORE_PITCH + four]) * factors[row]);
    }
}

#define PASS(first)                                                                                \
    barrier();                                                                                     \
    [[unroll]] for (uint r = 0; r < DOWN; r++)                                                    \
        [[unroll]] for (uint j = 0; j < 2; j++)                                                   \
            coopMatStoreNV(sums[r][first + j], score_rows,                                         \
                           (part_row + r * 16) * SCORE_PITCH + (part * 2 + j) * 4, SCORE_PITCH,    \
                           false);                                                                 \
    barrier();                                                                                     \
    leave(key_head, first_row, batch, first * 16);

void main() {
    uint lane = gl_SubgroupInvocationID, batch = gl_WorkGroupID.y;
    uint block = gl_WorkGroupID.x % shape.row_blocks,
         key_head = gl_WorkGroupID.x / shape.row_blocks;
    if (CAUSAL) block = shape.row_blocks - 1 - block; // those that see most begin
    uint first_row = block * ROWS, rows = shape.queries * shape.shared_heads;
    uint64_t k_base =
        shape.k_address + 2UL * uint64_t(batch_offset(1, batch) + int64_t(key_head) * shape.k[1]);
    uint64_t v_base =
        shape.v_address + 2UL * uint64_t(batch_offset(2, batch) + int64_t(key_head) * shape.v[1]);
    uint64_t k_pitch = 2UL * uint64_t(shape.k[0]), v_pitch = 2UL * uint64_t(shape.v[0]);
    uint width = shape.width, value_width = shape.value_width;

    // Which rows the components of a thread belong to is the device's choice: asked, not known.
    uint thread = gl_LocalInvocationID.x, corner = gl_SubgroupID * 16 * SCORE_PITCH;
    uint my_eight = corner + lane / 2 * SCORE_PITCH + lane % 2 * 2;
    score_rows[my_eight] = score_rows[my_eight + 1] = floatBitsToUint(vec4(float(lane / 2)));
    bring_queries(batch_offset(0, batch), key_head, first_row);
    barrier();
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> row_numbers;
    coopMatLoadNV(row_numbers, score_rows, corner, SCORE_PITCH, false);
    uint part_row = gl_SubgroupID / 2 * 32, part = gl_SubgroupID % 2; // of this subgroup
    uint component_rows[8];
    [[unroll]] for (uint i = 0; i < 8; i++) component_rows[i] = part_row + uint(row_numbers[i]);
    fcoopmatNV<16, gl_ScopeSubgroup, M, K> queries[DOWN][WIDTH / 16];
    fcoopmatNV<32, gl_ScopeSubgroup, M, N> sums[DOWN][COLUMNS];
    [[unroll]] for (uint r = 0; r < DOWN; r++) {
        [[unroll]] for (uint i = 0; i < WIDTH / 16; i++)
            coopMatLoadNV(queries[r][i], panel, (part_row + r * 16) * PITCH + i * 2, PITCH, false);
        [[unroll]] for (uint j = 0; j < COLUMNS; j++)
            sums[r][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
    }

    uint index = first_row + thread / 2, query = index / shape.shared_heads;
    Row row;
    row.at = thread / 2 * SCORE_PITCH + thread % 2;
    row.mask_base = batch_offset(4, batch) + int64_t(head_of(key_head, index)) * shape.mask[0] +
                    int64_t(query) * shape.mask[1];
    row.last = int(shape.keys) - 1;
    row.highest = -REAL_INFINITY;
    row.total = 0.0;
    uint end = shape.keys, open_end = shape.keys; // keys before open_end are seen by every row
    if (CAUSAL) {
        int apart = int(shape.keys) - int(shape.queries);
        row.last = min(row.last, int(query) + apart);
        int last_query = int((min(first_row + ROWS, rows) - 1) / shape.shared_heads);
        end = uint(clamp(last_query + 1 + apart, 0, int(shape.keys)));
        open_end = uint(clamp(int(first_row / shape.shared_heads) + 1 + apart, 0, int(shape.keys)));
    }
    uvec4 mine[EACH];
    if (end > 0) fetch(k_base, k_pitch, 0, width, mine);
    for (uint first = 0; first < end; first += KEYS) {
        barrier();
        put(mine, first, width);
        barrier();
        fetch(v_base, v_pitch, first, value_width, mine);
        fcoopmatNV<32, gl_ScopeSubgroup, M, N> scores[DOWN][ASIDE];
        [[unroll]] for (uint r = 0; r < DOWN; r++)
            [[unroll]] for (uint j = 0; j < ASIDE; j++)
                scores[r][j] = fcoopmatNV<32, gl_ScopeSubgroup, M, N>(0.0);
        [[unroll]] for (uint i = 0; i < WIDTH / 16; i++)
            [[unroll]] for (uint j = 0; j < ASIDE; j++) {
                fcoopmatNV<16, gl_ScopeSubgroup, K, N> keys;
                coopMatLoadNV(keys, panel, (part * ASIDE + j) * 16 * PITCH + i * 2, PITCH, true);
                [[unroll]] for (uint r = 0; r < DOWN; r++)
                    scores[r][j] = coopMatMulAddNV(queries[r][i], keys, scores[r][j]);
            }
        [[unroll]] for (uint r = 0; r < DOWN; r++)
            [[unroll]] for (uint j = 0; j < ASIDE; j++)
                coopMatStoreNV(scores[r][j], score_rows,
                               (part_row + r * 16) * SCORE_PITCH + (part * ASIDE + j) * 4,
                               SCORE_PITCH, false);
        barrier();
        uint hidden = MASK_DTYPE != NO_DTYPE && index < rows ? hidden_scores(row, first) : 0;
        float factor = weigh(row, first, first + KEYS > open_end, hidden);
        if (thread % 2 == 0) factors[thread / 2] = factor;
        bool any_grown = subgroupAny(factor != 1.0);
        if (lane == 0) grown[gl_SubgroupID] = any_grown;
        put(mine, first, value_width);
        barrier();
        if (first + KEYS < end) fetch(k_base, k_pitch, first + KEYS, width, mine);
        if (grown[part_row / 16] || grown[part_row / 16 + 1]) {
            [[unroll]] for (uint r = 0; r < DOWN; r++)
                [[unroll]] for (uint i = 0; i < 8; i++) {
                    float component_factor = factors[component_rows[i] + r * 16];
                    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
                        sums[r][j][i] = sums[r][j][i] * component_factor;
                }
        }
        [[unroll]] for (uint i = 0; i < KEYS / 16; i++) {
            fcoopmatNV<16, gl_ScopeSubgroup, M, K> weights[DOWN];
            [[unroll]] for (uint r = 0; r < DOWN; r++)
                coopMatLoadNV(weights[r], score_rows, (part_row + r * 16) * SCORE_PITCH + i * 2,
                              SCORE_PITCH, false);
            [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
                fcoopmatNV<16, gl_ScopeSubgroup, K, N> values;
                coopMatLoadNV(values, panel, i * 16 * PITCH + (part * COLUMNS + j) * 2, PITCH,
                              false);
                [[unroll]] for (uint r = 0; r < DOWN; r++)
                    sums[r][j] = coopMatMulAddNV(weights[r], values, sums[r][j]);
            }
        }
    }
    barrier();
    if (thread % 2 == 0) factors[thread / 2] = row.total == 0.0 ? 0.0 : 1.0 / row.total;
    // Two matrices aside at a time pass through the rows of scores. Loops over matrices hold
    // nothing else, or compilers leave them, and the matrices in memory.
    PASS(0)
#if WIDTH > 64
    PASS(2)
#endif
}
