// ATTENTION of few rows, as when one token follows another: a workgroup has ROWS rows of one key
// head and a part of the keys. LANES threads share a key, each with fours of its numbers; such a
// team sees every TEAMS-th key and keeps weights of its own, those of an online softmax, until all
// teams join. Reading is what takes long: a thread asks for AT_ONCE keys before it computes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "math.glsl"

const uint GROUP = 256, AT_ONCE_MAX = 8, ROWS_MAX = 4, WIDE_MAX = 2;
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint DTYPES = 0; // q, k, v, out, mask (NONE: none); then FOURS
layout(constant_id = 1) const bool CAUSAL = false;
layout(constant_id = 2) const uint WIDTH = 128; // of a head, in fours; that of values in bits 16..
layout(constant_id = 3) const uint LANES = 32;
layout(constant_id = 4) const uint WIDE = 1; // fours of a thread
layout(constant_id = 5) const uint ROWS = 1;
layout(constant_id = 6) const bool PARTED = false;
layout(constant_id = 7) const uint SHARED_NUMBERS = 2304; // see below
const uint NONE = 15;
// q, k and v can be read four numbers at a time.
const uint Q_DTYPE = DTYPES & 15u, K_DTYPE = DTYPES >> 4 & 15u, V_DTYPE = DTYPES >> 8 & 15u,
           OUT_DTYPE = DTYPES >> 12 & 15u, MASK_DTYPE = DTYPES >> 16 & 15u;
const bool Q_FOURS = (DTYPES >> 20 & 1u) != 0, K_FOURS = (DTYPES >> 21 & 1u) != 0,
           V_FOURS = (DTYPES >> 22 & 1u) != 0;
const uint KEY_FOURS = WIDTH & 0xFFFFu, VALUE_FOURS = WIDTH >> 16;
const uint TEAMS = GROUP / LANES, AT_ONCE = AT_ONCE_MAX / ROWS, PITCH = LANES + 1;

// Strides in elements: q and out [query, head, number], k and v [key, head, number], mask [head,
// query, key]; then those of the leading dims.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Shape {
    int64_t q[3], k[3], v[3], to[3], mask[3];
    int64_t batch_strides[5][8]; // q, k, v, out, mask
    uint64_t k_address, v_address, mask_address;
    uint batch_dims[8];
    uint batch_rank, queries, keys, shared_heads, key_heads, value_width, row_blocks;
    uint part_keys, parts; // keys of a part
};
layout(push_constant, scalar) uniform Push {
    Shape shape;
    uint64_t q_address, out_address; // out: of the parts with PARTED
    real scale;
};

// Products of keys, one per lane; later the teams' sums, highest scores, totals and factors.
shared real numbers[SHARED_NUMBERS];

#ifdef REAL_F64
const uint PARTS_DTYPE = FLOAT64;
#else
const uint PARTS_DTYPE = FLOAT32;
#endif

real4 queries_of[ROWS_MAX * WIDE_MAX], sums[ROWS_MAX * WIDE_MAX];
real highest[ROWS_MAX], totals[ROWS_MAX];

// The query head of a row.
uint head_of(uint key_head, uint index) {
    return key_head * shape.shared_heads + index % shape.shared_heads;
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
    for (int d = int(shape.batch_rank) - 1; d >= 0; d--) {
        offset += int64_t(rest % shape.batch_dims[d]) * shape.batch_strides[view][d];
        rest /= shape.batch_dims[d];
    }
    return offset;
}

real4 four_at(uint64_t address, int64_t at, int64_t step, uint dtype, bool fours) {
    if (fours) return load4(element_address(address, at, dtype), dtype);
    return real4(load(address, at, dtype), load(address, at + step, dtype),
                 load(address, at + 2L * step, dtype), load(address, at + 3L * step, dtype));
}

void fetch_queries(uint first_row, uint rows, uint key_head) {
    uint lane = gl_LocalInvocationID.x % LANES;
    int64_t base = batch_offset(0);
    for (uint r = 0; r < ROWS; r++) {
        uint index = first_row + min(r, rows - 1);
        int64_t from = base + int64_t(index / shape.shared_heads) * shape.q[0] +
                       int64_t(head_of(key_head, index)) * shape.q[1];
        for (uint w = 0; w < WIDE; w++) {
            uint four = lane + w * LANES, i = r * WIDE + w;
            queries_of[i] = sums[i] = real4(0.0);
            if (four < KEY_FOURS)
                queries_of[i] = scale * four_at(q_address, from + 4L * int64_t(four) * shape.q[2],
                                                shape.q[2], Q_DTYPE, Q_FOURS);
        }
        highest[r] = -REAL_INFINITY;
        totals[r] = R(0);
    }
}

bool is_seen(uint index, uint key, uint key_head) {
    uint query = index / shape.shared_heads;
    if (CAUSAL && int(key) >= int(query) + 1 + int(shape.keys) - int(shape.queries)) return false;
    if (MASK_DTYPE == NONE) return true;
    int64_t at = batch_offset(4) + int64_t(head_of(key_head, index)) * shape.mask[0] +
                 int64_t(query) * shape.mask[1] + int64_t(key) * shape.mask[2];
    return load(shape.mask_address, at, MASK_DTYPE) != R(0);
}

