// Models: the tensor table of a file with tensors made on first access.
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "catalog/catalog.h"
#include "model/model_table.h"
#include "tensor/op.h"

// Every tensor's name and every dotted prefix of one ("blk", "blk.0", "blk.0.attn_q").
typedef struct NameEntry {
    char *name;
    const GgufTensor *tensor; // NULL for a prefix only
    Tensor *stored;           // of named tensors: as the file has it; NULL once loaded
    Tensor *loaded;           // once asked for: one reference
    UT_hash_handle hh;
} NameEntry;

struct Model {
    int refs;
    GgufFile *file;
    char *path;
    ModelOptions options;
    NameEntry *names;
};

static NameEntry *name_entry(Model *model, const char *name, size_t length) {
    NameEntry *entry;
    HASH_FIND(hh, model->names, name, length, entry);
    if (entry) return entry;
    entry = memory_allocate_zeroed(1, sizeof *entry);
    entry->name = memory_copy_string(name, length);
    HASH_ADD_KEYPTR(hh, model->names, entry->name, length, entry);
    return entry;
}

static void index_names(Model *model) {
    for (size_t i = 0; i < model->file->tensor_count; i++) {
        const GgufTensor *tensor = &model->file->tensors[i];
        for (const char *dot = strchr(tensor->name, '.'); dot; dot = strchr(dot + 1, '.'))
            name_entry(model, tensor->name, (size_t)(dot - tensor->name));
        name_entry(model, tensor->name, strlen(tensor->name))->tensor = tensor;
    }
}

// A model that the device could never hold is refused before anything is loaded.
static Status check_size(const GgufFile *file, const char *path) {
    Device *device;
    TRY(device_default(&device));
    uint64_t bytes = 0;
    for (size_t i = 0; i < file->tensor_count; i++) bytes += file->tensors[i].bytes;
    if (device->memory_limit == 0 || bytes <= device->memory_limit) return STATUS_OK;
    return fail(STATUS_MEMORY, "%s needs %.2f MB for its tensors, but %s has %.2f MB", path,
                (double)bytes / 1048576.0, device->name, (double)device->memory_limit / 1048576.0);
}

static Model *model_new(const char *path, const ModelOptions *options, GgufFile *file) {
    Model *model = memory_allocate_zeroed(1, sizeof *model);
    *model = (Model){.refs = 1, .file = file, .path = memory_copy_string(path, strlen(path))};
    if (options) model->options = *options;
    index_names(model);
    return model;
}

static Status open_gguf(const char *path, const ModelOptions *options, Model **out) {
    GgufFile *file;
    TRY(gguf_open(path, &file));
    Status status = check_size(file, path);
    if (status == STATUS_OK)
        *out = model_new(path, options, file);
    else
        gguf_close(file);
    return status;
}

static Status open_table(const char *path, const ModelOptions *options, const FileMap *map,
                         Model **out) {
    NamedTensors tensors = {0};
    GgufFile *table = NULL;
    Status status = model_table_read(path, map, &tensors, &table);
    if (status == STATUS_OK) {
        *out = model_new(path, options, table);
        for (size_t i = 0; i < tensors.count; i++) {
            NameEntry *entry =
                name_entry(*out, tensors.items[i].name, strlen(tensors.items[i].name));
            tensor_release(entry->stored); // a name that came twice: the last counts
            entry->stored = tensor_retain(tensors.items[i].tensor);
        }
    }
    named_tensors_free(&tensors);
    return status;
}

Status model_open(const char *path, const ModelOptions *options, Model **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Status status = model_is_table(file_map_bytes(map), file_map_length(map))
                        ? open_table(path, options, map, out)
                        : open_gguf(path, options, out);
    file_map_release(map);
    return status;
}

Model *model_retain(Model *model) {
    model->refs++;
    return model;
}

