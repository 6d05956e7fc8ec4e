// Products with few rows in one compute type; included by thin.h once for float32 and once for
// float64 with REAL, VECTOR, WIDTH, NAME(x), SUM and SUM_FOUR set.

typedef void (*NAME(GroupLoad))(const char *row, int64_t first, VECTOR *out);
typedef VECTOR (*NAME(VectorLoad))(const void *source);

enum { NAME(group_vectors) = GROUP / WIDTH };

// How numbers of b are read; a constant where it is used.
typedef struct NAME(Reader) {
    NAME(GroupLoad) group;
    NAME(VectorLoad) vector; // NULL for blocks, whose k is an integral number of groups
    int64_t item_bytes;      // 0 for blocks
} NAME(Reader);

typedef __typeof__((VECTOR){0} == (VECTOR){0}) NAME(Mask);

// The last numbers of each row of a, fewer than a group: some whole vectors, and what does not fill
// one, filled up with zeros. Where a whole vector of b can be read, what does not count of it is
// masked; the end of b is copied to be filled up.
typedef struct NAME(Rest) {
    REAL a[THIN_ROWS_MAX][WIDTH]; // what does not fill a vector
    NAME(Mask) mask;
    int64_t first, count; // of k
    const char *end;      // of b
} NAME(Rest);

typedef struct NAME(Tile) {   // rows of a by columns of b
    int first, rows, columns; // the rows begin with `first`
    NAME(Reader) reader;
    const NAME(Rest) * rest;
    ThinFetch fetch;
} NAME(Tile);

static __attribute__((unused)) void NAME(rest_prepare)(const ThinProduct *product,
                                                       int64_t item_bytes, NAME(Rest) * rest) {
    rest->count = product->k % GROUP;
    rest->first = product->k - rest->count;
    rest->end = product->b + (product->n - 1) * product->b_stride_bytes + product->k * item_bytes;
    int64_t partial = rest->count % WIDTH;
    if (partial == 0) return;
    for (int64_t k = 0; k < WIDTH; k++) rest->mask[k] = k < partial ? -1 : 0;
    for (int i = 0; i < product->rows; i++) {
        const REAL *a = (const REAL *)product->a + i * product->a_stride + product->k - partial;
        for (int64_t k = 0; k < WIDTH; k++) rest->a[i][k] = k < partial ? a[k] : 0;
    }
}

// Adds the products of the rest to totals[row][column].
SIMD_INLINE void NAME(dot_rest)(const ThinProduct *product, const char *b, NAME(Tile) tile,
                                VECTOR (*totals)[DOT_COLUMNS_SMALL]) {
    const NAME(Rest) *rest = tile.rest;
    const REAL *a = (const REAL *)product->a + tile.first * product->a_stride;
    int64_t item_bytes = tile.reader.item_bytes, partial = rest->count % WIDTH;
    int64_t k = rest->first;
    for (; k + WIDTH <= product->k; k += WIDTH)
        UNROLLED_FOR (int j = 0; j < tile.columns; j++) {
            VECTOR weights = tile.reader.vector(b + j * product->b_stride_bytes + k * item_bytes);
            UNROLLED_FOR (int i = 0; i < tile.rows; i++)
                totals[i][j] = NAME(multiply_add)(
                    weights, NAME(vector_at)(a + i * product->a_stride + k), totals[i][j]);
        }
    if (partial == 0) return;
    UNROLLED_FOR (int j = 0; j < tile.columns; j++) {
        const char *source = b + j * product->b_stride_bytes + k * item_bytes;
        char filled[WIDTH * sizeof(double)];
        if (rest->end - source < WIDTH * item_bytes) {
            memset(filled, 0, sizeof filled);
            memcpy(filled, source, (size_t)(partial * item_bytes));
            source = filled;
        }
        VECTOR weights = (VECTOR)((NAME(Mask))tile.reader.vector(source) & rest->mask);
        UNROLLED_FOR (int i = 0; i < tile.rows; i++)
            totals[i][j] =
                NAME(multiply_add)(weights, NAME(vector_at)(rest->a[tile.first + i]), totals[i][j]);
    }
}

