// ATTENTION: a workgroup has ROWS rows of one key head: (query, head of the group), group fastest.
// Keys come in blocks of KEYS; weights are those of an online softmax. A thread has up to WIDE columns
// of the result for all rows.
#include "types.glsl"
#include "host/attention.h"
#include "attention.glsl"
#include "math.glsl"

const uint GROUP = 128, ROWS = 16, KEYS = 32;
layout(local_size_x = 128) in;

shared real query_rows[QUERY_NUMBERS];
shared real weights[ROWS * KEYS];
shared real highest[ROWS], totals[ROWS], rescale[ROWS];
const uint SLOTS = GROUP / ROWS; // threads that make a row's weights
shared real partial[GROUP];

real larger(real a, real b) {
    return real_isnan(a) ? a : (real_isnan(b) || b > a ? b : a);
}

const uint ROWS_APART = GROUP / KEYS, ROWS_EACH = ROWS / ROWS_APART;
real scores[ROWS_EACH];

// A thread's scores of one key, with rows first, first + ROWS_APART, ...
void make_scores(uint first, int64_t key_base) {
    for (uint r = 0; r < ROWS_EACH; r++) scores[r] = R(0);
    if (K_FOURS) {
        for (uint i = 0; i < WIDTH; i += 4) {
            uint64_t address = element_address(shape.k_address, key_base + int64_t(i), K_DTYPE);
            real4 key = load4(address, K_DTYPE);
            for (uint r = 0; r < ROWS_EACH; r++) {
                uint at = (first + r * ROWS_APART) * WIDTH + i;
                scores[r] += query_rows[at] * key.x + query_rows[at + 1] * key.y +
                             query_rows[at + 2] * key.z + query_rows[at + 3] * key.w;
            }
        }
        return;
    }
    for (uint i = 0; i < WIDTH; i++) {
        real key = load(shape.k_address, key_base + int64_t(i) * shape.k[2], K_DTYPE);
        for (uint r = 0; r < ROWS_EACH; r++)
            scores[r] += query_rows[(first + r * ROWS_APART) * WIDTH + i] * key;
    }
}

// Turns scores into weights, SLOTS threads a row, and adds them to the row's total.
void weigh() {
    const uint EACH = KEYS / SLOTS;
    uint thread = gl_LocalInvocationID.x, row = thread / SLOTS;
    uint first = row * KEYS + thread % SLOTS * EACH;
    real before = highest[row], top = before;
    for (uint i = 0; i < EACH; i++) top = larger(top, weights[first + i]);
    partial[thread] = top;
    barrier();
    for (uint i = 0; i < SLOTS; i++) top = larger(top, partial[row * SLOTS + i]);
    real base = top == -REAL_INFINITY ? R(0) : top, total = R(0);
    for (uint i = 0; i < EACH; i++) {
        real weight = real_exp(weights[first + i] - base);
        weights[first + i] = weight;
        total += weight;
    }
    barrier();
    partial[thread] = total;
    barrier();
    if (thread % SLOTS != 0) return;
    for (uint i = 1; i < SLOTS; i++) total += partial[thread + i];
    rescale[row] = real_exp(before - base);
    totals[row] = totals[row] * rescale[row] + total;
    highest[row] = top;
}

// The first key that a row sees.
uint first_seen(uint index) {
    int place = int(index / shape.shared_heads) + 1 + int(shape.keys) - int(shape.queries);
    return place > int(shape.window) ? uint(place) - shape.window : 0u;
}

