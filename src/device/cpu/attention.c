// The ATTENTION kernel: softmax(q @ k^T * scale) @ v with an online softmax over blocks of keys.
// Query heads that share a key head are rows of one product, so that keys and values are read once.
// Chunks of keys are summed apart and put together in their order, so that threads can share the
// keys of a few rows without a change of bits.
#include <math.h>
#include <string.h>

#include "device/cpu/attention_scores.h"
#include "device/cpu/fold.h"
#include "device/cpu/matrix.h"
#include "device/cpu/scratch.h"

enum {
    ROW_BLOCK = 64,
    KEYS_FEW = 2 * ROW_BLOCK, // next to which causal blocks are smaller
    KEY_BLOCK = 256,
    KEY_CHUNK = 2 * KEY_BLOCK,
    ROWS_OF_PANELS = 4, // for which keys and values are converted once
    ROWS_LEAST = 8,     // to a block, which reads all keys
    ROWS_FETCHED = 32,  // at the beginning of a block of values
    CACHE_LINE = 64,
    TASKS_OF_THREAD = 2,
    PARALLEL_WORK = 1 << 17,
    PARALLEL_SUMS = 1 << 13, // numbers of chunks that are put together
};
_Static_assert(KEY_BLOCK % SCORE_PADDING == 0, "rows of scores have room for their padding");

typedef struct Attention {
    const TensorView *q, *k, *v, *mask, *sinks, *out;
    CpuCompute compute;
    int64_t queries, keys, group, key_heads, width, value_width; // group: query heads per key head
    int64_t row_blocks; // rows of a key head are (query, head of the group), group fastest
    int64_t block_rows; // at most so many to a block
    double scale, cap;  // cap 0: none
    int64_t window;     // 0: none
    bool causal;
    bool by_row; // each query gives the bits that it gives alone
} Attention;

// What rows have summed of some of the keys; the arrays are of the compute type.
typedef struct Sums {
    char *values;          // [rows, value_width], weighted
    char *maxima, *totals; // [rows], of the scores and of the weights
} Sums;

// One block of rows of one key head; the arrays are of the compute type.
typedef struct Block {
    const Attention *attention;
    int64_t batch, key_head, first, rows;
    char *q;          // [rows, width], scaled
    char *scores;     // [rows, KEY_BLOCK]
    char *panel;      // a block of keys or values that must be converted
    char *product;    // [rows, value_width]
    char *mask;       // [KEY_BLOCK]
    Sums part, whole; // of a chunk of keys, and of all those so far
} Block;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// The first element that belongs to index `batch` of the leading dimensions, all but the last
// three.
static int64_t batch_offset(const TensorView *view, int64_t batch) {
    int64_t offset = 0;
    for (int d = view->rank - 4; d >= 0; d--) {
        offset += batch % view->dims[d] * view->strides[d];
        batch /= view->dims[d];
    }
    return offset;
}

// The offset of (query, head) for the row of a block; `sequence` and `head` are strides.
static int64_t row_offset(const Block *block, int64_t row, int64_t sequence, int64_t head) {
    int64_t group = block->attention->group, index = block->first + row;
    return index / group * sequence + (block->key_head * group + index % group) * head;
}

static Matrix head_matrix(const TensorView *view, const Block *block) {
    int last = view->rank - 1;
    int64_t offset = batch_offset(view, block->batch) + block->key_head * view->strides[last - 1];
    return (Matrix){view->dtype,      cpu_at(view, offset),    view->dims[last - 2],
                    view->dims[last], view->strides[last - 2], view->strides[last]};
}

// The end of the keys up to a row's own place.
static int64_t row_place(const Block *block, int64_t row) {
    const Attention *attention = block->attention;
    int64_t query = (block->first + row) / attention->group;
    int64_t place = query + 1 + attention->keys - attention->queries;
    return place < 0 ? 0 : minimum(place, attention->keys);
}

// The end of the keys that a row sees.
static int64_t row_visible(const Block *block, int64_t row) {
    return block->attention->causal ? row_place(block, row) : block->attention->keys;
}

// The first key that a row sees.
static int64_t row_begin(const Block *block, int64_t row) {
    int64_t window = block->attention->window, place = row_place(block, row);
    return window > 0 && place > window ? place - window : 0;
}

static const AttentionPanels *attention_panels(void) {
    return CPU_CHOOSE(&attention_panels);
}

