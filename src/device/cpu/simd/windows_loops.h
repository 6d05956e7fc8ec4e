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

static void LOOP(largest_of_four)(void *target, const void *upper, const void *lower,
                                  int64_t count) {
    Real *restrict best = target;
    const Real *restrict first = upper, *restrict second = lower;
    for (int64_t i = 0; i < count; i++) best[i] = LOOP(largest_at)(first, second, i);
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

static void LOOP(share_of_four)(void *const *targets, const void *const *rows, const void *up,
                                int64_t count) {
    Real *restrict to_upper = targets[0], *restrict to_lower = targets[1];
    const Real *restrict upper = rows[0], *restrict lower = rows[1], *restrict shares = up;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
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
