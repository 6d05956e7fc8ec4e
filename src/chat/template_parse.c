// Templates to trees: text is cut at tags, tags make statements.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "chat/template_parser.h"

// Where a list of statements ends: {% else %}, {% endif %} ...; NULL: at the end of the text.
typedef struct Ends {
    const char *words[3];
} Ends;

static Status parse_body(Parser *parser, const Ends *ends, Node **out);

static Node *new_node(Parser *parser, NodeKind kind) {
    Node *node = arena_allocate(&parser->template->arena, sizeof *node);
    node->kind = kind;
    node->line = parser->line;
    return node;
}

static void skip_blanks(Parser *parser) {
    while (parser->at < parser->end && isspace((unsigned char)*parser->at))
        parser->line += *parser->at++ == '\n';
}

// After a tag: -%} takes all blanks with it, %} and #} a newline.
static void skip_after(Parser *parser, const char *close, bool block) {
    if (*close == '-')
        skip_blanks(parser);
    else if (block && *close != '+' && parser->at < parser->end && *parser->at == '\n') {
        parser->at++;
        parser->line++;
    }
}

static Status close_tag(Parser *parser, char last) {
    const Token *token = &parser->token;
    if (token->kind != TOKEN_CLOSE || token->at[token->length - 2] != last)
        return template_unexpected(parser, last == '%' ? "`%}`" : "`}}`");
    skip_after(parser, token->at, last == '%');
    return STATUS_OK;
}

// --- statements; the tag's word has been taken

static const Ends ends_if = {{"elif", "else", "endif"}};
static const Ends ends_else = {{"endif"}};
static const Ends ends_for = {{"else", "endfor"}};
static const Ends ends_for_else = {{"endfor"}};

