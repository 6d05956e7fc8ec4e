// REDUCE: folds the rows of a view. A row is one workgroup's, or with COLUMNS one thread's. STAGE 0
// makes whole results; where there are few and long ones, stage 1 folds parts of rows and stage 2
// joins them. Every order of additions depends on shapes alone.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"
#include "sums.glsl"

const uint GROUP = 256;
layout(local_size_x = 256) in;

layout(constant_id = 1) const uint FOLDS = 0;  // first (NONE), second, finish: four bits each
layout(constant_id = 2) const uint DTYPES = 0; // in, out
layout(constant_id = 3) const uint STAGE = 0;
layout(constant_id = 4) const bool COLUMNS = false;
const uint SUM = 0, SUM_ABS = 1, SUM_SQUARE = 2, COUNT_NONZERO = 3, SUM_EXP = 4, SUM_DEVIATION = 5,
           PROD = 6, MAX = 7, MIN = 8, NONE = 9;
const uint KEEP = 0, ANY = 1, ALL = 2, LOG_SUM = 3, MEAN = 4, VARIANCE = 5, PARAMETER = 6;
const uint FIRST = FOLDS & 15u, SECOND = FOLDS >> 4 & 15u, FINISH = FOLDS >> 8 & 15u;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Sums { Sum v; };
const uint64_t SUM_BYTES = 8UL; // both a pair of floats and one wide number
layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address;
    uint64_t partials;   // [results, parts]
    uint64_t parameters; // [results], of the second fold in stage 1
    uint64_t results, count, parts, part;
    real correction;
};

shared Sum partial_sums[GROUP];

Sum identity(uint fold) {
    if (fold == PROD) return sum_of(R(1));
#ifdef REAL_I64
    if (fold == MAX) return -INT64_HIGHEST - 1L;
    if (fold == MIN) return INT64_HIGHEST;
#else
    if (fold == MAX) return sum_of(-REAL_INFINITY);
    if (fold == MIN) return sum_of(REAL_INFINITY);
#endif
    return sum_of(R(0));
}

Sum combine(uint fold, Sum a, Sum b) {
    if (fold == PROD) return sum_multiply(a, b);
    if (fold < PROD) return sum_add(a, b);
    real x = real_of_sum(a), y = real_of_sum(b);
    if (real_isnan(x)) return a;
    if (real_isnan(y)) return b;
    return (fold == MAX ? x > y : x < y) ? a : b;
}

Sum folded(uint fold, real x, Sum parameter) {
    if (fold == SUM_ABS) return sum_of(x < R(0) ? -x : x);
    if (fold == SUM_SQUARE) return sum_multiply(sum_of(x), sum_of(x));
    if (fold == COUNT_NONZERO) return sum_of(x != R(0) ? R(1) : R(0));
#ifndef REAL_I64
    if (fold == SUM_EXP) return sum_of(real_exp(x - real_of_sum(parameter)));
    if (fold == SUM_DEVIATION) {
#ifdef REAL_F32
        precise real deviation = (x - parameter.x) - parameter.y;
#else
        real deviation = x - parameter;
#endif
        return sum_of(deviation * deviation);
    }
#endif
    return sum_of(x);
}

// Elements first, first + step, ... below end.
Sum fold_elements(uint fold, int64_t base, uint64_t first, uint64_t end, uint64_t step,
                  Sum parameter) {
    Sum state = identity(fold);
    for (uint64_t e = first; e < end; e += step) {
        real x = load(in_address, base + row_offset(rows, 1, e), IN_DTYPE);
        state = combine(fold, state, folded(fold, x, parameter));
    }
    return state;
}

Sum fold_vectors(uint fold, int64_t base, uint64_t begin, uint64_t end, Sum parameter) {
    Sum state = identity(fold);
    for (uint64_t e = begin + 4UL * uint64_t(gl_LocalInvocationID.x); e < end; e += 4UL * GROUP) {
        real4 x = load4(element_address(in_address, base + int64_t(e), IN_DTYPE), IN_DTYPE);
        state = combine(fold, state, folded(fold, x.x, parameter));
        state = combine(fold, state, folded(fold, x.y, parameter));
        state = combine(fold, state, folded(fold, x.z, parameter));
        state = combine(fold, state, folded(fold, x.w, parameter));
    }
    return state;
}

