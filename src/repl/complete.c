// Completion: names of the session, builtins and keywords; behind a dot fields and methods; inside
// a call its parameters; behind a colon the commands; in strings and behind :load files.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "eval/structs.h"
#include "lexer/lexer.h"
#include "repl/internal.h"
#include "value/object.h"

enum { NAMES_MAX = 4096 };

static Repl *completing;

// The candidates of one completion, in the order found; readline sorts them.
typedef struct Candidates {
    VECTOR(char *) items;
    const char *prefix; // stands before each of them: "x." in "x.sh"
    const char *word;   // what they must begin with
} Candidates;

static void offer(Candidates *candidates, const char *name, const char *suffix) {
    if (strncmp(name, candidates->word, strlen(candidates->word)) != 0) return;
    Text text = {0};
    text_format(&text, "%s%s%s", candidates->prefix, name, suffix);
    for (size_t i = 0; i < candidates->items.count; i++)
        if (strcmp(candidates->items.items[i], text_get(&text)) == 0) {
            text_free(&text);
            return;
        }
    VECTOR_PUSH(&candidates->items, text_take(&text));
}

static void offer_builtins(Candidates *candidates) {
    static const char *names[NAMES_MAX];
    size_t count = catalog_names(names, NAMES_MAX);
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) offer(candidates, names[i], "");
}

static void offer_names(Candidates *candidates) {
    for (size_t i = 0; i < session_name_count(completing->session); i++)
        offer(candidates, session_name(completing->session, i).name, "");
    offer_builtins(candidates);
    for (int kind = TOKEN_END; kind < TOKEN_KIND_COUNT; kind++) {
        const char *word = token_spelling((TokenKind)kind);
        if (word && isalpha((unsigned char)word[0])) offer(candidates, word, "");
    }
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        offer(candidates, dtype_name((DType)dtype), "");
}

// --- behind a dot

static void offer_fields(Candidates *candidates, Value value) {
    static const char *const tensor_properties[] = {"shape", "dtype", "T", "ndim"};
    if (value.kind == VALUE_STRUCT)
        for (size_t i = 0; i < value.as.instance->type->field_count; i++)
            offer(candidates, value.as.instance->type->field_names[i], "");
    if (value.kind == VALUE_DICT)
        for (size_t i = 0; i < dict_count(value.as.dict); i++) {
            Value key, item;
            dict_entry(value.as.dict, i, &key, &item);
            if (key.kind == VALUE_STRING) offer(candidates, key.as.string->bytes, "");
        }
    if (value.kind == VALUE_TENSOR)
        for (size_t i = 0; i < sizeof tensor_properties / sizeof *tensor_properties; i++)
            offer(candidates, tensor_properties[i], "");
}

static bool takes_first(ParamKind kind, Value value) {
    switch (kind) {
    case PARAM_ANY: return true;
    case PARAM_TENSOR: return value.kind == VALUE_TENSOR;
    case PARAM_LIST:
    case PARAM_TENSORS: return value.kind == VALUE_LIST || value.kind == VALUE_TUPLE;
    case PARAM_STRING: return value.kind == VALUE_STRING;
    case PARAM_DICT: return value.kind == VALUE_DICT;
    case PARAM_INT:
    case PARAM_NUMBER: return value.kind == VALUE_INT || value.kind == VALUE_FLOAT;
    case PARAM_MODEL:
    case PARAM_TOKENIZER:
    case PARAM_CACHE:
    case PARAM_BUFFER: return value.kind == VALUE_HANDLE;
    default: return false;
    }
}

// Builtins whose first parameter takes the value; all of them when it is not known.
static void offer_methods(Candidates *candidates, Value value) {
    const StructCode *type =
        value.kind == VALUE_STRUCT ? value.as.instance->type->definition : NULL;
    for (size_t i = 0; type && i < type->method_count; i++)
        offer(candidates, type->methods[i].name, "");
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        if (row->signature.count == 0) continue;
        if (value.kind == VALUE_ABSENT || takes_first(row->signature.params[0].kind, value))
            offer(candidates, row->signature.name, "");
    }
}

static void complete_member(Candidates *candidates, const char *text, const char *dot) {
    Value value = inspect_path(completing, text, (size_t)(dot - text));
    char *prefix = memory_copy_string(text, (size_t)(dot - text) + 1);
    candidates->prefix = prefix;
    candidates->word = dot + 1;
    offer_fields(candidates, value);
    offer_methods(candidates, value);
    value_release(value);
    free(prefix);
}

// --- inside a call

// The start of the name before the innermost bracket that is open at `end`; NULL when there is
// none.
static const char *open_call(const char *line, int end, size_t *length) {
    int depth = 0;
    for (int i = end - 1; i >= 0; i--) {
        if (strchr(")]}", line[i])) depth++;
        if (!strchr("([{", line[i]) || depth-- > 0) continue;
        if (line[i] != '(') return NULL;
        int start = i;
        while (start > 0 && (isalnum((unsigned char)line[start - 1]) || line[start - 1] == '_'))
            start--;
        *length = (size_t)(i - start);
        return *length ? line + start : NULL;
    }
    return NULL;
}

static void offer_arguments(Candidates *candidates, int start) {
    size_t length;
    const char *name = open_call(rl_line_buffer, start, &length);
    SessionName found;
    if (!name) return;
    if (session_find(completing->session, name, length, &found)) {
        if (found.binding->kind != BINDING_FUNCTION) return;
        const FunctionNode *function = found.binding->declaration->as.function;
        for (size_t i = 0; i < function->parameter_count; i++)
            offer(candidates, function->parameters[i].name.text, ":");
        return;
    }
    for (const Builtin *row = catalog_find(name, length); row; row = row->next_overload)
        for (int i = 0; i < row->signature.count; i++)
            offer(candidates, row->signature.params[i].name, ":");
}

// --- readline's side

static Candidates *given; // what the generator gives out
static size_t given_next;

static char *generate(const char *text, int state) {
    (void)text;
    if (state == 0) given_next = 0;
    if (given_next >= given->items.count) return NULL;
    const char *item = given->items.items[given_next++];
    return memory_copy_string(item, strlen(item));
}

static bool takes_file(const char *line) {
    return strncmp(line, ":load ", 6) == 0 || strncmp(line, ":save ", 6) == 0;
}

static char **attempt(const char *text, int start, int end) {
    (void)end;
    if (rl_completion_quote_character || takes_file(rl_line_buffer)) return NULL; // file names
    rl_attempted_completion_over = 1;
    rl_completion_append_character = '\0';
    Candidates candidates = {.prefix = "", .word = text};
    const char *dot = strrchr(text, '.');
    if (start == 1 && rl_line_buffer[0] == ':') {
        for (size_t i = 0; i < command_count_all(); i++) offer(&candidates, command_name(i), "");
    } else if (dot) {
        complete_member(&candidates, text, dot);
    } else {
        offer_arguments(&candidates, start);
        offer_names(&candidates);
    }
    given = &candidates;
    char **matches = candidates.items.count ? rl_completion_matches(text, generate) : NULL;
    for (size_t i = 0; i < candidates.items.count; i++) free(candidates.items.items[i]);
    VECTOR_FREE(&candidates.items);
    return matches;
}

void complete_begin(Repl *repl) {
    completing = repl;
    rl_attempted_completion_function = attempt;
    rl_completer_word_break_characters = " \t\n\"'`@$><=;|&{([,+-*/%:!?~^)]}";
    rl_completer_quote_characters = "\"";
}
