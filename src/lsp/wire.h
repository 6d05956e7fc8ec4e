// The framing of messages: headers, an empty line, and a body of Content-Length bytes.
#ifndef LSP_WIRE_H
#define LSP_WIRE_H

#include "base/text.h"

typedef struct Wire {
    Text bytes; // what has come in and was not taken yet
    size_t taken;
} Wire;

void wire_feed(Wire *wire, const char *bytes, size_t length);
// The next whole body, borrowed until the next call; NULL when more bytes are needed. Headers
// without a usable length are dropped, and reading goes on behind them.
const char *wire_next(Wire *wire, size_t *length);
void wire_free(Wire *wire);
void wire_write(Text *out, const char *body, size_t length);

#endif
