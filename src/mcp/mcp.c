// The protocol: lines, requests, the life of a connection.
#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mcp/tools.h"

enum { // of JSON-RPC
    ERROR_PARSE = -32700,
    ERROR_REQUEST = -32600,
    ERROR_METHOD = -32601,
    ERROR_ARGUMENTS = -32602,
};

enum { LINE_BYTES_MAX = 16 * 1024 * 1024 };

struct Mcp {
    McpLimits limits;
    Text line;     // what has come of a line that is not whole
    bool too_long; // the rest of this line is left out
    Text *out;     // during a call
};

Mcp *mcp_new(const McpLimits *limits) {
    Mcp *mcp = memory_allocate_zeroed(1, sizeof *mcp);
    mcp->limits = *limits;
    return mcp;
}

void mcp_free(Mcp *mcp) {
    text_free(&mcp->line);
    free(mcp);
}

static void send_message(Mcp *mcp, json_t *message) {
    char *line = json_dumps(message, JSON_COMPACT);
    if (line) text_format(mcp->out, "%s\n", line);
    free(line);
    json_decref(message);
}

// `id` is borrowed; NULL: what came has none that could be read.
static void send_error(Mcp *mcp, json_t *id, int code, const char *words) {
    json_t *named = id ? json_incref(id) : json_null();
    json_t *message = json_string(words);
    if (!message) message = json_string("the message is not UTF-8");
    send_message(mcp, json_pack("{s:s, s:o, s:{s:i, s:o}}", "jsonrpc", "2.0", "id", named, "error",
                                "code", code, "message", message));
}

static void send_result(Mcp *mcp, json_t *id, json_t *result) {
    send_message(mcp, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

// --- methods

// The revision that the client asks for, when we speak it; else the newest that we do.
static const char *revision(const json_t *parameters) {
    static const char *const known[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    const char *asked = json_string_value(json_object_get(parameters, "protocolVersion"));
    for (size_t i = 0; asked && i < sizeof known / sizeof *known; i++)
        if (strcmp(asked, known[i]) == 0) return known[i];
    return known[0];
}

static json_t *initialize(const json_t *parameters) {
    return json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}, s:s}", "protocolVersion", revision(parameters),
                     "capabilities", "tools", "serverInfo", "name", "tl", "version", TL_VERSION,
                     "instructions",
                     "tl is a scripting language of tensors, neural networks, language models and "
                     "logic. Look names up with help, check a program before you run it, and read "
                     "the help lines of its errors.");
}

static void call_tool(Mcp *mcp, json_t *id, const json_t *parameters) {
    const char *name = json_string_value(json_object_get(parameters, "name"));
    if (!name) {
        send_error(mcp, id, ERROR_ARGUMENTS, "tools/call needs the name of a tool");
        return;
    }
    json_t *result = tools_call(&mcp->limits, name, json_object_get(parameters, "arguments"));
    if (result)
        send_result(mcp, id, result);
    else
        send_error(mcp, id, ERROR_ARGUMENTS, error_current()->message);
    error_clear();
}

static void answer(Mcp *mcp, json_t *id, const char *method, const json_t *parameters) {
    if (strcmp(method, "initialize") == 0) {
        send_result(mcp, id, initialize(parameters));
    } else if (strcmp(method, "ping") == 0) {
        send_result(mcp, id, json_object());
    } else if (strcmp(method, "tools/list") == 0) {
        send_result(mcp, id, json_pack("{s:o}", "tools", tools_list()));
    } else if (strcmp(method, "tools/call") == 0) {
        call_tool(mcp, id, parameters);
    } else {
        SCOPED_TEXT(words);
        text_format(&words, "there is no method %s", method);
        send_error(mcp, id, ERROR_METHOD, text_get(&words));
    }
}

static void take_message(Mcp *mcp, const json_t *message) {
    json_t *id = json_object_get(message, "id");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    const json_t *method = json_object_get(message, "method");
    const json_t *parameters = json_object_get(message, "params");
    if (id && !json_is_string(id) && !json_is_integer(id)) {
        send_error(mcp, NULL, ERROR_REQUEST, "an id must be a string or an integer");
    } else if (!version || strcmp(version, "2.0") != 0 || !json_is_string(method)) {
        // What carries a result or an error answers a request; this server makes none.
        if (!json_object_get(message, "result") && !json_object_get(message, "error"))
            send_error(mcp, id, ERROR_REQUEST, "not a request of JSON-RPC 2.0");
    } else if (id && parameters && !json_is_object(parameters)) {
        send_error(mcp, id, ERROR_ARGUMENTS, "params must be an object");
    } else if (id) { // without one it is a notification, and none of them asks for anything
        answer(mcp, id, json_string_value(method), parameters);
    }
}

static void take_line(Mcp *mcp, const char *line, size_t length) {
    if (length > 0 && line[length - 1] == '\r') length--;
    if (length == 0) return;
    json_error_t error;
    json_t *message = json_loadb(line, length, JSON_ALLOW_NUL, &error);
    if (!message)
        send_error(mcp, NULL, ERROR_PARSE, error.text);
    else
        take_message(mcp, message);
    json_decref(message);
}

void mcp_feed(Mcp *mcp, const char *bytes, size_t length, Text *out) {
    mcp->out = out;
    for (const char *end = bytes + length; bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *stop = newline ? newline : end;
        if (mcp->line.length + (size_t)(stop - bytes) > LINE_BYTES_MAX) mcp->too_long = true;
        if (!mcp->too_long) text_append(&mcp->line, bytes, (size_t)(stop - bytes));
        bytes = newline ? newline + 1 : end;
        if (!newline) return;
        if (mcp->too_long)
            send_error(mcp, NULL, ERROR_REQUEST, "a line is longer than 16 MB");
        else
            take_line(mcp, text_get(&mcp->line), mcp->line.length);
        mcp->too_long = false;
        text_clear(&mcp->line);
    }
}
