// Tiny products in one compute type; included once for float32 and once for float64 with REAL,
// VECTOR, WIDTH and NAME(x) set.

// `rows` rows of a, a constant where this is inlined, by one vector of columns.
SIMD_INLINE void NAME(tiny_tile)(const TinyProduct *product, int64_t row, int rows,
                                 int64_t column) {
    int64_t padded = (product->n + TINY_PADDING - 1) / TINY_PADDING * TINY_PADDING;
    const REAL *a = (const REAL *)product->a + row * product->a_row_stride;
    const REAL *b = (const REAL *)product->b + column;
    VECTOR sums[4]; // of which the loops below make registers
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) sums[i] = (VECTOR){0};
    for (int64_t k = 0; k < product->k; k++) {
        VECTOR weights = NAME(vector_at)(b + k * padded);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sums[i] += weights * a[i * product->a_row_stride + k * product->a_column_stride];
    }
    int64_t width = product->n - column < WIDTH ? product->n - column : WIDTH;
    REAL *out = (REAL *)product->out + row * product->n + column;
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        VECTOR sum = sums[i];
        if (width == WIDTH)
            NAME(vector_to)(out + i * product->n, sum);
        else
            memcpy(out + i * product->n, &sum, (size_t)width * sizeof(REAL));
    }
}

static void NAME(tiny)(const TinyProduct *product) {
    for (int64_t next = 0; next < product->n; next += WIDTH) {
        bool beyond = next + WIDTH > product->n && product->n > WIDTH;
        int64_t row = 0, column = beyond ? product->n - WIDTH : next; // some columns twice
        for (; row + 4 <= product->m; row += 4) NAME(tiny_tile)(product, row, 4, column);
        for (; row < product->m; row++) NAME(tiny_tile)(product, row, 1, column);
    }
}
