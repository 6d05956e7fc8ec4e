// The subcommands of the program, one file each, and what they share: options and the way a program
// is loaded, run and brought to its end.
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include <sys/resource.h>

#include "base/diagnostic.h"
#include "base/memory.h"
#include "eval/interp.h"

enum {
    EXIT_SUCCESS_STATUS = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_LEAKED = 3,
    EXIT_SIGNAL = 128
};

typedef enum RunMode { RUN_PROGRAM, RUN_TESTS, RUN_BENCHES } RunMode;

// What a program may use of this process; 0 and NULL: no limit.
typedef struct Limits {
    uint64_t host_bytes; // --host-limit: all memory of the process that is not a mapped file
    uint64_t disk_bytes; // --disk-limit: what it may leave on the disk
    double seconds;      // --time-limit
    const char *sandbox; // --sandbox: the only folder whose files it may touch
} Limits;

// "2", "1.5s", "500ms", "3m". False for anything else.
bool limit_seconds_read(const char *text, double *out);
// Before a program is read: from here on this thread and those it starts touch only files of the
// sandbox, if there is one; the scripts that are run may be read. Errors of sandbox_enter.
Status limits_confine(const Limits *limits, const char *const *scripts, size_t count) MUST_USE;
// On the thread that runs programs, before each of them: memory for the rest of the process's life,
// and the clock anew.
Status limits_apply(const Limits *limits) MUST_USE;
// While a program is foretold before its run, its limit of memory holds, too; what was before.
rlim_t limits_hold(const Limits *limits);
void limits_let_go(rlim_t before);
// The program has ended: it is not interrupted any more. What still runs, drops and the clearing of
// memory, has a few seconds.
void limits_stop_clock(void);
// Says in the current error that it comes from a limit, when it does.
void limits_explain(Status status);

// The options of section "Command line" of the language. Borrowed from argv.
typedef struct CommandLine {
    const char *file;             // "-": standard input; NULL when code is given
    const char *code;             // of -e
    const struct PathList *paths; // of test and bench: the files, one after the other
    RunMode mode;
    bool json;
    bool memory, sure, sums;   // of check; sure: foretell what no number changes, in one pass
    uint64_t memory_limit;     // 0: none is given
    const char *filter;        // of --filter
    bool all_ranks_speak;      // --ranks all: print of every rank is seen
    bool is_command;           // the program is a command's: its places mean nothing to the user
    struct Timeline *timeline; // NULL: the run is not profiled
    Limits limits;
    InterpOptions interp;
} CommandLine;

typedef struct Command {
    const char *name;
    const char *usage;
    const char *summary;
    int (*run)(const struct Command *command, int count,
               char **arguments); // the words after the name
} Command;

extern const Command commands[];
extern const int command_count;
const Command *command_find(const char *name); // NULL when there is none

// An option, and the commands that take it, as words with spaces between.
typedef struct OptionHelp {
    const char *name, *argument, *commands,
        *summary; // argument: "" for none, N an integer, X a number
} OptionHelp;
extern const OptionHelp option_help[];
extern const size_t option_help_count;
bool option_is_of(const OptionHelp *option, const Command *command);
void option_append_head(Text *out, const OptionHelp *option); // "--seed N"
// What `tl COMMAND --help` prints: usage, summary, options. Returns EXIT_SUCCESS_STATUS.
int help_show_command(const Command *command);

int command_run(const Command *command, int count, char **arguments);
int command_profile(const Command *command, int count, char **arguments);
int command_notebook_kernel(const Command *command, int count, char **arguments);
int command_check(const Command *command, int count, char **arguments);
// tl check --memory (foretell.c).
int check_memory(const Command *command, int count, char **arguments);
// Before a run: whether it cannot fit under a memory limit, which is then shown. Without a limit
// the program is foretold when it takes an eighth of its device, and fails then; two seconds at
// most. What that leaves open is foretold next to the run.
bool foretell_refuses(const CommandLine *line);
// What tl check --memory --json says of the line's program, to be freed; NULL where it fails.
char *foretell_in_json(const CommandLine *line);
int command_test(const Command *command, int count, char **arguments);
int command_repl(const Command *command, int count, char **arguments);
int command_format(const Command *command, int count, char **arguments);
int command_lsp(const Command *command, int count, char **arguments);
int command_mcp(const Command *command, int count, char **arguments);
int command_devices(const Command *command, int count, char **arguments);
// A command whose program is std/commands/NAME.tl.
int command_standard(const Command *command, int count, char **arguments);
int command_help(const Command *command, int count, char **arguments);
int command_version(const Command *command, int count, char **arguments);

// What a device can do a second; 0 where it could not be measured, as under a small memory limit.
typedef struct Roof {
    double bytes, flops;
} Roof;
Roof roof_measure(const char *device);

// What `tl help --...` prints for other programs; each file of the repository that is printed so is
// compared by the suite.
void listing_print(void);
void syntax_print_vim(void);
void syntax_print_textmate(void);
void manual_print(void);
void completions_print_bash(void);
void completions_print_zsh(void);

// Reads one option at arguments[*index] and moves past it. False when it is not an option of tl's.
// A malformed option ends the process with EXIT_USAGE.
bool option_read(CommandLine *line, char **arguments, int count, int *index);
// Options, then one file (or -e code), then options, then the script's own words.
void command_line_read(CommandLine *line, const Command *command, int count, char **arguments);
// "error: ..." and the command's usage on standard error; returns EXIT_USAGE.
int usage_error(const Command *command, const char *format, ...) PRINTF_LIKE(2, 3);
// That the command does not take this word, with the option that is meant; returns EXIT_USAGE.
int word_refuse(const Command *command, const char *word);
// The current error, without a place, on standard error; returns EXIT_FAILED.
int report_current_error(void);

typedef struct PathList {
    char **items;
    size_t count, capacity;
} PathList;
// Adds a file, or every .tl file below a folder in the order of their names.
void paths_collect(const char *path, PathList *paths);
void paths_free(PathList *paths);

// Loads, parses and checks; what is wrong is shown on standard error. NULL when the program cannot
// be run.
Program *program_load(const char *file, const char *code);
Program *program_load_standard(const char *path); // a file of std/
// Prints the diagnostics on standard error that are at least this severe.

// How many test or bench blocks have run; a file that cannot be run counts as one that failed.
typedef struct Tally {
    const Interp *interp;
    RunMode mode;
    const char *file; // to be named above its first block; NULL: it was
    int passed, failed;
} Tally;
void sections_run(const CommandLine *line, Interp *interp, Program *program, Tally *tally);
// "N passed, N failed"; returns the exit status that this means.
int tally_show(const Tally *tally);

// The life of a process that runs programs: settings and signals; each program to its end, with
// everything it held released; then the account of the memory. run and end return exit statuses.
// The device whose number is the rank's among those of its machine.
#define LOCAL_RANK_DEVICE "vulkan:local_rank"

// Meets the other ranks when this process is one of several.
Status ranks_program_meet(void) MUST_USE;
// Then the first alone is heard, or all with their numbers.
Status ranks_program_begin(bool all_speak) MUST_USE;
Status program_begin(const CommandLine *line) MUST_USE;
int program_run(const CommandLine *line, Program *program, Tally *tally);
int program_end(int status);

#endif
