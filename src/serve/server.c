#include "serve/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/buffer.h"
#include "device/statistics.h"
#include "generate/follow.h"
#include "ranks/ranks.h"
#include "serve/embed.h"
#include "serve/jobs.h"
#include "serve/kept.h"
#include "serve/page.h"

enum { WAIT_MILLISECONDS = 250 }; // how soon an interrupt is noticed while nobody asks

typedef struct Route {
    const char *method, *path;
    bool is_open; // without a key
    void (*answer)(Server *server, HttpExchange *exchange);
} Route;

// --- answers that cost nothing

static void show_page(Server *server, HttpExchange *exchange) {
    (void)server;
    SCOPED_TEXT(page);
    text_append(&page, (const char *)serve_page, serve_page_length);
    http_answer(exchange, 200, "text/html; charset=utf-8", &page);
}

static void show_health(Server *server, HttpExchange *exchange) {
    Device *device = device_default_opened();
    PoolStatistics memory = device ? pool_statistics(device) : (PoolStatistics){0};
    size_t waiting = jobs_waiting(server), batch = server->options->batch;
    answer_json(exchange, 200,
                json_pack("{s:s, s:s, s:I, s:I, s:I, s:{s:s, s:I, s:I, s:I, s:I}}", "status", "ok",
                          "model", server->networks[0].name, "requests", (json_int_t)server->number,
                          "active", (json_int_t)(waiting < batch ? waiting : batch), "waiting",
                          (json_int_t)(waiting < batch ? 0 : waiting - batch), "memory", "device",
                          device ? device->name : "none", "live_bytes",
                          (json_int_t)memory.live_bytes, "peak_bytes",
                          (json_int_t)memory.peak_bytes, "mapped_bytes",
                          (json_int_t)memory.mapped_bytes, "repacked_bytes",
                          (json_int_t)memory.repacked_bytes));
}

static void show_models(Server *server, HttpExchange *exchange) {
    json_t *models = json_array();
    for (size_t i = 0; i < server->network_count; i++)
        json_array_append_new(models,
                              json_pack("{s:s, s:s, s:i, s:s}", "id", server->networks[i].name,
                                        "object", "model", "created", 0, "owned_by", "tl"));
    answer_json(exchange, 200, json_pack("{s:s, s:o}", "object", "list", "data", models));
}

// --- requests with a body

// The network of that name, the first where there is no name, or NULL.
static ServedNetwork *find_network(const Server *server, const char *name) {
    for (size_t i = 0; i < server->network_count; i++)
        if (!name || strcmp(name, server->networks[i].name) == 0) return &server->networks[i];
    return NULL;
}

static void answer_no_model(const Server *server, HttpExchange *exchange, const char *name) {
    SCOPED_TEXT(message);
    text_format(&message, "there is no model \"%.80s\" here, only", name);
    for (size_t i = 0; i < server->network_count; i++)
        text_format(&message, "%s \"%s\"", i > 0 ? "," : "", server->networks[i].name);
    answer_error(exchange, 404, text_get(&message), "model", "model_not_found");
}

static void take_request(Server *server, HttpExchange *exchange, const json_t *json,
                         RequestKind kind) {
    ServeRequest request;
    const char *field;
    if (request_read(json, kind, &request, &field) != STATUS_OK) {
        answer_failure(exchange, field);
        return;
    }
    ServedNetwork *network = find_network(server, request.model);
    if (!network)
        answer_no_model(server, exchange, request.model);
    else if (kind == REQUEST_EMBEDDING)
        embed_answer(network, exchange, &request);
    else if (network_need_logits(network->network) != STATUS_OK)
        answer_failure(exchange, NULL);
    else
        job_begin(server, network, exchange, &request);
}

static void take_body(Server *server, HttpExchange *exchange, RequestKind kind) {
    json_error_t error;
    const Text *body = http_body(exchange);
    json_t *json = json_loadb(text_get(body), body->length, JSON_REJECT_DUPLICATES, &error);
    if (!json) {
        SCOPED_TEXT(message);
        text_format(&message, "the body is not JSON: %s", error.text);
        answer_error(exchange, 400, text_get(&message), NULL, NULL);
        return;
    }
    take_request(server, exchange, json, kind);
    json_decref(json);
}

static void take_chat(Server *server, HttpExchange *exchange) {
    take_body(server, exchange, REQUEST_CHAT);
}

static void take_completion(Server *server, HttpExchange *exchange) {
    take_body(server, exchange, REQUEST_COMPLETION);
}

static void take_embedding(Server *server, HttpExchange *exchange) {
    take_body(server, exchange, REQUEST_EMBEDDING);
}

