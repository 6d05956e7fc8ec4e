// ATTENTION of few rows, as when one token follows another: a workgroup has ROWS rows of one key
// head and a part of the keys. LANES threads share a key, each with fours of its numbers; such a
// team sees every TEAMS-th key and keeps weights of its own, those of an online softmax, until all
// teams join. Reading is what takes long: a thread asks for AT_ONCE keys before it computes, and
// what it asks with is pushed.
#include "types.glsl"
#include "host/attention_few.h"
#include "lanes.glsl"

const uint AT_ONCE_MAX = 8, ROWS_MAX = 4, WIDE_MAX = 2;
layout(local_size_x_id = 8) in;
// q, k and v can be read four numbers at a time.
const uint Q_DTYPE = DTYPES & 15u, K_DTYPE = DTYPES >> 4 & 15u, V_DTYPE = DTYPES >> 8 & 15u,
           OUT_DTYPE = DTYPES >> 12 & 15u, MASK_DTYPE = DTYPES >> 16 & 15u;
const bool Q_FOURS = (DTYPES >> 20 & 1u) != 0, K_FOURS = (DTYPES >> 21 & 1u) != 0,
           V_FOURS = (DTYPES >> 22 & 1u) != 0;
const uint KEY_FOURS = WIDTH & 0xFFFFu, VALUE_FOURS = WIDTH >> 16;
const uint TEAMS = GROUP / LANES, AT_ONCE = AT_ONCE_MAX / ROWS;

uint queries() { return queries_and_rank & 0xFFu; }
uint key_heads() { return heads & 0xFFFFu; }
uint shared_heads() { return heads >> 16; }

// A thread's products of its keys with its rows, later the scores: number r * AT_ONCE + j.
struct Scores {
    real of[AT_ONCE_MAX];
};
shared Scores slots[GROUP / 4]; // subgroups have four threads or more
// The teams' sums, highest scores, totals and factors.
shared real numbers[SHARED_NUMBERS];

Scores combine(uint how, Scores a, Scores b) {
    for (uint i = 0; i < AT_ONCE_MAX; i++) a.of[i] += b.of[i];
    return a;
}

Scores scores_beside(Scores mine, uint apart) {
    Scores other;
    for (uint i = 0; i < AT_ONCE_MAX; i++) other.of[i] = real_beside(mine.of[i], apart);
    return other;
}
JOIN_LANES(join_lanes, Scores, slots, combine, scores_beside)

#ifdef REAL_F64
const uint PARTS_DTYPE = FLOAT64;
#else
const uint PARTS_DTYPE = FLOAT32;
#endif

real4 queries_of[ROWS_MAX * WIDE_MAX], sums[ROWS_MAX * WIDE_MAX];
real highest[ROWS_MAX], totals[ROWS_MAX];

// The query head of a row.
uint head_of(uint key_head, uint index) {
    return key_head * shared_heads() + index % shared_heads();
}

real larger(real a, real b) {
    return real_isnan(a) ? a : (real_isnan(b) || b > a ? b : a);
}

real base_of(real top) {
    return top == -REAL_INFINITY ? R(0) : top;
}

int64_t batch_offset(uint view) {
    int64_t offset = 0L;
    uint rest = gl_WorkGroupID.y;
    for (int d = int(queries_and_rank >> 8) - 1; d >= 0; d--) {
        offset += int64_t(rest % shape.batch_dims[d]) * shape.batch_strides[view][d];
        rest /= shape.batch_dims[d];
    }
    return offset;
}

// Where number `at` of a row of a view lies: of a query or key, and a head.
uint64_t place_of(uint64_t address, uint view, int strides[3], uint row, uint head, uint at, uint dtype) {
    int64_t place = batch_offset(view) + int64_t(row) * int64_t(strides[0]) +
                    int64_t(head) * int64_t(strides[1]) + int64_t(at) * int64_t(strides[2]);
    return element_address(address, place, dtype);
}

