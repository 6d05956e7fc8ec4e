#include "serve/jobs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/memory.h"
#include "generate/grammar.h"
#include "generate/json_schema.h"
#include "generate/prompt.h"
#include "serve/kept.h"
#include "value/json.h"

enum { TOKENS_CHAT = 512, TOKENS_COMPLETION = 16 }; // where it is not said how many

// --- what is asked

void answer_failure(HttpExchange *exchange, const char *field) {
    const ErrorRecord *error = error_current();
    bool theirs =
        error->code != STATUS_MEMORY && error->code != STATUS_IO && error->code != STATUS_DEVICE;
    Text message = {0};
    text_append_string(&message, error->message);
    if (*error->help) text_format(&message, " (%s)", error->help);
    answer_error(exchange, theirs ? 400 : 500, text_get(&message), field, NULL);
    text_free(&message);
}

static Status read_ids(const json_t *list, TokenIds *out) {
    out->count = json_array_size(list);
    out->ids = memory_allocate((out->count + 1) * sizeof *out->ids);
    for (size_t i = 0; i < out->count; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id))
            return fail(STATUS_VALUE, "a prompt is a string or a list of token ids");
        out->ids[i] = json_integer_value(id);
    }
    return STATUS_OK;
}

Status server_encode(const Server *server, const json_t *prompt, TokenIds *out) {
    if (json_is_string(prompt))
        return network_encode(server->network, json_string_value(prompt),
                              json_string_length(prompt), true, out);
    if (json_is_array(prompt)) return read_ids(prompt, out);
    return fail(STATUS_VALUE, "a prompt is a string or a list of token ids");
}

bool server_has_many(const json_t *prompt) {
    const json_t *first = json_array_get(prompt, 0);
    return json_is_string(first) || json_is_array(first);
}

// Content in parts, of which each is a text, becomes one text.
static Status join_parts(json_t *message) {
    const json_t *parts = json_object_get(message, "content"), *part;
    size_t i;
    if (!json_is_array(parts)) return STATUS_OK;
    Text text = {0};
    json_array_foreach(parts, i, part) {
        const char *word = json_string_value(json_object_get(part, "text"));
        if (!word) {
            text_free(&text);
            return fail(STATUS_VALUE,
                        "content has a part that is not text, which is not supported");
        }
        text_append_string(&text, word);
    }
    json_object_set_new(message, "content", json_string(text_get(&text)));
    text_free(&text);
    return STATUS_OK;
}

static Status encode_messages(const Server *server, const json_t *messages, TokenIds *out) {
    size_t i;
    json_t *message;
    if (json_array_size(messages) == 0)
        return fail(STATUS_VALUE, "messages must be a list of at least one message");
    json_array_foreach(messages, i, message) TRY(join_parts(message));
    Value value = value_from_json(messages);
    Status status = network_encode_chat(server->network, value, out);
    value_release(value);
    return status;
}

// --- what is told

// Choices begin with an event that has the role, where there are roles.
static Status tell(void *context, const char *bytes, size_t length, int64_t id) {
    (void)id;
    Choice *choice = context;
    Job *job = choice->job;
    const Generation *generation = choice->generation;
    ASSERT(choice->scored_told <= generation->count);
    RequestKind kind = job->head.kind;
    json_t *logprobs = job->logprobs >= 0
                           ? answer_logprobs(kind, generation, job->logprobs, choice->scored_told)
                           : NULL;
    choice->scored_told = generation->count;
    answer_event(job->exchange, &job->head,
                 answer_piece(kind, choice->index, bytes, length, logprobs));
    return STATUS_OK;
}

static void fill_options(const Server *server, const ServeRequest *request,
                         GenerationOptions *out) {
    bool chat = request->kind == REQUEST_CHAT, said = request->max_tokens >= 0;
    *out = (GenerationOptions){
        .max_tokens = said   ? request->max_tokens
                      : chat ? TOKENS_CHAT
                             : TOKENS_COMPLETION,
        .at_most = !said,
        .sampling = {.interp = server->interp,
                     .chain = value_none(),
                     .temperature = request->temperature,
                     .top_k = request->top_k,
                     .top_p = request->top_p,
                     .has_seed = request->has_seed,
                     .random = {.key = (uint64_t)request->seed}},
        .stops = request->stops,
        .stop_count = request->stop_count,
        .logprobs = request->logprobs,
        .tell = request->stream ? tell : NULL,
    };
}

// What the answer must look like, where that was said.
static Status compile_format(const ServeRequest *request, Constraint **out) {
    static const char object[] = "{\"type\": \"object\"}";
    if (request->json) return constraint_from_schema(object, sizeof object - 1, out);
    if (!request->schema) return STATUS_OK;
    char *text = json_dumps(request->schema, JSON_COMPACT);
    Status status = constraint_from_schema(text, strlen(text), out);
    free(text);
    return status;
}

static Status begin_choice(Server *server, Choice *choice, const ServeRequest *request,
                           const json_t *prompt) {
    TokenIds ids = {0};
    GenerationOptions options;
    fill_options(server, request, &options);
    options.context = choice;
    Status status = request->kind == REQUEST_CHAT ? encode_messages(server, prompt, &ids)
                                                  : server_encode(server, prompt, &ids);
    Sequence *kept = NULL;
    if (status == STATUS_OK) status = compile_format(request, &options.constraint);
    if (status == STATUS_OK) status = kept_take(server, ids.ids, ids.count, &kept);
    if (status == STATUS_OK)
        status = generation_new(server->network, &options, &ids, kept, &choice->generation);
    constraint_release(options.constraint);
    free(ids.ids);
    return status;
}

// --- jobs