// --- routes

static const Route routes[] = {
    {"GET", "/", true, show_page},
    {"GET", "/health", true, show_health},
    {"GET", "/v1/models", false, show_models},
    {"POST", "/v1/chat/completions", false, take_chat},
    {"POST", "/v1/completions", false, take_completion},
    {"POST", "/v1/embeddings", false, take_embedding},
};

// Takes as long whatever the key is.
static bool has_key(const Server *server, const HttpExchange *exchange) {
    static const char scheme[] = "Bearer ";
    const char *key = server->options->key, *given = http_header(exchange, "Authorization");
    if (!key) return true;
    if (!given || strncmp(given, scheme, sizeof scheme - 1) != 0) return false;
    given += sizeof scheme - 1;
    size_t length = strlen(key), count = strlen(given);
    unsigned difference = count != length;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned)(key[i] ^ given[count ? i % count : 0]);
    return difference == 0;
}

static void answer_no_route(HttpExchange *exchange, bool path_is_known) {
    SCOPED_TEXT(message);
    text_format(&message, path_is_known ? "%s is not a method of %.200s" : "there is no %s %.200s",
                http_method(exchange), http_path(exchange));
    answer_error(exchange, path_is_known ? 405 : 404, text_get(&message), NULL, NULL);
}

static void arrived(void *context, HttpExchange *exchange) {
    Server *server = context;
    bool path_is_known = false;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const Route *route = &routes[i];
        if (strcmp(http_path(exchange), route->path) != 0) continue;
        path_is_known = true;
        if (strcmp(http_method(exchange), route->method) != 0) continue;
        if (!route->is_open && !has_key(server, exchange))
            answer_error(exchange, 401, "the key is missing or wrong", NULL, "invalid_api_key");
        else if (http_body_is_too_large(exchange))
            answer_error(exchange, 413, "the request is too large", NULL, NULL);
        else
            route->answer(server, exchange);
        return;
    }
    answer_no_route(exchange, path_is_known);
}

static void gone(void *context, HttpExchange *exchange) {
    Job *job = http_data(exchange);
    if (job) job_free(context, job);
}

// --- the loop

static Status serve(Server *server) {
    if (server->options->ready)
        TRY(server->options->ready(server->options->context, http_port(server->http)));
    while (!interp_interrupts()) {
        http_wait(server->http, server->jobs ? 0 : WAIT_MILLISECONDS);
        if (server->jobs) jobs_step(server);
        TRY(memory_exhausted());
    }
    (void)interp_fail_interrupted((Span){0, 0});
    return STATUS_INTERRUPT;
}

static Status serve_networks(Server *server) {
    const ServeOptions *options = server->options;
    HttpOptions http = {.host = options->host,
                        .port = options->port,
                        .body_limit = options->body_limit,
                        .arrived = arrived,
                        .gone = gone,
                        .context = server};
    TRY(http_start(&http, &server->http));
    Status status = serve(server);
    http_stop(server->http);
    while (server->jobs) job_free(server, server->jobs);
    return status;
}

// The first rank talks; the others make its steps.
static Status serve_on_ranks(Server *server) {
    size_t count = server->network_count;
    SCOPED_MEMORY Network **networks = memory_allocate(count * sizeof *networks);
    for (size_t i = 0; i < count; i++) {
        networks[i] = server->networks[i].network;
        networks[i]->led = ranks_own() == 0 ? (int64_t)i + 1 : 0;
    }
    Status status = ranks_own() == 0 ? serve_networks(server) : networks_follow(networks);
    for (size_t i = 0; i < count; i++) networks[i]->led = 0;
    return status;
}

Status serve_models(Interp *interp, const ServedModel *models, size_t count,
                    const ServeOptions *options) {
    ASSERT(count > 0);
    Server server = {.options = options, .interp = interp};
    server.networks = memory_allocate_zeroed(count, sizeof *server.networks);
    Status status = STATUS_OK;
    while (server.network_count < count && status == STATUS_OK) {
        ServedNetwork *next = &server.networks[server.network_count];
        next->name = models[server.network_count].name;
        status = network_open(interp, models[server.network_count].model, &next->network);
        if (status == STATUS_OK) server.network_count++;
    }
    if (status == STATUS_OK)
        status = ranks_count() > 1 ? serve_on_ranks(&server) : serve_networks(&server);
    for (size_t i = 0; i < server.network_count; i++) {
        kept_clear(&server.networks[i]);
        network_release(server.networks[i].network);
    }
    free(server.networks);
    return status;
}
