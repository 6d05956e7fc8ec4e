// Quantised weights: dequantisation against arithmetic written out from the formats' definitions
// (the blocks of a fixture test the other formats, in tests/cli/test_quantised.py), and products
// against float64 loops over the dequantised numbers.
#include "device/cpu/quant.h"
#include "device/cpu/repack.h"
#include "device/cpu/repacked.h"
#include "device/statistics.h"
#include "tests/device/arrays.h"

// Where a block holds its float16 factors; -1: it has one only. That of MXFP4 is an exponent.
typedef struct Type {
    DType dtype;
    int factor, second;
} Type;
static const Type types[] = {
    {DTYPE_Q4_0, 0, -1},   {DTYPE_Q8_0, 0, -1},    {DTYPE_Q6_K, 208, -1},  {DTYPE_Q4_1, 0, 2},
    {DTYPE_Q5_0, 0, -1},   {DTYPE_Q5_1, 0, 2},     {DTYPE_Q2_K, 80, 82},   {DTYPE_Q3_K, 108, -1},
    {DTYPE_Q4_K, 0, 2},    {DTYPE_Q5_K, 0, 2},     {DTYPE_IQ4_NL, 0, -1},  {DTYPE_IQ4_XS, 0, -1},
    {DTYPE_TQ1_0, 52, -1}, {DTYPE_TQ2_0, 64, -1},  {DTYPE_IQ2_XXS, 0, -1}, {DTYPE_IQ2_XS, 0, -1},
    {DTYPE_IQ2_S, 0, -1},  {DTYPE_IQ3_XXS, 0, -1}, {DTYPE_IQ3_S, 0, -1},   {DTYPE_IQ1_S, 0, -1},
    {DTYPE_MXFP4, 0, -1},
};
enum { TYPE_COUNT = sizeof types / sizeof *types, TYPES_WITH_DEFINITION = 3 };

static double half_at(const uint8_t *bytes) {
    return half_to_float((uint16_t)(bytes[0] | bytes[1] << 8));
}

// Weight `i` of a block, by the definition of its format; exact in double.
static double weight_of(DType dtype, const uint8_t *block, int i) {
    if (dtype == DTYPE_Q4_0) {
        int byte = block[2 + i % 16];
        return half_at(block) * ((i < 16 ? byte & 15 : byte >> 4) - 8);
    }
    if (dtype == DTYPE_Q8_0) return half_at(block) * (int8_t)block[2 + i];
    int half = i / 128, inside = i % 128, lane = inside % 32, quarter = inside / 32;
    int low = block[half * 64 + quarter % 2 * 32 + lane];
    int high = block[128 + half * 32 + lane] >> quarter * 2 & 3;
    int value = ((quarter < 2 ? low & 15 : low >> 4) | high << 4) - 32;
    return half_at(block + 208) * (int8_t)block[192 + i / 16] * value;
}

// `rows` rows of k weights with random bits and factors of a sensible size.
static uint8_t *make_blocks(const Type *type, int64_t rows, int64_t k) {
    const DTypeInfo *info = &dtype_info[type->dtype];
    int64_t blocks = rows * k / info->block_elements;
    uint8_t *bytes = malloc((size_t)(blocks * info->block_bytes) + 1);
    for (int64_t i = 0; i < blocks * info->block_bytes; i++) bytes[i] = (uint8_t)array_random();
    for (int64_t i = 0; i < blocks; i++) {
        if (type->dtype == DTYPE_MXFP4) {
            bytes[i * info->block_bytes] = (uint8_t)(115 + array_random() % 9);
            continue;
        }
        uint16_t factor = half_from_float((float)array_random_real() * 0.01f);
        memcpy(bytes + i * info->block_bytes + type->factor, &factor, 2);
        if (type->second >= 0) memcpy(bytes + i * info->block_bytes + type->second, &factor, 2);
    }
    return bytes;
}

static void test_dequantize(void **state) {
    (void)state;
    for (int t = 0; t < TYPES_WITH_DEFINITION; t++) {
        const DTypeInfo *info = &dtype_info[types[t].dtype];
        enum { COUNT = 2048 };
        uint8_t *blocks = make_blocks(&types[t], 1, COUNT);
        float *out = malloc(COUNT * sizeof *out);
        quant_dequantize(types[t].dtype, blocks, out, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const uint8_t *block = blocks + i / info->block_elements * info->block_bytes;
            float want = (float)weight_of(types[t].dtype, block, i % info->block_elements);
            if (out[i] != want)
                fail_msg("%s %d: %.9g, not %.9g", info->name, i, (double)out[i], (double)want);
        }
        free(out);
        free(blocks);
    }
}

