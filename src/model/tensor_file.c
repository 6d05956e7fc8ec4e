// The table of formats.
#include "model/tensor_file.h"

#include "model/npy.h"
#include "model/npz.h"
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

static const TensorFormat formats[] = {
    {".safetensors", "tensor", safetensors_read, safetensors_write},
    {".npz", "arr_0", npz_read, npz_write},
    {".npy", NULL, read_npy, write_npy},
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
    return fail(STATUS_VALUE, "%s: the names of files of tensors end in .safetensors, .npz or .npy",
                path);
}
