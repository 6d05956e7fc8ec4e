// Runs a program in a process of its own, which says at its end what it has. Where it lies in the
// address space and which thread did what change that by a hundredth, so that several are asked.
#include "main/rehearse.h"

#include <stdlib.h>
#include <time.h>

#include "device/settings.h"
#include "mcp/child.h"

enum { RUNS_MAX = 9, MILLISECONDS_MAX = 500 };

typedef VECTOR(const char *) Words;

static void add_choice(Words *words, const char *option, VariableId variable) {
    const char *chosen = device_setting_choice(variable);
    if (!chosen) return;
    VECTOR_PUSH(words, option);
    VECTOR_PUSH(words, chosen);
}

static uint64_t run_once(const Words *words) {
    Child child = {.words = words->items, .folder = ".", .input = ""};
    ChildResult result;
    Status status = child_run(&child, &result);
    uint64_t resident = 0;
    if (status != STATUS_OK)
        error_clear();
    else if (result.status == 0)
        resident = strtoull(text_get(&result.out), NULL, 10);
    child_result_free(&result);
    return resident;
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int64_t milliseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t run_often(const Words *words) {
    uint64_t found[RUNS_MAX];
    int64_t begun = milliseconds_now();
    int count = 0;
    do {
        found[count] = run_once(words);
        if (found[count++] == 0) return 0;
    } while (count < RUNS_MAX && milliseconds_now() - begun < MILLISECONDS_MAX);
    qsort(found, (size_t)count, sizeof *found, compare);
    return found[count / 2];
}

uint64_t rehearse(const CommandLine *line) {
    Words words = {0};
    SCOPED_TEXT(code);
    text_format(&code, "%s\nprint(memory().host[\"resident\"])", line->code);
    VECTOR_PUSH(&words, "/proc/self/exe");
    VECTOR_PUSH(&words, "run");
    add_choice(&words, "--device", VARIABLE_TL_DEVICE);
    add_choice(&words, "--memory-limit", VARIABLE_TL_MEMORY_LIMIT);
    VECTOR_PUSH(&words, "-e");
    VECTOR_PUSH(&words, text_get(&code));
    VECTOR_PUSH(&words, "--");
    for (int i = 0; i < line->interp.argument_count; i++)
        VECTOR_PUSH(&words, line->interp.arguments[i]);
    VECTOR_PUSH(&words, NULL);
    uint64_t resident = run_often(&words);
    VECTOR_FREE(&words);
    return resident;
}
