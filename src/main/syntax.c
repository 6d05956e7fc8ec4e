// The words of the language for editors: a Vim syntax file and a TextMate grammar, made of the
// tables of tokens, words, types and builtins.
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "check/types.h"
#include "lexer/lexer.h"
#include "main/command.h"

typedef enum Group {
    GROUP_NONE,
    GROUP_KEYWORD,
    GROUP_CONDITIONAL,
    GROUP_REPEAT,
    GROUP_EXCEPTION,
    GROUP_BOOLEAN,
    GROUP_CONSTANT,
    GROUP_OPERATOR,
    GROUP_COUNT
} Group;

static const uint8_t keyword_groups[TOKEN_KIND_COUNT] = {
    [TOKEN_FN] = GROUP_KEYWORD,     [TOKEN_LET] = GROUP_KEYWORD,
    [TOKEN_IF] = GROUP_CONDITIONAL, [TOKEN_ELSE] = GROUP_CONDITIONAL,
    [TOKEN_FOR] = GROUP_REPEAT,     [TOKEN_IN] = GROUP_REPEAT,
    [TOKEN_WHILE] = GROUP_REPEAT,   [TOKEN_LOOP] = GROUP_REPEAT,
    [TOKEN_BREAK] = GROUP_REPEAT,   [TOKEN_CONTINUE] = GROUP_REPEAT,
    [TOKEN_RETURN] = GROUP_KEYWORD, [TOKEN_MATCH] = GROUP_CONDITIONAL,
    [TOKEN_TRY] = GROUP_EXCEPTION,  [TOKEN_CATCH] = GROUP_EXCEPTION,
    [TOKEN_TRUE] = GROUP_BOOLEAN,   [TOKEN_FALSE] = GROUP_BOOLEAN,
    [TOKEN_NONE] = GROUP_CONSTANT,  [TOKEN_AND] = GROUP_OPERATOR,
    [TOKEN_OR] = GROUP_OPERATOR,    [TOKEN_NOT] = GROUP_OPERATOR,
    [TOKEN_AS] = GROUP_OPERATOR,
};

static const struct {
    const char *vim, *link, *textmate;
} group_names[GROUP_COUNT] = {
    [GROUP_KEYWORD] = {"tlKeyword", "Keyword", "keyword.other.tl"},
    [GROUP_CONDITIONAL] = {"tlConditional", "Conditional", "keyword.control.conditional.tl"},
    [GROUP_REPEAT] = {"tlRepeat", "Repeat", "keyword.control.loop.tl"},
    [GROUP_EXCEPTION] = {"tlException", "Exception", "keyword.control.exception.tl"},
    [GROUP_BOOLEAN] = {"tlBoolean", "Boolean", "constant.language.boolean.tl"},
    [GROUP_CONSTANT] = {"tlConstant", "Constant", "constant.language.tl"},
    [GROUP_OPERATOR] = {"tlOperator", "Operator", "keyword.operator.word.tl"},
};

// Adds a word behind a separator.
static void add_word(Text *words, const char *word, const char *separator) {
    if (words->length > 0) text_append_string(words, separator);
    text_append_string(words, word);
}

static void words_of_group(Text *out, Group group, const char *separator) {
    for (int kind = TOKEN_FN; kind <= TOKEN_AS; kind++) {
        ASSERT(keyword_groups[kind] != GROUP_NONE); // a new keyword needs its colour
        if (keyword_groups[kind] == group)
            add_word(out, token_spelling((TokenKind)kind), separator);
    }
}

static void words_of_forms(Text *out, WordGroup group, const char *separator) {
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        if (words[i].group == group) add_word(out, words[i].word, separator);
}

// Such words get the colour of their form.
static bool belongs_to_form(const char *word) {
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        if (words[i].group <= WORD_MODIFIER && strcmp(words[i].word, word) == 0) return true;
    return false;
}