// The tag that ended a body: its word is the token.
static Status parse_if(Parser *parser, Node **out) {
    Node *node = *out = new_node(parser, NODE_IF);
    TRY(template_expression(parser, &node->value));
    TRY(close_tag(parser, '%'));
    TRY(parse_body(parser, &ends_if, &node->body));
    bool again = template_token_is(parser, "elif"), otherwise = template_token_is(parser, "else");
    TRY(template_advance(parser));
    if (again) {
        if (++parser->depth >= TEMPLATE_NESTING_MAX)
            return template_wrong(parser, "this is nested too deeply");
        TRY(parse_if(parser, &node->otherwise));
        parser->depth--;
        return STATUS_OK;
    }
    TRY(close_tag(parser, '%'));
    if (!otherwise) return STATUS_OK;
    TRY(parse_body(parser, &ends_else, &node->otherwise));
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

static Status parse_for(Parser *parser, Node **out) {
    Node *node = *out = new_node(parser, NODE_FOR);
    TRY(template_take_word(parser, "a variable", &node->text));
    if (template_token_is(parser, ",")) {
        TRY(template_advance(parser));
        TRY(template_take_word(parser, "a variable", &node->second));
    }
    TRY(template_expect(parser, "in", "`in`"));
    TRY(template_simple_expression(parser, &node->value));
    if (template_token_is(parser, "if")) {
        TRY(template_advance(parser));
        TRY(template_expression(parser, &node->filter));
    }
    TRY(close_tag(parser, '%'));
    TRY(parse_body(parser, &ends_for, &node->body));
    bool otherwise = template_token_is(parser, "else");
    TRY(template_advance(parser));
    TRY(close_tag(parser, '%'));
    if (!otherwise) return STATUS_OK;
    TRY(parse_body(parser, &ends_for_else, &node->otherwise));
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

static Status parse_set(Parser *parser, Node **out) {
    Node *node = *out = new_node(parser, NODE_SET);
    TRY(template_take_word(parser, "a variable", &node->text));
    if (template_token_is(parser, ".")) {
        TRY(template_advance(parser));
        TRY(template_take_word(parser, "a name", &node->second));
    }
    TRY(template_expect(parser, "=", "`=`"));
    TRY(template_expression(parser, &node->value));
    return close_tag(parser, '%');
}

// {% generation %} only marks what training looks at.
static Status parse_mark(Parser *parser, Node **out) {
    *out = new_node(parser, NODE_TEXT);
    return close_tag(parser, '%');
}

static const struct {
    const char *word;
    Status (*parse)(Parser *parser, Node **out);
} statements[] = {{"if", parse_if},
                  {"for", parse_for},
                  {"set", parse_set},
                  {"generation", parse_mark},
                  {"endgeneration", parse_mark}};

static Status parse_statement(Parser *parser, Node **out) {
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (template_token_is(parser, statements[i].word)) {
            TRY(template_advance(parser));
            return statements[i].parse(parser, out);
        }
    const Token *token = &parser->token;
    return fail(STATUS_FORMAT, "line %d of the template: there is no statement {%% %.*s %%} here",
                parser->line, token->length < 40 ? (int)token->length : 40, token->at);
}

static Status parse_output(Parser *parser, Node **out) {
    *out = new_node(parser, NODE_OUTPUT);
    TRY(template_advance(parser));
    TRY(template_expression(parser, &(*out)->value));
    return close_tag(parser, '}');
}

// --- texts

static const char *find_tag(const char *at, const char *end) {
    for (; end - at >= 2; at++)
        if (*at == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')) return at;
    return end;
}

// {%- takes the blanks before it along; {% and {# those from the beginning of their line.
static size_t kept_length(const char *text, size_t length, const char *tag, const char *end,
                          bool line_begins) {
    if (tag == end) return length;
    char sign = end - tag > 2 ? tag[2] : ' ';
    size_t kept = length;
    if (sign == '-') {
        while (kept > 0 && isspace((unsigned char)text[kept - 1])) kept--;
        return kept;
    }
    if (tag[1] == '{' || sign == '+') return length;
    while (kept > 0 && (text[kept - 1] == ' ' || text[kept - 1] == '\t')) kept--;
    return kept > 0 ? (text[kept - 1] == '\n' ? kept : length) : (line_begins ? 0 : length);
}

static Node *parse_text(Parser *parser, bool line_begins) {
    const char *tag = find_tag(parser->at, parser->end);
    size_t length = (size_t)(tag - parser->at);
    Node *node = new_node(parser, NODE_TEXT);
    node->length = kept_length(parser->at, length, tag, parser->end, line_begins);
    node->text = arena_copy_string(&parser->template->arena, parser->at, node->length);
    for (size_t i = 0; i < length; i++) parser->line += parser->at[i] == '\n';
    parser->at = tag;
    return node;
}

static Status skip_comment(Parser *parser) {
    const char *at = parser->at + 2;
    while (parser->end - at >= 2 && !(at[0] == '#' && at[1] == '}')) parser->line += *at++ == '\n';
    if (parser->end - at < 2) return template_wrong(parser, "a comment does not end");
    const char *close = at[-1] == '-' && at - 1 > parser->at + 1 ? at - 1 : at;
    parser->at = at + 2;
    skip_after(parser, close, true);
    return STATUS_OK;
}

static bool is_end(const Parser *parser, const Ends *ends) {
    for (int i = 0; ends && i < 3 && ends->words[i]; i++)
        if (template_token_is(parser, ends->words[i])) return true;
    return false;
}

// One tag; *out stays NULL for a comment and for the tag that ends the body.
static Status parse_tag(Parser *parser, const Ends *ends, Node **out, bool *ended) {
    char kind = parser->at[1];
    *out = NULL;
    if (kind == '#') return skip_comment(parser);
    parser->at += 2;
    if (parser->at < parser->end && (*parser->at == '-' || *parser->at == '+')) parser->at++;
    if (kind == '{') return parse_output(parser, out);
    TRY(template_advance(parser));
    *ended = is_end(parser, ends);
    return *ended ? STATUS_OK : parse_statement(parser, out);
}

static Status missing_end(const Parser *parser, const Ends *ends) {
    int last = 0;
    while (last < 2 && ends->words[last + 1]) last++;
    return fail(STATUS_FORMAT, "line %d of the template: {%% %s %%} is missing", parser->line,
                ends->words[last]);
}

static Status parse_body(Parser *parser, const Ends *ends, Node **out) {
    if (parser->depth == TEMPLATE_NESTING_MAX)
        return template_wrong(parser, "this is nested too deeply");
    parser->depth++;
    bool ended = false, line_begins = !ends || parser->at[-1] == '\n';
    while (parser->at < parser->end && !ended) {
        *out = parse_text(parser, line_begins);
        out = &(*out)->next;
        if (parser->at == parser->end) break;
        TRY(parse_tag(parser, ends, out, &ended));
        if (*out) out = &(*out)->next;
        line_begins = parser->at[-1] == '\n';
    }
    parser->depth--;
    return ended || !ends ? STATUS_OK : missing_end(parser, ends);
}

Status template_parse(const char *text, size_t length, Template **out) {
    Template *template = memory_allocate_zeroed(1, sizeof *template);
    if (length > 0 && text[length - 1] == '\n') length--; // as Jinja does
    Parser parser = {.at = text, .end = text + length, .template = template, .line = 1};
    Status status = parse_body(&parser, NULL, &template->body);
    if (status == STATUS_OK)
        *out = template;
    else
        template_free(template);
    return status;
}

void template_free(Template *template) {
    arena_free(&template->arena);
    free(template);
}
