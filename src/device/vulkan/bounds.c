// What is known of integers that fill a buffer, from where they came: indexes that are in
// range by the way they were made need not be read before they are used.
#include <string.h>

#include "device/vulkan/bounds.h"
#include "device/vulkan/core.h"
#include "device/vulkan/kernels/kernels.h"

enum { LOOKED_AT_BYTES_MAX = 64 << 10 };

void vulkan_bound(const TensorView *view, int64_t least, int64_t most) {
    if (!view_fills_buffer(view)) return;
    VulkanDevice *vulkan = vulkan_of(view->buffer->device);
    VulkanMemory *memory = view->buffer->handle;
    if (!memory) return;
    pthread_mutex_lock(&vulkan->lock);
    memory->bounds = (VulkanBounds){true, view->dtype, least, most};
    pthread_mutex_unlock(&vulkan->lock);
}

bool vulkan_is_bound(const TensorView *view, int64_t least, int64_t most) {
    VulkanDevice *vulkan = vulkan_of(view->buffer->device);
    const VulkanMemory *memory = view->buffer->handle;
    if (!memory) return false; // moved out of the device's memory
    pthread_mutex_lock(&vulkan->lock);
    VulkanBounds bounds = memory->bounds;
    pthread_mutex_unlock(&vulkan->lock);
    return bounds.known && bounds.dtype == view->dtype && bounds.least >= least &&
           bounds.most <= most;
}

// Narrower types than int32 are left alone: their numbers may wrap.
void vulkan_bound_as(const TensorView *view, const TensorView *source) {
    VulkanDevice *vulkan = vulkan_of(view->buffer->device);
    const VulkanMemory *memory = source->buffer->handle;
    if (!memory) return;
    pthread_mutex_lock(&vulkan->lock);
    VulkanBounds bounds = memory->bounds;
    pthread_mutex_unlock(&vulkan->lock);
    if (!bounds.known || bounds.dtype != source->dtype) return;
    bool fits = bounds.least >= INT32_MIN && bounds.most <= INT32_MAX;
    if (view->dtype == DTYPE_INT64 || (view->dtype == DTYPE_INT32 && fits))
        vulkan_bound(view, bounds.least, bounds.most);
}

void bounds_of_upload(VulkanMemory *memory, DType dtype, const void *source, size_t bytes) {
    if (bytes > LOOKED_AT_BYTES_MAX || (dtype != DTYPE_INT32 && dtype != DTYPE_INT64)) return;
    size_t size = dtype_size(dtype);
    VulkanBounds bounds = {true, dtype, INT64_MAX, INT64_MIN};
    for (size_t at = 0; at + size <= bytes; at += size) {
        const char *from = (const char *)source + at;
        int64_t number;
        int32_t narrow;
        if (dtype == DTYPE_INT64) {
            memcpy(&number, from, sizeof number);
        } else {
            memcpy(&narrow, from, sizeof narrow);
            number = narrow;
        }
        if (number < bounds.least) bounds.least = number;
        if (number > bounds.most) bounds.most = number;
    }
    memory->bounds = bounds;
}
