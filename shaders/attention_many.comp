// ATTENTION of many rows: a workgroup has 64 rows of one key head, (query, head of the group),
// group fastest, and up to 128 numbers of their results. Keys come in blocks of 64. A thread makes
// the scores of 8 rows with 4 keys, and 8 x 8 numbers of the result for the same rows, in
// registers; panels of all operands go through shared memory. Weights are those of an online
// softmax, in base 2.
#include "types.glsl"
#include "host/attention_many.h"
#include "attention.glsl"

const uint THREADS = 128, ROWS = 64, KEYS = 64, COLUMNS = 128, DEPTH = 16, PITCH = ROWS + 4;
layout(local_size_x = 128) in;

shared real panels[2 * DEPTH * PITCH]; // of queries and keys, then of values
const uint K_PANEL = DEPTH * PITCH;
shared real weights[KEYS * PITCH]; // [key][row]
const uint PARTIAL_PITCH = 17;
shared real partial[ROWS * PARTIAL_PITCH];

// Four numbers of a row from number `first` on; zeros beyond `end`. Loops over registers hold no
// calls of this, or compilers leave them, and the registers in memory.
real4 fetch_four(uint64_t address, int64_t at, int64_t apart, uint first, uint end, uint dtype) {
    real4 four = real4(0);
    if (IN_FOURS) {
        if (first < end) four = load4(element_address(address, at, dtype), dtype);
        return four;
    }
    for (uint i = 0; i < 4; i++)
        if (first + i < end) four[i] = load(address, at + int64_t(i) * apart, dtype);
    return four;
}

// A row of queries or keys, of which a thread brings 8 numbers of each panel.
struct Carrier {
    uint64_t address;
    int64_t at, apart;
    uint depth, end; // end: 0 for a row that is not there
};

real4 fetch_row(Carrier c, uint depth, uint dtype) {
    return fetch_four(c.address, c.at + int64_t(depth) * c.apart, c.apart, depth, c.end, dtype);
}

void put_row(uint panel, uint row, uint depth, real4 four) {
    [[unroll]] for (uint i = 0; i < 4; i++) panels[panel + (depth + i) * PITCH + row] = four[i];
}

// Four columns of a key of a block.
real4 fetch_value(int64_t base, uint key, uint end, uint column) {
    int64_t at = base + int64_t(key) * shape.v[0] + int64_t(column) * shape.v[2];
    return fetch_four(shape.v_address, at, shape.v[2], column, key < end ? shape.value_width : 0,
                      V_DTYPE);
}

void put_value(uint key, uint column, real4 four) {
    [[unroll]] for (uint i = 0; i < 4; i++) panels[key * (COLUMNS + 4) + column + i] = four[i];
}

uint seen_by_mask(int64_t base, uint key_head, uint first_row, uint first_key) {
    uint shown = 0;
    for (uint i = 0; i < 32; i++) {
        uint row = first_row + i / 4, key = first_key + i % 4;
        if (row >= shape.queries * shape.shared_heads || key >= shape.keys) continue;
        int64_t place = base + int64_t(head_of(key_head, row)) * shape.mask[0] +
                        int64_t(row / shape.shared_heads) * shape.mask[1] +
                        int64_t(key) * shape.mask[2];
        if (mask_shows(place, MASK_DTYPE)) shown |= 1u << i;
    }
    return shown;
}

void put_results(real sums[8][8], real inverse[8], uint first) {
    uint row = gl_LocalInvocationID.x / 16 * 8, column = gl_LocalInvocationID.x % 16 * 4;
    barrier();
    [[unroll]] for (uint r = 0; r < 8; r++)
        [[unroll]] for (uint j = 0; j < 4; j++)
            weights[(row + r) * PITCH + column + j] = sums[r][first + j] * inverse[r];
    barrier();
}

