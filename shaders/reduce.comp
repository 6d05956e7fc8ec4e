// REDUCE: folds the rows of a view. `lanes` threads share a row; where neighbouring rows are
// neighbours in memory (COLUMNS), neighbouring threads have such rows, WIDE of them each.
// STAGE 0 makes whole results; where they are few and long, stage 1 folds parts of rows and stage 2
// joins them. Every order of additions depends on shapes alone.
#include "types.glsl"
#include "host/reduce.h"
#include "rows.glsl"
#include "lanes.glsl"

const uint GROUP = 256, EACH_MAX = 16;
layout(local_size_x = 256) in;

const uint WIDE = COLUMNS ? WIDTH : 1;        // results of a thread
#define VECTOR (!COLUMNS && WIDTH == 4)
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Sums { Sum v; };
const uint64_t SUM_BYTES = 8UL; // both a pair of floats and one wide number

shared Sum partial_sums[GROUP * WIDE];

// The words of catalog/reductions.def for each number.
#define C(v) R(v)
real squared(real x) {
    return x * x;
}
#ifndef REAL_I64
real distance(real x, Sum parameter) {
#ifdef REAL_F32
    precise float result = (x - parameter.x) - parameter.y;
    return result;
#else
    return x - parameter;
#endif
}
#define exp_below(v, parameter) falling_exp((v) - start_of_sum(parameter))
#endif

const uint KIND_SUM = 0, KIND_POSITIVE = 1, KIND_PRODUCT = 2, KIND_LARGEST = 3, KIND_SMALLEST = 4;
uint kind_of(uint fold) {
#define FOLD(code, kind, addend) if (fold == FOLD_##code) return KIND_##kind;
#include "catalog/reductions.def"
    return KIND_SUM;
}
bool is_sum(uint fold) { return kind_of(fold) <= KIND_POSITIVE; }
bool is_extreme(uint fold) { return kind_of(fold) >= KIND_LARGEST; }

real addend_of(uint fold, real x, Sum p) {
#ifdef REAL_I64
#define FOLDF(code, kind, addend)
#endif
#define FOLD(code, kind, addend) if (fold == FOLD_##code) return addend;
#include "catalog/reductions.def"
    return x;
}

Sum identity(uint fold) {
    if (kind_of(fold) == KIND_PRODUCT) return sum_of(R(1));
#ifdef REAL_I64
    if (kind_of(fold) == KIND_LARGEST) return -INT64_HIGHEST - 1L;
    if (kind_of(fold) == KIND_SMALLEST) return INT64_HIGHEST;
#else
    if (kind_of(fold) == KIND_LARGEST) return sum_of(-REAL_INFINITY);
    if (kind_of(fold) == KIND_SMALLEST) return sum_of(REAL_INFINITY);
#endif
    return sum_of(R(0));
}

// A NaN stays, and comes before what is greater or less.
real extreme(uint fold, real a, real b) {
    bool better = kind_of(fold) == KIND_LARGEST ? b > a : b < a;
    return !real_isnan(a) && (better || real_isnan(b)) ? b : a;
}

// Of four numbers, in few instructions.
real extreme_of(uint fold, real4 x) {
#ifdef REAL_I64
    return extreme(fold, extreme(fold, x.x, x.y), extreme(fold, x.z, x.w));
#else
    real value = kind_of(fold) == KIND_LARGEST ? max(max(x.x, x.y), max(x.z, x.w))
                                               : min(min(x.x, x.y), min(x.z, x.w));
    uint nans = uint(real_isnan(x.x)) | uint(real_isnan(x.y)) | uint(real_isnan(x.z)) |
                uint(real_isnan(x.w));
    return nans != 0 ? REAL_NAN : value;
#endif
}

Sum combine(uint fold, Sum a, Sum b) {
    if (kind_of(fold) == KIND_PRODUCT) return sum_multiply(a, b);
    if (is_sum(fold)) return sum_add(a, b);
    return sum_of(extreme(fold, start_of_sum(a), start_of_sum(b)));
}

// Four numbers of a row are made one before they meet the others: extremes, sums where all are
// positive, so that rounding them together loses no more than each has lost, and the mean that
// deviations are taken from, which changes them by its square.
bool folds_items(uint fold) {
    bool to_mean = FIRST != FOLD_NONE && is_sum(FIRST);
    return VECTOR && (is_extreme(fold) || kind_of(fold) == KIND_POSITIVE || to_mean);
}

