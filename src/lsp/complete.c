// What may be written at a place: names, members, words, and the arguments of a call. Works on
// texts with mistakes: one that is being written always has some.
#include <stdlib.h>

#include "check/types.h"
#include "lexer/lexer.h"
#include "lsp/features.h"
#include "lsp/place.h"
#include "lsp/receiver.h"
#include "parser/position.h"
#include "parser/walk.h"

enum { // of the protocol
    ITEM_METHOD = 2,
    ITEM_FUNCTION = 3,
    ITEM_FIELD = 5,
    ITEM_VARIABLE = 6,
    ITEM_MODULE = 9,
    ITEM_KEYWORD = 14,
    ITEM_MEMBER = 20,
    ITEM_STRUCT = 22,
    ITEM_TYPE = 25,
};

enum { ITEMS_MAX = 100 }; // more than anybody reads: the rest comes with the next letters

typedef struct Items {
    json_t *list, *seen;
    const char *word; // what they must begin with
    size_t length;
    bool cut;
} Items;

static void add_item(Items *items, const char *label, int kind, const char *detail) {
    ASSERT(label != NULL);
    if (strncmp(label, items->word, items->length) != 0) return;
    if (json_object_get(items->seen, label)) return;
    if (json_array_size(items->list) >= ITEMS_MAX) {
        items->cut = true;
        return;
    }
    json_object_set_new(items->seen, label, json_true());
    json_t *item = json_pack("{s:o, s:i}", "label", place_text(label, strlen(label)), "kind", kind);
    if (detail && *detail) json_object_set_new(item, "detail", place_text(detail, strlen(detail)));
    json_array_append_new(items->list, item);
}

// --- names

static void add_builtins(Items *items) {
    if (items->length == 0) {
        items->cut = true;
        return;
    }
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        const char *name = row->signature.name;
        if (name[0] != '_' && !strpbrk(name, ".:"))
            add_item(items, name, ITEM_FUNCTION, row->signature_text);
    }
    size_t count;
    const Constant *constants = catalog_constants(&count);
    for (size_t i = 0; i < count; i++)
        add_item(items, constants[i].name, ITEM_VARIABLE, constants[i].doc);
    for (int i = 0; i < DTYPE_COUNT; i++)
        add_item(items, dtype_name((DType)i), ITEM_TYPE, "a dtype");
}

static void add_keywords(Items *items, const Position *position) {
    for (int kind = TOKEN_FN; kind <= TOKEN_AS; kind++)
        if (position_allows_keyword(position, (TokenKind)kind))
            add_item(items, token_spelling((TokenKind)kind), ITEM_KEYWORD, NULL);
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        if (position_allows_word(position, &words[i]))
            add_item(items, words[i].word, ITEM_KEYWORD, words[i].form);
}

static int item_kind(const Binding *binding) {
    switch (binding->kind) {
    case BINDING_FUNCTION: return ITEM_FUNCTION;
    case BINDING_RELATION:
    case BINDING_STRUCT: return ITEM_STRUCT;
    case BINDING_MODULE: return ITEM_MODULE;
    default: return ITEM_VARIABLE;
    }
}

static void add_binding(Items *items, const Binding *binding) {
    SCOPED_TEXT(detail);
    ASSERT(binding->kind != BINDING_MODULE || binding->program);
    if (binding->kind == BINDING_FUNCTION)
        feature_append_head(&detail, binding->declaration->as.function);
    add_item(items, binding->word.text, item_kind(binding), text_get(&detail));
}

// Everything that is declared, but locals only above the place.
static bool is_visible(const Analysis *analysis, const Binding *binding, SourcePos at) {
    if (!binding || binding->kind == BINDING_BUILTIN || binding->kind == BINDING_DTYPE ||
        binding->kind == BINDING_CONSTANT)
        return false;
    bool local = binding->kind == BINDING_LOCAL || binding->kind == BINDING_DIMENSION;
    bool here = analysis_has(analysis, binding->word.span.begin);
    return !local || (here && binding->word.span.begin < at);
}

static void add_declared(Items *items, const Analysis *analysis, SourcePos at) {
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        if (is_visible(analysis, binding, at)) add_binding(items, binding);
    }
}

