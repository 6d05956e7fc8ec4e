// Where a run writes: what could not be written is not forgotten; how wide a line may be.
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

typedef struct Output Output; // of a runtime
Output *output_new(void);     // to the streams of the process
void output_free(Output *output);

// What print writes to, and what messages go to: others from here on, which are borrowed, or (NULL)
// those of the process again.
FILE *output_stream(void);
FILE *output_errors(void);
void output_redirect(FILE *stream, FILE *errors);
// Writes out what was printed, as before something goes to the errors. Remembers why it could not.
void output_flush(void);
// The same when the line is still open, for somebody who reads along: not into a file.
void output_flush_open(void);
// The same as output_flush at the end of the program. STATUS_IO when anything was ever lost.
Status output_finish(void) MUST_USE;
// Who shows pictures, as a notebook does: `show` is given the <svg> element of each. NULL: nobody.
typedef void (*PictureShow)(void *context, const char *svg, size_t length);
void output_show_pictures(PictureShow show, void *context);
bool output_shows_pictures(void);
void output_picture(const char *svg, size_t length); // where somebody shows them
// What a program printed last: whether its line is still open, as after print("a", end: "").
void output_note(const char *bytes, size_t length);
bool output_line_is_open(void);
// Whether the stream is a terminal, and its columns; 0 when it is none.
bool output_is_terminal(FILE *stream);
int output_columns(FILE *stream);

#endif