static const ScoreSimd *score_simd(void) {
    return CPU_CHOOSE(&score_simd);
}

static float weigh_float(float *scores, int64_t seen, int64_t count, float *maximum) {
    return score_simd()->weigh(scores, seen, count, maximum);
}

static void cap_float(float *scores, int64_t count, float cap) {
    score_simd()->cap(scores, count, cap);
}

static void add_float(float *sums, float ours, const float *more, float theirs, int64_t count) {
    score_simd()->add(sums, ours, more, theirs, count);
}

static double weigh_double(double *scores, int64_t seen, int64_t count, double *maximum) {
    double total = 0;
    for (int64_t i = 0; i < seen; i++)
        if (scores[i] > *maximum) *maximum = scores[i];
    double base = *maximum == -(double)INFINITY ? 0 : *maximum;
    for (int64_t i = 0; i < seen; i++) total += scores[i] = exp(scores[i] - base);
    memset(scores + seen, 0, (size_t)(count - seen) * sizeof *scores);
    return total;
}

static void cap_double(double *scores, int64_t count, double cap) {
    for (int64_t i = 0; i < count; i++) scores[i] = cap * tanh(scores[i] / cap);
}

static void add_double(double *sums, double ours, const double *more, double theirs,
                       int64_t count) {
    for (int64_t i = 0; i < count; i++) sums[i] = sums[i] * ours + more[i] * theirs;
}

#define REAL float
#define EXP expf
#define NAME(x) x##_float
#include "device/cpu/attention_rows.h"
#undef REAL
#undef EXP
#undef NAME
#define REAL double
#define EXP exp
#define NAME(x) x##_double
#include "device/cpu/attention_rows.h"

// What differs between the compute types.
typedef struct BlockSteps {
    void (*load_queries)(const Block *block);
    void (*start_rows)(const Block *block, const Sums *sums);
    void (*cap_row)(const Block *block, int64_t row, int64_t count);
    void (*mask_row)(const Block *block, int64_t row, int64_t first, int64_t count);
    void (*weigh_row)(const Block *block, int64_t row, int64_t end, int64_t count);
    void (*add_product)(const Block *block);
    void (*add_part)(const Block *block);
    void (*add_sink)(const Block *block, int64_t row);
    void (*store_rows)(const Block *block);
} BlockSteps;

static const BlockSteps block_steps[] = {
    [COMPUTE_F32] = {load_queries_float, start_rows_float, cap_row_float, mask_row_float,
                     weigh_row_float, add_product_float, add_part_float, add_sink_float,
                     store_rows_float},
    [COMPUTE_F64] = {load_queries_double, start_rows_double, cap_row_double, mask_row_double,
                     weigh_row_double, add_product_double, add_part_double, add_sink_double,
                     store_rows_double},
};

// Whether a kernel for few rows reads keys or values of this type where they lie.
static bool is_read_directly(const Attention *attention, const ThinKernel *kernels, DType dtype,
                             int64_t column_stride, int64_t rows) {
    bool same = (dtype == DTYPE_FLOAT64) == (attention->compute == COMPUTE_F64);
    bool few = rows <= THIN_ROWS_MAX || attention->by_row;
    return few && kernels[dtype] && same && column_stride == 1;
}

// A kernel for few rows, whole->rows at once, over all of the block's.
static void run_thin(const Block *block, ThinKernel kernel, const ThinProduct *whole) {
    int64_t real = (int64_t)compute_bytes(block->attention->compute), most = whole->rows;
    for (int64_t row = 0; row < block->rows; row += most) {
        ThinProduct part = *whole;
        part.rows = (int)minimum(most, block->rows - row);
        part.a = (const char *)part.a + row * part.a_stride * real;
        part.out = (char *)part.out + row * part.out_row_stride * real;
        kernel(&part);
    }
}

// Whether keys are transposed for their scores, which is worth it for a few rows. Those of one
// query decide where it gives the same bits next to others.
static bool has_scores(const Block *block, const Matrix *keys) {
    const Attention *attention = block->attention;
    int64_t rows = attention->by_row ? attention->group : block->rows;
    return rows >= ROWS_OF_PANELS && attention->compute == COMPUTE_F32 &&
           attention_panels()->scores[keys->dtype] && keys->column_stride == 1;
}

