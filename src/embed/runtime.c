// Runtimes of the embedding API: their life, who is inside, programs, calls, output.
#define _GNU_SOURCE // fopencookie
#include <stdlib.h>
#include <string.h>

#include "base/diagnostic.h"
#include "base/output.h"
#include "base/source.h"
#include "device/buffer.h"
#include "device/settings.h"
#include "embed/embed.h"
#include "eval/invoke.h"
#include "eval/state.h"
#include "learn/learn.h"
#include "tensor/random.h"
#include "value/heap.h"

static void embed_end(tl_runtime *owner);

const char *tl_version(void) {
    return TL_VERSION;
}

// --- who is inside

Entry embed_enter(tl_runtime *owner) {
    Entry entry = {.owner = owner, .before = runtime_current};
    entry.inside = runtime_current == owner->runtime;
    if (entry.inside) return entry;
    pthread_mutex_lock(&owner->lock);
    runtime_enter(owner->runtime);
    heap_start(); // the collector is told of this thread
    return entry;
}

void embed_leave(Entry entry) {
    if (entry.inside) return;
    output_flush();
    runtime_enter(entry.before);
    bool last = entry.owner->references == 0;
    pthread_mutex_unlock(&entry.owner->lock);
    if (last) embed_end(entry.owner);
}

tl_status embed_finish(Entry entry, Status status) {
    if (status != STATUS_OK) embed_set_failed(entry.owner, NULL);
    embed_leave(entry);
    return status == STATUS_OK ? TL_OK : TL_FAILED;
}

// --- life

static void begin_session(void *context) {
    tl_runtime *owner = context;
    owner->session = session_new(owner->interp);
}

static void end_session(void *context) {
    tl_runtime *owner = context;
    session_reset(owner->session);
    session_free(owner->session);
    (void)interp_free(owner->interp, 0);
}

static Status open_runtime(tl_runtime *owner, const char *device) {
    if (device) device_setting_choose(VARIABLE_TL_DEVICE, device);
    TRY(device_settings_check());
    Device *opened;
    TRY(device_default(&opened));
    InterpOptions options = {.quiet = true};
    owner->interp = interp_new(owner->runtime, &options);
    return interp_enter(owner->interp, begin_session, owner);
}

// The error of a runtime that did not come to be belongs to the thread.
static void keep_open_error(const tl_error **error) {
    static _Thread_local tl_error kept;
    const ErrorRecord *record = error_current();
    kept = (tl_error){.kind = record->kind,
                      .message = record->message,
                      .label = record->label,
                      .help = record->help,
                      .text = record->message};
    if (error) *error = &kept;
}

tl_runtime *tl_runtime_new(const char *device, const tl_error **error) {
    tl_runtime *owner = memory_allocate_zeroed(1, sizeof *owner);
    owner->runtime = runtime_new();
    owner->references = 1;
    pthread_mutex_init(&owner->lock, NULL);
    Entry entry = embed_enter(owner);
    Status status = open_runtime(owner, device);
    if (status == STATUS_OK) {
        embed_leave(entry);
        return owner;
    }
    keep_open_error(error);
    if (owner->interp) (void)interp_free(owner->interp, 0);
    runtime_enter(entry.before);
    pthread_mutex_unlock(&owner->lock);
    runtime_free(owner->runtime);
    pthread_mutex_destroy(&owner->lock);
    free(owner);
    return NULL;
}

static void close_streams(tl_runtime *owner) {
    output_redirect(NULL, NULL);
    if (owner->out) fclose(owner->out);
    if (owner->errors) fclose(owner->errors);
    owner->out = owner->errors = NULL;
}

static void embed_end(tl_runtime *owner) {
    Runtime *before = runtime_enter(owner->runtime);
    heap_start();
    if (interp_enter(owner->interp, end_session, owner) != STATUS_OK) end_session(owner);
    close_streams(owner);
    runtime_enter(before);
    runtime_free(owner->runtime);
    if (owner->failed) failed_free(owner->failed);
    pthread_mutex_destroy(&owner->lock);
    free(owner);
}

void tl_runtime_free(tl_runtime *runtime) {
    if (!runtime) return;
    Entry entry = embed_enter(runtime);
    runtime->references--;
    embed_leave(entry);
}

void tl_seed(tl_runtime *runtime, uint64_t seed) {
    Entry entry = embed_enter(runtime);
    random_seed(seed);
    embed_leave(entry);
}

void tl_ledger(tl_runtime *runtime, tl_ledger_entry *ledger) {
    Entry entry = embed_enter(runtime);
    PoolStatistics pool = pool_statistics(device_default_opened());
    *ledger = (tl_ledger_entry){.live_bytes = pool.live_bytes,
                                .live_buffers = pool.live_buffers,
                                .peak_bytes = pool.peak_bytes,
                                .cached_bytes = pool.cached_bytes,
                                .borrowed_bytes = pool.mapped_bytes,
                                .objects = heap_object_count(),
                                .values = runtime->values};
    embed_leave(entry);
}

void tl_interrupt(tl_runtime *runtime) {
    runtime_interrupt(runtime->runtime, INTERRUPT_SIGNAL);
}

// --- programs

typedef struct ProgramRun {
    tl_runtime *owner;
    const SourceFile *source;
    tl_value **result;
    bool succeeded;
} ProgramRun;

