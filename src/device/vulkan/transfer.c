// Bytes in, out and about. Uploads and copies are work of the stream; a download goes through a
// queue of its own where there is one, and waits for the producer of its bytes only.
#include "device/pool.h"
#include "device/vulkan/core.h"

static VulkanMemory *memory_of(const Buffer *buffer) {
    return buffer->handle;
}

// --- in ------------------------------------------------------------------------------------------

static Status upload_piece(VulkanDevice *vulkan, VulkanMemory *memory, size_t offset,
                           const char *source, size_t bytes) {
    void *host;
    VkBufferCopy region = {.dstOffset = memory->offset + offset, .size = bytes};
    TRY(ring_take(vulkan, bytes, &host, &region.srcOffset));
    memcpy(host, source, bytes);
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    // Pieces of one upload do not overlap: only the first can find a hazard of its own.
    stream_use(vulkan, memory, true);
    vulkan->call.CmdCopyBuffer(batch->commands, vulkan->ring.block->buffer, memory->block->buffer,
                               1, &region);
    return stream_count(vulkan, batch, bytes);
}

static Status upload(VulkanDevice *vulkan, VulkanMemory *memory, size_t offset, const char *source,
                     size_t bytes) {
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    if (stream_hazard(vulkan, memory, true)) stream_barrier(vulkan, batch);
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < RING_PIECE_BYTES ? bytes - done : RING_PIECE_BYTES;
        TRY(upload_piece(vulkan, memory, offset + done, source + done, piece));
        done += piece;
    }
    return STATUS_OK;
}

Status transfer_upload(Device *device, Buffer *buffer, size_t offset, const void *source,
                       size_t bytes) {
    SCOPED_LOCK(vulkan, device);
    Status status = upload(vulkan, memory_of(buffer), offset, source, bytes);
    if (status == STATUS_OK && offset == 0 && bytes == buffer->bytes && buffer->label.rank >= 0)
        bounds_of_upload(memory_of(buffer), buffer->label.dtype, source, bytes);
    return status;
}

// --- out -----------------------------------------------------------------------------------------

// What the host reads is there when the batch is done.
static void show_host(VulkanDevice *vulkan, VkCommandBuffer commands) {
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    vulkan->call.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                    VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

// The bytes go to the read block, and are the host's when the commands are done.
static void copy_to_host(VulkanDevice *vulkan, VkCommandBuffer commands, const VulkanMemory *memory,
                         size_t offset, size_t bytes) {
    VkBufferCopy region = {.srcOffset = memory->offset + offset, .size = bytes};
    vulkan->call.CmdCopyBuffer(commands, memory->block->buffer, vulkan->stream.read_block->buffer,
                               1, &region);
    show_host(vulkan, commands);
}

static Status record_read(VulkanDevice *vulkan, const VulkanMemory *memory, size_t offset,
                          size_t bytes) {
    VulkanStream *stream = &vulkan->stream;
    VkCommandBuffer commands = stream->read_commands;
    TRY(commands_begin(vulkan, stream->read_pool, commands));
    copy_to_host(vulkan, commands, memory, offset, bytes);
    return vulkan_check(vulkan, vulkan->call.EndCommandBuffer(commands), "recording a download");
}

// Bytes that the open batch makes are read at its end: one submission, and no queue that waits for
// another, which takes some drivers longer than the work itself.
static Status read_in_batch(VulkanDevice *vulkan, VulkanMemory *memory, size_t offset,
                            size_t bytes) {
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    if (stream_hazard(vulkan, memory, false)) stream_barrier(vulkan, batch);
    stream_use(vulkan, memory, false);
    copy_to_host(vulkan, batch->commands, memory, offset, bytes);
    uint64_t serial = batch->serial;
    TRY(stream_submit(vulkan));
    return stream_wait(vulkan, serial);
}

static Status submit_read(VulkanDevice *vulkan, uint64_t producer) {
    VulkanStream *stream = &vulkan->stream;
    uint64_t serial = stream->read_serial + 1;
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &producer,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &serial,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = 1,
        .pWaitSemaphores = &stream->timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &stream->read_commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &stream->read_timeline,
    };
    TRY(vulkan_check(vulkan, vulkan->call.QueueSubmit(stream->read_queue, 1, &info, VK_NULL_HANDLE),
                     "submitting a download"));
    stream->read_serial = serial;
    return stream_wait_timeline(vulkan, stream->read_timeline, serial);
}

// A download whose wait was interrupted may still write to the read block.
static Status finish_reading(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    if (LIKELY(!stream->reading)) return STATUS_OK;
    TRY(stream_submit(vulkan));
    TRY(stream_wait(vulkan, stream->serial - 1));
    TRY(stream_wait_timeline(vulkan, stream->read_timeline, stream->read_serial));
    stream->reading = false;
    return STATUS_OK;
}

static Status download(VulkanDevice *vulkan, VulkanMemory *memory, size_t offset, char *target,
                       size_t bytes) {
    VulkanStream *stream = &vulkan->stream;
    if (vulkan->lost) return vulkan_refuse_lost(vulkan);
    TRY(finish_reading(vulkan));
    if (!stream->read_block)
        TRY(block_new_mapped(vulkan, RING_PIECE_BYTES, vulkan->memories.read_type,
                             &stream->read_block));
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < RING_PIECE_BYTES ? bytes - done : RING_PIECE_BYTES;
        stream->reading = true;
        if (stream->open && memory->producer == stream->serial) {
            TRY(read_in_batch(vulkan, memory, offset + done, piece));
        } else {
            TRY(record_read(vulkan, memory, offset + done, piece));
            TRY(submit_read(vulkan, memory->producer));
        }
        stream->reading = false;
        memcpy(target + done, stream->read_block->mapped, piece);
        done += piece;
    }
    memories_collect(vulkan);
    return STATUS_OK;
}

