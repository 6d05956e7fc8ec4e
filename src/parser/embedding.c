// embedding E { entities: Person  dimension: 64  init: xavier  learnable }: a variable that a call
// of embedding_table gives its value.
#include "parser/state.h"

typedef struct EmbeddingParts {
    Node *call;
    bool relations; // the declaration is one of relations
} EmbeddingParts;

bool parser_at_embedding(const Parser *parser) {
    const Token *word = parser_peek(parser), *name = parser_ahead(parser, 1);
    bool begins = parser_is_name(word, "embedding") || parser_is_name(word, "relation_embedding");
    return begins && name->kind == TOKEN_NAME && !name->newline_before &&
           parser_ahead(parser, 2)->kind == TOKEN_LEFT_BRACE;
}

static Node *string_of_word(Parser *parser, const Word *word) {
    ASSERT(word->text != NULL);
    Node *node = node_new(parser, NODE_STRING, word->span.begin);
    node->as.string.bytes = word->text;
    node->as.string.length = word->length;
    return node;
}

// {alice, bob} as a list of texts.
static Node *parse_names(Parser *parser) {
    Node *list = node_new(parser, NODE_LIST, parser_begin(parser));
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Word name;
        if (!parser_take_name(parser, "a name", &name)) return NULL;
        Node *text = string_of_word(parser, &name);
        if (!node_adopt(parser, list, text)) return NULL;
        LIST_PUSH(parser, list->as.list.items, list->as.list.count, text);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "names")) return NULL;
    list->span.end = parser_end(parser);
    return list;
}

// An entity type, or `auto`, `all` or `entity`, which are texts.
static Node *parse_entities(Parser *parser) {
    Word word;
    if (parser_is(parser, TOKEN_LEFT_BRACE)) return parse_names(parser);
    SourcePos begin = parser_begin(parser);
    if (!parser_take_name(parser, "an entity type, `auto`, `all` or names in braces", &word))
        return NULL;
    if (strcmp(word.text, "auto") == 0 || strcmp(word.text, "all") == 0 ||
        strcmp(word.text, "entity") == 0)
        return string_of_word(parser, &word);
    Node *name = node_new(parser, NODE_NAME, begin);
    name->as.name.word = word;
    return name;
}

static Node *parse_word_text(Parser *parser) {
    Word word;
    static const char *const words[] = {"xavier", "random", "he", "zeros", "ones"};
    if (!parser_take_name(parser, "xavier, random, he, zeros or ones", &word)) return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word.text) == 0) return string_of_word(parser, &word);
    return FAIL(parser, .span = word.span,
                .message = parser_say(parser, "an embedding cannot begin as `%s`", word.text),
                .help = "there are xavier, random, he, zeros and ones");
}

static Node *true_node(Parser *parser) {
    Node *node = node_new(parser, NODE_BOOL, parser_begin(parser));
    node->as.boolean = true;
    return node;
}

static bool add_part(Parser *parser, EmbeddingParts *parts, Word name, Node *value) {
    ASSERT(parts->call->kind == NODE_CALL);
    Argument argument = {.name = name, .value = value};
    if (!value || !node_adopt(parser, parts->call, value)) return false;
    LIST_PUSH(parser, parts->call->as.call.arguments, parts->call->as.call.count, argument);
    return true;
}

static bool parse_part(Parser *parser, EmbeddingParts *parts) {
    Word name;
    if (!parser_take_word(parser, "entities, dimension, init or learnable", &name)) return false;
    bool colon = parser_accept(parser, TOKEN_COLON);
    bool entities = strcmp(name.text, parts->relations ? "relations" : "entities") == 0;
    if (!colon && strcmp(name.text, "learnable") == 0)
        return add_part(parser, parts, name, true_node(parser));
    if (!colon) return parser_fail_expected(parser, "`:` and a value") != NULL;
    if (entities) {
        name.text = "entities";
        name.length = 8;
        return add_part(parser, parts, name, parse_entities(parser));
    }
    if (strcmp(name.text, "init") == 0)
        return add_part(parser, parts, name, parse_word_text(parser));
    if (strcmp(name.text, "dimension") == 0 || strcmp(name.text, "learnable") == 0)
        return add_part(parser, parts, name, parse_expression(parser));
    return FAIL(parser, .span = name.span,
                .message = parser_say(parser, "an embedding has no setting `%s`", name.text),
                .help = parts->relations
                            ? "there are relations, dimension, init and learnable"
                            : "there are entities, dimension, init and learnable") != NULL;
}

static Node *call_node(Parser *parser, SourcePos begin) {
    static const char function[] = "embedding_table";
    Node *callee = node_new(parser, NODE_NAME, begin);
    callee->as.name.word =
        (Word){.text = function, .length = sizeof function - 1, .span = {begin, begin}};
    Node *call = node_new(parser, NODE_CALL, begin);
    call->as.call.callee = callee;
    return node_adopt(parser, call, callee) ? call : NULL;
}

static bool has_part(const Node *call, const char *name) {
    bool found = false;
    ASSERT(call->kind == NODE_CALL);
    for (size_t i = 0; i < call->as.call.count; i++)
        found |= strcmp(call->as.call.arguments[i].name.text, name) == 0;
    return found;
}

Node *parse_embedding(Parser *parser) {
    ASSERT(parser_at_embedding(parser));
    SourcePos begin = parser_begin(parser);
    EmbeddingParts parts = {.relations = parser_is_name(parser_next(parser), "relation_embedding")};
    Pattern *pattern = arena_allocate(parser->arena, sizeof *pattern);
    *pattern = (Pattern){.kind = PATTERN_BIND, .span = parser_peek(parser)->span};
    pattern->name = parser_word(parser, parser_next(parser));
    if (!(parts.call = call_node(parser, begin))) return NULL;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (parser_accept(parser, TOKEN_COMMA) || parser_accept(parser, TOKEN_SEMICOLON)) continue;
        if (!parse_part(parser, &parts)) return NULL;
    }
    if (!parser_close_bracket(parser, &outer, "embedding")) return NULL;
    if (!has_part(parts.call, "entities") || !has_part(parts.call, "dimension"))
        return FAIL(parser, .span = pattern->span,
                    .message = parser_say(parser, "an embedding needs `%s:` and `dimension:`",
                                          parts.relations ? "relations" : "entities"));
    Node *node = node_new(parser, NODE_LET, begin);
    node->as.let.pattern = pattern;
    node->as.let.value = parts.call;
    node->span.end = parts.call->span.end = parser_end(parser);
    return node_adopt(parser, node, parts.call) ? node : NULL;
}
