// Regular expressions: what of them describes texts, without what looks around or back.
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "generate/grammar_internal.h"

enum { NESTING_MAX = 200, CODE_MAX = 0x10FFFF };

typedef VECTOR(Rule) Rules;
typedef VECTOR(CodeRange) Ranges;

typedef struct Reader {
    Grammar *grammar;
    const char *at, *end, *begin;
    bool in_string; // of JSON
    int depth;
} Reader;

static Status fail_here(const Reader *reader, const char *what) {
    return fail(STATUS_VALUE, "the regular expression, at byte %zu: %s",
                (size_t)(reader->at - reader->begin), what);
}

static bool take(Reader *reader, const char *text) {
    ASSERT(reader->at <= reader->end);
    size_t length = strlen(text);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0)
        return false;
    reader->at += length;
    return true;
}

// --- characters

static const CodeRange digits[] = {{'0', '9'}},
                       words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                       blanks[] = {{'\t', '\r'}, {' ', ' '}};

static void push_ranges(Ranges *ranges, const CodeRange *more, size_t count, bool negated) {
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (!negated) VECTOR_PUSH(ranges, more[i]);
        if (negated && more[i].first > next)
            VECTOR_PUSH(ranges, ((CodeRange){next, more[i].first - 1}));
        next = more[i].last + 1;
    }
    if (negated) VECTOR_PUSH(ranges, ((CodeRange){next, CODE_MAX}));
}

// \d \w \s and their opposites.
static bool take_kind(Reader *reader, Ranges *ranges) {
    static const struct {
        const char *name;
        const CodeRange *ranges;
        size_t count;
        bool negated;
    } kinds[] = {{"\\d", digits, 1, false}, {"\\D", digits, 1, true},  {"\\w", words, 4, false},
                 {"\\W", words, 4, true},   {"\\s", blanks, 2, false}, {"\\S", blanks, 2, true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (take(reader, kinds[i].name)) {
            push_ranges(ranges, kinds[i].ranges, kinds[i].count, kinds[i].negated);
            return true;
        }
    return false;
}

static Status read_hex(Reader *reader, int count, uint32_t *out) {
    ASSERT(count > 0 && count <= 8);
    *out = 0;
    for (int i = 0; i < count; i++, reader->at++) {
        char c = reader->at < reader->end ? *reader->at : '\0';
        const char *place = strchr("0123456789abcdef", c >= 'A' && c <= 'F' ? c + 32 : c);
        if (c == '\0' || !place) return fail_here(reader, "a hexadecimal digit is missing");
        *out = *out * 16 + (uint32_t)(place - "0123456789abcdef");
    }
    return STATUS_OK;
}

static Status read_escape(Reader *reader, uint32_t *out) {
    static const char names[] = "nrtfv0", codes[] = "\n\r\t\f\v";
    if (take(reader, "x")) return read_hex(reader, 2, out);
    if (take(reader, "u")) return read_hex(reader, 4, out);
    if (reader->at == reader->end) return fail_here(reader, "it ends after \\");
    char c = *reader->at;
    const char *place = is_character_of(c, names) ? strchr(names, c) : NULL;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter && !place)
        return fail_here(reader,
                         "this escape is not supported (\\d \\w \\s \\n \\t \\xHH ... are)");
    *out = place ? (uint32_t)(unsigned char)codes[place - names] : (uint32_t)(unsigned char)c;
    reader->at++;
    return STATUS_OK;
}

static Status read_character(Reader *reader, uint32_t *out) {
    if (take(reader, "\\")) return read_escape(reader, out);
    ASSERT(reader->at <= reader->end);
    size_t length = utf8_decode(reader->at, (size_t)(reader->end - reader->at), out);
    if (length == 0) *out = 0xFFFD; // a byte that begins no character
    reader->at += length ? length : 1;
    return STATUS_OK;
}

static bool holds(const CodeRange *ranges, size_t count, uint32_t code) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].first <= code && code <= ranges[i].last) return true;
    return false;
}

