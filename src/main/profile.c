// tl profile: runs a program and writes what it did as a page and as a trace. The page's look is
// profile.html, into which the numbers are put as JSON.
#include <stdlib.h>
#include <string.h>

#include "base/file_replace.h"
#include "base/output.h"
#include "base/source.h"
#include "device/device.h"
#include "device/timeline.h"
#include "main/command.h"

enum { MOMENTS = 1000, LINES_SHOWN = 14, TRACK_TL = 1, TRACK_DEVICE = 2 };

static const char page_html[] =
#include "main/profile.def"
    ;
static const char *const kind_words[] = {"kernel", "upload", "download", "wait"};
static const char *const kernel_names[] = {
#define KERNEL(code, name, kept, follow, doc) name,
#include "device/kernels.def"
#undef KERNEL
};

// A line of a program.
typedef struct Line {
    const SourceFile *file; // NULL: no place
    int number;
    Text text;
    uint64_t live, peak; // bytes that what was made there holds, while holdings are walked
    int shown;           // its band in the picture of memory; LINES_SHOWN: one of the others
} Line;

typedef struct Account {
    Origin origin;
    uint32_t line;
    uint64_t bytes;
} Account;

typedef struct Report {
    const Timeline *timeline;
    const char *name; // of the program
    Roof roof;
    VECTOR(Line) lines;
    VECTOR(Account) accounts;
    uint32_t *total_lines;       // of each total
    uint32_t bands[LINES_SHOWN]; // lines by their peak, largest first
    int band_count;
    // The holding with the highest total of each part of the time, or none; then the last of all.
    size_t moments[MOMENTS + 1];
} Report;

static uint32_t line_of(Report *report, SourcePos at) {
    SourcePlace place = source_find(at);
    for (size_t i = 0; i < report->lines.count; i++)
        if (report->lines.items[i].file == place.file &&
            report->lines.items[i].number == place.line)
            return (uint32_t)i;
    Line line = {.file = place.file, .number = place.line, .shown = LINES_SHOWN};
    int skipped = 0;
    while (place.file && skipped < place.line_length && place.line_text[skipped] == ' ') skipped++;
    if (place.file)
        text_append(&line.text, place.line_text + skipped, (size_t)(place.line_length - skipped));
    VECTOR_PUSH(&report->lines, line);
    return (uint32_t)report->lines.count - 1;
}

static Account *account_of(Report *report, Origin origin) {
    for (size_t i = 0; i < report->accounts.count; i++) {
        Account *account = &report->accounts.items[i];
        if (account->origin.at == origin.at && account->origin.called_from == origin.called_from)
            return account;
    }
    Account account = {origin, line_of(report, origin.at), 0};
    VECTOR_PUSH(&report->accounts, account);
    return &report->accounts.items[report->accounts.count - 1];
}

// One change of what a line holds.
static void apply(Report *report, size_t index) {
    const TimelineHolding *holding = &report->timeline->holdings.items[index];
    Account *account = account_of(report, holding->origin);
    ASSERT(account->line < report->lines.count);
    Line *line = &report->lines.items[account->line];
    line->live += holding->bytes - account->bytes;
    account->bytes = holding->bytes;
    if (line->live > line->peak) line->peak = line->live;
}

static void forget_holdings(Report *report) {
    for (size_t i = 0; i < report->accounts.count; i++) report->accounts.items[i].bytes = 0;
    for (size_t i = 0; i < report->lines.count; i++) report->lines.items[i].live = 0;
}

static void choose_bands(Report *report) {
    while (report->band_count < LINES_SHOWN) {
        Line *best = NULL;
        for (size_t i = 0; i < report->lines.count; i++) {
            Line *line = &report->lines.items[i];
            bool free_one = line->shown == LINES_SHOWN && line->peak > 0;
            if (free_one && (!best || line->peak > best->peak)) best = line;
        }
        if (!best) return;
        best->shown = report->band_count;
        report->bands[report->band_count++] = (uint32_t)(best - report->lines.items);
    }
}

// First walk through the holdings: which moments and lines the picture of memory shows.
static void find_moments(Report *report) {
    const Timeline *timeline = report->timeline;
    uint64_t total = 0, highest[MOMENTS] = {0};
    for (size_t i = 0; i <= MOMENTS; i++) report->moments[i] = SIZE_MAX;
    for (size_t i = 0; i < timeline->holdings.count; i++) {
        const TimelineHolding *holding = &timeline->holdings.items[i];
        total += holding->bytes - account_of(report, holding->origin)->bytes;
        apply(report, i);
        size_t part = (size_t)((double)holding->at / (double)(timeline->ns + 1) * MOMENTS);
        if (part >= MOMENTS) part = MOMENTS - 1;
        if (report->moments[part] == SIZE_MAX || total >= highest[part]) {
            report->moments[part] = i;
            highest[part] = total;
        }
    }
    if (timeline->holdings.count > 0) report->moments[MOMENTS] = timeline->holdings.count - 1;
    choose_bands(report);
    forget_holdings(report);
}

