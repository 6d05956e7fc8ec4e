// Templates to trees: text is cut at tags, tags make statements.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/template_parser.h"

// Where a list of statements ends: {% else %}, {% endif %} ...; NULL: at the end of the text.
typedef struct Ends {
    const char *words[3];
} Ends;

static Status parse_body(TemplateParser *parser, const Ends *ends, TemplateNode **out);

static TemplateNode *new_node(TemplateParser *parser, TemplateNodeKind kind) {
    TemplateNode *node = arena_allocate(&parser->template->arena, sizeof *node);
    node->kind = kind;
    node->line = parser->line;
    return node;
}

static void skip_blanks(TemplateParser *parser) {
    while (parser->at < parser->end && isspace((unsigned char)*parser->at))
        parser->line += *parser->at++ == '\n';
}

// After a tag: -%} takes all blanks with it, %} and #} a newline.
static void skip_after(TemplateParser *parser, const char *close, bool block) {
    if (*close == '-')
        skip_blanks(parser);
    else if (block && *close != '+' && parser->at < parser->end && *parser->at == '\n') {
        parser->at++;
        parser->line++;
    }
}

static Status close_tag(TemplateParser *parser, char last) {
    const TemplateToken *token = &parser->token;
    if (token->kind != TEMPLATE_TOKEN_CLOSE || token->at[token->length - 2] != last)
        return template_unexpected(parser, last == '%' ? "`%}`" : "`}}`");
    skip_after(parser, token->at, last == '%');
    return STATUS_OK;
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

// --- statements; the tag's word has been taken

static const Ends ends_if = {{"elif", "else", "endif"}};
static const Ends ends_else = {{"endif"}};
static const Ends ends_for = {{"else", "endfor"}};
static const Ends ends_for_else = {{"endfor"}};
static const Ends ends_set = {{"endset"}};
static const Ends ends_with = {{"endwith"}};
static const Ends ends_filter = {{"endfilter"}};
static const Ends ends_macro = {{"endmacro"}};
static const Ends ends_call = {{"endcall"}};

// A body and the tag that alone ends it.
static Status parse_whole_body(TemplateParser *parser, const Ends *ends, TemplateNode **out) {
    TRY(close_tag(parser, '%'));
    TRY(parse_body(parser, ends, out));
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

// The tag that ended a body: its word is the token.
static Status template_parse_if(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_IF);
    TRY(template_expression(parser, &node->value));
    TRY(close_tag(parser, '%'));
    TRY(parse_body(parser, &ends_if, &node->body));
    bool again = template_token_is(parser, "elif"), otherwise = template_token_is(parser, "else");
    TRY(template_advance(parser));
    if (again) {
        if (++parser->depth >= TEMPLATE_NESTING_MAX)
            return template_wrong(parser, "this is nested too deeply");
        TRY(template_parse_if(parser, &node->otherwise));
        ASSERT(parser->depth > 0);
        parser->depth--;
        return STATUS_OK;
    }
    TRY(close_tag(parser, '%'));
    if (!otherwise) return STATUS_OK;
    TRY(parse_body(parser, &ends_else, &node->otherwise));
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

// One variable, or several with commas between them, perhaps in parentheses.
static Status parse_names(TemplateParser *parser, TemplateName **out) {
    bool bracket, more = true;
    TRY(template_take(parser, "(", &bracket));
    while (more) {
        TemplateName *name = *out = arena_allocate(&parser->template->arena, sizeof *name);
        TRY(template_take_word(parser, "a variable", &name->text));
        TRY(template_take(parser, ",", &more));
        out = &name->next;
    }
    return bracket ? template_expect(parser, ")", "`)`") : STATUS_OK;
}

static Status parse_for_head(TemplateParser *parser, TemplateNode *node) {
    bool filtered;
    TRY(parse_names(parser, &node->names));
    TRY(template_expect(parser, "in", "`in`"));
    TRY(template_simple_expression(parser, &node->value));
    TRY(template_take(parser, "if", &filtered));
    if (filtered) TRY(template_expression(parser, &node->filter));
    return close_tag(parser, '%');
}

static Status template_parse_for(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_FOR);
    TRY(parse_for_head(parser, node));
    parser->loops++;
    TRY(parse_body(parser, &ends_for, &node->body));
    ASSERT(parser->loops > 0);
    parser->loops--;
    bool otherwise = template_token_is(parser, "else");
    TRY(template_advance(parser));
    TRY(close_tag(parser, '%'));
    if (!otherwise) return STATUS_OK;
    TRY(parse_body(parser, &ends_for_else, &node->otherwise));
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

// The end of a loop or of an iteration.
static Status parse_jump(TemplateParser *parser, TemplateNodeKind kind, TemplateNode **out) {
    *out = new_node(parser, kind);
    if (parser->loops == 0) return template_wrong(parser, "there is no loop around this");
    return close_tag(parser, '%');
}

static Status parse_break(TemplateParser *parser, TemplateNode **out) {
    return parse_jump(parser, TEMPLATE_NODE_BREAK, out);
}

static Status parse_continue(TemplateParser *parser, TemplateNode **out) {
    return parse_jump(parser, TEMPLATE_NODE_CONTINUE, out);
}

// What filters of a body's text are applied to.
static TemplateExpr *body_expr(TemplateParser *parser) {
    TemplateExpr *expr = arena_allocate(&parser->template->arena, sizeof *expr);
    expr->kind = TEMPLATE_EXPR_NAME;
    expr->line = parser->line;
    expr->text = TEMPLATE_BODY_NAME;
    return expr;
}

// {% set x %} text {% endset %}
static Status parse_set_body(TemplateParser *parser, TemplateNode *node) {
    if (template_token_is(parser, "|")) {
        node->filter = body_expr(parser);
        TRY(template_filters(parser, &node->filter));
    }
    return parse_whole_body(parser, &ends_set, &node->body);
}

// {% filter upper %} text {% endfilter %}
static Status parse_filter(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_FILTER);
    node->filter = body_expr(parser);
    TRY(template_filter_names(parser, &node->filter));
    return parse_whole_body(parser, &ends_filter, &node->body);
}

// {% with a = 1, b = 2 %} ... {% endwith %}
static Status template_parse_with(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_WITH);
    bool more = parser->token.kind != TEMPLATE_TOKEN_CLOSE;
    for (TemplateName **link = &node->names; more; link = &(*link)->next) {
        *link = arena_allocate(&parser->template->arena, sizeof **link);
        TRY(template_take_word(parser, "a variable", &(*link)->text));
        TRY(template_expect(parser, "=", "`=`"));
        TRY(template_expression(parser, &(*link)->fallback));
        TRY(template_take(parser, ",", &more));
    }
    return parse_whole_body(parser, &ends_with, &node->body);
}

