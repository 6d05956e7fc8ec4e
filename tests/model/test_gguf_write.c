// The GGUF writer against the reader: every type of metadata, random files, blocks that equal the
// reference's, what is refused, and a failure that leaves the old file.
#include "tests/support/fixtures.h"

#include <math.h>

#include "base/half.h"
#include "base/memory.h"
#include "device/cpu/quant.h"
#include "device/statistics.h"
#include "model/gguf_write.h"
#include "model/model.h"
#include "model/quantise.h"
#include "model/tensor_write.h"
#include "tensor/op.h"

static char folder[] = "/tmp/tl_gguf_XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.gguf", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    remove(path);
    Device *device = device_default_opened();
    Text report = {0};
    uint64_t leaked = device ? memory_check(device, &report) : 0;
    text_free(&report);
    device_default_close();
    return rmdir(folder) != 0 || leaked ? 1 : 0; // no .part file is left
}

static Reader *written(GgufWriter *writer) {
    Reader *file = NULL;
    assert_int_equal(gguf_writer_save(writer, path), STATUS_OK);
    gguf_writer_free(writer);
    assert_int_equal(reader_open(path, &file), STATUS_OK);
    return file;
}

typedef struct Extreme {
    MetaType type;
    int64_t low, high;
} Extreme;
static const Extreme extremes[] = {
    {META_UINT8, 0, UINT8_MAX},
    {META_INT8, INT8_MIN, INT8_MAX},
    {META_UINT16, 0, UINT16_MAX},
    {META_INT16, INT16_MIN, INT16_MAX},
    {META_UINT32, 0, UINT32_MAX},
    {META_INT32, INT32_MIN, INT32_MAX},
    {META_UINT64, INT64_MIN, INT64_MAX},
    {META_INT64, INT64_MIN, INT64_MAX},
    {META_BOOL, 0, 1},
};
enum { EXTREME_COUNT = sizeof extremes / sizeof *extremes };

static void collect(void *context, size_t index, MetaValue value) {
    MetaValue *values = context;
    values[index] = value;
}

static void test_every_integer_type(void **state) {
    (void)state;
    GgufWriter *writer = gguf_writer_new();
    for (size_t i = 0; i < EXTREME_COUNT; i++) {
        char key[32];
        MetaValue both[2] = {{.type = extremes[i].type, .as.integer = extremes[i].low},
                             {.type = extremes[i].type, .as.integer = extremes[i].high}};
        snprintf(key, sizeof key, "one.%zu", i);
        assert_int_equal(gguf_writer_put(writer, key, &both[0]), STATUS_OK);
        snprintf(key, sizeof key, "two.%zu", i);
        assert_int_equal(gguf_writer_put_array(writer, key, extremes[i].type, both, 2), STATUS_OK);
    }
    Reader *file = written(writer);
    assert_int_equal(file_map_bytes(file->maps.items[0])[4], 3); // the version
    for (size_t i = 0; i < EXTREME_COUNT; i++) {
        char key[32];
        snprintf(key, sizeof key, "one.%zu", i);
        const MetaValue *one = metadata_find(&file->metadata, key);
        assert_int_equal(one->type, extremes[i].type);
        assert_int_equal(one->as.integer, extremes[i].low);
        snprintf(key, sizeof key, "two.%zu", i);
        const MetaValue *two = metadata_find(&file->metadata, key);
        MetaValue both[2];
        assert_int_equal(two->as.array.count, 2);
        meta_array_each(two, collect, both);
        assert_int_equal(both[0].as.integer, extremes[i].low);
        assert_int_equal(both[1].as.integer, extremes[i].high);
    }
    reader_close(file);
}

