// The table of formats.
#include "model/tensor_file.h"

#include "model/gguf_write.h"
#include "model/npy.h"
#include "model/npz.h"
#include "model/reader.h"
#include "model/safetensors.h"

static Status read_npy(const char *path, NamedTensors *out) {
    Tensor *tensor;
    *out = (NamedTensors){0};
    TRY(npy_read(path, &tensor));
    named_tensors_add(out, "", tensor);
    return STATUS_OK;
}

static Status write_npy(const char *path, const NamedTensors *tensors) {
    ASSERT(tensors->count == 1);
    return npy_write(path, tensors->items[0].tensor);
}

static Status read_safetensors(const char *path, NamedTensors *out) {
    return reader_read(path, safetensors_open, true, out);
}

static Status read_npz(const char *path, NamedTensors *out) {
    return reader_read(path, npz_open, true, out);
}

static Status read_gguf(const char *path, NamedTensors *out) {
    return reader_read(path, gguf_open, false, out);
}

static Status write_gguf(const char *path, const NamedTensors *tensors) {
    GgufWriter *writer = gguf_writer_new();
    Status status = STATUS_OK;
    for (size_t i = 0; i < tensors->count && status == STATUS_OK; i++) {
        Tensor *tensor = tensors->items[i].tensor;
        status = gguf_writer_add(writer, tensors->items[i].name, tensor, tensor_dtype(tensor));
    }
    for (size_t i = 0; i < tensors->texts.count && status == STATUS_OK; i++)
        status = gguf_writer_put_string(writer, tensors->texts.items[i].key,
                                        tensors->texts.items[i].text);
    if (status == STATUS_OK) status = gguf_writer_save(writer, path);
    gguf_writer_free(writer);
    return status;
}

static const TensorFormat formats[] = {
    {".safetensors", "tensor", false, read_safetensors, safetensors_write},
    {".npz", "arr_0", false, read_npz, npz_write},
    {".gguf", "tensor", true, read_gguf, write_gguf},
    {".npy", NULL, false, read_npy, write_npy},
};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

Status tensor_format_find(const char *path, const TensorFormat **out) {
    size_t length = strlen(path);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length > ending && strcmp(path + length - ending, formats[i].ending) == 0) {
            *out = &formats[i];
            return STATUS_OK;
        }
    }
    return fail(STATUS_VALUE,
                "%s: the names of files of tensors end in .safetensors, .npz, .gguf "
                "or .npy",
                path);
}

Status tensor_format_find_named(const char *path, const TensorFormat **out) {
    TRY(tensor_format_find(path, out));
    ASSERT(*out != NULL);
    if ((*out)->lone_name) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: a %s file holds one tensor, without a name", path,
                (*out)->ending);
}
