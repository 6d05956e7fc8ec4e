// What a client lets the model call: the fields tools, tool_choice and parallel_tool_calls.
#ifndef SERVE_TOOLS_H
#define SERVE_TOOLS_H

#include <jansson.h>

#include "base/status.h"

typedef enum ToolChoice { TOOLS_AUTO, TOOLS_NONE, TOOLS_REQUIRED } ToolChoice;

// Borrowed from the JSON of the request.
typedef struct ToolUse {
    const json_t *tools; // functions, each checked; NULL: none were given
    ToolChoice choice;
    bool chosen;      // the request has tool_choice
    const char *only; // the function that must be called; NULL: any
    bool one;         // not several calls in an answer
} ToolUse;

// Each reads one field; STATUS_VALUE says what it must be.
Status tools_read(const json_t *value, ToolUse *out) MUST_USE;
Status tools_read_choice(const json_t *value, ToolUse *out) MUST_USE;
// After all fields: what they need of each other. *field is then the one that is wrong.
Status tools_check(const ToolUse *use, const char **field) MUST_USE;

// Whether the model may call anything.
bool tools_usable(const ToolUse *use);
// The function of that name; NULL when there is none.
const json_t *tools_find(const json_t *tools, const char *name);

#endif
