// A program that runs is foretold next to its run, by a process of its own (tl check --memory) that
// the system lets work when nothing else wants to. Where that shows that the program cannot fit,
// the run fails at its next statement. It begins a second after the program has opened its device,
// so that short programs and those without tensors pay nothing.
#define _GNU_SOURCE // vfork, SCHED_IDLE
#include "main/foresee.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/runtime.h"
#include "device/settings.h"

enum {
    DELAY_SECONDS = 1,
    WORK_SECONDS_MAX = 300, // processor time; a program that takes longer is told as it grows
    MEMORY_PARTS = 8,       // of the machine's, one is the most that it may take for itself
    NICE_MOST = 19,
};

// Of the one program that this process runs.
static struct {
    const CommandLine *line;
    Runtime *runtime;
    VECTOR(char *) words; // what the process is started with
    char seed[24];        // the number among them
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sigset_t signals; // those that the run holds back
    pid_t child;      // 0: there is none, or it has ended
    bool over;        // the run has ended, or is known to fit: nothing is said any more
    Text why;         // what is said; the run reads it from then on
} forecast = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

// --- fitting -------------------------------------------------------------------------------------

FitKind fit_of(const Fit *fit) {
    if (fit->own > 0 && fit->tensor > fit->own) return FIT_LARGE;
    bool much = fit->limit > 0 && fit->peak > fit->limit && fit->peak - fit->limit > fit->room;
    return much ? FIT_MUCH : FIT_WELL;
}

void fit_explain(const Fit *fit, const char *place, Text *out) {
    bool large = fit_of(fit) == FIT_LARGE;
    text_format(out, "the program %s %.2f MB%s", large ? "makes a tensor of" : "holds",
                (double)(large ? fit->tensor : fit->peak) / 0x1p20, place);
    if (large)
        text_format(out, ", and %s has %.2f MB", fit->device, (double)fit->own / 0x1p20);
    else
        text_format(out, ", %s %s %.2f MB, and there is room for %.2f MB of the rest",
                    fit->running ? fit->device : "--memory-limit", fit->running ? "gives it" : "is",
                    (double)fit->limit / 0x1p20, (double)fit->room / 0x1p20);
}

const char *fit_help(const Fit *fit) {
    if (fit_of(fit) == FIT_LARGE) return "make it in parts";
    return fit->running ? "let TMPDIR name a folder with more room, or hold less at once"
                        : "raise the limit, or let TMPDIR name a folder with more room";
}

// --- the process ---------------------------------------------------------------------------------

static void add_word(const char *word) {
    VECTOR_PUSH(&forecast.words, (char *)(uintptr_t)word);
}

static void add_choice(const char *option, VariableId variable) {
    const char *chosen = device_setting_choice(variable);
    if (!chosen) return;
    add_word(option);
    add_word(chosen);
}

// The same program on the command line of tl check.
static void write_command(const CommandLine *line) {
    static const char *const begin[] = {"tl", "check", "--memory", "--json"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) add_word(begin[i]);
    add_choice("--device", VARIABLE_TL_DEVICE);
    add_choice("--memory-limit", VARIABLE_TL_MEMORY_LIMIT);
    if (line->interp.has_seed) {
        snprintf(forecast.seed, sizeof forecast.seed, "%llu",
                 (unsigned long long)line->interp.seed);
        add_word("--seed");
        add_word(forecast.seed);
    }
    if (line->code) add_word("-e");
    add_word(line->code ? line->code : line->file);
    add_word("--");
    for (int i = 0; i < line->interp.argument_count; i++) add_word(line->interp.arguments[i]);
    add_word(NULL);
}

static void limit_memory(rlim_t most) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
    if (limit.rlim_max < most) most = limit.rlim_max;
    if (limit.rlim_cur > most) limit.rlim_cur = most;
    (void)setrlimit(RLIMIT_DATA, &limit);
}

// In the new process, which still has the memory of this one: it changes what is its own. It ends
// with the run, is last in turn, and the first to go where memory is short.
_Noreturn static void become(char **words, int output, pid_t parent, const sigset_t *signals) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(EXIT_FAILED);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setpriority(PRIO_PROCESS, 0, NICE_MOST);
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = WORK_SECONDS_MAX}, NULL);
    limit_memory((rlim_t)sysconf(_SC_PHYS_PAGES) / MEMORY_PARTS * (rlim_t)sysconf(_SC_PAGESIZE));
    int first = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (first >= 0 && write(first, "1000", 4) < 0) first = -1; // then it is as likely as others
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
    execv("/proc/self/exe", words);
    _exit(EXIT_FAILED);
}