// The ranges of what is in none of these, which are in any order.
static void push_outside(Ranges *out, const Ranges *ranges) {
    for (uint32_t low = 0; low <= CODE_MAX;) {
        uint32_t next = CODE_MAX + 1, end = low;
        for (size_t i = 0; i < ranges->count; i++) {
            CodeRange range = ranges->items[i];
            if (range.first <= low && range.last >= end) end = range.last + 1;
            if (range.first > low && range.first < next) next = range.first;
        }
        if (end == low) {
            VECTOR_PUSH(out, ((CodeRange){low, next - 1}));
            end = next;
        }
        low = end;
    }
}

// One of the ranges as JSON writes it within a string: as itself or, where it must, by an escape.
static Rule string_class(Grammar *grammar, const Ranges *ranges, bool negated) {
    static const CodeRange escaped[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    static const struct {
        uint32_t code;
        const char *text;
    } escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}};
    SCOPED_MEMORY Rules rules = {0};
    Ranges others = {0}; // no character of the class, or one that is not written as itself
    if (negated)
        push_ranges(&others, ranges->items, ranges->count, false);
    else
        push_outside(&others, ranges);
    size_t outside = others.count;
    push_ranges(&others, escaped, 3, false);
    VECTOR_PUSH(&rules, grammar_class(grammar, others.items, others.count, true));
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (!holds(others.items, outside, escapes[i].code))
            VECTOR_PUSH(&rules, grammar_literal(grammar, escapes[i].text, 2));
    Rule rule = grammar_choice(grammar, rules.items, rules.count);
    VECTOR_FREE(&others);
    return rule;
}

static Rule class_rule(const Reader *reader, const Ranges *ranges, bool negated) {
    if (reader->in_string) return string_class(reader->grammar, ranges, negated);
    return grammar_class(reader->grammar, ranges->items, ranges->count, negated);
}

static Status read_range(Reader *reader, Ranges *ranges) {
    CodeRange range;
    if (reader->end - reader->at > 1 && reader->at[0] == '[' && memchr(":.=", reader->at[1], 3))
        return fail_here(reader, "classes of a name, as [:alpha:], are not supported");
    if (take_kind(reader, ranges)) return STATUS_OK;
    TRY(read_character(reader, &range.first));
    range.last = range.first;
    if (reader->at + 1 < reader->end && *reader->at == '-' && reader->at[1] != ']') {
        reader->at++;
        TRY(read_character(reader, &range.last));
    }
    if (range.last < range.first) return fail_here(reader, "a range goes down");
    VECTOR_PUSH(ranges, range);
    return STATUS_OK;
}

static Status read_class(Reader *reader, Rule *out) {
    bool negated = take(reader, "^");
    SCOPED_MEMORY Ranges ranges = {0};
    Status status = STATUS_OK;
    do
        status = reader->at == reader->end ? fail_here(reader, "a class has no ]")
                                           : read_range(reader, &ranges);
    while (status == STATUS_OK && !take(reader, "]"));
    *out = class_rule(reader, &ranges, negated);
    return status;
}

// --- structure

static Status read_choice(Reader *reader, Rule *out);

static Status read_group(Reader *reader, Rule *out) {
    if (!take(reader, "?:") && reader->at < reader->end && *reader->at == '?')
        return fail_here(reader, "of the groups with ? only (?: ) is supported");
    if (++reader->depth > NESTING_MAX) return fail_here(reader, "it is nested too deeply");
    TRY(read_choice(reader, out));
    reader->depth--;
    return take(reader, ")") ? STATUS_OK : fail_here(reader, "a group has no )");
}

static Status read_atom(Reader *reader, Rule *out) {
    Ranges ranges = {0};
    Status status = STATUS_OK;
    if (take(reader, "(")) return read_group(reader, out);
    if (take(reader, "[")) return read_class(reader, out);
    if (is_character_of(*reader->at, "*+?{"))
        return fail_here(reader, "there is nothing to repeat");
    if (is_character_of(*reader->at, "^$"))
        return fail_here(reader, "^ and $ are supported at its ends only");
    bool any = take(reader, ".");
    if (any) {
        VECTOR_PUSH(&ranges, ((CodeRange){'\n', '\n'}));
    } else if (!take_kind(reader, &ranges)) {
        CodeRange range = {0};
        status = read_character(reader, &range.first);
        range.last = range.first;
        VECTOR_PUSH(&ranges, range);
    }
    *out = class_rule(reader, &ranges, any);
    VECTOR_FREE(&ranges);
    return status;
}

