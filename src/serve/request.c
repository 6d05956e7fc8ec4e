#include "serve/request.h"

#include <stddef.h>
#include <string.h>

// What a field holds, and what its number lies between.
typedef enum FieldKind {
    FIELD_PROMPT,
    FIELD_TEXT, // a string of which nothing depends
    FIELD_MODEL,
    FIELD_INTEGER,
    FIELD_NUMBER,
    FIELD_FLAG,
    FIELD_NEVER, // a flag that may only be false
    FIELD_STOP,
    FIELD_SEED,
    FIELD_STREAM_OPTIONS,
    FIELD_FORMAT,
    FIELD_ENCODING,
    FIELD_CHAT_LOGPROBS,
    FIELD_TOOLS,
    FIELD_TOOL_CHOICE,
    FIELD_TOOLS_PARALLEL,
} FieldKind;

enum { CHAT = 1 << REQUEST_CHAT, TEXT = 1 << REQUEST_COMPLETION, VECTOR = 1 << REQUEST_EMBEDDING };
enum { TOKENS_MOST = 1 << 30 };

typedef struct Field {
    const char *name;
    int requests;
    FieldKind kind;
    double low, high;
    size_t offset; // in ServeRequest, of integers, numbers and flags; 0: it is only checked
} Field;

#define AT(member) offsetof(ServeRequest, member)
static const Field fields[] = {
    {"messages", CHAT, FIELD_PROMPT, 0, 0, 0},
    {"prompt", TEXT, FIELD_PROMPT, 0, 0, 0},
    {"input", VECTOR, FIELD_PROMPT, 0, 0, 0},
    {"model", CHAT | TEXT | VECTOR, FIELD_MODEL, 0, 0, 0},
    {"user", CHAT | TEXT | VECTOR, FIELD_TEXT, 0, 0, 0},
    {"max_tokens", CHAT | TEXT, FIELD_INTEGER, 0, TOKENS_MOST, AT(max_tokens)},
    {"max_completion_tokens", CHAT, FIELD_INTEGER, 0, TOKENS_MOST, AT(max_tokens)},
    {"temperature", CHAT | TEXT, FIELD_NUMBER, 0, 2, AT(temperature)},
    {"top_p", CHAT | TEXT, FIELD_NUMBER, 0, 1, AT(top_p)},
    {"top_k", CHAT | TEXT, FIELD_INTEGER, 1, TOKENS_MOST, AT(top_k)},
    {"seed", CHAT | TEXT, FIELD_SEED, 0, 0, 0},
    {"stop", CHAT | TEXT, FIELD_STOP, 0, 0, 0},
    {"n", CHAT | TEXT, FIELD_INTEGER, 1, CHOICES_MAX, AT(copies)},
    {"best_of", TEXT, FIELD_INTEGER, 1, 1, 0},
    {"presence_penalty", CHAT | TEXT, FIELD_NUMBER, -2, 2, AT(presence)},
    {"frequency_penalty", CHAT | TEXT, FIELD_NUMBER, -2, 2, AT(frequency)},
    {"stream", CHAT | TEXT, FIELD_FLAG, 0, 0, AT(stream)},
    {"stream_options", CHAT | TEXT, FIELD_STREAM_OPTIONS, 0, 0, 0},
    {"echo", TEXT, FIELD_NEVER, 0, 0, 0},
    {"store", CHAT, FIELD_NEVER, 0, 0, 0},
    {"logprobs", TEXT, FIELD_INTEGER, 0, LOGPROBS_MAX, AT(logprobs)},
    {"logprobs", CHAT, FIELD_CHAT_LOGPROBS, 0, 0, 0},
    {"top_logprobs", CHAT, FIELD_INTEGER, 0, LOGPROBS_MAX, AT(logprobs)},
    {"response_format", CHAT, FIELD_FORMAT, 0, 0, 0},
    {"tools", CHAT, FIELD_TOOLS, 0, 0, 0},
    {"tool_choice", CHAT, FIELD_TOOL_CHOICE, 0, 0, 0},
    {"parallel_tool_calls", CHAT, FIELD_TOOLS_PARALLEL, 0, 0, 0},
    {"encoding_format", VECTOR, FIELD_ENCODING, 0, 0, 0},
};
#undef AT

static const Field *find(const char *name, RequestKind kind) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((fields[i].requests & 1 << kind) && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static Status must_be(const Field *field, const char *what) {
    return fail(STATUS_VALUE, "%s must be %s", field->name, what);
}

static Status check_bounds(const Field *field, double number) {
    if (number >= field->low && number <= field->high) return STATUS_OK;
    if (field->low == field->high)
        return fail(STATUS_VALUE, "%s must be %g: another value is not supported", field->name,
                    field->low);
    return fail(STATUS_VALUE, "%s must be from %.0f to %.0f", field->name, field->low, field->high);
}

static Status read_number(const Field *field, const json_t *value, ServeRequest *out) {
    if (field->kind == FIELD_INTEGER && !json_is_integer(value))
        return must_be(field, "an integer");
    if (!json_is_number(value)) return must_be(field, "a number");
    TRY(check_bounds(field, json_number_value(value)));
    char *place = (char *)out + field->offset;
    if (field->offset == 0) return STATUS_OK;
    if (field->kind == FIELD_INTEGER)
        memcpy(place, &(int64_t){json_integer_value(value)}, sizeof(int64_t));
    else
        memcpy(place, &(double){json_number_value(value)}, sizeof(double));
    return STATUS_OK;
}

static Status read_flag(const Field *field, const json_t *value, ServeRequest *out) {
    if (!json_is_boolean(value)) return must_be(field, "true or false");
    if (field->kind == FIELD_NEVER && json_is_true(value))
        return must_be(field, "false: true is not supported");
    if (field->kind == FIELD_FLAG) *((bool *)out + field->offset) = json_is_true(value);
    if (field->kind == FIELD_TOOLS_PARALLEL) out->tools.one = json_is_false(value);
    return STATUS_OK;
}

static Status read_stops(const Field *field, const json_t *value, ServeRequest *out) {
    bool many = json_is_array(value);
    size_t count = many ? json_array_size(value) : 1;
    if (count > STOPS_MAX) return must_be(field, "at most 16 strings");
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(many ? json_array_get(value, i) : value);
        if (!text || !*text) return must_be(field, "a string that is not empty, or a list of them");
        out->stops[i] = text;
    }
    out->stop_count = count;
    return STATUS_OK;
}

