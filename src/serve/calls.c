#define _GNU_SOURCE // memmem
#include "serve/calls.h"

#include <stdlib.h>
#include <string.h>

#include "generate/json_schema.h"

enum { MARKS_MAX = 3 };

struct CallForm {
    const char *marks[MARKS_MAX]; // a template of this form contains all of these
    const char *never[MARKS_MAX]; // and none of these
    const char *begin;            // with which calls begin; it may be a token without text
    const char *first;            // how JSON begins where that token has no text
    const char *arguments;        // the key of the arguments
    const char *trigger;          // text after which nothing but calls comes; NULL: there is none
    SchemaFrame frame;            // after `begin`
};

// The forms of Hermes and Qwen, of Llama 3.1 and later, of Mistral.
static const CallForm forms[] = {
    {{"<tool_call>", "arguments"},
     {"<function=", "<arg_key>"},
     "<tool_call>",
     "{",
     "arguments",
     "<tool_call>",
     {"\n", "\n</tool_call>\n<tool_call>\n", "\n</tool_call>"}},
    {{"ipython", "parameters"},
     {"<tool_call>", "[TOOL_CALLS]"},
     "<|python_tag|>",
     "{",
     "parameters",
     NULL,
     {"", NULL, ""}},
    {{"[TOOL_CALLS]"}, {"[ARGS]"}, "[TOOL_CALLS]", "[", "arguments", NULL, {"[", ", ", "]"}},
};

// --- which form

static bool has(const char *text, size_t length, const char *mark) {
    return memmem(text, length, mark, strlen(mark)) != NULL;
}

static bool is_form(const CallForm *form, const char *text, size_t length) {
    for (size_t i = 0; i < MARKS_MAX; i++) {
        if (form->marks[i] && !has(text, length, form->marks[i])) return false;
        if (form->never[i] && has(text, length, form->never[i])) return false;
    }
    return true;
}

Status calls_form(const char *template, size_t length, const CallForm **out) {
    if (!has(template, length, "tools"))
        return fail(STATUS_VALUE, "the chat template of this model knows no tools");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is_form(&forms[i], template, length)) {
            *out = &forms[i];
            return STATUS_OK;
        }
    return fail(STATUS_VALUE,
                "the chat template of this model writes calls of tools in none of the known forms: "
                "JSON in <tool_call>, a list after [TOOL_CALLS], or JSON as Llama 3 has it");
}

// --- as a constraint

// Moves references to the root of a schema to where that root is now.
static void move_references(json_t *schema, const char *root) {
    const char *key;
    size_t i;
    json_t *value;
    json_object_foreach(schema, key, value) {
        const char *path = json_string_value(value);
        if (path && *path == '#' && strcmp(key, "$ref") == 0) {
            SCOPED_TEXT(moved);
            text_format(&moved, "%s%s", root, path + 1);
            json_string_set(value, text_get(&moved));
        } else {
            move_references(value, root);
        }
    }
    json_array_foreach(schema, i, value) move_references(value, root);
}

// The parameters of a function; where none are said there are none.
static json_t *parameter_schema(const json_t *function, const char *root) {
    const json_t *given = json_object_get(function, "parameters");
    if (!given)
        return json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties",
                         0);
    json_t *own = json_deep_copy(given);
    move_references(own, root);
    if (json_object_size(own) == 0) json_object_set_new(own, "type", json_string("object"));
    return own;
}

// The schema of one call of any of the functions that may be called.
static json_t *schema_of_calls(const CallForm *form, const ToolUse *use) {
    json_t *calls = json_array(), *definitions = json_object(), *tool;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)use->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        if (use->only && strcmp(use->only, name) != 0) continue;
        SCOPED_TEXT(root);
        text_format(&root, "#/$defs/%s", name);
        json_object_set_new(definitions, name, parameter_schema(function, text_get(&root)));
        json_t *properties = json_pack("{s:{s:s}, s:{s:s}}", "name", "const", name, form->arguments,
                                       "$ref", text_get(&root));
        json_array_append_new(calls, json_pack("{s:s, s:o, s:[s, s], s:b}", "type", "object",
                                               "properties", properties, "required", "name",
                                               form->arguments, "additionalProperties", 0));
    }
    ASSERT(json_array_size(calls) > 0);
    return json_pack("{s:o, s:o}", "$defs", definitions, "anyOf", calls);
}

Status calls_constraint(const CallForm *form, const ToolUse *use, Constraint **out,
                        const char **trigger) {
    *out = NULL;
    *trigger = use->choice == TOOLS_REQUIRED ? NULL : form->trigger;
    if (use->choice != TOOLS_REQUIRED && !form->trigger) return STATUS_OK;
    SCOPED_TEXT(open);
    if (!*trigger && form->trigger) text_append_string(&open, form->begin);
    text_append_string(&open, form->frame.open);
    const SchemaFrame frame = {text_get(&open), use->one ? NULL : form->frame.again,
                               form->frame.close};
    json_t *schema = schema_of_calls(form, use);
    char *text = json_dumps(schema, JSON_COMPACT);
    Status status = constraint_from_framed_schema(text, strlen(text), &frame, out);
    free(text);
    json_decref(schema);
    return status;
}

