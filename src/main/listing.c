// The catalog as JSON, for programs that make pages or tools of it: `tl help --json`.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/variables.h"
#include "main/command.h"

static void add_text(json_t *array, const char *text, size_t length) {
    json_array_append_new(array, json_stringn(text, length));
}

// The parts of a text between separators; none of an empty one.
static json_t *parts(const char *text, const char *separator) {
    json_t *array = json_array();
    for (const char *end; *text; text = *end ? end + strlen(separator) : end) {
        end = strstr(text, separator);
        if (!end) end = text + strlen(text);
        add_text(array, text, (size_t)(end - text));
    }
    return array;
}

static json_t *builtin(const Builtin *row) {
    SCOPED_TEXT(aliases);
    catalog_aliases(row, &aliases);
    size_t sentences = strcspn(row->doc, "\n");
    const char *examples = row->doc + sentences;
    return json_pack("{s:s, s:s, s:s, s:s#, s:o, s:o}", "name", row->signature.name, "section",
                     row->section, "signature", row->signature_text, "doc", row->doc,
                     (int)sentences, "examples", parts(*examples ? examples + 1 : examples, "\n"),
                     "aliases", parts(text_get(&aliases), ", "));
}

static json_t *all_builtins(void) {
    json_t *array = json_array();
    for (size_t i = 0; i < catalog_count(); i++)
        json_array_append_new(array, builtin(catalog_get(i)));
    return array;
}

static json_t *all_words(void) {
    json_t *array = json_array();
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            array, json_pack("{s:s, s:s}", "name", words[i].word, "form", words[i].form));
    return array;
}

static json_t *all_constants(void) {
    json_t *array = json_array();
    size_t count;
    const Constant *constants = catalog_constants(&count);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            array, json_pack("{s:s, s:s}", "name", constants[i].name, "doc", constants[i].doc));
    return array;
}

static json_t *all_variables(void) {
    json_t *array = json_array();
    for (int i = 0; i < VARIABLE_COUNT; i++)
        if (!variables[i].for_tests)
            json_array_append_new(array,
                                  json_pack("{s:s, s:s, s:s}", "name", variables[i].name, "form",
                                            variables[i].form, "doc", variables[i].doc));
    return array;
}

void listing_print(void) {
    json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "builtins", all_builtins(), "constants",
                            all_constants(), "words", all_words(), "variables", all_variables());
    ASSERT(all);
    char *text = json_dumps(all, JSON_INDENT(1));
    puts(text);
    free(text);
    json_decref(all);
}