static bool on_cpu(void) {
    const char *device = getenv("TL_TEST_DEVICE");
    return !device || strcmp(device, "cpu") == 0;
}

// Other devices refuse what only the CPU decodes: models convert it when they are loaded.
static bool is_refused(DType dtype, Status status) {
    if (!dtype_info[dtype].host_only || on_cpu()) return false;
    assert_int_equal(status, STATUS_DTYPE);
    return true;
}

// What units of at most 1/16256 of the largest in a group of 32 activations leave uncertain in a
// product of k terms, where the CPU multiplies interleaved weights: six standard deviations of
// independent roundings.
static double rounding_of_activations(DType dtype, const double *activations, const float *weights,
                                      int64_t k) {
    if (!repacked_form(dtype) || !on_cpu()) return 0;
    double variance = 0;
    for (int64_t group = 0; group < k; group += GROUP_WEIGHTS) {
        double largest = 0, squares = 0;
        for (int64_t t = group; t < group + GROUP_WEIGHTS; t++) {
            double size = fabs(activations[t]);
            largest = size > largest ? size : largest;
            squares += (double)weights[t] * (double)weights[t];
        }
        variance += largest * largest * squares;
    }
    return 6 * 0.5 / 16256 / sqrt(3) * sqrt(variance);
}

// a[m, k] @ transpose(weight[n, k]); the bound is that of a float32 sum of k products.
static void check_product(const Type *type, DType dtype, Layout layout, int64_t m, int64_t n,
                          int64_t k, int64_t batch) {
    uint8_t *blocks = make_blocks(type, n * batch, k);
    float *weights = malloc((size_t)(n * k * batch) * sizeof *weights);
    quant_dequantize(type->dtype, blocks, weights, n * k * batch);
    Array a, out;
    array_make(&a, dtype, layout, 3, (int64_t[]){batch, m, k});
    array_make(&out, dtype, LAYOUT_PLAIN, 3, (int64_t[]){batch, m, n});
    array_fill_random(&a);
    Buffer buffer = {.handle = blocks};
    TensorView b = {.buffer = &buffer,
                    .dtype = type->dtype,
                    .rank = 3,
                    .dims = {batch, k, n},
                    .strides = {n * k, 1, k}};
    KernelCall call = {.n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = array_view(&a);
    call.inputs[1].view = &b;
    call.outputs[0] = array_view(&out);
    Status status = run_kernel(KERNEL_MATMUL, &call);
    bool refused = is_refused(type->dtype, status);
    if (!refused) assert_int_equal(status, STATUS_OK);
    double rounding = dtype == DTYPE_FLOAT16 ? 0x1p-11 : dtype == DTYPE_BFLOAT16 ? 0x1p-8 : 0x1p-24;
    int64_t step = m * n * k > 1 << 22 ? 41 : 1, results = refused ? 0 : batch * m * n;
    double *numbers = array_numbers(&a);
    for (int64_t index = 0; index < results; index += step) {
        const float *row = weights + (index / n / m * n + index % n) * k;
        const double *activations = numbers + index / n * k;
        double want = 0, size = 0;
        for (int64_t t = 0; t < k; t++) {
            double term = activations[t] * (double)row[t];
            want += term;
            size += fabs(term);
        }
        if (!(fabs(array_get(&out, index) - want) <=
              rounding * fabs(want) + 4 * 0x1p-24 * sqrt((double)k) * size + 0x1p-25 +
                  rounding_of_activations(type->dtype, activations, row, k)))
            fail_msg("%s by %s, m %ld n %ld k %ld: element %ld is %.9g, not %.9g",
                     dtype_name(dtype), dtype_name(type->dtype), (long)m, (long)n, (long)k,
                     (long)index, array_get(&out, index), want);
    }
    free(numbers);
    array_free(&a);
    array_free(&out);
    free(weights);
    free(blocks);
}

static void test_products(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 33};
    for (int t = 0; t < TYPE_COUNT; t++)
        for (int d = 0; d < 3; d++)
            for (int r = 0; r < 10; r++) {
                int sample = r + d + t;
                check_product(&types[t], dtypes[d], (Layout)(sample % LAYOUT_COUNT), rows[r],
                              1 + sample % 5 * 9, 256 * (1 + sample % 3), 1 + sample % 2);
            }
}

