// MATMUL of up to ROWS rows by weights in blocks. Teams of 32 lanes share columns along k; a lane
// has a unit of 32 numbers of each row in registers and goes with it through columns. A unit is
// four steps of eight: "low" weights and "high" ones, which differ in the bits of the same bytes.
// Sums are of integers times the rows', so that factors and minima count once a unit. Numbers
// of rows below 2^-114 may count as 0.
#extension GL_KHR_shader_subgroup_vote : require
#define REAL_F32
#define FLOATS_ONLY
#define WITH_QUANTISED
#include "types.glsl"
#include "host/matvec_blocks.h"
#include "joins.glsl"
#include "lanes.glsl"
#include "blocks.glsl"

const uint LANES = 32, TEAMS = 8, GROUP = 256, UNIT = 32, RUN = 1024;
layout(local_size_x = 256) in;
const uint PIECE = PARTS * RUN, COLUMN_TEAMS = TEAMS / PARTS;

// A piece of a row: its runs by step, low or high, and lane; neighbouring steps in different banks.
const uint PITCH = 33, FOURS_OF_RUN = 8 * PITCH;
shared vec4 row_fours[ROW_FOURS];
shared float table[16];
// Sums of a team's columns, by subgroups of at least 8; stored when there is no more room.
const uint SLOTS = 4, RESULTS_OF_TEAM = 32, COLUMNS_KEPT = RESULTS_OF_TEAM / ROWS;
shared float results[TEAMS * RESULTS_OF_TEAM * SLOTS];

// --- units of rows

// Where four neighbours of a row, number `four` of 256, are wanted: the unit, its step, and whether
// they meet its high weights.
void place_of_four(uint four, out uint unit, out uint step, out uint high) {
    step = four & 3u;
    if (B_DTYPE == Q6_K) {
        unit = (four >> 5) * 4u + (four >> 2 & 3u);
        high = four >> 4 & 1u;
    } else if (SPLIT) {
        unit = (four >> 4) * 2u + (four >> 2 & 1u);
        high = four >> 3 & 1u;
    } else {
        unit = four >> 3;
        high = four >> 2 & 1u;
    }
}

struct Unit {
    vec4 low[4], high[4];
    float low_sum, high_sum; // where there are MINIMA
};

vec4 row_four(int64_t row_base, uint at) {
    if (a_fours != 0)
        return load4(element_address(a_address, row_base + int64_t(at), A_DTYPE), A_DTYPE);
    vec4 x;
    for (int j = 0; j < 4; j++)
        x[j] = load(a_address, row_base + int64_t(at + j) * a_column, A_DTYPE);
    return x;
}

uint place_in_piece(uint i) {
    uint unit, step, high;
    place_of_four(i & 63u, unit, step, high);
    return i / 256 * FOURS_OF_RUN + (2 * step + high) * PITCH + (i / 64 & 3u) * 8 + unit;
}

// PIECE numbers of a row from `first` on.
void fetch_row(int64_t row_base, uint first) {
    const uint COUNT = (PIECE / 4 + GROUP - 1) / GROUP;
    uint thread = thread_number();
    if (A_DTYPE == FLOAT32 && a_fours != 0) { // all loads before the first is waited for
        vec4 x[4];
        [[unroll]] for (uint i = 0; i < COUNT; i++) {
            uint at = first + 4 * (thread + i * GROUP);
            x[i] = uintBitsToFloat(
                Word4(a_address + uint64_t((row_base + int64_t(min(at, k - 4))) * 4L)).v);
        }
        [[unroll]] for (uint i = 0; i < COUNT; i++) {
            uint number = thread + i * GROUP;
            if (number < PIECE / 4)
                row_fours[place_in_piece(number)] = first + 4 * number < k ? x[i] : vec4(0.0);
        }
        return;
    }
    for (uint i = thread; i < PIECE / 4; i += GROUP) {
        uint at = first + 4 * i;
        row_fours[place_in_piece(i)] = at < k ? row_four(row_base, at) : vec4(0.0);
    }
}

float sum_of_fours(vec4 fours[4]) {
    return dot((fours[0] + fours[1]) + (fours[2] + fours[3]), vec4(1.0));
}

