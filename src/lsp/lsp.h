// The language server: bytes of the Language Server Protocol in, bytes out. Knows no file
// descriptors, so that tests and fuzzers can feed it from memory.
#ifndef LSP_LSP_H
#define LSP_LSP_H

#include "base/text.h"

typedef struct Server Server;

Server *server_new(void);
void server_free(Server *server);
// Takes bytes as they come in, whole messages or parts; appends what is to be sent. False when the
// client has asked the server to end.
bool server_feed(Server *server, const char *bytes, size_t length, Text *out);
// 0 when the client had said shutdown before, 1 otherwise.
int server_exit_status(const Server *server);

#endif