static void test_numbers_and_strings(void **state) {
    (void)state;
    static const char odd[] = "no UTF-8: \xFF, and a \0 inside";
    GgufWriter *writer = gguf_writer_new();
    MetaValue narrow = {.type = META_FLOAT32, .as.number = 0.1};
    MetaValue wide = {.type = META_FLOAT64, .as.number = 0.1};
    MetaValue text = {.type = META_STRING, .as.string = {odd, sizeof odd - 1}};
    assert_int_equal(gguf_writer_put(writer, "narrow", &narrow), STATUS_OK);
    assert_int_equal(gguf_writer_put(writer, "wide", &wide), STATUS_OK);
    assert_int_equal(gguf_writer_put(writer, "text", &text), STATUS_OK);
    assert_int_equal(gguf_writer_put_array(writer, "none", META_STRING, NULL, 0), STATUS_OK);
    assert_int_equal(gguf_writer_put_array(writer, "texts", META_STRING, &text, 1), STATUS_OK);
    Reader *file = written(writer);
    assert_true(metadata_find(&file->metadata, "narrow")->as.number == (double)0.1f);
    assert_true(metadata_find(&file->metadata, "wide")->as.number == 0.1);
    const MetaValue *back = metadata_find(&file->metadata, "text");
    assert_int_equal(back->as.string.length, sizeof odd - 1);
    assert_memory_equal(back->as.string.bytes, odd, sizeof odd - 1);
    assert_int_equal(metadata_find(&file->metadata, "none")->as.array.count, 0);
    MetaValue element;
    meta_array_each(metadata_find(&file->metadata, "texts"), collect, &element);
    assert_memory_equal(element.as.string.bytes, odd, sizeof odd - 1);
    reader_close(file);
}

// --- random files

static uint64_t random_state = 1;

static uint64_t next_random(uint64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

static const DType kept_types[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT64,
                                   DTYPE_INT8,    DTYPE_INT16,   DTYPE_INT32,    DTYPE_INT64};
enum { KEPT_COUNT = sizeof kept_types / sizeof *kept_types, TENSORS_MAX = 6, ELEMENTS_MAX = 4096 };

static Tensor *random_tensor(void) {
    Shape shape = {.rank = (int)next_random(5)};
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++) count *= shape.dims[d] = (int64_t)next_random(8);
    double numbers[ELEMENTS_MAX];
    for (int64_t i = 0; i < count; i++) numbers[i] = (double)next_random(200) - 100.0;
    Tensor *plain = NULL, *tensor = NULL;
    assert_int_equal(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &plain), STATUS_OK);
    assert_int_equal(tensor_cast(plain, kept_types[next_random(KEPT_COUNT)], &tensor), STATUS_OK);
    tensor_release(plain);
    return tensor;
}

static void expect_same(Model *model, const char *name, Tensor *tensor) {
    Tensor *back = NULL;
    double want[ELEMENTS_MAX], have[ELEMENTS_MAX];
    assert_int_equal(model_tensor(model, name, &back), STATUS_OK);
    assert_int_equal(tensor_dtype(back), tensor_dtype(tensor));
    assert_int_equal(tensor_rank(back), tensor_rank(tensor));
    for (int d = 0; d < tensor_rank(back); d++)
        assert_int_equal(back->view.dims[d], tensor->view.dims[d]);
    assert_int_equal(tensor_read_floats(back, have), STATUS_OK);
    assert_int_equal(tensor_read_floats(tensor, want), STATUS_OK);
    assert_memory_equal(have, want, (size_t)tensor_count(tensor) * sizeof *want);
    tensor_release(back);
}

// Every alignment; offsets are multiples of it.
static void one_random_file(void) {
    GgufWriter *writer = gguf_writer_new();
    Tensor *tensors[TENSORS_MAX];
    int64_t alignment = 8 << next_random(6);
    size_t count = next_random(TENSORS_MAX + 1);
    char name[32];
    assert_int_equal(gguf_writer_put_integer(writer, "general.alignment", META_UINT32, alignment),
                     STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        tensors[i] = random_tensor();
        snprintf(name, sizeof name, "t.%zu", i);
        assert_int_equal(gguf_writer_add(writer, name, tensors[i], tensor_dtype(tensors[i])),
                         STATUS_OK);
    }
    reader_close(written(writer));
    Model *model = NULL;
    assert_int_equal(model_open(path, NULL, &model), STATUS_OK);
    assert_int_equal(model_reader(model)->tensors.count, count);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "t.%zu", i);
        assert_string_equal(model_reader(model)->tensors.items[i].name, name);
        assert_int_equal(model_reader(model)->tensors.items[i].offset % (size_t)alignment, 0);
        expect_same(model, name, tensors[i]);
        tensor_release(tensors[i]);
    }
    model_release(model);
}

