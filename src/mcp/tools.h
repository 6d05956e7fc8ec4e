// What the server can do, a row each.
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include <jansson.h>

#include "mcp/mcp.h"

// The array of tools/list.
json_t *tools_list(void);
// The result of tools/call. NULL when there is no such tool or its arguments do not fit, with the
// words recorded by fail(); what goes wrong inside a tool is a result that says so.
json_t *tools_call(const McpLimits *limits, const char *name, const json_t *arguments);

#endif
