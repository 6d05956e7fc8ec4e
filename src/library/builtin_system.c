// The system around a program: environment, time, random seed, devices and their memory, help.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "check/help.h"
#include "device/buffer.h"
#include "device/foretell.h"
#include "device/host.h"
#include "device/statistics.h"
#include "device/work.h"
#include "eval/invoke.h"
#include "eval/state.h"
#include "learn/output.h"
#include "reason/reason.h"
#include "tensor/random.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/print.h"

Value builtin_env(BuiltinCall *call) {
    const char *value = getenv(call->arguments[0].as.string->bytes);
    if (value) return value_cstring(value);
    Value fallback = call->arguments[1];
    return fallback.kind == VALUE_ABSENT ? value_none() : value_retain(fallback);
}

Value builtin_args(BuiltinCall *call) {
    int count;
    char *const *words = interp_script_arguments(call->interp, &count);
    Value list = value_list((size_t)count);
    for (int i = 0; i < count; i++) list_push(list.as.list, value_cstring(words[i]));
    return list;
}

Value builtin_script_path(BuiltinCall *call) {
    return value_cstring(interp_script_path(call->interp));
}

Value builtin_here(BuiltinCall *call) {
    SCOPED_TEXT(text);
    if (!path_from_file(origin_current.at, string_end(call->arguments[0].as.string)->bytes, &text))
        return value_retain(call->arguments[0]);
    return value_string(text_get(&text), text.length);
}

Value builtin_exit(BuiltinCall *call) {
    int64_t code = call->arguments[0].as.integer;
    if (code >= 0 && code <= 255) return interp_request_exit(call->interp, (int)code);
    return value_failed(
        fail(STATUS_VALUE, "exit: code must be 0 to 255, but it is %lld", (long long)code));
}

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static Value time_of(clockid_t clock) {
    return foretelling() ? value_unknown(DTYPE_FLOAT64) : value_float(seconds_of(clock));
}

Value builtin_time(BuiltinCall *call) {
    (void)call;
    return time_of(CLOCK_REALTIME);
}

Value builtin_clock(BuiltinCall *call) {
    (void)call;
    return time_of(CLOCK_MONOTONIC);
}

// Sleeps in short pieces, so that an interrupt ends the wait.
Value builtin_sleep(BuiltinCall *call) {
    double seconds;
    bool before = foretell_ignore_checks();
    Status status = value_to_double(call->arguments[0], "sleep: seconds", &seconds);
    foretell_ignore_reads(before);
    TRY_VALUE(status);
    if (!(seconds >= 0))
        return value_failed(fail(STATUS_VALUE, "sleep: seconds must not be negative, but it is %s",
                                 value_text(value_float(seconds)).text));
    if (foretelling()) return value_none();
    const double piece = 0.05;
    double end = seconds_of(CLOCK_MONOTONIC) + seconds;
    for (;;) {
        CHECK_INTERRUPT(((Span){0, 0}));
        double left = end - seconds_of(CLOCK_MONOTONIC);
        if (left <= 0) return value_none();
        if (left > piece) left = piece;
        struct timespec wait = {.tv_nsec = (long)(left * 1e9)};
        nanosleep(&wait, NULL);
    }
}

// Whether it was Ctrl-C that came, and nothing else that ends the program; then it counts no more.
static bool take_ctrl_c(const Interp *interp) {
    Runtime *runtime = runtime_current;
    if (!(runtime_interrupts(runtime) & INTERRUPT_SIGNAL) || interp->exit_requested ||
        atomic_load(&runtime->signal) != SIGINT)
        return false;
    (void)runtime_take_interrupts(runtime, INTERRUPT_SIGNAL);
    atomic_store(&runtime->signal, 0);
    return true;
}

Value builtin_until_interrupt(BuiltinCall *call) {
    Value result = interp_call(call->interp, call->arguments[0], NULL, 0);
    bool ended = result.kind != VALUE_FAIL,
         left = !ended && error_current()->code != STATUS_INTERRUPT;
    if (left || (!take_ctrl_c(call->interp) && !ended)) return result;
    if (!ended) {
        error_clear();
        trace_clear(call->interp);
    }
    value_release(result);
    return value_bool(ended);
}

