// What a process has resident that runs a program, found by running it.
#ifndef MAIN_REHEARSE_H
#define MAIN_REHEARSE_H

#include "main/command.h"

// Of the process that has run the program of `line` (-e), before it gives anything back; the median
// of some. 0 where the program fails.
uint64_t rehearse(const CommandLine *line);

#endif
