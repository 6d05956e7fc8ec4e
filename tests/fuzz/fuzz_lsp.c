// Fuzzes the language server. The input is a stream of bytes as a client might send it, except that
// a line that begins with `{` is sent as a message with a header of its own, so that messages get
// through at all. It comes in two parts, split in the middle.
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "lsp/lsp.h"
#include "lsp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void frame_lines(const char *bytes, size_t length, Text *out) {
    for (const char *end = bytes + length; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline + 1 : end;
        if (*bytes == '{')
            wire_write(out, bytes, (size_t)(stop - bytes));
        else
            text_append(out, bytes, (size_t)(stop - bytes));
        bytes = stop;
    }
}

// Whatever comes in, what goes out is well framed.
static void check_output(const Text *out) {
    Wire wire = {0};
    size_t length;
    wire_feed(&wire, text_get(out), out->length);
    for (const char *body; (body = wire_next(&wire, &length)) != NULL;)
        if (length == 0 || body[0] != '{') abort();
    if (wire.taken != out->length) abort();
    wire_free(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Text in = {0}, out = {0};
    frame_lines((const char *)bytes, length, &in);
    Server *server = server_new();
    size_t half = in.length / 2;
    if (server_feed(server, text_get(&in), half, &out))
        server_feed(server, text_get(&in) + half, in.length - half, &out);
    check_output(&out);
    server_free(server);
    source_reset();
    text_free(&in);
    text_free(&out);
    return 0;
}
