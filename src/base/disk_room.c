#include "base/disk_room.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/memory.h"

enum { BLOCK_BYTES = 4096 };

static bool limited;
static uint64_t left;

void disk_room_limit(uint64_t bytes) {
    struct rlimit limit;
    ASSERT(!limited);
    limited = true;
    left = bytes;
    getrlimit(RLIMIT_FSIZE, &limit);
    if (limit.rlim_cur > bytes) limit.rlim_cur = bytes;
    (void)setrlimit(RLIMIT_FSIZE, &limit); // it may always be lower
}

uint64_t disk_room_left(void) {
    return limited ? left : UINT64_MAX;
}

// In whole blocks, with one for the name.
static uint64_t blocks_bytes(int64_t bytes) {
    if (bytes == DISK_NOTHING) return 0;
    ASSERT(bytes >= 0);
    return ((uint64_t)bytes / BLOCK_BYTES + (bytes % BLOCK_BYTES > 0) + 1) * BLOCK_BYTES;
}

bool disk_room_take(int64_t before, int64_t after) {
    uint64_t had = blocks_bytes(before), has = blocks_bytes(after);
    if (!limited) return true;
    if (has > had && has - had > left) {
        errno = EFBIG;
        return false;
    }
    left += had - has; // wraps as it should
    return true;
}