static void test_large_products(void **state) {
    (void)state;
    for (int64_t m = 1; m <= 2; m++) // more columns than anything takes at once
        check_product(&types[0], DTYPE_FLOAT32, LAYOUT_PLAIN, m, 330011, 32, 1);
    check_product(&types[2], DTYPE_FLOAT32, LAYOUT_PLAIN, 1, 70001, 256, 1);
    for (int t = 0; t < TYPE_COUNT; t++) {
        check_product(&types[t], DTYPE_FLOAT32, LAYOUT_PLAIN, 1, 1100, 2048, 1);
        check_product(&types[t], DTYPE_FLOAT16, LAYOUT_PLAIN, 12, 1100, 4352, 1); // two panels deep
        check_product(&types[t], DTYPE_FLOAT32, LAYOUT_PLAIN, 130, 264, 512, 2);
        if (t % 4 == 0) check_product(&types[t], DTYPE_FLOAT32, LAYOUT_PLAIN, 128, 256, 256, 1);
        check_product(&types[t], DTYPE_FLOAT32, LAYOUT_PLAIN, 1, 3, 32000 / 256 * 256, 1);
    }
}

// Rows whose numbers are of one size, or not numbers at all at a few places.
typedef struct Sizes {
    const char *name;
    double size, odd; // odd: what every 97th number is, where it is not 0
} Sizes;
static const Sizes row_sizes[] = {
    {"zeros", 0, 0},          {"huge", 1e34, 0},         {"tiny", 1e-28, 0},
    {"one large", 1e-3, 1e4}, {"infinite", 1, INFINITY}, {"infinite, below zero", 1e-20, -INFINITY},
    {"not a number", 1, NAN},
};

// Results are to be of the same class, and finite ones as near as those of check_product; what is
// smaller than the smallest normal number may be 0.
static void check_size(const Type *type, const Sizes *sizes, int64_t m) {
    enum { N = 33, K = 1280 };
    uint8_t *blocks = make_blocks(type, N, K);
    float *weights = malloc(sizeof(float) * N * K);
    quant_dequantize(type->dtype, blocks, weights, N * K);
    Array a, out;
    array_make(&a, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){m, K});
    array_make(&out, DTYPE_FLOAT32, LAYOUT_PLAIN, 2, (int64_t[]){m, N});
    for (int64_t i = 0; i < m * K; i++)
        array_set(&a, i,
                  sizes->odd != 0 && i % 97 == 41 ? sizes->odd : sizes->size * array_random_real());
    if (!isfinite(sizes->odd)) // a unit or two, not all of them
        for (int64_t i = 0; i < m * K; i++)
            if (i % K > 500) array_set(&a, i, sizes->size * array_random_real());
    Buffer buffer = {.handle = blocks};
    TensorView b = {
        .buffer = &buffer, .dtype = type->dtype, .rank = 2, .dims = {K, N}, .strides = {1, K}};
    KernelCall call = {.n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = array_view(&a);
    call.inputs[1].view = &b;
    call.outputs[0] = array_view(&out);
    Status status = run_kernel(KERNEL_MATMUL, &call);
    bool refused = is_refused(type->dtype, status);
    if (!refused) assert_int_equal(status, STATUS_OK);
    double *numbers = array_numbers(&a);
    for (int64_t index = 0; !refused && index < m * N; index++) {
        const double *activations = numbers + index / N * K;
        double want = 0, size = 0, found = array_get(&out, index);
        for (int64_t t = 0; t < K; t++) {
            double term = activations[t] * (double)weights[index % N * K + t];
            want += term;
            size += fabs(term);
        }
        double rounded =
            rounding_of_activations(type->dtype, activations, weights + index % N * K, K);
        bool same = isfinite(want)
                        ? fabs(found - want) <= 4 * 0x1p-24 * sqrt(K) * size + rounded + 0x1p-125
                    : isnan(want) ? isnan(found)
                                  : found == want;
        if (!same)
            fail_msg("a row by %s, %s, of %ld: element %ld is %.9g, not %.9g",
                     dtype_name(type->dtype), sizes->name, (long)m, (long)index, found, want);
    }
    free(numbers);
    array_free(&a);
    array_free(&out);
    free(weights);
    free(blocks);
}

static int evictions;

static void release_nothing(void *owner) {
    (void)owner;
}