// scores[rows, count] = q @ keys^T, keys: [count, width].
static void score_keys(const Block *block, const Matrix *keys) {
    const Attention *attention = block->attention;
    const ThinKernel *dot = matrix_simd()->dot;
    ASSERT(keys->rows <= KEY_BLOCK && keys->columns == attention->width);
    ThinProduct product = {
        .a = block->q,
        .a_stride = attention->width,
        .rows = (int)block->rows,
        .b = keys->data,
        .b_stride_bytes = keys->row_stride * (int64_t)dtype_size(keys->dtype),
        .n = keys->rows,
        .k = keys->columns,
        .out = block->scores,
        .out_row_stride = KEY_BLOCK,
        .out_column_stride = 1,
    };
    if (has_scores(block, keys)) {
        attention_panels()->scores[keys->dtype](&product);
        return;
    }
    if (is_read_directly(attention, dot, keys->dtype, keys->column_stride, block->rows)) {
        product.rows = thin_rows(keys->dtype);
        run_thin(block, dot[keys->dtype], &product);
        return;
    }
    Matrix ready = matrix_prepare(keys, attention->compute, block->panel);
    Matrix q = {compute_dtype(attention->compute),
                block->q,
                block->rows,
                attention->width,
                attention->width,
                1};
    matrix_product_serial(&(SerialProduct){attention->compute, q, matrix_transpose(ready),
                                           block->scores, KEY_BLOCK, false});
}

// sums[rows, value_width] += scores[rows, count] @ values[count, value_width].
static void add_values(const Block *block, const Matrix *values) {
    const Attention *attention = block->attention;
    const ThinKernel *strip = matrix_simd()->strip, *panels = attention_panels()->weigh_values;
    int64_t item = (int64_t)dtype_size(values->dtype),
            real = (int64_t)compute_bytes(attention->compute);
    ThinProduct product = {
        .a = block->scores,
        .a_stride = KEY_BLOCK,
        .rows = (int)block->rows,
        .b = values->data,
        .b_stride_bytes = values->row_stride * item,
        .n = values->columns,
        .k = values->rows,
        .out = block->product,
        .out_row_stride = values->columns,
        .out_column_stride = 1,
    };
    ASSERT(values->rows <= KEY_BLOCK && values->columns == attention->value_width);
    bool direct =
        is_read_directly(attention, strip, values->dtype, values->column_stride, block->rows);
    if (direct && block->rows >= ROWS_OF_PANELS && values->columns > STRIP_NARROW_MAX &&
        panels[values->dtype]) {
        panels[values->dtype](&product);
    } else if (direct) {
        for (int64_t column = 0; column < values->columns; column += STRIP_COLUMNS_MAX) {
            ThinProduct part = product;
            part.b += column * item;
            part.rows = THIN_ROWS_MAX; // of strips, which take as many of 16-bit floats, too
            part.n = minimum(STRIP_COLUMNS_MAX, values->columns - column);
            part.out = block->product + column * real;
            run_thin(block, strip[values->dtype], &part);
        }
    } else {
        Matrix ready = matrix_prepare(values, attention->compute, block->panel);
        Matrix weights = {compute_dtype(attention->compute),
                          block->scores,
                          block->rows,
                          values->rows,
                          KEY_BLOCK,
                          1};
        matrix_product_serial(&(SerialProduct){attention->compute, weights, ready,
                                               block->part.values, attention->value_width, true});
        return;
    }
    block_steps[attention->compute].add_product(block);
}

// The keys [first, end) that rows of a block see, in whole blocks of keys up to the end.
typedef struct Seen {
    int64_t first, end;
} Seen;

static Seen seen_keys(const Block *block) {
    // The same blocks of keys for all rows: what one does not see changes none of its bits.
    return (Seen){row_begin(block, 0) / KEY_BLOCK * KEY_BLOCK, row_visible(block, block->rows - 1)};
}

static int64_t first_chunk(Seen seen) {
    return seen.first / KEY_CHUNK;
}

static int64_t end_chunk(Seen seen) {
    return (seen.end + KEY_CHUNK - 1) / KEY_CHUNK;
}

