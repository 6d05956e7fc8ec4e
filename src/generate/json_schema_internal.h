// What the files of JSON schemas share. Only json_schema*.c includes it.
#ifndef GENERATE_JSON_SCHEMA_INTERNAL_H
#define GENERATE_JSON_SCHEMA_INTERNAL_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/grammar_internal.h"

typedef VECTOR(Rule) Rules;

typedef struct SchemaRule {
    const json_t *schema;
    Rule rule;
} SchemaRule;

typedef struct SchemaReader {
    Grammar *grammar;
    json_t *root;
    VECTOR(SchemaRule) known; // so that a schema may refer to itself
    VECTOR(json_t *) merged;  // made here, released at the end
    Rule space, character, string, value, digit;
    int depth;
} SchemaReader;

static inline Rule schema_text(SchemaReader *reader, const char *text) {
    return grammar_literal(reader->grammar, text, strlen(text));
}
static inline Rule schema_choice(SchemaReader *reader, Rule a, Rule b) {
    return grammar_choice(reader->grammar, (Rule[]){a, b}, 2);
}
static inline Rule schema_pair(SchemaReader *reader, Rule a, Rule b) {
    return grammar_sequence(reader->grammar, (Rule[]){a, b}, 2);
}

Status schema_rule(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
// json_schema_values.c: the rules for values of each type.
void schema_begin(SchemaReader *reader); // those that all schemas share
Status schema_integer(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
Status schema_number(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
Status schema_string(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
// json_schema_objects.c
Status schema_object(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
Status schema_array(SchemaReader *reader, json_t *schema, Rule *out) MUST_USE;
// json_schema_merge.c: two schemas as one, owned by the reader; and whether no value fits both.
Status schema_merge(SchemaReader *reader, json_t *a, json_t *b, json_t **out) MUST_USE;
bool schema_disjoint(const json_t *a, const json_t *b);

// A keyword's number, a count that is not negative; `fallback` where it is not given.
Status schema_count(const json_t *schema, const char *keyword, int64_t fallback,
                    int64_t *out) MUST_USE;

#endif
