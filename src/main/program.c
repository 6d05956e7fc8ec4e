// A program from its text to its end: load, check, run, clear, account for every byte.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "check/check.h"
#include "device/buffer.h"
#include "device/host.h"
#include "device/settings.h"
#include "device/timeline.h"
#include "eval/trace.h"
#include "main/command.h"
#include "main/foresee.h"
#include "parser/parser.h"
#include "ranks/ranks.h"
#include "value/heap.h"

static Program *load_source(const SourceFile *source) {
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(source, &diagnostics);
    if (diagnostics.error_count == 0) check_program(program, &diagnostics);
    diagnostics_show(&diagnostics, SEVERITY_WARNING);
    bool complete = memory_exhausted() == STATUS_OK;
    if (!complete) {
        fail_label("while this file and what it imports were read");
        error_place((Span){source->base, source->base});
        (void)report_current_error();
    }
    if (diagnostics.error_count > 0 || !complete) {
        program_free(program);
        program = NULL;
    }
    diagnostic_list_free(&diagnostics);
    return program;
}

Program *program_load(const char *file, const char *code) {
    const SourceFile *source;
    Status status =
        code ? source_add("<command>", code, strlen(code), &source) : source_load(file, &source);
    if (status == STATUS_OK) return load_source(source);
    report_current_error();
    return NULL;
}

Program *program_load_standard(const char *path) {
    const SourceFile *source;
    SCOPED_TEXT(found);
    SCOPED_TEXT(tried);
    bool there = imports_find_standard(path, &found, &tried);
    ASSERT(there); // the build put it into the program
    Status status = imports_load(text_get(&found), &source);
    if (status == STATUS_OK) return load_source(source);
    report_current_error();
    return NULL;
}

// Signals are the process's, and so is what their handler knows: whose program they end.
static Runtime *signal_target;

// A second signal means that the first was not enough, unless a program has answered that.
static void on_signal(int number) {
    if (atomic_exchange(&signal_target->signal, number)) _Exit(EXIT_SIGNAL + number);
    runtime_interrupt(signal_target, INTERRUPT_SIGNAL);
}

static void signals_install(void) {
    signal_target = runtime_current;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); // else nohup began it
}

// The status that a finished run amounts to, with a failure shown.
static int run_outcome(const CommandLine *line, const Interp *interp, Status status) {
    int requested;
    int number = atomic_load(&runtime_current->signal);
    if (number) return EXIT_SIGNAL + number;
    if (interp_exit_requested(interp, &requested)) return requested;
    if (status == STATUS_OK) return EXIT_SUCCESS_STATUS;
    if (ranks_error_is_told_by_another()) return EXIT_FAILED;
    limits_explain(status);
    if (line->is_command) {
        error_current()->span = (Span){0, 0};
        return report_current_error();
    }
    failure_show(interp);
    return EXIT_FAILED;
}

// What the device still holds now that everything was released. Nothing to say when no device was
// ever opened and nobody asked.
static int memory_account(int status, Text *report) {
    DeviceSettings settings;
    if (device_settings_read(&settings) != STATUS_OK) return status;
    Device *device = device_default_opened();
    bool asked = settings.memory_check != MEMORY_CHECK_OFF || settings.buffer_stats;
    if (!device && asked && device_default(&device) != STATUS_OK) return report_current_error();
    if (!device) return status;
    uint64_t leaked_buffers = memory_check(device, report);
    if (settings.memory_check == MEMORY_CHECK_ALL) {
        HostStatement host;
        host_state(device, heap_bytes(), &host);
        host_report(&host, report);
    }
    device_default_close();
    bool strict = settings.memory_check == MEMORY_CHECK_STRICT;
    return leaked_buffers > 0 && strict ? EXIT_LEAKED : status;
}

Status program_begin(const CommandLine *line) {
    const char *const *scripts =
        line->paths ? (const char *const *)line->paths->items : &line->file;
    size_t count = line->paths ? line->paths->count : line->file != NULL;
    signals_install();
    TRY(ranks_program_begin(line->all_ranks_speak));
    TRY(limits_confine(&line->limits, scripts, count));
    return device_settings_check();
}

typedef struct ProgramRun {
    const CommandLine *line;
    Interp *interp;
    Program *program;
    Tally *tally;
    int outcome;
} ProgramRun;

// The interpreter is cleared where it ran: one thread serves both.
static void run_and_clear(void *context) {
    ProgramRun *run = context;
    Status status = limits_apply(&run->line->limits);
    if (status == STATUS_OK && run->line->timeline) timeline_begin(run->line->timeline);
    if (status == STATUS_OK && run->line->mode == RUN_PROGRAM)
        status = interp_run(run->interp, run->program);
    else if (status == STATUS_OK)
        sections_run(run->line, run->interp, run->program, run->tally);
    if (timeline_current()) {
        Status ended = timeline_end();
        if (status == STATUS_OK) status = ended;
    }
    limits_stop_clock();
    foresee_end();
    run->outcome = run_outcome(run->line, run->interp, status);
    int ended = interp_free(run->interp, run->outcome);
    if (!atomic_load(&runtime_current->signal)) run->outcome = ended;
}

int program_run(const CommandLine *line, Program *program, Tally *tally) {
    ProgramRun run = {.line = line,
                      .interp = interp_new(runtime_current, &line->interp),
                      .program = program,
                      .tally = tally};
    if (interp_enter(run.interp, run_and_clear, &run) != STATUS_OK) {
        run.outcome = report_current_error();
        (void)interp_free(run.interp, run.outcome);
    }
    program_free(program);
    return run.outcome;
}

int program_end(int status) {
    SCOPED_TEXT(report);
    status = memory_account(status, &report);
    output_flush();
    ranks_join_reports(status, &report);
    fputs(text_get(&report), stderr);
    source_reset();
    ranks_end(status);
    return status;
}