// `rows` rows of a by `columns` rows of b, both constants where this is inlined, so that the sums
// stay in registers. Every sum is one chain of additions, whatever the number of rows and columns,
// so that a row's numbers do not depend on the others. depth begins with a group.
SIMD_INLINE void NAME(dot_sums)(const ThinProduct *product, int64_t column, NAME(Tile) tile,
                                ThinDepth depth, VECTOR (*sums)[DOT_COLUMNS_SMALL]) {
    const int rows = tile.rows, columns = tile.columns;
    const bool blocks = !tile.reader.vector;
    const REAL *a = (const REAL *)product->a + tile.first * product->a_stride;
    const char *b = product->b + column * product->b_stride_bytes;
    for (int64_t k = depth.begin; k + GROUP <= depth.end; k += GROUP) {
        VECTOR weights[DOT_COLUMNS_SMALL][NAME(group_vectors)];
        UNROLLED_FOR (int j = 0; j < columns; j++)
            if (blocks) tile.reader.group(b + j * product->b_stride_bytes, k, weights[j]);
        int64_t byte = k * tile.reader.item_bytes, end = byte + GROUP * tile.reader.item_bytes;
        if (tile.fetch == FETCH_COLUMNS) {
            const char *next = b + columns * product->b_stride_bytes + byte * columns;
            for (int64_t at = 0; at < columns * (end - byte); at += LINE)
                __builtin_prefetch(next + at, 0, 2);
        }
        for (; tile.fetch == FETCH_TILE && byte < end; byte += LINE)
            UNROLLED_FOR (int j = 0; j < columns; j++)
                __builtin_prefetch(b + (product->n + j) * product->b_stride_bytes + byte, 0, 2);
        UNROLLED_FOR (int v = 0; v < NAME(group_vectors); v++) {
            UNROLLED_FOR (int j = 0; j < columns; j++)
                if (!blocks)
                    weights[j][v] = tile.reader.vector(b + j * product->b_stride_bytes +
                                                       (k + v * WIDTH) * tile.reader.item_bytes);
            UNROLLED_FOR (int i = 0; i < rows; i++) {
                VECTOR numbers = NAME(vector_at)(a + i * product->a_stride + k + v * WIDTH);
                UNROLLED_FOR (int j = 0; j < columns; j++)
                    sums[i][j] = NAME(multiply_add)(weights[j][v], numbers, sums[i][j]);
            }
        }
    }
    if (!blocks && depth.end == product->k && tile.rest->count > 0)
        NAME(dot_rest)(product, b, tile, sums);
}

// Adds up the lanes of each sum.
SIMD_INLINE void NAME(dot_store)(const ThinProduct *product, int64_t column, NAME(Tile) tile,
                                 VECTOR (*sums)[DOT_COLUMNS_SMALL]) {
    const int rows = tile.rows, columns = tile.columns;
    REAL *out = (REAL *)product->out + tile.first * product->out_row_stride +
                column * product->out_column_stride;
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        REAL numbers[DOT_COLUMNS_SMALL];
        int j = 0;
        UNROLLED_FOR (; j + 4 <= columns; j += 4) SUM_FOUR(sums[i] + j, numbers + j);
        UNROLLED_FOR (; j < columns; j++) numbers[j] = SUM(sums[i][j]);
        REAL *to = out + i * product->out_row_stride;
        if (columns >= 4 && product->out_column_stride == 1)
            memcpy(to, numbers, (size_t)columns * sizeof *numbers);
        else
            for (j = 0; j < columns; j++) to[j * product->out_column_stride] = numbers[j];
    }
}

SIMD_INLINE void NAME(dot_tile)(const ThinProduct *product, int64_t column, NAME(Tile) tile) {
    VECTOR sums[THIN_ROWS_MAX][DOT_COLUMNS_SMALL] = {{{0}}};
    NAME(dot_sums)(product, column, tile, (ThinDepth){0, product->k}, sums);
    NAME(dot_store)(product, column, tile, sums);
}

#if defined(TL_ISA_avx2)
// Four rows of a by three columns of floats, which fill the registers; a long k in pieces so short
// that those of a stay in the first cache, between which sums wait in memory. Returns how many
// columns are done.
static __attribute__((noinline)) int64_t NAME(dot_pieces)(const ThinProduct *product,
                                                          NAME(Reader) reader) {
    enum { ROWS = THIN_HALF_ROWS_MAX, COLUMNS = 3, TILES = 16 };
    enum { PIECE = PIECE_BYTES / (int)sizeof(REAL) };
    NAME(Rest) rest;
    const NAME(Tile) tile = {0, ROWS, COLUMNS, reader, &rest, FETCH_TILE};
    VECTOR sums[TILES][ROWS][DOT_COLUMNS_SMALL];
    NAME(rest_prepare)(product, reader.item_bytes, &rest);
    int64_t column = 0, end = product->n / COLUMNS * COLUMNS;
    for (; product->k <= PIECE && column < end; column += COLUMNS)
        NAME(dot_tile)(product, column, tile);
    for (int64_t tiles; column < end; column += tiles * COLUMNS) {
        tiles = (end - column) / COLUMNS < TILES ? (end - column) / COLUMNS : TILES;
        for (ThinDepth depth = {0}; depth.begin < product->k; depth.begin = depth.end) {
            depth.end = depth.begin + PIECE < product->k ? depth.begin + PIECE : product->k;
            for (int64_t i = 0; i < tiles; i++) {
                VECTOR kept[ROWS][DOT_COLUMNS_SMALL];
                UNROLLED_FOR (int r = 0; r < ROWS; r++)
                    UNROLLED_FOR (int j = 0; j < COLUMNS; j++)
                        kept[r][j] = depth.begin > 0 ? sums[i][r][j] : (VECTOR){0};
                NAME(dot_sums)(product, column + i * COLUMNS, tile, depth, kept);
                UNROLLED_FOR (int r = 0; r < ROWS; r++)
                    UNROLLED_FOR (int j = 0; j < COLUMNS; j++) sums[i][r][j] = kept[r][j];
            }
        }
        for (int64_t i = 0; i < tiles; i++)
            NAME(dot_store)(product, column + i * COLUMNS, tile, sums[i]);
    }
    return column;
}
#endif

