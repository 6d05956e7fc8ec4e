// Fuzzes the mcp server: lines as a client might send them, in two parts. The program that its
// tools would start does not exist.
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    const McpLimits limits = {
        .program = "/dev/null/none", .folder = "/", .time_limit = "1s", .host_limit = "1MB"};
    Mcp *mcp = mcp_new(&limits);
    Text out = {0};
    mcp_feed(mcp, (const char *)bytes, length / 2, &out);
    mcp_feed(mcp, (const char *)bytes + length / 2, length - length / 2, &out);
    // Whatever comes in, what goes out is whole lines.
    if (out.length > 0 && (out.bytes[out.length - 1] != '\n' || out.bytes[0] != '{')) abort();
    text_free(&out);
    mcp_free(mcp);
    return 0;
}
