// Strings and numbers of JSON schemas, and the rules that all schemas share.
#include <math.h>
#include <string.h>

#include "generate/json_schema_internal.h"

enum { DIGITS_MAX = 15 }; // of a number: what a float64 holds exactly

static const int64_t largest = 999999999999999;

// --- what all share

static Rule digits(SchemaReader *reader, int64_t least, int64_t most) {
    return grammar_repeat(reader->grammar, reader->digit, least, most);
}

static Rule class(SchemaReader *reader, uint32_t first, uint32_t last) {
    return grammar_class(reader->grammar, &(CodeRange){first, last}, 1, false);
}

// One character of a string; escaped code points are those that need no second half.
static Rule character(SchemaReader *reader) {
    static const CodeRange escaped[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}},
                           hexadecimal[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
                           without_d[] = {{'0', '9'},
                                          {'A', 'C'},
                                          {'E', 'F'},
                                          {'a', 'c'},
                                          {'e', 'f'}},
                           names[] = {{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'},
                                      {'f', 'f'}, {'n', 'n'}, {'r', 'r'},   {'t', 't'}};
    Grammar *grammar = reader->grammar;
    Rule hex = grammar_class(grammar, hexadecimal, 3, false);
    Rule low[] = {grammar_class(grammar, without_d, 5, false), hex};
    Rule high[] = {schema_choice(reader, class(reader, 'D', 'D'), class(reader, 'd', 'd')),
                   class(reader, '0', '7')};
    Rule begin = schema_choice(reader, grammar_sequence(grammar, low, 2),
                               grammar_sequence(grammar, high, 2));
    Rule code[] = {schema_text(reader, "\\u"), begin, hex, hex};
    Rule named =
        schema_pair(reader, schema_text(reader, "\\"), grammar_class(grammar, names, 8, false));
    Rule all[] = {grammar_class(grammar, escaped, 3, true), named,
                  grammar_sequence(grammar, code, 4)};
    return grammar_choice(grammar, all, 3);
}

static Rule quoted(SchemaReader *reader, Rule inner) {
    Rule mark = schema_text(reader, "\"");
    return grammar_sequence(reader->grammar, (Rule[]){mark, inner, mark}, 3);
}

// Nothing, a blank, or a new line with some more of them.
static Rule space(SchemaReader *reader) {
    Rule indent = grammar_repeat(reader->grammar, schema_text(reader, " "), 0, 16);
    Rule all[] = {schema_text(reader, ""), schema_text(reader, " "),
                  schema_pair(reader, schema_text(reader, "\n"), indent)};
    return grammar_choice(reader->grammar, all, 3);
}

static Rule plain_integer(SchemaReader *reader) {
    Rule more = schema_pair(reader, class(reader, '1', '9'), digits(reader, 0, DIGITS_MAX - 1));
    Rule sign = schema_choice(reader, schema_text(reader, ""), schema_text(reader, "-"));
    return schema_pair(reader, sign, schema_choice(reader, schema_text(reader, "0"), more));
}

static Rule fraction(SchemaReader *reader) {
    return schema_pair(reader, schema_text(reader, "."), digits(reader, 1, DIGITS_MAX));
}

static Rule plain_number(SchemaReader *reader) {
    Rule none = schema_text(reader, "");
    Rule letter = schema_choice(reader, schema_text(reader, "e"), schema_text(reader, "E"));
    Rule signs[] = {none, schema_text(reader, "-"), schema_text(reader, "+")};
    Rule power[] = {letter, grammar_choice(reader->grammar, signs, 3), digits(reader, 1, 2)};
    Rule parts[] = {plain_integer(reader), schema_choice(reader, none, fraction(reader)),
                    schema_choice(reader, none, grammar_sequence(reader->grammar, power, 3))};
    return grammar_sequence(reader->grammar, parts, 3);
}

// Any value of JSON.
static Rule any_value(SchemaReader *reader, Rule value) {
    Grammar *grammar = reader->grammar;
    Rule none = schema_text(reader, "");
    Rule comma = schema_pair(reader, schema_text(reader, ","), reader->space);
    Rule member_parts[] = {reader->string, schema_text(reader, ":"), reader->space, value};
    Rule member = grammar_sequence(grammar, member_parts, 4);
    Rule inner[2];
    for (int i = 0; i < 2; i++) {
        Rule item = i ? member : value, more = schema_pair(reader, comma, item);
        Rule list = schema_pair(reader, item, grammar_repeat(grammar, more, 0, -1));
        inner[i] = schema_choice(reader, none, list);
    }
    Rule array[] = {schema_text(reader, "["), reader->space, inner[0], reader->space,
                    schema_text(reader, "]")};
    Rule object[] = {schema_text(reader, "{"), reader->space, inner[1], reader->space,
                     schema_text(reader, "}")};
    Rule all[] = {reader->string,
                  plain_number(reader),
                  schema_text(reader, "true"),
                  schema_text(reader, "false"),
                  schema_text(reader, "null"),
                  grammar_sequence(grammar, array, 5),
                  grammar_sequence(grammar, object, 5)};
    return grammar_choice(grammar, all, 7);
}

void schema_begin(SchemaReader *reader) {
    reader->digit = class(reader, '0', '9');
    reader->space = space(reader);
    reader->character = character(reader);
    reader->string = quoted(reader, grammar_repeat(reader->grammar, reader->character, 0, -1));
    reader->value = grammar_declare(reader->grammar);
    grammar_define(reader->grammar, reader->value, any_value(reader, reader->value));
}

// --- strings

static const char *format_pattern(const char *format) {
    static const struct {
        const char *format, *pattern;
    } formats[] = {
        {"date", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])$"},
        {"time", "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\dZ$"},
        {"date-time",
         "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\dZ$"},
        {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}};
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].format, format) == 0) return formats[i].pattern;
    return NULL;
}

