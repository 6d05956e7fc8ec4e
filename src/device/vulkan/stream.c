// The stream of work: batches that are recorded, submitted without waiting and used again, barriers
// where memory makes them necessary, and serials by which the host learns what is done.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/source.h"
#include "device/vulkan/core.h"
#include "device/work.h"

// Work that a slow GPU does well within the time that its watchdog allows.
#define COST_MAX UINT64_C(200000000000)
// Batches of a device that has nothing to do are short, so that it begins early; each next one is
// longer, because to go from one to the next takes it 13 us, but no more than the host can record
// meanwhile.
enum { KERNELS_FIRST = 8, KERNELS_GROWTH = 2 };
enum { WAIT_SLICE_MS = 100, LEAVE_MS = 2000, NANOSECONDS_PER_MS = 1000000, LOOK_NS = 2000000 };

static _Thread_local const char *current_op;

void stream_name_op(const char *name) {
    current_op = name;
}

// --- timelines and command buffers ---------------------------------------------------------------

Status timeline_semaphore_new(VulkanDevice *vulkan, VkSemaphore *out) {
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    TRY(vulkan_check(vulkan, vulkan->call.CreateSemaphore(vulkan->handle, &info, NULL, out),
                     "making a semaphore"));
    vulkan->ledger[OBJECT_SEMAPHORE]++;
    return STATUS_OK;
}

void timeline_semaphore_free(VulkanDevice *vulkan, VkSemaphore timeline) {
    if (!timeline) return;
    vulkan->call.DestroySemaphore(vulkan->handle, timeline, NULL);
    ASSERT(vulkan->ledger[OBJECT_SEMAPHORE] > 0);
    vulkan->ledger[OBJECT_SEMAPHORE]--;
}

static Status commands_new(VulkanDevice *vulkan, VkCommandPool *pool, VkCommandBuffer *commands) {
    VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = vulkan->physical.family,
    };
    TRY(vulkan_check(vulkan, vulkan->call.CreateCommandPool(vulkan->handle, &info, NULL, pool),
                     "making a command pool"));
    vulkan->ledger[OBJECT_COMMAND_POOL]++;
    VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = *pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    return vulkan_check(vulkan,
                        vulkan->call.AllocateCommandBuffers(vulkan->handle, &allocate, commands),
                        "making a command buffer");
}

static void commands_free(VulkanDevice *vulkan, VkCommandPool pool) {
    if (!pool) return;
    vulkan->call.DestroyCommandPool(vulkan->handle, pool, NULL);
    ASSERT(vulkan->ledger[OBJECT_COMMAND_POOL] > 0);
    vulkan->ledger[OBJECT_COMMAND_POOL]--;
}

Status commands_begin(VulkanDevice *vulkan, VkCommandPool pool, VkCommandBuffer commands) {
    TRY(vulkan_check(vulkan, vulkan->call.ResetCommandPool(vulkan->handle, pool, 0),
                     "clearing a command pool"));
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    return vulkan_check(vulkan, vulkan->call.BeginCommandBuffer(commands, &info),
                        "beginning a command buffer");
}

Status stream_open(VulkanDevice *vulkan, int kernels_max) {
    VulkanStream *stream = &vulkan->stream;
    stream->serial = stream->epoch = 1;
    stream->kernels_max = stream->kernels_now = kernels_max;
    uint32_t family = vulkan->physical.family;
    vulkan->call.GetDeviceQueue(vulkan->handle, family, 0, &stream->queue);
    vulkan->call.GetDeviceQueue(vulkan->handle, family, vulkan->physical.queues - 1,
                                &stream->read_queue);
    TRY(timeline_semaphore_new(vulkan, &stream->timeline));
    TRY(timeline_semaphore_new(vulkan, &stream->read_timeline));
    for (int i = 0; i < VULKAN_BATCHES; i++)
        TRY(commands_new(vulkan, &stream->batches[i].pool, &stream->batches[i].commands));
    return commands_new(vulkan, &stream->read_pool, &stream->read_commands);
}

