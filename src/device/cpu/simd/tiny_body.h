// Tiny products in one compute type; included once for float32 and once for float64 with REAL,
// VECTOR, WIDTH and NAME(x) set.

typedef struct NAME(TinyTile) {
    int64_t row, column;
    int64_t width; // columns, where they are not whole vectors
} NAME(TinyTile);

// `rows` rows of a by `vectors` of columns, constants where this is inlined.
SIMD_INLINE void NAME(tiny_tile)(const TinyProduct *product, NAME(TinyTile) tile, int rows,
                                 int vectors, bool part) {
    const REAL *a = (const REAL *)product->a + tile.row * product->a_row_stride;
    const REAL *b = (const REAL *)product->b + tile.column;
    VECTOR sums[TINY_TILE_ROWS][2]; // of which the loops below make registers
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sums[i][v] = (VECTOR){0};
    for (int64_t k = 0; k < product->k; k++) {
        VECTOR weights[2];
        for (int v = 0; v < vectors; v++)
            weights[v] = part ? NAME(some_at)(b, tile.width) : NAME(vector_at)(b + v * WIDTH);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++)
                sums[i][v] += weights[v] * a[i * product->a_row_stride];
        a += product->a_column_stride;
        b += product->b_stride;
    }
    REAL *out = (REAL *)product->out + tile.row * product->n + tile.column;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            if (part)
                NAME(some_to)(out + i * product->n, sums[i][v], tile.width);
            else
                NAME(vector_to)(out + i * product->n + v * WIDTH, sums[i][v]);
}

SIMD_INLINE void NAME(tiny_columns)(const TinyProduct *product, NAME(TinyTile) tile, int vectors,
                                    bool part) {
    int64_t m = product->m;
    for (; tile.row + TINY_TILE_ROWS <= m; tile.row += TINY_TILE_ROWS)
        NAME(tiny_tile)(product, tile, TINY_TILE_ROWS, vectors, part);
    for (; tile.row + 2 <= m; tile.row += 2) NAME(tiny_tile)(product, tile, 2, vectors, part);
    if (tile.row < m) NAME(tiny_tile)(product, tile, 1, vectors, part);
}

static void NAME(tiny)(const TinyProduct *product) {
    int64_t n = product->n, column = 0;
    for (; column + 2 * WIDTH <= n; column += 2 * WIDTH)
        NAME(tiny_columns)(product, (NAME(TinyTile)){0, column, 0}, 2, false);
    for (; column + WIDTH <= n; column += WIDTH)
        NAME(tiny_columns)(product, (NAME(TinyTile)){0, column, 0}, 1, false);
    if (column < n) NAME(tiny_columns)(product, (NAME(TinyTile)){0, column, n - column}, 1, true);
}
