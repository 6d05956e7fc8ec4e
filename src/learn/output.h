// Where print and its like write.
#ifndef LEARN_OUTPUT_H
#define LEARN_OUTPUT_H

#include <stdio.h>

#include "base/text.h"

// Writes to standard output or error, in order with what else goes there; a line that shows the
// progress of training is cleared first. STATUS_IO.
Status output_write(FILE *stream, const Text *text) MUST_USE;

#endif
