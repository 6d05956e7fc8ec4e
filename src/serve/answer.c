#include "serve/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

// --- sending

static void append_json(Text *out, json_t *json) {
    char *text = json_dumps(json, JSON_COMPACT);
    text_append_string(out, text ? text : "{}");
    free(text);
    json_decref(json);
}

void answer_json(HttpExchange *exchange, int status, json_t *json) {
    SCOPED_TEXT(body);
    append_json(&body, json);
    http_answer(exchange, status, "application/json", &body);
}

static json_t *text_of(const char *bytes, size_t length) {
    size_t bad;
    bool whole = utf8_valid(bytes, length, &bad);
    return whole ? json_stringn(bytes, length) : json_string("\xEF\xBF\xBD");
}

void answer_error(HttpExchange *exchange, int status, const char *message, const char *field,
                  const char *code) {
    const char *type = status >= 500 ? "server_error" : "invalid_request_error";
    json_t *error =
        json_pack("{s:o, s:s, s:s?, s:s?}", "message", text_of(message, strlen(message)), "type",
                  type, "param", field, "code", code);
    answer_json(exchange, status, json_pack("{s:o}", "error", error));
}

static void send_event(HttpExchange *exchange, json_t *json) {
    SCOPED_TEXT(event);
    text_append_string(&event, "data: ");
    append_json(&event, json);
    text_append_string(&event, "\n\n");
    http_send(exchange, &event);
}

void answer_done(HttpExchange *exchange) {
    SCOPED_TEXT(event);
    text_append_string(&event, "data: [DONE]\n\n");
    http_send(exchange, &event);
    http_end(exchange);
}

// --- probabilities

static json_t *token_text(const Generation *generation, int64_t id, Text *bytes) {
    text_clear(bytes);
    tokenizer_token_bytes(generation->sequence->network->tokenizer, id, bytes);
    return text_of(text_get(bytes), bytes->length);
}

static json_t *token_json(const Generation *generation, const Scored *scored) {
    SCOPED_TEXT(bytes);
    json_t *text = token_text(generation, scored->id, &bytes), *numbers = json_array();
    for (size_t i = 0; i < bytes.length; i++)
        json_array_append_new(numbers, json_integer((unsigned char)bytes.bytes[i]));
    return json_pack("{s:o, s:f, s:o}", "token", text, "logprob", scored->logprob, "bytes",
                     numbers);
}

static json_t *chat_logprobs(const Generation *generation, size_t each, size_t from) {
    json_t *content = json_array();
    for (size_t i = from; i < generation->count; i++) {
        const Scored *scored = generation->scored + i * each;
        json_t *row = token_json(generation, scored), *top = json_array();
        for (size_t j = 1; j < each && scored[j].id >= 0; j++)
            json_array_append_new(top, token_json(generation, &scored[j]));
        json_object_set_new(row, "top_logprobs", top);
        json_array_append_new(content, row);
    }
    return json_pack("{s:o}", "content", content);
}

static json_t *completion_logprobs(const Generation *generation, size_t each, size_t from) {
    json_t *tokens = json_array(), *logprobs = json_array(), *tops = json_array();
    SCOPED_TEXT(bytes);
    for (size_t i = from; i < generation->count; i++) {
        const Scored *scored = generation->scored + i * each;
        json_array_append_new(tokens, token_text(generation, scored->id, &bytes));
        json_array_append_new(logprobs, json_real(scored->logprob));
        json_t *top = json_object();
        for (size_t j = 1; j < each && scored[j].id >= 0; j++) {
            json_t *name = token_text(generation, scored[j].id, &bytes);
            json_object_set_new(top, json_string_value(name), json_real(scored[j].logprob));
            json_decref(name);
        }
        json_array_append_new(tops, top);
    }
    return json_pack("{s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", logprobs,
                     "top_logprobs", tops);
}

json_t *answer_logprobs(RequestKind kind, const Generation *generation, int64_t alternatives,
                        size_t from) {
    if (alternatives < 0) return json_null();
    size_t each = (size_t)alternatives + 1;
    return kind == REQUEST_CHAT ? chat_logprobs(generation, each, from)
                                : completion_logprobs(generation, each, from);
}

// --- parts of answers

json_t *answer_usage(size_t prompt, size_t cached, size_t completion) {
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)prompt,
                     "completion_tokens", (json_int_t)completion, "total_tokens",
                     (json_int_t)(prompt + completion), "prompt_tokens_details", "cached_tokens",
                     (json_int_t)cached);
}

const char *answer_finish(const Generation *generation) {
    return generation->finish == FINISH_LENGTH ? "length" : "stop";
}