real4 four_at(uint64_t address, int step, uint dtype, bool fours) {
    if (fours) return load4(address, dtype);
    int64_t apart = int64_t(step);
    return real4(load(address, 0L, dtype), load(address, apart, dtype),
                 load(address, 2L * apart, dtype), load(address, 3L * apart, dtype));
}

void fetch_queries(uint first_row, uint rows, uint key_head, uint lane) {
    for (uint r = 0; r < ROWS; r++) {
        uint index = first_row + min(r, rows - 1), query = index / shared_heads();
        for (uint w = 0; w < WIDE; w++) {
            uint four = lane + w * LANES, i = r * WIDE + w;
            queries_of[i] = sums[i] = real4(0.0);
            uint64_t from = place_of(q_address, 0, q_strides, query, head_of(key_head, index),
                                     4 * four, Q_DTYPE);
            if (four < KEY_FOURS)
                queries_of[i] = scale * four_at(from, q_strides[2], Q_DTYPE, Q_FOURS);
        }
        highest[r] = -REAL_INFINITY;
        totals[r] = R(0);
    }
}

bool is_seen(uint index, uint key, uint key_head) {
    uint query = index / shared_heads();
    if (CAUSAL && int(key) >= int(query) + 1 + int(keys) - int(queries())) return false;
    if (MASK_DTYPE == NO_DTYPE) return true;
    int64_t at = batch_offset(4) + int64_t(head_of(key_head, index)) * shape.mask[0] +
                 int64_t(query) * shape.mask[1] + int64_t(key) * shape.mask[2];
    return load(shape.mask_address, at, MASK_DTYPE) != R(0);
}

// The keys first, first + TEAMS, ... of this team, those below `end`, with row `r`.
void weigh(uint r, uint index, uint first, uint end, uint key_head, inout Scores scores,
           real4 values[AT_ONCE_MAX * WIDE_MAX]) {
    real top = highest[r];
    for (uint j = 0; j < AT_ONCE; j++) {
        uint key = first + j * TEAMS, i = r * AT_ONCE + j;
        if (key >= end || !is_seen(index, key, key_head)) scores.of[i] = -REAL_INFINITY;
        top = larger(top, scores.of[i]);
    }
    real base = base_of(top), rescale = falling_exp(highest[r] - base);
    highest[r] = top;
    totals[r] *= rescale;
    for (uint w = 0; w < WIDE; w++) sums[r * WIDE + w] *= rescale;
    for (uint j = 0; j < AT_ONCE; j++) {
        real weight = falling_exp(scores.of[r * AT_ONCE + j] - base);
        totals[r] += weight;
        for (uint w = 0; w < WIDE; w++) sums[r * WIDE + w] += weight * values[j * WIDE + w];
    }
}

// Factors of the teams' sums of a row, which lie in `numbers`; the row's highest score and total.
const uint TOPS = TEAMS * LANES * WIDE * 4, TOTALS = TOPS + TEAMS, FACTORS = TOTALS + TEAMS;
void join_teams(uint r, out real top, out real total) {
    uint thread = thread_number(), lane = thread % LANES, team = thread / LANES;
    barrier();
    for (uint w = 0; w < WIDE; w++)
        for (uint i = 0; i < 4; i++)
            numbers[(team * WIDE + w) * LANES * 4 + lane * 4 + i] = sums[r * WIDE + w][i];
    if (lane == 0) {
        numbers[TOPS + team] = highest[r];
        numbers[TOTALS + team] = totals[r];
    }
    barrier();
    top = -REAL_INFINITY;
    for (uint i = 0; i < TEAMS; i++) top = larger(top, numbers[TOPS + i]);
    if (thread < TEAMS) numbers[FACTORS + thread] = falling_exp(numbers[TOPS + thread] - base_of(top));
    barrier();
    total = R(0);
    for (uint i = 0; i < TEAMS; i++) total += numbers[TOTALS + i] * numbers[FACTORS + i];
}