void model_release(Model *model) {
    if (--model->refs > 0) return;
    NameEntry *entry, *next;
    HASH_ITER(hh, model->names, entry, next) {
        HASH_DEL(model->names, entry);
        tensor_release(entry->stored);
        tensor_release(entry->loaded);
        free(entry->name);
        free(entry);
    }
    gguf_close(model->file);
    free(model->path);
    free(model);
}

const GgufFile *model_file(const Model *model) {
    return model->file;
}

const char *model_path(const Model *model) {
    return model->path;
}

static NameEntry *find_name(const Model *model, const char *name) {
    NameEntry *entry;
    HASH_FIND_STR(model->names, name, entry);
    return entry;
}

bool model_has_tensor(const Model *model, const char *name) {
    const NameEntry *entry = find_name(model, name);
    return entry && entry->tensor;
}

static Status unknown_tensor(const Model *model, const char *name) {
    size_t count = model->file->tensor_count;
    const char **names = memory_allocate(count * sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = model->file->tensors[i].name;
    const char *nearest = catalog_nearest(name, names, count);
    Status status = fail(STATUS_NAME, "%s has no tensor called \"%s\"", model->path, name);
    if (nearest)
        fail_help("there is \"%s\"", nearest);
    else
        fail_help("m.tensors() lists the %zu tensors of the model", count);
    free(names);
    return status;
}

static void release_map(void *map) {
    file_map_release(map);
}

// The tensor over the mapped bytes.
static Status import_tensor(Model *model, const GgufTensor *tensor, Tensor **out) {
    if (!tensor->has_dtype)
        return fail(STATUS_DTYPE, "tensor %s of %s is stored as %s, which tl cannot compute with",
                    tensor->name, model->path, tensor->type_name);
    Device *device;
    TRY(device_default(&device));
    BufferLabel label = {.dtype = tensor->dtype, .rank = tensor->shape.rank};
    memcpy(label.dims, tensor->shape.dims, sizeof label.dims);
    Buffer *buffer;
    TRY(buffer_import(device, model->file->bytes + tensor->offset, tensor->bytes, &label,
                      file_map_retain(model->file->map), release_map, &buffer));
    *out = tensor_from_buffer(buffer, 0, tensor->dtype, &tensor->shape);
    return STATUS_OK;
}

static bool wants_conversion(const Model *model, DType dtype) {
    return model->options.convert && dtype != model->options.dtype &&
           (dtype_is_float(dtype) || dtype_is_quant(dtype));
}

static Status load_tensor(Model *model, NameEntry *entry, Tensor **out) {
    if (!entry->loaded) {
        Tensor *imported = entry->stored;
        if (!imported) TRY(import_tensor(model, entry->tensor, &imported));
        if (wants_conversion(model, tensor_dtype(imported))) {
            Status status = tensor_cast(imported, model->options.dtype, &entry->loaded);
            if (status != STATUS_OK && entry->stored) return status;
            tensor_release(imported);
            TRY(status);
        } else {
            entry->loaded = imported;
        }
        entry->stored = NULL;
    }
    *out = tensor_retain(entry->loaded);
    return STATUS_OK;
}

Status model_tensor(Model *model, const char *name, Tensor **out) {
    NameEntry *entry = find_name(model, name);
    if (!entry || !entry->tensor) return unknown_tensor(model, name);
    return load_tensor(model, entry, out);
}

Status model_add_tensors(Model *model, NamedTensors *out) {
    for (size_t i = 0; i < model->file->tensor_count; i++) {
        const char *name = model->file->tensors[i].name;
        Tensor *tensor = NULL;
        TRY(model_tensor(model, name, &tensor));
        named_tensors_add(out, name, tensor);
    }
    return STATUS_OK;
}

Status model_step(Model *model, const char *name, Tensor **out) {
    NameEntry *entry = find_name(model, name);
    *out = NULL;
    if (!entry) return unknown_tensor(model, name);
    return entry->tensor ? load_tensor(model, entry, out) : STATUS_OK;
}