// --- JSON

static void append_line(const Line *line, Text *out) {
    text_append_string(out, "{\"file\":");
    const char *file = line->file ? line->file->name : "";
    text_append_quoted(out, file, strlen(file));
    text_format(out, ",\"line\":%d,\"text\":", line->number);
    text_append_quoted(out, text_get(&line->text), line->text.length);
    text_append_char(out, '}');
}

static const char *name_of(const TimelineTotal *total) {
    return total->name ? total->name : kernel_names[total->kernel];
}

static void append_totals(Report *report, Text *out) {
    for (size_t i = 0; i < report->timeline->totals.count; i++) {
        const TimelineTotal *total = &report->timeline->totals.items[i];
        Origin origin = total->origin;
        int caller = origin.called_from ? (int)line_of(report, origin.called_from) : -1;
        text_format(out, "%s[%u,%d,\"%s\",\"%s\",\"%s\",%llu,%llu,%llu,%llu]", i ? "," : "",
                    report->total_lines[i], caller, name_of(total), kind_words[total->kind],
                    total->kind == TIMELINE_KERNEL ? kernel_names[total->kernel] : "",
                    (unsigned long long)total->count, (unsigned long long)total->ns,
                    (unsigned long long)total->bytes, (unsigned long long)total->flops);
    }
}

// [seconds, bytes of each band..., bytes of the other lines] of each moment.
static void append_moments(Report *report, Text *out) {
    size_t next = 0;
    bool first = true;
    for (size_t part = 0; part <= MOMENTS; part++) {
        if (report->moments[part] == SIZE_MAX || report->moments[part] < next) continue;
        while (next <= report->moments[part]) apply(report, next++);
        uint64_t held[LINES_SHOWN + 1] = {0};
        for (size_t i = 0; i < report->lines.count; i++)
            held[report->lines.items[i].shown] += report->lines.items[i].live;
        double at = (double)report->timeline->holdings.items[report->moments[part]].at / 1e9;
        text_format(out, "%s[%.6f", first ? "" : ",", at);
        for (int i = 0; i <= LINES_SHOWN; i++)
            if (i < report->band_count || i == LINES_SHOWN)
                text_format(out, ",%llu", (unsigned long long)held[i]);
        text_append_char(out, ']');
        first = false;
    }
    forget_holdings(report);
}

static void append_report(Report *report, Text *out) {
    Device *device = device_default_opened();
    text_append_string(out, "{\"name\":");
    text_append_quoted(out, report->name, strlen(report->name));
    text_append_string(out, ",\"device\":");
    const char *about = device ? device->description : "";
    text_append_quoted(out, about, strlen(about));
    text_format(out, ",\"seconds\":%.9f,\"cut\":%s,\"queued\":%s,\"sampled\":%s,",
                (double)report->timeline->ns / 1e9, report->timeline->cut ? "true" : "false",
                report->timeline->queued ? "true" : "false",
                report->timeline->sampled < report->timeline->small ? "true" : "false");
    text_format(out, "\"roof\":{\"bytes\":%.6g,\"flops\":%.6g},\"totals\":[", report->roof.bytes,
                report->roof.flops);
    append_totals(report, out);
    text_append_string(out, "],\"bands\":[");
    for (int i = 0; i < report->band_count; i++)
        text_format(out, "%s%u", i ? "," : "", report->bands[i]);
    text_append_string(out, "],\"memory\":[");
    append_moments(report, out);
    text_append_string(out, "],\"lines\":["); // last: the others have added to them
    for (size_t i = 0; i < report->lines.count; i++) {
        if (i) text_append_char(out, ',');
        append_line(&report->lines.items[i], out);
    }
    text_append_string(out, "]}");
}

// --- files

static Status write_page(FILE *stream, void *context) {
    static const char mark[] = "@DATA@";
    SCOPED_TEXT(data);
    append_report(context, &data);
    const char *at = strstr(page_html, mark);
    ASSERT(at != NULL);
    Status status = stream_write(stream, page_html, (size_t)(at - page_html));
    for (size_t i = 0; i < data.length && status == STATUS_OK; i++) // no `</script>` in a script
        status = data.bytes[i] == '<' ? stream_write(stream, "\\u003c", 6)
                                      : stream_write(stream, data.bytes + i, 1);
    TRY(status);
    at += sizeof mark - 1;
    return stream_write(stream, at, strlen(at));
}

