// Grammars as llama.cpp's GBNF writes them: `name ::= "text" [a-z] other | (...)* x{2,3}`, comments
// after #, the rule `root` first.
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "generate/grammar_internal.h"

enum { NESTING_MAX = 200 };

typedef struct Named {
    char *name;
    Rule rule;
    bool defined;
    UT_hash_handle hh;
} Named;

typedef struct Reader {
    Grammar *grammar;
    const char *at, *end, *begin;
    Named *names;
    int depth;
} Reader;

typedef VECTOR(Rule) Rules;

static Status fail_here(const Reader *reader, const char *wanted) {
    int line = 1;
    for (const char *c = reader->begin; c < reader->at; c++) line += *c == '\n';
    size_t left = (size_t)(reader->end - reader->at);
    const char *line_end = memchr(reader->at, '\n', left);
    size_t length = line_end ? (size_t)(line_end - reader->at) : left;
    if (length > 20) length = 20;
    SCOPED_TEXT(shown);
    text_append_quoted(&shown, reader->at, length);
    return fail(STATUS_VALUE, "the grammar, line %d: expected %s at %s", line, wanted,
                length ? text_get(&shown) : "its end");
}

// --- words

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

// Blanks and comments; line ends only where they do not end a rule.
static void skip(Reader *reader, bool lines) {
    while (reader->at < reader->end) {
        char c = *reader->at;
        if (c == '#')
            while (reader->at < reader->end && *reader->at != '\n') reader->at++;
        else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n'))
            reader->at++;
        else
            return;
    }
}

static bool take(Reader *reader, const char *text) {
    size_t length = strlen(text);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, text, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static Named *named(Reader *reader, const char *name, size_t length) {
    Named *found;
    HASH_FIND(hh, reader->names, name, length, found);
    if (found) return found;
    found = memory_allocate_zeroed(1, sizeof *found);
    found->name = memory_copy_string(name, length);
    found->rule = grammar_declare(reader->grammar);
    HASH_ADD_KEYPTR(hh, reader->names, found->name, length, found);
    return found;
}

static size_t word_length(const Reader *reader) {
    size_t length = 0;
    while (reader->at + length < reader->end && is_word(reader->at[length])) length++;
    return length;
}

// --- characters

static Status read_hex(Reader *reader, int digits, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < digits; i++, reader->at++) {
        char c = reader->at < reader->end ? *reader->at : '\0';
        const char *place = strchr("0123456789abcdef", c >= 'A' && c <= 'F' ? c + 32 : c);
        if (c == '\0' || !place) return fail_here(reader, "a hexadecimal digit");
        *out = *out * 16 + (uint32_t)(place - "0123456789abcdef");
    }
    return STATUS_OK;
}

static Status read_character(Reader *reader, uint32_t *out) {
    if (reader->at == reader->end) return fail_here(reader, "a character");
    if (take(reader, "\\x")) return read_hex(reader, 2, out);
    if (take(reader, "\\u")) return read_hex(reader, 4, out);
    if (take(reader, "\\U")) {
        TRY(read_hex(reader, 8, out));
        return *out <= CODE_LAST ? STATUS_OK : fail_here(reader, "a code up to 0010FFFF before");
    }
    if (take(reader, "\\")) {
        static const char names[] = "nrt\\\"[]-^", codes[] = "\n\r\t\\\"[]-^";
        const char *place = reader->at < reader->end ? strchr(names, *reader->at) : NULL;
        if (!place || !*place) return fail_here(reader, "n, r, t, x, u, U or a sign after \\");
        *out = (uint32_t)codes[place - names];
        reader->at++;
        return STATUS_OK;
    }
    size_t length = utf8_decode(reader->at, (size_t)(reader->end - reader->at), out);
    if (length == 0) *out = 0xFFFD; // a byte that begins no character
    reader->at += length ? length : 1;
    return STATUS_OK;
}

static Status read_literal(Reader *reader, Rule *out) {
    SCOPED_TEXT(text);
    Status status = STATUS_OK;
    while (status == STATUS_OK && !take(reader, "\"")) {
        uint32_t code = 0;
        if (reader->at == reader->end)
            status = fail_here(reader, "\" to end a text");
        else
            status = read_character(reader, &code);
        if (status == STATUS_OK && code >= SURROGATE_FIRST && code <= SURROGATE_LAST)
            status = fail_here(reader, "a code that is a character before");
        if (status == STATUS_OK) text_append_codepoint(&text, code);
    }
    *out = grammar_literal(reader->grammar, text_get(&text), text.length);
    return status;
}

static Status read_range(Reader *reader, CodeRange *out) {
    TRY(read_character(reader, &out->first));
    out->last = out->first;
    if (reader->at + 1 < reader->end && *reader->at == '-' && reader->at[1] != ']') {
        reader->at++;
        TRY(read_character(reader, &out->last));
    }
    return out->first <= out->last && out->last <= 0x10FFFF
               ? STATUS_OK
               : fail_here(reader, "a range that goes up before this");
}

static Status read_class(Reader *reader, Rule *out) {
    bool negated = take(reader, "^");
    SCOPED_MEMORY VECTOR(CodeRange) ranges = {0};
    Status status = STATUS_OK;
    while (status == STATUS_OK && !take(reader, "]")) {
        CodeRange range = {0};
        status = reader->at == reader->end ? fail_here(reader, "] to end a class")
                                           : read_range(reader, &range);
        VECTOR_PUSH(&ranges, range);
    }
    *out = grammar_class(reader->grammar, ranges.items, ranges.count, negated);
    return status;
}

// --- rules

static Status read_choice(Reader *reader, bool lines, Rule *out);