// -1 where the system gives no process. A copy of this one's memory, which may be large, is not
// made.
static pid_t start(char **words, int output) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid(), child = vfork();
    if (child == 0) become(words, output, parent, &forecast.signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return child;
}

// --- what it says --------------------------------------------------------------------------------

static void read_all(int file, Text *out) {
    char bytes[4096];
    for (;;) {
        ssize_t count = read(file, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        text_append(out, bytes, (size_t)count);
    }
}

static pid_t forecast_child(pid_t child) {
    pthread_mutex_lock(&forecast.lock);
    forecast.child = child;
    if (child > 0 && forecast.over) kill(child, SIGTERM);
    pthread_mutex_unlock(&forecast.lock);
    return child;
}

// What the process printed; nothing where it could not be made or failed.
static void foretell_run(Text *out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_t child = forecast_child(start(forecast.words.items, ends[1]));
    close(ends[1]);
    read_all(ends[0], out);
    (void)forecast_child(0);
    if (child > 0) waitpid(child, NULL, 0);
    close(ends[0]);
}

static uint64_t number_of(const json_t *found, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(found, key));
}

// Why the program cannot run; stays empty when it can, or nobody knows.
static void judge(const json_t *found, Text *why) {
    const json_t *tensor = json_object_get(found, "tensor");
    Fit fit = {.device = json_string_value(json_object_get(found, "device")),
               .peak = number_of(found, "peak"),
               .tensor = number_of(tensor, "bytes"),
               .limit = number_of(found, "limit"),
               .own = number_of(found, "own"),
               .room = number_of(found, "room"),
               .running = true};
    if (!json_is_true(json_object_get(found, "exact")) || fit_of(&fit) == FIT_WELL) return;
    const json_t *at = json_object_get(fit_of(&fit) == FIT_LARGE ? tensor : found, "at");
    const char *file = json_string_value(json_object_get(at, "file"));
    Text place = {0};
    if (file)
        text_format(&place, " at %s:%lld", file,
                    (long long)json_integer_value(json_object_get(at, "line")));
    fit_explain(&fit, text_get(&place), why);
    text_free(&place);
}

// --- next to the run -----------------------------------------------------------------------------

static bool is_over_after_delay(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DELAY_SECONDS;
    pthread_mutex_lock(&forecast.lock);
    while (!forecast.over &&
           pthread_cond_timedwait(&forecast.changed, &forecast.lock, &until) != ETIMEDOUT)
        continue;
    bool over = forecast.over;
    pthread_mutex_unlock(&forecast.lock);
    return over;
}

static void *watch(void *context) {
    Text said = {0}, why = {0};
    if (is_over_after_delay()) return context;
    foretell_run(&said);
    json_t *found = json_loadb(text_get(&said), said.length, 0, NULL);
    if (found) judge(found, &why);
    json_decref(found);
    text_free(&said);
    pthread_mutex_lock(&forecast.lock);
    if (!forecast.over && why.length > 0) {
        forecast.why = why;
        atomic_store(&forecast.runtime->foreseen, text_get(&forecast.why));
        runtime_interrupt(forecast.runtime, INTERRUPT_MEMORY);
    } else {
        text_free(&why);
    }
    pthread_mutex_unlock(&forecast.lock);
    return context;
}

// Where the system gives no thread, nothing is foretold.
void foresee_begin(void *context) {
    (void)context;
    pthread_t thread;
    sigset_t all;
    write_command(forecast.line);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &forecast.signals);
    if (!forecast.over && pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &forecast.signals, NULL);
}

void foresee_prepare(const CommandLine *line) {
    forecast.line = line;
    forecast.runtime = runtime_current;
}

void foresee_end(void) {
    pthread_mutex_lock(&forecast.lock);
    forecast.over = true;
    if (forecast.child > 0) kill(forecast.child, SIGTERM);
    if (forecast.runtime) atomic_store(&forecast.runtime->foreseen, NULL);
    pthread_cond_broadcast(&forecast.changed);
    pthread_mutex_unlock(&forecast.lock);
}