static Job *job_new(Server *server, HttpExchange *exchange, const ServeRequest *request) {
    Job *job = memory_allocate_zeroed(1, sizeof *job);
    bool many = request->kind == REQUEST_COMPLETION && server_has_many(request->prompt);
    *job = (Job){.exchange = exchange,
                 .head = {request->kind, ++server->number, time(NULL), server->options->name},
                 .stream = request->stream,
                 .usage = request->usage,
                 .logprobs = request->logprobs,
                 .count = many ? json_array_size(request->prompt) : 1};
    job->choices = memory_allocate_zeroed(job->count, sizeof *job->choices);
    DL_APPEND(server->jobs, job);
    http_set_data(exchange, job);
    return job;
}

void job_free(Server *server, Job *job) {
    DL_DELETE(server->jobs, job);
    if (job->exchange) http_set_data(job->exchange, NULL);
    for (size_t i = 0; i < job->count; i++) generation_free(job->choices[i].generation);
    free(job->choices);
    free(job);
}

size_t jobs_waiting(const Server *server) {
    size_t count = 0;
    const Job *job;
    DL_FOREACH(server->jobs, job)
    for (size_t i = 0; i < job->count; i++) count += !job->choices[i].generation->finish;
    return count;
}

static Status begin_choices(Server *server, Job *job, const ServeRequest *request) {
    bool many = request->kind == REQUEST_COMPLETION && server_has_many(request->prompt);
    for (size_t i = 0; i < job->count; i++) {
        job->choices[i] = (Choice){.job = job, .index = i};
        TRY(begin_choice(server, &job->choices[i], request,
                         many ? json_array_get(request->prompt, i) : request->prompt));
    }
    return STATUS_OK;
}

static void begin_stream(const Job *job) {
    http_begin(job->exchange, "text/event-stream");
    for (size_t i = 0; i < job->count && job->head.kind == REQUEST_CHAT; i++)
        answer_event(job->exchange, &job->head, answer_piece(REQUEST_CHAT, i, NULL, 0, NULL));
}

void job_begin(Server *server, HttpExchange *exchange, const ServeRequest *request) {
    size_t limit = server->options->batch + server->options->queue;
    bool many = request->kind == REQUEST_COMPLETION && server_has_many(request->prompt);
    size_t more = many ? json_array_size(request->prompt) : 1;
    if (more > limit || jobs_waiting(server) > limit - more) {
        answer_error(exchange, 503, "the queue is full: try again later", NULL, "queue_full");
        return;
    }
    Job *job = job_new(server, exchange, request);
    if (begin_choices(server, job, request) != STATUS_OK) {
        answer_failure(exchange, NULL);
        job_free(server, job);
        return;
    }
    if (job->stream) begin_stream(job);
}

// --- steps

static json_t *usage_of(const Job *job) {
    size_t prompt = 0, cached = 0, said = 0;
    for (size_t i = 0; i < job->count; i++) {
        const Generation *generation = job->choices[i].generation;
        ASSERT(generation != NULL);
        prompt += generation->prompt_tokens;
        cached += generation->cached_tokens;
        said += generation->count;
    }
    return answer_usage(prompt, cached, said);
}

static void finish_stream(const Job *job) {
    for (size_t i = 0; i < job->count; i++)
        answer_event(job->exchange, &job->head,
                     answer_end(job->head.kind, i, answer_finish(job->choices[i].generation)));
    if (job->usage) answer_usage_event(job->exchange, &job->head, usage_of(job));
    answer_done(job->exchange);
}

static void keep_texts(Server *server, Job *job) {
    for (size_t i = 0; i < job->count; i++) {
        kept_add(server, job->choices[i].generation->sequence);
        job->choices[i].generation->sequence = NULL;
    }
}

static void finish_whole(const Job *job) {
    json_t *choices = json_array();
    for (size_t i = 0; i < job->count; i++)
        json_array_append_new(
            choices, answer_choice(job->head.kind, i, job->choices[i].generation, job->logprobs));
    answer_json(job->exchange, 200, answer_whole(&job->head, choices, usage_of(job)));
}

static void finish(Server *server, Job *job) {
    if (job->stream)
        finish_stream(job);
    else
        finish_whole(job);
    keep_texts(server, job);
}

static bool is_finished(const Job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (!job->choices[i].generation->finish) return false;
    return true;
}

// A step that failed leaves none of its texts usable.
static void give_up(Server *server) {
    kept_clear(server);
    Job *job, *next;
    DL_FOREACH_SAFE(server->jobs, job, next) {
        if (job->stream)
            http_end(job->exchange);
        else
            answer_failure(job->exchange, NULL);
        job_free(server, job);
    }
}

// Nobody reads it any more, but the connection wants its end.
static void leave(const Job *job) {
    if (job->stream)
        http_end(job->exchange);
    else
        answer_error(job->exchange, 500, "the client has gone", NULL, NULL);
}

static void settle(Server *server) {
    Job *job, *next;
    DL_FOREACH_SAFE(server->jobs, job, next) {
        bool left = http_is_left(job->exchange);
        if (!left && !is_finished(job)) continue;
        if (left)
            leave(job);
        else
            finish(server, job);
        job_free(server, job);
    }
}

void jobs_step(Server *server) {
    size_t batch = server->options->batch, count = 0;
    ASSERT(batch > 0);
    Generation **generations = memory_allocate_zeroed(batch, sizeof(Generation *));
    const Job *job;
    DL_FOREACH(server->jobs, job)
    for (size_t i = 0; i < job->count && count < batch; i++)
        if (!job->choices[i].generation->finish) generations[count++] = job->choices[i].generation;
    Status status = count > 0 ? generations_step(generations, count) : STATUS_OK;
    free(generations);
    if (status != STATUS_OK)
        give_up(server);
    else
        settle(server);
}