Status transfer_download(Device *device, Buffer *buffer, size_t offset, void *target,
                         size_t bytes) {
    VulkanDevice *vulkan = vulkan_of(device);
    pthread_mutex_lock(&vulkan->lock);
    Status status = download(vulkan, memory_of(buffer), offset, target, bytes);
    pthread_mutex_unlock(&vulkan->lock);
    device->pool->statistics.waits++;
    return status;
}

// --- about ---------------------------------------------------------------------------------------

static Status copy(VulkanDevice *vulkan, VulkanMemory *from, VulkanMemory *to,
                   const VkBufferCopy *offsets) {
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    if (stream_hazard(vulkan, from, false) || stream_hazard(vulkan, to, true))
        stream_barrier(vulkan, batch);
    stream_use(vulkan, from, false);
    stream_use(vulkan, to, true);
    VkBufferCopy region = {
        .srcOffset = from->offset + offsets->srcOffset,
        .dstOffset = to->offset + offsets->dstOffset,
        .size = offsets->size,
    };
    vulkan->call.CmdCopyBuffer(batch->commands, from->block->buffer, to->block->buffer, 1, &region);
    return stream_count(vulkan, batch, region.size);
}

Status vulkan_copy(Device *device, VulkanPlace source, VulkanPlace target, size_t bytes) {
    if (bytes == 0 || device->foretold) return STATUS_OK;
    VkBufferCopy offsets = {source.offset, target.offset, bytes};
    SCOPED_LOCK(vulkan, device);
    return copy(vulkan, memory_of(source.buffer), memory_of(target.buffer), &offsets);
}

Status transfer_move(Device *device, MemoryPlace from, MemoryPlace to, size_t bytes) {
    VulkanMemory *source = from.handle, *target = to.handle;
    VkBufferCopy region = {from.offset, to.offset, bytes};
    ASSERT(from.offset + bytes <= source->bytes && to.offset + bytes <= target->bytes);
    SCOPED_LOCK(vulkan, device);
    return vulkan->lost ? vulkan_refuse_lost(vulkan) : copy(vulkan, source, target, &region);
}

static Status fill(VulkanDevice *vulkan, VulkanMemory *memory, VulkanRange range, uint32_t word) {
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    if (stream_hazard(vulkan, memory, true)) stream_barrier(vulkan, batch);
    stream_use(vulkan, memory, true);
    vulkan->call.CmdFillBuffer(batch->commands, memory->block->buffer,
                               memory->offset + range.offset, range.bytes, word);
    return stream_count(vulkan, batch, range.bytes);
}

Status vulkan_fill(Device *device, Buffer *buffer, size_t offset, size_t bytes, uint32_t word) {
    if (bytes == 0 || device->foretold) return STATUS_OK;
    ASSERT(offset % sizeof word == 0 && bytes % sizeof word == 0);
    SCOPED_LOCK(vulkan, device);
    return fill(vulkan, memory_of(buffer), (VulkanRange){offset, bytes}, word);
}

// --- pages of the host ---------------------------------------------------------------------------

Status transfer_lock(Device *device, void *memory, size_t bytes, void **handle) {
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanMemory *locked = NULL;
    pthread_mutex_lock(&vulkan->lock);
    Status status = memory_lock(vulkan, memory, bytes, &locked);
    pthread_mutex_unlock(&vulkan->lock);
    *handle = locked;
    return status;
}

// Copies from and to the same pages have no hazards: they do not overlap, and the host waits
// between the one and the other.
static Status copy_locked(VulkanDevice *vulkan, VulkanMemory *locked, const StagingCopy *copy,
                          bool out, uint64_t *serial) {
    VulkanMemory *memory = memory_of(copy->buffer);
    VulkanBatch *batch;
    TRY(stream_begin(vulkan, &batch));
    if (stream_hazard(vulkan, memory, !out)) stream_barrier(vulkan, batch);
    stream_use(vulkan, memory, !out);
    VkDeviceSize there = memory->offset + copy->offset;
    VkBufferCopy region = {.srcOffset = out ? there : copy->at,
                           .dstOffset = out ? copy->at : there,
                           .size = copy->bytes};
    VkBuffer pages = locked->block->buffer, whole = memory->block->buffer;
    vulkan->call.CmdCopyBuffer(batch->commands, out ? whole : pages, out ? pages : whole, 1,
                               &region);
    if (out) show_host(vulkan, batch->commands);
    locked->last_use = *serial = batch->serial;
    return stream_count(vulkan, batch, copy->bytes);
}

Status transfer_locked(Device *device, void *locked, const StagingCopy *copy, bool out,
                       uint64_t *serial) {
    SCOPED_LOCK(vulkan, device);
    return copy_locked(vulkan, locked, copy, out, serial);
}

static Status look_for(VulkanDevice *vulkan, uint64_t serial, bool wait, bool *done) {
    if (serial >= vulkan->stream.serial) TRY(stream_submit(vulkan));
    TRY(wait ? stream_wait(vulkan, serial) : stream_poll(vulkan));
    *done = serial <= vulkan->stream.completed;
    return STATUS_OK;
}

Status transfer_is_done(Device *device, uint64_t serial, bool wait, bool *done) {
    SCOPED_LOCK(vulkan, device);
    return look_for(vulkan, serial, wait, done);
}
