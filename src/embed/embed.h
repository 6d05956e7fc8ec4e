// What the files of the embedding API (include/tl.h) share: runtimes and values as it has them.
#ifndef EMBED_EMBED_H
#define EMBED_EMBED_H

#include <pthread.h>

#include "eval/session.h"
#include "include/tl.h"
#include "runtime/runtime.h"
#include "value/builtin.h"

// A failure with texts of its own, which `error` points to.
typedef struct Failed {
    tl_error error;
    ErrorRecord record;
    char *file, *text;
} Failed;

struct tl_runtime {
    Runtime *runtime;
    Interp *interp;
    Session *session;
    pthread_mutex_t lock; // held by the thread that is inside, for all that it starts
    uint64_t references;  // the caller's, and one a value; with the lock held
    uint64_t values;
    bool running; // a program: lines of a session do not nest
    Failed *failed;
    FILE *out, *errors; // streams over `write`; NULL: the process's
    tl_write write;
    void *write_context;
};

// Lies in the collector's memory, rooted: it keeps strings alive.
struct tl_value {
    tl_runtime *owner;
    uint64_t references;
    Value value;
};

// Into a runtime, unless this thread is inside it already, and out again.
typedef struct Entry {
    tl_runtime *owner;
    Runtime *before;
    bool inside; // already
} Entry;
Entry embed_enter(tl_runtime *owner);
void embed_leave(Entry entry);
// What the current error amounts to becomes the runtime's, when status is not STATUS_OK; then out.
tl_status embed_finish(Entry entry, Status status);
void embed_set_failed(tl_runtime *owner, const DiagnosticList *diagnostics);
void failed_free(Failed *failed);

// A new reference over a value, which it takes. Inside.
tl_value *embed_give(tl_runtime *owner, Value value);
// The values, borrowed; false (the error is recorded) when one is NULL or another runtime's.
// Inside.
bool embed_take(tl_runtime *owner, tl_value *const *given, size_t count, Value *values);

#endif