static Status read_group(Reader *reader, Rule *out) {
    if (++reader->depth > NESTING_MAX) return fail_here(reader, "no deeper nesting");
    TRY(read_choice(reader, true, out));
    reader->depth--;
    return take(reader, ")") ? STATUS_OK : fail_here(reader, "a ) to end a group");
}

static Status read_item(Reader *reader, Rule *out) {
    if (take(reader, "\"")) return read_literal(reader, out);
    if (take(reader, "[")) return read_class(reader, out);
    if (take(reader, "(")) return read_group(reader, out);
    if (take(reader, ".")) {
        *out = grammar_class(reader->grammar, NULL, 0, true);
        return STATUS_OK;
    }
    size_t length = word_length(reader);
    *out = named(reader, reader->at, length)->rule;
    reader->at += length;
    return STATUS_OK;
}

static Status read_count(Reader *reader, int64_t *out) {
    *out = 0;
    if (reader->at == reader->end || *reader->at < '0' || *reader->at > '9')
        return fail_here(reader, "a number of times");
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        if (*out <= GRAMMAR_REPEAT_MAX) *out = *out * 10 + (*reader->at - '0');
    return *out <= GRAMMAR_REPEAT_MAX ? STATUS_OK : fail_here(reader, "at most 4096 times before");
}

static Status read_times(Reader *reader, int64_t *least, int64_t *most) {
    TRY(read_count(reader, least));
    *most = *least;
    skip(reader, false);
    if (take(reader, ",")) {
        skip(reader, false);
        *most = -1;
        if (reader->at < reader->end && *reader->at != '}') TRY(read_count(reader, most));
    }
    skip(reader, false);
    if (*most >= 0 && *most < *least) return fail_here(reader, "a larger second number before");
    return take(reader, "}") ? STATUS_OK : fail_here(reader, "a } after a number of times");
}

static Status read_repeated(Reader *reader, Rule *out) {
    TRY(read_item(reader, out));
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
    }
}

static bool item_follows(const Reader *reader) {
    return reader->at < reader->end &&
           (is_character_of(*reader->at, "\"[(.") || is_word(*reader->at));
}

static Status read_sequence(Reader *reader, bool lines, Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    Status status = STATUS_OK;
    for (skip(reader, lines); status == STATUS_OK && item_follows(reader); skip(reader, lines)) {
        Rule rule = 0;
        status = read_repeated(reader, &rule);
        VECTOR_PUSH(&rules, rule);
    }
    *out = grammar_sequence(reader->grammar, rules.items, rules.count);
    return status;
}

// A rule goes on in the next line after a |.
static Status read_choice(Reader *reader, bool lines, Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    Status status;
    do {
        Rule rule = 0;
        if (rules.count > 0) skip(reader, true);
        status = read_sequence(reader, lines, &rule);
        VECTOR_PUSH(&rules, rule);
    } while (status == STATUS_OK && take(reader, "|"));
    *out = grammar_choice(reader->grammar, rules.items, rules.count);
    return status;
}

static Status read_rule(Reader *reader) {
    Rule meaning;
    size_t length = word_length(reader);
    if (length == 0) return fail_here(reader, "the name of a rule");
    Named *rule = named(reader, reader->at, length);
    reader->at += length;
    skip(reader, false);
    if (!take(reader, "::=")) return fail_here(reader, "::= after the name of a rule");
    if (rule->defined) return fail(STATUS_VALUE, "the grammar says twice what %s is", rule->name);
    rule->defined = true;
    skip(reader, true);
    TRY(read_choice(reader, false, &meaning));
    grammar_define(reader->grammar, rule->rule, meaning);
    if (reader->at < reader->end && *reader->at != '\n')
        return fail_here(reader, "the end of the rule");
    return STATUS_OK;
}

// Names of holes mean these.
static Status define_holes(Reader *reader) {
    const Filler *filler = reader->grammar->filler;
    for (uint32_t i = 0; filler && i < filler->count; i++) {
        Named *rule = named(reader, filler->names[i], strlen(filler->names[i]));
        if (rule->defined)
            return fail(STATUS_VALUE, "the grammar says what %s is, which is a hole", rule->name);
        rule->defined = true;
        grammar_define(reader->grammar, rule->rule, grammar_hole(reader->grammar, i));
    }
    return STATUS_OK;
}

static Status read_all(Reader *reader, Rule *root) {
    for (skip(reader, true); reader->at < reader->end; skip(reader, true)) TRY(read_rule(reader));
    TRY(define_holes(reader));
    for (const Named *rule = reader->names; rule; rule = rule->hh.next)
        if (!rule->defined) {
            fail(STATUS_VALUE, "the grammar does not say what %s is", rule->name);
            return fail_help("a rule (%s ::= ...) or one of `holes` does", rule->name);
        }
    Named *found = NULL;
    HASH_FIND(hh, reader->names, "root", strlen("root"), found);
    if (!found) return fail(STATUS_VALUE, "the grammar has no rule root, where texts begin");
    *root = found->rule;
    return STATUS_OK;
}

static void free_names(Named *names) {
    Named *each, *next;
    HASH_ITER(hh, names, each, next) {
        HASH_DEL(names, each);
        free(each->name);
        free(each);
    }
}

Status constraint_from_gbnf(const char *text, size_t length, Filler *filler, Constraint **out) {
    Reader reader = {.grammar = grammar_new(), .at = text, .end = text + length, .begin = text};
    if (filler) grammar_fill(reader.grammar, filler);
    Rule root = 0;
    Status status = read_all(&reader, &root);
    free_names(reader.names);
    if (status == STATUS_OK) return grammar_constraint(reader.grammar, root, "the grammar", out);
    grammar_free(reader.grammar);
    return status;
}