static void append_event(Report *report, const TimelineEvent *event, Text *out) {
    const TimelineTotal *total = &report->timeline->totals.items[event->total];
    const Line *line = &report->lines.items[report->total_lines[event->total]];
    text_format(out,
                ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,"
                "\"dur\":%.3f,\"args\":{\"line\":",
                name_of(total), kind_words[total->kind], total->queued ? TRACK_DEVICE : TRACK_TL,
                (double)event->begin / 1e3, (double)(event->end - event->begin) / 1e3);
    append_line(line, out);
    text_append_string(out, "}}");
}

// What Chrome's trace viewer and Perfetto read.
static Status write_trace(FILE *stream, void *context) {
    Report *report = context;
    const Timeline *timeline = report->timeline;
    SCOPED_TEXT(out);
    text_append_string(&out, "{\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\","
                             "\"pid\":1,\"args\":{\"name\":");
    text_append_quoted(&out, report->name, strlen(report->name));
    text_append_string(&out, "}}");
    text_format(&out,
                ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":"
                "\"tl\"}}",
                TRACK_TL);
    if (timeline->queued)
        text_format(&out,
                    ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
                    "\"name\":\"device\"}}",
                    TRACK_DEVICE);
    for (size_t i = 0; i < timeline->events.count; i++)
        append_event(report, &timeline->events.items[i], &out);
    uint64_t total = 0;
    for (size_t i = 0; i < timeline->holdings.count; i++) {
        const TimelineHolding *holding = &timeline->holdings.items[i];
        Account *account = account_of(report, holding->origin);
        total += holding->bytes - account->bytes;
        account->bytes = holding->bytes;
        text_format(&out,
                    ",\n{\"name\":\"device memory\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"args\":{"
                    "\"bytes\":%llu}}",
                    (double)holding->at / 1e3, (unsigned long long)total);
    }
    text_append_string(&out, "\n],\"displayTimeUnit\":\"ms\"}\n");
    Status status = stream_write(stream, text_get(&out), out.length);
    forget_holdings(report);
    return status;
}

// "model.tl" of "there/model.tl", for files in the folder where the command runs, or its sandbox.
static void append_output(const CommandLine *line, const char *ending, Text *out) {
    const char *name = line->file && strcmp(line->file, "-") != 0 ? line->file : "program";
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
    if (line->limits.sandbox) text_format(out, "%s/", line->limits.sandbox);
    text_append(out, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
    text_append_string(out, ending);
}

static Status write_report(const CommandLine *line, const Timeline *timeline) {
    SCOPED_MEMORY Report *report = memory_allocate_zeroed(1, sizeof *report);
    SCOPED_TEXT(page);
    SCOPED_TEXT(trace);
    report->timeline = timeline;
    report->name = line->file ? line->file : "-e";
    Device *device = device_default_opened();
    if (device) report->roof = roof_measure(device->name);
    append_output(line, ".profile.html", &page);
    append_output(line, ".trace.json", &trace);
    report->total_lines = memory_allocate((timeline->totals.count + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < timeline->totals.count; i++)
        report->total_lines[i] = line_of(report, timeline->totals.items[i].origin.at);
    find_moments(report);
    Status status = file_replace_stream(text_get(&page), write_page, report);
    if (status == STATUS_OK) status = file_replace_stream(text_get(&trace), write_trace, report);
    output_flush();
    if (status == STATUS_OK && !line->interp.quiet)
        fprintf(stderr, "profile: %s, and %s for Perfetto\n", text_get(&page), text_get(&trace));
    for (size_t i = 0; i < report->lines.count; i++) text_free(&report->lines.items[i].text);
    VECTOR_FREE(&report->lines);
    VECTOR_FREE(&report->accounts);
    free(report->total_lines);
    return status;
}

int command_profile(const Command *command, int count, char **arguments) {
    CommandLine line = {0};
    Timeline timeline = {0};
    Tally tally = {0};
    command_line_read(&line, command, count, arguments);
    line.timeline = &timeline;
    if (program_begin(&line) != STATUS_OK) return report_current_error();
    Program *program = program_load(line.file, line.code);
    if (!program) return EXIT_FAILED;
    int status = program_run(&line, program, &tally);
    if (timeline.ns && write_report(&line, &timeline) != STATUS_OK) {
        int failed = report_current_error();
        if (status == EXIT_SUCCESS_STATUS) status = failed;
    }
    timeline_free(&timeline);
    return program_end(status);
}
