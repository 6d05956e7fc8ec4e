// ATTENTION of many rows: a workgroup has 64 rows of one key head, (query, head of the group), group
// fastest, and up to 128 numbers of their results. Keys come in blocks of 128. A thread makes the
// scores of 8 rows with 8 keys, and 8 x 8 numbers of the result for the same rows, in registers;
// panels of all operands go through shared memory, and the weights of half a block at a time. Weights
// are those of an online softmax, in base 2.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "attention.glsl"

const uint ROWS = 64, KEYS = 128, COLUMNS = 128, DEPTH = 16, STEPS = 4;
const uint Q_PITCH = ROWS + 4, K_PITCH = KEYS + 4, K_PANEL = DEPTH * Q_PITCH;
layout(local_size_x = 128) in;
layout(constant_id = 0) const uint DTYPES = 0; // q, k, v, out, mask (NONE: none)
layout(constant_id = 1) const bool CAUSAL = false;
layout(constant_id = 2) const bool FOURS = false; // four numbers of q, k and v are neighbours
const uint Q_DTYPE = DTYPES & 15u, K_DTYPE = DTYPES >> 4 & 15u, V_DTYPE = DTYPES >> 8 & 15u,
           OUT_DTYPE = DTYPES >> 12 & 15u, MASK_DTYPE = DTYPES >> 16 & 15u;

shared real panels[DEPTH * (Q_PITCH + K_PITCH)]; // [depth][row], then [depth][key] or [key][column]
shared real weights[ROWS * Q_PITCH];             // [key][row]; at the end results, [row][column]
const uint PARTIAL_PITCH = 17;                   // of what 16 threads know of a row, in the panels

real4 fetch_four(uint64_t address, int64_t at, int64_t apart, uint first, uint end, uint dtype) {
    real4 four = real4(0);
    if (FOURS) {
        if (first < end) four = load4(element_address(address, at, dtype), dtype);
        return four;
    }
    for (uint i = 0; i < 4; i++)
        if (first + i < end) four[i] = load(address, at + int64_t(i) * apart, dtype);
    return four;
}

// Four numbers of each of two rows of queries and four of keys, which become columns of the panels.
void bring_rows(int64_t q_bases[2], int64_t k_base, uint first_row, uint first, uint end, uint depth) {
    uint row = gl_LocalInvocationID.x / 4, place = gl_LocalInvocationID.x % 4 * 4;
    uint rows = shape.queries * shape.shared_heads;
    real4 q[2], k[4];
    depth += place;
    [[unroll]] for (uint i = 0; i < 2; i++) {
        q[i] = real4(0);
        if (first_row + row + i * 32 < rows)
            q[i] = fetch_four(q_address, q_bases[i] + int64_t(depth) * shape.q[2], shape.q[2], depth,
                              shape.width, Q_DTYPE);
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint key = first + row + i * 32;
        k[i] = real4(0);
        if (key < end)
            k[i] = fetch_four(shape.k_address,
                              k_base + int64_t(key) * shape.k[0] + int64_t(depth) * shape.k[2],
                              shape.k[2], depth, shape.width, K_DTYPE);
    }
    barrier();
    [[unroll]] for (uint c = 0; c < 4; c++) {
        [[unroll]] for (uint i = 0; i < 2; i++) panels[(place + c) * Q_PITCH + row + i * 32] = q[i][c];
        [[unroll]] for (uint i = 0; i < 4; i++)
            panels[K_PANEL + (place + c) * K_PITCH + row + i * 32] = k[i][c];
    }
    barrier();
}

