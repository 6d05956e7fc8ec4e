// What could be written at a place: names, members, words, and the arguments of a call. Works on
// texts with mistakes: one that is being written always has some.
#include <stdlib.h>

#include "check/types.h"
#include "lexer/lexer.h"
#include "lsp/features.h"
#include "lsp/place.h"

enum { // of the protocol
    ITEM_METHOD = 2,
    ITEM_FUNCTION = 3,
    ITEM_FIELD = 5,
    ITEM_VARIABLE = 6,
    ITEM_MODULE = 9,
    ITEM_KEYWORD = 14,
    ITEM_STRUCT = 22,
    ITEM_TYPE = 25,
};

typedef struct Items {
    json_t *list, *seen;
} Items;

static void add_item(Items *items, const char *label, int kind, const char *detail) {
    if (json_object_get(items->seen, label)) return;
    json_object_set_new(items->seen, label, json_true());
    json_t *item = json_pack("{s:o, s:i}", "label", place_text(label, strlen(label)), "kind", kind);
    if (detail && *detail) json_object_set_new(item, "detail", place_text(detail, strlen(detail)));
    json_array_append_new(items->list, item);
}

static void add_members(Items *items, const Analysis *analysis) {
    for (size_t i = 0; i < analysis->members.count; i++) {
        const Member *member = &analysis->members.items[i];
        add_item(items, member->name->text, member->method ? ITEM_METHOD : ITEM_FIELD,
                 member->owner->text);
    }
}

// Builtins: behind a point those that have a first argument, by the last part of their names.
static void add_builtins(Items *items, bool methods) {
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        const char *name = row->signature.name, *point = strchr(name, '.');
        if (name[0] == '_' || strstr(name, "::") || (!methods && point)) continue;
        if (!methods)
            add_item(items, name, ITEM_FUNCTION, row->signature_text);
        else if (row->signature.count > 0)
            add_item(items, point ? point + 1 : name, ITEM_METHOD, row->signature_text);
    }
}

static void add_words(Items *items) {
    for (int kind = TOKEN_FN; kind <= TOKEN_AS; kind++)
        add_item(items, token_spelling((TokenKind)kind), ITEM_KEYWORD, NULL);
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++) add_item(items, words[i].word, ITEM_KEYWORD, words[i].form);
    for (int i = 0; i < DTYPE_COUNT; i++)
        add_item(items, dtype_name((DType)i), ITEM_TYPE, "a dtype");
    for (size_t i = 0; type_word_name(i); i++)
        add_item(items, type_word_name(i), ITEM_TYPE, "a type");
}

static int item_kind(const Binding *binding) {
    switch (binding->kind) {
    case BINDING_FUNCTION: return ITEM_FUNCTION;
    case BINDING_STRUCT: return ITEM_STRUCT;
    case BINDING_MODULE: return ITEM_MODULE;
    default: return ITEM_VARIABLE;
    }
}

// Everything that is declared, but locals only above the place.
static void add_declared(Items *items, const Analysis *analysis, SourcePos at) {
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        if (!binding || binding->kind == BINDING_BUILTIN || binding->kind == BINDING_DTYPE)
            continue;
        bool local = binding->kind == BINDING_LOCAL || binding->kind == BINDING_DIMENSION;
        bool here = analysis_has(analysis, binding->word.span.begin);
        if (local && (!here || binding->word.span.begin >= at)) continue;
        Text detail = {0};
        if (binding->kind == BINDING_FUNCTION)
            feature_append_head(&detail, binding->declaration->as.function);
        add_item(items, binding->word.text, item_kind(binding), text_get(&detail));
        text_free(&detail);
    }
}

