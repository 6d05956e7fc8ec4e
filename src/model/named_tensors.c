// What all readers and writers of tensor files share.
#include "model/named_tensors.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "device/foretell.h"
#include "tensor/op.h"

void named_tensors_add(NamedTensors *tensors, const char *name, Tensor *tensor) {
    if (!tensors->index) tensors->index = key_index_new();
    VECTOR_PUSH(tensors, ((NamedTensor){memory_copy_string(name, strlen(name)), tensor}));
}

static bool find_place(const NamedTensors *tensors, const char *name, size_t *at) {
    if (tensors->count == 0) return false;
    ASSERT(key_index_count(tensors->index) <= tensors->count);
    for (size_t i = key_index_count(tensors->index); i < tensors->count; i++)
        key_index_add(tensors->index, tensors->items[i].name, strlen(tensors->items[i].name));
    return key_index_find(tensors->index, name, strlen(name), at);
}

Tensor *named_tensors_find(const NamedTensors *tensors, const char *name) {
    size_t at;
    return find_place(tensors, name, &at) ? tensors->items[at].tensor : NULL;
}

void named_tensors_remove(NamedTensors *tensors, const char *name) {
    NamedTensor *items = tensors->items;
    for (size_t i = 0; i < tensors->count; i++) {
        if (strcmp(items[i].name, name) != 0) continue;
        NamedTensor one = items[i];
        memmove(items + i, items + i + 1, (--tensors->count - i) * sizeof *items);
        tensor_release(one.tensor);
        free(one.name);
        key_index_clear(tensors->index);
        return;
    }
}

bool named_text_fits(const char *bytes, size_t length) {
    size_t bad;
    return strlen(bytes) == length && utf8_valid(bytes, length, &bad);
}

static NamedText *find_text(const NamedTexts *texts, const char *key) {
    size_t at;
    bool found = texts->index && key_index_find(texts->index, key, strlen(key), &at);
    return found ? &texts->items[at] : NULL;
}

static void add_text(NamedTexts *texts, const char *key, const char *text) {
    NamedText *there = find_text(texts, key);
    char *copy = memory_copy_string(text, strlen(text));
    if (there) {
        free(there->text);
        there->text = copy;
        return;
    }
    if (!texts->index) texts->index = key_index_new();
    key_index_add(texts->index, key, strlen(key));
    VECTOR_PUSH(texts, ((NamedText){memory_copy_string(key, strlen(key)), copy}));
}

static const char *text_of(const NamedTexts *texts, const char *key) {
    const NamedText *there = find_text(texts, key);
    return there ? there->text : NULL;
}

static void free_texts(NamedTexts *texts) {
    while (texts->count > 0) {
        NamedText *last = &texts->items[--texts->count];
        free(last->key);
        free(last->text);
    }
    VECTOR_FREE(texts);
    key_index_free(texts->index);
    texts->index = NULL;
}

void named_tensors_add_text(NamedTensors *tensors, const char *key, const char *text) {
    add_text(&tensors->texts, key, text);
}

const char *named_tensors_text(const NamedTensors *tensors, const char *key) {
    return text_of(&tensors->texts, key);
}

void named_tensors_add_unread(NamedTensors *tensors, const char *name, const char *type) {
    add_text(&tensors->unread, name, type);
}

const char *named_tensors_unread(const NamedTensors *tensors, const char *name) {
    return text_of(&tensors->unread, name);
}

Status named_tensors_fail_unread(const char *path, const char *name, const char *type) {
    return fail(STATUS_DTYPE, "tensor %.80s of %s is stored as %.40s, which is not supported", name,
                path, type);
}

void named_tensors_free(NamedTensors *tensors) {
    free_texts(&tensors->texts);
    free_texts(&tensors->unread);
    while (tensors->count > 0) {
        NamedTensor *last = &tensors->items[--tensors->count];
        tensor_release(last->tensor);
        free(last->name);
    }
    VECTOR_FREE(tensors);
    key_index_free(tensors->index);
    tensors->index = NULL;
}

bool stored_bytes(DType dtype, const Shape *shape, size_t *out) {
    ASSERT((unsigned)dtype < DTYPE_COUNT && shape->rank <= RANK_MAX);
    size_t bytes = dtype_size(dtype);
    *out = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 0) return true;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(bytes, (size_t)shape->dims[i], &bytes)) return false;
    *out = bytes;
    return bytes <= INT64_MAX;
}

Status stored_new(DType dtype, const Shape *shape, Tensor **out) {
    Device *device;
    TRY(device_default(&device));
    return tensor_new(device, dtype == DTYPE_BOOL ? DTYPE_UINT8 : dtype, shape, out);
}

Status stored_finish(Tensor *stored, DType dtype, Tensor **out) {
    Status status = tensor_cast(stored, dtype, out);
    tensor_release(stored);
    return status;
}

Status stored_download(Tensor *tensor, void **out, size_t *length) {
    Tensor *dense;
    foretell_shape_read(tensor->view.buffer); // who reads the file sees it
    TRY(tensor_contiguous(tensor, &dense));
    const DTypeInfo *info = &dtype_info[tensor_dtype(dense)];
    size_t bytes = (size_t)(tensor_count(dense) / info->block_elements) * (size_t)info->block_bytes;
    void *numbers = memory_allocate(bytes + 1);
    Status status = STATUS_OK;
    bool before = foretell_ignore_reads(true);
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    if (bytes > 0) status = buffer_download(dense->view.buffer, dense->view.offset, numbers, bytes);
    foretell_ignore_reads(before);
    if (foretelling() && foretell_reads() != reads) memset(numbers, FORETELL_FILLER, bytes);
    tensor_release(dense);
    if (status != STATUS_OK) {
        free(numbers);
        return status;
    }
    *out = numbers;
    *length = bytes;
    return STATUS_OK;
}
