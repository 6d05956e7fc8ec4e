// Device memory in blocks: small memory shares blocks of 64 MiB, because drivers allow only a few
// thousand allocations; large memory has a block of its own. Memory that submitted work still uses
// leaves when that work is done.
#include <stdlib.h>

#include "device/vulkan/core.h"

enum {
    SHARED_BLOCK_BYTES = 64 << 20,
    SHARED_BYTES_MAX = 8 << 20, // what is larger has a block of its own
    RANGE_ALIGNMENT = 256,
};

// --- memory types --------------------------------------------------------------------------------

// The first type with all of `needed`, preferably with `liked` too: drivers sort them by speed.
static bool find_type(const VulkanPhysical *physical, uint32_t heap_or_all,
                      VkMemoryPropertyFlags needed, VkMemoryPropertyFlags liked, uint32_t *out) {
    const VkPhysicalDeviceMemoryProperties *memory = &physical->memory;
    for (int pass = 0; pass < 2; pass++) {
        VkMemoryPropertyFlags wanted = pass == 0 ? needed | liked : needed;
        for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
            if ((memory->memoryTypes[i].propertyFlags & wanted) != wanted) continue;
            if (heap_or_all != UINT32_MAX && memory->memoryTypes[i].heapIndex != heap_or_all)
                continue;
            *out = i;
            return true;
        }
    }
    return false;
}

Status memories_open(VulkanDevice *vulkan) {
    const VulkanPhysical *physical = &vulkan->physical;
    VulkanMemories *memories = &vulkan->memories;
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    bool complete = find_type(physical, physical->heap, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
                              &memories->type) &&
                    find_type(physical, UINT32_MAX, seen, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                              &memories->staging_type) &&
                    find_type(physical, UINT32_MAX, seen, VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                              &memories->read_type);
    return complete ? STATUS_OK : fail(STATUS_DEVICE, "it has no memory that the host can write");
}

// --- blocks --------------------------------------------------------------------------------------

static Status create_buffer(VulkanDevice *vulkan, VulkanBlock *block) {
    static const VkExternalMemoryBufferCreateInfo locked = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
    };
    const VkBufferUsageFlags copied =
        VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    const VkBufferUsageFlags computed =
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = block->locked ? &locked : NULL,
        .size = block->bytes,
        .usage = block->locked ? copied : copied | computed,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    TRY(vulkan_check(vulkan, vulkan->call.CreateBuffer(vulkan->handle, &info, NULL, &block->buffer),
                     "making a buffer"));
    vulkan->ledger[OBJECT_BUFFER]++;
    return STATUS_OK;
}

static Status allocate(VulkanDevice *vulkan, VulkanBlock *block, uint32_t type) {
    VkMemoryRequirements requirements;
    vulkan->call.GetBufferMemoryRequirements(vulkan->handle, block->buffer, &requirements);
    if (!(requirements.memoryTypeBits >> type & 1))
        return fail(STATUS_DEVICE, "%s keeps no buffers in its memory", vulkan->device->name);
    VkImportMemoryHostPointerInfoEXT pages = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = block->locked,
    };
    VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = block->locked ? (const void *)&pages : &flags,
        .allocationSize = block->locked ? block->bytes : requirements.size,
        .memoryTypeIndex = type,
    };
    TRY(vulkan_check(vulkan,
                     vulkan->call.AllocateMemory(vulkan->handle, &info, NULL, &block->memory),
                     "allocating memory"));
    vulkan->ledger[OBJECT_MEMORY]++;
    return vulkan_check(
        vulkan, vulkan->call.BindBufferMemory(vulkan->handle, block->buffer, block->memory, 0),
        "binding memory");
}

static Status map(VulkanDevice *vulkan, VulkanBlock *block) {
    return vulkan_check(
        vulkan,
        vulkan->call.MapMemory(vulkan->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &block->mapped),
        "mapping memory");
}

// Takes the block, which is to have memory of a type, or is freed.
static Status fill_block(VulkanDevice *vulkan, VulkanBlock *block, uint32_t type, bool mapped) {
    Status status = create_buffer(vulkan, block);
    if (status == STATUS_OK) status = allocate(vulkan, block, type);
    if (status == STATUS_OK && mapped) status = map(vulkan, block);
    if (status != STATUS_OK) {
        block_free(vulkan, block);
        return status;
    }
    if (block->locked) return STATUS_OK;
    VkBufferDeviceAddressInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
        .buffer = block->buffer,
    };
    block->address = vulkan->call.GetBufferDeviceAddress(vulkan->handle, &info);
    return STATUS_OK;
}

static Status new_block(VulkanDevice *vulkan, VkDeviceSize bytes, uint32_t type, bool mapped,
                        VulkanBlock **out) {
    if (vulkan->ledger[OBJECT_MEMORY] >= vulkan->physical.allocations_max)
        return fail(STATUS_MEMORY, "%s allows no more than %u allocations", vulkan->device->name,
                    vulkan->physical.allocations_max);
    VulkanBlock *block = memory_allocate_zeroed(1, sizeof *block);
    block->bytes = bytes;
    TRY(fill_block(vulkan, block, type, mapped));
    *out = block;
    return STATUS_OK;
}