static void count_eviction(const void *begin, size_t bytes) {
    (void)begin;
    (void)bytes;
    evictions++;
}

// One weight [80, K], rows `first` to `first + n` of it, by m rows of `numbers`: the bits of the
// results.
typedef struct Kept {
    Device *device;
    Buffer *weight;
    DType dtype;
} Kept;
enum { KEPT_ROWS = 83, KEPT_COLUMNS = 512, KEPT_TOKENS = 79 };

static size_t kept_row_bytes(DType dtype) {
    const DTypeInfo *info = &dtype_info[dtype];
    return (size_t)(KEPT_COLUMNS / info->block_elements * info->block_bytes);
}

static void multiply_kept(const Kept *kept, const float *numbers, int64_t m, int64_t first,
                          int64_t n, float *results) {
    size_t row_bytes = kept_row_bytes(kept->dtype);
    Buffer a_buffer = {.handle = (void *)(uintptr_t)numbers}, out_buffer = {.handle = results};
    TensorView a = {&a_buffer, 0, DTYPE_FLOAT32, 2, {m, KEPT_COLUMNS}, {KEPT_COLUMNS, 1}};
    TensorView b = {kept->weight,      (size_t)first * row_bytes, kept->dtype, 2,
                    {KEPT_COLUMNS, n}, {1, KEPT_COLUMNS}};
    TensorView out = {&out_buffer, 0, DTYPE_FLOAT32, 2, {m, n}, {n, 1}};
    KernelCall call = {.kernel = KERNEL_MATMUL, .n_inputs = 2, .n_outputs = 1, .op_name = "matmul"};
    call.inputs[0].view = &a;
    call.inputs[1].view = &b;
    call.outputs[0] = &out;
    assert_int_equal(kept->device->backend->run(kept->device, &call), STATUS_OK);
}

// Weights that are kept interleaved, a part of one, rows alone or together: the same bits.
static void check_kept(Device *device, const Type *type) {
    uint8_t *blocks = make_blocks(type, KEPT_ROWS, KEPT_COLUMNS);
    size_t bytes = KEPT_ROWS * kept_row_bytes(type->dtype);
    HostMemory memory = {blocks, bytes, NULL, release_nothing, NULL};
    Kept stored = {device, NULL, type->dtype}, kept = stored;
    assert_int_equal(buffer_import(device, &memory, NULL, &stored.weight), STATUS_OK);
    memory.evict = count_eviction;
    assert_int_equal(buffer_import(device, &memory, NULL, &kept.weight), STATUS_OK);
    static float numbers[KEPT_TOKENS * KEPT_COLUMNS], want[KEPT_TOKENS * KEPT_ROWS];
    static float found[KEPT_TOKENS * KEPT_ROWS];
    for (int i = 0; i < KEPT_TOKENS * KEPT_COLUMNS; i++) numbers[i] = (float)array_random_real();
    multiply_kept(&stored, numbers, KEPT_TOKENS, 0, KEPT_ROWS, want);
    evictions = 0;
    for (int64_t token = 0; token < KEPT_TOKENS; token++)
        multiply_kept(&kept, numbers + token * KEPT_COLUMNS, 1, 0, KEPT_ROWS,
                      found + token * KEPT_ROWS);
    assert_memory_equal(found, want, sizeof want);
    assert_int_equal(evictions, 1);
    assert_true(pool_statistics(device).repacked_bytes >= bytes);
    for (int64_t tokens = KEPT_TOKENS; tokens > 1; tokens = tokens * 2 / 5) { // 79, 31, 12, 4
        multiply_kept(&kept, numbers, tokens, 0, KEPT_ROWS, found);
        assert_memory_equal(found, want, (size_t)(tokens * KEPT_ROWS) * sizeof(float));
    }
    for (int64_t first = 16; first <= 21; first += 5) { // on a strip, and inside one
        multiply_kept(&kept, numbers, 3, first, 30, found);
        for (int64_t token = 0; token < 3; token++)
            assert_memory_equal(&found[token * 30], &want[token * KEPT_ROWS + first],
                                30 * sizeof(float));
    }
    buffer_release(kept.weight);
    buffer_release(stored.weight);
    assert_int_equal(pool_statistics(device).repacked_bytes, 0);
    assert_int_equal(pool_statistics(device).live_bytes, 0);
    free(blocks);
}