static void test_random_files(void **state) {
    (void)state;
    for (int i = 0; i < 200; i++) one_random_file();
}

// --- blocks

static const DType block_types[] = {DTYPE_Q4_0, DTYPE_Q4_1, DTYPE_Q5_0, DTYPE_Q5_1, DTYPE_Q8_0};
enum { BLOCK_TYPE_COUNT = sizeof block_types / sizeof *block_types };

// The fixture's blocks came from the reference: their numbers give the very same blocks again.
static void test_blocks_equal_the_reference(void **state) {
    (void)state;
    Model *model = NULL;
    assert_int_equal(model_open(fixture("models/quant-blocks.gguf"), NULL, &model), STATUS_OK);
    for (size_t i = 0; i < BLOCK_TYPE_COUNT; i++) {
        DType dtype = block_types[i];
        enum { COUNT = 3 * 512 };
        Tensor *blocks = NULL;
        assert_int_equal(model_tensor(model, dtype_name(dtype), &blocks), STATUS_OK);
        size_t bytes = COUNT / 32 * (size_t)dtype_info[dtype].block_bytes;
        uint8_t want[COUNT * 2], have[COUNT * 2];
        float numbers[COUNT];
        assert_int_equal(buffer_download(blocks->view.buffer, 0, want, bytes), STATUS_OK);
        quant_dequantize(dtype, want, numbers, COUNT);
        assert_true(quantise_row(dtype, numbers, COUNT, have));
        if (memcmp(have, want, bytes) != 0) fail_msg("%s differs", dtype_name(dtype));
        tensor_release(blocks);
    }
    model_release(model);
}

// Half a step of the levels away at most, and a little for the rounding of the scale.
static void test_blocks_are_near(void **state) {
    (void)state;
    static const float steps[BLOCK_TYPE_COUNT] = {1 / 8.0f, 2 / 15.0f, 1 / 16.0f, 2 / 31.0f,
                                                  1 / 127.0f};
    for (size_t i = 0; i < BLOCK_TYPE_COUNT; i++)
        for (int round = 0; round < 200; round++) {
            float numbers[32], back[32];
            float size = ldexpf(1.0f, (int)next_random(18) - 3);
            for (int j = 0; j < 32; j++)
                numbers[j] = size * ((float)next_random(20001) / 10000.0f - 1.0f);
            uint8_t block[64];
            assert_true(quantise_row(block_types[i], numbers, 32, block));
            quant_dequantize(block_types[i], block, back, 32);
            // The extreme of the other sign may miss a whole step: 16 levels lie around 0.
            for (int j = 0; j < 32; j++)
                if (fabsf(back[j] - numbers[j]) > size * steps[i] * 1.01f)
                    fail_msg("%s: %g became %g", dtype_name(block_types[i]), (double)numbers[j],
                             (double)back[j]);
        }
}

static void test_blocks_at_the_edges(void **state) {
    (void)state;
    float zeros[32] = {0}, tiny[32], huge[32], back[32];
    uint8_t block[64];
    for (int i = 0; i < 32; i++) {
        tiny[i] = 1e-42f * (float)i;
        huge[i] = i % 2 ? 3e38f : -3e38f;
    }
    for (size_t i = 0; i < BLOCK_TYPE_COUNT; i++) {
        assert_true(quantise_row(block_types[i], zeros, 32, block));
        quant_dequantize(block_types[i], block, back, 32);
        for (int j = 0; j < 32; j++) assert_true(back[j] == 0.0f);
        assert_true(quantise_row(block_types[i], tiny, 32, block));
        assert_false(quantise_row(block_types[i], huge, 32, block));
        zeros[7] = NAN;
        assert_false(quantise_row(block_types[i], zeros, 32, block));
        zeros[7] = INFINITY;
        assert_false(quantise_row(block_types[i], zeros, 32, block));
        zeros[7] = 0.0f;
    }
}