Sum4 fold_item(uint fold, Sum4 state, real4 x, Sum4 parameter) {
    real4 more;
    for (uint i = 0; i < WIDTH; i++)
        SET_LANE(more, i, addend_of(fold, LANE(x, i), sum4_at(parameter, i)));
    if (is_extreme(fold) && folds_items(fold)) {
        sum4_set(state, 0, combine(fold, sum4_at(state, 0), sum_of(extreme_of(fold, more))));
        return state;
    }
    if (!is_sum(fold)) {
        for (uint i = 0; i < WIDTH; i++)
            sum4_set(state, i, combine(fold, sum4_at(state, i), sum_of(LANE(more, i))));
        return state;
    }
    if (WIDTH == 4 && !folds_items(fold)) return sum4_put(state, more);
    sum4_set(state, 0, sum_put(sum4_at(state, 0), total_of(more, WIDTH)));
    return state;
}

// Where this thread works: `lane` of the threads that share a row, whose result is this one, or the
// first of WIDE.
uint lane;
uint64_t result;
int64_t base;

real4 load_of(uint item) {
    if (!COLUMNS) return load_item(in_address, rows, 1, base, item, IN_DTYPE, VECTOR);
    int64_t offset = base + row_offset(rows, 1, uint64_t(item));
    if (WIDE == 4) return load4(element_address(in_address, offset, IN_DTYPE), IN_DTYPE);
    return real4(load(in_address, offset, IN_DTYPE), 0, 0, 0);
}

// The items that were asked for last, from `held_first` on: short rows are read once.
real4 held[EACH_MAX];
uint held_first = 0xFFFFFFFFu;

void hold(uint first, uint end) {
    if (first == held_first) return;
    for (uint i = 0; i < EACH; i++) held[i] = load_of(min(first + i * lanes, end - 1));
    held_first = first;
}

Sum4 fold_items(uint fold, uint begin, uint end, Sum4 parameter) {
    Sum4 state = sum4_of(identity(fold));
    for (uint first = begin + lane; first < end && first >= begin; first += lanes * EACH) {
        hold(first, end);
        for (uint i = 0; i < EACH; i++)
            if (first + i * lanes < end) state = fold_item(fold, state, held[i], parameter);
    }
    return state;
}

JOIN_LANES(join_lanes, Sum, partial_sums, combine, sum_beside)

// Lanes of columns are far from each other.
Sum4 join_columns(uint fold, Sum4 mine) {
    uint thread = thread_number(), apart = GROUP / lanes;
    barrier();
    for (uint i = 0; i < WIDE; i++) partial_sums[thread + i * GROUP] = sum4_at(mine, i);
    for (uint half_lanes = lanes / 2; half_lanes > 0; half_lanes /= 2) {
        barrier();
        if (lane >= half_lanes) continue;
        for (uint i = 0; i < WIDE; i++) {
            uint at = thread + i * GROUP;
            partial_sums[at] =
                combine(fold, partial_sums[at], partial_sums[at + half_lanes * apart]);
        }
    }
    barrier();
    for (uint i = 0; i < WIDE; i++)
        sum4_set(mine, i, partial_sums[thread - lane * apart + i * GROUP]);
    return mine;
}

// What the lanes of a row have.
Sum4 combine_lanes(uint fold, Sum4 mine) {
    if (COLUMNS) return lanes == 1 ? mine : join_columns(fold, mine);
    Sum all = sum4_at(mine, 0);
    if (!folds_items(fold))
        for (uint i = 1; i < WIDTH; i++) all = combine(fold, all, sum4_at(mine, i));
    return sum4_of(join_lanes(fold, all, lanes));
}

Sum4 fold_range(uint fold, uint64_t begin, uint64_t end, Sum4 parameter) {
    uint items = VECTOR ? 4 : 1;
    return combine_lanes(fold, fold_items(fold, uint(begin) / items, uint(end) / items, parameter));
}

Sum divided(Sum a, real n) {
#ifdef REAL_F32
    precise float whole = a.x / n;
    float low;
    precise float back = two_product(whole, n, low);
    precise float rest = ((a.x - back) - low + a.y) / n;
    return real_isfinite(whole) && real_isfinite(rest) ? vec2(whole, rest) : vec2(whole, 0.0);
#elif defined(REAL_F64)
    return a / n;
#else
    return a;
#endif
}

// What the second fold is told by the first.
Sum parameter_of(Sum state) {
    return is_sum(FIRST) ? divided(state, real(count)) : state;
}