// Fetches the first rows of the values that will be weighed, while their keys are scored.
static void fetch_first(const Matrix *values) {
    int64_t item = (int64_t)dtype_size(values->dtype), bytes = values->columns * item;
    if (values->column_stride != 1) return;
    for (int64_t row = 0; row < minimum(ROWS_FETCHED, values->rows); row++)
        for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE)
            __builtin_prefetch((const char *)values->data + row * values->row_stride * item + byte);
}

// Makes block->part of one chunk of the keys.
static void sum_chunk(const Block *block, Seen seen, int64_t chunk) {
    const Attention *attention = block->attention;
    const BlockSteps *steps = &block_steps[attention->compute];
    ASSERT(chunk >= first_chunk(seen) && chunk < end_chunk(seen));
    Matrix keys = head_matrix(attention->k, block), values = head_matrix(attention->v, block);
    steps->start_rows(block, &block->part);
    int64_t first = chunk * KEY_CHUNK, end = minimum(first + KEY_CHUNK, seen.end);
    for (first = first < seen.first ? seen.first : first; first < end; first += KEY_BLOCK) {
        int64_t count = minimum(KEY_BLOCK, end - first);
        Matrix some_keys = matrix_part(keys, first, 0, count, keys.columns);
        Matrix some_values = matrix_part(values, first, 0, count, values.columns);
        fetch_first(&some_values);
        score_keys(block, &some_keys);
        for (int64_t row = 0; row < block->rows; row++) {
            int64_t end_seen = row_visible(block, row) - first;
            end_seen = end_seen < 0 ? 0 : minimum(end_seen, count);
            if (attention->cap > 0) steps->cap_row(block, row, end_seen);
            if (attention->mask || attention->window > 0)
                steps->mask_row(block, row, first, end_seen);
            steps->weigh_row(block, row, end_seen, count);
        }
        add_values(block, &some_values);
    }
}

// Stores what all chunks have given.
static void finish_block(const Block *block) {
    const BlockSteps *steps = &block_steps[block->attention->compute];
    for (int64_t row = 0; block->attention->sinks && row < block->rows; row++)
        steps->add_sink(block, row);
    steps->store_rows(block);
}

static void run_block(Block *block) {
    const BlockSteps *steps = &block_steps[block->attention->compute];
    Seen seen = seen_keys(block);
    Sums part = block->part;
    bool one = end_chunk(seen) - first_chunk(seen) == 1; // there is nothing to add it to
    if (one) block->part = block->whole;
    steps->load_queries(block);
    steps->start_rows(block, &block->whole);
    for (int64_t chunk = first_chunk(seen); chunk < end_chunk(seen); chunk++) {
        sum_chunk(block, seen, chunk);
        if (!one) steps->add_part(block);
    }
    block->part = part;
    finish_block(block);
}

// Cuts the scratch of a block out of one allocation, pieces at 64-byte boundaries.
static char *cut(char **scratch, int64_t numbers, size_t bytes_each) {
    char *piece = *scratch;
    *scratch += ((size_t)numbers * bytes_each + 63) / 64 * 64;
    return piece;
}

static int64_t most_rows(const Attention *attention) {
    return minimum(attention->block_rows, attention->queries * attention->group);
}

// Bytes of the sums of so many rows, and the sums in them.
static size_t sums_bytes(const Attention *attention, int64_t rows) {
    return ((size_t)(rows * (attention->value_width + 2)) * compute_bytes(attention->compute) +
            3 * 63) /
           64 * 64;
}

static Sums sums_at(const Attention *attention, int64_t rows, char *bytes) {
    size_t real = compute_bytes(attention->compute);
    Sums sums = {.values = cut(&bytes, rows * attention->value_width, real)};
    sums.maxima = cut(&bytes, rows, real);
    sums.totals = cut(&bytes, rows, real);
    return sums;
}

// A block and its scratch, which is to be given back.
static char *take_block(const Attention *attention, Block *out) {
    int64_t rows = most_rows(attention);
    int64_t wide =
        attention->width > attention->value_width ? attention->width : attention->value_width;
    int64_t numbers = rows * (attention->width + KEY_BLOCK + attention->value_width) +
                      KEY_BLOCK * (wide + 1) + 5 * 8;
    size_t real = compute_bytes(attention->compute), sums = sums_bytes(attention, rows);
    char *scratch = scratch_take((size_t)numbers * sizeof(double) + 2 * sums), *rest = scratch;
    *out = (Block){.attention = attention};
    out->q = cut(&rest, rows * attention->width, real);
    out->scores = cut(&rest, rows * KEY_BLOCK, real);
    out->panel = cut(&rest, KEY_BLOCK * wide, real);
    out->product = cut(&rest, rows * attention->value_width, real);
    out->mask = cut(&rest, KEY_BLOCK, sizeof(double));
    out->part = sums_at(attention, rows, rest);
    out->whole = sums_at(attention, rows, rest + sums);
    return scratch;
}