// --- loss ----------------------------------------------------------------------------------------

// The batch that the device was at: the oldest that is not done.
static const VulkanBatch *suspect(const VulkanStream *stream) {
    uint64_t serial = stream->completed + 1;
    if (serial > stream->serial || (serial == stream->serial && !stream->open)) return NULL;
    return &stream->batches[serial % VULKAN_BATCHES];
}

// The device counts as lost from now on: it did `what` wrong. STATUS_DEVICE.
static Status stream_lose(VulkanDevice *vulkan, const char *what) {
    SCOPED_TEXT(words);
    text_format(&words, "%s %s", vulkan->device->name, what);
    const VulkanBatch *batch = suspect(&vulkan->stream);
    if (batch && batch->op[0]) {
        text_format(&words, " while it ran work up to %s", batch->op);
        SourcePlace place = source_find(batch->origin.at);
        if (place.file) text_format(&words, " (%s:%d)", place.file->name, place.line);
    }
    vulkan->lost = true;
    snprintf(vulkan->lost_words, sizeof vulkan->lost_words, "%s", text_get(&words));
    return vulkan_refuse_lost(vulkan);
}

Status vulkan_refuse_lost(const VulkanDevice *vulkan) {
    fail(STATUS_DEVICE, "%s", vulkan->lost_words);
    return fail_help("start again; TL_DEVICE=cpu runs without it");
}

Status vulkan_check(VulkanDevice *vulkan, VkResult result, const char *what) {
    if (LIKELY(result == VK_SUCCESS)) return STATUS_OK;
    const char *name = vulkan->device->name;
    if (result == VK_ERROR_DEVICE_LOST) return stream_lose(vulkan, "was lost");
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY ||
        result == VK_ERROR_TOO_MANY_OBJECTS)
        return fail(STATUS_MEMORY, "%s has no memory left for %s", name, what);
    return fail(STATUS_DEVICE, "%s fails at %s (result %d)", name, what, (int)result);
}

// --- barriers ------------------------------------------------------------------------------------

bool stream_hazard(const VulkanDevice *vulkan, const VulkanMemory *memory, bool write) {
    uint64_t epoch = vulkan->stream.epoch;
    return memory->written == epoch || (write && memory->read == epoch);
}

void stream_use(VulkanDevice *vulkan, VulkanMemory *memory, bool write) {
    VulkanStream *stream = &vulkan->stream;
    memory->last_use = stream->serial;
    if (write) {
        memory->written = stream->epoch;
        memory->producer = stream->serial;
        memory->bounds.known = false;
    } else {
        memory->read = stream->epoch;
    }
}

// One barrier over everything: it covers all earlier batches of the queue too, which is why epochs
// go on from batch to batch.
void stream_barrier(VulkanDevice *vulkan, const VulkanBatch *batch) {
    const VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    const VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = writes,
        .dstAccessMask = writes | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT,
    };
    vulkan->call.CmdPipelineBarrier(batch->commands, stages, stages, 0, 1, &barrier, 0, NULL, 0,
                                    NULL);
    vulkan->stream.epoch++;
}

// --- batches -------------------------------------------------------------------------------------