Status block_new_mapped(VulkanDevice *vulkan, VkDeviceSize bytes, uint32_t type,
                        VulkanBlock **out) {
    return new_block(vulkan, bytes, type, true, out);
}

void block_free(VulkanDevice *vulkan, VulkanBlock *block) {
    if (block->buffer) {
        vulkan->call.DestroyBuffer(vulkan->handle, block->buffer, NULL);
        ASSERT(vulkan->ledger[OBJECT_BUFFER] > 0);
        vulkan->ledger[OBJECT_BUFFER]--;
    }
    if (block->memory) {
        vulkan->call.FreeMemory(vulkan->handle, block->memory, NULL);
        ASSERT(vulkan->ledger[OBJECT_MEMORY] > 0);
        vulkan->ledger[OBJECT_MEMORY]--;
    }
    VECTOR_FREE(&block->free);
    free(block);
}

// --- ranges of shared blocks ---------------------------------------------------------------------

// The smallest free range that serves.
static bool take_range(VulkanBlock *block, VkDeviceSize bytes, VkDeviceSize *offset) {
    size_t best = block->free.count;
    for (size_t i = 0; i < block->free.count; i++)
        if (block->free.items[i].bytes >= bytes &&
            (best == block->free.count ||
             block->free.items[i].bytes < block->free.items[best].bytes))
            best = i;
    if (best == block->free.count) return false;
    VulkanRange *range = &block->free.items[best];
    *offset = range->offset;
    ASSERT(range->offset + range->bytes <= block->bytes);
    range->offset += bytes;
    range->bytes -= bytes;
    if (range->bytes == 0) {
        block->free.count--;
        memmove(range, range + 1, (block->free.count - best) * sizeof *range);
    }
    return true;
}

static void return_range(VulkanBlock *block, VulkanRange range) {
    ASSERT(range.bytes > 0 && range.offset + range.bytes <= block->bytes);
    size_t at = 0;
    while (at < block->free.count && block->free.items[at].offset < range.offset) at++;
    VulkanRange *items = block->free.items;
    ASSERT(at == block->free.count || range.offset + range.bytes <= items[at].offset);
    ASSERT(at == 0 || items[at - 1].offset + items[at - 1].bytes <= range.offset);
    bool joins_before = at > 0 && items[at - 1].offset + items[at - 1].bytes == range.offset;
    bool joins_after = at < block->free.count && range.offset + range.bytes == items[at].offset;
    if (joins_before && joins_after) {
        items[at - 1].bytes += range.bytes + items[at].bytes;
        block->free.count--;
        memmove(&items[at], &items[at + 1], (block->free.count - at) * sizeof *items);
    } else if (joins_before) {
        items[at - 1].bytes += range.bytes;
    } else if (joins_after) {
        items[at].offset = range.offset;
        items[at].bytes += range.bytes;
    } else {
        VECTOR_PUSH(&block->free, range);
        items = block->free.items;
        memmove(&items[at + 1], &items[at], (block->free.count - 1 - at) * sizeof *items);
        items[at] = range;
    }
}

static bool is_empty(const VulkanBlock *block) {
    return block->free.count == 1 && block->free.items[0].bytes == block->bytes;
}

static void link_block(VulkanMemories *memories, VulkanBlock *block) {
    VulkanBlock **first = &memories->blocks[block->on_host];
    block->next = *first;
    if (block->next) block->next->previous = block;
    *first = block;
}

static void unlink_block(VulkanMemories *memories, VulkanBlock *block) {
    if (block->previous)
        block->previous->next = block->next;
    else
        memories->blocks[block->on_host] = block->next;
    if (block->next) block->next->previous = block->previous;
}

// A block without tenants goes, unless it is the only one: the next small tensor would want it.
static void drop_if_empty(VulkanDevice *vulkan, VulkanBlock *block) {
    VulkanMemories *memories = &vulkan->memories;
    bool only = memories->blocks[block->on_host] == block && !block->next;
    if (!is_empty(block) || only) return;
    unlink_block(memories, block);
    block_free(vulkan, block);
}

static Status take_shared(VulkanDevice *vulkan, bool on_host, VulkanMemory *memory) {
    const VulkanMemories *memories = &vulkan->memories;
    for (VulkanBlock *block = memories->blocks[on_host]; block; block = block->next) {
        if (!take_range(block, memory->bytes, &memory->offset)) continue;
        memory->block = block;
        return STATUS_OK;
    }
    VulkanBlock *block;
    uint32_t type = on_host ? memories->read_type : memories->type;
    TRY(new_block(vulkan, SHARED_BLOCK_BYTES, type, false, &block));
    block->on_host = on_host;
    VulkanRange all = {0, block->bytes};
    VECTOR_PUSH(&block->free, all);
    link_block(&vulkan->memories, block);
    memory->block = block;
    ASSERT(take_range(block, memory->bytes, &memory->offset));
    return STATUS_OK;
}

