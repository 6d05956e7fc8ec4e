// What is known of the integers in a buffer.
#ifndef DEVICE_VULKAN_BOUNDS_H
#define DEVICE_VULKAN_BOUNDS_H

#include "device/vulkan/vulkan.h"

// Notes that the integers of a view just written lie in [least, most]; nothing is noted unless
// the view fills its buffer. Whether that, or more, is known of a view.
void vulkan_bound(const TensorView *view, int64_t least, int64_t most);
void vulkan_bound_as(const TensorView *view, const TensorView *source); // of which it is a copy
bool vulkan_is_bound(const TensorView *view, int64_t least, int64_t most);

#endif
