// tl test and tl bench: the test and bench blocks of files and folders, a line each.
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "eval/trace.h"
#include "main/command.h"

static void report_section(void *context, const char *name, Status status, Timing *timing) {
    Tally *tally = context;
    if (tally->file) printf("%s\n", tally->file);
    tally->file = NULL;
    if (status == STATUS_OK)
        tally->passed++;
    else
        tally->failed++;
    printf("%-6s %s", status == STATUS_OK ? "ok" : "FAILED", name);
    if (tally->mode == RUN_BENCHES && status == STATUS_OK) {
        SCOPED_TEXT(text);
        timing_describe(timing, &text);
        printf("  %s", text_get(&text));
    }
    printf("\n");
    if (status != STATUS_OK) failure_show(tally->interp);
}

// A file whose blocks could not be run: not found, not correct, or its top level failed.
static void failed_as_a_whole(Tally *tally) {
    tally->failed++;
    printf("FAILED %s\n", tally->file ? tally->file : "the top level");
    output_flush();
}

int tally_show(const Tally *tally) {
    printf("%d passed, %d failed\n", tally->passed, tally->failed);
    return tally->failed ? EXIT_FAILED : EXIT_SUCCESS_STATUS;
}

void sections_run(const CommandLine *line, Interp *interp, Program *program, Tally *tally) {
    NodeKind kind = line->mode == RUN_TESTS ? NODE_TEST : NODE_BENCH;
    SectionReport report = {.report = report_section, .context = tally};
    tally->interp = interp;
    tally->mode = line->mode;
    if (interp_run_sections(interp, program, kind, line->filter, &report) == STATUS_OK) return;
    failed_as_a_whole(tally);
    failure_show(interp);
}

static int run_paths(CommandLine *line, const PathList *paths) {
    Tally tally = {.mode = line->mode};
    line->paths = paths;
    if (program_begin(line) != STATUS_OK) return report_current_error();
    for (size_t i = 0; i < paths->count; i++) {
        Program *program = program_load(paths->items[i], NULL);
        tally.file = paths->items[i];
        if (!program) {
            failed_as_a_whole(&tally);
            continue;
        }
        int status = program_run(line, program, &tally);
        if (status >= EXIT_SIGNAL) return program_end(status);
    }
    return program_end(tally_show(&tally));
}

int command_test(const Command *command, int count, char **arguments) {
    CommandLine line = {.mode = strcmp(command->name, "bench") == 0 ? RUN_BENCHES : RUN_TESTS};
    PathList paths = {0};
    for (int index = 0; index < count;) {
        if (option_read(&line, arguments, count, &index)) continue;
        if (arguments[index][0] == '-') return word_refuse(command, arguments[index]);
        paths_collect(arguments[index++], &paths);
    }
    if (paths.count == 0) paths_collect(".", &paths);
    int status = run_paths(&line, &paths);
    paths_free(&paths);
    return status;
}
