// What clients ask: JSON as the OpenAI API has it, every field known and checked.
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <jansson.h>

#include "serve/tools.h"

typedef enum RequestKind { REQUEST_CHAT, REQUEST_COMPLETION, REQUEST_EMBEDDING } RequestKind;

enum { STOPS_MAX = 16, LOGPROBS_MAX = 20, CHOICES_MAX = 128 };

// Borrowed from the JSON where it points.
typedef struct ServeRequest {
    RequestKind kind;
    const json_t *prompt; // messages, a prompt or an input
    const char *model;    // NULL: not named
    int64_t max_tokens;   // -1: not said
    int64_t copies;       // answers to each prompt
    double temperature, top_p, presence, frequency;
    int64_t top_k; // -1: not said
    int64_t seed;
    bool has_seed, stream, usage, base64;
    bool json;            // the answer must be a JSON object
    const json_t *schema; // or valid by this; NULL: it need not be
    ToolUse tools;        // what the model may call
    int64_t logprobs;     // alternatives with each token; -1: none, not even the token's own
    const char *stops[STOPS_MAX];
    size_t stop_count;
} ServeRequest;

// STATUS_VALUE in words; *field is then the name of the field that is wrong, or NULL. It lives as
// long as the JSON.
Status request_read(const json_t *json, RequestKind kind, ServeRequest *out,
                    const char **field) MUST_USE;

#endif