static void run_source(void *context) {
    ProgramRun *run = context;
    tl_runtime *owner = run->owner;
    DiagnosticList diagnostics = {0};
    Line *line = session_prepare(owner->session, run->source, &diagnostics);
    if (!line) embed_set_failed(owner, &diagnostics);
    diagnostic_list_free(&diagnostics);
    if (!line) return;
    Value value;
    Status status = session_run(line, &value);
    int exit_status;
    run->succeeded = status == STATUS_OK && !interp_exit_requested(owner->interp, &exit_status);
    if (!run->succeeded) {
        value_release(value);
        embed_set_failed(owner, NULL);
        owner->interp->exit_requested = false;
        session_drop(line);
        return;
    }
    session_keep(line);
    if (run->result)
        *run->result = embed_give(owner, value);
    else
        value_release(value);
}

// One program at a time: what a function of the host runs would be part of the line that called it.
static Status run_one(ProgramRun *run) {
    if (run->owner->running) {
        (void)fail(STATUS_VALUE, "a program of this runtime is running");
        return fail_help("a function that tl calls may use tl_call, or another runtime");
    }
    run->owner->running = true;
    Status status = interp_enter(run->owner->interp, run_source, run);
    run->owner->running = false;
    return status;
}

static tl_status run_loaded(Entry entry, Status loaded, ProgramRun *run) {
    Status status = loaded == STATUS_OK ? run_one(run) : loaded;
    if (status != STATUS_OK) return embed_finish(entry, status);
    embed_leave(entry);
    return run->succeeded ? TL_OK : TL_FAILED;
}

tl_status tl_run_text(tl_runtime *runtime, const char *name, const char *text, tl_value **result) {
    ProgramRun run = {.owner = runtime, .result = result};
    Entry entry = embed_enter(runtime);
    Status status = source_add(name ? name : "<text>", text, strlen(text), &run.source);
    return run_loaded(entry, status, &run);
}

tl_status tl_run_file(tl_runtime *runtime, const char *path, tl_value **result) {
    ProgramRun run = {.owner = runtime, .result = result};
    Entry entry = embed_enter(runtime);
    return run_loaded(entry, source_load(path, &run.source), &run);
}

tl_status tl_get(tl_runtime *runtime, const char *name, tl_value **result) {
    Entry entry = embed_enter(runtime);
    Value value;
    Status status = session_get(runtime->session, name, strlen(name), &value);
    if (status == STATUS_OK) *result = embed_give(runtime, value);
    return embed_finish(entry, status);
}

tl_status tl_set(tl_runtime *runtime, const char *name, tl_value *value) {
    Entry entry = embed_enter(runtime);
    Value given;
    Status status = STATUS_VALUE;
    if (embed_take(runtime, &value, 1, &given))
        status = session_define(runtime->session, name, value_retain(given));
    return embed_finish(entry, status);
}

// --- calls

typedef struct Call {
    Interp *interp;
    Value function, result;
    const Value *arguments;
    size_t count;
} Call;

static void run_call(void *context) {
    Call *call = context;
    call->result = interp_call(call->interp, call->function, call->arguments, call->count);
}

static Status call_inside(tl_runtime *owner, Call *call, bool outermost) {
    if (outermost) {
        error_clear();
        (void)runtime_take_interrupts(owner->runtime, INTERRUPT_SIGNAL);
    }
    TRY(interp_enter_here(owner->interp, run_call, call));
    if (call->result.kind != VALUE_FAIL) return STATUS_OK;
    Status code = error_current()->code;
    return code == STATUS_OK ? STATUS_INTERRUPT : code; // exit(n) has no words
}

tl_status tl_call(tl_value *function, tl_value *const *arguments, size_t count, tl_value **result) {
    tl_runtime *owner = function->owner;
    Entry entry = embed_enter(owner);
    Value values[count + 1];
    Status status = STATUS_VALUE;
    Call call = {owner->interp, function->value, value_fail(), values, count};
    if (embed_take(owner, arguments, count, values))
        status = call_inside(owner, &call, !entry.inside);
    if (status == STATUS_OK && result)
        *result = embed_give(owner, call.result);
    else if (status == STATUS_OK)
        value_release(call.result);
    if (status != STATUS_OK) embed_set_failed(owner, NULL);
    if (!entry.inside) owner->interp->exit_requested = false;
    embed_leave(entry);
    return status == STATUS_OK ? TL_OK : TL_FAILED;
}

// --- output

static ssize_t write_out(void *cookie, const char *bytes, size_t length) {
    const tl_runtime *owner = cookie;
    owner->write(owner->write_context, 0, bytes, length);
    return (ssize_t)length;
}

static ssize_t write_errors(void *cookie, const char *bytes, size_t length) {
    const tl_runtime *owner = cookie;
    owner->write(owner->write_context, 1, bytes, length);
    return (ssize_t)length;
}

void tl_on_output(tl_runtime *runtime, tl_write write, void *context) {
    Entry entry = embed_enter(runtime);
    output_flush();
    close_streams(runtime);
    runtime->write = write;
    runtime->write_context = context;
    if (write) {
        runtime->out = fopencookie(runtime, "w", (cookie_io_functions_t){.write = write_out});
        runtime->errors = fopencookie(runtime, "w", (cookie_io_functions_t){.write = write_errors});
        if (!runtime->out || !runtime->errors) memory_end(sizeof(FILE));
        setvbuf(runtime->out, NULL, _IOLBF, BUFSIZ); // whoever reads along sees each line at once
        setvbuf(runtime->errors, NULL, _IONBF, 0);
        output_redirect(runtime->out, runtime->errors);
    }
    embed_leave(entry);
}

void tl_on_picture(tl_runtime *runtime, tl_picture picture, void *context) {
    Entry entry = embed_enter(runtime);
    output_show_pictures(picture, context);
    embed_leave(entry);
}

void tl_on_progress(tl_runtime *runtime, tl_progress progress, void *context) {
    Entry entry = embed_enter(runtime);
    learn_state()->progress = progress;
    learn_state()->progress_context = context;
    embed_leave(entry);
}
