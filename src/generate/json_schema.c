// JSON schemas as grammars: what a schema means, keyword by keyword. What cannot be kept is refused
// by name, never left out.
#include <string.h>

#include "generate/json_schema.h"
#include "generate/json_schema_internal.h"

enum { NESTING_MAX = 100 };

// Keywords that say nothing of what is valid.
static const char *const annotations[] = {
    "title", "description", "default",    "examples", "$schema",   "$id",    "$comment",
    "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "$anchor"};

static bool is_list(const json_t *value) {
    return json_is_array(value);
}

static bool is_object(const json_t *value) {
    return json_is_object(value);
}

static bool is_text(const json_t *value) {
    return json_is_string(value);
}

static bool is_texts(const json_t *value) {
    bool texts = json_is_array(value);
    size_t index;
    json_t *each;
    json_array_foreach(value, index, each) texts &= json_is_string(each);
    return texts;
}

static bool is_types(const json_t *value) {
    return json_is_string(value) || (is_texts(value) && json_array_size(value) > 0);
}

// What a keyword must be; NULL: who reads it says.
static const struct {
    const char *word;
    bool (*fits)(const json_t *value);
    const char *kind;
} keywords[] = {
    {"type", is_types, "a type or a list of types"},
    {"enum", is_list, "a list"},
    {"const", NULL, NULL},
    {"anyOf", NULL, NULL},
    {"oneOf", NULL, NULL},
    {"allOf", is_list, "a list"},
    {"$ref", is_text, "a string"},
    {"properties", is_object, "an object"},
    {"required", is_texts, "a list of strings"},
    {"items", NULL, NULL},
    {"prefixItems", is_list, "a list"},
    {"additionalProperties", NULL, NULL},
    {"minItems", NULL, NULL},
    {"maxItems", NULL, NULL},
    {"minLength", NULL, NULL},
    {"maxLength", NULL, NULL},
    {"pattern", is_text, "a string"},
    {"format", is_text, "a string"},
    {"minimum", NULL, NULL},
    {"maximum", NULL, NULL},
    {"exclusiveMinimum", NULL, NULL},
    {"exclusiveMaximum", NULL, NULL},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_annotation(const char *key) {
    for (size_t i = 0; i < COUNT(annotations); i++)
        if (strcmp(annotations[i], key) == 0) return true;
    return false;
}

static Status check_keyword(const char *key, const json_t *value) {
    for (size_t i = 0; i < COUNT(keywords); i++) {
        if (strcmp(keywords[i].word, key) != 0) continue;
        if (!keywords[i].fits || keywords[i].fits(value)) return STATUS_OK;
        return fail(STATUS_VALUE, "json_schema: %s must be %s", key, keywords[i].kind);
    }
    return fail(STATUS_VALUE, "json_schema: the keyword \"%s\" is not supported", key);
}

static Status check_keywords(json_t *schema) {
    const char *key;
    json_t *value;
    json_object_foreach(schema, key, value) {
        if (!is_annotation(key)) TRY(check_keyword(key, value));
    }
    return STATUS_OK;
}

Status schema_count(const json_t *schema, const char *keyword, int64_t fallback, int64_t *out) {
    const json_t *given = json_object_get(schema, keyword);
    *out = given ? json_integer_value(given) : fallback;
    bool fits = !given || (json_is_integer(given) && *out >= 0 && *out <= GRAMMAR_REPEAT_MAX);
    return fits ? STATUS_OK
                : fail(STATUS_VALUE, "json_schema: %s must be an integer from 0 to %d", keyword,
                       GRAMMAR_REPEAT_MAX);
}

// --- references

// "#/$defs/a": a path of keys; ~1 and ~0 stand for / and ~.
static json_t *follow(json_t *at, const char *path) {
    while (at && *path == '/') {
        size_t length = strcspn(++path, "/");
        SCOPED_TEXT(key);
        for (size_t i = 0; i < length; i++) {
            bool escape = path[i] == '~' && i + 1 < length;
            if (escape) i++;
            text_append_char(&key, !escape ? path[i] : path[i] == '1' ? '/' : '~');
        }
        at = json_object_get(at, text_get(&key));
        path += length;
    }
    return *path ? NULL : at;
}

static Status follow_reference(SchemaReader *reader, json_t *schema, json_t *reference, Rule *out) {
    const char *key, *path = json_string_value(reference);
    json_t *value;
    json_t *found = *path == '#' ? follow(reader->root, path + 1) : NULL;
    if (!found)
        return fail(STATUS_VALUE, "json_schema: $ref \"%s\" leads nowhere in this schema", path);
    json_object_foreach(schema, key, value) {
        if (!is_annotation(key) && strcmp(key, "$ref") != 0)
            return fail(STATUS_VALUE, "json_schema: \"%s\" next to $ref is not supported", key);
    }
    return schema_rule(reader, found, out);
}

// --- combinations

// The schema without one keyword; owned by the reader.
static json_t *without(SchemaReader *reader, json_t *schema, const char *keyword) {
    json_t *rest = json_copy(schema);
    VECTOR_PUSH(&reader->merged, rest);
    json_object_del(rest, keyword);
    return rest;
}

static Status all_of(SchemaReader *reader, json_t *schema, Rule *out) {
    json_t *whole = without(reader, schema, "allOf"), *part;
    size_t index;
    json_array_foreach(json_object_get(schema, "allOf"), index, part)
        TRY(schema_merge(reader, whole, part, &whole));
    return schema_rule(reader, whole, out);
}

static Status check_disjoint(const json_t *schemas) {
    for (size_t i = 0; i < json_array_size(schemas); i++)
        for (size_t j = 0; j < i; j++)
            if (!schema_disjoint(json_array_get(schemas, i), json_array_get(schemas, j)))
                return fail(STATUS_VALUE,
                            "json_schema: a value may fit schemas %zu and %zu of oneOf; anyOf "
                            "allows that",
                            j + 1, i + 1);
    return STATUS_OK;
}

static Status any_of(SchemaReader *reader, json_t *schema, const char *keyword, Rule *out) {
    json_t *rest = without(reader, schema, keyword), *part;
    json_t *schemas = json_object_get(schema, keyword);
    SCOPED_MEMORY Rules rules = {0};
    size_t index;
    Status status = json_array_size(schemas) > 0 ? STATUS_OK
                                                 : fail(STATUS_VALUE,
                                                        "json_schema: %s must be a list that is "
                                                        "not empty",
                                                        keyword);
    json_array_foreach(schemas, index, part) {
        json_t *whole = part;
        Rule rule = 0;
        if (status == STATUS_OK) status = schema_merge(reader, rest, part, &whole);
        if (status == STATUS_OK) status = schema_rule(reader, whole, &rule);
        VECTOR_PUSH(&rules, rule);
    }
    *out = grammar_choice(reader->grammar, rules.items, rules.count);
    return status;
}

// --- one schema

static bool has_type(const json_t *types, const json_t *value) {
    const char *name = json_is_object(value)    ? "object"
                       : json_is_array(value)   ? "array"
                       : json_is_string(value)  ? "string"
                       : json_is_boolean(value) ? "boolean"
                       : json_is_null(value)    ? "null"
                       : json_is_integer(value) ? "integer"
                                                : "number";
    size_t index;
    json_t *each;
    if (!types) return true;
    const char *only = json_string_value(types);
    if (only && (strcmp(only, name) == 0 || (strcmp(only, "number") == 0 && json_is_number(value))))
        return true;
    json_array_foreach(types, index, each) if (has_type(each, value)) return true;
    return false;
}

// Values as they are written, of those of the type that is asked for.
static Status given_values(SchemaReader *reader, const json_t *schema, const json_t *values,
                           Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    size_t index;
    json_t *value;
    json_array_foreach(values, index, value) {
        if (!has_type(json_object_get(schema, "type"), value)) continue;
        SCOPED_MEMORY char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        VECTOR_PUSH(&rules, schema_text(reader, text));
    }
    *out = grammar_choice(reader->grammar, rules.items, rules.count);
    return rules.count > 0
               ? STATUS_OK
               : fail(STATUS_VALUE, "json_schema: no value of enum or const is allowed");
}

static Status typed(SchemaReader *reader, json_t *schema, const char *type, Rule *out) {
    if (strcmp(type, "object") == 0) return schema_object(reader, schema, out);
    if (strcmp(type, "array") == 0) return schema_array(reader, schema, out);
    if (strcmp(type, "string") == 0) return schema_string(reader, schema, out);
    if (strcmp(type, "integer") == 0) return schema_integer(reader, schema, out);
    if (strcmp(type, "number") == 0) return schema_number(reader, schema, out);
    if (strcmp(type, "null") != 0 && strcmp(type, "boolean") != 0)
        return fail(STATUS_VALUE, "json_schema: the type \"%s\" is not one of JSON's", type);
    *out = strcmp(type, "null") == 0
               ? schema_text(reader, "null")
               : schema_choice(reader, schema_text(reader, "true"), schema_text(reader, "false"));
    return STATUS_OK;
}

static Status typed_each(SchemaReader *reader, json_t *schema, const json_t *types, Rule *out) {
    SCOPED_MEMORY Rules rules = {0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < json_array_size(types) && status == STATUS_OK; i++) {
        Rule rule = 0;
        status = typed(reader, schema, json_string_value(json_array_get(types, i)), &rule);
        VECTOR_PUSH(&rules, rule);
    }
    *out = grammar_choice(reader->grammar, rules.items, rules.count);
    return status;
}

// A schema without a type says what values of a type must be: then all others are valid too.
static Status untyped(SchemaReader *reader, json_t *schema, Rule *out) {
    const char *key;
    json_t *value;
    json_object_foreach(schema, key, value) {
        if (is_annotation(key)) continue;
        if (json_object_get(schema, "properties") || json_object_get(schema, "required"))
            return schema_object(reader, schema, out);
        return fail(STATUS_VALUE, "json_schema: \"%s\" needs a \"type\" next to it", key);
    }
    *out = reader->value;
    return STATUS_OK;
}

static Status read_schema(SchemaReader *reader, json_t *schema, Rule *out) {
    if (json_is_true(schema)) {
        *out = reader->value;
        return STATUS_OK;
    }
    if (!json_is_object(schema))
        return fail(STATUS_VALUE, json_is_false(schema)
                                      ? "json_schema: the schema false allows nothing"
                                      : "json_schema: a schema must be an object, true or false");
    TRY(check_keywords(schema));
    json_t *found = json_object_get(schema, "$ref");
    if (found) return follow_reference(reader, schema, found, out);
    if (json_object_get(schema, "allOf")) return all_of(reader, schema, out);
    if (json_object_get(schema, "anyOf")) return any_of(reader, schema, "anyOf", out);
    if ((found = json_object_get(schema, "oneOf"))) {
        TRY(check_disjoint(found));
        return any_of(reader, schema, "oneOf", out);
    }
    if ((found = json_object_get(schema, "enum"))) return given_values(reader, schema, found, out);
    if ((found = json_object_get(schema, "const"))) {
        json_t *one = json_array();
        json_array_append(one, found);
        VECTOR_PUSH(&reader->merged, one);
        return given_values(reader, schema, one, out);
    }
    found = json_object_get(schema, "type");
    if (json_is_array(found)) return typed_each(reader, schema, found, out);
    return found ? typed(reader, schema, json_string_value(found), out)
                 : untyped(reader, schema, out);
}

Status schema_rule(SchemaReader *reader, json_t *schema, Rule *out) {
    for (size_t i = 0; i < reader->known.count; i++)
        if (reader->known.items[i].schema == schema) {
            *out = reader->known.items[i].rule;
            return STATUS_OK;
        }
    *out = grammar_declare(reader->grammar);
    VECTOR_PUSH(&reader->known, ((SchemaRule){schema, *out}));
    Rule meaning = 0;
    if (++reader->depth > NESTING_MAX)
        return fail(STATUS_VALUE, "json_schema: schemas are nested more than %d deep", NESTING_MAX);
    TRY(read_schema(reader, schema, &meaning));
    reader->depth--;
    grammar_define(reader->grammar, *out, meaning);
    return STATUS_OK;
}

static Rule framed(SchemaReader *reader, const SchemaFrame *frame, Rule value) {
    SCOPED_MEMORY Rules parts = {0};
    if (*frame->open) VECTOR_PUSH(&parts, schema_text(reader, frame->open));
    VECTOR_PUSH(&parts, value);
    if (frame->again) {
        Rule more = schema_pair(reader, schema_text(reader, frame->again), value);
        VECTOR_PUSH(&parts, grammar_repeat(reader->grammar, more, 0, -1));
    }
    if (*frame->close) VECTOR_PUSH(&parts, schema_text(reader, frame->close));
    return grammar_sequence(reader->grammar, parts.items, parts.count);
}

Status constraint_from_framed_schema(const char *json, size_t length, const SchemaFrame *frame,
                                     Constraint **out) {
    json_error_t error;
    SchemaReader reader = {.grammar = grammar_new()};
    reader.root = json_loadb(json, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    Rule root = 0;
    Status status = STATUS_OK;
    if (!reader.root)
        status = fail(STATUS_VALUE, "json_schema: line %d is not JSON: %s", error.line, error.text);
    if (status == STATUS_OK) {
        schema_begin(&reader);
        status = schema_rule(&reader, reader.root, &root);
    }
    for (size_t i = 0; i < reader.merged.count; i++) json_decref(reader.merged.items[i]);
    VECTOR_FREE(&reader.merged);
    VECTOR_FREE(&reader.known);
    json_decref(reader.root);
    if (status == STATUS_OK) {
        root = framed(&reader, frame, root);
        return grammar_constraint(reader.grammar, root, "the schema", out);
    }
    grammar_free(reader.grammar);
    return status;
}

Status constraint_from_schema(const char *json, size_t length, Constraint **out) {
    return constraint_from_framed_schema(json, length, &(SchemaFrame){"", NULL, ""}, out);
}
