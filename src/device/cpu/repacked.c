// Products with quantised weights: activations are rounded to 16 bits, weights interleaved strip by
// strip the first time that they are multiplied, and kept so where they come from a mapped file,
// whose pages then go back to the system.
#include "device/cpu/repacked.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "device/cpu/matrix.h"
#include "device/cpu/repack.h"
#include "device/cpu/scratch.h"
#include "device/pool.h"
#include "device/statistics.h"

enum {
    PIECE_PRODUCTS = 1 << 17, // multiplications that are worth a thread,
    PIECE_ROUNDED = 1 << 13,  // and numbers that are rounded
    STRIPS_MANY = 8,          // strips and rows of activations that are worked on together
    ROWS_MANY = 24,
    PIECES_OF_THREAD = 4,
    ROWS_OF_TILES = 2 * TILE_TOKENS,
    TILE_REST_MAX = 4,      // rows that are not worth a tile
    PANELS_BYTES = 1 << 19, // that stay in a second-level cache
    EVICT_STRIPS = 16,      // after so many have been repacked the file's pages go
};

typedef enum StripState { STRIP_STORED, STRIP_TAKEN, STRIP_REPACKED } StripState;

// The strips of all rows of a weight's buffer. A strip belongs to whoever takes it first.
struct RepackedWeight {
    Buffer *strips;
    DType dtype;
    int64_t columns, strip_count;
    size_t strip_bytes, row_bytes;
    atomic_llong left; // strips that are still to be repacked
    atomic_uchar states[];
};

#if defined(__x86_64__)
// Compilers of Debian 12 do not all know this feature by name: CPUID leaf 7, subleaf 1, EAX bit 4.
static bool ask_for_avxvnni(void) {
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1u);
}

// Leaf 7, EDX bits 24 and 25: tiles, and products of bytes. Linux gives a process the registers
// when it asks for them (Documentation/arch/x86/xstate.rst).
static bool ask_for_tiles(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 3u) == 3 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

// Asks once: CPUID takes microseconds in a virtual machine.
static bool ask_once(atomic_int *decided, bool (*ask)(void)) {
    int known = atomic_load_explicit(decided, memory_order_relaxed);
    if (LIKELY(known >= 0)) return known;
    known = ask();
    atomic_store_explicit(decided, known, memory_order_relaxed);
    return known;
}

static bool has_avxvnni(void) {
    static atomic_int decided = -1;
    return ask_once(&decided, ask_for_avxvnni);
}

static bool has_tiles(void) {
    static atomic_int decided = -1;
    return ask_once(&decided, ask_for_tiles);
}
#endif

// Whether the processor is asked for strips ahead of their use. Xeons read them faster that way;
// Zen 4 (family 19h with AVX-512) is faster without for one row, as it follows one stream by
// itself.
static bool wants_fetches(int64_t rows) {
#if defined(__x86_64__)
    return rows > 1 || cpu_isa() != CPU_ISA_AVX512 || !__builtin_cpu_is("amdfam19h");
#else
    (void)rows;
    return true;
#endif
}

const RepackedSimd *repacked_simd(void) {
#if defined(__x86_64__)
    if (cpu_isa() == CPU_ISA_AVX512 && __builtin_cpu_supports("avx512vnni"))
        return &repacked_simd_avx512vnni;
    if (cpu_isa() >= CPU_ISA_AVX2)
        return has_avxvnni() ? &repacked_simd_avxvnni : &repacked_simd_avx2;
#endif
    return &repacked_simd_base;
}

const PanelSimd *panel_simd(ScaleForm scales) {
    const RepackedSimd *simd = repacked_simd();
#if defined(__x86_64__)
    if (simd == &repacked_simd_avx512vnni)
        return has_tiles() && panel_simd_amx.product[ACTIVATIONS_16][scales]
                   ? &panel_simd_amx
                   : &panel_simd_avx512vnni;
    if (simd == &repacked_simd_avxvnni) return &panel_simd_avxvnni;
    if (simd == &repacked_simd_avx2) return &panel_simd_avx2;
#endif
    (void)simd;
    (void)scales;
    return &panel_simd_base;
}