Status stream_begin(VulkanDevice *vulkan, VulkanBatch **out) {
    VulkanStream *stream = &vulkan->stream;
    if (stream->held_count > 0) {
        held_record(vulkan);
        TRY(stream_submit_full(vulkan, &stream->batches[stream->serial % VULKAN_BATCHES]));
    }
    VulkanBatch *batch = &stream->batches[stream->serial % VULKAN_BATCHES];
    ASSERT(batch->serial <= stream->serial);
    *out = batch;
    if (UNLIKELY(vulkan->lost)) return vulkan_refuse_lost(vulkan);
    if (LIKELY(stream->open)) {
        stamps_before(vulkan, batch, stamps_owner());
        return STATUS_OK;
    }
    if (batch->serial > 0) TRY(stream_wait(vulkan, batch->serial));
    TRY(stamps_read(vulkan, batch));
    ring_reclaim(vulkan);
    TRY(commands_begin(vulkan, batch->pool, batch->commands));
    bool idle = stream->completed + 1 == stream->serial;
    stream->kernels_now = idle ? KERNELS_FIRST : stream->kernels_now * KERNELS_GROWTH;
    if (stream->kernels_now > stream->kernels_max) stream->kernels_now = stream->kernels_max;
    batch->serial = stream->serial;
    batch->kernels = 0;
    batch->cost = 0;
    batch->pipeline = VK_NULL_HANDLE;
    batch->op[0] = '\0';
    stream->open = true;
    TRY(stamps_begin(vulkan, batch));
    *out = &stream->batches[stream->serial % VULKAN_BATCHES]; // to compare clocks takes one
    stamps_before(vulkan, *out, stamps_owner());
    return STATUS_OK;
}

static VkResult submit(VulkanDevice *vulkan, const VulkanBatch *batch) {
    const VulkanStream *stream = &vulkan->stream;
    bool gated = vulkan->gate.semaphore != VK_NULL_HANDLE;
    const VkPipelineStageFlags stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = gated,
        .pWaitSemaphoreValues = &batch->serial,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &batch->serial,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = gated,
        .pWaitSemaphores = gated ? &vulkan->gate.semaphore : NULL,
        .pWaitDstStageMask = gated ? &stages : NULL,
        .commandBufferCount = 1,
        .pCommandBuffers = &batch->commands,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &stream->timeline,
    };
    VkResult result = vulkan->call.QueueSubmit(stream->queue, 1, &info, VK_NULL_HANDLE);
    if (gated && result == VK_SUCCESS) gate_request(vulkan, batch->serial);
    return result;
}

// Recorded work that cannot be submitted leaves memory in an unknown state: the device is lost.
Status stream_submit(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    if (vulkan->lost) return vulkan_refuse_lost(vulkan);
    if (!stream->open) return STATUS_OK;
    held_record(vulkan);
    VulkanBatch *batch = &stream->batches[stream->serial % VULKAN_BATCHES];
    ASSERT(batch->serial == stream->serial && stream->completed < stream->serial);
    VkResult result = vulkan->call.EndCommandBuffer(batch->commands);
    if (vulkan->lose_after > 0 && stream->serial >= vulkan->lose_after)
        result = VK_ERROR_DEVICE_LOST;
    if (result == VK_SUCCESS) result = submit(vulkan, batch);
    if (result == VK_ERROR_DEVICE_LOST) return stream_lose(vulkan, "was lost");
    if (result != VK_SUCCESS) return stream_lose(vulkan, "had no memory to submit work");
    batch->ring_end = vulkan->ring.head;
    stream->open = false;
    stream->serial++;
    return STATUS_OK;
}

void stream_note(VulkanBatch *batch, uint64_t cost) {
    if (current_op) memccpy(batch->op, current_op, '\0', sizeof batch->op - 1);
    batch->origin = origin_current;
    batch->kernels++;
    batch->cost += cost;
}

Status stream_submit_full(VulkanDevice *vulkan, const VulkanBatch *batch) {
    if (batch->kernels < vulkan->stream.kernels_now && batch->cost < COST_MAX) return STATUS_OK;
    return stream_submit(vulkan);
}

Status stream_count(VulkanDevice *vulkan, VulkanBatch *batch, uint64_t cost) {
    stream_note(batch, cost);
    stamps_after(vulkan, batch, stamps_owner());
    return stream_submit_full(vulkan, batch);
}

uint64_t stream_pieces(uint64_t cost) {
    return cost / COST_MAX + 1;
}

// --- waiting -------------------------------------------------------------------------------------

