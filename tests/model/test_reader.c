// One interface over all formats: the same tensors and texts come back from each, told by content,
// and what can stay in the mapped file does.
#include "tests/support/fixtures.h"

#include "device/statistics.h"
#include "model/model.h"
#include "model/tensor_file.h"
#include "tensor/op.h"

static char folder[] = "/tmp/tl_reader_XXXXXX";

static Tensor *make(DType dtype, int64_t count) {
    int64_t numbers[] = {1, 0, 1, 1, 0, 1, 1, 0};
    Tensor *tensor;
    Shape shape = {.rank = 2, .dims = {count / 2, 2}};
    assert_int_equal(tensor_from_integers(numbers, &shape, dtype, &tensor), STATUS_OK);
    return tensor;
}

static void write_file(const char *ending, const char *path) {
    NamedTensors tensors = {0};
    const TensorFormat *format;
    named_tensors_add(&tensors, "floats", make(DTYPE_FLOAT32, 6));
    named_tensors_add(&tensors, "ids", make(DTYPE_INT32, 8));
    if (strcmp(ending, ".gguf") != 0) named_tensors_add(&tensors, "flags", make(DTYPE_BOOL, 4));
    named_tensors_add_text(&tensors, "author", "nobody");
    assert_int_equal(tensor_format_find(path, &format), STATUS_OK);
    assert_int_equal(format->write(path, &tensors), STATUS_OK);
    named_tensors_free(&tensors);
}

static const StoredTensor *row_of(const Reader *reader, const char *name) {
    for (size_t i = 0; i < reader->tensors.count; i++)
        if (strcmp(reader->tensors.items[i].name, name) == 0) return &reader->tensors.items[i];
    return NULL;
}

static void check_rows(const Reader *reader, bool maps) {
    const StoredTensor *floats = row_of(reader, "floats"), *flags = row_of(reader, "flags");
    assert_string_equal(floats->type_name, "float32");
    assert_int_equal(floats->shape.rank, 2);
    assert_int_equal(floats->shape.dims[0], 3);
    assert_int_equal(floats->bytes, 24);
    assert_true(floats->usable);
    assert_true((floats->map != NULL) == maps);
    assert_true((floats->tensor == NULL) == maps);
    if (flags) assert_null(flags->map); // a file may have other bytes than 0 and 1
    assert_int_equal(reader_bytes(reader), 24 + 32 + (flags ? 4 : 0));
    const MetaValue *author = metadata_find(&reader->metadata, "author");
    assert_int_equal(author->type, META_STRING);
    assert_int_equal(author->as.string.length, 6);
    assert_memory_equal(author->as.string.bytes, "nobody", 6);
    assert_null(metadata_find(&reader->metadata, "autho"));
}

static void check_numbers(const char *path, bool maps) {
    Device *device;
    Model *model;
    Tensor *tensor;
    assert_int_equal(device_default(&device), STATUS_OK);
    assert_int_equal(model_open(path, NULL, &model), STATUS_OK);
    uint64_t before = pool_statistics(device).mapped_bytes;
    assert_int_equal(model_tensor(model, "floats", &tensor), STATUS_OK);
    bool host = strcmp(device->name, "cpu") == 0;
    assert_int_equal(pool_statistics(device).mapped_bytes - before, maps && host ? 24 : 0);
    double numbers[6];
    assert_int_equal(tensor_read_floats(tensor, numbers), STATUS_OK);
    assert_true(numbers[0] == 1 && numbers[1] == 0 && numbers[5] == 1);
    tensor_release(tensor);
    model_release(model);
}

static void test_formats_agree(void **state) {
    (void)state;
    static const struct {
        const char *ending;
        bool maps;
    } formats[] = {{".gguf", true}, {".safetensors", true}, {".npz", false}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char path[64], plain[64];
        Reader *reader;
        snprintf(path, sizeof path, "%s/file%s", folder, formats[i].ending);
        snprintf(plain, sizeof plain, "%s/file", folder);
        write_file(formats[i].ending, path);
        assert_int_equal(rename(path, plain), STATUS_OK); // the name says nothing
        assert_int_equal(reader_open(plain, &reader), STATUS_OK);
        check_rows(reader, formats[i].maps);
        reader_close(reader);
        check_numbers(plain, formats[i].maps);
        remove(plain);
    }
}

static void test_metadata_is_replaced(void **state) {
    (void)state;
    Metadata metadata = {0};
    metadata_put_string(&metadata, "a", "first");
    metadata_put_string(&metadata, "a", "second");
    assert_int_equal(metadata.count, 1);
    assert_int_equal(metadata_find(&metadata, "a")->as.string.length, 6);
    metadata_put(&metadata, "a", &(MetaValue){.type = META_INT8, .as.integer = -3});
    assert_true(meta_is_integer(metadata_find(&metadata, "a")));
    metadata_put(&metadata, "a", &(MetaValue){.type = META_BOOL, .as.integer = 1});
    assert_false(meta_is_integer(metadata_find(&metadata, "a")));
    assert_false(meta_is_integer(NULL));
    metadata_free(&metadata);
}

static int open_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static int close_device(void **state) {
    (void)state;
    Device *device = device_default_opened();
    Text report = {0};
    uint64_t leaked = device ? memory_check(device, &report) : 0;
    text_free(&report);
    device_default_close();
    return rmdir(folder) != 0 || leaked ? 1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_agree),
        cmocka_unit_test(test_metadata_is_replaced),
    };
    return cmocka_run_group_tests(tests, open_folder, close_device);
}