// The names of entities: declared, and those that facts mention.
static void add_constants(void *context, Node *node) {
    Items *items = context;
    if (node->kind == NODE_ENTITY)
        for (size_t i = 0; i < node->as.entity.member_count; i++)
            add_item(items, node->as.entity.members[i].text, ITEM_MEMBER,
                     node->as.entity.name.text);
    if (node->kind != NODE_FACT) return;
    const AtomNode *atom = &node->as.clause->atom;
    for (size_t i = 0; i < atom->count; i++) {
        const TermNode *term = &atom->terms[i];
        if (term->kind == TERM_NODE_CONSTANT && term->value->kind == NODE_NAME)
            add_item(items, term->value->as.name.word.text, ITEM_MEMBER,
                     atom->call->as.call.callee->as.name.word.text);
    }
}

static void add_types(Items *items, const Analysis *analysis, SourcePos at) {
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        bool type = is_visible(analysis, binding, at) &&
                    (binding->kind == BINDING_STRUCT || binding->kind == BINDING_MODULE);
        if (type) add_binding(items, binding);
    }
    for (int i = 0; i < DTYPE_COUNT; i++)
        add_item(items, dtype_name((DType)i), ITEM_TYPE, "a dtype");
    for (size_t i = 0; type_word_name(i); i++)
        add_item(items, type_word_name(i), ITEM_TYPE, "a type");
}

// --- members

// A struct's fields and methods behind a dot, its other functions behind `::`; of every struct when
// `owner` is NULL.
static void add_members(Items *items, const Analysis *analysis, const char *owner, bool path) {
    for (size_t i = 0; i < analysis->members.count; i++) {
        const Member *member = &analysis->members.items[i];
        if (owner && strcmp(member->owner->text, owner) != 0) continue;
        const FunctionNode *method = member->method;
        bool self = !method || (method->parameter_count > 0 &&
                                strcmp(method->parameters[0].name.text, "self") == 0);
        if (self != path)
            add_item(items, member->name->text, method ? ITEM_METHOD : ITEM_FIELD,
                     member->owner->text);
    }
}

// Those whose first parameter takes such a value, by the last part of their names.
static void add_methods(Items *items, TypeWord type) {
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        const char *name = row->signature.name, *dot = strchr(name, '.');
        bool method = name[0] != '_' && !strchr(name, ':') && row->signature.count > 0 &&
                      type_word_fits(type, row->signature.params[0].kind);
        if (method) add_item(items, dot ? dot + 1 : name, ITEM_METHOD, row->signature_text);
    }
}

// What a file that was imported under a name declares.
static void add_program(Items *items, const Analysis *analysis, const Program *program) {
    ASSERT(program->file != NULL);
    const SourceFile *file = program->file;
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        bool top = binding && (binding->kind == BINDING_FUNCTION ||
                               binding->kind == BINDING_STRUCT || binding->kind == BINDING_GLOBAL);
        SourcePos at = binding ? binding->word.span.begin : 0;
        if (top && at >= file->base && at - file->base <= file->length) add_binding(items, binding);
    }
}

static void add_member_items(Items *items, const Analysis *analysis, const Receiver *receiver) {
    TypeWord type;
    if (receiver->module) {
        add_program(items, analysis, receiver->module);
    } else if (receiver->type[0] == '\0') {
        add_members(items, analysis, NULL, false);
        add_methods(items, TYPE_WORD_ANY);
    } else if (type_word_of_kind(receiver->type, &type)) {
        static const char *const properties[] = {"shape", "dtype", "T", "rank"};
        for (size_t i = 0; type == TYPE_WORD_TENSOR && i < sizeof properties / sizeof *properties;
             i++)
            add_item(items, properties[i], ITEM_FIELD, "of tensors");
        add_methods(items, type);
    } else {
        add_members(items, analysis, receiver->type, false);
    }
}

static void add_path_items(Items *items, const Analysis *analysis, const char *name,
                           size_t length) {
    const char *dot = memchr(name, '.', length);
    size_t first = dot ? (size_t)(dot + 1 - name) : 0;
    SCOPED_MEMORY char *owner = memory_copy_string(name + first, length - first);
    add_members(items, analysis, owner, true);
    for (size_t i = 0; i < catalog_count(); i++) { // KVCache::new
        const Builtin *row = catalog_get(i);
        const char *colons = strstr(row->signature.name, "::");
        size_t before = colons ? (size_t)(colons - row->signature.name) : 0;
        if (colons && before == strlen(owner) && memcmp(row->signature.name, owner, before) == 0)
            add_item(items, colons + 2, ITEM_FUNCTION, row->signature_text);
    }
}

// Behind the name of a program block: what its equations give, and relations, which it weighs.
typedef struct ProgramItems {
    Items *items;
    const char *name;
    size_t length;
    bool found;
} ProgramItems;