json_t *answer_choice(RequestKind kind, size_t index, const Generation *generation,
                      int64_t alternatives) {
    json_t *text = text_of(text_get(&generation->text), generation->text.length);
    json_t *choice = json_pack("{s:I}", "index", (json_int_t)index);
    if (kind == REQUEST_CHAT)
        json_object_set_new(
            choice, "message",
            json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", text, "refusal"));
    else
        json_object_set_new(choice, "text", text);
    json_object_set_new(choice, "logprobs", answer_logprobs(kind, generation, alternatives, 0));
    json_object_set_new(choice, "finish_reason", json_string(answer_finish(generation)));
    return choice;
}

// Nine letters and digits: what some templates ask for.
static void write_call_id(char out[10], int64_t request, size_t number) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t rest = (uint64_t)request << 16 | (number & 0xffff);
    for (int i = 8; i >= 0; i--, rest /= 36) out[i] = digits[rest % 36];
    out[9] = '\0';
}

json_t *answer_calls(int64_t request, size_t index, json_t *calls) {
    json_t *list = json_array(), *function;
    size_t i;
    json_array_foreach(calls, i, function) {
        char id[10];
        write_call_id(id, request, index << 8 | i);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:O}", "id", id, "type", "function", "function", function));
    }
    json_decref(calls);
    return list;
}

void answer_take_calls(json_t *choice, const Generation *generation, size_t content,
                       json_t *calls) {
    json_t *message = json_object_get(choice, "message");
    ASSERT(content <= generation->text.length);
    json_object_set_new(message, "content",
                        content > 0 ? text_of(text_get(&generation->text), content) : json_null());
    json_object_set_new(message, "tool_calls", calls);
    json_object_set_new(choice, "finish_reason", json_string("tool_calls"));
}

json_t *answer_called(size_t index, json_t *calls) {
    json_t *call;
    size_t i;
    json_array_foreach(calls, i, call)
        json_object_set_new(call, "index", json_integer((json_int_t)i));
    return json_pack("{s:I, s:{s:o}, s:n, s:n}", "index", (json_int_t)index, "delta", "tool_calls",
                     calls, "logprobs", "finish_reason");
}

static json_t *head_json(const AnswerHead *head, bool whole) {
    bool chat = head->kind == REQUEST_CHAT;
    char id[40];
    snprintf(id, sizeof id, "%s-%lld", chat ? "chatcmpl" : "cmpl", (long long)head->number);
    const char *object = !chat   ? "text_completion"
                         : whole ? "chat.completion"
                                 : "chat.completion.chunk";
    return json_pack("{s:s, s:s, s:I, s:s}", "id", id, "object", object, "created",
                     (json_int_t)head->created, "model", head->model);
}

json_t *answer_whole(const AnswerHead *head, json_t *choices, json_t *usage) {
    json_t *answer = head_json(head, true);
    json_object_set_new(answer, "choices", choices);
    json_object_set_new(answer, "usage", usage);
    return answer;
}

void answer_event(HttpExchange *exchange, const AnswerHead *head, json_t *choice) {
    json_t *event = head_json(head, false);
    json_object_set_new(event, "choices", json_pack("[o]", choice));
    send_event(exchange, event);
}

json_t *answer_piece(RequestKind kind, size_t index, const char *text, size_t length,
                     json_t *logprobs) {
    json_t *choice = json_pack("{s:I}", "index", (json_int_t)index);
    if (kind == REQUEST_COMPLETION)
        json_object_set_new(choice, "text", text_of(text, length));
    else if (text)
        json_object_set_new(choice, "delta", json_pack("{s:o}", "content", text_of(text, length)));
    else
        json_object_set_new(choice, "delta",
                            json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
    json_object_set_new(choice, "logprobs", logprobs ? logprobs : json_null());
    json_object_set_new(choice, "finish_reason", json_null());
    return choice;
}

json_t *answer_end(RequestKind kind, size_t index, const char *finish) {
    json_t *choice = json_pack("{s:I, s:n, s:s}", "index", (json_int_t)index, "logprobs",
                               "finish_reason", finish);
    if (kind == REQUEST_CHAT)
        json_object_set_new(choice, "delta", json_object());
    else
        json_object_set_new(choice, "text", json_string(""));
    return choice;
}

void answer_usage_event(HttpExchange *exchange, const AnswerHead *head, json_t *usage) {
    json_t *event = head_json(head, false);
    json_object_set_new(event, "choices", json_array());
    json_object_set_new(event, "usage", usage);
    send_event(exchange, event);
}