static void words_of_types(Text *out, const char *separator) {
    for (int i = 0; i < DTYPE_COUNT; i++) add_word(out, dtype_name((DType)i), separator);
    DType dtype;
    for (size_t i = 0; type_word_name(i); i++) {
        const char *word = type_word_name(i);
        bool reserved =
            strcmp(word, "fn") == 0 || strcmp(word, "none") == 0 || belongs_to_form(word);
        if (!reserved && !dtype_find(word, strlen(word), &dtype)) add_word(out, word, separator);
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Builtins that can be called by a plain name; the names of types are types.
static void words_of_builtins(Text *out, const char *separator) {
    size_t count = catalog_names(NULL, 0);
    SCOPED_MEMORY const char **names = memory_allocate(count * sizeof *names);
    catalog_names(names, count);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        TypeWord word;
        bool plain = !strpbrk(names[i], ".:") && !type_word_find(names[i], &word) &&
                     !belongs_to_form(names[i]);
        if (plain && isalpha((unsigned char)names[i][0])) add_word(out, names[i], separator);
    }
}

// --- Vim

// "syntax keyword GROUP words", in lines of moderate length.
static void vim_keywords(const char *group, const Text *words) {
    int column = 0;
    for (const char *at = text_get(words); *at;) {
        size_t length = strcspn(at, " ");
        if (column == 0) column = printf("syntax keyword %s", group);
        column += printf(" %.*s", (int)length, at);
        at += length + (at[length] == ' ');
        if (column < 90 && *at) continue;
        printf("\n");
        column = 0;
    }
}

static const char vim_head[] = "\" Vim syntax of tl. Printed by `tl help --vim-syntax`.\n"
                               "if exists(\"b:current_syntax\")\n"
                               "  finish\n"
                               "endif\n"
                               "syntax case match\n"
                               "syntax sync minlines=200\n";

static const char vim_rest[] =
    "syntax match tlFunction \"\\%(\\<fn\\s\\+\\)\\@<=\\K\\k*\"\n"
    "syntax match tlField \"\\%(\\.\\|::\\)\\@<=\\K\\k*\"\n"
    "syntax match tlNumber \"\\<\\d[0-9_]*\\%(\\.\\%([0-9_]\\+\\|[.A-Za-z_]\\@!\\)\\)\\="
    "\\%([eE][-+]\\=\\d\\+\\)\\=\\>\"\n"
    "syntax match tlNumber \"\\<0x\\x\\+\\>\"\n"
    "syntax match tlNumber \"\\<0b[01]\\+\\>\"\n"
    "syntax match tlEscape contained \"\\\\[ntr0\\\"\\\\]\"\n"
    "syntax match tlEscape contained \"\\\\u\\%(\\x\\{4}\\|{\\x\\{1,6}}\\)\"\n"
    "syntax match tlEscape contained \"{{\\|}}\"\n"
    "syntax region tlString start=+\"+ skip=+\\\\.+ end=+\"+ contains=tlEscape\n"
    "syntax region tlString start=+\\<r\"+ end=+\"+\n"
    "syntax region tlString start=+\\<f\"+ skip=+\\\\.+ end=+\"+ contains=tlEscape,tlPlaceholder\n"
    "syntax region tlPlaceholder contained matchgroup=tlEscape start=+{{\\@!+ end=+}+ "
    "contains=TOP\n"
    "syntax match tlComment \"//.*$\"\n"
    "syntax region tlComment start=\"/\\*\" end=\"\\*/\" contains=tlComment\n"
    "syntax match tlComment \"\\%^#!.*$\"\n";

static const char vim_links[] = "highlight default link tlDeclaration Structure\n"
                                "highlight default link tlStatement Statement\n"
                                "highlight default link tlModifier StorageClass\n"
                                "highlight default link tlType Type\n"
                                "highlight default link tlBuiltin Function\n"
                                "highlight default link tlFunction Function\n"
                                "highlight default link tlNumber Number\n"
                                "highlight default link tlEscape SpecialChar\n"
                                "highlight default link tlString String\n"
                                "highlight default link tlComment Comment\n"
                                "let b:current_syntax = \"tl\"\n";

// Words that are names outside their forms: coloured at the start of a line or behind a type only.
static void vim_forms(void) {
    SCOPED_TEXT(declarations);
    SCOPED_TEXT(statements);
    SCOPED_TEXT(modifiers);
    words_of_forms(&declarations, WORD_DECLARATION, "\\|");
    words_of_forms(&statements, WORD_STATEMENT, "\\|");
    words_of_forms(&modifiers, WORD_MODIFIER, "\\|");
    printf("syntax match tlDeclaration "
           "\"^\\s*\\zs\\%%(%s\\)\\>\\ze\\%%(\\s\\+[A-Za-z_\\\"{]\\|<\\)\"\n",
           text_get(&declarations));
    printf("syntax match tlStatement \"\\<\\%%(%s\\)\\>\\ze\\s\\+[A-Za-z_{]\"\n",
           text_get(&statements));
    printf("syntax match tlModifier \"\\<\\%%(%s\\)\\>\"\n", text_get(&modifiers));
}

void syntax_print_vim(void) {
    fputs(vim_head, stdout);
    SCOPED_TEXT(words);
    words_of_builtins(&words, " ");
    vim_keywords("tlBuiltin", &words);
    text_clear(&words);
    words_of_types(&words, " ");
    vim_keywords("tlType", &words);
    for (int group = GROUP_KEYWORD; group < GROUP_COUNT; group++) {
        text_clear(&words);
        words_of_group(&words, (Group)group, " ");
        vim_keywords(group_names[group].vim, &words);
    }
    vim_forms();
    fputs(vim_rest, stdout);
    for (int group = GROUP_KEYWORD; group < GROUP_COUNT; group++)
        printf("highlight default link %s %s\n", group_names[group].vim, group_names[group].link);
    fputs(vim_links, stdout);
}

// --- TextMate

static void add_match(json_t *patterns, const char *name, const char *match) {
    json_array_append_new(patterns, json_pack("{s:s, s:s}", "name", name, "match", match));
}

// One of the words, between `before` and `behind`.
static void add_words(json_t *patterns, const char *name, const Text *words, const char *behind) {
    SCOPED_TEXT(match);
    text_format(&match, "\\b(%s)\\b%s", text_get(words), behind);
    add_match(patterns, name, text_get(&match));
}

// What stands in a placeholder: code, whose braces are its own, then a format.
static json_t *placeholder(void) {
    const char *edge = "punctuation.section.embedded.tl";
    return json_pack("{s:s, s:s, s:s, s:{s:{s:s}}, s:{s:{s:s}}, s:[{s:s}, {s:s, s:s}, {s:s}]}",
                     "name", "meta.interpolation.tl", "begin", "\\{", "end", "\\}", "beginCaptures",
                     "0", "name", edge, "endCaptures", "0", "name", edge, "patterns", "include",
                     "#brackets", "name", "constant.other.placeholder.tl", "match",
                     "(?<!:):(?!:)[^{}\"]*(?=\\})", "include", "$self");
}

static json_t *bracket_patterns(void) {
    json_t *patterns = json_array();
    static const char *const pairs[][2] = {{"\\{", "\\}"}, {"\\(", "\\)"}, {"\\[", "\\]"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        json_array_append_new(patterns, json_pack("{s:s, s:s, s:[{s:s}, {s:s}]}", "begin",
                                                  pairs[i][0], "end", pairs[i][1], "patterns",
                                                  "include", "#brackets", "include", "$self"));
    return patterns;
}

static void add_strings(json_t *patterns) {
    static const char escape[] = "\\\\(?:[ntr0\"\\\\]|u[0-9A-Fa-f]{4}|u\\{[0-9A-Fa-f]{1,6}\\})";
    const char *escaped = "constant.character.escape.tl";
    json_t *inner = json_pack("[{s:s, s:s}]", "name", escaped, "match", escape);
    json_t *holes = json_pack("[{s:s, s:s}, {s:s, s:s}, o]", "name", escaped, "match", escape,
                              "name", escaped, "match", "\\{\\{|\\}\\}", placeholder());
    json_array_append_new(patterns,
                          json_pack("{s:s, s:s, s:s, s:o}", "name", "string.interpolated.tl",
                                    "begin", "\\bf\"", "end", "\"", "patterns", holes));
    json_array_append_new(patterns, json_pack("{s:s, s:s, s:s}", "name", "string.quoted.raw.tl",
                                              "begin", "\\br\"", "end", "\""));
    json_array_append_new(patterns,
                          json_pack("{s:s, s:s, s:s, s:o}", "name", "string.quoted.double.tl",
                                    "begin", "\"", "end", "\"", "patterns", inner));
}

// Behind a name, a number or a closing bracket `.5` is an element; elsewhere it is a number.
static void add_numbers(json_t *patterns) {
    json_array_append_new(patterns, json_pack("{s:s, s:{s:{s:s}}}", "match",
                                              "(?<=[\\p{L}\\p{N}_)\\]])\\.([0-9][0-9_]*)",
                                              "captures", "1", "name", "constant.numeric.tl"));
    add_match(patterns, "constant.numeric.tl",
              "(?:\\b0[xX][0-9A-Fa-f_]+|\\b0[bB][01_]+|"
              "(?:\\b[0-9][0-9_]*(?:\\.(?![.\\p{L}_])[0-9_]*)?|(?<!\\.)\\.[0-9][0-9_]*)"
              "(?:[eE][-+]?[0-9]+)?)");
}

static json_t *comment_patterns(void) {
    return json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s, s:[{s:s}]}]", "name",
                     "comment.line.shebang.tl", "match", "\\A\\x{FEFF}?#!.*$", "name",
                     "comment.line.double-slash.tl", "match", "//.*$", "name", "comment.block.tl",
                     "begin", "/\\*", "end", "\\*/", "patterns", "include", "#comments");
}

