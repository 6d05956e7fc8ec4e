// The dispatch of one shader: what it reads and writes, what is pushed, and its place in the batch.
// Some are held until the next operation is known, which may be made with them: a product and what
// is added to it are one dispatch then. What is held is ready but for being recorded, and nothing
// else is recorded before it, so that nobody sees a difference.
#include "device/vulkan/core.h"

void vulkan_spread_groups(const Device *device, uint64_t count, uint32_t groups[3]) {
    uint64_t widest = vulkan_of(device)->physical.features.groups_max[0];
    uint64_t rows = (count + widest - 1) / widest;
    groups[0] = rows > 0 ? (uint32_t)((count + rows - 1) / rows) : 0;
    groups[1] = (uint32_t)rows;
    groups[2] = 1;
}

static void use_memories(VulkanDevice *vulkan, const VulkanBatch *batch,
                         const VulkanDispatch *dispatch) {
    bool hazard = false;
    for (int i = 0; i < dispatch->n_reads; i++)
        hazard |= stream_hazard(vulkan, dispatch->reads[i], false);
    for (int i = 0; i < dispatch->n_writes; i++)
        hazard |= stream_hazard(vulkan, dispatch->writes[i], true);
    if (hazard) stream_barrier(vulkan, batch);
    for (int i = 0; i < dispatch->n_reads; i++) stream_use(vulkan, dispatch->reads[i], false);
    for (int i = 0; i < dispatch->n_writes; i++) stream_use(vulkan, dispatch->writes[i], true);
}

// Lays out what is pushed: the address of the arguments, if any, then the rest.
static Status prepare_push(VulkanDevice *vulkan, const VulkanDispatch *dispatch, char *push,
                           uint32_t *bytes) {
    size_t at = 0;
    if (dispatch->arguments) {
        ASSERT(dispatch->arguments_bytes <= VULKAN_ARGUMENT_BYTES_MAX);
        void *host;
        VkDeviceSize offset;
        TRY(ring_take(vulkan, dispatch->arguments_bytes, &host, &offset));
        memcpy(host, dispatch->arguments, dispatch->arguments_bytes);
        uint64_t address = vulkan->ring.block->address + offset;
        memcpy(push, &address, sizeof address);
        at = sizeof address;
    }
    ASSERT(at + dispatch->push_bytes <= VULKAN_PUSH_BYTES && dispatch->push_bytes % 4 == 0);
    if (dispatch->push_bytes > 0) memcpy(push + at, dispatch->push, dispatch->push_bytes);
    *bytes = (uint32_t)(at + dispatch->push_bytes);
    return STATUS_OK;
}

// What is ready to be recorded: of a dispatch the groups of `part` along `axis`.
typedef struct Ready {
    const VulkanDispatch *dispatch;
    VulkanProgram program;
    const char *push;
    uint32_t push_bytes;
    int axis;
    VulkanRange part;
    TimelineOwner owner;
} Ready;

static void record(VulkanDevice *vulkan, VulkanBatch *batch, const Ready *ready) {
    const VulkanDispatch *dispatch = ready->dispatch;
    ASSERT(ready->part.offset + ready->part.bytes <= dispatch->groups[ready->axis]);
    stamps_before(vulkan, batch, ready->owner);
    use_memories(vulkan, batch, dispatch);
    if (ready->program.imported) {
        import_launch(vulkan, batch->commands, ready->program.imported, dispatch, ready->push);
        batch->pipeline = VK_NULL_HANDLE;
        stream_note(batch, dispatch->cost);
        stamps_after(vulkan, batch, ready->owner);
        return;
    }
    if (batch->pipeline != ready->program.pipeline) {
        batch->pipeline = ready->program.pipeline;
        vulkan->call.CmdBindPipeline(batch->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                     batch->pipeline);
    }
    if (ready->push_bytes > 0)
        vulkan->call.CmdPushConstants(batch->commands, vulkan->pipelines.layout,
                                      VK_SHADER_STAGE_COMPUTE_BIT, 0, ready->push_bytes,
                                      ready->push);
    int axis = ready->axis;
    uint32_t base[3] = {0, 0, 0};
    uint32_t groups[3] = {dispatch->groups[0], dispatch->groups[1], dispatch->groups[2]};
    uint64_t cost = dispatch->cost / groups[axis] * ready->part.bytes;
    base[axis] = (uint32_t)ready->part.offset;
    groups[axis] = (uint32_t)ready->part.bytes;
    vulkan->call.CmdDispatchBase(batch->commands, base[0], base[1], base[2], groups[0], groups[1],
                                 groups[2]);
    stream_note(batch, cost);
    stamps_after(vulkan, batch, ready->owner);
}

static Status record_in_parts(VulkanDevice *vulkan, const VulkanDispatch *dispatch) {
    char push[VULKAN_PUSH_BYTES];
    Ready ready = {.dispatch = dispatch,
                   .push = push,
                   .axis = dispatch->groups[2] > 1 ? 2 : 1,
                   .owner = stamps_owner()};
    TRY(pipeline_find(vulkan, dispatch, &ready.program));
    uint64_t whole = dispatch->groups[ready.axis], pieces = stream_pieces(dispatch->cost);
    uint64_t part = (whole + pieces - 1) / pieces;
    for (uint64_t first = 0; first < whole; first += part) {
        uint64_t left = whole - first;
        ready.part = (VulkanRange){first, left < part ? left : part};
        TRY(prepare_push(vulkan, dispatch, push, &ready.push_bytes));
        VulkanBatch *batch;
        TRY(stream_begin(vulkan, &batch));
        record(vulkan, batch, &ready);
        TRY(stream_submit_full(vulkan, batch));
    }
    return STATUS_OK;
}

