// The interactive session: reads lines from a terminal or a pipe, runs each, shows its value. The
// only folder that knows readline.
#ifndef REPL_REPL_H
#define REPL_REPL_H

#include "eval/interp.h"

// Runs until the input ends, :quit, exit(n) or a signal that ends programs; every variable is
// cleared then. Returns the number of that signal, or 0.
int repl_run(Interp *interp);

#endif