void bring_values(int64_t base, uint first, uint end, uint column) {
    uint row = gl_LocalInvocationID.x / 32, place = gl_LocalInvocationID.x % 32 * 4;
    real4 four[4];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint key = first + row + i * 4;
        four[i] = real4(0);
        if (key < end)
            four[i] = fetch_four(shape.v_address,
                                 base + int64_t(key) * shape.v[0] + int64_t(column) * shape.v[2],
                                 shape.v[2], column, shape.value_width, V_DTYPE);
    }
    barrier();
    [[unroll]] for (uint i = 0; i < 4; i++)
        [[unroll]] for (uint c = 0; c < 4; c++)
            panels[K_PANEL + (row + i * 4) * K_PITCH + place + c] = four[i][c];
    barrier();
}

// A thread's key number j of a block.
uint key_of(uint j) {
    return gl_LocalInvocationID.x % 16 * 4 + j % 4 + j / 4 * 64;
}

// Bits for the scores of one row that the mask shows.
uint seen_by_mask(int64_t base, uint key_head, uint row, uint first) {
    uint shown = 0;
    if (row >= shape.queries * shape.shared_heads) return 0;
    base += int64_t(head_of(key_head, row)) * shape.mask[0] +
            int64_t(row / shape.shared_heads) * shape.mask[1];
    for (uint j = 0; j < 8; j++) {
        uint key = first + key_of(j);
        if (key < shape.keys && mask_shows(base + int64_t(key) * shape.mask[2], MASK_DTYPE))
            shown |= 1u << j;
    }
    return shown;
}

