// What clients get: JSON as the OpenAI API has it, and events of a stream.
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <jansson.h>

#include "generate/generation.h"
#include "serve/http.h"
#include "serve/request.h"

// What an answer says of itself: one for a whole request.
typedef struct AnswerHead {
    RequestKind kind;
    int64_t number, created; // of the request, and seconds since 1970
    const char *model;
} AnswerHead;

// Takes the reference to `json`.
void answer_json(HttpExchange *exchange, int status, json_t *json);
// {"error": {...}}; field and code may be NULL.
void answer_error(HttpExchange *exchange, int status, const char *message, const char *field,
                  const char *code);

json_t *answer_usage(size_t prompt, size_t cached, size_t completion);
// The tokens from `from` on with their probabilities, as the kind of request has them.
json_t *answer_logprobs(RequestKind kind, const Generation *generation, int64_t alternatives,
                        size_t from);
const char *answer_finish(const Generation *generation);
// Whole: the choices, of which `choices` is taken, and the usage likewise.
json_t *answer_whole(const AnswerHead *head, json_t *choices, json_t *usage);
json_t *answer_choice(RequestKind kind, size_t index, const Generation *generation,
                      int64_t alternatives);
// What a model called, [{"name", "arguments"}] (taken), as the API has it, each with an id of its
// own; in a choice of a whole answer, with what was said before them; and in an event's choice.
json_t *answer_calls(int64_t request, size_t index, json_t *calls);
void answer_take_calls(json_t *choice, const Generation *generation, size_t content, json_t *calls);
json_t *answer_called(size_t index, json_t *calls);
// An event with one choice: `text` NULL for one that only ends (finish) or begins (neither).
// `logprobs` is taken, NULL for none.
void answer_event(HttpExchange *exchange, const AnswerHead *head, json_t *choice);
json_t *answer_piece(RequestKind kind, size_t index, const char *text, size_t length,
                     json_t *logprobs);
json_t *answer_end(RequestKind kind, size_t index, const char *finish);
void answer_usage_event(HttpExchange *exchange, const AnswerHead *head, json_t *usage);
void answer_done(HttpExchange *exchange);

#endif
