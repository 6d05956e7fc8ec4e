// The page of a learn block: its curves and where it is, in one file without scripts. While the
// block runs the page asks the browser to load it again.
#include <stdlib.h>

#include "base/file_replace.h"
#include "base/memory.h"
#include "learn/learn_run.h"
#include "plot/plot.h"

static const double again_s = 0.5; // a page that few see must not cost many epochs

typedef struct Page {
    const LearnRun *run;
    const char *ending; // NULL: the block runs
} Page;

// Of the curves; 0 for what only a run has.
static double number_of(Value item) {
    return item.kind == VALUE_FLOAT ? item.as.number : 0;
}

static double *numbers_of(const List *list) {
    double *numbers = memory_allocate((list->count + 1) * sizeof *numbers);
    for (size_t i = 0; i < list->count; i++) numbers[i] = number_of(list->items[i]);
    return numbers;
}

// Up to two curves over the epochs; nothing where no number can be shown.
static Status draw_curves(FILE *stream, const char *title, const PlotSeries *series, size_t count) {
    Plot plot = {.kind = PLOT_LINE, .title = title, .x_label = "epoch", .height = 300};
    for (size_t i = 0; i < count; i++)
        if (series[i].count > 0) plot.series[plot.series_count++] = series[i];
    return plot.series_count > 0 ? plot_draw(&plot, stream) : STATUS_OK;
}

static Status draw_charts(const LearnRun *run, FILE *stream) {
    size_t count = run->losses->count;
    double *losses = numbers_of(run->losses), *rates = numbers_of(run->rates);
    double *validations = numbers_of(run->validations), *epochs = memory_allocate((count + 1) * 8);
    for (size_t i = 0; i < count; i++) epochs[i] = (double)(i + 1);
    PlotSeries judged[] = {{"loss", epochs, losses, count},
                           {"validation", epochs, validations, run->validations->count}};
    PlotSeries rate = {NULL, epochs, rates, run->rates->count};
    Status status = draw_curves(stream, "loss", judged, 2);
    if (status == STATUS_OK) status = draw_curves(stream, "learning rate", &rate, 1);
    free(losses);
    free(rates);
    free(validations);
    free(epochs);
    return status;
}

static void row(FILE *stream, const char *name, NumberText number) {
    fprintf(stream, "<tr><th>%s</th><td>%s</td></tr>\n", name, number.text);
}

static double last_of(const List *list) {
    return number_of(list->items[list->count - 1]);
}

static void write_table(const Page *page, FILE *stream) {
    const LearnRun *run = page->run;
    fprintf(stream, "<table>\n<tr><th>epoch</th><td>%lld", (long long)run->done);
    if (run->epochs > 0) fprintf(stream, " of %lld", (long long)run->epochs);
    fprintf(stream, "</td></tr>\n<tr><th>state</th><td>%s%s</td></tr>\n",
            page->ending ? "ended: " : "running", page->ending ? page->ending : "");
    if (run->done > 0) {
        row(stream, "loss", learn_number(last_of(run->losses)));
        if (run->validations->count > 0) {
            row(stream, "validation", learn_number(last_of(run->validations)));
            row(stream, "best", learn_number(run->best));
        }
        row(stream, "gradient norm", learn_number(last_of(run->norms)));
        row(stream, "learning rate", learn_number(last_of(run->rates)));
    }
    row(stream, "seconds", learn_number(learn_now_s() - run->progress.started_s));
    fputs("</table>\n", stream);
}

static Status write_page(FILE *stream, void *context) {
    const Page *page = context;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", stream);
    if (!page->ending) fputs("<meta http-equiv=\"refresh\" content=\"1\">\n", stream);
    fputs("<title>Training</title>\n<style>\n"
          "body { font-family: sans-serif; margin: 2em; }\n"
          "th { text-align: left; padding-right: 2em; font-weight: normal; color: #666; }\n"
          "svg { display: block; max-width: 100%; }\n"
          "</style>\n</head>\n<body>\n",
          stream);
    write_table(page, stream);
    TRY(draw_charts(page->run, stream));
    return stream_write(stream, "</body>\n</html>\n", sizeof "</body>\n</html>\n" - 1);
}

Status learn_watch(LearnRun *run, const char *ending) {
    if (run->watch_path.kind == VALUE_ABSENT || !learn_writes_files(run)) return STATUS_OK;
    double now = learn_now_s();
    if (!ending && run->done > 1 && now - run->progress.shown_s < again_s) return STATUS_OK;
    run->progress.shown_s = now;
    Page page = {run, ending};
    return file_replace_stream(run->watch_path.as.string->bytes, write_page, &page);
}