static void test_kept(void **state) {
    (void)state;
    Device *device;
    assert_int_equal(device_open("cpu", &device), STATUS_OK);
    for (int t = 0; t < TYPE_COUNT; t++)
        if (repacked_form(types[t].dtype)) check_kept(device, &types[t]);
    device_close(device);
}

// What fast products make of a row: integers of at most 127 per group of 32, and the scale that
// fits them best.
static void round_fast(const float *row, int64_t k, double *out) {
    for (int64_t group = 0; group < k; group += GROUP_WEIGHTS) {
        double products = 0, squares = 0;
        float largest = 0;
        for (int64_t t = group; t < group + GROUP_WEIGHTS; t++)
            largest = fabsf(row[t]) > largest ? fabsf(row[t]) : largest;
        for (int64_t t = group; t < group + GROUP_WEIGHTS; t++) {
            out[t] = largest > 0 ? (double)rintf(row[t] * (127 / largest)) : 0;
            products += out[t] * (double)row[t];
            squares += out[t] * out[t];
        }
        for (int64_t t = group; t < group + GROUP_WEIGHTS; t++)
            out[t] *= squares > 0 ? products / squares : 0;
    }
}

enum { FAST_ROWS = 67, FAST_COLUMNS = 37, FAST_DEPTH = 512 };

static void multiply_fast(const float *numbers, uint8_t *blocks, DType dtype, int64_t m,
                          float *results) {
    Buffer a_buffer = {.handle = (void *)(uintptr_t)numbers}, out_buffer = {.handle = results};
    Buffer weight = {.handle = blocks};
    TensorView a = {&a_buffer, 0, DTYPE_FLOAT32, 2, {m, FAST_DEPTH}, {FAST_DEPTH, 1}};
    TensorView b = {&weight, 0, dtype, 2, {FAST_DEPTH, FAST_COLUMNS}, {1, FAST_DEPTH}};
    TensorView out = {&out_buffer, 0, DTYPE_FLOAT32, 2, {m, FAST_COLUMNS}, {FAST_COLUMNS, 1}};
    KernelCall call = {.n_inputs = 2, .n_outputs = 1, .op_name = "matmul", .options.fast = true};
    call.inputs[0].view = &a;
    call.inputs[1].view = &b;
    call.outputs[0] = &out;
    assert_int_equal(run_kernel(KERNEL_MATMUL, &call), STATUS_OK);
}

// As near to the sums of the rounded numbers as float32 allows; rows alone or together, the same.
static void check_fast(const Type *type) {
    uint8_t *blocks = make_blocks(type, FAST_COLUMNS, FAST_DEPTH);
    static float weights[FAST_COLUMNS * FAST_DEPTH], numbers[FAST_ROWS * FAST_DEPTH];
    static float results[FAST_ROWS * FAST_COLUMNS], alone[FAST_COLUMNS];
    quant_dequantize(type->dtype, blocks, weights, FAST_COLUMNS * FAST_DEPTH);
    for (int i = 0; i < FAST_ROWS * FAST_DEPTH; i++) {
        numbers[i] = (float)array_random_real() * (i % 97 == 0 ? 50.0f : 1.0f);
        if (i / GROUP_WEIGHTS % 7 == 3) numbers[i] = 0;
    }
    multiply_fast(numbers, blocks, type->dtype, FAST_ROWS, results);
    for (int64_t row = 0; row < FAST_ROWS; row++) {
        double rounded[FAST_DEPTH];
        round_fast(numbers + row * FAST_DEPTH, FAST_DEPTH, rounded);
        for (int64_t column = 0; column < FAST_COLUMNS; column++) {
            double want = 0, size = 0, found = (double)results[row * FAST_COLUMNS + column];
            for (int64_t t = 0; t < FAST_DEPTH; t++) {
                double term = rounded[t] * (double)weights[column * FAST_DEPTH + t];
                want += term;
                size += fabs(term);
            }
            if (fabs(found - want) > 4 * 0x1p-24 * sqrt(FAST_DEPTH) * size)
                fail_msg("%s: row %ld, column %ld is %.9g, not %.9g", dtype_name(type->dtype),
                         (long)row, (long)column, found, want);
        }
        multiply_fast(numbers + row * FAST_DEPTH, blocks, type->dtype, 1, alone);
        assert_memory_equal(alone, results + row * FAST_COLUMNS, sizeof alone);
    }
    free(blocks);
}

