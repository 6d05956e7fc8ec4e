// The server: open texts, the life of a connection, and which question goes to which feature.
#include <stdlib.h>
#include <string.h>

#include "lsp/features.h"
#include "lsp/lsp.h"
#include "lsp/place.h"
#include "lsp/wire.h"

enum { // of JSON-RPC and the protocol
    ERROR_PARSE = -32700,
    ERROR_REQUEST = -32600,
    ERROR_METHOD = -32601,
    ERROR_NOT_INITIALIZED = -32002,
    ERROR_FAILED = -32803,
};

typedef struct Document {
    char *uri, *path;
    Text text;
} Document;

struct Server {
    Wire wire;
    VECTOR(Document *) documents;
    Analysis *analysis;       // of `analysed`, as its text is now
    const Document *analysed; // NULL: none
    bool initialized, shut_down, ended;
    Text *out; // during a call
};

Server *server_new(void) {
    return memory_allocate_zeroed(1, sizeof(Server));
}

static void analysis_forget(Server *server) {
    analysis_free(server->analysis);
    server->analysis = NULL;
    server->analysed = NULL;
}

static void document_free(Document *document) {
    free(document->uri);
    free(document->path);
    text_free(&document->text);
    free(document);
}

void server_free(Server *server) {
    analysis_forget(server);
    for (size_t i = 0; i < server->documents.count; i++) document_free(server->documents.items[i]);
    VECTOR_FREE(&server->documents);
    wire_free(&server->wire);
    free(server);
}

// --- sending

static void send_message(Server *server, json_t *message) {
    char *body = message ? json_dumps(message, JSON_COMPACT) : NULL;
    if (body) wire_write(server->out, body, strlen(body));
    free(body);
    json_decref(message);
}

static void send_result(Server *server, const json_t *id, json_t *result) {
    send_message(server, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result",
                                   result ? result : json_null()));
}

static void send_error(Server *server, const json_t *id, int code, const char *message) {
    json_t *words = place_text(message, strlen(message));
    send_message(server, json_pack("{s:s, s:O, s:{s:i, s:o}}", "jsonrpc", "2.0", "id",
                                   id ? id : json_null(), "error", "code", code, "message", words));
}

static void send_diagnostics(Server *server, const char *uri, json_t *diagnostics) {
    send_message(server, json_pack("{s:s, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "method",
                                   "textDocument/publishDiagnostics", "params", "uri", uri,
                                   "diagnostics", diagnostics));
}

// --- documents

static const char *uri_in(const json_t *params) {
    const char *uri =
        json_string_value(json_object_get(json_object_get(params, "textDocument"), "uri"));
    return uri ? uri : "";
}

// The place of the document in the list; the list's end when it is not open.
static size_t document_index(const Server *server, const char *uri) {
    size_t i = 0;
    while (i < server->documents.count && strcmp(server->documents.items[i]->uri, uri) != 0) i++;
    return i;
}

// NULL, with an error recorded, when the document is not open.
static Document *document_in(const Server *server, const json_t *params) {
    size_t index = document_index(server, uri_in(params));
    if (index < server->documents.count) return server->documents.items[index];
    fail(STATUS_NAME, "the document \"%s\" is not open", uri_in(params));
    return NULL;
}

static const Analysis *analyse(Server *server, const Document *document) {
    if (server->analysed == document) return server->analysis;
    analysis_forget(server);
    server->analysis =
        analysis_new(document->path, text_get(&document->text), document->text.length);
    server->analysed = document;
    return server->analysis;
}

static void publish(Server *server, const Document *document) {
    const Analysis *analysis = analyse(server, document);
    if (analysis) send_diagnostics(server, document->uri, feature_diagnostics(analysis));
}

static void document_close(Server *server, const char *uri) {
    size_t index = document_index(server, uri);
    if (index == server->documents.count) return;
    analysis_forget(server);
    document_free(server->documents.items[index]);
    server->documents.items[index] = server->documents.items[--server->documents.count];
}