// The rows of a block: those of one key head, block_rows of them a time.
static void go_to(Block *block, int64_t task) {
    const Attention *attention = block->attention;
    block->first = task % attention->row_blocks * attention->block_rows;
    block->rows =
        minimum(attention->block_rows, attention->queries * attention->group - block->first);
    block->key_head = task / attention->row_blocks % attention->key_heads;
    block->batch = task / attention->row_blocks / attention->key_heads;
}

static void run_blocks(void *context, int64_t begin, int64_t end) {
    Block block;
    char *scratch = take_block(context, &block);
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++) {
        go_to(&block, task);
        run_block(&block);
    }
    scratch_give(scratch);
}

// Few rows and many keys: each task is a chunk of the keys of one key head.
typedef struct Shared {
    const Attention *attention;
    Seen seen;      // the same keys for every head
    int64_t chunks; // of them
    char *parts;    // [batches, key_heads, chunks] sums
} Shared;

static Sums part_of(const Shared *shared, int64_t task) {
    ASSERT(task >= 0 && shared->chunks > 1 && shared->parts);
    int64_t rows = most_rows(shared->attention);
    size_t bytes = sums_bytes(shared->attention, rows);
    return sums_at(shared->attention, rows, shared->parts + (size_t)task * bytes);
}

static void run_parts(void *context, int64_t begin, int64_t end) {
    const Shared *shared = context;
    const BlockSteps *steps = &block_steps[shared->attention->compute];
    Block block;
    char *scratch = take_block(shared->attention, &block);
    for (int64_t task = begin; task < end && !cpu_interrupted(); task++) {
        int64_t head = task / shared->chunks;
        if (task == begin || head != (task - 1) / shared->chunks) {
            go_to(&block, head);
            steps->load_queries(&block);
        }
        block.part = part_of(shared, task);
        sum_chunk(&block, shared->seen, first_chunk(shared->seen) + task % shared->chunks);
    }
    scratch_give(scratch);
}

// Those of one row.
static Sums sums_of_row(const Attention *attention, Sums sums, int64_t row) {
    int64_t real = (int64_t)compute_bytes(attention->compute);
    sums.values += row * attention->value_width * real;
    sums.maxima += row * real;
    sums.totals += row * real;
    return sums;
}

// Each task is a row of a block.
static void put_together(void *context, int64_t begin, int64_t end) {
    const Shared *shared = context;
    const Attention *attention = shared->attention;
    const BlockSteps *steps = &block_steps[attention->compute];
    Block block;
    char *scratch = take_block(attention, &block);
    for (int64_t task = begin; task < end; task++) {
        int64_t head = task / most_rows(attention), row = task % most_rows(attention);
        go_to(&block, head);
        if (row >= block.rows) continue; // the last block of a head has fewer
        block.first += row;
        block.rows = 1;
        steps->start_rows(&block, &block.whole);
        for (int64_t chunk = 0; chunk < shared->chunks; chunk++) {
            Sums part = part_of(shared, head * shared->chunks + chunk);
            block.part = sums_of_row(attention, part, row);
            steps->add_part(&block);
        }
        finish_block(&block);
    }
    scratch_give(scratch);
}

// The work of so many rows with so many keys, in multiplications.
static double work_of(const Attention *attention, int64_t keys) {
    return (double)most_rows(attention) * (double)keys *
           (double)(attention->width + attention->value_width);
}

static void run_shared(Shared *shared, int64_t heads) {
    const Attention *attention = shared->attention;
    size_t bytes = sums_bytes(attention, most_rows(attention));
    shared->parts = scratch_take((size_t)(heads * shared->chunks) * bytes);
    int64_t alone = (int64_t)(PARALLEL_WORK / (work_of(attention, KEY_CHUNK) + 1)) + 1;
    cpu_parallel(heads * shared->chunks, alone, run_parts, shared);
    int64_t few = PARALLEL_SUMS / (shared->chunks * attention->value_width) + 1;
    if (!cpu_interrupted()) cpu_parallel(heads * most_rows(attention), few, put_together, shared);
    scratch_give(shared->parts);
}

