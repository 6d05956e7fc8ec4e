// The block that each thread keeps; larger requests, or a second one at the same time, are
// malloc's.
#include "device/cpu/scratch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

enum { SCRATCH_KEPT_BYTES = 4 << 20, SCRATCH_ALIGNMENT = 64 };

typedef struct Kept {
    char *bytes;
    size_t size;
    bool taken;
} Kept;

static _Thread_local Kept kept;

// Frees the kept block when its thread ends.
static pthread_key_t kept_key;
static pthread_once_t kept_key_once = PTHREAD_ONCE_INIT;

static void kept_free(void *thread_kept) {
    Kept *own = thread_kept;
    free(own->bytes);
    *own = (Kept){0};
}

static void kept_key_create(void) {
    ASSERT(pthread_key_create(&kept_key, kept_free) == 0);
}

static char *allocate_aligned(size_t bytes) {
    size_t rounded = (bytes + SCRATCH_ALIGNMENT) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    char *block = aligned_alloc(SCRATCH_ALIGNMENT, rounded);
    return block ? block : memory_allocate(bytes); // which ends the process in words
}

void *scratch_take(size_t bytes) {
    if (kept.taken || bytes > SCRATCH_KEPT_BYTES) return allocate_aligned(bytes);
    if (kept.size < bytes || !kept.bytes) {
        pthread_once(&kept_key_once, kept_key_create);
        pthread_setspecific(kept_key, &kept);
        free(kept.bytes);
        kept.bytes = allocate_aligned(bytes);
        kept.size = bytes;
    }
    kept.taken = true;
    return kept.bytes;
}

void scratch_give(void *scratch) {
    if (scratch == kept.bytes)
        kept.taken = false;
    else
        free(scratch);
}