static Status parse_set(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_SET);
    bool field;
    TRY(parse_names(parser, &node->names));
    TRY(template_take(parser, ".", &field));
    if (field) TRY(template_take_word(parser, "a name", &node->field));
    bool text = parser->token.kind == TEMPLATE_TOKEN_CLOSE || template_token_is(parser, "|");
    if (text && !node->names->next) return parse_set_body(parser, node);
    TRY(template_expect(parser, "=", "`=`"));
    TRY(template_tuple(parser, &node->value));
    return close_tag(parser, '%');
}

static Status parse_parameters(TemplateParser *parser, TemplateName **out) {
    TRY(template_expect(parser, "(", "`(`"));
    while (!template_token_is(parser, ")")) {
        TemplateName *name = *out = arena_allocate(&parser->template->arena, sizeof *name);
        bool given;
        TRY(template_take_word(parser, "a parameter", &name->text));
        TRY(template_take(parser, "=", &given));
        if (given) TRY(template_expression(parser, &name->fallback));
        if (!template_token_is(parser, ")")) TRY(template_expect(parser, ",", "`,`"));
        out = &name->next;
    }
    return template_advance(parser);
}

// A body of its own, which loops around it do not reach into.
static Status parse_macro_body(TemplateParser *parser, const Ends *ends, TemplateNode *node) {
    int loops = parser->loops;
    parser->loops = 0;
    TRY(parse_whole_body(parser, ends, &node->body));
    parser->loops = loops;
    return STATUS_OK;
}