static Status by_pattern(SchemaReader *reader, const char *pattern, Rule *out) {
    Rule inner = 0;
    TRY(grammar_regex(reader->grammar, pattern, strlen(pattern), true, &inner));
    *out = quoted(reader, inner);
    return STATUS_OK;
}

Status schema_string(SchemaReader *reader, json_t *schema, Rule *out) {
    const json_t *pattern = json_object_get(schema, "pattern"),
                 *format = json_object_get(schema, "format");
    bool sized = json_object_get(schema, "minLength") || json_object_get(schema, "maxLength");
    int64_t least, most;
    if ((pattern != NULL) + (format != NULL) + sized > 1)
        return fail(STATUS_VALUE, "json_schema: of pattern, format and lengths a string takes one");
    if (pattern) return by_pattern(reader, json_string_value(pattern), out);
    if (format) {
        const char *known = format_pattern(json_string_value(format));
        if (known) return by_pattern(reader, known, out);
        return fail(STATUS_VALUE,
                    "json_schema: the format \"%s\" is not supported (date, time, date-time and "
                    "uuid are)",
                    json_string_value(format));
    }
    *out = reader->string;
    if (!sized) return STATUS_OK;
    TRY(schema_count(schema, "minLength", 0, &least));
    TRY(schema_count(schema, "maxLength", -1, &most));
    if (most >= 0 && most < least)
        return fail(STATUS_VALUE, "json_schema: minLength %lld is more than maxLength %lld",
                    (long long)least, (long long)most);
    *out = quoted(reader, grammar_repeat(reader->grammar, reader->character, least, most));
    return STATUS_OK;
}

// --- numbers within bounds

// The numbers of `count` digits from a to b, which have that many.
static Rule between(SchemaReader *reader, const char *a, const char *b, size_t count) {
    static const char zeros[] = "000000000000000", nines[] = "999999999999999";
    bool all = strncmp(a, zeros, count) == 0 && strncmp(b, nines, count) == 0;
    if (all) return digits(reader, (int64_t)count, (int64_t)count);
    Rule first = grammar_literal(reader->grammar, a, 1),
         last = grammar_literal(reader->grammar, b, 1);
    if (*a == *b) return schema_pair(reader, first, between(reader, a + 1, b + 1, count - 1));
    SCOPED_MEMORY Rules rules = {0};
    VECTOR_PUSH(&rules, schema_pair(reader, first, between(reader, a + 1, nines, count - 1)));
    if (*b - *a > 1) {
        Rule inner = class(reader, (uint32_t)*a + 1, (uint32_t)*b - 1);
        Rule rest = digits(reader, (int64_t)count - 1, (int64_t)count - 1);
        VECTOR_PUSH(&rules, schema_pair(reader, inner, rest));
    }
    VECTOR_PUSH(&rules, schema_pair(reader, last, between(reader, zeros, b + 1, count - 1)));
    return grammar_choice(reader->grammar, rules.items, rules.count);
}

