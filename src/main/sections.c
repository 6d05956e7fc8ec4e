// tl test and tl bench: the test and bench blocks of files and folders, a line each.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "main/command.h"

static void report_section(void *context, const char *name, Status status, double seconds) {
    Tally *tally = context;
    if (status == STATUS_OK)
        tally->passed++;
    else
        tally->failed++;
    printf("%-6s %s", status == STATUS_OK ? "ok" : "FAILED", name);
    if (tally->mode == RUN_BENCHES) printf("  %.3f ms", seconds * 1e3);
    printf("\n");
    if (status == STATUS_OK) return;
    fflush(stdout);
    failure_show(tally->interp);
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
    tally->failed++;
    failure_show(interp);
}

// --- files and folders

typedef VECTOR(char *) PathList;

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// Every .tl file below a folder. Hidden entries are passed over.
static void collect_folder(const char *folder, PathList *paths) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        Text path = {0};
        text_format(&path, "%s/%s", folder, entry->d_name);
        size_t length = path.length;
        if (is_folder(text_get(&path))) {
            collect_folder(text_get(&path), paths);
            text_free(&path);
        } else if (length > 3 && strcmp(path.bytes + length - 3, ".tl") == 0) {
            VECTOR_PUSH(paths, text_take(&path));
        } else {
            text_free(&path);
        }
    }
    closedir(directory);
}

static void collect(const char *path, PathList *paths) {
    if (is_folder(path)) {
        size_t first = paths->count;
        collect_folder(path, paths);
        if (paths->count > first)
            qsort(paths->items + first, paths->count - first, sizeof *paths->items, compare_paths);
    } else {
        VECTOR_PUSH(paths, memory_copy_string(path, strlen(path)));
    }
}

static int run_paths(CommandLine *line, const PathList *paths) {
    Tally tally = {.mode = line->mode};
    if (program_begin() != STATUS_OK) return report_current_error();
    for (size_t i = 0; i < paths->count; i++) {
        Program *program = program_load(paths->items[i], NULL);
        if (!program) {
            tally.failed++;
            continue;
        }
        printf("%s\n", paths->items[i]);
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
        if (arguments[index][0] == '-')
            return usage_error(command, "there is no option %s", arguments[index]);
        collect(arguments[index++], &paths);
    }
    if (paths.count == 0) collect(".", &paths);
    int status = run_paths(&line, &paths);
    for (size_t i = 0; i < paths.count; i++) free(paths.items[i]);
    VECTOR_FREE(&paths);
    return status;
}
