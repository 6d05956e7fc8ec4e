// Signals while the REPL runs: Ctrl-C stops the line, not the process; what ends programs ends it.
// A pipe wakes whoever waits for input, whichever thread the signal came to.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "repl/internal.h"

// Signals are the process's, and so is what their handler knows.
static Runtime *target; // whose lines they stop
static volatile sig_atomic_t interrupt_came, resize_came, resume_came, ending, passing;
static int wake[2] = {-1, -1};
static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
enum { NUMBERS = sizeof numbers / sizeof *numbers, SIGNAL_STATUS = 128 };
static struct sigaction before[NUMBERS];

static void on_signal(int number) {
    int error = errno;
    if (number == SIGWINCH) {
        resize_came = 1;
    } else if (number == SIGCONT) {
        resume_came = 1;
    } else if (number == SIGINT) {
        interrupt_came = 1;
        if (passing) runtime_interrupt(target, INTERRUPT_SIGNAL);
    } else {
        if (ending) _Exit(SIGNAL_STATUS + number); // the first was not enough
        ending = number;
        runtime_interrupt(target, INTERRUPT_SIGNAL);
    }
    ssize_t written = write(wake[1], "", 1); // a full pipe wakes as well
    (void)written;
    errno = error;
}

void signals_begin(void) {
    target = runtime_current;
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) wake[0] = wake[1] = -1;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUMBERS; i++) sigaction(numbers[i], &action, &before[i]);
}

void signals_end(void) {
    for (int i = 0; i < NUMBERS; i++) sigaction(numbers[i], &before[i], NULL);
    close(wake[0]);
    close(wake[1]);
}

static bool signal_came(void) {
    return interrupt_came || resize_came || resume_came || ending;
}

bool signals_wait_input(void) {
    if (signal_came()) return false;
    struct pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = wake[0], .events = POLLIN}};
    while (poll(files, 2, -1) < 0)
        if (errno != EINTR) return true; // reading will say what is wrong
    char drained[64];
    if (files[1].revents)
        while (read(wake[0], drained, sizeof drained) > 0) continue;
    if (signal_came()) return false;
    return files[0].revents != 0;
}

static bool take(volatile sig_atomic_t *flag) {
    bool came = *flag != 0;
    *flag = 0;
    return came;
}

bool signals_take_interrupt(void) {
    return take(&interrupt_came);
}

bool signals_take_resize(void) {
    return take(&resize_came);
}

bool signals_take_resume(void) {
    return take(&resume_came);
}

int signals_ending(void) {
    return ending;
}

void signals_pass_interrupt(bool on) {
    passing = on;
}
