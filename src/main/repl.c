// tl repl, and plain tl on a terminal.
#include "repl/repl.h"

#include <fcntl.h>
#include <unistd.h>

#include "main/command.h"
#include "ranks/ranks.h"

// What all ranks would show the first one shows.
static void be_silent(void) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
}

int command_repl(const Command *command, int count, char **arguments) {
    CommandLine line = {0};
    for (int index = 0; index < count;)
        if (!option_read(&line, arguments, count, &index))
            return word_refuse(command, arguments[index]);
    if (line.mode != RUN_PROGRAM || line.json || line.filter || line.limits.host_bytes ||
        line.limits.disk_bytes || line.limits.seconds > 0)
        return usage_error(command, "the REPL takes --device, --memory-check, --memory-limit, "
                                    "--sandbox, --seed, --quiet and --verbose");
    if (program_begin(&line) != STATUS_OK) return report_current_error();
    if (ranks_own() != 0) be_silent();
    Interp *interp = interp_new(runtime_current, &line.interp);
    int ended_by = repl_run(interp), status = EXIT_SUCCESS_STATUS;
    (void)interp_exit_requested(interp, &status);
    status = interp_free(interp, status);
    if (ended_by) status = EXIT_SIGNAL + ended_by;
    return program_end(status);
}