// --- what is refused

static Tensor *zeros_of(DType dtype, int rank, int64_t size) {
    Shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) shape.dims[d] = size;
    Device *device;
    Tensor *tensor = NULL;
    assert_int_equal(device_default(&device), STATUS_OK);
    assert_int_equal(tensor_new(device, dtype, &shape, &tensor), STATUS_OK);
    size_t bytes = tensor_stored_bytes(&shape, dtype);
    void *zeros = memory_allocate_zeroed(bytes, 1);
    assert_int_equal(buffer_upload(tensor->view.buffer, 0, zeros, bytes), STATUS_OK);
    free(zeros);
    return tensor;
}

static void expect_words(const char *message) {
    if (strcmp(error_current()->message, message) != 0)
        fail_msg("expected \"%s\", not \"%s\"", message, error_current()->message);
}

static void refuse_tensor(const char *name, Tensor *tensor, DType stored, const char *message) {
    GgufWriter *writer = gguf_writer_new();
    assert_int_not_equal(gguf_writer_add(writer, name, tensor, stored), STATUS_OK);
    expect_words(message);
    tensor_release(tensor);
    gguf_writer_free(writer);
}

static void test_refused_stacks(void **state) {
    (void)state;
    Tensor *parts[] = {zeros_of(DTYPE_FLOAT32, 2, 3), zeros_of(DTYPE_FLOAT32, 2, 4)};
    GgufWriter *writer = gguf_writer_new();
    assert_int_equal(gguf_writer_add_stack(writer, "t", parts, 2, DTYPE_FLOAT32), STATUS_SHAPE);
    expect_words("part 1 of tensor `t` is float32[4, 4], but the first is float32[3, 3]");
    assert_int_equal(gguf_writer_add_stack(writer, "t", parts, 1, DTYPE_Q8_0), STATUS_SHAPE);
    expect_words("tensor `t` is float32[1, 3, 3]; the rows of q8_0 are multiples of 32");
    for (int i = 0; i < 2; i++) tensor_release(parts[i]);
    gguf_writer_free(writer);
}

static void test_refused_tensors(void **state) {
    (void)state;
    refuse_tensor("t", zeros_of(DTYPE_FLOAT32, 5, 1), DTYPE_FLOAT32,
                  "tensor `t` is float32[1, 1, 1, 1, 1]; GGUF files hold at most 4 dimensions");
    refuse_tensor("t", zeros_of(DTYPE_FLOAT32, 2, 48), DTYPE_Q8_0,
                  "tensor `t` is float32[48, 48]; the rows of q8_0 are multiples of 32");
    refuse_tensor("t", zeros_of(DTYPE_UINT8, 1, 2), DTYPE_UINT8,
                  "GGUF files cannot hold uint8[2]: convert `t` first");
    refuse_tensor("t", zeros_of(DTYPE_BOOL, 1, 2), DTYPE_BOOL,
                  "GGUF files cannot hold bool[2]: convert `t` first");
    refuse_tensor("", zeros_of(DTYPE_FLOAT32, 1, 2), DTYPE_FLOAT32,
                  "\"\" is not a name of a tensor in a GGUF file: it is empty");
    char name[80];
    memset(name, 'n', 65);
    name[65] = '\0';
    Text message = {0};
    text_format(&message, "\"%s\" is not a name of a tensor in a GGUF file: it is too long", name);
    refuse_tensor(name, zeros_of(DTYPE_FLOAT32, 1, 2), DTYPE_FLOAT32, text_get(&message));
    text_free(&message);
    refuse_tensor("\xFF", zeros_of(DTYPE_FLOAT32, 1, 2), DTYPE_FLOAT32,
                  "\"\xFF\" is not a name of a tensor in a GGUF file: it is no UTF-8");
    GgufWriter *writer = gguf_writer_new();
    Tensor *tensor = zeros_of(DTYPE_FLOAT32, 1, 2);
    assert_int_equal(gguf_writer_add(writer, "t", tensor, DTYPE_FLOAT32), STATUS_OK);
    assert_int_equal(gguf_writer_add(writer, "t", tensor, DTYPE_FLOAT32), STATUS_NAME);
    expect_words("two tensors are called `t`");
    tensor_release(tensor);
    gguf_writer_free(writer);
}