static Status read_stream_options(const Field *field, const json_t *value, ServeRequest *out) {
    const json_t *usage = json_object_get(value, "include_usage");
    size_t known = usage ? 1 : 0;
    if (!json_is_object(value) || json_object_size(value) != known ||
        (usage && !json_is_boolean(usage)))
        return must_be(field, "an object with include_usage, true or false");
    out->usage = json_is_true(usage);
    return STATUS_OK;
}

static Status read_format(const Field *field, const json_t *value, ServeRequest *out) {
    const char *type = json_string_value(json_object_get(value, "type"));
    const json_t *schema = json_object_get(json_object_get(value, "json_schema"), "schema");
    if (type && strcmp(type, "json_schema") == 0 && json_is_object(schema))
        out->schema = schema;
    else if (type && strcmp(type, "json_object") == 0)
        out->json = true;
    else if (!type || strcmp(type, "text") != 0)
        return must_be(field,
                       "of the type text, json_object, or json_schema with a json_schema that "
                       "has a schema");
    return STATUS_OK;
}

static Status read_word(const Field *field, const json_t *value, ServeRequest *out) {
    const char *word = json_string_value(value);
    if (!word) return must_be(field, "a string");
    if (field->kind == FIELD_MODEL) out->model = word;
    if (field->kind != FIELD_ENCODING) return STATUS_OK;
    out->base64 = strcmp(word, "base64") == 0;
    return out->base64 || strcmp(word, "float") == 0 ? STATUS_OK
                                                     : must_be(field, "\"float\" or \"base64\"");
}

static Status read_field(const Field *field, const json_t *value, ServeRequest *out) {
    switch (field->kind) {
    case FIELD_PROMPT: out->prompt = value; return STATUS_OK;
    case FIELD_INTEGER:
    case FIELD_NUMBER: return read_number(field, value, out);
    case FIELD_FLAG:
    case FIELD_TOOLS_PARALLEL:
    case FIELD_NEVER: return read_flag(field, value, out);
    case FIELD_STOP: return read_stops(field, value, out);
    case FIELD_SEED:
        if (!json_is_integer(value)) return must_be(field, "an integer");
        out->seed = json_integer_value(value);
        out->has_seed = true;
        return STATUS_OK;
    case FIELD_STREAM_OPTIONS: return read_stream_options(field, value, out);
    case FIELD_FORMAT: return read_format(field, value, out);
    case FIELD_TOOLS: return tools_read(value, &out->tools);
    case FIELD_TOOL_CHOICE: return tools_read_choice(value, &out->tools);
    case FIELD_CHAT_LOGPROBS:
        if (!json_is_boolean(value)) return must_be(field, "true or false");
        if (json_is_true(value) && out->logprobs < 0) out->logprobs = 0;
        return STATUS_OK;
    default: return read_word(field, value, out);
    }
}

// What fields need of each other.
static Status check_together(const json_t *json, const ServeRequest *request, const char **field) {
    bool top =
        request->kind == REQUEST_CHAT && json_is_integer(json_object_get(json, "top_logprobs"));
    if (top && !json_is_true(json_object_get(json, "logprobs"))) {
        *field = "top_logprobs";
        return fail(STATUS_VALUE, "top_logprobs needs logprobs: true");
    }
    if (request->usage && !request->stream) {
        *field = "stream_options";
        return fail(STATUS_VALUE, "stream_options needs stream: true");
    }
    TRY(tools_check(&request->tools, field));
    if (tools_usable(&request->tools) && (request->schema || request->json)) {
        *field = "response_format";
        return fail(STATUS_VALUE, "response_format does not go with tools that may be called");
    }
    if (request->prompt) return STATUS_OK;
    static const char *const names[] = {"messages", "prompt", "input"};
    *field = names[request->kind];
    return fail(STATUS_VALUE, "%s is missing", *field);
}

Status request_read(const json_t *json, RequestKind kind, ServeRequest *out, const char **field) {
    *field = NULL;
    *out = (ServeRequest){.kind = kind,
                          .max_tokens = -1,
                          .temperature = 1,
                          .top_p = 1,
                          .top_k = -1,
                          .logprobs = -1,
                          .copies = 1};
    if (!json_is_object(json)) return fail(STATUS_VALUE, "the body must be a JSON object");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, name, value) {
        *field = name;
        const Field *known = find(name, kind);
        if (!known) return fail(STATUS_VALUE, "the field \"%.80s\" is not known", name);
        if (!json_is_null(value)) TRY(read_field(known, value, out));
    }
    return check_together(json, out, field);
}