static Status read_number(Reader *reader, int64_t *out) {
    ASSERT(reader->at <= reader->end);
    const char *begin = reader->at;
    *out = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        if (*out <= GRAMMAR_REPEAT_MAX) *out = *out * 10 + (*reader->at - '0');
    if (reader->at == begin) return fail_here(reader, "a number of times is missing");
    if (*out > GRAMMAR_REPEAT_MAX) return fail_here(reader, "more than 4096 times");
    return STATUS_OK;
}

static Status read_times(Reader *reader, int64_t *least, int64_t *most) {
    TRY(read_number(reader, least));
    *most = *least;
    if (take(reader, ",")) {
        *most = -1;
        if (reader->at < reader->end && *reader->at != '}') TRY(read_number(reader, most));
    }
    if (*most >= 0 && *most < *least) return fail_here(reader, "a range of times goes down");
    return take(reader, "}") ? STATUS_OK : fail_here(reader, "a number of times has no }");
}

static Status read_repeated(Reader *reader, Rule *out) {
    TRY(read_atom(reader, out));
    for (;;) {
        int64_t least = 0, most = -1;
        if (take(reader, "?"))
            most = 1;
        else if (take(reader, "+"))
            least = 1;
        else if (take(reader, "{"))
            TRY(read_times(reader, &least, &most));
        else if (!take(reader, "*"))
            return STATUS_OK;
        *out = grammar_repeat(reader->grammar, *out, least, most);
        (void)take(reader, "?"); // few or many times: the same texts
    }
}

static bool at_end(const Reader *reader) {
    bool dollar = reader->at + 1 == reader->end && *reader->at == '$' && reader->depth == 0;
    return reader->at == reader->end || *reader->at == '|' || *reader->at == ')' || dollar;
}

static Status read_sequence(Reader *reader, Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    Status status = STATUS_OK;
    while (status == STATUS_OK && !at_end(reader)) {
        Rule rule = 0;
        status = read_repeated(reader, &rule);
        VECTOR_PUSH(&rules, rule);
    }
    *out = grammar_sequence(reader->grammar, rules.items, rules.count);
    return status;
}

static Status read_choice(Reader *reader, Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    Status status;
    do {
        Rule rule = 0;
        status = read_sequence(reader, &rule);
        VECTOR_PUSH(&rules, rule);
    } while (status == STATUS_OK && take(reader, "|"));
    *out = grammar_choice(reader->grammar, rules.items, rules.count);
    return status;
}

Status grammar_regex(Grammar *grammar, const char *text, size_t length, bool in_string, Rule *out) {
    Reader reader = {grammar, text, text + length, text, in_string, 0};
    ASSERT(text != NULL || length == 0);
    bool begins = take(&reader, "^");
    TRY(read_choice(&reader, out));
    bool ends = take(&reader, "$");
    if (reader.at < reader.end) return fail_here(&reader, "a ) has no group");
    if (!in_string) return STATUS_OK;
    Ranges none = {0};
    Rule any = grammar_repeat(grammar, string_class(grammar, &none, true), 0, -1);
    Rule empty = grammar_literal(grammar, "", 0);
    *out = grammar_sequence(grammar, (Rule[]){begins ? empty : any, *out, ends ? empty : any}, 3);
    return STATUS_OK;
}

Status constraint_from_regex(const char *text, size_t length, Constraint **out) {
    Grammar *grammar = grammar_new();
    Rule root = 0;
    Status status = grammar_regex(grammar, text, length, false, &root);
    if (status == STATUS_OK)
        return grammar_constraint(grammar, root, "the regular expression", out);
    grammar_free(grammar);
    return status;
}
