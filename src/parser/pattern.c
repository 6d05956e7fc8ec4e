// Patterns: names and tuples of names (let, for), and those of match, with match itself.
#include <stdlib.h>
#include <string.h>

#include "parser/state.h"

static Pattern *pattern_new(Parser *parser, SourcePos begin) {
    Pattern *pattern = arena_allocate(parser->arena, sizeof *pattern);
    pattern->span = (Span){begin, parser_end(parser)};
    return pattern;
}

static Pattern *parse_name_pattern(Parser *parser) {
    Word name;
    if (!parser_take_name(parser, "a name", &name)) return NULL;
    Pattern *pattern = pattern_new(parser, name.span.begin);
    pattern->kind = strcmp(name.text, "_") == 0 ? PATTERN_ANY : PATTERN_BIND;
    pattern->name = name;
    return pattern;
}

// (a, b, ...), with `part` reading each member. One member without a comma is that member.
static Pattern *parse_tuple_pattern(Parser *parser, Pattern *(*part)(Parser *)) {
    ASSERT(parser_is(parser, TOKEN_LEFT_PAREN));
    SourcePos begin = parser_begin(parser);
    Pattern **parts = NULL;
    size_t count = 0;
    bool comma = false;
    if (!parser_enter(parser)) return NULL;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        Pattern *member = part(parser);
        if (!member) return NULL;
        LIST_PUSH(parser, parts, count, member);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
        comma = true;
    }
    if (!parser_close_bracket(parser, &outer, "tuple")) return NULL;
    parser_leave(parser);
    if (count == 1 && !comma) return parts[0];
    Pattern *pattern = pattern_new(parser, begin);
    pattern->kind = PATTERN_TUPLE;
    pattern->parts = parts;
    pattern->part_count = count;
    return pattern;
}

Pattern *parse_binding_pattern(Parser *parser) {
    if (parser_is(parser, TOKEN_LEFT_PAREN))
        return parse_tuple_pattern(parser, parse_binding_pattern);
    if (parser_is(parser, TOKEN_LEFT_BRACKET) || parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected_help(parser, "a name",
                                         "lists and tuples are taken apart by names in "
                                         "parentheses: (a, b)");
    return parse_name_pattern(parser);
}

static Pattern *parse_pattern(Parser *parser);

// A constant: a number (with a minus perhaps), a string, true, false, none.
static Node *parse_constant(Parser *parser) {
    bool negative = parser_is(parser, TOKEN_MINUS);
    const Token *token = parser_ahead(parser, negative);
    bool number = token->kind == TOKEN_INT || token->kind == TOKEN_FLOAT;
    if (number) return parse_number(parser, negative);
    bool constant = token->kind == TOKEN_STRING || token->kind == TOKEN_TRUE ||
                    token->kind == TOKEN_FALSE || token->kind == TOKEN_NONE;
    if (constant && !negative) return parse_primary(parser);
    return parser_fail_expected_help(parser, "a pattern",
                                     "a pattern is a constant, a range, a name, `_`, a tuple, "
                                     "Name { field: pattern } or several joined by `|`");
}

static Pattern *parse_constant_pattern(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    Node *low = parse_constant(parser), *high = NULL;
    if (!low) return NULL;
    bool inclusive = parser_is(parser, TOKEN_DOT_DOT_EQUAL);
    if (inclusive || parser_is(parser, TOKEN_DOT_DOT)) {
        parser_next(parser);
        if (!(high = parse_constant(parser))) return NULL;
        bool numbers = (low->kind == NODE_INT || low->kind == NODE_FLOAT) &&
                       (high->kind == NODE_INT || high->kind == NODE_FLOAT);
        if (!numbers)
            return FAIL(parser, .span = {begin, parser_end(parser)},
                        .message = "the ends of a range in a pattern are numbers");
    }
    Pattern *pattern = pattern_new(parser, begin);
    pattern->kind = high ? PATTERN_RANGE : PATTERN_LITERAL;
    pattern->low = low;
    pattern->high = high;
    pattern->inclusive = inclusive;
    return pattern;
}

// Name { field: pattern, field, .. }, of a module perhaps
static Pattern *parse_struct_pattern(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_NAME));
    Pattern *pattern = pattern_new(parser, parser_begin(parser));
    pattern->kind = PATTERN_STRUCT;
    pattern->module = parse_module(parser);
    pattern->name = parser_word(parser, parser_next(parser));
    size_t field_count = 0;
    if (!parser_enter(parser)) return NULL;
    Context outer = parser_open_bracket(parser);
    while (!parser_at_closer(parser)) {
        if (parser_accept(parser, TOKEN_DOT_DOT)) {
            pattern->rest = true;
            parser_accept(parser, TOKEN_COMMA);
            break;
        }
        Word field;
        if (!parser_take_word(parser, "a field name or `..`", &field)) return NULL;
        Pattern *part;
        if (parser_accept(parser, TOKEN_COLON)) {
            if (!(part = parse_pattern(parser))) return NULL;
        } else { // the field's own name
            part = pattern_new(parser, field.span.begin);
            part->kind = PATTERN_BIND;
            part->name = field;
        }
        LIST_PUSH(parser, pattern->fields, field_count, field);
        LIST_PUSH(parser, pattern->parts, pattern->part_count, part);
        if (!parser_accept(parser, TOKEN_COMMA)) break;
    }
    if (!parser_close_bracket(parser, &outer, "pattern")) return NULL;
    parser_leave(parser);
    pattern->span.end = parser_end(parser);
    return pattern;
}

