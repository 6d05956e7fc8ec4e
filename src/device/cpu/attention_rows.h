// The steps of attention on one block of rows, in one compute type; included once for float and
// once for double with REAL, EXP and NAME(x) set.

static void NAME(load_queries)(const Block *block) {
    const Attention *attention = block->attention;
    const TensorView *q = attention->q;
    int last = q->rank - 1;
    int64_t start = batch_offset(q, block->batch), width = attention->width;
    ConvertLoad load = cpu_convert()->load[attention->compute][q->dtype];
    const FoldTable *folds = cpu_fold(attention->compute);
    for (int64_t row = 0; row < block->rows; row++) {
        int64_t offset = row_offset(block, row, q->strides[last - 2], q->strides[last - 1]);
        REAL *target = (REAL *)(void *)block->q + row * width;
        load(target, cpu_at(q, start + offset), q->strides[last], width);
        folds->scale_row(target, target, width, 0, attention->scale);
    }
}

static void NAME(cap_row)(const Block *block, int64_t row, int64_t count) {
    REAL *scores = (REAL *)(void *)block->scores + row * KEY_BLOCK;
    NAME(cap)(scores, count, (REAL)block->attention->cap);
}

// -inf where keys [first, first + count) may not be seen, of which the row sees none behind.
static void NAME(mask_row)(const Block *block, int64_t row, int64_t first, int64_t count) {
    REAL *scores = (REAL *)(void *)block->scores + row * KEY_BLOCK;
    int64_t unseen = minimum(row_begin(block, row) - first, count);
    for (int64_t i = 0; i < unseen; i++) scores[i] = -(REAL)INFINITY;
    const TensorView *mask = block->attention->mask;
    if (!mask) return;
    int last = mask->rank - 1;
    int64_t offset = batch_offset(mask, block->batch) + first * mask->strides[last] +
                     row_offset(block, row, mask->strides[last - 1], mask->strides[last - 2]);
    double *allowed = (double *)(void *)block->mask;
    cpu_convert()->load[COMPUTE_F64][mask->dtype](allowed, cpu_at(mask, offset),
                                                  mask->strides[last], count);
    for (int64_t i = 0; i < count; i++)
        if (allowed[i] == 0) scores[i] = -(REAL)INFINITY;
}

// Turns the scores of one block of keys into weights, 0 from the end of those that the row sees,
// and adjusts what was summed before.
static void NAME(weigh_row)(const Block *block, int64_t row, int64_t end, int64_t count) {
    REAL *scores = (REAL *)(void *)block->scores + row * KEY_BLOCK;
    REAL *sums = (REAL *)(void *)block->part.values + row * block->attention->value_width;
    REAL *maximum = (REAL *)(void *)block->part.maxima + row;
    REAL *total = (REAL *)(void *)block->part.totals + row;
    REAL before = *maximum, sum = NAME(weigh)(scores, end, count, maximum);
    bool same = *maximum == before || before == -(REAL)INFINITY; // or nothing was summed
    REAL factor = same ? 1 : EXP(before - *maximum);
    *total = *total * factor + sum;
    if (factor == 1) return;
    for (int64_t i = 0; i < block->attention->value_width; i++) sums[i] *= factor;
}

static void NAME(add_product)(const Block *block) {
    REAL *sums = (REAL *)(void *)block->part.values;
    const REAL *product = (const REAL *)(const void *)block->product;
    NAME(add)(sums, 1, product, 1, block->rows * block->attention->value_width);
}

// Adds the sums of a chunk of keys to those of the chunks before. A row that sees none of its keys
// has none, and a total of 0.
static void NAME(add_part)(const Block *block) {
    int64_t width = block->attention->value_width;
    for (int64_t row = 0; row < block->rows; row++) {
        REAL part = ((REAL *)(void *)block->part.maxima)[row];
        REAL some = ((REAL *)(void *)block->part.totals)[row];
        REAL *maximum = (REAL *)(void *)block->whole.maxima + row;
        if (some == 0) continue;
        REAL highest = part > *maximum ? part : *maximum;
        REAL ours = *maximum == highest ? 1 : EXP(*maximum - highest);
        REAL theirs = part == highest ? 1 : EXP(part - highest);
        REAL *total = (REAL *)(void *)block->whole.totals + row;
        *total = *total * ours + some * theirs;
        *maximum = highest;
        REAL *sums = (REAL *)(void *)block->whole.values + row * width;
        const REAL *more = (const REAL *)(const void *)block->part.values + row * width;
        NAME(add)(sums, ours, more, theirs, width);
    }
}

// The sink of a row's head takes its share; its value is 0.
static void NAME(add_sink)(const Block *block, int64_t row) {
    const Attention *attention = block->attention;
    REAL sink, maximum = ((REAL *)(void *)block->whole.maxima)[row];
    const TensorView *sinks = attention->sinks;
    int64_t offset = row_offset(block, row, 0, sinks->strides[0]);
    cpu_convert()->load[attention->compute][sinks->dtype](&sink, cpu_at(sinks, offset), 1, 1);
    if (sink > -(REAL)INFINITY) ((REAL *)(void *)block->whole.totals)[row] += EXP(sink - maximum);
}

static void NAME(store_rows)(const Block *block) {
    const Attention *attention = block->attention;
    const TensorView *out = attention->out;
    int last = out->rank - 1;
    int64_t start = batch_offset(out, block->batch), width = attention->value_width;
    ConvertStore store = cpu_convert()->store[attention->compute][out->dtype];
    const FoldTable *folds = cpu_fold(attention->compute);
    for (int64_t row = 0; row < block->rows; row++) {
        REAL *sums = (REAL *)(void *)block->whole.values + row * width;
        REAL total = ((REAL *)(void *)block->whole.totals)[row];
        if (total == 0)
            memset(sums, 0, (size_t)width * sizeof(REAL));
        else
            folds->scale_row(sums, sums, width, 0, 1 / (double)total);
        int64_t offset = row_offset(block, row, out->strides[last - 2], out->strides[last - 1]);
        store(cpu_at(out, start + offset), out->strides[last], sums, width);
    }
}

static void NAME(start_rows)(const Block *block, const Sums *sums) {
    memset(sums->values, 0, (size_t)(block->rows * block->attention->value_width) * sizeof(REAL));
    memset(sums->totals, 0, (size_t)block->rows * sizeof(REAL));
    for (int64_t row = 0; row < block->rows; row++)
        ((REAL *)(void *)sums->maxima)[row] = -(REAL)INFINITY;
}