void leave(int64_t base, uint key_head, uint first_row, uint first_column) {
    uint column = gl_LocalInvocationID.x % 64;
    for (uint i = gl_LocalInvocationID.x / 64; i < ROWS; i += 2) {
        uint row = first_row + i;
        if (row >= shape.queries * shape.shared_heads || first_column + column >= shape.value_width)
            break;
        int64_t to = base + int64_t(row / shape.shared_heads) * shape.to[0] +
                     int64_t(head_of(key_head, row)) * shape.to[1];
        store(out_address, to + int64_t(first_column + column) * shape.to[2], OUT_DTYPE,
              weights[i * PITCH + column]);
    }
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % 16;
    uint block = gl_WorkGroupID.x % shape.row_blocks,
         key_head = gl_WorkGroupID.x / shape.row_blocks;
    if (CAUSAL) block = shape.row_blocks - 1 - block; // those that see most begin
    uint batch = gl_WorkGroupID.y, first_row = block * ROWS,
         first_column = gl_WorkGroupID.z * COLUMNS;
    uint rows = shape.queries * shape.shared_heads, my_row = thread / 16 * 8;
    int apart = int(shape.keys) - int(shape.queries);
    uint end = shape.keys;
    if (CAUSAL) {
        int last_query = int((min(first_row + ROWS, rows) - 1) / shape.shared_heads);
        end = uint(clamp(last_query + 1 + apart, 0, int(shape.keys)));
    }
    int64_t k_base = batch_offset(1, batch) + int64_t(key_head) * shape.k[1];
    int64_t v_base = batch_offset(2, batch) + int64_t(key_head) * shape.v[1];
    int64_t mask_base = batch_offset(4, batch);
    uint brought = thread / 2, index = first_row + brought;
    Carrier q = Carrier(q_address,
                        batch_offset(0, batch) + int64_t(index / shape.shared_heads) * shape.q[0] +
                            int64_t(head_of(key_head, index)) * shape.q[1],
                        shape.q[2], thread % 2 * 8, index < rows ? shape.width : 0);
    real sums[8][8], highest[8], totals[8];
    [[unroll]] for (uint r = 0; r < 8; r++) {
        highest[r] = -REAL_INFINITY;
        totals[r] = R(0);
        [[unroll]] for (uint j = 0; j < 8; j++) sums[r][j] = R(0);
    }
    for (uint first = 0; first < end; first += KEYS) {
        Carrier k = Carrier(shape.k_address, k_base + int64_t(first + brought) * shape.k[0],
                            shape.k[2], q.depth, first + brought < end ? shape.width : 0);
        real scores[8][4];
        [[unroll]] for (uint r = 0; r < 8; r++)
            [[unroll]] for (uint j = 0; j < 4; j++) scores[r][j] = R(0);
        for (uint depth = 0; depth < shape.width; depth += DEPTH) {
            real4 q_low = fetch_row(q, depth + q.depth, Q_DTYPE);
            real4 q_high = fetch_row(q, depth + q.depth + 4, Q_DTYPE);
            real4 k_low = fetch_row(k, depth + q.depth, K_DTYPE);
            real4 k_high = fetch_row(k, depth + q.depth + 4, K_DTYPE);
            barrier();
            put_row(0, brought, q.depth, q_low);
            put_row(0, brought, q.depth + 4, q_high);
            put_row(K_PANEL, brought, q.depth, k_low);
            put_row(K_PANEL, brought, q.depth + 4, k_high);
            barrier();
            for (uint d = 0; d < DEPTH; d++) {
                real left[8], right[4];
                [[unroll]] for (uint r = 0; r < 8; r++) left[r] = panels[d * PITCH + my_row + r];
                [[unroll]] for (uint j = 0; j < 4; j++)
                    right[j] = panels[K_PANEL + d * PITCH + lane * 4 + j];
                [[unroll]] for (uint r = 0; r < 8; r++)
                    [[unroll]] for (uint j = 0; j < 4; j++) scores[r][j] += left[r] * right[j];
            }
        }
        uint shown = 0xFFFFFFFFu; // a bit per score
        if (MASK_DTYPE != NO_DTYPE)
            shown = seen_by_mask(mask_base, key_head, first_row + my_row, first + lane * 4);
        [[unroll]] for (uint r = 0; r < 8; r++) {
            uint row = first_row + my_row + r, query = row / shape.shared_heads;
            real top = -REAL_INFINITY;
            [[unroll]] for (uint j = 0; j < 4; j++) {
                uint key = first + lane * 4 + j;
                bool seen = key < end && (!CAUSAL || int(key) <= int(query) + apart);
                seen = seen && (shown >> (r * 4 + j) & 1u) != 0;
                scores[r][j] = seen ? scores[r][j] * scale : -REAL_INFINITY;
                top = max(top, scores[r][j]);
            }
            partial[(my_row + r) * PARTIAL_PITCH + lane] = top;
        }
        barrier();
        real factors[8];
        [[unroll]] for (uint r = 0; r < 8; r++) {
            real top = highest[r];
            [[unroll]] for (uint i = 0; i < 16; i++)
                top = max(top, partial[(my_row + r) * PARTIAL_PITCH + i]);
            real base = top == -REAL_INFINITY ? R(0) : top, part = R(0);
            factors[r] = exp2(highest[r] - base);
            highest[r] = top;
            [[unroll]] for (uint j = 0; j < 4; j++) {
                scores[r][j] = exp2(scores[r][j] - base);
                part += scores[r][j];
                weights[(lane * 4 + j) * PITCH + my_row + r] = scores[r][j];
            }
            totals[r] = totals[r] * factors[r] + part;
            [[unroll]] for (uint j = 0; j < 8; j++) sums[r][j] *= factors[r];
        }
        uint keys = min(KEYS, end - first);
        for (uint at = 0; at < keys; at += DEPTH) {
            uint key = thread / 32, column = thread % 32 * 4, from = first + at + key;
            real4 v_0 = fetch_value(v_base, from, end, first_column + column);
            real4 v_1 = fetch_value(v_base, from + 4, end, first_column + column);
            real4 v_2 = fetch_value(v_base, from + 8, end, first_column + column);
            real4 v_3 = fetch_value(v_base, from + 12, end, first_column + column);
            barrier();
            put_value(key, column, v_0);
            put_value(key + 4, column, v_1);
            put_value(key + 8, column, v_2);
            put_value(key + 12, column, v_3);
            barrier();
            for (uint d = 0; d < DEPTH; d++) {
                real left[8], right[8];
                [[unroll]] for (uint r = 0; r < 8; r++)
                    left[r] = weights[(at + d) * PITCH + my_row + r];
                [[unroll]] for (uint j = 0; j < 8; j++)
                    right[j] = panels[d * (COLUMNS + 4) + lane * 4 + j % 4 + j / 4 * 64];
                [[unroll]] for (uint r = 0; r < 8; r++)
                    [[unroll]] for (uint j = 0; j < 8; j++) sums[r][j] += left[r] * right[j];
            }
        }
    }
    // A row's total is that of its 16 threads.
    barrier();
    [[unroll]] for (uint r = 0; r < 8; r++)
        partial[(my_row + r) * PARTIAL_PITCH + lane] = totals[r];
    barrier();
    real inverse[8];
    [[unroll]] for (uint r = 0; r < 8; r++) {
        real total = R(0);
        [[unroll]] for (uint i = 0; i < 16; i++)
            total += partial[(my_row + r) * PARTIAL_PITCH + i];
        inverse[r] = total == R(0) ? R(0) : R(1) / total;
    }
    // Results leave by way of shared memory, 64 columns at a time.
    int64_t out_base = batch_offset(3, batch);
    put_results(sums, inverse, 0);
    leave(out_base, key_head, first_row, first_column);
    put_results(sums, inverse, 4);
    leave(out_base, key_head, first_row, first_column + 64);
}