static void add_all_words(json_t *patterns) {
    SCOPED_TEXT(words);
    for (int group = GROUP_KEYWORD; group < GROUP_COUNT; group++) {
        text_clear(&words);
        words_of_group(&words, (Group)group, "|");
        add_words(patterns, group_names[group].textmate, &words, "");
    }
    static const struct {
        const char *name, *behind;
    } forms[] = {
        [WORD_DECLARATION] = {"keyword.declaration.tl", "(?=\\s+[\\p{L}_\"{]|<)"},
        [WORD_STATEMENT] = {"keyword.control.tl", "(?=\\s+[\\p{L}_{])"},
        [WORD_MODIFIER] = {"storage.modifier.tl", ""},
    };
    for (int group = WORD_DECLARATION; group <= WORD_MODIFIER; group++) {
        text_clear(&words);
        words_of_forms(&words, (WordGroup)group, "|");
        add_words(patterns, forms[group].name, &words, forms[group].behind);
    }
    text_clear(&words);
    words_of_types(&words, "|");
    add_words(patterns, "support.type.tl", &words, "");
    text_clear(&words);
    words_of_builtins(&words, "|");
    add_words(patterns, "support.function.tl", &words, "(?=\\s*\\()");
}

void syntax_print_textmate(void) {
    json_t *patterns = json_pack("[{s:s}]", "include", "#comments");
    add_strings(patterns);
    add_numbers(patterns);
    add_match(patterns, "entity.name.function.tl", "(?<=\\bfn )\\s*[\\p{L}_][\\p{L}\\p{N}_]*");
    add_all_words(patterns);
    json_t *grammar =
        json_pack("{s:s, s:s, s:s, s:[s], s:o, s:{s:{s:o}, s:{s:o}}}", "comment",
                  "Printed by `tl help --textmate`.", "name", "tl", "scopeName", "source.tl",
                  "fileTypes", "tl", "patterns", patterns, "repository", "comments", "patterns",
                  comment_patterns(), "brackets", "patterns", bracket_patterns());
    ASSERT(grammar);
    char *text = json_dumps(grammar, JSON_INDENT(2));
    puts(text);
    free(text);
    json_decref(grammar);
}