static void run(const Attention *attention, int64_t heads) {
    Block rows = {.attention = attention};
    go_to(&rows, 0);
    Shared shared = {.attention = attention, .seen = seen_keys(&rows)};
    shared.chunks = end_chunk(shared.seen) - first_chunk(shared.seen);
    bool alike = attention->row_blocks == 1 || attention->queries == 1;
    if (alike && shared.chunks > 1) {
        run_shared(&shared, heads * attention->row_blocks);
        return;
    }
    int64_t alone = (int64_t)(PARALLEL_WORK / (work_of(attention, attention->keys) + 1)) + 1;
    cpu_parallel(heads * attention->row_blocks, alone, run_blocks, (void *)attention);
}

// Many heads of one query share few key heads where keys are of a latent kind: they are cut into
// blocks where the keys would not keep all threads busy. A row's bits do not depend on its block.
static void choose_blocks(Attention *attention, int64_t heads) {
    int64_t rows = attention->queries * attention->group;
    int64_t chunks = (attention->keys + KEY_CHUNK - 1) / KEY_CHUNK;
    int64_t wanted = TASKS_OF_THREAD * cpu_thread_count();
    // The first rows of a block do not see the last of its keys, which is much of a few.
    bool few = attention->causal && attention->group == 1 && attention->keys <= KEYS_FEW;
    attention->block_rows = few ? ROW_BLOCK / 2 : ROW_BLOCK;
    attention->row_blocks = (rows + attention->block_rows - 1) / attention->block_rows;
    if (!attention->by_row || attention->queries != 1) return;
    while (attention->block_rows > ROWS_LEAST && heads * attention->row_blocks * chunks < wanted) {
        attention->block_rows /= 2;
        attention->row_blocks = (rows + attention->block_rows - 1) / attention->block_rows;
    }
    ASSERT(attention->block_rows >= ROWS_LEAST && attention->row_blocks > 0);
}

static Status check_dtypes(const KernelCall *call) {
    for (int i = 0; i < 3; i++)
        if (!dtype_is_float(call->inputs[i].view->dtype))
            return fail(STATUS_DTYPE, "%s has no kernel on the cpu for q %s, k %s and v %s",
                        call->op_name, dtype_name(call->inputs[0].view->dtype),
                        dtype_name(call->inputs[1].view->dtype),
                        dtype_name(call->inputs[2].view->dtype));
    return STATUS_OK;
}

Status cpu_kernel_ATTENTION(const KernelCall *call) {
    TRY(check_dtypes(call));
    Attention attention = {
        .q = call->inputs[0].view,
        .k = call->inputs[1].view,
        .v = call->inputs[2].view,
        .mask = call->n_inputs > 3 ? call->inputs[3].view : NULL,
        .sinks = call->n_inputs > 4 ? call->inputs[4].view : NULL,
        .out = call->outputs[0],
        .scale = call->options.scalars[0],
        .cap = call->options.scalars[1],
        .window = call->options.integers[0],
        .causal = call->options.flag,
        .by_row = call->options.op != 0,
    };
    int last = attention.q->rank - 1;
    ASSERT(last >= 2 && attention.k->rank == last + 1 && attention.v->rank == last + 1);
    bool wide = false;
    for (int i = 0; i < 3; i++) wide |= call->inputs[i].view->dtype == DTYPE_FLOAT64;
    attention.compute = wide ? COMPUTE_F64 : COMPUTE_F32;
    attention.queries = attention.q->dims[last - 2];
    attention.keys = attention.k->dims[last - 2];
    attention.key_heads = attention.k->dims[last - 1];
    attention.width = attention.q->dims[last];
    attention.value_width = attention.v->dims[last];
    int64_t numbers = 1, batches = 1;
    for (int d = 0; d <= last; d++) numbers *= attention.out->dims[d];
    if (numbers == 0) return STATUS_OK;
    for (int d = 0; d < last - 2; d++) batches *= attention.q->dims[d];
    attention.group = attention.q->dims[last - 1] / attention.key_heads;
    choose_blocks(&attention, batches * attention.key_heads);
    run(&attention, batches * attention.key_heads);
    return STATUS_OK;
}