Status stream_poll(VulkanDevice *vulkan) {
    if (vulkan->lost) return vulkan_refuse_lost(vulkan);
    uint64_t value;
    TRY(vulkan_check(
        vulkan,
        vulkan->call.GetSemaphoreCounterValue(vulkan->handle, vulkan->stream.timeline, &value),
        "asking for progress"));
    if (value > vulkan->stream.completed) vulkan->stream.completed = value;
    return STATUS_OK;
}

static VkResult wait_slice(const VulkanDevice *vulkan, VkSemaphore timeline, uint64_t value,
                           int milliseconds) {
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline,
        .pValues = &value,
    };
    return vulkan->call.WaitSemaphores(vulkan->handle, &info,
                                       (uint64_t)milliseconds * NANOSECONDS_PER_MS);
}

// Work that is nearly done is awaited by looking: to be woken up takes longer. Not where the host's
// own threads do the work.
static bool comes_soon(const VulkanDevice *vulkan, VkSemaphore timeline, uint64_t value) {
    if (physical_is_software(&vulkan->physical)) return false;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        uint64_t reached = 0;
        if (vulkan->call.GetSemaphoreCounterValue(vulkan->handle, timeline, &reached) != VK_SUCCESS)
            return false;
        if (reached >= value) return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < LOOK_NS);
    return false;
}

Status stream_wait_timeline(VulkanDevice *vulkan, VkSemaphore timeline, uint64_t value) {
    if (comes_soon(vulkan, timeline, value)) return stream_poll(vulkan);
    uint64_t seen = vulkan->stream.completed;
    int idle_ms = 0;
    for (;;) {
        VkResult result = wait_slice(vulkan, timeline, value, WAIT_SLICE_MS);
        if (result != VK_TIMEOUT) TRY(vulkan_check(vulkan, result, "waiting"));
        TRY(stream_poll(vulkan));
        if (result == VK_SUCCESS) return STATUS_OK;
        if (device_is_interrupted()) return fail(STATUS_INTERRUPT, "interrupted");
        idle_ms = vulkan->stream.completed > seen ? 0 : idle_ms + WAIT_SLICE_MS;
        seen = vulkan->stream.completed;
        if (idle_ms < vulkan->patience_ms) continue;
        char words[64];
        snprintf(words, sizeof words, "made no progress for %d s", vulkan->patience_ms / 1000);
        return stream_lose(vulkan, words);
    }
}

Status stream_wait(VulkanDevice *vulkan, uint64_t serial) {
    if (vulkan->lost) return vulkan_refuse_lost(vulkan);
    ASSERT(serial < vulkan->stream.serial);
    if (serial > vulkan->stream.completed)
        TRY(stream_wait_timeline(vulkan, vulkan->stream.timeline, serial));
    memories_collect(vulkan);
    return STATUS_OK;
}

// --- the end -------------------------------------------------------------------------------------

// Lets submitted work finish, for 2 s at most. What does not is abandoned, and with it everything
// that it may still use.
static void finish(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    if (!stream->timeline || stream->serial <= 1) return;
    VkResult result = wait_slice(vulkan, stream->timeline, stream->serial - 1, LEAVE_MS);
    if (result == VK_SUCCESS && stream->read_serial > 0)
        result = wait_slice(vulkan, stream->read_timeline, stream->read_serial, LEAVE_MS);
    if (result == VK_TIMEOUT) vulkan->abandoned = true;
    if (result == VK_SUCCESS) stream->completed = stream->serial - 1;
}

void stream_close(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    finish(vulkan);
    if (vulkan->abandoned) return;
    stamps_close(vulkan);
    for (int i = 0; i < VULKAN_BATCHES; i++) commands_free(vulkan, stream->batches[i].pool);
    commands_free(vulkan, stream->read_pool);
    if (stream->read_block) block_free(vulkan, stream->read_block);
    timeline_semaphore_free(vulkan, stream->timeline);
    timeline_semaphore_free(vulkan, stream->read_timeline);
}