// One row of a by a small b: inlined into a function of its own, whose few sums leave registers for
// addresses.
SIMD_INLINE void NAME(dot_small)(const ThinProduct *product, NAME(Reader) reader) {
    int64_t column = 0;
    NAME(Rest) rest;
    NAME(rest_prepare)(product, reader.item_bytes, &rest);
    for (; column + DOT_COLUMNS_SMALL <= product->n; column += DOT_COLUMNS_SMALL) NAME(dot_tile)
    (product, column, (NAME(Tile)){0, 1, DOT_COLUMNS_SMALL, reader, &rest, FETCH_NOTHING});
    if (DOT_COLUMNS_MAX < DOT_COLUMNS_SMALL && column + DOT_COLUMNS_MAX <= product->n) {
        NAME(dot_tile)
        (product, column, (NAME(Tile)){0, 1, DOT_COLUMNS_MAX, reader, &rest, FETCH_NOTHING});
        column += DOT_COLUMNS_MAX;
    }
    for (; column < product->n; column++) NAME(dot_tile)
    (product, column, (NAME(Tile)){0, 1, 1, reader, &rest, FETCH_NOTHING});
}

#define DOT_COLUMNS(rows, step)                                                                    \
    for (; column + step <= product->n; column += step) NAME(dot_tile)                             \
    (product, column, (NAME(Tile)){0, rows, step, reader, &rest, FETCH_COLUMNS});                  \
    for (; column < product->n; column++) NAME(dot_tile)                                           \
    (product, column, (NAME(Tile)){0, rows, 1, reader, &rest, FETCH_COLUMNS})
#define DOT_CASE(rows, step)                                                                       \
    case rows: DOT_COLUMNS(rows, step); break

SIMD_INLINE void NAME(dot)(const ThinProduct *product, NAME(Reader) reader) {
    int64_t column = 0;
    NAME(Rest) rest;
    NAME(rest_prepare)(product, reader.item_bytes, &rest);
    if (ONE_ROW) {
        for (; column < product->n; column++)
            for (int row = 0; row < product->rows; row++) NAME(dot_tile)
        (product, column, (NAME(Tile)){row, 1, 1, reader, &rest, FETCH_COLUMNS});
        return;
    }
#if defined(TL_ISA_avx2)
    if (reader.vector && product->rows == THIN_HALF_ROWS_MAX)
        column = NAME(dot_pieces)(product, reader);
#endif
    if (product->rows == 1 && reader.item_bytes == 2) { // two streams are read faster than four
        DOT_COLUMNS(1, DOT_COLUMNS_HALVES);
        return;
    }
    switch (product->rows) {
        DOT_CASE(1, DOT_COLUMNS_MAX);
        DOT_CASE(2, DOT_COLUMNS_MAX);
        DOT_CASE(3, DOT_COLUMNS_MORE);
        DOT_CASE(4, DOT_COLUMNS_MORE);
    }
}