static void test_refused_metadata(void **state) {
    (void)state;
    GgufWriter *writer = gguf_writer_new();
    assert_int_equal(gguf_writer_put_string(writer, "a", "b"), STATUS_OK);
    assert_int_equal(gguf_writer_put_string(writer, "a", "c"), STATUS_KEY);
    expect_words("metadata \"a\" is given twice");
    assert_int_equal(gguf_writer_put_string(writer, "", "c"), STATUS_VALUE);
    expect_words("\"\" is not a name of metadata in a GGUF file: it is empty");
    gguf_writer_free(writer);
    for (size_t i = 0; i < EXTREME_COUNT; i++) {
        if (extremes[i].high == INT64_MAX) continue;
        writer = gguf_writer_new();
        assert_int_equal(
            gguf_writer_put_integer(writer, "a", extremes[i].type, extremes[i].high + 1),
            STATUS_VALUE);
        if (extremes[i].type == META_UINT8)
            expect_words("metadata \"a\": 256 does not fit into 8 bits");
        gguf_writer_free(writer);
    }
    static const int64_t alignments[] = {0, 4, 12, 1 << 21};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        writer = gguf_writer_new();
        assert_int_equal(
            gguf_writer_put_integer(writer, "general.alignment", META_UINT32, alignments[i]),
            STATUS_VALUE);
        expect_words("metadata \"general.alignment\" must be a power of two from 8 to 1048576, as "
                     "uint32");
        gguf_writer_free(writer);
    }
}

// A tensor that turns out to hold nan fails in the middle of the file: the old one stays.
static void test_a_failure_leaves_the_old_file(void **state) {
    (void)state;
    GgufWriter *writer = gguf_writer_new();
    assert_int_equal(gguf_writer_put_string(writer, "general.name", "old"), STATUS_OK);
    reader_close(written(writer));
    Shape shape = {.rank = 1, .dims = {32}};
    double numbers[32] = {NAN};
    Tensor *good = zeros_of(DTYPE_FLOAT32, 2, 64), *bad = NULL;
    assert_int_equal(tensor_from_floats(numbers, &shape, DTYPE_FLOAT32, &bad), STATUS_OK);
    writer = gguf_writer_new();
    assert_int_equal(gguf_writer_add(writer, "good", good, DTYPE_FLOAT32), STATUS_OK);
    assert_int_equal(gguf_writer_add(writer, "bad", bad, DTYPE_Q8_0), STATUS_OK);
    assert_int_equal(gguf_writer_save(writer, path), STATUS_VALUE);
    expect_words("tensor `bad` has numbers that q8_0 cannot hold: nan, inf or too large");
    gguf_writer_free(writer);
    tensor_release(good);
    tensor_release(bad);
    Reader *file = NULL;
    assert_int_equal(reader_open(path, &file), STATUS_OK);
    assert_memory_equal(metadata_find(&file->metadata, "general.name")->as.string.bytes, "old", 3);
    reader_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_integer_type),
        cmocka_unit_test(test_numbers_and_strings),
        cmocka_unit_test(test_random_files),
        cmocka_unit_test(test_blocks_equal_the_reference),
        cmocka_unit_test(test_blocks_are_near),
        cmocka_unit_test(test_blocks_at_the_edges),
        cmocka_unit_test(test_refused_stacks),
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_refused_metadata),
        cmocka_unit_test(test_a_failure_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
