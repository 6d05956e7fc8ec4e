// Standard output and terminals: what could not be written is not forgotten; how wide a line may
// be.
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "base/status.h"

// Writes out what was printed, as before something goes to standard error. Remembers why it could
// not.
void output_flush(void);
// The same at the end of the program. STATUS_IO when anything was ever lost.
Status output_finish(void) MUST_USE;
// The columns of the terminal behind a descriptor; 0 when it is none.
int output_columns(int descriptor);

#endif