static Status parse_macro(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_MACRO);
    TRY(template_take_word(parser, "the name of the macro", &node->text));
    TRY(parse_parameters(parser, &node->names));
    return parse_macro_body(parser, &ends_macro, node);
}

// {% call(x) name(arguments) %} what the macro gets by caller(x) {% endcall %}
static Status parse_call_block(TemplateParser *parser, TemplateNode **out) {
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_CALL);
    node->text = "caller";
    if (template_token_is(parser, "(")) TRY(parse_parameters(parser, &node->names));
    TRY(template_expression(parser, &node->value));
    if (node->value->kind != TEMPLATE_EXPR_CALL)
        return template_unexpected(parser, "the call of a macro before it");
    return parse_macro_body(parser, &ends_call, node);
}

// The tag {% endraw %} from `at` on: its end, or NULL.
static const char *find_end_raw(TemplateParser *parser, const char *at) {
    TemplateParser tag = *parser;
    tag.at = at + 2;
    if (tag.at < tag.end && (*tag.at == '-' || *tag.at == '+')) tag.at++;
    while (tag.at < tag.end && isspace((unsigned char)*tag.at)) tag.at++;
    bool found = tag.end - tag.at > 6 && memcmp(tag.at, "endraw", 6) == 0 &&
                 !isalnum((unsigned char)tag.at[6]) && tag.at[6] != '_';
    return found ? tag.at + 6 : NULL;
}

// {% raw %} what has no tags {% endraw %}
static Status parse_raw(TemplateParser *parser, TemplateNode **out) {
    const TemplateToken *token = &parser->token;
    TemplateNode *node = *out = new_node(parser, TEMPLATE_NODE_TEXT);
    if (token->kind != TEMPLATE_TOKEN_CLOSE) return template_unexpected(parser, "`%}`");
    if (*token->at == '-') skip_blanks(parser);
    const char *at = parser->at, *end = NULL;
    for (; parser->end - at >= 2 && !end; at++)
        if (at[0] == '{' && at[1] == '%') end = find_end_raw(parser, at);
    if (!end) return template_wrong(parser, "{% endraw %} is missing");
    size_t length = (size_t)(--at - parser->at);
    node->length = kept_length(parser->at, length, at, parser->end, parser->at[-1] == '\n');
    node->text = arena_copy_string(&parser->template->arena, parser->at, node->length);
    for (size_t i = 0; i < length; i++) parser->line += parser->at[i] == '\n';
    parser->at = end;
    TRY(template_advance(parser));
    return close_tag(parser, '%');
}

static Status parse_foreign(TemplateParser *parser, TemplateNode **out) {
    (void)out;
    return template_wrong(parser, "a chat's template stands alone: it cannot include, import or "
                                  "extend another one");
}

// {% generation %} only marks what training looks at.
static Status parse_mark(TemplateParser *parser, TemplateNode **out) {
    *out = new_node(parser, TEMPLATE_NODE_TEXT);
    return close_tag(parser, '%');
}

static const struct {
    const char *word;
    Status (*parse)(TemplateParser *parser, TemplateNode **out);
} statements[] = {
    {"if", template_parse_if},     {"for", template_parse_for},  {"set", parse_set},
    {"macro", parse_macro},        {"call", parse_call_block},   {"filter", parse_filter},
    {"with", template_parse_with}, {"raw", parse_raw},           {"include", parse_foreign},
    {"import", parse_foreign},     {"from", parse_foreign},      {"extends", parse_foreign},
    {"break", parse_break},        {"continue", parse_continue}, {"generation", parse_mark},
    {"endgeneration", parse_mark}};

