// Completion: what may stand where the cursor is. Names of the session, builtins and keywords;
// behind a dot what that value has; inside a call its parameters; behind a colon the commands; in
// strings and behind :load files.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "base/standard.h"
#include "check/types.h"
#include "eval/structs.h"
#include "lexer/lexer.h"
#include "parser/position.h"
#include "repl/internal.h"

static Repl *completing;

// The candidates of one completion, in the order found; readline sorts them.
typedef struct Candidates {
    VECTOR(char *) items;
    const char *prefix; // stands before each of them: "x." in "x.sh"
    const char *word;   // what they must begin with
} Candidates;

static void offer(Candidates *candidates, const char *name, const char *suffix) {
    if (strncmp(name, candidates->word, strlen(candidates->word)) != 0) return;
    SCOPED_TEXT(text);
    text_format(&text, "%s%s%s", candidates->prefix, name, suffix);
    for (size_t i = 0; i < candidates->items.count; i++)
        if (strcmp(candidates->items.items[i], text_get(&text)) == 0) return;
    VECTOR_PUSH(&candidates->items, text_take(&text));
}

static void offer_keywords(Candidates *candidates, const Position *position) {
    for (int kind = TOKEN_FN; kind <= TOKEN_AS; kind++)
        if (position_allows_keyword(position, (TokenKind)kind))
            offer(candidates, token_spelling((TokenKind)kind), "");
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        if (position_allows_word(position, &words[i])) offer(candidates, words[i].word, "");
}

// Builtins only behind a first letter: all of them would hide the session's own names.
static void offer_values(Candidates *candidates) {
    for (size_t i = 0; i < session_name_count(completing->session); i++) {
        const char *name = session_name(completing->session, i).name;
        if (strcmp(name, "_") != 0) offer(candidates, name, "");
    }
    if (candidates->word[0] == '\0') return;
    for (size_t i = 0; i < catalog_count(); i++) {
        const char *name = catalog_get(i)->signature.name;
        if (name[0] != '_' && !strpbrk(name, ".:")) offer(candidates, name, "");
    }
    size_t count;
    const Constant *constants = catalog_constants(&count);
    for (size_t i = 0; i < count; i++) offer(candidates, constants[i].name, "");
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        offer(candidates, dtype_name((DType)dtype), "");
}