// The same of up to THIN_ROWS_MAX rows. Eight that are short are taken four at a time: next to four
// columns, whose lanes are added up together.
SIMD_INLINE void NAME(dot_more)(const ThinProduct *product, NAME(Reader) reader) {
    bool many = product->rows == THIN_ROWS_MAX && DOT_COLUMNS_MORE == 4 && product->k <= SHORT;
    if (ONE_ROW || product->rows <= THIN_HALF_ROWS_MAX || many) {
        for (int row = 0; row < product->rows; row += THIN_HALF_ROWS_MAX) {
            ThinProduct part = *product;
            part.rows -= row;
            if (part.rows > THIN_HALF_ROWS_MAX) part.rows = THIN_HALF_ROWS_MAX;
            part.a = (const REAL *)part.a + row * part.a_stride;
            part.out = (REAL *)part.out + row * part.out_row_stride;
            NAME(dot)(&part, reader);
        }
        return;
    }
    int64_t column = 0;
    NAME(Rest) rest;
    NAME(rest_prepare)(product, reader.item_bytes, &rest);
    switch (product->rows) {
        DOT_CASE(5, DOT_COLUMNS_MOST);
        DOT_CASE(6, DOT_COLUMNS_MOST);
        DOT_CASE(7, DOT_COLUMNS_MOST);
        DOT_CASE(8, DOT_COLUMNS_MOST);
    }
}
#undef DOT_CASE
#undef DOT_COLUMNS

// One vector of columns at `offset` of the strip: four rows of b a time.
SIMD_INLINE void NAME(strip_step)(const ThinProduct *product, ThinRows k, int64_t offset,
                                  const VECTOR *weights, REAL *sums) {
    const REAL *a = product->a;
    for (int i = 0; i < product->rows; i++) {
        REAL *sum = sums + i * (STRIP_COLUMNS_MAX + WIDTH) + offset;
        VECTOR total = NAME(vector_at)(sum);
        for (int d = 0; d < k.count; d++)
            total += weights[d] * a[i * product->a_stride + k.first + d];
        NAME(vector_to)(sum, total);
    }
}

SIMD_INLINE void NAME(strip_rows)(const ThinProduct *product, ThinRows k, NAME(VectorLoad) load,
                                  int64_t item_bytes, REAL *sums) {
    const char *b = product->b + k.first * product->b_stride_bytes;
    VECTOR weights[4];
    int64_t j = 0;
    for (; j + WIDTH <= product->n; j += WIDTH) {
        for (int d = 0; d < k.count; d++)
            weights[d] = load(b + d * product->b_stride_bytes + j * item_bytes);
        NAME(strip_step)(product, k, j, weights, sums);
    }
    if (j == product->n) return;
    for (int d = 0; d < k.count; d++) {
        char rest[WIDTH * sizeof(double)] = {0};
        memcpy(rest, b + d * product->b_stride_bytes + j * item_bytes,
               (size_t)((product->n - j) * item_bytes));
        weights[d] = load(rest);
    }
    NAME(strip_step)(product, k, j, weights, sums);
}

// Rows of a, their number a constant where this is inlined, by one vector of columns: the sums stay
// in registers. What is read beyond the last column lies within b or is filled up.
SIMD_INLINE void NAME(strip_tile)(const ThinProduct *product, ThinRows of_a, int64_t column,
                                  NAME(VectorLoad) load, int64_t item_bytes) {
    const int rows = of_a.count;
    const REAL *a = (const REAL *)product->a + of_a.first * product->a_stride;
    const char *b = product->b + column * item_bytes;
    int64_t width = product->n - column < WIDTH ? product->n - column : WIDTH, k = 0;
    int64_t beyond = (WIDTH - width) * item_bytes, stride = product->b_stride_bytes;
    int64_t last = beyond == 0 ? 0 : stride > 0 ? (beyond + stride - 1) / stride : product->k;
    int64_t whole = product->k - last; // rows of b of which a vector can be read
    VECTOR sums[4][2] = {{{0}}};
    for (; k + 2 <= whole; k += 2)
        UNROLLED_FOR (int d = 0; d < 2; d++) {
            VECTOR weights = load(b + (k + d) * stride);
            UNROLLED_FOR (int i = 0; i < rows; i++)
                sums[i][d] += weights * a[i * product->a_stride + k + d];
        }
    for (; k < product->k; k++) {
        char filled[WIDTH * sizeof(double)] = {0};
        memcpy(filled, b + k * stride, (size_t)(width * item_bytes));
        VECTOR weights = load(filled);
        UNROLLED_FOR (int i = 0; i < rows; i++)
            sums[i][k % 2] += weights * a[i * product->a_stride + k];
    }
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        REAL *out = (REAL *)product->out + (of_a.first + i) * product->out_row_stride;
        VECTOR total = sums[i][0] + sums[i][1];
        for (int64_t j = 0; j < width; j++)
            out[(column + j) * product->out_column_stride] = total[j];
    }
}

