// Products of blocks in one compute type; included once for float32 and once for float64 with REAL,
// VECTOR, WIDTH and NAME(x) set.

typedef struct NAME(Tile) {
    const REAL *a, *b;
    const REAL *next; // what is fetched while this tile is made, two vectors at each of its k
    int64_t next_step;
    REAL *out;
    int64_t width; // columns, where they are at most a vector
} NAME(Tile);
typedef void (*NAME(TileProduct))(const BlockProduct *product, const NAME(Tile) * tile);

// `rows` rows of a by two vectors of columns, or by part of one; constants where this is inlined.
SIMD_INLINE void NAME(tile)(const BlockProduct *product, const NAME(Tile) * tile, int rows,
                            int vectors) {
    const REAL *a = tile->a, *b = tile->b, *next = tile->next;
    int64_t next_step = tile->next_step;
    REAL *out = tile->out;
    int64_t a_row = product->a_row_stride;
    int64_t a_column = product->a_strip_stride ? STRIP_WIDTH : product->a_column_stride;
    int64_t b_row = product->b_row_stride, out_row = product->out_stride, width = tile->width;
    bool part = vectors == 1, more = product->accumulate;
    VECTOR sums[TILE_ROWS][2]; // of which the loops below make registers
    UNROLLED_FOR (int i = 0; i < rows; i++) {
        __builtin_prefetch(out + i * out_row, 1);
        if (!part) __builtin_prefetch(out + i * out_row + 2 * WIDTH - 1, 1);
        for (int v = 0; v < vectors; v++) sums[i][v] = (VECTOR){0};
    }
    // Rows by a few bases and the same offsets from each: all of them stay in registers.
    const REAL *bases[(TILE_ROWS + ROWS_OF_BASE - 1) / ROWS_OF_BASE];
    UNROLLED_FOR (int i = 0; i < rows; i += ROWS_OF_BASE) {
        bases[i / ROWS_OF_BASE] = a + i * a_row;
        KEEP_APART(bases[i / ROWS_OF_BASE]);
    }
    for (int64_t k = product->k; k > 0; k--) {
        VECTOR weights[2];
        for (int v = 0; v < vectors; v++)
            weights[v] = part ? NAME(some_at)(b, width) : NAME(vector_at)(b + v * WIDTH);
        UNROLLED_FOR (int i = 0; i < rows; i++) {
            REAL number = bases[i / ROWS_OF_BASE][i % ROWS_OF_BASE * a_row];
            for (int v = 0; v < vectors; v++) {
                sums[i][v] += weights[v] * number;
                ADD_BEFORE_LOADS(sums[i][v]);
            }
        }
        for (int v = 0; v < vectors * WIDTH; v += LINE_BYTES / (int)sizeof(REAL))
            __builtin_prefetch(next + v, 0, 2);
        UNROLLED_FOR (int i = 0; i < rows; i += ROWS_OF_BASE) bases[i / ROWS_OF_BASE] += a_column;
        b += b_row;
        next += next_step;
    }
    UNROLLED_FOR (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            REAL *to = out + i * out_row + v * WIDTH;
            VECTOR sum = sums[i][v];
            if (more) sum += part ? NAME(some_at)(to, width) : NAME(vector_at)(to);
            if (part)
                NAME(some_to)(to, sum, width);
            else
                NAME(vector_to)(to, sum);
        }
}

#define TILES(rows)                                                                                \
    static void NAME(wide_##rows)(const BlockProduct *product, const NAME(Tile) * tile) {          \
        NAME(tile)(product, tile, rows, 2);                                                        \
    }                                                                                              \
    static void NAME(narrow_##rows)(const BlockProduct *product, const NAME(Tile) * tile) {        \
        NAME(tile)(product, tile, rows, 1);                                                        \
    }
EACH_HEIGHT(TILES)
#undef TILES

// The first strip fetches the next panel for all of them, and each by the first panel the next rows
// of a, which is worth it where they lie one behind the other.
SIMD_INLINE void NAME(tile_fetches)(const BlockProduct *product, int64_t row, int64_t height,
                                    int64_t panel, NAME(Tile) * tile) {
    bool joined = product->a_column_stride == 1 && product->a_row_stride == product->k;
    tile->next = tile->b;
    if (row == 0 && product->n > (panel + 1) * 2 * WIDTH) {
        tile->next += product->b_panel_stride;
        tile->next_step = product->b_row_stride;
    } else if (panel == 0 && joined && !product->a_strip_stride) {
        tile->next = tile->a + height * product->a_row_stride;
        tile->next_step = height;
    }
}

