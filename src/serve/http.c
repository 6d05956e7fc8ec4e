#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/library.h"
#include "base/memory.h"

// clang-format off
#define HTTP_FUNCTIONS(F) \
    F(MHD_, start_daemon) F(MHD_, stop_daemon) F(MHD_, run_wait) F(MHD_, get_daemon_info) \
    F(MHD_, get_connection_info) F(MHD_, lookup_connection_value) F(MHD_, queue_response) \
    F(MHD_, suspend_connection) F(MHD_, resume_connection) F(MHD_, add_response_header) \
    F(MHD_, create_response_from_buffer) F(MHD_, create_response_from_callback) \
    F(MHD_, destroy_response)
// clang-format on
LIBRARY(http_library, HTTP_FUNCTIONS, .file = "libmicrohttpd.so.12", .purpose = "servers",
        .package = "libmicrohttpd12");

// Connections at once, and seconds without a byte after which one is closed.
enum { CONNECTIONS_MAX = 512, IDLE_SECONDS = 60, PIECE_BYTES = 16384 };

struct HttpServer {
    struct MHD_Daemon *daemon;
    HttpOptions options;
    HttpExchange *exchanges;
};

struct HttpExchange {
    HttpServer *server;
    struct MHD_Connection *connection;
    char *method, *path;
    Text body, out; // what came; what waits to be sent
    size_t sent;    // bytes of `out`
    void *data;
    struct MHD_Response *response; // NULL: not answered yet
    int status;
    bool too_large, arrived, suspended, ended;
    HttpExchange *prev, *next;
};

// --- an exchange

static HttpExchange *exchange_new(HttpServer *server, struct MHD_Connection *connection,
                                  const char *method, const char *path) {
    HttpExchange *exchange = memory_allocate_zeroed(1, sizeof *exchange);
    *exchange = (HttpExchange){.server = server,
                               .connection = connection,
                               .method = memory_copy_string(method, strlen(method)),
                               .path = memory_copy_string(path, strlen(path))};
    DL_APPEND(server->exchanges, exchange);
    return exchange;
}

static void exchange_free(HttpExchange *exchange) {
    DL_DELETE(exchange->server->exchanges, exchange);
    if (exchange->response) http_library.destroy_response(exchange->response);
    text_free(&exchange->body);
    text_free(&exchange->out);
    free(exchange->method);
    free(exchange->path);
    free(exchange);
}

static void take_body(HttpExchange *exchange, const char *bytes, size_t length) {
    size_t limit = exchange->server->options.body_limit;
    if (length > limit - exchange->body.length) exchange->too_large = true;
    if (!exchange->too_large) text_append(&exchange->body, bytes, length);
}

static void wake(HttpExchange *exchange) {
    if (!exchange->suspended) return;
    exchange->suspended = false;
    http_library.resume_connection(exchange->connection);
}

static void sleep_until_woken(HttpExchange *exchange) {
    exchange->suspended = true;
    http_library.suspend_connection(exchange->connection);
}

// --- what the library calls

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *length, void **state) {
    (void)version;
    HttpServer *server = context;
    HttpExchange *exchange = *state;
    if (!exchange) {
        *state = exchange_new(server, connection, method, path);
        return MHD_YES;
    }
    if (*length > 0) {
        take_body(exchange, bytes, *length);
        *length = 0;
        return MHD_YES;
    }
    if (!exchange->arrived) {
        exchange->arrived = true;
        server->options.arrived(server->options.context, exchange);
    }
    if (!exchange->response) {
        sleep_until_woken(exchange);
        return MHD_YES;
    }

    return http_library.queue_response(connection, (unsigned)exchange->status, exchange->response);
}

static void on_end(void *context, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code) {
    (void)connection;
    (void)code;
    HttpServer *server = context;
    HttpExchange *exchange = *state;
    if (!exchange) return;
    if (exchange->arrived) server->options.gone(server->options.context, exchange);
    exchange_free(exchange);
    *state = NULL;
}

// The next bytes of an answer in pieces.
static ssize_t on_piece(void *context, uint64_t position, char *buffer, size_t room) {
    (void)position;
    HttpExchange *exchange = context;
    size_t left = exchange->out.length - exchange->sent;
    if (left == 0 && exchange->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0) {
        text_clear(&exchange->out);
        exchange->sent = 0;
        sleep_until_woken(exchange);
        return 0;
    }
    size_t count = left < room ? left : room;
    memcpy(buffer, text_get(&exchange->out) + exchange->sent, count);
    exchange->sent += count;
    return (ssize_t)count;
}

