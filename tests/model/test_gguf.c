// The GGUF reader: block types equal their float32 twins to the bit, and no header can make it read
// or allocate beyond the file.
#include "tests/support/fixtures.h"

#include "base/memory.h"
#include "device/cpu/quant.h"
#include "device/statistics.h"
#include "model/gguf.h"
#include "model/model.h"
#include "tensor/op.h"

static void test_blocks_equal_their_twins(void **state) {
    (void)state;
    static const char *const names[] = {"q4_0", "q8_0", "q6_k", "f16", "bf16"};
    Model *model;
    assert_int_equal(model_open(fixture("models/quant-blocks.gguf"), NULL, &model), STATUS_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char twin_name[16];
        snprintf(twin_name, sizeof twin_name, "%s.f32", names[i]);
        Tensor *blocks, *twin, *converted;
        assert_int_equal(model_tensor(model, names[i], &blocks), STATUS_OK);
        assert_int_equal(model_tensor(model, twin_name, &twin), STATUS_OK);
        assert_int_equal(tensor_cast(blocks, DTYPE_FLOAT32, &converted), STATUS_OK);
        float expected[3 * 512], actual[3 * 512];
        assert_int_equal(tensor_count(twin), 3 * 512);
        assert_int_equal(buffer_download(twin->view.buffer, 0, expected, sizeof expected),
                         STATUS_OK);
        assert_int_equal(buffer_download(converted->view.buffer, 0, actual, sizeof actual),
                         STATUS_OK);
        if (memcmp(expected, actual, sizeof expected) != 0)
            fail_msg("%s differs from %s", names[i], twin_name);
        tensor_release(converted);
        tensor_release(twin);
        tensor_release(blocks);
    }
    model_release(model);
}

static void test_dimensions_are_reversed(void **state) {
    (void)state;
    Model *model;
    assert_int_equal(model_open(fixture("models/stories260K.gguf"), NULL, &model), STATUS_OK);
    Tensor *table;
    assert_int_equal(model_tensor(model, "token_embd.weight", &table), STATUS_OK);
    assert_int_equal(table->view.rank, 2);
    assert_int_equal(table->view.dims[0], 512);
    assert_int_equal(table->view.dims[1], 64);
    tensor_release(table);
    model_release(model);
}

// Every way of asking yields the same tensor; it outlives the model; nothing is copied.
static void test_tensors_are_made_once(void **state) {
    (void)state;
    Model *model;
    assert_int_equal(model_open(fixture("models/stories260K.gguf"), NULL, &model), STATUS_OK);
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    PoolStatistics before = pool_statistics(device);
    Tensor *first, *second;
    assert_int_equal(model_tensor(model, "output.weight", &first), STATUS_OK);
    assert_int_equal(model_tensor(model, "output.weight", &second), STATUS_OK);
    assert_ptr_equal(first, second);
    PoolStatistics after = pool_statistics(device);
    bool mapped = strcmp(device->name, "cpu") == 0; // a device with memory of its own holds a copy
    int64_t bytes = 512 * 64 * 4;
    assert_int_equal(after.live_bytes - before.live_bytes, mapped ? 0 : bytes);
    assert_int_equal(after.mapped_bytes - before.mapped_bytes, mapped ? bytes : 0);
    tensor_release(second);
    model_release(model);
    double numbers[512 * 64];
    assert_int_equal(tensor_read_floats(first, numbers), STATUS_OK);
    assert_true(numbers[64] != 0.0);
    tensor_release(first);
    assert_int_equal(pool_statistics(device).mapped_bytes, before.mapped_bytes);
}

static void test_unknown_names_suggest(void **state) {
    (void)state;
    Model *model;
    Tensor *tensor;
    assert_int_equal(model_open(fixture("models/stories260K.gguf"), NULL, &model), STATUS_OK);
    assert_int_equal(model_tensor(model, "output.wieght", &tensor), STATUS_NAME);
    assert_non_null(strstr(error_current()->help, "output.weight"));
    model_release(model);
}

