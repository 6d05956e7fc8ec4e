// The optimizers' formulas, included once per width: Real, SQRT and LOOP(name) say which.
// `s` is the step; p, g, and rows of state are restricted, since they are different buffers.

#define UPDATE(name) static void LOOP(name)(const OptimizerStep *s, int64_t begin, int64_t end)
#define POINTERS                                                                                   \
    Real *restrict p = s->parameter;                                                               \
    const Real *restrict g = s->gradient;                                                          \
    const Real lr = (Real)s->lr, decay = (Real)s->weight_decay
#define STATE_ROW(name, row) Real *restrict name = (Real *)s->state + (row)*s->elements

UPDATE(sgd_momentum) {
    POINTERS;
    STATE_ROW(sum, 0);
    const Real momentum = (Real)s->momentum, fresh = s->first ? 1 : (Real)(1 - s->dampening);
    const Real kept = s->first ? 0 : momentum;
    const Real ahead = s->variant ? momentum : 1, own = s->variant ? 1 : 0;
    for (int64_t i = begin; i < end; i++) {
        Real gradient = g[i] + decay * p[i];
        sum[i] = kept * sum[i] + fresh * gradient;
        p[i] -= lr * (own * gradient + ahead * sum[i]);
    }
}

UPDATE(sgd) {
    if (s->momentum != 0) {
        LOOP(sgd_momentum)(s, begin, end);
        return;
    }
    POINTERS;
    for (int64_t i = begin; i < end; i++) p[i] -= lr * (g[i] + decay * p[i]);
}

// Both kinds of Adam: what decays the parameter, and what is added to the gradient.
static void LOOP(adam_step)(const OptimizerStep *s, int64_t begin, int64_t end, Real shrink,
                            Real added) {
    Real *restrict p = s->parameter;
    const Real *restrict g = s->gradient;
    STATE_ROW(mean, 0);
    STATE_ROW(square, 1);
    STATE_ROW(highest, 2);
    const Real beta1 = (Real)s->beta1, beta2 = (Real)s->beta2, epsilon = (Real)s->epsilon;
    const Real fresh1 = (Real)(1 - s->beta1), fresh2 = (Real)(1 - s->beta2);
    const Real step = (Real)(s->lr / s->correction1), root = (Real)(1 / sqrt(s->correction2));
    if (!s->variant) {
        for (int64_t i = begin; i < end; i++) {
            Real gradient = g[i] + added * p[i];
            mean[i] = beta1 * mean[i] + fresh1 * gradient;
            square[i] = beta2 * square[i] + fresh2 * gradient * gradient;
            p[i] = shrink * p[i] - step * mean[i] / (SQRT(square[i]) * root + epsilon);
        }
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        Real gradient = g[i] + added * p[i];
        mean[i] = beta1 * mean[i] + fresh1 * gradient;
        square[i] = beta2 * square[i] + fresh2 * gradient * gradient;
        highest[i] = MAX(highest[i], square[i]);
        p[i] = shrink * p[i] - step * mean[i] / (SQRT(highest[i]) * root + epsilon);
    }
}

UPDATE(adam) {
    LOOP(adam_step)(s, begin, end, 1, (Real)s->weight_decay);
}

UPDATE(adamw) {
    LOOP(adam_step)(s, begin, end, (Real)(1 - s->lr * s->weight_decay), 0);
}

UPDATE(rmsprop) {
    POINTERS;
    const Real alpha = (Real)s->beta2, fresh = (Real)(1 - s->beta2), epsilon = (Real)s->epsilon;
    const Real momentum = (Real)s->momentum;
    // Rows that are not used lie on the first, and are only read.
    STATE_ROW(square, 0);
    Real *mean = (Real *)s->state + s->elements;
    Real *sum = (Real *)s->state + (s->variant ? 2 : 1) * s->elements;
    for (int64_t i = begin; i < end; i++) {
        Real gradient = g[i] + decay * p[i], centre = 0;
        square[i] = alpha * square[i] + fresh * gradient * gradient;
        if (s->variant) centre = mean[i] = alpha * mean[i] + fresh * gradient;
        Real change = gradient / (SQRT(MAX(square[i] - centre * centre, 0)) + epsilon);
        if (s->momentum != 0) change = sum[i] = momentum * sum[i] + change;
        p[i] -= lr * change;
    }
}

UPDATE(adagrad) {
    POINTERS;
    STATE_ROW(square, 0);
    const Real epsilon = (Real)s->epsilon, step = lr / (Real)s->correction1;
    for (int64_t i = begin; i < end; i++) {
        Real gradient = g[i] + decay * p[i];
        square[i] += gradient * gradient;
        p[i] -= step * gradient / (SQRT(square[i]) + epsilon);
    }
}

UPDATE(lion) {
    POINTERS;
    STATE_ROW(mean, 0);
    const Real beta1 = (Real)s->beta1, fresh1 = (Real)(1 - s->beta1);
    const Real beta2 = (Real)s->beta2, fresh2 = (Real)(1 - s->beta2);
    for (int64_t i = begin; i < end; i++) {
        Real direction = beta1 * mean[i] + fresh1 * g[i];
        Real sign = (Real)((direction > 0) - (direction < 0));
        p[i] = p[i] - lr * decay * p[i] - lr * sign;
        mean[i] = beta2 * mean[i] + fresh2 * g[i];
    }
}

#undef UPDATE
#undef POINTERS
#undef STATE_ROW