Value builtin_seed(BuiltinCall *call) {
    random_seed((uint64_t)call->arguments[0].as.integer);
    return value_none();
}

static Status state_from(Tensor *state, RandomStream *out) {
    int64_t numbers[2];
    if (tensor_count(state) != 2 || dtype_is_float(tensor_dtype(state)))
        return fail(STATUS_VALUE, "rng_state: state is %s; it must be what rng_state() gave",
                    tensor_type_name(state).text);
    uint64_t reads = foretell_reads();
    bool before = foretell_ignore_reads(true);
    Status status = tensor_read_integers(state, numbers);
    foretell_ignore_reads(before);
    TRY(status);
    *out = (RandomStream){(uint64_t)numbers[0], (uint64_t)numbers[1]};
    if (foretell_reads() != reads) out->key = FORETELL_RANDOM_KEY;
    return STATUS_OK;
}

Value builtin_rng_state(BuiltinCall *call) {
    Shape shape = {.rank = 1, .dims = {2}};
    Tensor *state;
    if (call->arguments[0].kind != VALUE_ABSENT) {
        RandomStream stream;
        TRY_VALUE(value_to_tensor(call->arguments[0], "rng_state: state", &state));
        Status status = state_from(state, &stream);
        tensor_release(state);
        TRY_VALUE(status);
        random_return(stream);
    }
    RandomStream now = random_mark();
    const int64_t numbers[] = {(int64_t)now.key, (int64_t)now.counter};
    TRY_VALUE(tensor_from_integers(numbers, &shape, DTYPE_INT64, &state));
    if (random_is_unknown(now)) tensor_forget(state);
    return value_tensor(state);
}

static Value help_for(const char *name) {
    SCOPED_TEXT(page);
    Status status = help_page(name, &page);
    if (status == STATUS_OK) status = output_write(output_stream(), &page);
    return status == STATUS_OK ? value_none() : value_fail();
}

Value builtin_help(BuiltinCall *call) {
    Value name = call->arguments[0];
    if (name.kind == VALUE_STRING) return help_for(name.as.string->bytes);
    if (name.kind == VALUE_BUILTIN) return help_for(name.as.builtin->signature.name);
    if (name.kind == VALUE_ABSENT) {
        fprintf(output_stream(), "%zu builtins have a page: help(\"softmax\")\n", catalog_count());
        return value_none();
    }
    fail_kind("help: name", "a builtin or its name", name);
    return value_fail();
}

// --- memory

static void set_count(Dict *dict, const char *name, uint64_t count) {
    dict_set_word(dict, name, value_int((int64_t)count));
}

// One that nobody can foretell.
static void set_found(Dict *dict, const char *name, uint64_t count) {
    Value found = foretelling() ? value_unknown(DTYPE_INT64) : value_int((int64_t)count);
    dict_set_word(dict, name, found);
}

// One that is foretold as long as nothing but a bound is known of a size.
static void set_held(Dict *dict, const char *name, uint64_t count) {
    if (foretell_is_exact(device_default_opened()))
        set_count(dict, name, count);
    else
        set_found(dict, name, count);
}

static double reuse_rate(const PoolStatistics *pool) {
    uint64_t all = pool->reuses + pool->allocations;
    return all ? (double)pool->reuses / (double)all : 0.0;
}

static Value host_dict(const Device *device) {
    HostStatement host;
    host_state(device, heap_bytes(), &host);
    Value dict = value_dict();
    set_found(dict.as.dict, "resident", host.resident);
    set_found(dict.as.dict, "values", host.values);
    set_found(dict.as.dict, "tables", host.tables);
    set_found(dict.as.dict, "kept", host.kept);
    set_found(dict.as.dict, "buffers", host.buffers);
    set_found(dict.as.dict, "mapped", host.mapped);
    set_found(dict.as.dict, "code", host.code);
    set_found(dict.as.dict, "stacks", host.stacks);
    set_found(dict.as.dict, "other", host.other);
    return dict;
}

