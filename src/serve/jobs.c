#include "serve/jobs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/memory.h"
#include "chat/chat.h"
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
    SCOPED_TEXT(message);
    text_append_string(&message, error->message);
    if (*error->help) text_format(&message, " (%s)", error->help);
    answer_error(exchange, theirs ? 400 : 500, text_get(&message), field, NULL);
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

Status server_encode(const Network *network, const json_t *prompt, TokenIds *out) {
    if (json_is_string(prompt))
        return network_encode(network, json_string_value(prompt), json_string_length(prompt), true,
                              out);
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
    SCOPED_TEXT(text);
    json_array_foreach(parts, i, part) {
        const char *word = json_string_value(json_object_get(part, "text"));
        if (!word)
            return fail(STATUS_VALUE,
                        "content has a part that is not text, which is not supported");
        text_append_string(&text, word);
    }
    json_object_set_new(message, "content", json_string(text_get(&text)));
    return STATUS_OK;
}

static Status encode_messages(const Network *network, const json_t *messages, const json_t *tools,
                              TokenIds *out) {
    size_t i;
    json_t *message;
    if (json_array_size(messages) == 0)
        return fail(STATUS_VALUE, "messages must be a list of at least one message");
    json_array_foreach(messages, i, message) {
        TRY(join_parts(message));
        TRY(calls_prepare(message));
    }
    Value value = value_from_json(messages), list = tools ? value_from_json(tools) : value_none();
    Status status = network_encode_chat(network, value, list, out);
    value_release(value);
    value_release(list);
    return status;
}

// --- what is told

// Choices begin with an event that has the role, where there are roles.
static void tell_text(Choice *choice, const char *bytes, size_t length) {
    const Job *job = choice->job;
    const Generation *generation = choice->generation;
    ASSERT(choice->scored_told <= generation->count);
    RequestKind kind = job->head.kind;
    json_t *logprobs = job->logprobs >= 0
                           ? answer_logprobs(kind, generation, job->logprobs, choice->scored_told)
                           : NULL;
    choice->scored_told = generation->count;
    answer_event(job->exchange, &job->head,
                 answer_piece(kind, choice->index, bytes, length, logprobs));
}

// The text up to `end` that was not told yet.
static void tell_content(Choice *choice, size_t end) {
    size_t begin = choice->content_told;
    if (end <= begin) return;
    choice->content_told = end;
    tell_text(choice, choice->generation->text.bytes + begin, end - begin);
}

static Status tell(void *context, const char *bytes, size_t length, int64_t id) {
    (void)id;
    Choice *choice = context;
    const CallForm *form = choice->job->form;
    if (form) {
        const char *text = text_get(&choice->generation->text);
        tell_content(choice, calls_content(form, text, (size_t)(bytes - text) + length));
    } else {
        tell_text(choice, bytes, length);
    }
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
                     .presence = request->presence,
                     .frequency = request->frequency,
                     .has_seed = request->has_seed,
                     .random = {.key = (uint64_t)request->seed}},
        .stops = request->stops,
        .stop_count = request->stop_count,
        .logprobs = request->logprobs,
        .tell = request->stream ? tell : NULL,
    };
}

// What the answer must look like, where that was said.
static Status compile_format(const Job *job, const ServeRequest *request, GenerationOptions *out) {
    static const char object[] = "{\"type\": \"object\"}";
    if (job->form)
        return calls_constraint(job->form, &request->tools, &out->constraint, &out->trigger);
    if (request->json) return constraint_from_schema(object, sizeof object - 1, &out->constraint);
    if (!request->schema) return STATUS_OK;
    SCOPED_MEMORY char *text = json_dumps(request->schema, JSON_COMPACT);
    return constraint_from_schema(text, strlen(text), &out->constraint);
}

// A first choice of a prompt, which may go on where a text that was finished ended.
static Status begin_first(const Job *job, Choice *choice, const GenerationOptions *options,
                          const TokenIds *ids) {
    Sequence *kept = NULL;
    TRY(kept_take(job->network, ids->ids, ids->count, &kept));
    return generation_new(job->network->network, options, ids, kept, &choice->generation);
}

