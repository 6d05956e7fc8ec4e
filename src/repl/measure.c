// :time: how long an expression takes, how much it moves or computes in that time, and whether it
// leaves memory behind.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/work.h"
#include "repl/internal.h"

enum { RUNS_MIN = 5, RUNS_MAX = 10000 };
static const double seconds_wanted = 0.5;

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t live_bytes(void) {
    Device *device = device_default_opened();
    return device ? pool_statistics(device).live_bytes : 0;
}

static Status wait_for_device(void) {
    Device *device = device_default_opened();
    return device && device->backend->wait ? device->backend->wait(device) : STATUS_OK;
}

typedef struct Measurement {
    VECTOR(double) seconds;
    DeviceWork work; // of one run
    uint64_t live_before, live_after;
} Measurement;

static Status run_once(Line *line, double *seconds) {
    Value value;
    double start = seconds_now();
    Status status = session_run(line, &value);
    if (status == STATUS_OK) status = wait_for_device();
    *seconds = seconds_now() - start;
    value_release(value);
    return status;
}

// The first run warms caches and is not counted in the times; kernels are counted in it.
static Status measure(const Repl *repl, Line *line, Measurement *out) {
    double seconds, total = 0;
    device_count_work(&out->work);
    Status status = run_once(line, &seconds);
    device_count_work(NULL);
    out->live_before = live_bytes();
    int exit_status;
    while (status == STATUS_OK && !interp_exit_requested(repl->interp, &exit_status) &&
           out->seconds.count < RUNS_MAX &&
           (out->seconds.count < RUNS_MIN || total < seconds_wanted)) {
        status = run_once(line, &seconds);
        VECTOR_PUSH(&out->seconds, seconds);
        total += seconds;
    }
    out->live_after = live_bytes();
    return status;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void append_seconds(Text *out, double seconds) {
    if (seconds < 1e-3)
        text_format(out, "%.2f us", seconds * 1e6);
    else if (seconds < 1)
        text_format(out, "%.3f ms", seconds * 1e3);
    else
        text_format(out, "%.3f s", seconds);
}

static void show(Measurement *measurement) {
    double *seconds = measurement->seconds.items;
    size_t count = measurement->seconds.count;
    qsort(seconds, count, sizeof *seconds, compare);
    double median = seconds[count / 2];
    Text text = {0};
    append_seconds(&text, median);
    text_append_string(&text, " (median; ");
    append_seconds(&text, seconds[0]);
    text_append_string(&text, " to ");
    append_seconds(&text, seconds[count - 1]);
    text_format(&text, ", %zu runs)", count);
    const DeviceWork *work = &measurement->work;
    if (work->flops > 0)
        text_format(&text, "  %.2f GFLOP/s", (double)work->flops / median * 1e-9);
    else if (work->bytes > 0)
        text_format(&text, "  %.2f GB/s", (double)work->bytes / median * 1e-9);
    long long leaked = (long long)measurement->live_after - (long long)measurement->live_before;
    printf("%s  %lld bytes leaked\n", text_get(&text), leaked);
    text_free(&text);
}

void measure_run(Repl *repl, const char *code) {
    const SourceFile *source;
    if (source_add("<time>", code, strlen(code), &source) != STATUS_OK) {
        repl_show_error();
        return;
    }
    DiagnosticList diagnostics = {0};
    Line *line = session_prepare(repl->session, source, &diagnostics);
    diagnostics_show(&diagnostics, SEVERITY_WARNING);
    diagnostic_list_free(&diagnostics);
    if (!line) return;
    Measurement measurement = {0};
    signals_pass_interrupt(true);
    Status status = measure(repl, line, &measurement);
    signals_pass_interrupt(false);
    signals_take_interrupt();
    int exit_status;
    if (interp_exit_requested(repl->interp, &exit_status)) repl->ended = true;
    if (status == STATUS_OK) {
        if (measurement.seconds.count) show(&measurement);
        spoken_add(repl, line_program(line), false);
        session_keep(line);
    } else {
        repl_show_failure(repl, status);
        session_drop(line);
        error_clear();
    }
    VECTOR_FREE(&measurement.seconds);
}
