// tl run, and what a plain file name means.
#include "main/command.h"

int command_run(const Command *command, int count, char **arguments) {
    CommandLine line = {0};
    command_line_read(&line, command, count, arguments);
    Program *program = program_load(line.file, line.code);
    return program ? program_execute(&line, program) : EXIT_FAILED;
}
