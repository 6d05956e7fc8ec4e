// The tools: check, run, explain, help.
#include "mcp/tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "check/help.h"
#include "lsp/features.h"
#include "mcp/child.h"

enum { WORDS_MAX = 64 };

static json_t *text_result(const char *text, size_t length, bool is_error) {
    json_t *string = json_stringn(text, length);
    if (!string) string = json_string("(output that is not UTF-8)");
    return json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", string, "isError",
                     is_error);
}

static json_t *failure_result(void) {
    const char *message = error_current()->message;
    return text_result(message, strlen(message), true);
}

static void append_output(Text *text, const char *title, const Text *output, size_t lost) {
    if (output->length == 0) return;
    if (title) text_format(text, "%s%s\n", text->length ? "\n" : "", title);
    text_append(text, output->bytes, output->length);
    if (lost) text_format(text, "\n(%zu more bytes were left out)\n", lost);
}

static json_t *run_result(const ChildResult *result) {
    SCOPED_TEXT(text);
    append_output(&text, NULL, &result->out, result->out_lost);
    append_output(&text, result->out.length ? "standard error:" : NULL, &result->errors,
                  result->errors_lost);
    if (result->status != 0) text_format(&text, "exit status %d\n", result->status);
    if (text.length == 0) text_append_string(&text, "(no output)\n");
    return text_result(text_get(&text), text.length, result->status != 0);
}

// A string argument; NULL when it is not given. Its type was checked.
static const char *argument(const json_t *arguments, const char *name) {
    return json_string_value(json_object_get(arguments, name));
}

static json_t *run_child(const Child *child) {
    ChildResult result;
    json_t *json = child_run(child, &result) == STATUS_OK ? run_result(&result) : failure_result();
    child_result_free(&result);
    return json;
}

static json_t *tool_check(const McpLimits *limits, const json_t *arguments) {
    const char *words[] = {limits->program, "check", "--json", "-", NULL};
    const json_t *code = json_object_get(arguments, "code");
    Child child = {words, limits->folder, json_string_value(code), json_string_length(code)};
    return run_child(&child);
}

static json_t *tool_run(const McpLimits *limits, const json_t *arguments) {
    const json_t *code = json_object_get(arguments, "code");
    const json_t *script_words = json_object_get(arguments, "arguments");
    const char *words[WORDS_MAX] = {limits->program,
                                    "run",
                                    "--time-limit",
                                    limits->time_limit,
                                    "--host-limit",
                                    limits->host_limit,
                                    "--disk-limit",
                                    limits->disk_limit,
                                    "-",
                                    "--"};
    size_t count = 10;
    for (size_t i = 0; i < json_array_size(script_words) && count < WORDS_MAX - 1; i++)
        words[count++] = json_string_value(json_array_get(script_words, i));
    Child child = {words, limits->folder, json_string_value(code), json_string_length(code)};
    return run_child(&child);
}

// The byte at a line and a column of the text, both from 1; columns count bytes.
static size_t offset_of(const char *text, size_t length, json_int_t line, json_int_t column) {
    size_t at = 0;
    for (json_int_t i = 1; i < line && at < length; i++) {
        const char *end = memchr(text + at, '\n', length - at);
        at = end ? (size_t)(end - text) + 1 : length;
    }
    const char *end = memchr(text + at, '\n', length - at);
    size_t room = end ? (size_t)(end - text) - at : length - at;
    size_t wanted = column > 1 ? (size_t)column - 1 : 0;
    return at + (wanted < room ? wanted : room);
}

static json_t *tool_explain(const McpLimits *limits, const json_t *arguments) {
    (void)limits;
    const json_t *code = json_object_get(arguments, "code");
    const char *text = json_string_value(code);
    size_t length = json_string_length(code);
    Analysis *analysis = analysis_new("code.tl", text, length);
    if (!analysis) return failure_result();
    size_t offset = offset_of(text, length, json_integer_value(json_object_get(arguments, "line")),
                              json_integer_value(json_object_get(arguments, "column")));
    json_t *hover = feature_hover(analysis, offset);
    const char *words = "nothing is known of this place: it is not a name";
    if (hover)
        words = json_string_value(json_object_get(json_object_get(hover, "contents"), "value"));
    json_t *result = text_result(words, strlen(words), false);
    json_decref(hover);
    analysis_free(analysis);
    source_reset();
    return result;
}

static json_t *tool_help(const McpLimits *limits, const json_t *arguments) {
    (void)limits;
    SCOPED_TEXT(text);
    json_t *result = help_page(argument(arguments, "name"), &text) == STATUS_OK
                         ? text_result(text_get(&text), text.length, false)
                         : failure_result();
    source_reset();
    return result;
}

// --- the table