static json_t *did_open(Server *server, const json_t *params) {
    const json_t *opened = json_object_get(params, "textDocument");
    const json_t *text = json_object_get(opened, "text");
    if (!json_is_string(json_object_get(opened, "uri")) || !json_is_string(text)) return NULL;
    const char *uri = uri_in(params);
    document_close(server, uri);
    Document *document = memory_allocate_zeroed(1, sizeof *document);
    document->uri = memory_copy_string(uri, strlen(uri));
    document->path = place_path(uri);
    text_append(&document->text, json_string_value(text), json_string_length(text));
    VECTOR_PUSH(&server->documents, document);
    publish(server, document);
    return NULL;
}

static void apply_change(Document *document, const json_t *change) {
    const json_t *text = json_object_get(change, "text"), *range = json_object_get(change, "range");
    if (!json_is_string(text)) return;
    const char *old = text_get(&document->text);
    size_t length = document->text.length, begin = 0, end = length;
    if (json_is_object(range)) {
        begin = place_offset(json_object_get(range, "start"), old, length);
        end = place_offset(json_object_get(range, "end"), old, length);
        if (end < begin) end = begin;
    }
    ASSERT(begin <= end && end <= length);
    Text changed = {0};
    text_append(&changed, old, begin);
    text_append(&changed, json_string_value(text), json_string_length(text));
    text_append(&changed, old + end, length - end);
    text_free(&document->text);
    document->text = changed;
}

static json_t *did_change(Server *server, const json_t *params) {
    Document *document = document_in(server, params);
    if (!document) return NULL;
    const json_t *changes = json_object_get(params, "contentChanges");
    for (size_t i = 0; i < json_array_size(changes); i++)
        apply_change(document, json_array_get(changes, i));
    analysis_forget(server);
    publish(server, document);
    return NULL;
}

// What it imports may have been saved as well.
static json_t *did_save(Server *server, const json_t *params) {
    Document *document = document_in(server, params);
    if (!document) return NULL;
    analysis_forget(server);
    publish(server, document);
    return NULL;
}

static json_t *did_close(Server *server, const json_t *params) {
    document_close(server, uri_in(params));
    send_diagnostics(server, uri_in(params), json_array());
    return NULL;
}

// --- questions about a place or a text

typedef struct Question {
    const char *method;
    json_t *(*at)(const Analysis *analysis, size_t offset);
    json_t *(*whole)(const Analysis *analysis);
} Question;

static const Question questions[] = {
    {"textDocument/hover", feature_hover, NULL},
    {"textDocument/completion", feature_completion, NULL},
    {"textDocument/signatureHelp", feature_signature_help, NULL},
    {"textDocument/definition", feature_definition, NULL},
    {"textDocument/documentHighlight", feature_highlights, NULL},
    {"textDocument/prepareRename", feature_prepare_rename, NULL},
    {"textDocument/documentSymbol", NULL, feature_symbols},
    {"textDocument/formatting", NULL, feature_formatting},
};

static size_t offset_in(const Document *document, const json_t *params) {
    return place_offset(json_object_get(params, "position"), text_get(&document->text),
                        document->text.length);
}

static json_t *answer(Server *server, const Question *question, const json_t *params) {
    Document *document = document_in(server, params);
    const Analysis *analysis = document ? analyse(server, document) : NULL;
    if (!analysis) return NULL;
    if (question->whole) return question->whole(analysis);
    return question->at(analysis, offset_in(document, params));
}

static json_t *references(Server *server, const json_t *params) {
    Document *document = document_in(server, params);
    const Analysis *analysis = document ? analyse(server, document) : NULL;
    const json_t *context = json_object_get(params, "context");
    bool with = json_is_true(json_object_get(context, "includeDeclaration"));
    return analysis ? feature_references(analysis, offset_in(document, params), with) : NULL;
}

static json_t *rename_name(Server *server, const json_t *params) {
    Document *document = document_in(server, params);
    const Analysis *analysis = document ? analyse(server, document) : NULL;
    const char *name = json_string_value(json_object_get(params, "newName"));
    if (!analysis) return NULL;
    return feature_rename(analysis, offset_in(document, params), name ? name : "", document->uri);
}

// --- the life of a connection

