// A program that runs is foretold next to its run, by a process of its own (tl check --memory) that
// the system lets work when nothing else wants to. Where that shows that the program cannot fit,
// the run fails at its next statement. It begins a quarter of a second after the program has opened
// its device, so that short programs and those without tensors pay nothing. For its first 150 ms of
// processor time it is a process like any other, since a run that takes all cores would keep it
// waiting: most programs that cannot fit are told in less.
#define _GNU_SOURCE // vfork, SCHED_IDLE
#include "main/foresee.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
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
    DELAY_MILLISECONDS = 250,
    EAGER_MILLISECONDS = 150, // of processor time, in which the process is one like any other
    LOOK_MILLISECONDS = 10,   // between two looks whether the process has ended
    WORK_SECONDS_MAX = 300,   // processor time; a program that takes longer is told as it grows
    MEMORY_PARTS = 8,         // of the machine's, one is the most that it may take for itself
    NICE_MOST = 19,
};

// Of the one program that this process runs.
static struct {
    const CommandLine *line;
    Runtime *runtime;
    VECTOR(char *) words; // what the process is started with
    char seed[24];        // the number among them
    sigset_t signals;     // those that the run holds back
    pthread_t thread;     // it watches, and is joined when the run ends
    atomic_bool watched;  // there is such a thread
    bool over;            // the run has ended, or is known to fit: nothing is said any more
    int stop[2];          // a pipe that is closed when it is over
    Text why;             // what is said; the run reads it from then on
} forecast;

// --- fitting -------------------------------------------------------------------------------------

FitKind fit_of(const Fit *fit) {
    if (fit->own > 0 && fit->tensor > fit->own) return FIT_LARGE;
    bool much = fit->limit > 0 && fit->peak > fit->limit && fit->peak - fit->limit > fit->room;
    return much ? FIT_MUCH : FIT_WELL;
}

void fit_explain(const Fit *fit, const char *place, Text *out) {
    bool large = fit_of(fit) == FIT_LARGE;
    const char *verb = large ? "makes a tensor of" : fit->more ? "holds more than" : "holds";
    text_format(out, "the program %s %.2f MB%s", verb,
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
    static const char *const begin[] = {"tl", "check", "--memory=sure", "--json"};
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
// with the run, and is the first to go where memory is short.
_Noreturn static void become(char **words, int output, pid_t parent, const sigset_t *signals) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(EXIT_FAILED);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
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

// From here on each of its threads, and whatever thread they start, takes what nobody else wants.
static void put_last(pid_t child) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads && (entry = readdir(threads));) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread == 0) continue; // "." and ".."
        setpriority(PRIO_PROCESS, (id_t)thread, NICE_MOST);
        sched_setscheduler(thread, SCHED_IDLE, &(struct sched_param){0});
    }
    if (threads) closedir(threads);
}

// --- what it says --------------------------------------------------------------------------------

// Signals do not come to this thread.
static bool is_over_within(int milliseconds) {
    return poll(&(struct pollfd){.fd = forecast.stop[0]}, 1, milliseconds) != 0;
}

static bool is_over_before_readable(int file) {
    struct pollfd files[] = {{.fd = forecast.stop[0]}, {.fd = file, .events = POLLIN}};
    return poll(files, 2, -1) < 0 || files[0].revents != 0;
}

static bool is_silent_for(int file, int milliseconds) {
    struct pollfd files[] = {{.fd = forecast.stop[0]}, {.fd = file, .events = POLLIN}};
    return poll(files, 2, milliseconds) == 0;
}

// Whether it has worked for so long; true where the system does not say.
static bool has_worked(pid_t child, int milliseconds) {
    clockid_t clock;
    struct timespec worked;
    if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &worked) != 0) return true;
    return worked.tv_sec * 1000 + worked.tv_nsec / 1000000 >= milliseconds;
}

// False when it is over before the end.
static bool read_all(int file, Text *out) {
    char bytes[4096];
    while (!is_over_before_readable(file)) {
        ssize_t count = read(file, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return true;
        text_append(out, bytes, (size_t)count);
    }
    return false;
}

// What the process printed; nothing where it could not be made or failed. One that is not needed
// any more is not waited for: the system lets it end when it lets it work.
static void foretell_run(Text *out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_t child = start(forecast.words.items, ends[1]);
    close(ends[1]);
    bool silent = child > 0;
    while (silent && !has_worked(child, EAGER_MILLISECONDS))
        silent = is_silent_for(ends[0], LOOK_MILLISECONDS);
    if (silent) put_last(child);
    bool whole = read_all(ends[0], out);
    if (child > 0 && !whole) kill(child, SIGTERM);
    while (child > 0 && waitpid(child, NULL, WNOHANG) == 0 && !is_over_within(LOOK_MILLISECONDS))
        continue;
    close(ends[0]);
}

static uint64_t number_of(const json_t *found, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(found, key));
}

// Why the program cannot run; stays empty when it can, or nobody knows.
static void judge(const json_t *found, Text *why) {
    const json_t *sure = json_object_get(found, "sure"), *tensor = json_object_get(sure, "tensor");
    Fit fit = {.device = json_string_value(json_object_get(found, "device")),
               .peak = number_of(sure, "peak"),
               .tensor = number_of(tensor, "bytes"),
               .limit = number_of(found, "limit"),
               .own = number_of(found, "own"),
               .room = number_of(found, "room"),
               .more = json_is_true(json_object_get(sure, "more")),
               .running = true};
    if (fit_of(&fit) == FIT_WELL) return;
    const json_t *at = json_object_get(fit_of(&fit) == FIT_LARGE ? tensor : sure, "at");
    const char *file = json_string_value(json_object_get(at, "file"));
    SCOPED_TEXT(place);
    if (file)
        text_format(&place, " at %s:%lld", file,
                    (long long)json_integer_value(json_object_get(at, "line")));
    fit_explain(&fit, text_get(&place), why);
}

// --- next to the run -----------------------------------------------------------------------------

static void *watch(void *context) {
    SCOPED_TEXT(said);
    Text why = {0};
    if (is_over_within(DELAY_MILLISECONDS)) return context;
    foretell_run(&said);
    json_t *found = json_loadb(text_get(&said), said.length, 0, NULL);
    if (found) judge(found, &why);
    json_decref(found);
    if (why.length > 0 && !is_over_within(0)) {
        forecast.why = why;
        atomic_store(&forecast.runtime->foreseen, text_get(&forecast.why));
        runtime_interrupt(forecast.runtime, INTERRUPT_MEMORY);
    } else {
        text_free(&why);
    }
    return context;
}

// Where the system gives no thread, nothing is foretold.
void foresee_begin(void *context) {
    (void)context;
    sigset_t all;
    ASSERT(forecast.line && !forecast.watched);
    write_command(forecast.line);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &forecast.signals);
    if (!forecast.over && pipe2(forecast.stop, O_CLOEXEC) == 0)
        forecast.watched = pthread_create(&forecast.thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &forecast.signals, NULL);
}

void foresee_prepare(const CommandLine *line) {
    forecast.line = line;
    forecast.runtime = runtime_current;
}

void foresee_end(void) {
    forecast.over = true;
    if (!atomic_exchange(&forecast.watched, false)) return;
    close(forecast.stop[1]);
    pthread_join(forecast.thread, NULL);
    close(forecast.stop[0]);
    atomic_store(&forecast.runtime->foreseen, NULL);
}
