// Objects and arrays of JSON schemas.
#include <string.h>

#include "generate/json_schema_internal.h"

// --- objects

static bool is_required(const json_t *schema, const char *name) {
    size_t index;
    json_t *each;
    json_array_foreach(json_object_get(schema, "required"), index,
                       each) if (json_is_string(each) &&
                                 strcmp(json_string_value(each), name) == 0) return true;
    return false;
}

// The properties, and then those that are required without being described, of any value.
static json_t *all_properties(SchemaReader *reader, json_t *schema) {
    json_t *all = json_object(), *each;
    json_t *described = json_object_get(schema, "properties");
    size_t index;
    VECTOR_PUSH(&reader->merged, all);
    if (described) json_object_update(all, described);
    json_array_foreach(json_object_get(schema, "required"), index,
                       each) if (json_is_string(each) &&
                                 !json_object_get(all, json_string_value(each)))
        json_object_set_new(all, json_string_value(each), json_true());
    return all;
}

static Rule comma(SchemaReader *reader) {
    return schema_pair(reader, schema_text(reader, ","), reader->space);
}

static Status property_rule(SchemaReader *reader, const char *name, json_t *schema, Rule *out) {
    Rule value = 0;
    json_t *key = json_string(name);
    char *text = json_dumps(key, JSON_ENCODE_ANY);
    json_decref(key);
    Rule parts[4] = {schema_text(reader, text), schema_text(reader, ":"), reader->space};
    free(text);
    TRY(schema_rule(reader, schema, &value));
    parts[3] = value;
    *out = grammar_sequence(reader->grammar, parts, 4);
    return STATUS_OK;
}

typedef struct Property {
    Rule rule;
    bool required;
} Property;

// What may follow once the properties before `index` are done; `begun`: one of them was written.
static Rule rest_of(SchemaReader *reader, const Property *properties, size_t count) {
    Rule none = schema_text(reader, ""), begun = none, fresh = none;
    Rule separator = comma(reader);
    for (size_t i = count; i-- > 0;) {
        Rule parts[] = {separator, properties[i].rule, begun};
        Rule with = grammar_sequence(reader->grammar, parts, 3);
        Rule first = schema_pair(reader, properties[i].rule, begun);
        begun = properties[i].required ? with : schema_choice(reader, with, begun);
        fresh = properties[i].required ? first : schema_choice(reader, first, fresh);
    }
    return fresh;
}

static Rule braces(SchemaReader *reader, const char *open, Rule inner, const char *close) {
    Rule parts[] = {schema_text(reader, open), reader->space, inner, reader->space,
                    schema_text(reader, close)};
    return grammar_sequence(reader->grammar, parts, 5);
}

// item, item, item ... as often as is said.
static Rule listed(SchemaReader *reader, Rule item, int64_t least, int64_t most) {
    if (most == 0) return schema_text(reader, "");
    Rule more = schema_pair(reader, comma(reader), item);
    Rule rest =
        grammar_repeat(reader->grammar, more, least > 0 ? least - 1 : 0, most < 0 ? -1 : most - 1);
    Rule some = schema_pair(reader, item, rest);
    return least > 0 ? some : schema_choice(reader, some, schema_text(reader, ""));
}

static Status read_properties(SchemaReader *reader, json_t *schema, json_t *properties,
                              Rule *inner) {
    SCOPED_MEMORY Property *all = memory_allocate_zeroed(json_object_size(properties), sizeof *all);
    size_t count = 0;
    const char *name;
    json_t *each;
    Status status = STATUS_OK;
    json_object_foreach(properties, name, each) {
        bool required = is_required(schema, name);
        if (json_is_false(each) && !required) continue; // it must not be there
        if (status == STATUS_OK) status = property_rule(reader, name, each, &all[count].rule);
        all[count++].required = required;
    }
    *inner = rest_of(reader, all, count);
    return status;
}

// Properties beyond the described ones are valid where nothing forbids them, but never needed.
Status schema_object(SchemaReader *reader, json_t *schema, Rule *out) {
    json_t *properties = all_properties(reader, schema);
    json_t *others = json_object_get(schema, "additionalProperties");
    Rule inner = 0;
    if (json_object_size(properties) > 0) {
        TRY(read_properties(reader, schema, properties, &inner));
    } else if (json_is_false(others)) {
        inner = schema_text(reader, "");
    } else {
        Rule value = reader->value;
        if (others) TRY(schema_rule(reader, others, &value));
        Rule parts[] = {reader->string, schema_text(reader, ":"), reader->space, value};
        inner = listed(reader, grammar_sequence(reader->grammar, parts, 4), 0, -1);
    }
    *out = braces(reader, "{", inner, "}");
    return STATUS_OK;
}

// --- arrays

// The first few items by their own schemas, and what follows them.
static Status prefixed(SchemaReader *reader, json_t *schema, Rule item, int64_t most, Rule *out) {
    json_t *prefix = json_object_get(schema, "prefixItems"), *each;
    int64_t least, count = (int64_t)json_array_size(prefix);
    TRY(schema_count(schema, "minItems", 0, &least));
    Rule separator = comma(reader), more = schema_pair(reader, separator, item);
    int64_t rest_least = least > count ? least - count : 0;
    int64_t rest_most = most < 0 ? -1 : most > count ? most - count : 0;
    Rule rest = grammar_repeat(reader->grammar, more, rest_least, rest_most);
    for (int64_t i = count; i-- > 0;) {
        Rule own = 0;
        each = json_array_get(prefix, (size_t)i);
        TRY(schema_rule(reader, each, &own));
        Rule parts[] = {i > 0 ? separator : schema_text(reader, ""), own, rest};
        Rule with = grammar_sequence(reader->grammar, parts, 3), none = schema_text(reader, "");
        bool may = most < 0 || i < most;
        rest = !may ? none : i < least ? with : schema_choice(reader, with, none);
    }
    *out = rest;
    return STATUS_OK;
}

Status schema_array(SchemaReader *reader, json_t *schema, Rule *out) {
    json_t *items = json_object_get(schema, "items");
    bool has_prefix = json_array_size(json_object_get(schema, "prefixItems")) > 0;
    bool closed = json_is_false(items);
    int64_t least, most;
    Rule item = reader->value, inner = 0;
    TRY(schema_count(schema, "minItems", 0, &least));
    TRY(schema_count(schema, "maxItems", -1, &most));
    int64_t prefix = (int64_t)json_array_size(json_object_get(schema, "prefixItems"));
    if (closed && (most < 0 || most > prefix)) most = prefix;
    if (most >= 0 && most < least)
        return fail(STATUS_VALUE, "json_schema: minItems %lld is more than %lld items can be",
                    (long long)least, (long long)most);
    if (items && !closed) TRY(schema_rule(reader, items, &item));
    if (has_prefix)
        TRY(prefixed(reader, schema, item, most, &inner));
    else
        inner = listed(reader, item, least, most);
    *out = braces(reader, "[", inner, "]");
    return STATUS_OK;
}
