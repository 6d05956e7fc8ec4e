// Fuzzes the server of models, as clients meet it: one serves in a thread of its own. An input that
// begins with `/` is a path, the end of a line and a body, and is sent as a request; any other is
// sent as it is. Whatever comes, the server answers the next one. It needs a model of the fixtures;
// without, nothing is tested.
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "include/tl.h"

enum { PATIENCE_MILLISECONDS = 200, PATIENCE_SECONDS = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
const char *__asan_default_options(void);

// What a program at work holds is known to the collector, which a search for leaks does not see;
// tests/cli/test_serve.py counts what is left when a server ends.
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static int port; // 0: not yet
static char model[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

static void take_port(void *context, int is_error, const char *bytes, size_t length) {
    (void)context;
    if (is_error || length == 0 || bytes[0] < '0' || bytes[0] > '9') return;
    pthread_mutex_lock(&lock);
    port = atoi(bytes);
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&lock);
}

static void *serve(void *context) {
    (void)context;
    tl_runtime *runtime = tl_runtime_new("cpu", NULL);
    tl_on_output(runtime, take_port, NULL);
    tl_value *path = tl_from_string(runtime, model, strlen(model));
    if (tl_set(runtime, "path", path) == TL_OK)
        (void)tl_run_text(runtime, "server",
                          "serve(load_model(path), port: 0, on_ready: fn(port) { print(port) })",
                          NULL);
    fprintf(stderr, "the server ended: %s\n", tl_last_error(runtime)->message);
    abort();
}

static bool start(void) {
    const char *folder = getenv("TL_FIXTURES");
    snprintf(model, sizeof model, "%s/models/stories260K.gguf",
             folder && *folder ? folder : "../shared");
    if (access(model, R_OK) != 0) return false;
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, NULL) != 0) abort();
    pthread_detach(thread);
    pthread_mutex_lock(&lock);
    while (port == 0) pthread_cond_wait(&told, &lock);
    pthread_mutex_unlock(&lock);
    return true;
}

// Sends a text and reads what comes until the server closes, or for so long after the last of it.
static size_t ask(const Text *text, bool whole, struct timeval patience) {
    char answer[4096];
    size_t count = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // The ports of one address are soon used up: connections that were closed keep them.
    static uint32_t asked;
    struct sockaddr_in own = {.sin_family = AF_INET};
    own.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xFF000000) | (asked++ % 0xFFFF + 1));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0 || bind(client, (struct sockaddr *)&own, sizeof own) != 0 ||
        connect(client, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)send(client, text->bytes, text->length, MSG_NOSIGNAL);
    if (!whole) (void)shutdown(client, SHUT_WR);
    for (;;) {
        ssize_t got = recv(client, answer, sizeof answer, 0);
        if (got < 0 && errno == EINTR) continue; // the fuzzer's clock
        if (got <= 0) break;
        count += (size_t)got;
    }
    close(client);
    return count;
}

static void frame(const char *bytes, size_t length, Text *out) {
    const char *newline = memchr(bytes, '\n', length);
    size_t path = newline ? (size_t)(newline - bytes) : length;
    size_t body = newline ? length - path - 1 : 0;
    text_format(out,
                "%s %.*s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                newline ? "POST" : "GET", (int)path, bytes, body);
    text_append(out, bytes + length - body, body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    static const char health[] = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    if (port == 0 && !start()) return 0;
    Text text = {0};
    bool whole = length > 0 && *bytes == '/';
    if (whole)
        frame((const char *)bytes, length, &text);
    else
        text_append(&text, (const char *)bytes, length);
    (void)ask(&text, whole, (struct timeval){.tv_usec = PATIENCE_MILLISECONDS * 1000});
    text_clear(&text);
    text_append(&text, health, sizeof health - 1);
    if (ask(&text, true, (struct timeval){.tv_sec = PATIENCE_SECONDS}) == 0) abort();
    text_free(&text);
    return 0;
}