static void add_program_names(void *context, Node *node) {
    ProgramItems *search = context;
    if (node->kind != NODE_PROGRAM) return;
    const ProgramNode *program = node->as.program;
    if (program->name.length != search->length ||
        memcmp(program->name.text, search->name, search->length) != 0)
        return;
    search->found = true;
    for (size_t i = 0; i < program->named; i++)
        add_item(search->items, program->names[i].text, ITEM_FIELD, program->name.text);
}

static bool add_program_items(Items *items, const Analysis *analysis, const char *name,
                              size_t length) {
    ProgramItems search = {items, name, length, false};
    walk_node(&(Walker){.context = &search, .node = add_program_names}, analysis->program->top);
    for (size_t i = 0; search.found && i < analysis->occurrences.count; i++) {
        const Binding *binding = analysis->occurrences.items[i].binding;
        if (binding && binding->kind == BINDING_RELATION) add_binding(items, binding);
    }
    return search.found;
}

// The text without what is being written behind the receiver, so that it parses and inference tells
// what the receiver is; `cut`: up to there only, with the open brackets closed.
static Analysis *analyse_without(const SourceFile *file, const Position *position, bool cut) {
    bool known = position->receiver_end > 0;
    size_t begin = known ? position->receiver_end : position->word, end = position->word_end;
    ASSERT(begin <= end && end <= file->length);
    SCOPED_TEXT(text);
    text_append(&text, file->text, begin);
    for (size_t i = begin; i < end; i++) text_append_char(&text, ' ');
    if (cut)
        position_append_closers(file->text, begin, &text);
    else
        text_append(&text, file->text + end, file->length - end);
    return analysis_new_beside(file->name, text_get(&text), text.length);
}

static void add_behind(Items *items, const SourceFile *file, const Position *position) {
    ASSERT(position->receiver <= position->receiver_end);
    const char *name = file->text + position->receiver;
    size_t length = position->receiver_end - position->receiver;
    Analysis *without = analyse_without(file, position, false);
    if (position->kind == POSITION_PATH) {
        if (without) add_path_items(items, without, name, length);
        analysis_free(without);
        return;
    }
    if (without && add_program_items(items, without, name, length)) {
        analysis_free(without);
        return;
    }
    Receiver receiver = {0};
    for (int cut = 0; without; cut++) {
        receiver = receiver_find(without, position->receiver, name, length);
        if (cut || length == 0 || receiver.module || receiver.type[0]) break;
        analysis_free(without);
        without = analyse_without(file, position, true);
    }
    if (without) add_member_items(items, without, &receiver);
    analysis_free(without);
}

json_t *feature_completion(const Analysis *analysis, size_t offset) {
    const char *text = analysis->file->text;
    ASSERT(offset <= analysis->file->length);
    Position position = position_find(text, offset);
    Items items = {.list = json_array(),
                   .seen = json_object(),
                   .word = text + position.word,
                   .length = offset - position.word};
    SourcePos at = analysis->file->base + (SourcePos)offset;
    switch (position.kind) {
    case POSITION_NONE: break;
    case POSITION_MEMBER:
    case POSITION_PATH: add_behind(&items, analysis->file, &position); break;
    case POSITION_TYPE: add_types(&items, analysis, at); break;
    case POSITION_OPERATOR: add_keywords(&items, &position); break;
    default:
        add_declared(&items, analysis, at);
        walk_node(&(Walker){.context = &items, .node = add_constants}, analysis->program->top);
        add_keywords(&items, &position);
        add_builtins(&items);
    }
    json_decref(items.seen);
    return json_pack("{s:b, s:o}", "isIncomplete", items.cut, "items", items.list);
}

// --- signature help

typedef struct OpenCall {
    const Token *name; // what stands before the parenthesis, NULL when it is not a name
    bool method;
    int argument;
} OpenCall;

// The innermost call whose parenthesis is open at a place.
static bool call_at(const TokenList *tokens, SourcePos at, OpenCall *out) {
    SCOPED_MEMORY VECTOR(OpenCall) open = {0};
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
    ASSERT(function->parameter_count >= method);
    for (size_t i = method; i < function->parameter_count; i++) {
        const char *name = function->parameters[i].name.text;
        json_array_append_new(parameters,
                              json_pack("{s:o}", "label", place_text(name, strlen(name))));
    }
    SCOPED_TEXT(head);
    feature_append_head(&head, function);
    add_signature(list, text_get(&head), parameters, NULL);
}

static void add_builtin_signatures(json_t *list, const Builtin *row, bool method) {
    for (; row; row = row->next_overload) {
        json_t *parameters = json_array();
        ASSERT(row->signature.count >= method);
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
