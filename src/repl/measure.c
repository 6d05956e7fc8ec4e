// :time: how long an expression takes, how much it moves or computes in that time, and whether it
// leaves memory behind.
#include <stdio.h>

#include "base/timing.h"
#include "device/buffer.h"
#include "device/statistics.h"
#include "device/work.h"
#include "repl/internal.h"

static uint64_t live_bytes(void) {
    Device *device = device_default_opened();
    return device ? pool_statistics(device).live_bytes : 0;
}

typedef struct Measurement {
    Timing timing;
    DeviceWork work; // of one run
    uint64_t live_before, live_after;
} Measurement;

static Status run_once(Line *line, double *seconds) {
    Value value;
    double start = timing_now();
    Status status = session_run(line, &value);
    if (status == STATUS_OK) status = device_finish();
    *seconds = timing_now() - start;
    value_release(value);
    return status;
}

// The first run warms caches and is not counted in the times; kernels are counted in it.
static Status measure(const Repl *repl, Line *line, Measurement *out) {
    double seconds;
    device_count_work(&out->work);
    Status status = run_once(line, &seconds);
    device_count_work(NULL);
    out->live_before = live_bytes();
    int exit_status;
    while (status == STATUS_OK && !interp_exit_requested(repl->interp, &exit_status) &&
           timing_wants_more(&out->timing)) {
        status = run_once(line, &seconds);
        timing_add(&out->timing, seconds);
    }
    out->live_after = live_bytes();
    return status;
}

static void show(Measurement *measurement) {
    SCOPED_TEXT(text);
    timing_describe(&measurement->timing, &text);
    double median = timing_median(&measurement->timing);
    const DeviceWork *work = &measurement->work;
    if (work->flops > 0)
        text_format(&text, "  %.2f GFLOP/s", (double)work->flops / median * 1e-9);
    else if (work->bytes > 0)
        text_format(&text, "  %.2f GB/s", (double)work->bytes / median * 1e-9);
    long long leaked = (long long)measurement->live_after - (long long)measurement->live_before;
    printf("%s  %lld bytes leaked\n", text_get(&text), leaked);
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
        if (measurement.timing.count) show(&measurement);
        spoken_add(repl, line_program(line), false);
        session_keep(line);
    } else {
        repl_show_failure(repl, status);
        session_drop(line);
        error_clear();
    }
    timing_free(&measurement.timing);
}