// The others of the same prompt: it is read once, the last id by each.
static Status begin_copies(const Job *job, Choice *first, GenerationOptions *options,
                           const TokenIds *ids) {
    Sequence *sequence = first->generation->sequence;
    size_t known = sequence->count;
    bool forks = job->network->network->cache_field >= 0;
    ASSERT(known < ids->count);
    if (forks && known + 1 < ids->count) {
        SCOPED_TENSOR(logits);
        Step step = {sequence, ids->ids + known, ids->count - known - 1, 1, false};
        TRY(sequences_advance(&step, 1, &logits));
    }
    for (size_t i = 1; i < job->copies; i++) {
        Sequence *copy = NULL;
        if (forks) TRY(sequence_fork(sequence, &copy));
        options->context = first + i;
        options->sampling.random.key++;
        TRY(generation_new(job->network->network, options, ids, copy, &first[i].generation));
    }
    return STATUS_OK;
}

static Status begin_choices(const Server *server, const Job *job, const ServeRequest *request,
                            const json_t *prompt, Choice *first) {
    TokenIds ids = {0};
    GenerationOptions options;
    fill_options(server, request, &options);
    options.context = first;
    const Network *network = job->network->network;
    Status status = request->kind == REQUEST_CHAT
                        ? encode_messages(network, prompt, job->tools, &ids)
                        : server_encode(network, prompt, &ids);
    if (status == STATUS_OK) status = compile_format(job, request, &options);
    if (status == STATUS_OK) status = begin_first(job, first, &options, &ids);
    if (status == STATUS_OK && job->copies > 1) status = begin_copies(job, first, &options, &ids);
    constraint_release(options.constraint);
    free(ids.ids);
    return status;
}

// --- jobs

static bool has_many(const ServeRequest *request) {
    return request->kind == REQUEST_COMPLETION && server_has_many(request->prompt);
}

static size_t choice_count(const ServeRequest *request) {
    return (has_many(request) ? json_array_size(request->prompt) : 1) * (size_t)request->copies;
}

static Job *job_new(Server *server, ServedNetwork *network, HttpExchange *exchange,
                    const ServeRequest *request) {
    Job *job = memory_allocate_zeroed(1, sizeof *job);
    *job = (Job){.exchange = exchange,
                 .network = network,
                 .head = {request->kind, ++server->number, time(NULL), network->name},
                 .stream = request->stream,
                 .usage = request->usage,
                 .logprobs = request->logprobs,
                 .count = choice_count(request),
                 .copies = (size_t)request->copies};
    job->choices = memory_allocate_zeroed(job->count, sizeof *job->choices);
    for (size_t i = 0; i < job->count; i++) job->choices[i] = (Choice){.job = job, .index = i};
    DL_APPEND(server->jobs, job);
    http_set_data(exchange, job);
    return job;
}