// Rows of a by some vectors of columns, both constants where this is inlined; the sums stay in
// registers, each of them the chain that strip_step adds up.
SIMD_INLINE void NAME(strip_panel)(const ThinProduct *product, ThinRows of_a, int64_t column,
                                   NAME(VectorLoad) load, int64_t item_bytes) {
    const int rows = of_a.count;
    const REAL *a = (const REAL *)product->a + of_a.first * product->a_stride;
    const char *b = product->b + column * item_bytes;
    VECTOR sums[4][PANEL_VECTORS] = {{{0}}};
    for (int64_t k = 0; k < product->k; k++, b += product->b_stride_bytes) {
        VECTOR weights[PANEL_VECTORS];
        const char *later = b + AHEAD * product->b_stride_bytes;
        for (int64_t byte = 0; byte < PANEL_VECTORS * WIDTH * item_bytes; byte += LINE)
            if (of_a.first == 0) __builtin_prefetch(later + byte);
        UNROLLED_FOR (int v = 0; v < PANEL_VECTORS; v++)
            weights[v] = load(b + v * WIDTH * item_bytes);
        UNROLLED_FOR (int i = 0; i < rows; i++)
            UNROLLED_FOR (int v = 0; v < PANEL_VECTORS; v++)
                sums[i][v] += weights[v] * a[i * product->a_stride + k];
    }
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        REAL *out = (REAL *)product->out + (of_a.first + i) * product->out_row_stride + column;
        UNROLLED_FOR (int v = 0; v < PANEL_VECTORS; v++)
            NAME(vector_to)(out + v * WIDTH, sums[i][v]);
    }
}

// Four rows of a at a time, and one that is left; two or three are left for strip_rows, which reads
// b once for all of them, but where vectors are so narrow that reading costs nothing next to sums.
SIMD_INLINE int NAME(strip_panels)(const ThinProduct *product, NAME(VectorLoad) load,
                                   int64_t item_bytes) {
    int left = product->rows % 4,
        whole = ONE_ROW || left == 1 ? product->rows : product->rows - left;
    for (int64_t column = 0; column < product->n; column += PANEL_VECTORS * WIDTH) {
        int row = 0;
        for (; row + 4 <= whole; row += 4)
            NAME(strip_panel)(product, (ThinRows){row, 4}, column, load, item_bytes);
        for (; row < whole; row++)
            NAME(strip_panel)(product, (ThinRows){row, 1}, column, load, item_bytes);
    }
    return whole;
}

enum { NAME(strip_narrow) = 2 * WIDTH };
_Static_assert((int)NAME(strip_narrow) <= (int)STRIP_NARROW_MAX, "two chains of additions");

SIMD_INLINE void NAME(strip)(const ThinProduct *product, NAME(VectorLoad) load,
                             int64_t item_bytes) {
    if (product->n <= NAME(strip_narrow)) {
        for (int64_t column = 0; column < product->n; column += WIDTH) {
            int row = 0;
            for (; row + 4 <= product->rows; row += 4)
                NAME(strip_tile)(product, (ThinRows){row, 4}, column, load, item_bytes);
            for (; row + 2 <= product->rows; row += 2)
                NAME(strip_tile)(product, (ThinRows){row, 2}, column, load, item_bytes);
            for (; row < product->rows; row++)
                NAME(strip_tile)(product, (ThinRows){row, 1}, column, load, item_bytes);
        }
        return;
    }
    ThinProduct rest = *product;
    if (product->n <= SHORT && product->n % (PANEL_VECTORS * WIDTH) == 0 &&
        product->out_column_stride == 1) {
        int done = NAME(strip_panels)(product, load, item_bytes);
        if (done == product->rows) return;
        rest.rows -= done;
        rest.a = (const REAL *)product->a + done * product->a_stride;
        rest.out = (REAL *)product->out + done * product->out_row_stride;
    }
    REAL sums[THIN_ROWS_MAX * (STRIP_COLUMNS_MAX + WIDTH)];
    for (int i = 0; i < rest.rows; i++)
        for (int64_t j = 0; j < rest.n; j += WIDTH)
            NAME(vector_to)(sums + i * (STRIP_COLUMNS_MAX + WIDTH) + j, (VECTOR){0});
    int64_t k = 0;
    for (; k + 4 <= rest.k; k += 4)
        NAME(strip_rows)(&rest, (ThinRows){k, 4}, load, item_bytes, sums);
    for (; k < rest.k; k++) NAME(strip_rows)(&rest, (ThinRows){k, 1}, load, item_bytes, sums);
    REAL *out = rest.out;
    for (int i = 0; i < rest.rows; i++)
        for (int64_t j = 0; j < rest.n; j++)
            out[i * rest.out_row_stride + j * rest.out_column_stride] =
                sums[i * (STRIP_COLUMNS_MAX + WIDTH) + j];
}