Unit unit_at(uint place) {
    Unit x;
    x.low = vec4[](row_fours[place], row_fours[place + 2 * PITCH], row_fours[place + 4 * PITCH],
                   row_fours[place + 6 * PITCH]);
    place += PITCH;
    x.high = vec4[](row_fours[place], row_fours[place + 2 * PITCH], row_fours[place + 4 * PITCH],
                    row_fours[place + 6 * PITCH]);
    x.low_sum = x.high_sum = 0.0;
    if (MINIMA) {
        x.low_sum = sum_of_fours(x.low);
        x.high_sum = sum_of_fours(x.high);
    }
    vec4 low = 1.0 / sizes_of(1.0), high = 1.0 / sizes_of(HIGH_SIZE);
    x.low = vec4[](x.low[0] * low, x.low[1] * low, x.low[2] * low, x.low[3] * low);
    x.high = vec4[](x.high[0] * high, x.high[1] * high, x.high[2] * high, x.high[3] * high);
    return x;
}

// --- products

const float MAGIC = 8388608.0; // 2^23: integers are its fraction, which needs no conversion

// Its bits, by way of memory: compilers that do not know them take a mask and them into one
// instruction.
shared uint magic_passed;
uint magic;

// The bits of four bytes as numbers, the sizes' times as large.
vec4 of_bytes(uint word, uint bits, vec4 sizes) {
    uint upper = word >> 16;
    uvec4 numbers = uvec4(word & bits, word & bits << 8, upper & bits, upper & bits << 8) | magic;
    return uintBitsToFloat(numbers) - (MAGIC + ZERO * sizes);
}

vec4 of_table(uint word) {
    return vec4(table[word & 15u], table[word >> 8 & 15u], table[word >> 16 & 15u],
                table[word >> 24 & 15u]);
}

// Eight weights with eight numbers of a row: the low ones' sum and the high ones'.
vec2 add_step(uint low, uint high, vec4 x, vec4 y, vec2 sums) {
    vec4 v = TABLE ? of_table(low) : of_bytes(low, LOW_BITS, sizes_of(1.0));
    vec4 w = TABLE ? of_table(high >> 4) : of_bytes(high, HIGH_BITS, sizes_of(HIGH_SIZE));
    sums.x = v.x * x.x + (v.y * x.y + (v.z * x.z + (v.w * x.w + sums.x)));
    sums.y = w.x * y.x + (w.y * y.y + (w.z * y.z + (w.w * y.w + sums.y)));
    return sums;
}

float dot_unit(Weights weights, Unit x) {
    vec2 sums = add_step(weights.low.x, weights.high.x, x.low[0], x.high[0], vec2(0.0));
    sums = add_step(weights.low.y, weights.high.y, x.low[1], x.high[1], sums);
    sums = add_step(weights.low.z, weights.high.z, x.low[2], x.high[2], sums);
    sums = add_step(weights.low.w, weights.high.w, x.low[3], x.high[3], sums);
    float sum = SPLIT ? weights.factors.x * sums.x + weights.factors.y * sums.y
                      : weights.factors.x * (sums.x + sums.y);
    if (MINIMA) sum += weights.minima.x * x.low_sum + weights.minima.y * x.high_sum;
    return sum;
}

// A unit's products as the numbers are: `at` is that of its block in the row.
float dot_slowly(uint64_t block, uint unit, int64_t row_base, uint at) {
    float sum = 0.0;
    for (uint i = 0; i < (SMALL ? 32 : 256); i++) {
        uint its_unit, step, high;
        place_of_four(i / 4, its_unit, step, high);
        if (its_unit != unit) continue;
        sum += load_weight(block, int64_t(i), B_DTYPE) *
               load(a_address, row_base + int64_t(at + i) * a_column, A_DTYPE);
    }
    return sum;
}

// --- the work

uint lane, part;       // of the team that shares columns
uint64_t column_block; // of the first column: this lane's block
uint64_t column_bytes; // from a column to the next
uint last_column;      // that there is, counted from the first
bool inside;           // this lane's unit is one of the row

uint unit_number() {
    return SMALL ? 0 : lane % 8;
}

uint64_t block_of(uint column) {
    return column_block + uint64_t(min(column, last_column)) * column_bytes;
}

// Of this team.
uint first_column() {
    return thread_number() / LANES / PARTS * EACH;
}

// What lanes have of up to four columns.
struct Columns {
    Raw a, b, c, d;
};

