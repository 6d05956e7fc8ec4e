// A program in a process of its own: its input, its output, its end.
#ifndef MCP_CHILD_H
#define MCP_CHILD_H

#include "base/text.h"

typedef struct Child {
    const char *const *words; // the program's path and its arguments; ends in NULL
    const char *folder;       // where it runs
    const char *input;        // its standard input
    size_t input_length;
} Child;

typedef struct ChildResult {
    Text out, errors;             // what it wrote, at most CHILD_OUTPUT_MAX bytes of each
    size_t out_lost, errors_lost; // bytes behind those
    int status;                   // exit status; 128 + N after signal N
} ChildResult;

enum { CHILD_OUTPUT_MAX = 256 * 1024 };

// Runs it to its end. STATUS_IO when it cannot be started. Free the result in every case.
Status child_run(const Child *child, ChildResult *out) MUST_USE;
void child_result_free(ChildResult *result);

#endif
