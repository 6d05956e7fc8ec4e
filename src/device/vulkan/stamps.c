// When queued work ran, while somebody profiles: a timestamp behind a command that is timed, and
// one behind the command before it, so that times add up.
#include <stdlib.h>

#include "device/timeline.h"
#include "device/vulkan/core.h"

enum { MARKS_MORE = 16 }; // a batch may end up with a few commands more than kernels_max
enum { TRIED = 8 };       // timestamps by which their cost is known

static uint32_t capacity(const VulkanDevice *vulkan) {
    return 2 * (uint32_t)vulkan->stream.kernels_max + MARKS_MORE;
}

TimelineOwner stamps_owner(void) {
    const Timeline *timeline = timeline_current();
    return timeline ? timeline->running : (TimelineOwner){0};
}

static Status make_pool(VulkanDevice *vulkan, VulkanStamps *stamps) {
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount = capacity(vulkan)};
    TRY(vulkan_check(vulkan,
                     vulkan->call.CreateQueryPool(vulkan->handle, &info, NULL, &stamps->pool),
                     "making timestamps"));
    vulkan->ledger[OBJECT_QUERY_POOL]++;
    stamps->owners = memory_allocate(capacity(vulkan) * sizeof *stamps->owners);
    return STATUS_OK;
}

static void mark(VulkanDevice *vulkan, VulkanBatch *batch, TimelineOwner owner) {
    VulkanStamps *stamps = &batch->stamps;
    if (stamps->count == capacity(vulkan)) return;
    if (stamps->count == 0)
        vulkan->call.CmdResetQueryPool(batch->commands, stamps->pool, 0, capacity(vulkan));
    stamps->owners[stamps->count] = owner;
    stamps->fresh = true;
    vulkan->call.CmdWriteTimestamp(batch->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                   stamps->pool, stamps->count++);
}

void stamps_before(VulkanDevice *vulkan, VulkanBatch *batch, TimelineOwner owner) {
    if (LIKELY(owner.times == 0) || !batch->stamps.timeline || batch->stamps.fresh) return;
    mark(vulkan, batch, (TimelineOwner){0});
}

void stamps_after(VulkanDevice *vulkan, VulkanBatch *batch, TimelineOwner owner) {
    batch->stamps.fresh = false;
    if (UNLIKELY(owner.times > 0) && batch->stamps.count > 0) mark(vulkan, batch, owner);
}

static Status read_clock(VulkanDevice *vulkan, const VulkanStamps *stamps, uint64_t *values) {
    size_t bytes = stamps->count * sizeof *values;
    TRY(vulkan_check(vulkan,
                     vulkan->call.GetQueryPoolResults(vulkan->handle, stamps->pool, 0,
                                                      stamps->count, bytes, values, sizeof *values,
                                                      VK_QUERY_RESULT_64_BIT),
                     "reading timestamps"));
    uint32_t bits = vulkan->physical.clock_bits;
    uint64_t valid = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
    for (uint32_t i = 0; i < stamps->count; i++)
        values[i] = (uint64_t)((double)(values[i] & valid) * vulkan->physical.clock_ns);
    return STATUS_OK;
}

// A batch of nothing else says what timestamps cost, and how far the two clocks are apart: its last
// one was taken just before its end is seen.
static Status compare_clocks(VulkanDevice *vulkan, VulkanBatch *batch) {
    uint64_t serial = batch->serial, there[TRIED];
    for (int i = 0; i < TRIED; i++) mark(vulkan, batch, (TimelineOwner){0});
    TRY(stream_submit(vulkan));
    TRY(stream_wait(vulkan, serial));
    TRY(read_clock(vulkan, &batch->stamps, there));
    vulkan->clock_ahead = there[TRIED - 1] - timeline_now();
    vulkan->stamp_ns = 2 * (there[TRIED - 1] - there[0]) / (TRIED - 1);
    vulkan->clock_known = true;
    batch->stamps.count = 0;
    VulkanBatch *same;
    return stream_begin(vulkan, &same);
}

Status stamps_begin(VulkanDevice *vulkan, VulkanBatch *batch) {
    VulkanStamps *stamps = &batch->stamps;
    Timeline *timeline = timeline_current();
    stamps->timeline = NULL;
    stamps->fresh = false;
    if (LIKELY(!timeline) || !vulkan->device->times_itself) return STATUS_OK;
    if (!stamps->pool) TRY(make_pool(vulkan, stamps));
    if (!vulkan->clock_known) return compare_clocks(vulkan, batch);
    stamps->timeline = timeline;
    timeline->stamp_ns = vulkan->stamp_ns;
    return STATUS_OK;
}

Status stamps_read(VulkanDevice *vulkan, VulkanBatch *batch) {
    VulkanStamps *stamps = &batch->stamps;
    if (LIKELY(stamps->count == 0)) return STATUS_OK;
    Timeline *timeline = timeline_current();
    if (timeline && timeline == stamps->timeline) {
        uint64_t *values = memory_allocate(stamps->count * sizeof *values);
        Status status = read_clock(vulkan, stamps, values);
        for (uint32_t i = 1; i < stamps->count && status == STATUS_OK; i++)
            if (stamps->owners[i].times > 0)
                timeline_spend(timeline, stamps->owners[i].total,
                               (TimelineSpan){values[i - 1] - vulkan->clock_ahead,
                                              values[i] - vulkan->clock_ahead,
                                              stamps->owners[i].times});
        free(values);
        TRY(status);
    }
    stamps->count = 0;
    return STATUS_OK;
}

Status stamps_read_all(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    for (int i = 0; i < VULKAN_BATCHES; i++)
        if (stream->batches[i].serial <= stream->completed)
            TRY(stamps_read(vulkan, &stream->batches[i]));
    return STATUS_OK;
}

void stamps_close(VulkanDevice *vulkan) {
    for (int i = 0; i < VULKAN_BATCHES; i++) {
        VulkanStamps *stamps = &vulkan->stream.batches[i].stamps;
        if (!stamps->pool) continue;
        vulkan->call.DestroyQueryPool(vulkan->handle, stamps->pool, NULL);
        free(stamps->owners);
        ASSERT(vulkan->ledger[OBJECT_QUERY_POOL] > 0);
        vulkan->ledger[OBJECT_QUERY_POOL]--;
    }
}
