// Starts a process with three pipes and serves them until it has ended.
#define _GNU_SOURCE // pipe2, posix_spawn_file_actions_addchdir_np
#include "mcp/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct Pipe {
    int read, write;
} Pipe;

static Status pipe_open(Pipe *out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail(STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    *out = (Pipe){ends[0], ends[1]};
    return STATUS_OK;
}

static void close_end(int *end) {
    if (*end >= 0) close(*end);
    *end = -1;
}

static void pipe_close(Pipe *pipe) {
    close_end(&pipe->read);
    close_end(&pipe->write);
}

static Status start(const Child *child, Pipe pipes[3], pid_t *out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[STDIN_FILENO].read, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[STDOUT_FILENO].write, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[STDERR_FILENO].write, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, child->folder);
    // posix_spawn takes words that it does not change as if it did.
    char *const *words = (char *const *)(uintptr_t)child->words;
    int error = posix_spawn(out, child->words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return STATUS_OK;
    return fail(STATUS_IO, "cannot start %s: %s", child->words[0], strerror(error));
}

// False at the end of the pipe.
static bool take(int end, Text *out, size_t *lost) {
    char bytes[16384];
    ssize_t count = read(end, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0) return false;
    size_t kept = CHILD_OUTPUT_MAX - out->length;
    if (kept > (size_t)count) kept = (size_t)count;
    text_append(out, bytes, kept);
    *lost += (size_t)count - kept;
    return true;
}

// False when everything was given, or the child reads no more.
static bool give(int end, const Child *child, size_t *given) {
    if (*given == child->input_length) return false;
    size_t rest = child->input_length - *given;
    // At most what a pipe takes without waiting once poll has called it writable.
    ssize_t count = write(end, child->input + *given, rest < PIPE_BUF ? rest : PIPE_BUF);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    *given += (size_t)count;
    return true;
}

static void serve(const Child *child, Pipe pipes[3], ChildResult *out) {
    size_t given = 0;
    int *input = &pipes[STDIN_FILENO].write, *output = &pipes[STDOUT_FILENO].read,
        *errors = &pipes[STDERR_FILENO].read;
    while (*output >= 0 || *errors >= 0) {
        // poll leaves out descriptors below 0.
        struct pollfd ends[] = {{*input, POLLOUT, 0}, {*output, POLLIN, 0}, {*errors, POLLIN, 0}};
        if (poll(ends, 3, -1) < 0 && errno != EINTR) return;
        if (ends[0].revents && !give(*input, child, &given)) close_end(input);
        if (ends[1].revents && !take(*output, &out->out, &out->out_lost)) close_end(output);
        if (ends[2].revents && !take(*errors, &out->errors, &out->errors_lost)) close_end(errors);
    }
}

static int wait_for(pid_t process) {
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Status child_run(const Child *child, ChildResult *out) {
    *out = (ChildResult){0};
    Pipe pipes[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    Status status = STATUS_OK;
    for (int i = 0; i < 3 && status == STATUS_OK; i++) status = pipe_open(&pipes[i]);
    pid_t process;
    if (status == STATUS_OK) status = start(child, pipes, &process);
    if (status == STATUS_OK) {
        // A child that ends without reading its input is not our end.
        void (*before)(int) = signal(SIGPIPE, SIG_IGN);
        close_end(&pipes[STDIN_FILENO].read);
        close_end(&pipes[STDOUT_FILENO].write);
        close_end(&pipes[STDERR_FILENO].write);
        serve(child, pipes, out);
        close_end(&pipes[STDIN_FILENO].write);
        out->status = wait_for(process);
        signal(SIGPIPE, before);
    }
    for (int i = 0; i < 3; i++) pipe_close(&pipes[i]);
    return status;
}

void child_result_free(ChildResult *result) {
    text_free(&result->out);
    text_free(&result->errors);
}