Sum combine_group(uint fold, Sum mine) {
    uint thread = gl_LocalInvocationID.x;
    barrier();
    partial_sums[thread] = mine;
    for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
        barrier();
        if (thread < apart)
            partial_sums[thread] = combine(fold, partial_sums[thread], partial_sums[thread + apart]);
    }
    barrier();
    return partial_sums[0];
}

Sum fold_range(uint fold, int64_t base, uint64_t begin, uint64_t end, Sum parameter) {
    if (COLUMNS) return fold_elements(fold, base, begin, end, 1UL, parameter);
    uint thread = gl_LocalInvocationID.x;
    Sum mine = is_vector(1) ? fold_vectors(fold, base, begin, end, parameter)
                            : fold_elements(fold, base, begin + thread, end, GROUP, parameter);
    return combine_group(fold, mine);
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
    return FIRST == SUM ? divided(state, real(count)) : state;
}

Sum finished(Sum state, Sum parameter) {
    real value = real_of_sum(state);
    if (FINISH == ANY) return sum_of(value > R(0) ? R(1) : R(0));
    if (FINISH == ALL) return sum_of(int64_of_sum(state) == int64_t(count) ? R(1) : R(0));
    if (FINISH == PARAMETER) return parameter_of(state);
#ifndef REAL_I64
    if (FINISH == MEAN) return divided(state, real(count));
    if (FINISH == VARIANCE) return divided(state, max(real(count) - real(correction), R(0)));
    if (FINISH == LOG_SUM) {
        real highest = real_of_sum(parameter);
        return sum_of(real_isinf(highest) ? highest : highest + real_log(value));
    }
#endif
    return state;
}

void store_result(uint64_t result, Sum value) {
    int64_t offset = kept_offset(rows, 0, result);
    if (OUT_DTYPE == INT64)
        Long(element_address(out_address, offset, INT64)).v = uint64_t(int64_of_sum(value));
    else
        store(out_address, offset, OUT_DTYPE, real_of_sum(value));
}

Sum read_sum(uint64_t array, uint64_t index) {
    return Sums(array + index * SUM_BYTES).v;
}

void whole_result(uint64_t result) {
    int64_t base = kept_offset(rows, 1, result);
    Sum parameter = sum_of(R(0));
    if (FIRST != NONE) parameter = parameter_of(fold_range(FIRST, base, 0UL, count, parameter));
    Sum value = finished(fold_range(SECOND, base, 0UL, count, parameter), parameter);
    if (COLUMNS || gl_LocalInvocationID.x == 0) store_result(result, value);
}

void part_of_result(uint64_t result, uint64_t which) {
    int64_t base = kept_offset(rows, 1, result);
    uint64_t begin = which * part, end = min(begin + part, count);
    Sum parameter = sum_of(R(0));
    if (parameters != 0UL) parameter = read_sum(parameters, result);
    Sum state = fold_range(SECOND, base, begin, end, parameter);
    if (COLUMNS || gl_LocalInvocationID.x == 0)
        Sums(partials + (result * parts + which) * SUM_BYTES).v = state;
}

// One thread a result: parts are few. With PARAMETER the results are numbers for the second fold.
void join_parts(uint64_t result) {
    Sum state = read_sum(partials, result * parts);
    for (uint64_t i = 1UL; i < parts; i++)
        state = combine(SECOND, state, read_sum(partials, result * parts + i));
    Sum parameter = sum_of(R(0));
    if (FINISH != PARAMETER && parameters != 0UL) parameter = read_sum(parameters, result);
    Sum value = finished(state, parameter);
    if (FINISH == PARAMETER)
        Sums(parameters + result * SUM_BYTES).v = value;
    else
        store_result(result, value);
}

void main() {
    uint64_t number = group_number();
    if (COLUMNS || STAGE == 2) number = number * uint64_t(GROUP) + uint64_t(gl_LocalInvocationID.x);
    if (STAGE == 1) {
        // Columns: neighbours are neighbouring results of one part.
        if (number >= results * parts) return;
        if (COLUMNS)
            part_of_result(number % results, number / results);
        else
            part_of_result(number / parts, number % parts);
        return;
    }
    if (number >= results) return;
    if (STAGE == 0)
        whole_result(number);
    else
        join_parts(number);
}