static Status template_parse_statement(TemplateParser *parser, TemplateNode **out) {
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (template_token_is(parser, statements[i].word)) {
            TRY(template_advance(parser));
            return statements[i].parse(parser, out);
        }
    const TemplateToken *token = &parser->token;
    return fail(STATUS_FORMAT, "line %d of the template: there is no statement {%% %.*s %%} here",
                parser->line, token->length < 40 ? (int)token->length : 40, token->at);
}

static Status parse_output(TemplateParser *parser, TemplateNode **out) {
    *out = new_node(parser, TEMPLATE_NODE_OUTPUT);
    TRY(template_advance(parser));
    TRY(template_tuple(parser, &(*out)->value));
    return close_tag(parser, '}');
}

// --- texts

static const char *find_tag(const char *at, const char *end) {
    for (; end - at >= 2; at++)
        if (*at == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')) return at;
    return end;
}

static TemplateNode *parse_text(TemplateParser *parser, bool line_begins) {
    const char *tag = find_tag(parser->at, parser->end);
    size_t length = (size_t)(tag - parser->at);
    TemplateNode *node = new_node(parser, TEMPLATE_NODE_TEXT);
    node->length = kept_length(parser->at, length, tag, parser->end, line_begins);
    node->text = arena_copy_string(&parser->template->arena, parser->at, node->length);
    for (size_t i = 0; i < length; i++) parser->line += parser->at[i] == '\n';
    parser->at = tag;
    return node;
}

static Status skip_comment(TemplateParser *parser) {
    const char *at = parser->at + 2;
    while (parser->end - at >= 2 && !(at[0] == '#' && at[1] == '}')) parser->line += *at++ == '\n';
    if (parser->end - at < 2) return template_wrong(parser, "a comment does not end");
    const char *close = at[-1] == '-' && at - 1 > parser->at + 1 ? at - 1 : at;
    parser->at = at + 2;
    skip_after(parser, close, true);
    return STATUS_OK;
}

static bool is_end(const TemplateParser *parser, const Ends *ends) {
    for (int i = 0; ends && i < 3 && ends->words[i]; i++)
        if (template_token_is(parser, ends->words[i])) return true;
    return false;
}

// One tag; *out stays NULL for a comment and for the tag that ends the body.
static Status parse_tag(TemplateParser *parser, const Ends *ends, TemplateNode **out, bool *ended) {
    char kind = parser->at[1];
    *out = NULL;
    if (kind == '#') return skip_comment(parser);
    parser->at += 2;
    if (parser->at < parser->end && (*parser->at == '-' || *parser->at == '+')) parser->at++;
    if (kind == '{') return parse_output(parser, out);
    TRY(template_advance(parser));
    *ended = is_end(parser, ends);
    return *ended ? STATUS_OK : template_parse_statement(parser, out);
}

static Status missing_end(const TemplateParser *parser, const Ends *ends) {
    int last = 0;
    while (last < 2 && ends->words[last + 1]) last++;
    return fail(STATUS_FORMAT, "line %d of the template: {%% %s %%} is missing", parser->line,
                ends->words[last]);
}

static Status parse_body(TemplateParser *parser, const Ends *ends, TemplateNode **out) {
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
    ASSERT(parser->depth > 0);
    parser->depth--;
    return ended || !ends ? STATUS_OK : missing_end(parser, ends);
}

// Every kind of line ends as \n does; the last one is not part of the text. As Jinja has it.
static void take_text(const char *text, size_t length, Text *out) {
    for (size_t i = 0; i < length; i++) {
        bool pair = text[i] == '\r' && i + 1 < length && text[i + 1] == '\n';
        if (!pair) text_append_char(out, text[i] == '\r' ? '\n' : text[i]);
    }
    if (out->length > 0 && out->bytes[out->length - 1] == '\n') out->length--;
}

Status template_parse(const char *text, size_t length, Template **out) {
    Template *template = memory_allocate_zeroed(1, sizeof *template);
    SCOPED_TEXT(source);
    take_text(text, length, &source);
    const char *begin = text_get(&source);
    TemplateParser parser = {
        .at = begin, .end = begin + source.length, .template = template, .line = 1};
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
