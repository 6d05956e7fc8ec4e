// What training prints: a line now and then and one at the end on standard output, and on a
// terminal a bar on standard error.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/output.h"
#include "eval/upper.h"
#include "learn/learn.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

enum { BAR_CELLS = 24, USUAL_COLUMNS = 80 };
static const double redraw_s = 0.1;

double learn_now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void learn_progress_clear(void) {
    if (!learn_state()->bar_is_shown) return;
    fputs("\r\033[K", output_errors());
    fflush(output_errors());
    learn_state()->bar_is_shown = false;
}

static bool is_quiet(const LearnRun *run) {
    return run->silent || run->frame->interp->options.quiet;
}

NumberText learn_number(double number) {
    NumberText out;
    bool small = number != 0 && fabs(number) < 0.5e-6;
    if (isnan(number)) number = NAN; // printf shows a sign that means nothing
    snprintf(out.text, sizeof out.text, isnan(number) ? "nan" : small ? "%.3e" : "%.6f", number);
    return out;
}

// Once a program.
static void print_needs(void) {
    SCOPED_MEMORY char *needs = learn_state()->needs;
    learn_state()->needs = NULL;
    if (needs) fprintf(output_stream(), "%s\n", needs);
}

void learn_report_begin(LearnRun *run) {
    run->progress = (LearnProgress){.started_s = learn_now_s(),
                                    .terminal = output_is_terminal(output_errors())};
    if (!is_quiet(run)) print_needs();
}

static void append_time(Text *out, double seconds) {
    long whole = seconds < 360000 ? lround(seconds) : 359999;
    if (whole >= 3600) text_format(out, "%ld:", whole / 3600);
    text_format(out, "%02ld:%02ld", whole / 60 % 60, whole % 60);
}

static void append_epoch(const LearnRun *run, Text *text) {
    text_format(text, "epoch %lld", (long long)run->done);
    if (run->epochs > 0) text_format(text, "/%lld", (long long)run->epochs);
}

// The bar takes what the words leave of a row.
static void show_bar(const LearnRun *run, const Text *words) {
    // A second row could not be cleared: the cursor needs a column, and the ^C of a terminal two.
    int columns = output_columns(output_errors()) - 3;
    if (columns < 1) columns = USUAL_COLUMNS - 3;
    int left = columns - (int)words->length - 3;
    int cells = left > BAR_CELLS ? BAR_CELLS : left;
    output_flush();
    fputs("\r\033[K", output_errors());
    if (run->epochs > 0 && cells > 2) {
        int filled = (int)((double)run->done / (double)run->epochs * cells);
        fputc('[', output_errors());
        for (int i = 0; i < cells; i++) fputc(i < filled ? '#' : '.', output_errors());
        fputs("] ", output_errors());
    }
    fprintf(output_errors(), "%.*s", columns, text_get(words));
    fflush(output_errors());
    learn_state()->bar_is_shown = true;
}

static void append_pace(const LearnRun *run, double spent, Text *text) {
    double speed = spent > 0 ? (double)run->done / spent : 0;
    text_format(text, "  %.*f epochs/s", speed < 10 ? 1 : 0, speed);
    if (run->epochs == 0 || speed <= 0) return;
    text_append_string(text, "  ");
    append_time(text, (double)(run->epochs - run->done) / speed);
    text_append_string(text, " left");
}

static void draw_bar(LearnRun *run, double loss, double norm, double rate) {
    double now = learn_now_s();
    if (now - run->progress.drawn_s < redraw_s || run->done == run->epochs) return;
    run->progress.drawn_s = now;
    SCOPED_TEXT(text);
    append_epoch(run, &text);
    text_format(&text, "  loss %.4g  grad norm %.3g  lr %.3g", number_shown(loss),
                number_shown(norm), rate);
    if (run->code->settings[SETTING_validate])
        text_format(&text, "  val %.4g", number_shown(run->judged));
    append_pace(run, now - run->progress.started_s, &text);
    show_bar(run, &text);
}

static int digits(int64_t number) {
    int count = 1;
    while ((number /= 10) > 0) count++;
    return count;
}

static void print_epoch(const LearnRun *run, double loss, double norm, double rate) {
    fprintf(output_stream(), "epoch ");
    if (run->epochs > 0)
        fprintf(output_stream(), "%*lld/%lld", digits(run->epochs), (long long)run->done,
                (long long)run->epochs);
    else
        fprintf(output_stream(), "%lld", (long long)run->done);
    fprintf(output_stream(), "  loss %s  grad norm %s  lr %s", learn_number(loss).text,
            learn_number(norm).text, learn_number(rate).text);
    if (run->code->settings[SETTING_validate])
        fprintf(output_stream(), "  validation %s  best %s", learn_number(run->judged).text,
                learn_number(run->best).text);
    fprintf(output_stream(), "\n");
    output_flush();
}