static bool is_word_byte(char c) {
    return c == '_' || (c & 0x80) || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

json_t *feature_completion(const Analysis *analysis, size_t offset) {
    const char *text = analysis->file->text;
    size_t begin = offset;
    while (begin > 0 && is_word_byte(text[begin - 1])) begin--;
    bool member = begin > 0 && text[begin - 1] == '.' && !(begin > 1 && text[begin - 2] == '.');
    Items items = {json_array(), json_object()};
    if (member) {
        add_members(&items, analysis);
    } else {
        add_declared(&items, analysis, analysis->file->base + (SourcePos)offset);
        add_words(&items);
    }
    add_builtins(&items, member);
    json_decref(items.seen);
    return items.list;
}

// --- signature help

typedef struct OpenCall {
    const Token *name; // what stands before the parenthesis, NULL when it is no name
    bool method;
    int argument;
} OpenCall;

// The innermost call whose parenthesis is open at a place.
static bool call_at(const TokenList *tokens, SourcePos at, OpenCall *out) {
    VECTOR(OpenCall) open = {0};
    for (size_t i = 0; tokens->items[i].kind != TOKEN_END; i++) {
        const Token *token = &tokens->items[i];
        if (token->span.begin >= at) break;
        bool opener = token->kind == TOKEN_LEFT_PAREN || token->kind == TOKEN_LEFT_BRACKET ||
                      token->kind == TOKEN_LEFT_BRACE;
        bool closer = token->kind == TOKEN_RIGHT_PAREN || token->kind == TOKEN_RIGHT_BRACKET ||
                      token->kind == TOKEN_RIGHT_BRACE;
        if (opener) {
            OpenCall call = {0};
            bool named = token->kind == TOKEN_LEFT_PAREN && i > 0 && token_is_word(token - 1);
            if (named) call.name = token - 1;
            call.method = named && i > 1 && token[-2].kind == TOKEN_DOT;
            VECTOR_PUSH(&open, call);
        } else if (closer && open.count > 0) {
            open.count--;
        } else if (token->kind == TOKEN_COMMA && open.count > 0) {
            open.items[open.count - 1].argument++;
        }
    }
    bool found = open.count > 0 && open.items[open.count - 1].name;
    if (found) *out = open.items[open.count - 1];
    VECTOR_FREE(&open);
    return found;
}

static void add_signature(json_t *list, const char *label, json_t *parameters, const char *doc) {
    json_t *signature = json_pack("{s:o, s:o}", "label", place_text(label, strlen(label)),
                                  "parameters", parameters);
    if (doc) {
        const char *end = strchr(doc, '\n');
        size_t length = end ? (size_t)(end - doc) : strlen(doc);
        json_object_set_new(signature, "documentation", place_text(doc, length));
    }
    json_array_append_new(list, signature);
}

static void add_function_signature(json_t *list, const FunctionNode *function, bool method) {
    json_t *parameters = json_array();
    for (size_t i = method; i < function->parameter_count; i++) {
        const char *name = function->parameters[i].name.text;
        json_array_append_new(parameters,
                              json_pack("{s:o}", "label", place_text(name, strlen(name))));
    }
    Text head = {0};
    feature_append_head(&head, function);
    add_signature(list, text_get(&head), parameters, NULL);
    text_free(&head);
}

static void add_builtin_signatures(json_t *list, const Builtin *row, bool method) {
    for (; row; row = row->next_overload) {
        json_t *parameters = json_array();
        for (int i = method; i < row->signature.count; i++)
            json_array_append_new(parameters,
                                  json_pack("{s:s}", "label", row->signature.params[i].name));
        add_signature(list, row->signature_text, parameters, row->doc);
    }
}

// The function of that name which the text or its imports declare; NULL for none.
static const FunctionNode *function_named(const Analysis *analysis, const char *name,
                                          size_t length) {
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        bool function =
            binding && binding->declaration && binding->declaration->kind == NODE_FUNCTION &&
            binding->word.length == length && memcmp(binding->word.text, name, length) == 0;
        if (function) return binding->declaration->as.function;
    }
    return NULL;
}

static void add_signatures(json_t *list, const Analysis *analysis, const OpenCall *call) {
    size_t length;
    const char *name = source_text(call->name->span, &length);
    bool methods = call->method;
    for (size_t i = 0; i < analysis->members.count; i++) {
        const Member *member = &analysis->members.items[i];
        bool meant = member->method && member->name->length == length &&
                     memcmp(member->name->text, name, length) == 0;
        if (!meant) continue;
        bool has_self = member->method->parameter_count > 0 &&
                        strcmp(member->method->parameters[0].name.text, "self") == 0;
        if (has_self == methods) add_function_signature(list, member->method, methods);
    }
    const FunctionNode *function = function_named(analysis, name, length);
    if (function) add_function_signature(list, function, methods);
    if (json_array_size(list) == 0)
        add_builtin_signatures(list, catalog_find(name, length), methods);
}

json_t *feature_signature_help(const Analysis *analysis, size_t offset) {
    Arena arena = {0};
    DiagnosticList ignored = {0};
    TokenList tokens = lexer_read(analysis->file, &arena, &ignored, 0);
    OpenCall call;
    json_t *help = NULL;
    if (call_at(&tokens, analysis->file->base + (SourcePos)offset, &call)) {
        json_t *signatures = json_array();
        add_signatures(signatures, analysis, &call);
        help = json_pack("{s:o, s:i, s:i}", "signatures", signatures, "activeSignature", 0,
                         "activeParameter", call.argument);
    }
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    return help;
}