// Adds the integers from low to high, 0 <= low, length by length.
static void add_integers(SchemaReader *reader, int64_t low, int64_t high, Rules *out) {
    for (int64_t first = 1, last = 9; low <= high; first = last + 1, last = last * 10 + 9) {
        if (first == 1) first = 0;
        if (low > last) continue;
        char a[24], b[24];
        int64_t end = high < last ? high : last;
        snprintf(a, sizeof a, "%lld", (long long)(low > first ? low : first));
        snprintf(b, sizeof b, "%lld", (long long)end);
        VECTOR_PUSH(out, between(reader, a, b, strlen(a)));
        low = end + 1;
    }
}

typedef struct Bounds {
    bool given;
    int64_t low, high;
} Bounds;

static Status fail_bound(const char *keyword) {
    return fail(STATUS_VALUE,
                "json_schema: %s must be an integer of at most %d digits, and for type number "
                "not exclusive",
                keyword, DIGITS_MAX);
}

// `integers`: bounds may lie between them and be exclusive.
static Status read_bound(const json_t *schema, const char *keyword, bool integers, int sign,
                         Bounds *out) {
    const json_t *given = json_object_get(schema, keyword);
    if (!given) return STATUS_OK;
    bool exclusive = strncmp(keyword, "exclusive", strlen("exclusive")) == 0;
    double number = json_number_value(given), whole = sign > 0 ? floor(number) : ceil(number);
    bool fits = json_is_number(given) && fabs(number) <= (double)largest;
    if (!fits || (!integers && (exclusive || whole != number))) return fail_bound(keyword);
    int64_t bound = (int64_t)whole;
    if (exclusive && whole == number) bound -= sign;
    out->given = true;
    if (sign < 0 && bound > out->low) out->low = bound;
    if (sign > 0 && bound < out->high) out->high = bound;
    return STATUS_OK;
}

static Status read_bounds(const json_t *schema, bool integers, Bounds *out) {
    *out = (Bounds){false, -largest, largest};
    TRY(read_bound(schema, "minimum", integers, -1, out));
    TRY(read_bound(schema, "exclusiveMinimum", integers, -1, out));
    TRY(read_bound(schema, "maximum", integers, 1, out));
    TRY(read_bound(schema, "exclusiveMaximum", integers, 1, out));
    return out->low <= out->high
               ? STATUS_OK
               : fail(STATUS_VALUE, "json_schema: no number lies between its bounds");
}

// The magnitudes from low to high, behind a sign: integers, or those and what lies between them.
static void add_magnitudes(SchemaReader *reader, const char *sign, Bounds bounds, bool integers,
                           Rules *out) {
    Rules whole = {0};
    if (bounds.low > bounds.high) return;
    add_integers(reader, bounds.low, bounds.high, &whole);
    Rule rule = grammar_choice(reader->grammar, whole.items, whole.count);
    VECTOR_PUSH(out, schema_pair(reader, schema_text(reader, sign), rule));
    whole.count = 0;
    if (!integers && bounds.low < bounds.high) {
        add_integers(reader, bounds.low, bounds.high - 1, &whole);
        rule = grammar_choice(reader->grammar, whole.items, whole.count);
        Rule parts[] = {schema_text(reader, sign), rule, fraction(reader)};
        VECTOR_PUSH(out, grammar_sequence(reader->grammar, parts, 3));
    }
    VECTOR_FREE(&whole);
}

static Rule bounded(SchemaReader *reader, Bounds bounds, bool integers) {
    SCOPED_MEMORY Rules rules = {0};
    int64_t least = bounds.low > 0 ? bounds.low : 0;
    add_magnitudes(reader, "", (Bounds){true, least, bounds.high}, integers, &rules);
    int64_t nearest = bounds.high < 0 ? -bounds.high : integers ? 1 : 0;
    add_magnitudes(reader, "-", (Bounds){true, nearest, -bounds.low}, integers, &rules);
    return grammar_choice(reader->grammar, rules.items, rules.count);
}

Status schema_integer(SchemaReader *reader, json_t *schema, Rule *out) {
    Bounds bounds;
    TRY(read_bounds(schema, true, &bounds));
    *out = bounds.given ? bounded(reader, bounds, true) : plain_integer(reader);
    return STATUS_OK;
}

Status schema_number(SchemaReader *reader, json_t *schema, Rule *out) {
    Bounds bounds;
    TRY(read_bounds(schema, false, &bounds));
    *out = bounds.given ? bounded(reader, bounds, false) : plain_number(reader);
    return STATUS_OK;
}