// --- weights that are kept
// ------------------------------------------------------------------------

static size_t row_bytes_of(DType dtype, int64_t columns) {
    const DTypeInfo *info = &dtype_info[dtype];
    return (size_t)(columns / info->block_elements * info->block_bytes);
}

static void weight_release(void *companion) {
    RepackedWeight *weight = companion;
    buffer_release(weight->strips);
    free(weight);
}

static RepackedWeight *weight_new(Buffer *buffer, DType dtype, int64_t columns) {
    size_t row_bytes = row_bytes_of(dtype, columns);
    int64_t rows = (int64_t)(buffer->bytes / row_bytes);
    int64_t strips = (rows + STRIP_ROWS - 1) / STRIP_ROWS;
    size_t strip_bytes = repacked_strip_bytes(repacked_form(dtype), columns);
    size_t bytes = strip_bytes * (size_t)strips;
    if (buffer->bytes % row_bytes != 0 || !device_has_room_for_copy(buffer->device, bytes))
        return NULL;
    RepackedWeight *weight = memory_allocate_zeroed(1, sizeof *weight + (size_t)strips);
    Origin before = origin_current;
    origin_current = buffer->origin; // the line that holds the weight holds its strips
    Status status = buffer_new(buffer->device, bytes, &buffer->label, &weight->strips);
    origin_current = before;
    if (status != STATUS_OK) {
        error_clear();
        free(weight);
        return NULL;
    }
    weight->strips->resident = true; // products read it without its being an operand
    weight->dtype = dtype;
    weight->columns = columns;
    weight->strip_count = strips;
    weight->strip_bytes = strip_bytes;
    weight->row_bytes = row_bytes;
    atomic_init(&weight->left, strips);
    return weight;
}

RepackedWeight *repacked_weight(const TensorView *view) {
    Buffer *buffer = view->buffer;
    int64_t columns = view->dims[view->rank - 2];
    if (!buffer->import.evict || buffer->device->pool->settings.repack == REPACK_NEVER ||
        !repacked_form(view->dtype) || view->strides[view->rank - 2] != 1 || columns == 0)
        return NULL;
    if (!buffer->companion) {
        RepackedWeight *made = weight_new(buffer, view->dtype, columns);
        if (!made) return NULL;
        buffer_set_companion(buffer, made, made->strips->bytes, weight_release);
    }
    RepackedWeight *weight = buffer->companion;
    return weight->dtype == view->dtype && weight->columns == columns ? weight : NULL;
}

// The strip, repacked now if it was not; NULL while another thread does that.
static const char *weight_strip(RepackedWeight *weight, const Buffer *buffer, int64_t index) {
    char *strip = (char *)weight->strips->handle + (size_t)index * weight->strip_bytes;
    unsigned char state = STRIP_STORED;
    if (atomic_load_explicit(&weight->states[index], memory_order_acquire) == STRIP_REPACKED)
        return strip;
    if (!atomic_compare_exchange_strong(&weight->states[index], &state, STRIP_TAKEN))
        return state == STRIP_REPACKED ? strip : NULL;
    int64_t rows = (int64_t)(buffer->bytes / weight->row_bytes), row = index * STRIP_ROWS;
    const char *first = (const char *)buffer->handle + (size_t)row * weight->row_bytes;
    WeightRows stored = {weight->dtype, first, (int64_t)weight->row_bytes, weight->columns,
                         rows - row < STRIP_ROWS ? (int)(rows - row) : STRIP_ROWS};
    repack_strip(&stored, strip);
    if (UNLIKELY(file_map_faulted())) { // zeros in place of weights, with which the product fails
        atomic_store(&weight->states[index], STRIP_STORED);
        return strip;
    }
    atomic_store_explicit(&weight->states[index], STRIP_REPACKED, memory_order_release);
    if (atomic_fetch_sub(&weight->left, 1) % EVICT_STRIPS == 1)
        buffer->import.evict(buffer->handle, buffer->bytes);
    return strip;
}

static void repack_strips(void *context, int64_t begin, int64_t end) {
    const Buffer *buffer = context;
    for (int64_t index = begin; index < end; index++)
        weight_strip(buffer->companion, buffer, index);
}