static void test_fast(void **state) {
    (void)state;
    for (int t = 0; t < TYPE_COUNT && on_cpu(); t++)
        if (repacked_form(types[t].dtype)) check_fast(&types[t]);
}

// The products of tiles, with loops in place of the instructions (simd/tiles.h).
extern const PanelSimd panel_simd_emulated;
enum { TILED = 21, TILED_ROWS = 2 * TILE_TOKENS, TILED_DEPTH = 512 };

// Two digits of base 256 apart, from pairs of 16 bits.
static void pairs_to_digits(ActivationGroup *group) {
    static const int order[4] = {0, 2, 1, 3};
    int16_t pairs[GROUP_WEIGHTS];
    memcpy(pairs, group->digits, sizeof pairs);
    for (int i = 0; i < GROUP_WEIGHTS; i++) {
        int integer = pairs[i / 4 * 4 + order[i % 4]];
        group->digits[GROUP_WEIGHTS + i] = (int8_t)(integer & 255);
        group->digits[i] = (int8_t)((integer - group->digits[GROUP_WEIGHTS + i]) / 256);
    }
}

// To the bit those of strips, which the tests above compare with loops; nothing after the last row.
static void check_tiles(const Type *type, ActivationForm form) {
    const RepackedForm *weights = repacked_form(type->dtype);
    const RepackedForm panel_form = repacked_panel_form(weights, CODES_TILE);
    const int64_t groups = TILED_DEPTH / GROUP_WEIGHTS;
    uint8_t *blocks = make_blocks(type, STRIP_ROWS, TILED_DEPTH);
    char *strip = malloc(repacked_strip_bytes(weights, TILED_DEPTH));
    char *panel = malloc(repacked_strip_bytes(&panel_form, TILED_DEPTH));
    static ActivationGroup activations[TILED_DEPTH / GROUP_WEIGHTS][TILED_ROWS];
    float numbers[TILED_DEPTH], want[TILED][STRIP_ROWS], found[TILED + 1][STRIP_ROWS];
    WeightRows rows = {type->dtype, (const char *)blocks,
                       (int64_t)(dtype_info[type->dtype].block_bytes * TILED_DEPTH /
                                 dtype_info[type->dtype].block_elements),
                       TILED_DEPTH, STRIP_ROWS};
    repack_strip(&rows, strip);
    for (int t = 0; t < TILED; t++) {
        for (int i = 0; i < TILED_DEPTH; i++) numbers[i] = (float)array_random_real();
        ActivationRow out = {&activations[0][t], TILED_ROWS};
        assert_true(repacked_simd_base.round[form | ACTIVATIONS_PAIRS](numbers, groups, out));
    }
    StripProduct product = {strip,      true,  groups,  activations[0],
                            TILED_ROWS, TILED, want[0], STRIP_ROWS};
    repacked_simd_base.product[form][type->dtype](&product);
    for (int64_t g = 0; g < groups; g++)
        for (int t = 0; t < TILED; t++) pairs_to_digits(&activations[g][t]);
    for (int i = 0; i < STRIP_ROWS; i++) found[TILED][i] = 7;
    panel_simd_emulated.widen[type->dtype](strip, groups, panel);
    product.strip = panel;
    product.out = found[0];
    panel_simd_emulated.product[form][weights->scales](&product);
    if (memcmp(want, found, sizeof want) != 0) fail_msg("%s", dtype_name(type->dtype));
    for (int i = 0; i < STRIP_ROWS; i++) assert_true(found[TILED][i] == 7);
    free(blocks);
    free(strip);
    free(panel);
}

static void test_tiles(void **state) {
    (void)state;
    int checked = 0;
    for (int t = 0; t < TYPE_COUNT; t++) {
        const RepackedForm *form = repacked_form(types[t].dtype);
        if (!form || !panel_simd_emulated.product[ACTIVATIONS_16][form->scales]) continue;
        check_tiles(&types[t], ACTIVATIONS_16);
        check_tiles(&types[t], ACTIVATIONS_8);
        checked++;
    }
    assert_int_equal(checked, 12); // not Q2_K, Q3_K and Q6_K
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 3, 40};
    for (int t = 0; t < TYPE_COUNT; t++)
        for (size_t s = 0; s < sizeof row_sizes / sizeof *row_sizes; s++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                check_size(&types[t], &row_sizes[s], rows[r]);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dequantize),    cmocka_unit_test(test_products),
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_kept),
        cmocka_unit_test(test_fast),          cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_large_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(suite);
}
