// tl: finds the subcommand and runs it. Knows nothing of the language.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "device/settings.h"
#include "main/command.h"

const Command commands[] = {
    {"run", "tl run FILE [arguments...]   (also: tl FILE, tl -, tl -e 'code')", "run a program",
     command_run},
    {"repl", "tl repl   (also: tl on a terminal)", "run line by line", command_repl},
    {"check", "tl check [--json] FILE...", "find mistakes without running", command_check},
    {"test", "tl test [--filter TEXT] [FILE|FOLDER...]", "run the test blocks", command_test},
    {"bench", "tl bench FILE", "run the bench blocks", command_test},
    {"fmt", "tl fmt [--check] [FILE|FOLDER...]", "indent and space programs", command_format},
    {"lsp", "tl lsp", "serve an editor over standard input and output", command_lsp},
    {"devices", "tl devices", "list the devices", command_devices},
    {"help", "tl help [NAME]", "this overview, or the page of a builtin", command_help},
    {"version", "tl version", "the version and what it was built with", command_version},
};
const int command_count = sizeof commands / sizeof *commands;

static const Command *command_find(const char *name) {
    for (int i = 0; i < command_count; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

// A word that is no file, but nearly a command.
static const char *command_meant(const char *word) {
    const char *names[sizeof commands / sizeof *commands];
    for (int i = 0; i < command_count; i++) names[i] = commands[i].name;
    if (word[0] == '-' || access(word, F_OK) == 0) return NULL;
    return catalog_nearest(word, names, (size_t)command_count);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2 && isatty(STDIN_FILENO)) return command_repl(command_find("repl"), 0, NULL);
    if (argc < 2) {
        command_help(NULL, 0, NULL);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) word = "version";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
    const Command *command = command_find(word);
    if (command) return command->run(command, argc - 2, argv + 2);
    const char *meant = command_meant(word);
    if (meant)
        return usage_error(command_find(meant),
                           "there is no file and no command %s; did you mean tl %s?", word, meant);
    return command_run(&commands[0], argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    if (device_settings_refusals() != STATUS_OK) return report_current_error();
    memory_set_alarm(NULL);
    int status = dispatch(argc, argv);
    // Memory was refused where no statement followed: reading and checking, or the end itself.
    if (memory_exhausted() == STATUS_OK) return status;
    (void)report_current_error();
    return status == EXIT_SUCCESS_STATUS ? EXIT_FAILED : status;
}
