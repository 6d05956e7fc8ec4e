// Rows of windows for numbers of type Real, at LOOP(name). NaN counts as larger than every number.

static void LOOP(copy)(void *target, const void *source, int64_t step, int64_t count) {
    Real *to = target;
    const Real *from = source;
    if (step == 1)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
}

static void LOOP(gather_add)(void *target, const void *source, int64_t step, int64_t count) {
    Real *restrict to = target;
    const Real *restrict from = source;
    if (step == 1)
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
    else
        for (int64_t i = 0; i < count; i++) to[i] += from[i * step];
}

static void LOOP(scatter_add)(void *target, const void *source, int64_t step, int64_t count) {
    Real *restrict to = target;
    const Real *restrict from = source;
    if (step == 1)
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
    else
        for (int64_t i = 0; i < count; i++) to[i * step] += from[i];
}

static void LOOP(add_number)(void *target, double number, int64_t count) {
    Real *to = target, value = (Real)number;
    for (int64_t i = 0; i < count; i++) to[i] += value;
}

static void LOOP(begin_largest)(void *target, int64_t count) {
    Real *to = target;
    for (int64_t i = 0; i < count; i++) to[i] = LOWEST;
}

static inline Real LOOP(larger)(Real now, Real value) {
    Real larger = value > now ? value : now; // a NaN of now stays
    return IS_NAN(value) ? value : larger;
}

static void LOOP(take_largest)(void *target, const void *source, int64_t step, int64_t count) {
    Real *restrict best = target;
    const Real *restrict from = source;
    for (int64_t i = 0; i < count; i++) best[i] = LOOP(larger)(best[i], from[i * step]);
}

static inline Real LOOP(largest_at)(const Real *upper, const Real *lower, int64_t i) {
    Real above = LOOP(larger)(upper[2 * i], upper[2 * i + 1]);
    Real below = LOOP(larger)(lower[2 * i], lower[2 * i + 1]);
    return LOOP(larger)(above, below);
}

// Rows are often shorter than a vector, and loops of a known length become vectors whole: so many
// results at a time, the last ones with some that were there already.
#define IN_BLOCKS(block, count, run)                                                               \
    for (int64_t done = 0, at = 0; done < (count); done += (block)) {                              \
        at = done < (count) - (block) ? done : (count) - (block);                                  \
        run(at, block);                                                                            \
    }
#define IN_BLOCKS_OF_16_TO_1(count, run)                                                           \
    do {                                                                                           \
        if ((count) >= 16)                                                                         \
            IN_BLOCKS(16, count, run)                                                              \
        else if ((count) >= 8)                                                                     \
            IN_BLOCKS(8, count, run)                                                               \
        else if ((count) >= 4)                                                                     \
            IN_BLOCKS(4, count, run)                                                               \
        else                                                                                       \
            IN_BLOCKS(1, count, run)                                                               \
    } while (0)

SIMD_INLINE void LOOP(largest_of_fours)(Real *restrict best, const Real *upper, const Real *lower,
                                        int count) {
#pragma omp simd
    for (int i = 0; i < count; i++) best[i] = LOOP(largest_at)(upper, lower, i);
}

static void LOOP(largest_of_four)(void *target, const void *upper, const void *lower,
                                  int64_t count) {
    Real *best = target;
    const Real *first = upper, *second = lower;
#define RUN(at, block) LOOP(largest_of_fours)(best + at, first + 2 * at, second + 2 * at, block)
    IN_BLOCKS_OF_16_TO_1(count, RUN);
#undef RUN
}

static void LOOP(share_largest)(void *target, const void *source, int64_t step, int64_t count,
                                const LargestShare *share) {
    Real *restrict to = target, *restrict left = share->left;
    const Real *restrict from = source, *restrict best = share->best;
    for (int64_t i = 0; i < count; i++) {
        bool hit = from[i * step] == best[i];
        to[i * step] += hit ? left[i] : 0;
        left[i] = hit ? 0 : left[i];
    }
}

// What is shared goes to the first of four that is the largest.
SIMD_INLINE void LOOP(share_of_fours)(Real *const *to, const Real *const *from,
                                      const Real *restrict shares, int64_t at, int count) {
    Real *restrict to_upper = to[0] + 2 * at, *restrict to_lower = to[1] + 2 * at;
    const Real *restrict upper = from[0] + 2 * at, *restrict lower = from[1] + 2 * at;
    shares += at;
#pragma omp simd
    for (int i = 0; i < count; i++) {
        Real best = LOOP(largest_at)(upper, lower, i), share = shares[i];
        bool one = upper[2 * i] == best, two = (upper[2 * i + 1] == best) & !one;
        bool three = (lower[2 * i] == best) & !(one | two);
        bool four = (lower[2 * i + 1] == best) & !(one | two | three);
        to_upper[2 * i] = one ? share : 0;
        to_upper[2 * i + 1] = two ? share : 0;
        to_lower[2 * i] = three ? share : 0;
        to_lower[2 * i + 1] = four ? share : 0;
    }
}

static void LOOP(share_of_four)(void *const *targets, const void *const *rows, const void *up,
                                int64_t count) {
    Real *to[] = {targets[0], targets[1]};
    const Real *from[] = {rows[0], rows[1]}, *shares = up;
#define RUN(at, block) LOOP(share_of_fours)(to, from, shares, at, block)
    IN_BLOCKS_OF_16_TO_1(count, RUN);
#undef RUN
}

static void LOOP(divide)(void *target, const int64_t *counts, int64_t count) {
    Real *to = target;
    for (int64_t i = 0; i < count; i++) to[i] = counts[i] > 0 ? to[i] / (Real)counts[i] : 0;
}

static const WindowRows LOOP(rows) = {
    .copy = LOOP(copy),
    .gather_add = LOOP(gather_add),
    .scatter_add = LOOP(scatter_add),
    .add_number = LOOP(add_number),
    .begin_largest = LOOP(begin_largest),
    .take_largest = LOOP(take_largest),
    .largest_of_four = LOOP(largest_of_four),
    .share_largest = LOOP(share_largest),
    .share_of_four = LOOP(share_of_four),
    .divide = LOOP(divide),
};

#undef IN_BLOCKS
#undef IN_BLOCKS_OF_16_TO_1