// The keys first, first + TEAMS, ... of this team, those below `end`, with row `r`.
void weigh(uint r, uint index, uint first, uint end, uint key_head,
           real4 values[AT_ONCE_MAX * WIDE_MAX]) {
    uint team = gl_LocalInvocationID.x / LANES;
    real scores[AT_ONCE_MAX];
    real top = highest[r];
    for (uint j = 0; j < AT_ONCE; j++) {
        uint key = first + j * TEAMS, at = ((r * AT_ONCE + j) * TEAMS + team) * PITCH;
        real score = R(0);
        for (uint i = 0; i < LANES; i++) score += numbers[at + i];
        scores[j] = key < end && is_seen(index, key, key_head) ? score : -REAL_INFINITY;
        top = larger(top, scores[j]);
    }
    real base = base_of(top), rescale = real_exp(highest[r] - base);
    highest[r] = top;
    totals[r] *= rescale;
    for (uint w = 0; w < WIDE; w++) sums[r * WIDE + w] *= rescale;
    for (uint j = 0; j < AT_ONCE; j++) {
        real weight = real_exp(scores[j] - base);
        totals[r] += weight;
        for (uint w = 0; w < WIDE; w++) sums[r * WIDE + w] += weight * values[j * WIDE + w];
    }
}

// Factors of the teams' sums of a row, which lie in `numbers`; the row's highest score and total.
const uint TOPS = TEAMS * LANES * WIDE * 4, TOTALS = TOPS + TEAMS, FACTORS = TOTALS + TEAMS;
void join_teams(uint r, out real top, out real total) {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES, team = thread / LANES;
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
    if (thread < TEAMS) numbers[FACTORS + thread] = real_exp(numbers[TOPS + thread] - base_of(top));
    barrier();
    total = R(0);
    for (uint i = 0; i < TEAMS; i++) total += numbers[TOTALS + i] * numbers[FACTORS + i];
}

void store_row(uint r, uint index, uint key_head) {
    real top, total;
    join_teams(r, top, total);
    int64_t to = batch_offset(3) + int64_t(index / shape.shared_heads) * shape.to[0] +
                 int64_t(head_of(key_head, index)) * shape.to[1];
    uint64_t row = uint64_t(gl_WorkGroupID.y * shape.key_heads + key_head) *
                       uint64_t(shape.queries * shape.shared_heads) + uint64_t(index);
    int64_t part = int64_t((row * uint64_t(shape.parts) + uint64_t(gl_WorkGroupID.z)) *
                           uint64_t(shape.value_width + 2));
    for (uint column = gl_LocalInvocationID.x; column < shape.value_width; column += GROUP) {
        real sum = R(0);
        for (uint i = 0; i < TEAMS; i++)
            sum += numbers[i * WIDE * LANES * 4 + column] * numbers[FACTORS + i];
        if (PARTED)
            store(out_address, part + 2L + int64_t(column), PARTS_DTYPE, sum);
        else
            store(out_address, to + int64_t(column) * shape.to[2], OUT_DTYPE,
                  total == R(0) ? R(0) : sum / total);
    }
    if (!PARTED || gl_LocalInvocationID.x > 0) return;
    store(out_address, part, PARTS_DTYPE, top);
    store(out_address, part + 1L, PARTS_DTYPE, total);
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES, team = thread / LANES;
    uint key_head = gl_WorkGroupID.x / shape.row_blocks;
    uint first_row = gl_WorkGroupID.x % shape.row_blocks * ROWS;
    uint rows = min(ROWS, shape.queries * shape.shared_heads - first_row);
    int64_t k_base = batch_offset(1) + int64_t(key_head) * shape.k[1],
            v_base = batch_offset(2) + int64_t(key_head) * shape.v[1];
    uint begin = 0, end = shape.keys;
    if (CAUSAL) { // the last row sees most
        uint last_query = (first_row + rows - 1) / shape.shared_heads;
        int seen = int(last_query) + 1 + int(shape.keys) - int(shape.queries);
        end = uint(clamp(seen, 0, int(shape.keys)));
    }
    if (PARTED) {
        begin = gl_WorkGroupID.z * shape.part_keys;
        end = min(end, begin + shape.part_keys);
    }
    fetch_queries(first_row, rows, key_head);
    for (uint first = begin; first < end; first += TEAMS * AT_ONCE) {
        real4 keys[AT_ONCE_MAX * WIDE_MAX], values[AT_ONCE_MAX * WIDE_MAX];
        for (uint j = 0; j < AT_ONCE; j++) {
            uint key = first + j * TEAMS + team;
            int64_t k_at = k_base + int64_t(key) * shape.k[0];
            int64_t v_at = v_base + int64_t(key) * shape.v[0];
            for (uint w = 0; w < WIDE; w++) {
                uint four = lane + w * LANES, i = j * WIDE + w;
                keys[i] = values[i] = real4(0.0);
                if (key < end && four < KEY_FOURS)
                    keys[i] = four_at(shape.k_address, k_at + 4L * int64_t(four) * shape.k[2],
                                      shape.k[2], K_DTYPE, K_FOURS);
                if (key < end && four < VALUE_FOURS)
                    values[i] = four_at(shape.v_address, v_at + 4L * int64_t(four) * shape.v[2],
                                        shape.v[2], V_DTYPE, V_FOURS);
            }
        }
        barrier();
        for (uint r = 0; r < ROWS; r++) {
            for (uint j = 0; j < AT_ONCE; j++) {
                real product = R(0);
                for (uint w = 0; w < WIDE; w++)
                    product += dot(queries_of[r * WIDE + w], keys[j * WIDE + w]);
                numbers[((r * AT_ONCE + j) * TEAMS + team) * PITCH + lane] = product;
            }
        }
        barrier();
        for (uint r = 0; r < ROWS; r++)
            weigh(r, first_row + min(r, rows - 1), first + team, end, key_head, values);
    }
    for (uint r = 0; r < ROWS; r++)
        if (r < rows) store_row(r, first_row + r, key_head);
}