void store_row(uint r, uint index, uint key_head) {
    real top, total;
    join_teams(r, top, total);
    uint thread = thread_number(), query = index / shared_heads();
    uint row = (gl_WorkGroupID.y * key_heads() + key_head) * (queries() * shared_heads()) + index;
    uint64_t numbers_of_part = uint64_t(VALUE_FOURS * 4 + 2);
    uint64_t part = (uint64_t(row) * uint64_t(parts) + uint64_t(gl_WorkGroupID.z)) * numbers_of_part;
    for (uint column = thread; column < VALUE_FOURS * 4; column += GROUP) {
        real sum = R(0);
        for (uint i = 0; i < TEAMS; i++)
            sum += numbers[i * WIDE * LANES * 4 + column] * numbers[FACTORS + i];
        if (PARTED)
            store(out_address, int64_t(part) + 2L + int64_t(column), PARTS_DTYPE, sum);
        else
            store_at(place_of(out_address, 3, to_strides, query, head_of(key_head, index), column,
                              OUT_DTYPE), OUT_DTYPE, total == R(0) ? R(0) : sum / total);
    }
    if (!PARTED || thread > 0) return;
    store(out_address, int64_t(part), PARTS_DTYPE, top);
    store(out_address, int64_t(part) + 1L, PARTS_DTYPE, total);
}

void main() {
    uint thread = thread_number(), lane = thread % LANES, team = thread / LANES;
    uint key_head = gl_WorkGroupID.x / row_blocks;
    uint first_row = gl_WorkGroupID.x % row_blocks * ROWS;
    uint rows = min(ROWS, queries() * shared_heads() - first_row);
    uint begin = 0, end = keys;
    if (CAUSAL) { // the last row sees most
        uint last_query = (first_row + rows - 1) / shared_heads();
        end = uint(clamp(int(last_query) + 1 + int(keys) - int(queries()), 0, int(keys)));
    }
    if (PARTED) {
        begin = gl_WorkGroupID.z * part_keys;
        end = min(end, begin + part_keys);
    }
    uint64_t k_from[WIDE_MAX], v_from[WIDE_MAX];
    for (uint w = 0; w < WIDE; w++) {
        uint number = 4 * (lane + w * LANES);
        k_from[w] = place_of(k_address, 1, k_strides, begin + team, key_head, number, K_DTYPE);
        v_from[w] = place_of(v_address, 2, v_strides, begin + team, key_head, number, V_DTYPE);
    }
    int64_t k_step = int64_t(int(TEAMS * element_bytes(K_DTYPE)) * k_strides[0]),
            v_step = int64_t(int(TEAMS * element_bytes(V_DTYPE)) * v_strides[0]);
    fetch_queries(first_row, rows, key_head, lane);
    for (uint first = begin; first < end; first += TEAMS * AT_ONCE) {
        real4 keys_of[AT_ONCE_MAX * WIDE_MAX], values[AT_ONCE_MAX * WIDE_MAX];
        for (uint j = 0; j < AT_ONCE; j++) {
            bool exists = first + j * TEAMS + team < end;
            for (uint w = 0; w < WIDE; w++) {
                uint four = lane + w * LANES, i = j * WIDE + w;
                keys_of[i] = values[i] = real4(0.0);
                if (exists && four < KEY_FOURS)
                    keys_of[i] = four_at(k_from[w], k_strides[2], K_DTYPE, K_FOURS);
                if (exists && four < VALUE_FOURS)
                    values[i] = four_at(v_from[w], v_strides[2], V_DTYPE, V_FOURS);
                k_from[w] += uint64_t(k_step);
                v_from[w] += uint64_t(v_step);
            }
        }
        Scores scores;
        for (uint r = 0; r < ROWS; r++) {
            for (uint j = 0; j < AT_ONCE; j++) {
                real product = R(0);
                for (uint w = 0; w < WIDE; w++)
                    product += dot(queries_of[r * WIDE + w], keys_of[j * WIDE + w]);
                scores.of[r * AT_ONCE + j] = product;
            }
        }
        scores = join_lanes(0, scores, LANES);
        for (uint r = 0; r < ROWS; r++)
            weigh(r, first_row + min(r, rows - 1), first + team, end, key_head, scores, values);
    }
    for (uint r = 0; r < ROWS; r++)
        if (r < rows) store_row(r, first_row + r, key_head);
}
