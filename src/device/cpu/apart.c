// A copy of the process is made by fork: it sees all memory as it is, and what it changes is its
// own. It runs LAPACK and nothing else: no device, no collector, no worker thread is touched.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "device/cpu/apart.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "device/work.h"

enum { LOOK_MS = 50 }; // how often the user is asked; an interrupt that comes here ends the wait

// What a copy leaves.
typedef struct Outcome {
    bool complete;
    Status status;
    ErrorRecord error;
} Outcome;

void *apart_allocate(size_t bytes) {
    void *memory = MAP_FAILED;
    if (!memory_refuses(bytes))
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    memory_note_refusal(bytes);
    return NULL;
}

void apart_free(void *memory, size_t bytes) {
    if (memory) munmap(memory, bytes);
}

_Noreturn static void run_copy(Status (*work)(const void *context), const void *context,
                               Outcome *outcome) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    outcome->status = work(context);
    outcome->error = *error_current();
    outcome->complete = true;
    _exit(0);
}

// Signals are for the process that the copy belongs to.
static pid_t start_copy(Status (*work)(const void *context), const void *context,
                        Outcome *outcome) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); // of a mapped file that lacks bytes
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t copy = fork();
    if (copy == 0) run_copy(work, context, outcome);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return copy;
}

// False when the user interrupted, and the copy was ended.
static bool wait_for(pid_t copy) {
    // Where the system has no such descriptor, poll only sleeps.
    struct pollfd ended = {.fd = pidfd_open(copy, 0), .events = POLLIN};
    bool interrupted = false;
    while (!interrupted && waitpid(copy, NULL, WNOHANG) == 0) {
        poll(&ended, 1, LOOK_MS);
        interrupted = device_is_interrupted();
    }
    if (interrupted) {
        kill(copy, SIGKILL);
        waitpid(copy, NULL, 0);
    }
    if (ended.fd >= 0) close(ended.fd);
    return !interrupted;
}

static Status outcome_of(const Outcome *outcome, const char *op_name) {
    if (!outcome->complete)
        return fail(STATUS_DEVICE, "%s: the process that worked on it was ended", op_name);
    if (outcome->status != STATUS_OK) *error_current() = outcome->error;
    return outcome->status;
}

Status apart_run(Status (*work)(const void *context), const void *context, const char *op_name) {
    Outcome *outcome = apart_allocate(sizeof *outcome);
    if (!outcome) return memory_exhausted();
    pid_t copy = start_copy(work, context, outcome);
    Status status;
    if (copy < 0)
        status = work(context); // the system refuses a process: an interrupt waits for the end
    else if (wait_for(copy))
        status = outcome_of(outcome, op_name);
    else
        status = fail(STATUS_INTERRUPT, "interrupted");
    apart_free(outcome, sizeof *outcome);
    return status;
}