void learn_report_epoch(LearnRun *run, double loss, double norm, double rate) {
    const Learning *learning = learn_state();
    if (learning->progress)
        learning->progress(learning->progress_context, run->done, run->epochs, loss);
    if (is_quiet(run)) return;
    if (run->report_every > 0 && run->done % run->report_every == 0) {
        learn_progress_clear();
        print_epoch(run, loss, norm, rate);
    }
    if (run->progress.terminal) draw_bar(run, loss, norm, rate);
}

// --- parameters that no block has reached

// A run that was resumed may have nothing left to do.
static bool is_reached(const LearnRun *run, const Tensor *parameter) {
    if (tape_parameter_reached(parameter)) return true;
    for (size_t i = 0; i < run->trained.count; i++)
        if (run->trained.items[i] == parameter) return true;
    return false;
}

// Merges them with those that were noted before, in order of declaration.
void learn_note_unreached(const LearnRun *run) {
    TensorArray all = {0};
    Learning *learning = learn_state();
    UnreachedList before = learning->unreached, now = {0};
    size_t old = 0;
    tape_parameters(&all);
    for (size_t i = 0; i < all.count; i++) {
        const Tensor *parameter = all.items[i];
        Unreached one = {tape_parameter_number(parameter), parameter->origin.at,
                         tensor_type(parameter)};
        for (; old < before.count && before.items[old].number < one.number; old++)
            VECTOR_PUSH(&now, before.items[old]); // a parameter that is gone
        old += old < before.count && before.items[old].number == one.number;
        if (!is_reached(run, parameter)) VECTOR_PUSH(&now, one);
    }
    for (; old < before.count; old++) VECTOR_PUSH(&now, before.items[old]);
    VECTOR_FREE(&before);
    learning->unreached = now;
    tensor_array_release(&all);
}

// Those made at one place are spoken of together.
static void report_place(size_t first) {
    const Unreached *one = &learn_state()->unreached.items[first];
    SourcePlace place = source_find(one->at);
    size_t count = 0;
    for (size_t i = 0; i < learn_state()->unreached.count; i++) {
        if (learn_state()->unreached.items[i].at != one->at) continue;
        if (i < first) return;
        count++;
    }
    fputs("note: no objective reaches ", output_errors());
    if (count == 1)
        fprintf(output_errors(), "the parameter %s",
                type_name(one->type.dtype, &one->type.shape).text);
    else
        fprintf(output_errors(), "%zu parameters", count);
    if (place.file) fprintf(output_errors(), " of %s:%d", place.file->name, place.line);
    fprintf(output_errors(), ": %s\n", count == 1 ? "it stays as it is" : "they stay as they are");
}

void learn_report_unreached(bool show) {
    output_flush();
    for (size_t i = 0; show && i < learn_state()->unreached.count; i++) report_place(i);
    VECTOR_FREE(&learn_state()->unreached);
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void note_block(const LearnRun *run, const char *words) {
    SourcePlace place = source_find(run->code->head.span.begin);
    output_flush();
    fputs("note: the learn block", output_errors());
    if (place.file) fprintf(output_errors(), " of %s:%d", place.file->name, place.line);
    fprintf(output_errors(), " %s\n", words);
}

// Without an objective nothing but a loop runs the body again.
static void note_steps(const LearnRun *run) {
    if (run->code->settings[SETTING_objective] ||
        (run->code->settings[SETTING_epochs] && run->epochs == 0))
        return;
    if (run->steps_all == 0) {
        note_block(run, "ran no backward: its optimizer changed nothing");
    } else if (!run->code->has_loop && run->epochs > 0 && run->done != run->epochs) {
        SCOPED_TEXT(words);
        text_format(&words,
                    "made %lld of its %lld epochs: without an objective the body runs once, and "
                    "`for epoch in range(epochs)` is what repeats it",
                    (long long)run->done, (long long)run->epochs);
        note_block(run, text_get(&words));
    }
}

static void print_end(const LearnRun *run) {
    int64_t values = 0;
    for (size_t i = 0; i < run->trained.count; i++) values += tensor_count(run->trained.items[i]);
    fprintf(output_stream(),
            "trained %zu parameter%s (%lld value%s) in %lld epoch%s: loss %s -> %s",
            run->trained.count, plural((int64_t)run->trained.count), (long long)values,
            plural(values), (long long)run->done, plural(run->done),
            learn_number(run->first_loss).text, learn_number(run->last_loss).text);
    if (run->stop)
        fprintf(output_stream(), "; %lld epoch%s without a better one", (long long)run->waited,
                plural(run->waited));
    if (run->interrupted) fprintf(output_stream(), "; interrupted");
    if (run->patience > 0 && run->best_epoch > 0 && !run->interrupted)
        fprintf(output_stream(), "; epoch %lld restored", (long long)run->best_epoch);
    fprintf(output_stream(), "\n");
    output_flush();
}

void learn_report_end(LearnRun *run) {
    learn_progress_clear();
    if (is_quiet(run)) return;
    note_steps(run);
    if (run->done > 0) print_end(run);
}