// --- the server

typedef union Address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} Address;

static bool read_address(const char *host, int port, Address *out) {
    memset(out, 0, sizeof *out);
    uint16_t network_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &out->four.sin_addr) == 1) {
        out->four.sin_family = AF_INET;
        out->four.sin_port = network_port;
        return true;
    }
    if (inet_pton(AF_INET6, host, &out->six.sin6_addr) != 1) return false;
    out->six.sin6_family = AF_INET6;
    out->six.sin6_port = network_port;
    return true;
}

static void ignore_message(void *context, const char *format, va_list arguments) {
    (void)context;
    (void)format;
    (void)arguments;
}

Status http_start(const HttpOptions *options, HttpServer **out) {
    Address address;
    if (!read_address(options->host, options->port, &address))
        return fail(STATUS_VALUE, "\"%s\" is not an address, like 127.0.0.1 or ::1", options->host);
    TRY(library_load(&library));
    HttpServer *server = memory_allocate_zeroed(1, sizeof *server);
    server->options = *options;
    unsigned flags =
        MHD_ALLOW_SUSPEND_RESUME | (address.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    errno = 0;
    server->daemon = http_library.start_daemon(
        flags, (uint16_t)options->port, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER,
        ignore_message, NULL, MHD_OPTION_SOCK_ADDR, &address.any, MHD_OPTION_NOTIFY_COMPLETED,
        on_end, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (server->daemon) {
        *out = server;
        return STATUS_OK;
    }
    int reason = errno;
    free(server);
    return fail(STATUS_IO, "cannot listen on %s port %d: %s", options->host, options->port,
                strerror(reason ? reason : EADDRINUSE));
}

// The library wants nobody asleep when it ends.
void http_stop(HttpServer *server) {
    HttpExchange *exchange;
    DL_FOREACH(server->exchanges, exchange) wake(exchange);
    http_library.stop_daemon(server->daemon);
    free(server);
}

int http_port(const HttpServer *server) {
    const union MHD_DaemonInfo *info =
        http_library.get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void http_wait(HttpServer *server, int milliseconds) {
    (void)http_library.run_wait(server->daemon, milliseconds);
}

// --- requests

const char *http_method(const HttpExchange *exchange) {
    return exchange->method;
}

const char *http_path(const HttpExchange *exchange) {
    return exchange->path;
}

const Text *http_body(const HttpExchange *exchange) {
    return &exchange->body;
}

bool http_body_is_too_large(const HttpExchange *exchange) {
    return exchange->too_large;
}

const char *http_header(const HttpExchange *exchange, const char *name) {
    return http_library.lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

void *http_data(const HttpExchange *exchange) {
    return exchange->data;
}

void http_set_data(HttpExchange *exchange, void *data) {
    exchange->data = data;
}

// Nobody looks at the socket of a connection that is asleep.
bool http_is_left(const HttpExchange *exchange) {
    char byte;
    const union MHD_ConnectionInfo *info =
        http_library.get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info || !exchange->suspended) return false;
    ssize_t got = recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// --- answers

static void give(HttpExchange *exchange, int status, const char *type,
                 struct MHD_Response *response) {
    exchange->status = status;
    exchange->response = response;
    (void)http_library.add_response_header(response, "Content-Type", type);
    (void)http_library.add_response_header(response, "Cache-Control", "no-store");
    if (status == 401)
        (void)http_library.add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == 503) (void)http_library.add_response_header(response, "Retry-After", "1");
    wake(exchange);
}

void http_answer(HttpExchange *exchange, int status, const char *type, const Text *body) {
    give(exchange, status, type,
         http_library.create_response_from_buffer(body->length, (void *)(uintptr_t)text_get(body),
                                                  MHD_RESPMEM_MUST_COPY));
}

void http_begin(HttpExchange *exchange, const char *type) {
    give(exchange, 200, type,
         http_library.create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, on_piece,
                                                    exchange, NULL));
}

void http_send(HttpExchange *exchange, const Text *piece) {
    text_append(&exchange->out, text_get(piece), piece->length);
    wake(exchange);
}

void http_end(HttpExchange *exchange) {
    exchange->ended = true;
    wake(exchange);
}