Value builtin_memory(BuiltinCall *call) {
    Device *device;
    TRY_VALUE(device_default(&device));
    PoolStatistics pool = pool_statistics(device);
    Value dict = value_dict();
    set_held(dict.as.dict, "live", pool.live_bytes);
    set_held(dict.as.dict, "peak", pool.peak_bytes);
    set_found(dict.as.dict, "cached", pool.cached_bytes);
    set_held(dict.as.dict, "buffers", pool.live_buffers);
    set_found(dict.as.dict, "allocations", pool.allocations);
    set_found(dict.as.dict, "reuses", pool.reuses);
    Value rate = foretelling() ? value_unknown(DTYPE_FLOAT64) : value_float(reuse_rate(&pool));
    dict_set_word(dict.as.dict, "reuse_rate", rate);
    set_found(dict.as.dict, "waits", pool.waits);
    const Reasoner *reasoner = call->interp ? call->interp->reasoner : NULL; // C tests have none
    set_count(dict.as.dict, "relations", reasoner ? store_bytes(reasoner->store) : 0);
    set_found(dict.as.dict, "away", pool.away_bytes);
    dict_set_word(dict.as.dict, "host", host_dict(device));
    return dict;
}

Value builtin_buffer_stats(BuiltinCall *call) {
    Value dict = builtin_memory(call);
    if (dict.kind == VALUE_FAIL) return dict;
    PoolStatistics pool = pool_statistics(device_default_opened());
    set_count(dict.as.dict, "mapped", pool.mapped_bytes);
    set_found(dict.as.dict, "cached_buffers", pool.cached_buffers);
    set_found(dict.as.dict, "evictions", pool.evictions);
    set_found(dict.as.dict, "uploaded", pool.bytes_uploaded);
    set_found(dict.as.dict, "downloaded", pool.bytes_downloaded);
    return dict;
}

Value builtin_memory_report(BuiltinCall *call) {
    Device *device;
    TRY_VALUE(device_default(&device));
    SCOPED_TEXT(report);
    memory_report(device, &report);
    if (call->interp->reasoner) store_report(call->interp->reasoner->store, &report);
    output_flush();
    fwrite(text_get(&report), 1, report.length, output_errors());
    return value_none();
}

Value builtin_clear_cache(BuiltinCall *call) {
    (void)call;
    Device *device;
    TRY_VALUE(device_default(&device));
    pool_clear_cache(device);
    return value_none();
}

Value builtin_reset_peak_memory(BuiltinCall *call) {
    (void)call;
    Device *device;
    TRY_VALUE(device_default(&device));
    pool_reset_peak(device);
    return value_none();
}

Value builtin_synchronize(BuiltinCall *call) {
    (void)call;
    Device *device;
    TRY_VALUE(device_default(&device));
    TRY_VALUE(device_wait(device));
    return value_none();
}

Value builtin_device_default(BuiltinCall *call) {
    (void)call;
    Device *device;
    TRY_VALUE(device_default(&device));
    return value_cstring(device->name);
}

// The first word of every line of the list of devices.
Value builtin_devices(BuiltinCall *call) {
    (void)call;
    SCOPED_TEXT(text);
    device_list(&text);
    Value list = value_list(0);
    for (const char *line = text_get(&text); *line;) {
        size_t length = strcspn(line, "\n");
        list_push(list.as.list, value_string(line, strcspn(line, " \n")));
        line += length + (line[length] == '\n');
    }
    return list;
}

Value builtin_leak_buffer(BuiltinCall *call) {
    const char *allowed = getenv("TL_TEST_LEAK");
    if (!allowed || strcmp(allowed, "1") != 0)
        return value_failed(
            fail(STATUS_SETTING, "__leak_buffer works only when TL_TEST_LEAK=1 is set"));
    SCOPED_TENSOR(tensor);
    TRY_VALUE(value_to_tensor(call->arguments[0], "x", &tensor));
    Status status = tensor_materialize(tensor);
    if (status == STATUS_OK) buffer_leak(tensor->view.buffer);
    return status == STATUS_OK ? value_none() : value_fail();
}