void cpu_weight_loaded(const TensorView *weight) {
    if (weight->rank != 2) return;
    TensorView turned = *weight; // as a product takes it
    turned.dims[0] = weight->dims[1];
    turned.dims[1] = weight->dims[0];
    turned.strides[0] = weight->strides[1];
    turned.strides[1] = weight->strides[0];
    RepackedWeight *kept = repacked_weight(&turned);
    if (kept && !cpu_is_foretold(weight))
        cpu_parallel(kept->strip_count, 1, repack_strips, weight->buffer);
}

// --- products
// -------------------------------------------------------------------------------------

typedef struct RowsProduct {
    const MatrixProduct *product;
    ActivationForm form;
    void (*kernel)(const StripProduct *strip), (*panel_kernel)(const StripProduct *panel);
    ActivationGroup *activations; // [blocks of rows, groups, rows of a block]
    bool *finite;                 // of each row
    int64_t rows, groups, block;  // block: rows of one
    int64_t row_bytes;            // of b as it is stored
    size_t strip_bytes, panel_bytes;
    void (*widen)(const char *strip, int64_t groups, char *panel); // NULL: without panels
    int64_t at_once;     // rows of activations that a product of panels takes
    int64_t together;    // strips that are worked on together
    int64_t first_strip; // of the kept weight; -1: b begins inside one, or is not kept
} RowsProduct;

// The groups of row `row` are `block` apart.
static ActivationGroup *row_activations(const RowsProduct *rows, int64_t row) {
    int64_t first = row / rows->block * rows->block;
    return rows->activations + first * rows->groups + row - first;
}

static void round_rows(void *context, int64_t begin, int64_t end) {
    RowsProduct *rows = context;
    const Matrix *a = &rows->product->a;
    float *numbers = scratch_take((size_t)a->columns * sizeof(float));
    for (int64_t row = begin; row < end; row++) {
        matrix_load(a, COMPUTE_F32, row, row + 1, numbers);
        ActivationRow out = {row_activations(rows, row), rows->block};
        rows->finite[row] = repacked_simd()->round[rows->form](numbers, rows->groups, out);
    }
    scratch_give(numbers);
}