// --- memory --------------------------------------------------------------------------------------

static Status check_size(const VulkanDevice *vulkan, VkDeviceSize bytes) {
    if (bytes <= vulkan->physical.allocation_bytes_max) return STATUS_OK;
    fail(STATUS_DEVICE, "%s gives at most %.0f MB in one piece; a tensor asks for %.0f MB",
         vulkan->device->name, (double)vulkan->physical.allocation_bytes_max / 0x1p20,
         (double)bytes / 0x1p20);
    return fail_help("cut the tensor in parts");
}

static Status new_memory(VulkanDevice *vulkan, size_t bytes, bool on_host, VulkanMemory **out) {
    VkDeviceSize rounded =
        ((VkDeviceSize)bytes + RANGE_ALIGNMENT - 1) & ~(VkDeviceSize)(RANGE_ALIGNMENT - 1);
    if (rounded == 0) rounded = RANGE_ALIGNMENT;
    TRY(check_size(vulkan, rounded));
    memories_collect(vulkan);
    VulkanMemory *memory = memory_allocate_zeroed(1, sizeof *memory);
    memory->bytes = rounded;
    memory->own_block = rounded > SHARED_BYTES_MAX;
    uint32_t type = on_host ? vulkan->memories.read_type : vulkan->memories.type;
    Status status = memory->own_block ? new_block(vulkan, rounded, type, false, &memory->block)
                                      : take_shared(vulkan, on_host, memory);
    if (status != STATUS_OK) {
        free(memory);
        return status;
    }
    memory->address = memory->block->address + memory->offset;
    ASSERT(memory->offset + memory->bytes <= memory->block->bytes);
    *out = memory;
    return STATUS_OK;
}

Status memory_new(VulkanDevice *vulkan, size_t bytes, VulkanMemory **out) {
    return new_memory(vulkan, bytes, false, out);
}

Status memory_new_on_host(VulkanDevice *vulkan, size_t bytes, VulkanMemory **out) {
    return new_memory(vulkan, bytes, true, out);
}

// The first type that such pages may have and the host sees as it sees its own.
static Status lock_block(VulkanDevice *vulkan, VulkanBlock *block) {
    VkMemoryHostPointerPropertiesEXT pages = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult result = vulkan->call.GetMemoryHostPointerPropertiesEXT(
        vulkan->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, block->locked,
        &pages);
    const VkPhysicalDeviceMemoryProperties *memory = &vulkan->physical.memory;
    uint32_t type = 0, count = result == VK_SUCCESS ? memory->memoryTypeCount : 0;
    while (type < count &&
           !(pages.memoryTypeBits >> type & 1 &&
             memory->memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
        type++;
    if (type < count) return fill_block(vulkan, block, type, false);
    free(block);
    return STATUS_DEVICE; // whoever asks goes another way
}

Status memory_lock(VulkanDevice *vulkan, void *bytes, size_t count, VulkanMemory **out) {
    if (!vulkan->physical.locks_host) return STATUS_DEVICE;
    VulkanBlock *block = memory_allocate_zeroed(1, sizeof *block);
    block->bytes = count;
    block->locked = bytes;
    TRY(lock_block(vulkan, block));
    *out = memory_allocate_zeroed(1, sizeof **out);
    **out = (VulkanMemory){.block = block, .bytes = count, .own_block = true};
    return STATUS_OK;
}

static void free_memory(VulkanDevice *vulkan, VulkanMemory *memory) {
    VulkanBlock *block = memory->block;
    if (memory->own_block) {
        block_free(vulkan, block);
    } else {
        return_range(block, (VulkanRange){memory->offset, memory->bytes});
        drop_if_empty(vulkan, block);
    }
    free(memory);
}

void memory_release(VulkanDevice *vulkan, VulkanMemory *memory) {
    ASSERT(memory->block != NULL);
    if (memory->last_use <= vulkan->stream.completed) {
        free_memory(vulkan, memory);
        return;
    }
    memory->next = vulkan->memories.leaving;
    vulkan->memories.leaving = memory;
}

void memories_collect(VulkanDevice *vulkan) {
    VulkanMemory **link = &vulkan->memories.leaving;
    while (*link) {
        VulkanMemory *memory = *link;
        if (memory->last_use > vulkan->stream.completed) {
            link = &memory->next;
            continue;
        }
        *link = memory->next;
        free_memory(vulkan, memory);
    }
}

void memories_close(VulkanDevice *vulkan) {
    while (vulkan->memories.leaving) {
        VulkanMemory *memory = vulkan->memories.leaving;
        vulkan->memories.leaving = memory->next;
        free_memory(vulkan, memory);
    }
    for (int on_host = 0; on_host < 2; on_host++) {
        while (vulkan->memories.blocks[on_host]) {
            VulkanBlock *block = vulkan->memories.blocks[on_host];
            unlink_block(&vulkan->memories, block);
            block_free(vulkan, block);
        }
    }
}