typedef enum ToolArgumentKind {
    ARGUMENT_STRING,
    ARGUMENT_INTEGER,
    ARGUMENT_STRINGS
} ToolArgumentKind;

typedef struct ToolArgument {
    const char *name; // NULL: no further argument
    ToolArgumentKind kind;
    bool required;
    const char *description;
} ToolArgument;

enum { ARGUMENTS_MAX = 3 };

static const struct Tool {
    const char *name, *description;
    json_t *(*call)(const McpLimits *limits, const json_t *arguments);
    ToolArgument arguments[ARGUMENTS_MAX];
} tools[] = {
    {"check",
     "Finds mistakes in a tl program without running it: syntax, names, arguments, shapes. Gives a "
     "JSON array of diagnostics with places and help; [] when there are none.",
     tool_check,
     {{"code", ARGUMENT_STRING, true, "the program"}}},
    {"run",
     "Runs a tl program and gives what it printed. It may use a folder of its own, and only so "
     "much "
     "time and memory.",
     tool_run,
     {{"code", ARGUMENT_STRING, true, "the program"},
      {"arguments", ARGUMENT_STRINGS, false, "the words that args() gives"}}},
    {"explain",
     "Says what is known of the name at a place of a tl program: its kind, shape, declaration and "
     "documentation.",
     tool_explain,
     {{"code", ARGUMENT_STRING, true, "the program"},
      {"line", ARGUMENT_INTEGER, true, "from 1"},
      {"column", ARGUMENT_INTEGER, true, "from 1, in bytes"}}},
    {"help",
     "The page of a builtin, keyword, type, function of std or TL_ variable of tl.",
     tool_help,
     {{"name", ARGUMENT_STRING, true, "such as softmax, learn or generate"}}},
};

static json_t *argument_schema(const ToolArgument *row) {
    static const char *const words[] = {"string", "integer", "array"};
    json_t *schema =
        json_pack("{s:s, s:s}", "type", words[row->kind], "description", row->description);
    if (row->kind == ARGUMENT_STRINGS)
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    return schema;
}

static json_t *tool_description(const struct Tool *tool) {
    json_t *properties = json_object(), *required = json_array();
    for (const ToolArgument *row = tool->arguments;
         row < tool->arguments + ARGUMENTS_MAX && row->name; row++) {
        json_object_set_new(properties, row->name, argument_schema(row));
        if (row->required) json_array_append_new(required, json_string(row->name));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o, s:o, s:b}}", "name", tool->name, "description",
                     tool->description, "inputSchema", "type", "object", "properties", properties,
                     "required", required, "additionalProperties", 0);
}

json_t *tools_list(void) {
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        json_array_append_new(list, tool_description(&tools[i]));
    return list;
}

static Status check_strings(const char *name, const json_t *value) {
    if (json_array_size(value) > WORDS_MAX / 2)
        return fail(STATUS_VALUE, "%s has more than %d items", name, WORDS_MAX / 2);
    bool strings = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        strings &=
            json_is_string(item) && strlen(json_string_value(item)) == json_string_length(item);
    }
    return strings ? STATUS_OK : fail(STATUS_TYPE, "%s must be an array of strings", name);
}

static Status check_argument(const ToolArgument *row, const json_t *value) {
    if (!value) return row->required ? fail(STATUS_ARITY, "%s is missing", row->name) : STATUS_OK;
    switch (row->kind) {
    case ARGUMENT_STRING:
        return json_is_string(value) ? STATUS_OK
                                     : fail(STATUS_TYPE, "%s must be a string", row->name);
    case ARGUMENT_INTEGER:
        return json_is_integer(value) ? STATUS_OK
                                      : fail(STATUS_TYPE, "%s must be an integer", row->name);
    case ARGUMENT_STRINGS: return check_strings(row->name, value);
    }
    return STATUS_OK;
}

static Status check_arguments(const struct Tool *tool, const json_t *arguments) {
    if (arguments && !json_is_object(arguments))
        return fail(STATUS_TYPE, "arguments must be an object");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value) {
        bool known = false;
        for (int i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name; i++)
            known |= strcmp(tool->arguments[i].name, name) == 0;
        if (!known) return fail(STATUS_NAME, "%s has no argument %s", tool->name, name);
    }
    for (int i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name; i++)
        TRY(check_argument(&tool->arguments[i],
                           json_object_get(arguments, tool->arguments[i].name)));
    return STATUS_OK;
}

json_t *tools_call(const McpLimits *limits, const char *name, const json_t *arguments) {
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        if (strcmp(tools[i].name, name) != 0) continue;
        if (check_arguments(&tools[i], arguments) != STATUS_OK) return NULL;
        return tools[i].call(limits, arguments);
    }
    fail(STATUS_NAME, "there is no tool %s", name);
    return NULL;
}
