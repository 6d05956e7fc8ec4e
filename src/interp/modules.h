// The files of a program at run time.
#ifndef INTERP_MODULES_H
#define INTERP_MODULES_H

#include "interp/code.h"

// Lowers a checked program with everything it imports.
ModuleState *modules_lower(Interp *interp, Program *program);
// Runs the statements of a file's top level, once.
Value module_run(Interp *interp, ModuleState *module);
// The code of a section (main, test, bench) of a lowered file.
const FunctionCode *module_section(Interp *interp, const ModuleState *module, const Node *section);
// Clears the variables of every file in reverse order.
void modules_clear(Interp *interp);
void modules_free(Interp *interp);

#endif
