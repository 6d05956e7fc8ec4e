// The files of a program at run time.
#ifndef EVAL_MODULES_H
#define EVAL_MODULES_H

#include "eval/code.h"

// Lowers a checked program with everything it imports.
ModuleState *modules_lower(Interp *interp, Program *program);
// Runs the statements of a file's top level, once. The value of the last one.
Value module_run(Interp *interp, ModuleState *module);
// The code of a section (main, test, bench) of a lowered file.
const FunctionCode *module_section(Interp *interp, const ModuleState *module, const Node *section);
// Clears a file's variables in reverse order.
void module_clear(Interp *interp, ModuleState *module);
// The same for every file from the one numbered `first` on, the last first.
void modules_clear(Interp *interp, size_t first);
void modules_free(Interp *interp, size_t first); // forgets them

#endif
