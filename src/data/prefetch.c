// A ring of batches: the thread fills the slot after the last full one, whoever asks takes the
// oldest, and the one that was taken before is free again.
#include "data/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/runtime.h"

typedef struct Slot {
    DataBatch batch;
    ErrorRecord *error; // NULL: it was read
} Slot;

struct Prefetch {
    BatchPlan plan;
    int64_t batches, next; // next: of who asks
    Slot *slots;
    int slot_count;
    bool threaded, stopping;
    int64_t filled, taken; // batches read so far, and those whose slots are free again
    Runtime *runtime;
    pthread_t thread;
    pthread_mutex_t lock; // of `filled`, `taken` and `stopping`
    pthread_cond_t moved;
};

size_t data_field_bytes(const DataField *field) {
    if (field->is_text) return sizeof(DataText);
    size_t bytes = field->dtype == DTYPE_INT64 ? sizeof(int64_t) : sizeof(float);
    for (int i = 0; i < field->shape.rank; i++) bytes *= (size_t)field->shape.dims[i];
    return bytes;
}

static Status read_rows(const BatchPlan *plan, int64_t first, DataBatch *batch) {
    const DataSource *source = plan->source;
    for (int64_t i = 0; i < batch->count; i++) {
        void *fields[DATA_FIELDS_MAX] = {NULL};
        for (int f = 0; f < source->n_fields; f++)
            fields[f] = (char *)batch->fields[f] + (size_t)i * data_field_bytes(&source->fields[f]);
        TRY(source->read(source, plan->rows[first + i], fields));
    }
    return STATUS_OK;
}

static void drop_texts(const DataSource *source, DataBatch *batch) {
    for (int f = 0; f < source->n_fields; f++) {
        DataText *texts = batch->fields[f];
        for (int64_t i = 0; i < batch->count && source->fields[f].is_text; i++) {
            free(texts[i].bytes);
            texts[i] = (DataText){0};
        }
    }
}

static void fill(Prefetch *prefetch, int64_t number, Slot *slot) {
    const BatchPlan *plan = &prefetch->plan;
    int64_t first = number * plan->batch, left = plan->count - first;
    drop_texts(plan->source, &slot->batch);
    slot->batch.count = left < plan->batch ? left : plan->batch;
    if (read_rows(plan, first, &slot->batch) == STATUS_OK) return;
    slot->error = memory_allocate(sizeof *slot->error);
    *slot->error = *error_current();
}

static void *run(void *argument) {
    Prefetch *prefetch = argument;
    runtime_enter(prefetch->runtime);
    pthread_mutex_lock(&prefetch->lock);
    while (!prefetch->stopping && prefetch->filled < prefetch->batches) {
        if (prefetch->filled - prefetch->taken >= prefetch->slot_count) {
            pthread_cond_wait(&prefetch->moved, &prefetch->lock);
            continue;
        }
        int64_t number = prefetch->filled;
        pthread_mutex_unlock(&prefetch->lock);
        fill(prefetch, number, &prefetch->slots[number % prefetch->slot_count]);
        pthread_mutex_lock(&prefetch->lock);
        prefetch->filled++;
        pthread_cond_broadcast(&prefetch->moved);
    }
    pthread_mutex_unlock(&prefetch->lock);
    return NULL;
}

// Signals are for the threads that expect them.
static bool start_thread(Prefetch *prefetch) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); // of mapped files: it comes to who reads them
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = pthread_create(&prefetch->thread, NULL, run, prefetch) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

Prefetch *prefetch_start(const BatchPlan *plan) {
    Prefetch *prefetch = memory_allocate_zeroed(1, sizeof *prefetch);
    const DataSource *source = plan->source;
    prefetch->plan = *plan;
    prefetch->batches = (plan->count + plan->batch - 1) / plan->batch;
    // One more than are ahead: that which is in use.
    prefetch->slot_count = plan->ahead + 1;
    int64_t room = plan->batch < plan->count ? plan->batch : plan->count;
    prefetch->slots = memory_allocate_zeroed((size_t)prefetch->slot_count, sizeof(Slot));
    for (int i = 0; i < prefetch->slot_count; i++)
        for (int f = 0; f < source->n_fields; f++)
            prefetch->slots[i].batch.fields[f] =
                memory_allocate_zeroed((size_t)room + 1, data_field_bytes(&source->fields[f]));
    prefetch->runtime = runtime_current;
    pthread_mutex_init(&prefetch->lock, NULL);
    pthread_cond_init(&prefetch->moved, NULL);
    // Where the system gives no thread, batches are read when they are asked for.
    prefetch->threaded = plan->ahead > 0 && start_thread(prefetch);
    return prefetch;
}

// The slot of the next batch, filled; what was given before is free from here on.
static Slot *wait_for_next(Prefetch *prefetch) {
    int64_t number = prefetch->next++;
    Slot *slot = &prefetch->slots[number % prefetch->slot_count];
    if (!prefetch->threaded) {
        fill(prefetch, number, slot);
        return slot;
    }
    pthread_mutex_lock(&prefetch->lock);
    prefetch->taken = number;
    pthread_cond_broadcast(&prefetch->moved);
    while (prefetch->filled <= number) pthread_cond_wait(&prefetch->moved, &prefetch->lock);
    pthread_mutex_unlock(&prefetch->lock);
    return slot;
}

Status prefetch_next(Prefetch *prefetch, DataBatch *out) {
    *out = (DataBatch){0};
    if (prefetch->next == prefetch->batches) return STATUS_OK;
    const Slot *slot = wait_for_next(prefetch);
    if (slot->error) {
        (void)fail(slot->error->code, "%s", slot->error->message);
        return slot->error->help[0] ? fail_help("%s", slot->error->help) : slot->error->code;
    }
    *out = slot->batch;
    return STATUS_OK;
}

void prefetch_stop(Prefetch *prefetch) {
    if (prefetch->threaded) {
        pthread_mutex_lock(&prefetch->lock);
        prefetch->stopping = true;
        pthread_cond_broadcast(&prefetch->moved);
        pthread_mutex_unlock(&prefetch->lock);
        pthread_join(prefetch->thread, NULL);
    }
    for (int i = 0; i < prefetch->slot_count; i++) {
        drop_texts(prefetch->plan.source, &prefetch->slots[i].batch);
        for (int f = 0; f < DATA_FIELDS_MAX; f++) free(prefetch->slots[i].batch.fields[f]);
        free(prefetch->slots[i].error);
    }
    pthread_mutex_destroy(&prefetch->lock);
    pthread_cond_destroy(&prefetch->moved);
    free(prefetch->slots);
    free(prefetch->plan.rows);
    free(prefetch);
}
