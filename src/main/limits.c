// What a program may use: memory and time of this process, and files.
#define _GNU_SOURCE // environ
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/disk_room.h"
#include "base/number.h"
#include "base/sandbox.h"
#include "check/check.h"
#include "device/cpu/cpu.h"
#include "device/cpu/lapack.h"
#include "main/command.h"
#include "ranks/ranks.h"
#include "value/heap.h"

bool limit_seconds_read(const char *text, double *out) {
    static const char *const units[] = {"", "s", "ms", "m", "h", NULL};
    static const double factors[] = {1, 1, 1e-3, 60, 3600};
    return number_read_quantity(text, units, factors, out) && *out >= 1e-3;
}

enum {
    TICK_MICROSECONDS = 100000,
    TICKS_MAX = 50,
    FORETELLING_BYTES = 280 << 20, // of the stacks that it is given, of which most is untouched
};

static Limits applied;
static volatile sig_atomic_t ticks; // since the time was over
static volatile sig_atomic_t clock_stopped;
static Runtime *clock_target; // whose program the clock ends

// Interrupts as Ctrl-C does, and again at every tick: drops that run while the program ends may go
// on. One that does not end even so is ended.
static void on_alarm(int number) {
    (void)number;
    static const char words[] = "error[interrupt]: the time limit is over, and the program did not "
                                "end when it was interrupted\n";
    if (++ticks > TICKS_MAX) {
        ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
        (void)written;
        _Exit(EXIT_FAILED);
    }
    if (!clock_stopped) runtime_interrupt(clock_target, INTERRUPT_SIGNAL);
}

static void start_clock(double seconds) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    clock_target = runtime_current;
    ticks = 0;
    clock_stopped = 0;
    struct itimerval timer = {
        .it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)},
        .it_interval = {.tv_usec = TICK_MICROSECONDS}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

void limits_stop_clock(void) {
    clock_stopped = 1;
    if (ticks == 0) setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

// tl's own variables stay, and those by which Vulkan finds its drivers.
static void clear_environment(void) {
    static const char *const kept[] = {"TL_", "VK_", "NO_COLOR="};
    for (size_t i = 0; environ[i];) {
        bool keep = false;
        for (size_t j = 0; j < sizeof kept / sizeof *kept; j++)
            keep |= strncmp(environ[i], kept[j], strlen(kept[j])) == 0;
        SCOPED_MEMORY char *name = memory_copy_string(environ[i], strcspn(environ[i], "="));
        if (keep || unsetenv(name) != 0) i++;
    }
}

// What a memory limit moves out, too. A folder that is not there is sandbox_enter's error.
static void keep_temporary_files_in(const char *sandbox) {
    SCOPED_MEMORY char *folder = realpath(sandbox, NULL);
    if (folder) setenv("TMPDIR", folder, 1);
}

// A page more fits below a limit of so many bytes.
static bool fits(struct rlimit limit, rlim_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_DATA, &limit) != 0) return true;
    void *room = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room != MAP_FAILED) munmap(room, page);
    return room != MAP_FAILED;
}

// What RLIMIT_DATA counts, as it is now: with the stacks of threads, of which most is untouched.
// Found by asking: a process that is confined to a folder cannot read it in /proc.
static rlim_t data_bytes(struct rlimit limit) {
    rlim_t page = (rlim_t)sysconf(_SC_PAGESIZE), low = page, high = limit.rlim_max;
    if (high > (rlim_t)1 << 47) high = (rlim_t)1 << 47; // addresses of a process on x86-64
    while (high - low > page) {
        rlim_t middle = low + (high - low) / 2;
        if (fits(limit, middle))
            high = middle;
        else
            low = middle;
    }
    (void)setrlimit(RLIMIT_DATA, &limit); // it was so before
    return low;
}

// Beyond what the process has now.
static Status limit_data(size_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    bytes += data_bytes(limit);
    limit.rlim_cur = limit.rlim_max < bytes ? limit.rlim_max : bytes;
    if (setrlimit(RLIMIT_DATA, &limit) == 0) return STATUS_OK;
    return fail(STATUS_SETTING, "--host-limit: %s", strerror(errno));
}

// The work areas of decompositions and the stacks of threads are not the program's.
static Status limit_host(size_t bytes) {
    if (lapack_load() != STATUS_OK) error_clear();
    cpu_start_threads();
    return limit_data(bytes);
}

rlim_t limits_hold(const Limits *limits) {
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    bool held =
        !limits->host_bytes || limit_data(limits->host_bytes + FORETELLING_BYTES) == STATUS_OK;
    if (!held) error_clear(); // the program's own start will say so
    return limit.rlim_cur;
}

void limits_let_go(rlim_t before) {
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = before;
    (void)setrlimit(RLIMIT_DATA, &limit); // it was so before
}

Status limits_confine(const Limits *limits, const char *const *scripts, size_t count) {
    if (limits->disk_bytes) disk_room_limit(limits->disk_bytes);
    if (!limits->sandbox) return STATUS_OK;
    heap_start(); // it asks /proc where this thread's stack lies
    SCOPED_TEXT(standard);
    SCOPED_TEXT(tried);
    SCOPED_MEMORY VECTOR(const char *) readable = {0};
    for (size_t i = 0; i < count; i++) VECTOR_PUSH(&readable, scripts[i]);
    if (imports_find_standard("std/", &standard, &tried))
        VECTOR_PUSH(&readable, text_get(&standard));
    clear_environment();
    keep_temporary_files_in(limits->sandbox);
    // Ranks talk to each other over TCP, too.
    return sandbox_enter(&(Sandbox){.folder = limits->sandbox,
                                    .readable = readable.items,
                                    .readable_count = readable.count,
                                    .offline = ranks_count() == 1});
}

Status limits_apply(const Limits *limits) {
    bool first = !applied.host_bytes;
    applied = *limits;
    if (first && limits->host_bytes) TRY(limit_host(limits->host_bytes));
    if (limits->seconds > 0) start_clock(limits->seconds);
    return STATUS_OK;
}

void limits_explain(Status status) {
    if (status == STATUS_INTERRUPT && ticks > 0)
        fail_label("the time limit of %g s was over here", applied.seconds);
    if (status == STATUS_MEMORY && applied.host_bytes)
        fail_help("the process may use %zu bytes (--host-limit); let go of what is no longer "
                  "needed (x = none), or work in smaller pieces",
                  applied.host_bytes);
}