// Bytes of scratch for a strip and its panel.
static size_t working_bytes(const RowsProduct *rows) {
    return (rows->strip_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES + rows->panel_bytes;
}

// Strip `index` of b, from the kept weight or interleaved into `scratch`.
static const char *find_strip(const RowsProduct *rows, int64_t index, char *scratch) {
    const MatrixProduct *product = rows->product;
    if (rows->first_strip >= 0) {
        const char *kept =
            weight_strip(product->weight, product->weight_buffer, rows->first_strip + index);
        if (kept) return kept;
    }
    int64_t row = index * STRIP_ROWS, left = product->b.columns - row;
    WeightRows stored = {product->b.dtype, product->b.data + row * rows->row_bytes, rows->row_bytes,
                         product->b.rows, left < STRIP_ROWS ? (int)left : STRIP_ROWS};
    repack_strip(&stored, scratch);
    return scratch;
}

// What kernels read of strip `index`.
typedef struct StripCodes {
    int64_t index;
    const char *strip, *panel; // panel: undefined where there are none
} StripCodes;

static StripCodes find_codes(const RowsProduct *rows, int64_t index, char *scratch) {
    char *panel = scratch + working_bytes(rows) - rows->panel_bytes;
    StripCodes codes = {index, find_strip(rows, index, scratch), panel};
    if (rows->widen) rows->widen(codes.strip, rows->groups, panel);
    return codes;
}

typedef struct RowRange {
    int64_t begin, count;
} RowRange;

// 16 results for each of some rows of activations, to where the product wants them.
static void store_strip(const RowsProduct *rows, RowRange range, int64_t index,
                        const float *results) {
    const MatrixProduct *product = rows->product;
    ConvertStore store = cpu_convert()->store[COMPUTE_F32][product->out_dtype];
    int64_t column = index * STRIP_ROWS, left = product->b.columns - column;
    size_t item = dtype_size(product->out_dtype);
    for (int64_t i = 0; i < range.count; i++) {
        int64_t at =
            (range.begin + i) * product->out_row_stride + column * product->out_column_stride;
        store(product->out + (size_t)at * item, product->out_column_stride,
              results + i * STRIP_ROWS, left < STRIP_ROWS ? left : STRIP_ROWS);
    }
}

static void run_range(const RowsProduct *rows, RowRange range, const StripCodes *codes,
                      bool by_panel) {
    const MatrixProduct *product = rows->product;
    const int64_t index = codes->index;
    bool direct = product->out_dtype == DTYPE_FLOAT32 && product->out_column_stride == 1 &&
                  (index + 1) * STRIP_ROWS <= product->b.columns;
    float results[ROWS_OF_TILES * STRIP_ROWS];
    float *out =
        (float *)(void *)product->out + range.begin * product->out_row_stride + index * STRIP_ROWS;
    (by_panel ? rows->panel_kernel : rows->kernel)(&(StripProduct){
        .strip = by_panel ? codes->panel : codes->strip,
        .fetch = !by_panel && wants_fetches(range.count),
        .groups = rows->groups,
        .activations = row_activations(rows, range.begin),
        .activation_step = rows->block,
        .tokens = (int)range.count,
        .out = direct ? out : results,
        .out_stride = direct ? product->out_row_stride : STRIP_ROWS,
    });
    if (!direct) store_strip(rows, range, index, results);
}

// The panel takes all rows but a few that would leave a tile almost empty.
static void run_strip(const RowsProduct *rows, RowRange range, const StripCodes *codes) {
    int64_t few = rows->widen ? range.count % rows->at_once : range.count;
    if (rows->widen && few > TILE_REST_MAX) few = 0;
    ASSERT(range.count <= rows->block);
    range.count -= few;
    if (range.count > 0) run_range(rows, range, codes, true);
    if (few > 0) run_range(rows, (RowRange){range.begin + range.count, few}, codes, false);
}

// A few strips and some rows of activations stay in the second-level cache together.
static void run_strips(void *context, int64_t begin, int64_t end) {
    const RowsProduct *rows = context;
    const size_t bytes = working_bytes(rows);
    char *scratch = scratch_take(bytes * (size_t)rows->together);
    for (int64_t first = begin; first < end; first += rows->together) {
        StripCodes codes[STRIPS_MANY];
        int64_t count = end - first < rows->together ? end - first : rows->together;
        for (int64_t i = 0; i < count; i++)
            codes[i] = find_codes(rows, first + i, scratch + (size_t)i * bytes);
        for (int64_t row = 0; row < rows->rows; row += rows->block) {
            int64_t left = rows->rows - row;
            RowRange range = {row, left < rows->block ? left : rows->block};
            for (int64_t i = 0; i < count; i++) run_strip(rows, range, &codes[i]);
        }
    }
    scratch_give(scratch);
}

// Rows with infinite numbers or NaN: number by number.
static void run_other_rows(const RowsProduct *rows) {
    MatrixProduct part = *rows->product;
    size_t item = dtype_size(part.out_dtype);
    for (int64_t row = 0; row < rows->rows; row++) {
        if (rows->finite[row]) continue;
        part.a = matrix_part(rows->product->a, row, 0, 1, part.a.columns);
        part.out = rows->product->out + (size_t)(row * part.out_row_stride) * item;
        matrix_product_thin(&part);
    }
}

bool matrix_suits_repacked(const MatrixProduct *product) {
    return product->compute == COMPUTE_F32 && repacked_form(product->b.dtype) &&
           product->b.row_stride == 1;
}

// From how many rows on panels pay: earlier for strips whose groups have two sums, of which
// registers hold few. Where there are dot products of bytes, never for fast products, nor for
// strips whose codes are bytes.
static int64_t panel_rows(const RowsProduct *rows, const RepackedForm *form) {
    const bool halves = form->scales == SCALE_HALVES || form->scales == SCALE_HALVES_MINIMUM;
    if (panel_simd(form->scales)->codes == CODES_TILE) return TILE_TOKENS / 2;
    if (!repacked_simd()->has_byte_products) return halves ? 12 : 16;
    if (form->codes == CODES_8 || rows->product->fast) return INT64_MAX;
    return halves ? 24 : 64;
}

static void choose_panels(RowsProduct *rows, const RepackedForm *form) {
    const PanelSimd *panels = panel_simd(form->scales);
    const RepackedForm panel = repacked_panel_form(form, panels->codes);
    const bool tiles = panels->codes == CODES_TILE;
    rows->panel_kernel = panels->product[rows->form][form->scales];
    rows->widen = panels->widen[rows->product->b.dtype];
    rows->panel_bytes = repacked_strip_bytes(&panel, rows->product->b.rows);
    rows->at_once = tiles ? TILE_TOKENS : 1;
    if (tiles) rows->block = rows->rows > TILE_TOKENS ? ROWS_OF_TILES : TILE_TOKENS;
    if (!tiles) rows->form |= ACTIVATIONS_PAIRS;
    ASSERT(rows->panel_kernel && rows->widen);
    int64_t most = (int64_t)(PANELS_BYTES / rows->panel_bytes);
    if (most < STRIPS_MANY) rows->together = most > 0 ? most : 1;
}

// How strips are multiplied; rows->rows and rows->groups are known.
static void choose_kernel(RowsProduct *rows) {
    const DType dtype = rows->product->b.dtype;
    const RepackedForm *form = repacked_form(dtype);
    rows->form = rows->product->fast ? ACTIVATIONS_8 : ACTIVATIONS_16;
    rows->kernel = repacked_simd()->product[rows->form][dtype];
    rows->strip_bytes = repacked_strip_bytes(form, rows->product->b.rows);
    rows->together = STRIPS_MANY;
    rows->block = rows->rows < ROWS_MANY ? rows->rows : ROWS_MANY;
    if (rows->rows >= panel_rows(rows, form)) choose_panels(rows, form);
    ASSERT(rows->block <= ROWS_OF_TILES && rows->together <= STRIPS_MANY);
}

// How many strips a piece of work has: of many rows, those that are worked on together, unless that
// left threads without a few pieces each.
static int64_t strips_of_piece(const RowsProduct *rows, int64_t strips) {
    ASSERT(rows->rows > 0 && rows->together > 0);
    if (rows->rows == 1) return PIECE_PRODUCTS / (rows->product->b.rows * STRIP_ROWS + 1) + 1;
    int64_t share = strips / (PIECES_OF_THREAD * cpu_thread_count());
    return share < 1 ? 1 : share < STRIPS_MANY ? share : STRIPS_MANY;
}

void matrix_product_repacked(const MatrixProduct *product) {
    RowsProduct rows = {.product = product, .rows = product->a.rows, .first_strip = -1};
    const DType dtype = product->b.dtype;
    ASSERT(product->b.rows % GROUP_WEIGHTS == 0);
    rows.groups = product->b.rows / GROUP_WEIGHTS;
    choose_kernel(&rows);
    rows.row_bytes = (int64_t)row_bytes_of(dtype, product->b.column_stride);
    if (product->weight) {
        int64_t offset = product->b.data - (const char *)product->weight_buffer->handle;
        int64_t row = offset / (int64_t)product->weight->row_bytes;
        bool aligned = offset % (int64_t)product->weight->row_bytes == 0 && row % STRIP_ROWS == 0;
        if (aligned && product->b.column_stride == product->b.rows)
            rows.first_strip = row / STRIP_ROWS;
    }
    int64_t whole = (rows.rows + rows.block - 1) / rows.block * rows.block;
    rows.activations =
        memory_allocate_zeroed((size_t)(whole * rows.groups), sizeof *rows.activations);
    rows.finite = memory_allocate((size_t)rows.rows);
    cpu_parallel(rows.rows, PIECE_ROUNDED / (product->a.columns + 1) + 1, round_rows, &rows);
    int64_t strips = (product->b.columns + STRIP_ROWS - 1) / STRIP_ROWS;
    cpu_parallel(strips, strips_of_piece(&rows, strips), run_strips, &rows);
    if (!cpu_interrupted()) run_other_rows(&rows);
    free(rows.finite);
    free(rows.activations);
}