// --- what is held --------------------------------------------------------------------------------

// Memory that it uses stays, whoever releases it, and is waited for by who reads it.
static void keep_memories(VulkanDevice *vulkan, const VulkanDispatch *dispatch) {
    uint64_t serial = vulkan->stream.serial;
    for (int i = 0; i < dispatch->n_reads; i++) dispatch->reads[i]->last_use = serial;
    for (int i = 0; i < dispatch->n_writes; i++) {
        dispatch->writes[i]->last_use = serial;
        dispatch->writes[i]->producer = serial;
    }
}

static bool touches(const VulkanDispatch *dispatch, const VulkanMemory *memory, bool reads) {
    for (int i = 0; reads && i < dispatch->n_reads; i++)
        if (dispatch->reads[i] == memory) return true;
    for (int i = 0; i < dispatch->n_writes; i++)
        if (dispatch->writes[i] == memory) return true;
    return false;
}

// Whether two dispatches may run at the same time.
static bool is_apart(const VulkanDispatch *a, const VulkanDispatch *b) {
    for (int i = 0; i < a->n_reads; i++)
        if (touches(b, a->reads[i], false)) return false;
    for (int i = 0; i < a->n_writes; i++)
        if (touches(b, a->writes[i], true)) return false;
    return true;
}

static Status hold(VulkanDevice *vulkan, const VulkanDispatch *dispatch) {
    VulkanStream *stream = &vulkan->stream;
    VulkanProgram program;
    VulkanBatch *batch;
    VulkanHeld held = {.dispatch = *dispatch};
    TRY(pipeline_find(vulkan, dispatch, &program));
    TRY(prepare_push(vulkan, dispatch, held.push, &held.push_bytes));
    held.dispatch.arguments = NULL;
    bool adjacent = stream->held_count == 1 && is_apart(&stream->held[0].dispatch, dispatch);
    if (!adjacent) TRY(stream_begin(vulkan, &batch));
    ASSERT((size_t)stream->held_count < sizeof stream->held / sizeof *stream->held);
    stream->held[stream->held_count] = held;
    stream->held_programs[stream->held_count] = program;
    stream->held_owners[stream->held_count++] = stamps_owner();
    keep_memories(vulkan, dispatch);
    return STATUS_OK;
}

static void record_ready(VulkanDevice *vulkan, const VulkanHeld *held, VulkanProgram program,
                         TimelineOwner owner) {
    VulkanStream *stream = &vulkan->stream;
    Ready ready = {.dispatch = &held->dispatch,
                   .program = program,
                   .push = held->push,
                   .push_bytes = held->push_bytes,
                   .part = {0, held->dispatch.groups[0]},
                   .owner = owner};
    record(vulkan, &stream->batches[stream->serial % VULKAN_BATCHES], &ready);
}

void held_record(VulkanDevice *vulkan) {
    VulkanStream *stream = &vulkan->stream;
    for (int i = 0; i < stream->held_count; i++)
        record_ready(vulkan, &stream->held[i], stream->held_programs[i], stream->held_owners[i]);
    stream->held_count = 0;
}

static Status join(VulkanDevice *vulkan, const VulkanHeld *joined, int count) {
    ASSERT(count > 0 && count <= vulkan->stream.held_count);
    VulkanStream *stream = &vulkan->stream;
    VulkanProgram program;
    TRY(pipeline_find(vulkan, &joined->dispatch, &program));
    stream->held_count -= count;
    TimelineOwner owner = stream->held_owners[stream->held_count]; // its time is that of the first
    held_record(vulkan);
    record_ready(vulkan, joined, program, owner);
    return stream_submit_full(vulkan, &stream->batches[stream->serial % VULKAN_BATCHES]);
}

bool vulkan_join(Device *device, VulkanJoiner joiner, const void *context, Status *status) {
    VulkanDevice *vulkan = vulkan_of(device);
    VulkanStream *stream = &vulkan->stream;
    VulkanHeld joined;
    if (device->foretold) return false;
    pthread_mutex_lock(&vulkan->lock);
    int count = 0;
    if (stream->held_count > 0 && !vulkan->lost)
        count = joiner(stream->held, stream->held_count, context, &joined);
    if (count > 0) *status = join(vulkan, &joined, count);
    pthread_mutex_unlock(&vulkan->lock);
    return count > 0;
}

// --- dispatch ------------------------------------------------------------------------------------

Status vulkan_dispatch(Device *device, const VulkanDispatch *dispatch) {
    ASSERT(dispatch->n_reads <= VULKAN_READS_MAX && dispatch->n_writes <= VULKAN_WRITES_MAX);
    ASSERT((unsigned)dispatch->shader < VULKAN_SHADER_COUNT);
    VulkanDevice *vulkan = vulkan_of(device);
    for (int i = 0; i < 3; i++) {
        if (dispatch->groups[i] == 0) return STATUS_OK;
        ASSERT(dispatch->groups[i] <= vulkan->physical.features.groups_max[i]);
    }
    if (device->foretold) return pipeline_check(vulkan, dispatch->shader);
    bool held = dispatch->held_results > 0 && stream_pieces(dispatch->cost) == 1;
    pthread_mutex_lock(&vulkan->lock);
    Status status = vulkan->lost ? vulkan_refuse_lost(vulkan)
                    : held       ? hold(vulkan, dispatch)
                                 : record_in_parts(vulkan, dispatch);
    pthread_mutex_unlock(&vulkan->lock);
    return status;
}