void job_free(Server *server, Job *job) {
    DL_DELETE(server->jobs, job);
    if (job->exchange) http_set_data(job->exchange, NULL);
    for (size_t i = 0; i < job->count; i++) generation_free(job->choices[i].generation);
    json_decref(job->tools);
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

// Which form the calls have is the model's; its template must know tools.
static Status begin_tools(Job *job, const ServeRequest *request) {
    const char *text;
    size_t length;
    const Model *model = network_model(job->network->network).as.handle->payload;
    TRY(chat_template(model, &text, &length));
    TRY(calls_form(text, length, &job->form));
    job->tools = json_incref((json_t *)(uintptr_t)request->tools.tools);
    return STATUS_OK;
}

static Status begin_all(const Server *server, const Job *job, const ServeRequest *request) {
    for (size_t i = 0; i < job->count; i += job->copies)
        TRY(begin_choices(server, job, request,
                          has_many(request) ? json_array_get(request->prompt, i / job->copies)
                                            : request->prompt,
                          &job->choices[i]));
    return STATUS_OK;
}

static void begin_stream(const Job *job) {
    http_begin(job->exchange, "text/event-stream");
    for (size_t i = 0; i < job->count && job->head.kind == REQUEST_CHAT; i++)
        answer_event(job->exchange, &job->head, answer_piece(REQUEST_CHAT, i, NULL, 0, NULL));
}

void job_begin(Server *server, ServedNetwork *network, HttpExchange *exchange,
               const ServeRequest *request) {
    size_t limit = server->options->batch + server->options->queue, more = choice_count(request);
    if (more > limit || jobs_waiting(server) > limit - more) {
        answer_error(exchange, 503, "the queue is full: try again later", NULL, "queue_full");
        return;
    }
    Job *job = job_new(server, network, exchange, request);
    if (tools_usable(&request->tools) && begin_tools(job, request) != STATUS_OK) {
        answer_failure(exchange, "tools");
        job_free(server, job);
        return;
    }
    if (begin_all(server, job, request) != STATUS_OK) {
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
        bool first = i % job->copies == 0;
        prompt += first ? generation->prompt_tokens : 0;
        cached += first ? generation->cached_tokens : 0;
        said += generation->count;
    }
    return answer_usage(prompt, cached, said);
}

// The calls that a text has; NULL when it has none. New. *content: the bytes before them.
static json_t *calls_of(const Job *job, const Choice *choice, size_t *content) {
    json_t *calls = NULL;
    const Text *text = &choice->generation->text;
    *content = text->length;
    if (job->form) calls = calls_read(job->form, job->tools, text, content);
    if (!calls) *content = text->length;
    return calls ? answer_calls(job->head.number, choice->index, calls) : NULL;
}

static void finish_choice(const Job *job, Choice *choice) {
    size_t content;
    json_t *calls = calls_of(job, choice, &content);
    const char *finish = calls ? "tool_calls" : answer_finish(choice->generation);
    if (job->form) tell_content(choice, content);
    if (calls) answer_event(job->exchange, &job->head, answer_called(choice->index, calls));
    answer_event(job->exchange, &job->head, answer_end(job->head.kind, choice->index, finish));
}

static void finish_stream(const Job *job) {
    for (size_t i = 0; i < job->count; i++) finish_choice(job, &job->choices[i]);
    if (job->usage) answer_usage_event(job->exchange, &job->head, usage_of(job));
    answer_done(job->exchange);
}

static void keep_texts(const Job *job) {
    for (size_t i = 0; i < job->count; i++) {
        kept_add(job->network, job->choices[i].generation->sequence);
        job->choices[i].generation->sequence = NULL;
    }
}

static void finish_whole(const Job *job) {
    json_t *choices = json_array();
    for (size_t i = 0; i < job->count; i++) {
        const Choice *choice = &job->choices[i];
        size_t content;
        json_t *calls = calls_of(job, choice, &content), *one;
        one = answer_choice(job->head.kind, i, choice->generation, job->logprobs);
        if (calls) answer_take_calls(one, choice->generation, content, calls);
        json_array_append_new(choices, one);
    }
    answer_json(job->exchange, 200, answer_whole(&job->head, choices, usage_of(job)));
}

static void finish(const Job *job) {
    if (job->stream)
        finish_stream(job);
    else
        finish_whole(job);
    keep_texts(job);
}

static bool is_finished(const Job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (!job->choices[i].generation->finish) return false;
    return true;
}

// A step that failed leaves none of its texts usable.
static void give_up(Server *server) {
    for (size_t i = 0; i < server->network_count; i++) kept_clear(&server->networks[i]);
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
            finish(job);
        job_free(server, job);
    }
}

// A token for those of the choices that this network makes.
static Status step_network(const ServedNetwork *network, Choice *const *choices, size_t count) {
    SCOPED_MEMORY Generation **own = memory_allocate_zeroed(count + 1, sizeof(Generation *));
    size_t own_count = 0;
    for (size_t i = 0; i < count; i++)
        if (choices[i]->job->network == network) own[own_count++] = choices[i]->generation;
    return own_count > 0 ? generations_step(own, own_count) : STATUS_OK;
}

void jobs_step(Server *server) {
    size_t batch = server->options->batch, count = 0;
    ASSERT(batch > 0 && server->network_count > 0);
    Choice **choices = memory_allocate_zeroed(batch, sizeof(Choice *));
    const Job *job;
    DL_FOREACH(server->jobs, job)
    for (size_t i = 0; i < job->count && count < batch; i++)
        if (!job->choices[i].generation->finish) choices[count++] = &job->choices[i];
    Status status = STATUS_OK;
    for (size_t i = 0; i < server->network_count && status == STATUS_OK; i++)
        status = step_network(&server->networks[i], choices, count);
    free(choices);
    if (status != STATUS_OK)
        give_up(server);
    else
        settle(server);
}