static void offer_types(Candidates *candidates) {
    for (size_t i = 0; i < session_name_count(completing->session); i++) {
        SessionName name = session_name(completing->session, i);
        if (name.binding->kind == BINDING_STRUCT) offer(candidates, name.name, "");
    }
    for (size_t i = 0; type_word_name(i); i++) offer(candidates, type_word_name(i), "");
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

// What a struct's impls declare: with `self` behind a dot, without behind `::`.
static void offer_functions_of(Candidates *candidates, const StructCode *type, bool with_self) {
    for (size_t i = 0; i < type->method_count; i++) {
        const FunctionNode *function = type->methods[i].node;
        bool self =
            function->parameter_count > 0 && strcmp(function->parameters[0].name.text, "self") == 0;
        if (self == with_self) offer(candidates, type->methods[i].name, "");
    }
}

static TypeWord type_of(Value value) {
    TypeWord word;
    if (value.kind == VALUE_ABSENT) return TYPE_WORD_ANY;
    return type_word_of_kind(value_kind_name(value), &word) ? word : TYPE_WORD_NONE;
}

// Builtins whose first parameter takes the value, by the last part of their names; all of them when
// it is not known.
static void offer_methods(Candidates *candidates, Value value) {
    TypeWord type = type_of(value);
    for (size_t i = 0; i < catalog_count(); i++) {
        const Signature *signature = &catalog_get(i)->signature;
        const char *dot = strchr(signature->name, '.');
        bool method = signature->count > 0 && signature->name[0] != '_' &&
                      !strchr(signature->name, ':') &&
                      type_word_fits(type, signature->params[0].kind);
        if (method) offer(candidates, dot ? dot + 1 : signature->name, "");
    }
}

// What a file that was imported under a name declares.
static void offer_declared(Candidates *candidates, const Program *program) {
    NodeList list = program->top->as.block.statements;
    for (size_t i = 0; i < list.count; i++) {
        const Node *node = list.items[i];
        if (node->kind == NODE_FUNCTION)
            offer(candidates, node->as.function->name.text, "");
        else if (node->kind == NODE_STRUCT)
            offer(candidates, node->as.structure.name.text, "");
        else if (node->kind == NODE_LET && node->as.let.pattern->kind == PATTERN_BIND)
            offer(candidates, node->as.let.pattern->name.text, "");
    }
}

static void offer_members(Candidates *candidates, const char *receiver, size_t length) {
    SessionName found;
    if (session_find(completing->session, receiver, length, &found) &&
        found.binding->kind == BINDING_MODULE) {
        offer_declared(candidates, found.binding->program);
        return;
    }
    SCOPED_VALUE(value) = inspect_path(completing, receiver, length);
    offer_fields(candidates, value);
    if (value.kind == VALUE_STRUCT)
        offer_functions_of(candidates, value.as.instance->type->definition, true);
    else
        offer_methods(candidates, value);
}

// --- behind `::`

// The struct that `Name` or `file.Name` means; NULL when it is none that has run.
static const StructCode *struct_named(const char *receiver, size_t length) {
    const char *dot = memchr(receiver, '.', length);
    size_t first = dot ? (size_t)(dot - receiver) : length;
    SessionName found;
    if (!session_find(completing->session, receiver, first, &found)) return NULL;
    const Binding *binding = found.binding;
    if (!dot) return binding->kind == BINDING_STRUCT ? binding->lowered : NULL;
    if (binding->kind != BINDING_MODULE) return NULL;
    NodeList list = binding->program->top->as.block.statements;
    for (size_t i = 0; i < list.count; i++) {
        const Word *name = &list.items[i]->as.structure.name;
        if (list.items[i]->kind == NODE_STRUCT && name->length == length - first - 1 &&
            memcmp(name->text, dot + 1, name->length) == 0)
            return list.items[i]->as.structure.binding->lowered;
    }
    return NULL;
}

static void offer_path(Candidates *candidates, const char *receiver, size_t length) {
    const StructCode *type = struct_named(receiver, length);
    if (type) offer_functions_of(candidates, type, false);
    for (size_t i = 0; i < catalog_count(); i++) { // KVCache::new
        const char *name = catalog_get(i)->signature.name, *colons = strstr(name, "::");
        if (colons && (size_t)(colons - name) == length && memcmp(name, receiver, length) == 0)
            offer(candidates, colons + 2, "");
    }
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

static char **take_matches(Candidates *candidates, const char *text) {
    given = candidates;
    char **matches = candidates->items.count ? rl_completion_matches(text, generate) : NULL;
    for (size_t i = 0; i < candidates->items.count; i++) free(candidates->items.items[i]);
    VECTOR_FREE(&candidates->items);
    return matches;
}

static bool takes_file(const char *line) {
    return strncmp(line, ":load ", 6) == 0 || strncmp(line, ":save ", 6) == 0;
}

static void offer_all(Candidates *candidates, const Position *position, int start) {
    const char *receiver = rl_line_buffer + position->receiver;
    size_t length = position->receiver_end - position->receiver;
    switch (position->kind) {
    case POSITION_NONE: return;
    case POSITION_MEMBER: offer_members(candidates, receiver, length); return;
    case POSITION_PATH: offer_path(candidates, receiver, length); return;
    case POSITION_TYPE: offer_types(candidates); return;
    case POSITION_OPERATOR: offer_keywords(candidates, position); return;
    default:
        offer_arguments(candidates, start);
        offer_keywords(candidates, position);
        offer_values(candidates);
    }
}

static bool takes_relation(const char *line) {
    return strncmp(line, ":facts ", strlen(":facts ")) == 0;
}

static void offer_relations(Candidates *candidates) {
    for (size_t i = 0; i < session_name_count(completing->session); i++) {
        SessionName name = session_name(completing->session, i);
        if (name.binding->kind == BINDING_RELATION) offer(candidates, name.name, "");
    }
}

static bool imports(const char *line) {
    return strncmp(line, "import \"", strlen("import \"")) == 0;
}

// The standard library's next to those on disk, a part of the path at a time.
static char **attempt_import(const char *text) {
    Candidates candidates = {.prefix = "", .word = text};
    for (size_t i = 0; i < standard_file_count; i++) {
        const char *path = standard_files[i].path;
        const char *slash =
            strncmp(path, text, strlen(text)) == 0 ? strchr(path + strlen(text), '/') : NULL;
        SCOPED_TEXT(part);
        text_append(&part, path, slash ? (size_t)(slash - path) + 1 : strlen(path));
        offer(&candidates, text_get(&part), "");
    }
    bool standard = candidates.items.count > 0;
    char *file;
    for (int state = 0; standard && (file = rl_filename_completion_function(text, state));
         state = 1) {
        offer(&candidates, file, "");
        free(file);
    }
    char **matches = take_matches(&candidates, text);
    if (!matches) return NULL;
    size_t length = strlen(matches[0]);
    rl_completion_append_character = '\0';
    rl_completion_suppress_quote = length > 0 && matches[0][length - 1] == '/'; // it goes on
    return matches;
}

static char **attempt(const char *text, int start, int end) {
    if (rl_completion_quote_character && imports(rl_line_buffer)) return attempt_import(text);
    if (rl_completion_quote_character || takes_file(rl_line_buffer)) return NULL; // file names
    rl_attempted_completion_over = 1;
    rl_completion_append_character = '\0';
    Candidates candidates = {.prefix = "", .word = text};
    if (start == 1 && rl_line_buffer[0] == ':') {
        for (size_t i = 0; i < command_count_all(); i++) offer(&candidates, command_name(i), "");
    } else if (takes_relation(rl_line_buffer)) {
        offer_relations(&candidates);
    } else {
        Position position = position_find(rl_line_buffer, (size_t)end);
        size_t before =
            position.word - (size_t)start; // of the receiver, which readline takes along
        char *prefix = memory_copy_string(text, before);
        candidates.prefix = prefix;
        candidates.word = text + before;
        offer_all(&candidates, &position, start);
        free(prefix);
    }
    return take_matches(&candidates, text);
}

// A screenful at most, in place of readline's question whether to show hundreds; without what
// stands on the line before each of them.
static void show_matches(char **matches, int count, int longest) {
    size_t prefix = strlen(matches[0]);
    while (prefix > 0 && !strchr(".:", matches[0][prefix - 1])) prefix--;
    if (prefix == strlen(matches[1])) prefix = 0; // an argument's name: `dim:`
    longest -= (int)prefix;
    int rows, columns;
    rl_get_screen_size(&rows, &columns);
    int across = columns / (longest + 2);
    int most = (across > 1 ? across : 1) * (rows > 4 ? rows - 3 : 1);
    int shown = count < most ? count : most;
    char **short_ones = memory_allocate(((size_t)shown + 1) * sizeof *short_ones);
    for (int i = 0; i <= shown; i++) short_ones[i] = matches[i] + prefix;
    rl_display_match_list(short_ones, shown, longest);
    if (count > shown) fprintf(rl_outstream, "and %d more: type on\n", count - shown);
    free(short_ones);
    rl_forced_update_display();
}

void complete_begin(Repl *repl) {
    completing = repl;
    rl_attempted_completion_function = attempt;
    rl_completer_word_break_characters = " \t\n\"'`@$><=;|&{([,+-*/%:!?~^)]}";
    rl_completer_quote_characters = "\"";
    rl_completion_display_matches_hook = show_matches;
}
