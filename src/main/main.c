// tl: finds the subcommand and runs it. Knows nothing of the language.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "catalog/catalog.h"
#include "device/settings.h"
#include "main/command.h"
#include "runtime/runtime.h"

const Command commands[] = {
    {"run", "tl run FILE [arguments...]   (also: tl FILE, tl -, tl -e 'code')", "run a program",
     command_run},
    {"repl", "tl repl   (also: tl on a terminal)", "run line by line", command_repl},
    {"check", "tl check [--json|--sums] FILE...   (also: tl check --memory FILE [arguments...])",
     "find mistakes without running", command_check},
    {"test", "tl test [--filter TEXT] [FILE|FOLDER...]", "run the test blocks", command_test},
    {"bench", "tl bench FILE", "run the bench blocks", command_test},
    {"profile", "tl profile FILE [arguments...]", "run a program and show where time and memory go",
     command_profile},
    {"generate", "tl generate MODEL [PROMPT]", "go on with a text, or with standard input",
     command_standard},
    {"chat", "tl chat MODEL", "talk with a model", command_standard},
    {"serve", "tl serve MODEL", "serve a model over HTTP as the OpenAI API", command_standard},
    {"models", "tl models MODEL", "what a model is, its memory and speed", command_standard},
    {"quantize", "tl quantize IN OUT TYPE", "write a model as GGUF, its matrices in fewer bits",
     command_standard},
    {"fmt", "tl fmt [--check] [FILE|FOLDER...]", "indent and space programs", command_format},
    {"lsp", "tl lsp", "serve an editor over standard input and output", command_lsp},
    {"mcp", "tl mcp", "serve a tool that writes tl, over standard input and output", command_mcp},
    {"notebook-kernel", "tl notebook-kernel install", "tell Jupyter of tl, for notebooks",
     command_notebook_kernel},
    {"devices", "tl devices", "list the devices", command_devices},
    {"help", "tl help [NAME]", "this overview, or the page of a name", command_help},
    {"version", "tl version", "the version and what it was built with", command_version},
};
const int command_count = sizeof commands / sizeof *commands;

const Command *command_find(const char *name) {
    for (int i = 0; i < command_count; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

// A word that is not a file, but nearly a command.
static const char *command_meant(const char *word) {
    const char *names[sizeof commands / sizeof *commands];
    for (int i = 0; i < command_count; i++) names[i] = commands[i].name;
    if (word[0] == '-' || access(word, F_OK) == 0) return NULL;
    return catalog_nearest(word, names, (size_t)command_count);
}

// Only options, or nothing: a program on standard input, or a person there.
static int run_standard_input(int count, char **arguments) {
    if (isatty(STDIN_FILENO)) return command_repl(command_find("repl"), count, arguments);
    SCOPED_MEMORY char **words = memory_allocate(((size_t)count + 1) * sizeof *words);
    for (int i = 0; i < count; i++) words[i] = arguments[i];
    words[count] = (char *)"-";
    return command_run(&commands[0], count + 1, words);
}

// How many words the options in front of all others take.
static int leading_options(int count, char **arguments) {
    CommandLine line = {0};
    int index = 0;
    while (index < count && option_read(&line, arguments, count, &index)) continue;
    return index;
}

// `--help` before any other word than options: behind a file it is the script's.
static bool asks_for_help(int count, char **arguments) {
    for (int i = 0; i < count && arguments[i][0] == '-'; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) return true;
    return false;
}

static int dispatch(int count, char **arguments);

// `tl --device cpu run FILE`: the options go behind the command, which reads them.
static int dispatch_reordered(int options, int count, char **arguments) {
    SCOPED_MEMORY char **words = memory_allocate((size_t)count * sizeof *words);
    words[0] = arguments[options];
    for (int i = 1; i < count; i++) words[i] = arguments[i <= options ? i - 1 : i];
    return dispatch(count, words);
}

static int dispatch(int count, char **arguments) {
    int options = leading_options(count, arguments);
    if (options == count) return run_standard_input(count, arguments);
    if (options > 0 && command_find(arguments[options]))
        return dispatch_reordered(options, count, arguments);
    const char *word = arguments[0];
    if (strcmp(word, "--version") == 0) word = "version";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
    const Command *command = command_find(word);
    if (command && asks_for_help(count - 1, arguments + 1)) return help_show_command(command);
    if (command) return command->run(command, count - 1, arguments + 1);
    const char *meant = command_meant(word);
    if (meant)
        return usage_error(command_find(meant),
                           "there is no file and no command %s; did you mean tl %s?", word, meant);
    return command_run(&commands[0], count, arguments);
}

// Output that was lost, on a full disk say, must not look like success.
static int finish_output(int status) {
    if (output_finish() == STATUS_OK) return status;
    (void)report_current_error();
    return status == EXIT_SUCCESS_STATUS ? EXIT_FAILED : status;
}

int main(int argc, char **argv) {
    // A reader that has gone ends the program without a word, whatever the parent process ignores.
    signal(SIGPIPE, SIG_DFL);
    // A file that has grown to its limit is an error of the call that writes it, as a full disk.
    signal(SIGXFSZ, SIG_IGN);
    Runtime *runtime = runtime_new();
    runtime_enter(runtime);
    bool sound = device_settings_refusals() == STATUS_OK;
    int status = sound ? finish_output(dispatch(argc - 1, argv + 1)) : report_current_error();
    // Memory was refused where no statement followed: reading and checking, or the end itself.
    if (memory_exhausted() != STATUS_OK) {
        (void)report_current_error();
        if (status == EXIT_SUCCESS_STATUS) status = EXIT_FAILED;
    }
    runtime_free(runtime);
    return status;
}
