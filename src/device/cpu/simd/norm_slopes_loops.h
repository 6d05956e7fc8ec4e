// The body of norm_slopes.c for one compute type: the includer defines real and NAME(x).

// The gradient of x is factor * (inner - mean(inner) - normal * mean(inner * normal)) with inner =
// up * weight and normal = (x - mean) * factor.
SIMD_INLINE void NAME(row_with)(const NormRow *row, bool weighted, bool summed) {
    const real *up = row->up, *x = row->x, *weight = row->weight;
    const real mean = (real)row->mean, factor = (real)row->factor, n = (real)row->count;
    real *out = row->out, *weight_sum = row->sums[0], *bias_sum = row->sums[1];
    real whole = 0, along = 0;
    int64_t count = row->count;
    _Pragma("omp simd reduction(+ : whole, along)") for (int64_t i = 0; i < count; i++) {
        real normal = (x[i] - mean) * factor, inner = weighted ? up[i] * weight[i] : up[i];
        whole += inner;
        along += inner * normal;
        if (summed) {
            weight_sum[i] += up[i] * normal;
            bias_sum[i] += up[i];
        }
    }
    whole /= n;
    along /= n;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        real normal = (x[i] - mean) * factor, inner = weighted ? up[i] * weight[i] : up[i];
        out[i] = factor * (inner - whole - normal * along);
    }
}

static void NAME(row)(const NormRow *row) {
    if (row->weight && row->sums[0])
        NAME(row_with)(row, true, true);
    else if (row->weight)
        NAME(row_with)(row, true, false);
    else
        NAME(row_with)(row, false, false);
}

static void NAME(add)(double *totals, const void *numbers, int64_t count) {
    const real *in = numbers;
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) totals[i] += (double)in[i];
}
