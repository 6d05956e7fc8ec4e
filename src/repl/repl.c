// The loop: read a unit, run it as one line of the session, show its value.
#include "repl/repl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/output.h"
#include "eval/trace.h"
#include "repl/internal.h"
#include "tensor/op.h"
#include "value/print.h"

// --- showing

static void repl_begin_dim(const Repl *repl) {
    if (repl->color) fputs("\033[2m", stdout);
}

static void repl_end_dim(const Repl *repl) {
    if (repl->color) fputs("\033[0m", stdout);
}

void repl_show_error(void) {
    Diagnostic diagnostic = diagnostic_from_error(error_current());
    SCOPED_TEXT(text);
    diagnostic_render(&text, &diagnostic, diagnostic_color());
    output_flush();
    fputs(text_get(&text), stderr);
    error_clear();
}

static void repl_show_value(const Repl *repl, Value value) {
    SCOPED_TEXT(text);
    if (value.kind == VALUE_TENSOR) {
        repl_begin_dim(repl);
        tensor_describe(value.as.tensor, &text);
        printf("%s on %s\n", text_get(&text), value.as.tensor->device->name);
        repl_end_dim(repl);
        text_clear(&text);
    }
    if (value_print(value, true, &text) == STATUS_OK)
        printf("%s\n", text_get(&text));
    else
        repl_show_error();
}

// --- running

// A small view of a large tensor would keep all of it: `_` holds a copy then.
static Value value_alone(Value value) {
    if (value.kind != VALUE_TENSOR || !value.as.tensor->view.buffer) return value;
    Tensor *tensor = value.as.tensor, *copy;
    const DTypeInfo *info = &dtype_info[tensor_dtype(tensor)];
    size_t count = (size_t)tensor_count(tensor);
    size_t own = count / (size_t)info->block_elements * (size_t)info->block_bytes;
    if (tensor->learnable || tensor->view.buffer->bytes <= own) return value;
    if (tensor_clone(tensor, &copy) != STATUS_OK) {
        error_clear();
        return value;
    }
    value_release(value);
    return value_tensor(copy);
}

static void keep_value(Repl *repl, Line *line, Value value) {
    bool shows = line_shows_value(line), expression = line_is_expression(line);
    bool gives = expression && value.kind != VALUE_NONE;
    spoken_add(repl, line_program(line), gives);
    session_keep(line);
    if (!gives) {
        value_release(value);
        return;
    }
    if (shows) repl_show_value(repl, value);
    session_set_last(repl->session, value_alone(value));
}

void repl_show_failure(const Repl *repl, Status status) {
    if (status == STATUS_INTERRUPT) {
        if (repl->interactive) putchar('\n'); // the terminal has shown ^C where the cursor was
        output_flush();
        fputs("interrupted: variables, but not parameters, are as they were before the line\n",
              stderr);
    } else {
        failure_show(repl->interp);
    }
}

// A Ctrl-C is done with; where nobody is there to go on, it ends the session as well.
static void take_interrupt(Repl *repl) {
    if (!signals_take_interrupt() || repl->interactive) return;
    repl->ended = true;
    repl->ended_by = SIGINT;
}

bool repl_run_source(Repl *repl, const SourceFile *source) {
    DiagnosticList diagnostics = {0};
    take_interrupt(repl);
    if (repl->ended) return false;
    Line *line = session_prepare(repl->session, source, &diagnostics);
    output_flush();
    diagnostics_show(&diagnostics, SEVERITY_WARNING);
    diagnostic_list_free(&diagnostics);
    if (!line) return false;
    Value value;
    signals_pass_interrupt(true);
    Status status = session_run(line, &value);
    signals_pass_interrupt(false);
    take_interrupt(repl);
    int exit_status;
    if (interp_exit_requested(repl->interp, &exit_status)) repl->ended = true;
    if (status == STATUS_OK) {
        keep_value(repl, line, value);
    } else {
        repl_show_failure(repl, status);
        session_drop(line);
        error_clear();
    }
    output_flush();
    return status == STATUS_OK;
}

static void run_unit(Repl *repl, const char *unit, size_t length) {
    if (unit[strspn(unit, " \t\r\n;")] == '\0') return;
    if (command_run_unit(repl, unit)) return;
    char name[32];
    snprintf(name, sizeof name, "<repl:%d>", ++repl->units);
    const SourceFile *source;
    if (source_add(name, unit, length, &source) != STATUS_OK)
        repl_show_error();
    else
        repl_run_source(repl, source);
}

// --- the loop

static void make_prompt(const Repl *repl, Text *prompt) {
    text_clear(prompt);
    if (repl->memory_line) {
        text_append_char(prompt, '[');
        memory_append_line(prompt);
        text_append_string(prompt, "]\n");
    }
    // \001 and \002 tell readline what takes no columns.
    text_append_string(prompt, repl->color ? "\001\033[1;34m\002tl>\001\033[0m\002 " : "tl> ");
}

// A prompt begins a row: readline counts columns from there.
static void close_line(const Repl *repl) {
    if (!repl->interactive || !output_line_is_open()) return;
    putchar('\n');
    output_note("\n", 1);
}

static void loop(Repl *repl) {
    SCOPED_TEXT(unit);
    SCOPED_TEXT(prompt);
    while (!repl->ended && !signals_ending()) {
        close_line(repl);
        make_prompt(repl, &prompt);
        InputEvent event = input_read(repl, text_get(&prompt), &unit);
        if (event == INPUT_END) break;
        if (event == INPUT_INTERRUPTED && !repl->interactive) { // nobody is there to go on
            repl->ended_by = SIGINT;
            break;
        }
        if (event == INPUT_UNIT) run_unit(repl, text_get(&unit), unit.length);
        output_flush();
    }
}

static void run(void *context) {
    Repl *repl = context;
    repl->session = session_new(repl->interp);
    signals_begin();
    input_begin(repl);
    if (repl->interactive) printf("tl %s   :help shows the commands\n", TL_VERSION);
    loop(repl);
    input_end();
    signals_end();
    session_reset(repl->session);
    session_free(repl->session);
    spoken_clear(repl);
}

int repl_run(Interp *interp) {
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const char *plain = getenv("NO_COLOR");
    Repl repl = {
        .interp = interp, .interactive = terminal, .color = terminal && !(plain && *plain)};
    if (interp_enter(interp, run, &repl) != STATUS_OK) repl_show_error();
    return signals_ending() ? signals_ending() : repl.ended_by;
}