// The words of catalog/reductions.def for results.
Sum share(Sum s, real n) {
    return divided(s, max(n, R(0)));
}
#define some(s) sum_of(real_of_sum(s) > R(0) ? R(1) : R(0))
#define every(s, n) sum_of(int64_of_sum(s) == int64_t(count) ? R(1) : R(0)) // n may be rounded
Sum plus_log(Sum parameter, Sum s) {
#ifdef REAL_I64
    return s;
#else
    real highest = real_of_sum(parameter);
    return sum_of(real_isinf(highest) ? highest : highest + real_log(real_of_sum(s)));
#endif
}

Sum finished(Sum s, Sum p) {
    real n = real(count), c = real(correction);
    if (FINISH == FINISH_PARAMETER) return parameter_of(s);
#define REDUCTION(code, first, second, integers, finish, derivative)                               \
    if (FINISH == REDUCE_##code) return finish;
#include "catalog/reductions.def"
    return s;
}

void store_result(uint64_t which, Sum value) {
    int64_t offset = kept_offset(rows, 0, which);
    if (OUT_DTYPE == INT64)
        Long(element_address(out_address, offset, INT64)).v = uint64_t(int64_of_sum(value));
    else
        store(out_address, offset, OUT_DTYPE, real_of_sum(value));
}

Sum read_sum(uint64_t array, uint64_t index) {
    return Sums(array + index * SUM_BYTES).v;
}

uint64_t partial_address(uint64_t which, uint64_t part_number) {
    uint64_t index = COLUMNS ? part_number * results + which : which * parts + part_number;
    return partials + index * SUM_BYTES;
}

// What the second fold is told.
Sum4 find_parameter() {
    Sum4 parameter = sum4_of(sum_of(R(0)));
    if (STAGE == STAGE_WHOLE && FIRST != FOLD_NONE) {
        Sum4 first = fold_range(FIRST, 0UL, count, parameter);
        for (uint i = 0; i < WIDE; i++) sum4_set(parameter, i, parameter_of(sum4_at(first, i)));
    }
    if (STAGE == STAGE_PARTS && parameters != 0UL)
        for (uint i = 0; i < WIDE; i++)
            sum4_set(parameter, i, read_sum(parameters, result + uint64_t(i)));
    return COLUMNS ? parameter : sum4_of(sum4_at(parameter, 0));
}

void fold_results(uint64_t which, bool exists) {
    uint64_t begin = STAGE == STAGE_PARTS ? which * part : 0UL;
    uint64_t end = STAGE == STAGE_PARTS ? min(begin + part, count) : count;
    Sum4 parameter = find_parameter(), value = fold_range(SECOND, begin, end, parameter);
    if (!exists || lane > 0) return;
    for (uint i = 0; i < WIDE; i++) {
        if (STAGE == STAGE_PARTS)
            Sums(partial_address(result + uint64_t(i), which)).v = sum4_at(value, i);
        else
            store_result(result + uint64_t(i), finished(sum4_at(value, i), sum4_at(parameter, i)));
    }
}

// With FINISH_PARAMETER the results are numbers for the second fold.
void join_parts(bool exists) {
    Sum state = identity(SECOND);
    for (uint64_t i = uint64_t(lane); i < parts; i += uint64_t(lanes))
        state = combine(SECOND, state, Sums(partial_address(result, i)).v);
    state = sum4_at(combine_lanes(SECOND, sum4_of(state)), 0);
    if (!exists || lane > 0) return;
    Sum parameter = sum_of(R(0));
    if (FINISH != FINISH_PARAMETER && parameters != 0UL) parameter = read_sum(parameters, result);
    Sum value = finished(state, parameter);
    if (FINISH == FINISH_PARAMETER)
        Sums(parameters + result * SUM_BYTES).v = value;
    else
        store_result(result, value);
}

void main() {
    uint thread = thread_number(), per_group = GROUP / lanes;
    lane = COLUMNS ? thread / per_group : thread % lanes;
    uint group = uint(group_number()), units = uint(results) / WIDE;
    uint groups = (units + per_group - 1) / per_group; // of a part
    uint unit = group % groups * per_group + (COLUMNS ? thread % per_group : thread / lanes);
    bool exists = unit < units && (STAGE == STAGE_PARTS || group < groups); // the others help at barriers
    result = uint64_t(min(unit, units - 1)) * uint64_t(WIDE);
    base = kept_offset(rows, 1, result);
    uint which = group / groups;
    if (STAGE == STAGE_JOIN)
        join_parts(exists);
    else if (STAGE == STAGE_WHOLE || uint64_t(which) < parts)
        fold_results(uint64_t(which), exists);
}