void multiply(uint left_at, uint right_at, uint right_pitch, bool from_weights,
              inout real sums[8][8]) {
    for (uint step = 0; step < DEPTH; step += STEPS) {
        [[unroll]] for (uint d = step; d < step + STEPS; d++) {
            real left[8], right[8];
            [[unroll]] for (uint i = 0; i < 8; i++) {
                left[i] = from_weights ? weights[left_at + d * Q_PITCH + i]
                                       : panels[left_at + d * Q_PITCH + i];
                right[i] = panels[right_at + d * right_pitch + i % 4 + i / 4 * 64];
            }
            [[unroll]] for (uint r = 0; r < 8; r++)
                [[unroll]] for (uint j = 0; j < 8; j++) sums[r][j] += left[r] * right[j];
        }
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % 16, my_row = thread / 16 * 8;
    uint block = gl_WorkGroupID.x % shape.row_blocks, key_head = gl_WorkGroupID.x / shape.row_blocks;
    if (CAUSAL) block = shape.row_blocks - 1 - block; // those that see most begin
    uint batch = gl_WorkGroupID.y, first_row = block * ROWS, first_column = gl_WorkGroupID.z * COLUMNS;
    uint rows = shape.queries * shape.shared_heads, end = shape.keys;
    int apart = int(shape.keys) - int(shape.queries);
    if (CAUSAL) {
        int last_query = int((min(first_row + ROWS, rows) - 1) / shape.shared_heads);
        end = uint(clamp(last_query + 1 + apart, 0, int(shape.keys)));
    }
    int64_t k_base = batch_offset(1, batch) + int64_t(key_head) * shape.k[1];
    int64_t v_base = batch_offset(2, batch) + int64_t(key_head) * shape.v[1];
    int64_t mask_base = batch_offset(4, batch);
    int64_t q_bases[2];
    [[unroll]] for (uint i = 0; i < 2; i++) {
        uint index = first_row + thread / 4 + i * 32;
        q_bases[i] = batch_offset(0, batch) + int64_t(index / shape.shared_heads) * shape.q[0] +
                     int64_t(head_of(key_head, index)) * shape.q[1];
    }
    real sums[8][8], highest[8], totals[8];
    [[unroll]] for (uint r = 0; r < 8; r++) {
        highest[r] = -REAL_INFINITY;
        totals[r] = R(0);
        [[unroll]] for (uint j = 0; j < 8; j++) sums[r][j] = R(0);
    }
    for (uint first = 0; first < end; first += KEYS) {
        real scores[8][8];
        [[unroll]] for (uint r = 0; r < 8; r++)
            [[unroll]] for (uint j = 0; j < 8; j++) scores[r][j] = R(0);
        for (uint depth = 0; depth < shape.width; depth += DEPTH) {
            bring_rows(q_bases, k_base, first_row, first, end, depth);
            multiply(my_row, K_PANEL + lane * 4, K_PITCH, false, scores);
        }
        barrier();
        [[unroll]] for (uint r = 0; r < 8; r++) {
            uint row = first_row + my_row + r, query = row / shape.shared_heads;
            uint seen_end = CAUSAL ? min(end, uint(max(int(query) + 1 + apart, 0))) : end;
            uint shown = 0xFFu;
            if (MASK_DTYPE != NONE) shown = seen_by_mask(mask_base, key_head, row, first);
            real top = highest[r];
            [[unroll]] for (uint j = 0; j < 8; j++) {
                bool seen = first + key_of(j) < seen_end && (shown >> j & 1u) != 0;
                scores[r][j] = seen ? scores[r][j] * scale : -REAL_INFINITY;
                top = max(top, scores[r][j]);
            }
            panels[(my_row + r) * PARTIAL_PITCH + lane] = top;
        }
        barrier();
        [[unroll]] for (uint r = 0; r < 8; r++) {
            real top = highest[r];
            [[unroll]] for (uint i = 0; i < 16; i++)
                top = max(top, panels[(my_row + r) * PARTIAL_PITCH + i]);
            real base = top == -REAL_INFINITY ? R(0) : top, part = R(0);
            real factor = exp2(highest[r] - base);
            highest[r] = top;
            [[unroll]] for (uint j = 0; j < 8; j++) {
                scores[r][j] = exp2(scores[r][j] - base);
                part += scores[r][j];
                sums[r][j] *= factor;
            }
            totals[r] = totals[r] * factor + part;
        }
        [[unroll]] for (uint side = 0; side < 2; side++) {
            uint at = first + side * 64;
            if (at >= end) break;
            [[unroll]] for (uint r = 0; r < 8; r++)
                [[unroll]] for (uint j = 0; j < 4; j++)
                    weights[(lane * 4 + j) * Q_PITCH + my_row + r] = scores[r][side * 4 + j];
            for (uint k = 0; k < min(64, end - at); k += DEPTH) {
                bring_values(v_base, at + k, end, first_column + thread % 32 * 4);
                multiply(k * Q_PITCH + my_row, K_PANEL + lane * 4, K_PITCH, true, sums);
            }
            barrier();
        }
    }
    // A row's total is that of its 16 threads; results leave by way of shared memory, 64 columns at a
    // time.
    barrier();
    [[unroll]] for (uint r = 0; r < 8; r++) panels[(my_row + r) * PARTIAL_PITCH + lane] = totals[r];
    barrier();
    int64_t out_base = batch_offset(3, batch);
    [[unroll]] for (uint r = 0; r < 8; r++) {
        real total = R(0);
        for (uint i = 0; i < 16; i++) total += panels[(my_row + r) * PARTIAL_PITCH + i];
        [[unroll]] for (uint j = 0; j < 8; j++)
            sums[r][j] = total == R(0) ? R(0) : sums[r][j] / total;
    }
    [[unroll]] for (uint side = 0; side < 2; side++) {
        barrier();
        [[unroll]] for (uint r = 0; r < 8; r++)
            [[unroll]] for (uint j = 0; j < 4; j++)
                weights[(my_row + r) * Q_PITCH + lane * 4 + j] = sums[r][side * 4 + j];
        barrier();
        uint column = first_column + side * 64 + thread % 64;
        for (uint i = thread / 64; i < ROWS; i += 2) {
            uint row = first_row + i;
            if (row >= rows || column >= shape.value_width) break;
            int64_t to = out_base + int64_t(row / shape.shared_heads) * shape.to[0] +
                         int64_t(head_of(key_head, row)) * shape.to[1];
            store(out_address, to + int64_t(column) * shape.to[2], OUT_DTYPE,
                  weights[i * Q_PITCH + thread % 64]);
        }
    }
}
