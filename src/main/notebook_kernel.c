// tl notebook-kernel: tells Jupyter of the kernel in the Python package (python/tl/kernel.py).
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "main/command.h"

extern char **environ;

// Whether that Python has the kernel and what it stands on; silently.
static bool has_kernel(const char *python) {
    posix_spawn_file_actions_t actions;
    char *words[] = {(char *)python, (char *)"-c", (char *)"import tl.kernel, ipykernel", NULL};
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool started = posix_spawnp(&child, python, &actions, NULL, words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    while (started && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return started && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static Status install(void) {
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++) {
        if (!has_kernel(pythons[i])) continue;
        char *words[] = {(char *)pythons[i], (char *)"-m", (char *)"tl.kernel", (char *)"install",
                         NULL};
        execvp(pythons[i], words);
        return fail(STATUS_IO, "cannot start %s: %s", pythons[i], strerror(errno));
    }
    (void)fail(STATUS_IO, "notebooks need a python3 with the packages tl and ipykernel");
    return fail_help("on Debian and Ubuntu: apt install python3-tl python3-ipykernel");
}

int command_notebook_kernel(const Command *command, int count, char **arguments) {
    if (count != 1 || strcmp(arguments[0], "install") != 0)
        return usage_error(command, "the word after notebook-kernel is install");
    (void)install();
    return report_current_error();
}
