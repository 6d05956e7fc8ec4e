#include "serve/tools.h"

#include <string.h>

enum { NAME_MAX_LENGTH = 64, TOOLS_MAX = 128 };

static Status check_fields(const json_t *object, const char *const *known, const char *what) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], name) != 0) i++;
        if (!known[i])
            return fail(STATUS_VALUE, "tools: the field \"%.80s\" of %s is not known", name, what);
    }
    return STATUS_OK;
}

static Status check_name(const char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = name ? strlen(name) : 0;
    if (length > 0 && length <= NAME_MAX_LENGTH && strspn(name, allowed) == length)
        return STATUS_OK;
    return fail(STATUS_VALUE, "tools: the name of a function must be 1 to 64 letters, digits, _ "
                              "or -");
}

static Status check_tool_function(const json_t *function) {
    static const char *const known[] = {"name", "description", "parameters", "strict", NULL};
    TRY(check_fields(function, known, "a function"));
    TRY(check_name(json_string_value(json_object_get(function, "name"))));
    const json_t *text = json_object_get(function, "description"),
                 *schema = json_object_get(function, "parameters"),
                 *strict = json_object_get(function, "strict");
    if (text && !json_is_null(text) && !json_is_string(text))
        return fail(STATUS_VALUE, "tools: a description must be a string");
    if (schema && !json_is_object(schema))
        return fail(STATUS_VALUE, "tools: parameters must be a JSON schema, an object");
    if (strict && !json_is_null(strict) && !json_is_boolean(strict))
        return fail(STATUS_VALUE, "tools: strict must be true or false");
    return STATUS_OK;
}

static const char *name_of(const json_t *tool) {
    return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

const json_t *tools_find(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (strcmp(name_of(json_array_get(tools, i)), name) == 0)
            return json_object_get(json_array_get(tools, i), "function");
    return NULL;
}

Status tools_read(const json_t *value, ToolUse *out) {
    static const char *const known[] = {"type", "function", NULL};
    size_t count = json_array_size(value);
    if (count == 0 || count > TOOLS_MAX)
        return fail(STATUS_VALUE, "tools must be a list of 1 to %d functions", TOOLS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *tool = json_array_get(value, i);
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (!type || strcmp(type, "function") != 0 ||
            !json_is_object(json_object_get(tool, "function")))
            return fail(STATUS_VALUE,
                        "tools: each must be of the type function, with a function that has a "
                        "name");
        TRY(check_fields(tool, known, "a tool"));
        TRY(check_tool_function(json_object_get(tool, "function")));
        for (size_t j = 0; j < i; j++)
            if (strcmp(name_of(json_array_get(value, j)), name_of(tool)) == 0)
                return fail(STATUS_VALUE, "tools: two functions have the name \"%s\"",
                            name_of(tool));
    }
    out->tools = value;
    return STATUS_OK;
}

Status tools_read_choice(const json_t *value, ToolUse *out) {
    static const char *const words[] = {"auto", "none", "required"};
    const char *word = json_string_value(value),
               *type = json_string_value(json_object_get(value, "type"));
    out->chosen = true;
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) {
            out->choice = (ToolChoice)i;
            return STATUS_OK;
        }
    out->only = json_string_value(json_object_get(json_object_get(value, "function"), "name"));
    out->choice = TOOLS_REQUIRED;
    if (type && strcmp(type, "function") == 0 && out->only) return STATUS_OK;
    return fail(STATUS_VALUE, "tool_choice must be \"none\", \"auto\", \"required\", or of the "
                              "type function with a function that has a name");
}

Status tools_check(const ToolUse *use, const char **field) {
    *field = use->one ? "parallel_tool_calls" : "tool_choice";
    if (!use->tools && (use->chosen || use->one))
        return fail(STATUS_VALUE, "%s needs tools", *field);
    *field = "tool_choice";
    if (use->only && !tools_find(use->tools, use->only))
        return fail(STATUS_VALUE, "tool_choice: there is no function \"%.80s\" among the tools",
                    use->only);
    *field = NULL;
    return STATUS_OK;
}

bool tools_usable(const ToolUse *use) {
    return use->tools && use->choice != TOOLS_NONE;
}