static void test_conversion_on_access(void **state) {
    (void)state;
    Model *model;
    Tensor *tensor;
    ModelOptions options = {.convert = true, .dtype = DTYPE_FLOAT32};
    assert_int_equal(model_open(fixture("models/mini-q8_0.gguf"), &options, &model), STATUS_OK);
    assert_int_equal(model_tensor(model, "blk.0.attn_q.weight", &tensor), STATUS_OK);
    assert_int_equal(tensor_dtype(tensor), DTYPE_FLOAT32);
    tensor_release(tensor);
    model_release(model);
}

// --- headers that lie

typedef struct Bytes {
    uint8_t bytes[512];
    size_t length;
} Bytes;

static void put(Bytes *file, const void *bytes, size_t length) {
    memcpy(file->bytes + file->length, bytes, length);
    file->length += length;
}

static void put_u32(Bytes *file, uint32_t value) {
    put(file, &value, sizeof value);
}
static void put_u64(Bytes *file, uint64_t value) {
    put(file, &value, sizeof value);
}

static void put_string(Bytes *file, const char *string) {
    put_u64(file, strlen(string));
    put(file, string, strlen(string));
}

static Bytes header(uint64_t tensors, uint64_t pairs) {
    Bytes file = {.length = 0};
    put(&file, "GGUF", 4);
    put_u32(&file, 3);
    put_u64(&file, tensors);
    put_u64(&file, pairs);
    return file;
}

static void put_tensor(Bytes *file, const char *name, uint64_t elements, uint64_t offset) {
    put_string(file, name);
    put_u32(file, 1);
    put_u64(file, elements);
    put_u32(file, 0);
    put_u64(file, offset);
}

static void pad(Bytes *file, size_t length) {
    while (file->length < length) file->bytes[file->length++] = 0;
}

static void expect_refusal(const Bytes *file, const char *message) {
    Reader parsed = {0};
    assert_int_equal(gguf_parse(&parsed, file->bytes, file->length, "x.gguf"), STATUS_FORMAT);
    reader_clear(&parsed);
    if (!strstr(error_current()->message, message))
        fail_msg("expected \"%s\" in \"%s\"", message, error_current()->message);
}

static void test_lying_headers(void **state) {
    (void)state;
    Bytes file = {.length = 0};
    expect_refusal(&file, "is not a GGUF file");
    put(&file, "GGUX", 4);
    expect_refusal(&file, "is not a GGUF file");

    file = header(0, 0);
    file.bytes[4] = 9;
    expect_refusal(&file, "is GGUF version 9");
    file.bytes[4] = 0;
    file.bytes[7] = 3;
    expect_refusal(&file, "big-endian");

    file = header(0, 1);
    expect_refusal(&file, "the file ends at byte 24");
    put_u64(&file, UINT64_MAX);
    expect_refusal(&file, "claims 18446744073709551615 bytes");

    file = header(0, 1);
    put_string(&file, "key");
    put_u32(&file, 77);
    expect_refusal(&file, "\"key\" has unknown type 77");

    file = header(0, 1);
    put_string(&file, "key");
    put_u32(&file, META_ARRAY);
    put_u32(&file, META_FLOAT32);
    put_u64(&file, 1ull << 62);
    expect_refusal(&file, "claims 4611686018427387904 elements");

    file = header(0, 1);
    put_string(&file, "key");
    put_u32(&file, META_ARRAY);
    put_u32(&file, META_ARRAY);
    expect_refusal(&file, "elements of unknown type 9");

    file = header(0, 1);
    put_string(&file, "general.alignment");
    put_u32(&file, META_UINT32);
    put_u32(&file, 24);
    expect_refusal(&file, "general.alignment is not a power of two");

    file = header(0, 3);
    for (int i = 0; i < 3; i++) {
        put_string(&file, i == 1 ? "other" : "key");
        put_u32(&file, META_UINT32);
        put_u32(&file, 24);
    }
    expect_refusal(&file, "two metadata values are called key");
}

static void join_strings(void *context, size_t index, MetaValue value) {
    (void)index;
    text_format(context, "%.*s;", (int)value.as.string.length, value.as.string.bytes);
}