// What the sink of a head adds to a row's total.
real sink_share(uint head, real top) {
    real sink = load(shape.sinks_address, int64_t(head), SINKS_DTYPE);
    return sink > -REAL_INFINITY ? real_exp(sink - top) : R(0);
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint task = gl_WorkGroupID.x;
    uint batch = gl_WorkGroupID.y;
    uint first_row = task % shape.row_blocks * ROWS, key_head = task / shape.row_blocks;
    uint all_rows = shape.queries * shape.shared_heads;
    uint rows = min(ROWS, all_rows - first_row);
    int64_t q_base = batch_offset(0, batch),
            k_base = batch_offset(1, batch) + int64_t(key_head) * shape.k[1],
            v_base = batch_offset(2, batch) + int64_t(key_head) * shape.v[1],
            out_base = batch_offset(3, batch), mask_base = batch_offset(4, batch);
    for (uint at = thread; at < ROWS * WIDTH; at += GROUP) {
        uint row = at / WIDTH, index = first_row + row;
        real x = R(0);
        if (row < rows) {
            int64_t offset = q_base + int64_t(index / shape.shared_heads) * shape.q[0] +
                             int64_t(head_of(key_head, index)) * shape.q[1] +
                             int64_t(at % WIDTH) * shape.q[2];
            x = load(q_address, offset, Q_DTYPE) * scale;
        }
        query_rows[at] = x;
    }
    if (thread < ROWS) {
        highest[thread] = -REAL_INFINITY;
        totals[thread] = R(0);
    }
    real sums[ROWS * WIDE];
    for (uint i = 0; i < ROWS * WIDE; i++) sums[i] = R(0);
    uint end = shape.keys, begin = first_seen(first_row) / KEYS * KEYS;
    if (CAUSAL) { // the last row sees most
        uint last_query = (first_row + rows - 1) / shape.shared_heads;
        int seen = int(last_query) + 1 + int(shape.keys) - int(shape.queries);
        end = uint(clamp(seen, 0, int(shape.keys)));
    }
    for (uint first = begin; first < end; first += KEYS) {
        barrier();
        uint column = thread % KEYS, key = first + column, my_row = thread / KEYS;

        make_scores(my_row, k_base + int64_t(min(key, end - 1)) * shape.k[0]);
        for (uint r = 0; r < ROWS_EACH; r++) {
            uint row = my_row + r * ROWS_APART, index = first_row + row;
            uint query = index / shape.shared_heads;
            bool seen = key < end && key >= first_seen(index) && row < rows;
            if (CAUSAL) seen = seen && int(key) < int(query) + 1 + int(shape.keys) - int(shape.queries);
            if (seen && MASK_DTYPE != NO_DTYPE) {
                int64_t at = mask_base + int64_t(head_of(key_head, index)) * shape.mask[0] +
                             int64_t(query) * shape.mask[1] + int64_t(key) * shape.mask[2];
                seen = load(shape.mask_address, at, MASK_DTYPE) != R(0);
            }
            real score = CAPPED ? cap * real_tanh(scores[r] / cap) : scores[r];
            weights[row * KEYS + column] = seen ? score : -REAL_INFINITY;
        }
        barrier();
        weigh();
        barrier();
        for (uint i = 0; i < ROWS * WIDE; i++) sums[i] *= rescale[i / WIDE];
        uint block = min(KEYS, end - first);
        for (uint j = 0; j < block; j++) {
            for (uint w = 0; w < WIDE; w++) {
                uint at = thread + w * GROUP;
                if (at >= shape.value_width) continue;
                real value = load(shape.v_address,
                                  v_base + int64_t(first + j) * shape.v[0] + int64_t(at) * shape.v[2],
                                  V_DTYPE);
                for (uint row = 0; row < ROWS; row++)
                    sums[row * WIDE + w] += weights[row * KEYS + j] * value;
            }
        }
    }
    barrier();
    for (uint row = 0; row < ROWS; row++) {
        if (row >= rows) break;
        uint index = first_row + row;
        int64_t base = out_base + int64_t(index / shape.shared_heads) * shape.to[0] +
                       int64_t(head_of(key_head, index)) * shape.to[1];
        real divisor = totals[row];
        if (SINKS_DTYPE != NO_DTYPE) divisor += sink_share(head_of(key_head, index), highest[row]);
        for (uint w = 0; w < WIDE; w++) {
            uint at = thread + w * GROUP;
            if (at < shape.value_width)
                store(out_address, base + int64_t(at) * shape.to[2], OUT_DTYPE,
                      divisor == R(0) ? R(0) : sums[row * WIDE + w] / divisor);
        }
    }
}