static json_t *initialize(Server *server, const json_t *params) {
    (void)params;
    server->initialized = true;
    json_t *capabilities = json_pack(
        "{s:{s:b, s:i, s:b}, s:b, s:{s:[s,s]}, s:{s:[s,s]}, s:b, s:b, s:b, s:{s:b}, s:b, s:b}",
        "textDocumentSync", "openClose", 1, "change", 2, "save", 1, "hoverProvider", 1,
        "completionProvider", "triggerCharacters", ".", ":", "signatureHelpProvider",
        "triggerCharacters", "(", ",", "definitionProvider", 1, "referencesProvider", 1,
        "documentHighlightProvider", 1, "renameProvider", "prepareProvider", 1,
        "documentSymbolProvider", 1, "documentFormattingProvider", 1);
    return json_pack("{s:o, s:{s:s, s:s}}", "capabilities", capabilities, "serverInfo", "name",
                     "tl", "version", TL_VERSION);
}

static json_t *shut_down(Server *server, const json_t *params) {
    (void)params;
    server->shut_down = true;
    return NULL;
}

static json_t *end(Server *server, const json_t *params) {
    (void)params;
    server->ended = true;
    return NULL;
}

static json_t *ignore(Server *server, const json_t *params) {
    (void)server, (void)params;
    return NULL;
}

static const struct {
    const char *method;
    json_t *(*handle)(Server *server, const json_t *params);
} methods[] = {
    {"initialize", initialize},
    {"initialized", ignore},
    {"shutdown", shut_down},
    {"exit", end},
    {"textDocument/didOpen", did_open},
    {"textDocument/didChange", did_change},
    {"textDocument/didSave", did_save},
    {"textDocument/didClose", did_close},
    {"textDocument/references", references},
    {"textDocument/rename", rename_name},
};

// False when nothing has that name. The result is NULL for none and for an error.
static bool dispatch(Server *server, const char *method, const json_t *params, json_t **result) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].method, method) != 0) continue;
        *result = methods[i].handle(server, params);
        return true;
    }
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (strcmp(questions[i].method, method) != 0) continue;
        *result = answer(server, &questions[i], params);
        return true;
    }
    return false;
}

static void handle_request(Server *server, const char *method, const json_t *message) {
    const json_t *id = json_object_get(message, "id");
    const json_t *params = json_object_get(message, "params");
    json_t *result = NULL;
    error_clear();
    if (!server->initialized && strcmp(method, "initialize") != 0)
        send_error(server, id, ERROR_NOT_INITIALIZED, "the first request is initialize");
    else if (server->shut_down)
        send_error(server, id, ERROR_REQUEST, "the server was shut down");
    else if (!dispatch(server, method, params, &result))
        send_error(server, id, ERROR_METHOD, "there is no such method");
    else if (!result && error_current()->code != STATUS_OK)
        send_error(server, id, ERROR_FAILED, error_current()->message);
    else
        send_result(server, id, result);
    error_clear();
}

static void handle_notification(Server *server, const char *method, const json_t *message) {
    json_t *result = NULL;
    bool heard = strcmp(method, "exit") == 0 || (server->initialized && !server->shut_down);
    if (heard) dispatch(server, method, json_object_get(message, "params"), &result);
    json_decref(result);
    error_clear();
}

static void handle_message(Server *server, const char *body, size_t length) {
    json_error_t error;
    json_t *message = json_loadb(body, length, JSON_ALLOW_NUL, &error);
    const char *method = json_string_value(json_object_get(message, "method"));
    if (!message)
        send_error(server, NULL, ERROR_PARSE, error.text);
    else if (method && json_object_get(message, "id"))
        handle_request(server, method, message);
    else if (method)
        handle_notification(server, method, message);
    else if (!json_is_object(message) || !json_object_get(message, "id"))
        send_error(server, NULL, ERROR_REQUEST, "a message is an object with a method");
    json_decref(message); // an answer to us: the server asks nothing
}

bool server_feed(Server *server, const char *bytes, size_t length, Text *out) {
    server->out = out;
    wire_feed(&server->wire, bytes, length);
    const char *body;
    size_t body_length;
    while (!server->ended && (body = wire_next(&server->wire, &body_length)) != NULL)
        handle_message(server, body, body_length);
    server->out = NULL;
    return !server->ended;
}

int server_exit_status(const Server *server) {
    return server->shut_down ? 0 : 1;
}
