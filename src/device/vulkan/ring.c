// Bytes on their way from the host to the device: one block that the host writes and the device
// reads, used round and round. What a batch took is free again when the batch is done.
#include "device/vulkan/core.h"

enum { RING_BYTES = 16 << 20, RING_ALIGNMENT = 64 };

Status ring_open(VulkanDevice *vulkan) {
    return block_new_mapped(vulkan, RING_BYTES, vulkan->memories.staging_type, &vulkan->ring.block);
}

void ring_close(VulkanDevice *vulkan) {
    if (vulkan->ring.block) block_free(vulkan, vulkan->ring.block);
    vulkan->ring.block = NULL;
}

void ring_reclaim(VulkanDevice *vulkan) {
    VulkanRing *ring = &vulkan->ring;
    const VulkanStream *stream = &vulkan->stream;
    while (ring->tail_serial < stream->completed) {
        ring->tail_serial++;
        ring->tail = stream->batches[ring->tail_serial % VULKAN_BATCHES].ring_end;
    }
}

// Where `bytes` in one piece would begin: the next position, or the beginning of the next round.
static uint64_t next_start(const VulkanRing *ring, size_t bytes) {
    uint64_t start = (ring->head + RING_ALIGNMENT - 1) & ~(uint64_t)(RING_ALIGNMENT - 1);
    uint64_t left = RING_BYTES - start % RING_BYTES;
    return left < bytes ? start + left : start;
}

Status ring_take(VulkanDevice *vulkan, size_t bytes, void **host, VkDeviceSize *offset) {
    VulkanRing *ring = &vulkan->ring;
    ASSERT(bytes <= RING_PIECE_BYTES);
    uint64_t start = next_start(ring, bytes);
    if (start + bytes - ring->tail > RING_BYTES) {
        TRY(stream_poll(vulkan));
        ring_reclaim(vulkan);
    }
    while (start + bytes - ring->tail > RING_BYTES) {
        TRY(stream_submit(vulkan));
        if (ring->tail_serial + 1 == vulkan->stream.serial) {
            ring->tail = start; // what is left was taken, but never recorded
            break;
        }
        TRY(stream_wait(vulkan, ring->tail_serial + 1));
        ring_reclaim(vulkan);
    }
    ring->head = start + bytes;
    *offset = start % RING_BYTES;
    *host = (char *)ring->block->mapped + *offset;
    return STATUS_OK;
}
