// A server of the Model Context Protocol: lines of JSON-RPC 2.0 in, lines out. Source: the
// protocol's revision 2025-06-18 (stdio transport, lifecycle, tools). Knows no file descriptors, so
// that tests and fuzzers can feed it from memory.
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include "base/text.h"

typedef struct Mcp Mcp;

// What the tools may use. Borrowed.
typedef struct McpLimits {
    const char *program;    // the tl to start: an absolute path
    const char *folder;     // where programs run
    const char *time_limit; // of a run, as --time-limit takes it
    const char *host_limit; // as --host-limit takes it
    const char *disk_limit; // as --disk-limit takes it
} McpLimits;

Mcp *mcp_new(const McpLimits *limits);
void mcp_free(Mcp *mcp);
// Takes bytes as they come in, whole lines or parts; appends the lines that are to be sent.
void mcp_feed(Mcp *mcp, const char *bytes, size_t length, Text *out);

#endif