// --- what was said earlier

Status calls_prepare(json_t *message) {
    json_t *calls = json_object_get(message, "tool_calls"), *call;
    size_t i;
    if (!calls || json_is_null(calls)) return STATUS_OK;
    if (!json_is_array(calls)) return fail(STATUS_VALUE, "tool_calls must be a list");
    json_array_foreach(calls, i, call) {
        json_t *function = json_object_get(call, "function");
        const json_t *text = json_object_get(function, "arguments");
        json_t *arguments = text && json_string_length(text) > 0
                                ? json_loads(json_string_value(text), 0, NULL)
                                : NULL;
        if (!json_is_string(json_object_get(function, "name")) || !json_is_object(arguments)) {
            json_decref(arguments);
            return fail(STATUS_VALUE, "a call in tool_calls must have a function with a name and "
                                      "arguments, the text of a JSON object");
        }
        json_object_set_new(function, "arguments", arguments);
    }
    return STATUS_OK;
}

// --- what is said

static size_t skip_blanks(const char *text, size_t at, size_t length) {
    while (at < length && memchr(" \t\r\n", text[at], 4)) at++;
    return at;
}

static bool begins_at(const char *text, size_t at, size_t length, const char *word) {
    return length - at >= strlen(word) && memcmp(text + at, word, strlen(word)) == 0;
}

// Whether the text from there on is `word`, or its beginning up to the end of the text.
static bool may_begin(const char *text, size_t at, size_t length, const char *word) {
    size_t left = length - at, whole = strlen(word);
    return memcmp(text + at, word, left < whole ? left : whole) == 0;
}

size_t calls_content(const CallForm *form, const char *text, size_t length) {
    size_t begin = skip_blanks(text, 0, length);
    if (begin == length || may_begin(text, begin, length, form->first)) return 0;
    for (size_t at = begin; at < length; at++)
        if (may_begin(text, at, length, form->begin)) return at == begin ? 0 : at;
    return length;
}

// The end of a value in JSON that is known to be right.
static size_t value_end(const char *json, size_t at) {
    int depth = 0;
    do {
        if (json[at] == '"') {
            for (at++; json[at] != '"'; at++) at += json[at] == '\\';
            at++;
        } else if (memchr("{[", json[at], 2)) {
            depth++;
            at++;
        } else if (memchr("}]", json[at], 2)) {
            depth--;
            at++;
        } else {
            at += strcspn(json + at, "\"{}[],: \t\r\n");
        }
        if (depth > 0) at += strspn(json + at, ",: \t\r\n");
    } while (depth > 0);
    return at;
}

// The text of a member of such an object; NULL when no key is written like that. New.
static json_t *member_text(const char *json, const char *name) {
    size_t at = 1;
    for (;;) {
        at += strspn(json + at, ", \t\r\n");
        if (json[at] == '}') return NULL;
        size_t key = at + 1, key_end = value_end(json, at) - 1;
        at = key_end + 1;
        at += strspn(json + at, ": \t\r\n");
        size_t end = value_end(json, at);
        if (key_end - key == strlen(name) && memcmp(json + key, name, key_end - key) == 0)
            return json_stringn(json + at, end - at);
        at = end;
    }
}

// A call at the beginning of the text; NULL when there is none. *length is what it takes.
static json_t *read_call(const CallForm *form, const json_t *tools, const char *text,
                         size_t *length) {
    json_error_t error;
    json_auto_t *call =
        json_loadb(text, *length, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    const char *name = json_string_value(json_object_get(call, "name"));
    json_t *found = NULL;
    if (name && json_is_object(json_object_get(call, form->arguments)) && tools_find(tools, name))
        found =
            json_pack("{s:s, s:o}", "name", name, "arguments", member_text(text, form->arguments));
    *length = (size_t)error.position;
    return found;
}

// Between calls are the marks of the form and what separates them.
static size_t skip_between(const CallForm *form, const Text *text, size_t at) {
    const char *const between[] = {form->begin, "</tool_call>", ",", ";", "[", "]"};
    for (size_t i = 0; i < sizeof between / sizeof *between;) {
        at = skip_blanks(text->bytes, at, text->length);
        bool found = begins_at(text->bytes, at, text->length, between[i]);
        if (found) at += strlen(between[i]);
        i = found ? 0 : i + 1;
    }
    return at;
}

json_t *calls_read(const CallForm *form, const json_t *tools, const Text *text, size_t *content) {
    *content = calls_content(form, text_get(text), text->length);
    if (*content == text->length) return NULL;
    json_t *calls = json_array();
    for (size_t at = skip_between(form, text, *content); at < text->length;
         at = skip_between(form, text, at)) {
        size_t length = text->length - at;
        json_t *call = read_call(form, tools, text->bytes + at, &length);
        if (!call) {
            json_decref(calls);
            return NULL;
        }
        json_array_append_new(calls, call);
        at += length;
    }
    if (json_array_size(calls) > 0) return calls;
    json_decref(calls);
    return NULL;
}
