// tl run, and what a plain file name means.
#include "main/command.h"

int command_run(const Command *command, int count, char **arguments) {
    CommandLine line = {0};
    command_line_read(&line, command, count, arguments);
    if (program_begin(&line) != STATUS_OK) return report_current_error();
    if (foretell_refuses(&line)) return EXIT_FAILED;
    Program *program = program_load(line.file, line.code);
    if (!program) return EXIT_FAILED;
    Tally tally = {0};
    int status = program_run(&line, program, &tally);
    if (line.mode != RUN_PROGRAM && status == EXIT_SUCCESS_STATUS) status = tally_show(&tally);
    return program_end(status);
}
