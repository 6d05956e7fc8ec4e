// HTTP 1.1 as a server: requests arrive whole, answers go whole or piece by piece. Everything
// happens in the thread that calls http_wait; nothing blocks on a slow client.
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

typedef struct HttpServer HttpServer;
typedef struct HttpExchange HttpExchange; // a request and its answer

typedef struct HttpOptions {
    const char *host; // an address, "127.0.0.1" or "::1"
    int port;         // 0: any that is free
    size_t body_limit;
    // A request is there; it is answered now or later.
    void (*arrived)(void *context, HttpExchange *exchange);
    // An exchange is over and goes away: answered, or left by its client.
    void (*gone)(void *context, HttpExchange *exchange);
    void *context;
} HttpOptions;

// STATUS_DEVICE without the library; STATUS_IO when the address cannot be had; STATUS_VALUE for one
// that is not an address.
Status http_start(const HttpOptions *options, HttpServer **out) MUST_USE;
void http_stop(HttpServer *server); // clients that wait get nothing more
int http_port(const HttpServer *server);
// Looks after all connections, for at most so long when there is nothing to do.
void http_wait(HttpServer *server, int milliseconds);

const char *http_method(const HttpExchange *exchange); // borrowed, as all of these
const char *http_path(const HttpExchange *exchange);
const Text *http_body(const HttpExchange *exchange);
bool http_body_is_too_large(const HttpExchange *exchange);
const char *http_header(const HttpExchange *exchange, const char *name); // NULL: none
void *http_data(const HttpExchange *exchange); // what was set, NULL at first
void http_set_data(HttpExchange *exchange, void *data);
// Whether the client has closed its side; asked for those that wait for an answer.
bool http_is_left(const HttpExchange *exchange);

// The whole answer.
void http_answer(HttpExchange *exchange, int status, const char *type, const Text *body);
// An answer in pieces: begin, any number of pieces, end.
void http_begin(HttpExchange *exchange, const char *type);
void http_send(HttpExchange *exchange, const Text *piece);
void http_end(HttpExchange *exchange);

#endif