void fetch_columns(uint column, out Columns columns) {
    uint unit = unit_number();
    columns.a = fetch(block_of(column), unit);
    if (EACH >= 2) columns.b = fetch(block_of(column + 1), unit);
    if (EACH >= 4) {
        columns.c = fetch(block_of(column + 2), unit);
        columns.d = fetch(block_of(column + 3), unit);
    }
}

// Adds up in subgroups: of EACH numbers a lane keeps one, whose number comes back.
uint add_lanes(inout vec4 sums, uint lanes) {
    uint mine = 0, apart = lanes / 2, own = gl_SubgroupInvocationID;
    if (EACH == 4) {
        bool upper = (own & apart) != 0;
        vec2 given = upper ? sums.xy : sums.zw;
        sums.xy = (upper ? sums.zw : sums.xy) +
                  vec2(subgroupShuffleXor(given.x, apart), subgroupShuffleXor(given.y, apart));
        mine = upper ? 2 : 0;
        apart /= 2;
    }
    if (EACH >= 2) {
        bool upper = (own & apart) != 0;
        float given = subgroupShuffleXor(upper ? sums.x : sums.y, apart);
        sums.x = (upper ? sums.y : sums.x) + given;
        mine += upper ? 1 : 0;
        apart /= 2;
    }
    for (; apart > 0; apart /= 2) sums.x += subgroupShuffleXor(sums.x, apart);
    return mine;
}

// Adds sums of a row's next columns, from the team's number `kept` on, to the results.
void keep_results(vec4 sums, uint row, uint kept) {
    uint lanes = min(gl_SubgroupSize, LANES);
    uint column = add_lanes(sums, lanes), own = gl_SubgroupInvocationID % lanes;
    if (own % (lanes / EACH) > 0) return;
    uint team = thread_number() / LANES;
    results[(team * RESULTS_OF_TEAM + row * COLUMNS_KEPT + kept + column) * SLOTS + lane / lanes] +=
        sums.x;
}

int64_t row_base_of(uint row, int64_t a_base) {
    return a_base + int64_t(min(gl_WorkGroupID.x % across * ROWS + row, m - 1)) * a_row;
}

