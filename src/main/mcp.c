// tl mcp: a server for tools that write tl, on standard input and output.
#define _GNU_SOURCE // nftw
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/runtime.h"
#include "main/command.h"
#include "mcp/mcp.h"

typedef struct Serving {
    McpLimits limits;
    Runtime *runtime;
    int status;
} Serving;

// A client that has gone ends the server in order: its folder is removed.
static Status send_answers(const Text *out) {
    for (size_t sent = 0; sent < out->length;) {
        ssize_t length = write(STDOUT_FILENO, text_get(out) + sent, out->length - sent);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return fail(STATUS_IO, "nobody reads the answers: %s", strerror(errno));
        sent += (size_t)length;
    }
    return STATUS_OK;
}

static Status serve(const McpLimits *limits) {
    if (chdir(limits->folder) != 0)
        return fail(STATUS_IO, "--sandbox: %s: %s", limits->folder, strerror(errno));
    TRY(limits_confine(&(Limits){.sandbox = limits->folder}, NULL, 0));
    Mcp *mcp = mcp_new(limits);
    SCOPED_TEXT(out);
    char chunk[65536];
    Status status = STATUS_OK;
    while (status == STATUS_OK) {
        ssize_t length = read(STDIN_FILENO, chunk, sizeof chunk);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) break;
        mcp_feed(mcp, chunk, (size_t)length, &out);
        status = send_answers(&out);
        text_clear(&out);
    }
    mcp_free(mcp);
    return status;
}

// On a thread of its own: it alone is confined to the folder, and main can remove that.
static void *run_server(void *argument) {
    Serving *serving = argument;
    runtime_enter(serving->runtime);
    serving->status =
        serve(&serving->limits) == STATUS_OK ? EXIT_SUCCESS_STATUS : report_current_error();
    return NULL;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *at) {
    (void)about, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(const char *folder) {
    enum { OPEN_FOLDERS_MAX = 16 };
    nftw(folder, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}

static Status own_path(char *out, size_t size) {
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length < 0) return fail(STATUS_IO, "cannot find this program: %s", strerror(errno));
    out[length] = '\0';
    return STATUS_OK;
}

// In `folder`, or in one that is made for the life of the server.
static int serve_in(McpLimits limits, const char *folder) {
    char made[] = "/tmp/tl-mcp-XXXXXX", whole[PATH_MAX];
    if (!folder && !mkdtemp(made)) {
        fail(STATUS_IO, "cannot make a folder in /tmp: %s", strerror(errno));
        return report_current_error();
    }
    if (!realpath(folder ? folder : made, whole)) {
        fail(STATUS_IO, "--sandbox: %s: %s", folder, strerror(errno));
        return report_current_error();
    }
    limits.folder = whole;
    Serving serving = {.limits = limits, .runtime = runtime_current};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_server, &serving) == 0) {
        pthread_join(thread, NULL);
    } else {
        fail(STATUS_IO, "the system refused a thread");
        serving.status = report_current_error();
    }
    if (!folder) remove_folder(made);
    return serving.status;
}

static bool takes(const Command *command, const char *word) {
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < option_help_count; i++)
        if (strlen(option_help[i].name) == length &&
            strncmp(option_help[i].name, word, length) == 0)
            return option_is_of(&option_help[i], command);
    return false;
}

int command_mcp(const Command *command, int count, char **arguments) {
    McpLimits limits = {.time_limit = "10s", .host_limit = "1GB", .disk_limit = "1GB"};
    CommandLine line = {0};
    for (int index = 0; index < count;) {
        int at = index;
        if (!takes(command, arguments[at]) || !option_read(&line, arguments, count, &index))
            return word_refuse(command, arguments[index]);
        // The option was checked; its words go on to the programs as they are.
        const char *value = strchr(arguments[at], '=');
        value = value ? value + 1 : arguments[index - 1];
        if (strncmp(arguments[at], "--time-limit", 12) == 0) limits.time_limit = value;
        if (strncmp(arguments[at], "--host-limit", 12) == 0) limits.host_limit = value;
        if (strncmp(arguments[at], "--disk-limit", 12) == 0) limits.disk_limit = value;
    }
    char program[PATH_MAX];
    if (own_path(program, sizeof program) != STATUS_OK) return report_current_error();
    limits.program = program;
    signal(SIGPIPE, SIG_IGN);
    return serve_in(limits, line.limits.sandbox);
}