// A strip of rows by a panel.
static void NAME(strip)(const BlockProduct *product, int64_t row, int64_t height, int64_t panel) {
#define WIDE(rows) [rows] = NAME(wide_##rows),
#define NARROW(rows) [rows] = NAME(narrow_##rows),
    static const NAME(TileProduct) wide[] = {EACH_HEIGHT(WIDE)}, narrow[] = {EACH_HEIGHT(NARROW)};
#undef WIDE
#undef NARROW
    int64_t left = product->m - row, rows = left < height ? left : height;
    int64_t columns = product->n - panel * 2 * WIDTH;
    int64_t a_at = product->a_strip_stride ? row / height * product->a_strip_stride
                                           : row * product->a_row_stride;
    NAME(Tile)
    tile = {
        .a = (const REAL *)product->a + a_at,
        .b = (const REAL *)product->b + panel * product->b_panel_stride,
        .out = (REAL *)product->out + row * product->out_stride + panel * 2 * WIDTH,
    };
    NAME(tile_fetches)(product, row, height, panel, &tile);
    if (columns >= 2 * WIDTH) {
        wide[rows](product, &tile);
        return;
    }
    for (; columns > 0; columns -= WIDTH, tile.b += WIDTH, tile.out += WIDTH) {
        tile.width = columns < WIDTH ? columns : WIDTH;
        narrow[rows](product, &tile);
    }
}

static void NAME(block)(const BlockProduct *product) {
    int64_t panels = (product->n + 2 * WIDTH - 1) / (2 * WIDTH);
    int64_t height = strip_height(product->m);
    for (int64_t panel = 0; panel < panels; panel++)
        for (int64_t row = 0; row < product->m; row += height)
            NAME(strip)(product, row, height, panel);
}

// A panel's columns behind the last are zeros.
static void NAME(pack)(const PanelPack *pack) {
    const REAL *from = pack->from;
    REAL *row_to = pack->to;
    for (int64_t row = 0; row < pack->rows; row++, from += pack->from_stride, row_to += 2 * WIDTH) {
        REAL *to = row_to;
        int64_t column = 0;
        for (; column + 2 * WIDTH <= pack->columns; column += 2 * WIDTH, to += pack->panel_stride) {
            __builtin_prefetch(from + column + PACK_AHEAD * pack->from_stride);
            __builtin_prefetch(from + column + PACK_AHEAD * pack->from_stride + WIDTH);
            NAME(vector_to)(to, NAME(vector_at)(from + column));
            NAME(vector_to)(to + WIDTH, NAME(vector_at)(from + column + WIDTH));
        }
        for (int half = 0; half < 2 && column < pack->columns; half++, column += WIDTH) {
            int64_t left = pack->columns - column, count = left < WIDTH ? left : WIDTH;
            NAME(vector_to)(to + half * WIDTH, NAME(some_at)(from + column, count));
        }
    }
}

// The strips of rows that NAME(block) takes, each of columns one behind the other, which are read
// as rows of contiguous numbers. What lies behind a column's last number does not matter.
static void NAME(pack_strips)(const PanelPack *pack) {
    const REAL *from = pack->from;
    int64_t height = strip_height(pack->columns);
    for (int64_t k = 0; k < pack->rows; k++, from += pack->from_stride) {
        REAL *to = (REAL *)pack->to + k * STRIP_WIDTH;
        for (int64_t first = 0; first < pack->columns; first += height) {
            int64_t left = pack->columns - first;
            __builtin_prefetch(from + first + PACK_AHEAD * pack->from_stride);
            for (int i = 0; i < STRIP_WIDTH && i < left; i += WIDTH) NAME(vector_to)
            (to + i, left - i < WIDTH ? NAME(some_at)(from + first + i, left - i)
                                      : NAME(vector_at)(from + first + i));
            to += pack->panel_stride;
        }
    }
}
