// The last norm of rows: what it was made of. A kernel that reads the result may as well read that,
// and make the norm again where it would have to wait for it.
#include "device/vulkan/core.h"
#include "device/vulkan/kernels.h"

static VulkanMemory *memory_of(const TensorView *view) {
    return view->buffer->handle;
}

void vulkan_note_norm(Device *device, const VulkanNorm *norm, const TensorView *out) {
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanRecall *recall = &vulkan->recall;
    pthread_mutex_lock(&vulkan->lock);
    *recall = (VulkanRecall){
        .norm = *norm,
        .out_address = vulkan_address(out),
        .count = view_count(out),
        .memories = {memory_of(&norm->in), memory_of(&norm->weight), memory_of(out)}};
    for (int i = 0; i < RECALL_MEMORIES; i++) recall->written[i] = recall->memories[i]->written;
    if (memory_of(&norm->in) == memory_of(out)) *recall = (VulkanRecall){0}; // its input is gone
    pthread_mutex_unlock(&vulkan->lock);
}

// Epochs tell writes apart: two of the same memory never stand in one.
static bool still_holds(const VulkanDevice *vulkan, const TensorView *normal) {
    const VulkanRecall *recall = &vulkan->recall;
    if (recall->memories[0] == NULL || memory_of(normal) != recall->memories[RECALL_MEMORIES - 1] ||
        vulkan_address(normal) != recall->out_address || view_count(normal) != recall->count)
        return false;
    for (int i = 0; i < RECALL_MEMORIES; i++)
        if (recall->memories[i]->written != recall->written[i]) return false;
    return true;
}

bool vulkan_recall_norm(Device *device, const TensorView *normal, VulkanNorm *out) {
    VulkanDevice *vulkan = vulkan_of(device);
    const VulkanRecall *recall = &vulkan->recall;
    pthread_mutex_lock(&vulkan->lock);
    bool found = still_holds(vulkan, normal) && stream_hazard(vulkan, memory_of(normal), false) &&
                 !stream_hazard(vulkan, recall->memories[0], false);
    if (found) *out = recall->norm;
    pthread_mutex_unlock(&vulkan->lock);
    return found;
}

void recall_forget(VulkanDevice *vulkan, const VulkanMemory *memory) {
    for (int i = 0; i < RECALL_MEMORIES; i++)
        if (vulkan->recall.memories[i] == memory) vulkan->recall = (VulkanRecall){0};
}
