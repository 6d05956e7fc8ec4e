// Two schemas at once: their union of demands, and whether they exclude each other.
#include <string.h>

#include "generate/json_schema_internal.h"

static Status merge_properties(json_t *into, json_t *more) {
    const char *name;
    json_t *schema;
    json_object_foreach(more, name, schema) {
        json_t *known = json_object_get(into, name);
        if (known && !json_equal(known, schema))
            return fail(STATUS_VALUE,
                        "json_schema: the property \"%s\" is described twice, differently", name);
        json_object_set(into, name, schema);
    }
    return STATUS_OK;
}

static Status merge_key(json_t *into, const char *key, json_t *value) {
    json_t *known = json_object_get(into, key);
    if (known && strcmp(key, "properties") == 0) {
        json_t *both = json_copy(known);
        json_object_set_new(into, key, both);
        return merge_properties(both, value);
    }
    if (known && strcmp(key, "required") == 0) {
        json_t *both = json_copy(known);
        json_array_extend(both, value);
        json_object_set_new(into, key, both);
        return STATUS_OK;
    }
    bool word = strcmp(key, "title") == 0 || strcmp(key, "description") == 0;
    if (known && !word && !json_equal(known, value))
        return fail(STATUS_VALUE, "json_schema: two different \"%s\" at once are not supported",
                    key);
    json_object_set(into, key, value);
    return STATUS_OK;
}

Status schema_merge(SchemaReader *reader, json_t *a, json_t *b, json_t **out) {
    const char *key;
    json_t *value;
    if (!json_is_object(b) || json_object_size(a) == 0) {
        *out = b;
        return STATUS_OK;
    }
    json_t *both = json_copy(a);
    VECTOR_PUSH(&reader->merged, both);
    json_object_foreach(b, key, value) TRY(merge_key(both, key, value));
    *out = both;
    return STATUS_OK;
}

// --- exclusion

enum {
    KIND_INTEGER = 1,
    KIND_NUMBER = 3,
    KIND_STRING = 4,
    KIND_OBJECT = 8,
    KIND_ARRAY = 16,
    KIND_BOOL = 32,
    KIND_NULL = 64,
    KIND_ANY = 127
};

static int kind_of_word(const char *word) {
    static const struct {
        const char *word;
        int kind;
    } kinds[] = {{"integer", KIND_INTEGER}, {"number", KIND_NUMBER}, {"string", KIND_STRING},
                 {"object", KIND_OBJECT},   {"array", KIND_ARRAY},   {"boolean", KIND_BOOL},
                 {"null", KIND_NULL}};
    for (size_t i = 0; word && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0) return kinds[i].kind;
    return KIND_ANY;
}

static int kinds_of(const json_t *schema) {
    const json_t *type = json_object_get(schema, "type");
    if (!json_is_array(type)) return kind_of_word(json_string_value(type));
    int kinds = 0;
    for (size_t i = 0; i < json_array_size(type); i++)
        kinds |= kind_of_word(json_string_value(json_array_get(type, i)));
    return kinds;
}

// Whether a value is among those that a schema's const or enum lists; false where it has neither.
static bool lists(const json_t *schema, const json_t *value) {
    const json_t *constant = json_object_get(schema, "const"),
                 *values = json_object_get(schema, "enum");
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_equal(json_array_get(values, i), value)) return true;
    return constant && json_equal(constant, value);
}

static bool lists_apart(const json_t *a, const json_t *b) {
    const json_t *constant = json_object_get(a, "const"), *values = json_object_get(a, "enum");
    if (!json_object_get(b, "const") && !json_object_get(b, "enum")) return false;
    if (!constant && !values) return false;
    for (size_t i = 0; i < json_array_size(values); i++)
        if (lists(b, json_array_get(values, i))) return false;
    return !constant || !lists(b, constant);
}

static bool requires(const json_t *schema, const char *name) {
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *each = json_string_value(json_array_get(required, i));
        if (each && strcmp(each, name) == 0) return true;
    }
    return false;
}

// By their types, by the values they list, or by those of a property that both require.
bool schema_disjoint(const json_t *a, const json_t *b) {
    if ((kinds_of(a) & kinds_of(b)) == 0 || lists_apart(a, b)) return true;
    json_t *properties = json_object_get(a, "properties"), *own;
    const char *name;
    json_object_foreach(properties, name, own) {
        const json_t *other = json_object_get(json_object_get(b, "properties"), name);
        bool both = other && requires(a, name) && requires(b, name);
        if (both && lists_apart(own, other)) return true;
    }
    return false;
}
