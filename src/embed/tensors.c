// Tensors over foreign memory, and the memory of tensors.
#include <stdlib.h>
#include <string.h>

#include "device/buffer.h"
#include "embed/embed.h"
#include "tensor/op.h"
#include "value/convert.h"

_Static_assert((int)TL_RANK_MAX == (int)RANK_MAX, "views hold every tensor");

// Whose memory it is.
typedef struct Lender {
    void (*release)(void *context);
    void *context;
} Lender;

static void give_back(void *owner) {
    Lender *lender = owner;
    if (lender->release) lender->release(lender->context);
    free(lender);
}

// The view that the memory amounts to, and how many bytes from the first element on it spans.
static Status describe(const tl_tensor *memory, TensorView *view, size_t *bytes) {
    *view = (TensorView){0};
    if (!memory->dtype || !dtype_find(memory->dtype, strlen(memory->dtype), &view->dtype) ||
        dtype_is_quant(view->dtype))
        return fail(STATUS_DTYPE, "\"%s\" is not a dtype of plain numbers",
                    memory->dtype ? memory->dtype : "NULL");
    if (memory->rank < 0 || memory->rank > RANK_MAX)
        return fail(STATUS_SHAPE, "rank %d is not between 0 and %d", memory->rank, RANK_MAX);
    size_t size = dtype_size(view->dtype), last = 0;
    bool empty = false, fits = true;
    view->rank = memory->rank;
    for (int i = 0; i < view->rank; i++) {
        int64_t dim = view->dims[i] = memory->shape[i],
                stride = view->strides[i] = memory->strides[i];
        if (dim < 0 || stride < 0)
            return fail(STATUS_SHAPE,
                        "dimension %d has size %lld and stride %lld; neither may be "
                        "negative",
                        i, (long long)dim, (long long)stride);
        empty = empty || dim == 0;
        size_t reach;
        fits = fits &&
               !__builtin_mul_overflow((size_t)(dim ? dim - 1 : 0), (size_t)stride, &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    fits = fits && last < SIZE_MAX / size - 1;
    if (!fits) return fail(STATUS_SHAPE, "the tensor is larger than memory can be");
    *bytes = empty ? 0 : (last + 1) * size;
    if (*bytes > 0 && (!memory->data || (uintptr_t)memory->data % size != 0))
        return fail(STATUS_VALUE, "the numbers must lie at a multiple of %zu bytes", size);
    return STATUS_OK;
}

static Status import(const tl_tensor *memory, const Lender *lender, Tensor **out) {
    TensorView view;
    size_t bytes = 0;
    TRY(describe(memory, &view, &bytes));
    Device *device;
    TRY(device_default(&device));
    Lender *owner = memory_allocate(sizeof *owner);
    *owner = *lender;
    BufferLabel label = {.dtype = view.dtype, .rank = view.rank};
    memcpy(label.dims, view.dims, sizeof label.dims);
    HostMemory host = {.bytes = memory->data, .count = bytes, .owner = owner, .release = give_back};
    Buffer *buffer;
    Status status = buffer_import(device, &host, &label, &buffer);
    if (status != STATUS_OK) {
        free(owner);
        return status;
    }
    Shape none = {.rank = 1, .dims = {0}};
    Tensor *whole = tensor_from_buffer(buffer, 0, view.dtype, &none);
    *out = tensor_view_of(whole, &view);
    tensor_release(whole);
    return STATUS_OK;
}

tl_status tl_from_memory(tl_runtime *runtime, const tl_tensor *memory,
                         void (*release)(void *context), void *context, tl_value **tensor) {
    Entry entry = embed_enter(runtime);
    Tensor *made;
    Status status = import(memory, &(Lender){release, context}, &made);
    if (status == STATUS_OK) *tensor = embed_give(runtime, value_tensor(made));
    return embed_finish(entry, status);
}

static Status tensor_of(const tl_value *value, Tensor **out) {
    if (value->value.kind != VALUE_TENSOR) return fail_kind("the value", "a tensor", value->value);
    *out = value->value.as.tensor;
    return tensor_materialize(*out);
}

static Status look(const tl_value *value, tl_tensor *out) {
    Tensor *tensor = NULL;
    TRY(tensor_of(value, &tensor));
    const TensorView *view = &tensor->view;
    const DTypeInfo *info = &dtype_info[view->dtype];
    if (dtype_is_quant(view->dtype))
        return fail(STATUS_DTYPE, "the numbers of a %s tensor lie in blocks", info->name);
    if (strcmp(tensor->device->backend->name, "cpu") != 0) {
        (void)fail(STATUS_DEVICE, "the tensor lies on %s, not in host memory",
                   tensor->device->name);
        return fail_help("tl_copy copies it");
    }
    TRY(buffer_hold(view->buffer));
    *out = (tl_tensor){.dtype = info->name, .rank = view->rank};
    memcpy(out->shape, view->dims, sizeof out->shape);
    memcpy(out->strides, view->strides, sizeof out->strides);
    out->data = (char *)view->buffer->handle + view->offset;
    return STATUS_OK;
}

tl_status tl_view(tl_value *tensor, tl_tensor *view) {
    Entry entry = embed_enter(tensor->owner);
    return embed_finish(entry, look(tensor, view));
}

static Status copy(const tl_value *value, void *target, size_t bytes) {
    Tensor *tensor = NULL;
    SCOPED_TENSOR(contiguous);
    TRY(tensor_of(value, &tensor));
    const DTypeInfo *info = &dtype_info[tensor_dtype(tensor)];
    size_t wanted =
        (size_t)tensor_count(tensor) / (size_t)info->block_elements * (size_t)info->block_bytes;
    if (bytes != wanted)
        return fail(STATUS_VALUE, "the tensor takes %zu bytes, not %zu", wanted, bytes);
    TRY(tensor_contiguous(tensor, &contiguous));
    TRY(tensor_materialize(contiguous));
    if (bytes == 0) return STATUS_OK;
    return buffer_download(contiguous->view.buffer, (size_t)contiguous->view.offset, target, bytes);
}

tl_status tl_copy(tl_value *tensor, void *target, size_t bytes) {
    Entry entry = embed_enter(tensor->owner);
    return embed_finish(entry, copy(tensor, target, bytes));
}