static Pattern *parse_single_pattern(Parser *parser) {
    if (parser_is(parser, TOKEN_LEFT_PAREN)) return parse_tuple_pattern(parser, parse_pattern);
    if (!parser_is(parser, TOKEN_NAME)) return parse_constant_pattern(parser);
    size_t last = parser_at_module(parser) ? 2 : 0; // of the struct's name
    if (parser_ahead(parser, last + 1)->kind == TOKEN_LEFT_BRACE)
        return parse_struct_pattern(parser);
    return parse_name_pattern(parser);
}

static Pattern *parse_pattern(Parser *parser) {
    SourcePos begin = parser_begin(parser);
    Pattern *first = parse_single_pattern(parser);
    if (!first || !parser_is(parser, TOKEN_BAR)) return first;
    Pattern **parts = NULL;
    size_t count = 0;
    LIST_PUSH(parser, parts, count, first);
    while (parser_accept(parser, TOKEN_BAR)) {
        Pattern *part = parse_single_pattern(parser);
        if (!part) return NULL;
        LIST_PUSH(parser, parts, count, part);
    }
    Pattern *pattern = pattern_new(parser, begin);
    pattern->kind = PATTERN_OR;
    pattern->parts = parts;
    pattern->part_count = count;
    return pattern;
}

static bool parse_arm(Parser *parser, MatchArm *out) {
    *out = (MatchArm){.pattern = parse_pattern(parser)};
    if (!out->pattern) return false;
    if (parser_accept(parser, TOKEN_IF) && !(out->guard = parse_expression(parser))) return false;
    if (!parser_accept(parser, TOKEN_FAT_ARROW)) {
        parser_fail_expected_help(parser, "`=>` after the pattern",
                                  "an arm is written pattern => value");
        return false;
    }
    return (out->body = parse_arm_body(parser)) != NULL;
}

// Arms end with a comma or their line; one that is a block with its brace.
static bool end_arm(Parser *parser, const MatchArm *arm) {
    if (parser_accept(parser, TOKEN_COMMA)) return true;
    if (parser_at_new_line(parser) || parser_is(parser, TOKEN_RIGHT_BRACE)) return true;
    if (arm->body->kind == NODE_BLOCK && !parser_at_closer(parser)) return true;
    return parser_fail_expected(parser, "`,` or a newline after this arm") != NULL;
}

Node *parse_match(Parser *parser) {
    ASSERT(parser_is(parser, TOKEN_MATCH));
    SourcePos begin = parser_skip(parser);
    Node *subject = parse_head(parser);
    if (!subject) return NULL;
    if (!parser_is(parser, TOKEN_LEFT_BRACE))
        return parser_fail_expected(parser, "`{` to begin the arms of the match");
    if (!parser_enter(parser)) return NULL;
    MatchArm *arms = NULL;
    size_t count = 0;
    Context outer = parser_open_bracket(parser);
    parser->context.in_block = true;
    while (!parser_at_closer(parser)) {
        MatchArm arm;
        if (!parse_arm(parser, &arm) || !end_arm(parser, &arm)) return NULL;
        LIST_PUSH(parser, arms, count, arm);
    }
    if (!parser_close_bracket(parser, &outer, "match")) return NULL;
    parser_leave(parser);
    Node *node = node_new(parser, NODE_MATCH, begin);
    node->as.match.subject = subject;
    node->as.match.arms = arms;
    node->as.match.count = count;
    bool fits = node_adopt(parser, node, subject);
    for (size_t i = 0; i < count && fits; i++)
        fits = node_adopt(parser, node, arms[i].guard) && node_adopt(parser, node, arms[i].body);
    return fits ? node : NULL;
}
