// Standard output and terminals: what could not be written is not forgotten; how wide a line may
// be.
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stddef.h>

#include "base/status.h"

// Writes out what was printed, as before something goes to standard error. Remembers why it could
// not.
void output_flush(void);
// The same at the end of the program. STATUS_IO when anything was ever lost.
Status output_finish(void) MUST_USE;
// What a program printed last: whether its line is still open, as after print("a", end: "").
void output_note(const char *bytes, size_t length);
bool output_line_is_open(void);
// The columns of the terminal behind a descriptor; 0 when it is none.
int output_columns(int descriptor);

#endif