// This lane's unit of a row; of zeros where minima meet what is not finite, for which `apart` gets
// the row's bit.
Unit take_unit(uint row, int64_t a_base, uint first, inout uint apart) {
    barrier();
    fetch_row(row_base_of(row, a_base), first);
    barrier();
    Unit x = unit_at(part * FOURS_OF_RUN + lane);
    if (MINIMA && !real_isfinite(x.low_sum + x.high_sum)) {
        if (inside) apart |= 1u << row;
        x.low = x.high = vec4[](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
        x.low_sum = x.high_sum = 0.0;
    }
    return x;
}

// Units of the rows in `which`, a bit each, with a visit's columns, number by number.
void visit_slowly(uint which, uint first, uint column, int64_t a_base, inout vec4 sums[2]) {
    uint at = first + part * RUN + (SMALL ? lane * UNIT : lane / 8 * 256);
    for (uint i = 0; i < ROWS * EACH; i++) {
        uint row = i / EACH, c = i % EACH;
        if ((which >> row & 1u) == 0) continue;
        float sum =
            dot_slowly(block_of(column + c), unit_number(), row_base_of(row, a_base), at);
        bvec4 there = equal(uvec4(c), uvec4(0, 1, 2, 3));
        if (row == 0) sums[0] = mix(sums[0], vec4(sum), there);
        else sums[1] = mix(sums[1], vec4(sum), there);
    }
}

// The results of this workgroup's columns that were kept, a thread each, which begin at
// `first_column` and are `of_team` of each team.
void store_results(uint first_column, uint of_team, int64_t out_base) {
    uint of_row = COLUMN_TEAMS * of_team, slots = LANES / min(gl_SubgroupSize, LANES);
    barrier();
    for (uint i = thread_number(); i < ROWS * of_row; i += GROUP) {
        uint row = i / of_row, column = i % of_row;
        uint team = column / EACH % COLUMN_TEAMS;
        uint kept = column / (EACH * COLUMN_TEAMS) * EACH + column % EACH;
        float sum = 0.0;
        for (uint t = team * PARTS; t < (team + 1) * PARTS; t++) {
            uint at = (t * RESULTS_OF_TEAM + row * COLUMNS_KEPT + kept) * SLOTS;
            for (uint slot = 0; slot < slots; slot++) {
                sum += results[at + slot];
                results[at + slot] = 0.0;
            }
        }
        uint to_row = gl_WorkGroupID.x % across * ROWS + row;
        if (to_row >= m || first_column + column >= n) continue;
        int64_t at = out_base + int64_t(to_row) * int64_t(n) + int64_t(first_column + column);
        store_result(at, sum, adjacent_at(at));
    }
    barrier();
}

// One column with the rows, whose units are x0 and x1.
#define ADD_COLUMN(place, raw)                                                                     \
    {                                                                                              \
        Weights weights = weights_of(raw, unit);                                                   \
        sums[0].place = dot_unit(weights, x0);                                                     \
        if (ROWS >= 2) sums[1].place = dot_unit(weights, x1);                                      \
    }

uint first_of_group() {
    return gl_WorkGroupID.x / across * COLUMN_TEAMS * EACH * visits;
}

// PIECE numbers of the rows from `first` on with all columns of this team. Where that is not all of
// k, their results have room at once.
void visit_columns(uint first, int64_t a_base, int64_t out_base) {
    uint column = first_column(), apart = 0, unit = unit_number(), kept = 0;
    uint to_column = first_of_group();
    Columns next;
    fetch_columns(column, next);
    Unit x0 = take_unit(0, a_base, first, apart), x1;
    if (ROWS >= 2) x1 = take_unit(1, a_base, first, apart);
    magic = magic_passed;
    bool slow = MINIMA && subgroupAny(apart != 0);
    for (uint left = visits; left > 0; left--) {
        Columns now = next;
        if (AHEAD == COLUMNS_AHEAD && left > 1) fetch_columns(column + COLUMN_TEAMS * EACH, next);
        vec4 sums[2] = vec4[](vec4(0.0), vec4(0.0));
        ADD_COLUMN(x, now.a)
        if (EACH >= 2) ADD_COLUMN(y, now.b)
        if (EACH >= 4) ADD_COLUMN(z, now.c)
        if (EACH >= 4) ADD_COLUMN(w, now.d)
        if (slow) visit_slowly(apart, first, column, a_base, sums);
        keep_results(inside ? sums[0] : vec4(0.0), 0, kept);
        if (ROWS >= 2) keep_results(inside ? sums[1] : vec4(0.0), 1, kept);
        column += COLUMN_TEAMS * EACH;
        kept += EACH;
        if (AHEAD == COLUMNS_BEHIND && left > 1) fetch_columns(column, next);
        if (first + PIECE >= k && (left == 1 || kept == COLUMNS_KEPT)) {
            store_results(to_column, kept, out_base);
            to_column += kept * COLUMN_TEAMS;
            kept = 0;
        }
    }
}

void main() {
    uint thread = thread_number();
    lane = thread % LANES;
    part = thread / LANES % PARTS;
    int64_t a_base, b_base, out_base;
    batch_offsets(gl_WorkGroupID.z, a_base, b_base, out_base);
    if (TABLE && thread < 16) table[thread] = value_of_iq4(thread);
    if (thread == 0) magic_passed = floatBitsToUint(MAGIC);
    for (uint i = thread; i < TEAMS * RESULTS_OF_TEAM * SLOTS; i += GROUP) results[i] = 0.0;
    last_column = n - 1 - first_of_group();
    column_bytes = uint64_t(weight_offset(b_column, B_DTYPE));
    uint unit = part * LANES + lane;
    uint unit_bytes = SMALL ? unit * (SUPER_BYTES / 8) : unit / 8 * SUPER_BYTES;
    uint64_t first_block = b_address + uint64_t(weight_offset(b_base, B_DTYPE)) +
                           uint64_t(first_of_group()) * column_bytes;
    for (uint first = 0; first < k; first += PIECE) {
        inside = first + unit * UNIT < k; // others read what is there, and make nothing of it
        uint64_t bytes = uint64_t(first / 256) * uint64_t(SUPER_BYTES) + uint64_t(unit_bytes);
        column_block = first_block + (inside ? bytes : 0UL);
        visit_columns(first, a_base, out_base);
    }
}