static void test_counts_of_version_1_have_32_bits(void **state) {
    (void)state;
    Bytes file = {.length = 0};
    const char *const strings[] = {"k", "one", "three"};
    put(&file, "GGUF", 4);
    put_u32(&file, 1);
    put_u32(&file, 0); // tensors
    put_u32(&file, 1); // pairs
    for (size_t i = 0; i < 3; i++) {
        put_u32(&file, (uint32_t)strlen(strings[i]));
        put(&file, strings[i], strlen(strings[i]));
        if (i > 0) continue; // the key, then an array of two strings
        put_u32(&file, META_ARRAY);
        put_u32(&file, META_STRING);
        put_u32(&file, 2);
    }
    Reader parsed = {0};
    assert_int_equal(gguf_parse(&parsed, file.bytes, file.length, "x.gguf"), STATUS_OK);
    Text joined = {0};
    meta_array_each(metadata_find(&parsed.metadata, "k"), join_strings, &joined);
    assert_string_equal(text_get(&joined), "one;three;");
    text_free(&joined);
    reader_clear(&parsed);
}

static void test_lying_tensors(void **state) {
    (void)state;
    Bytes file = header(1, 0);
    put_string(&file, "t");
    put_u32(&file, 9);
    expect_refusal(&file, "tensor t claims 9 dimensions");

    file = header(1, 0);
    put_string(&file, "t");
    put_u32(&file, 2);
    put_u64(&file, 1ull << 40);
    put_u64(&file, 1ull << 40);
    expect_refusal(&file, "too large");

    file = header(1, 0);
    put_string(&file, "t");
    put_u32(&file, 3);
    put_u64(&file, 0); // does not excuse the others
    put_u64(&file, 1ull << 40);
    put_u64(&file, 1ull << 40);
    expect_refusal(&file, "the dimensions of tensor t are too large");

    file = header(1, 0);
    put_tensor(&file, "t", 1000, 0);
    pad(&file, 128);
    expect_refusal(&file, "lies beyond the end of the file (128 bytes)");

    file = header(1, 0);
    put_tensor(&file, "t", 4, UINT64_MAX - 31);
    pad(&file, 128);
    expect_refusal(&file, "lies beyond the end");

    file = header(1, 0);
    put_tensor(&file, "t", 4, 4);
    pad(&file, 128);
    expect_refusal(&file, "not aligned to 32 bytes");

    file = header(2, 0);
    put_tensor(&file, "a", 16, 0);
    put_tensor(&file, "b", 16, 32);
    pad(&file, 256);
    expect_refusal(&file, "tensors a and b overlap");

    file = header(2, 0);
    put_tensor(&file, "a", 4, 0);
    put_tensor(&file, "a", 4, 32);
    pad(&file, 256);
    expect_refusal(&file, "two tensors are called a");
}

static void test_every_truncation_is_refused(void **state) {
    (void)state;
    FileMap *map;
    assert_int_equal(file_map_open(fixture("models/stories260K.gguf"), &map), STATUS_OK);
    for (size_t length = 0; length < 16384; length += 7) {
        uint8_t *copy = memory_allocate(length); // its own block, so that ASan sees a byte too far
        memcpy(copy, file_map_bytes(map), length);
        Reader file = {0};
        assert_int_equal(gguf_parse(&file, copy, length, "cut.gguf"), STATUS_FORMAT);
        reader_clear(&file);
        free(copy);
    }
    file_map_release(map);
}

static int close_device(void **state) {
    (void)state;
    Device *device = device_default_opened();
    Text report = {0};
    uint64_t leaked = device ? memory_check(device, &report) : 0;
    text_free(&report);
    device_default_close();
    return leaked ? 1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_equal_their_twins),
        cmocka_unit_test(test_dimensions_are_reversed),
        cmocka_unit_test(test_tensors_are_made_once),
        cmocka_unit_test(test_unknown_names_suggest),
        cmocka_unit_test(test_conversion_on_access),
        cmocka_unit_test(test_lying_headers),
        cmocka_unit_test(test_counts_of_version_1_have_32_bits),
        cmocka_unit_test(test_lying_tensors),
        cmocka_unit_test(test_every_truncation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, close_device);
}
