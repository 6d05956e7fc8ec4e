// Commands that are programs in tl, std/commands/NAME.tl: their options, as the table says them,
// are checked here and handed on as --name and value, then --, then the other words.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "main/command.h"

typedef struct Standard {
    const Command *command;
    CommandLine line;
    PathList options, words; // borrowed
} Standard;

static const OptionHelp *find_option(const Command *command, const char *word, size_t length) {
    for (size_t i = 0; i < option_help_count; i++)
        if (option_is_of(&option_help[i], command) && strlen(option_help[i].name) == length &&
            memcmp(option_help[i].name, word, length) == 0)
            return &option_help[i];
    return NULL;
}

static bool fits(const OptionHelp *option, const char *value) {
    char *end;
    errno = 0;
    if (strcmp(option->argument, "N") == 0) {
        (void)strtoll(value, &end, 10);
        return *value >= '0' && *value <= '9' && *end == '\0' && errno == 0;
    }
    if (strcmp(option->argument, "X") != 0) return true;
    double number = strtod(value, &end);
    return end != value && *end == '\0' && isfinite(number) && number >= 0;
}

static void keep_option(Standard *standard, const OptionHelp *option, char *value) {
    VECTOR_PUSH(&standard->options, (char *)(uintptr_t)option->name);
    VECTOR_PUSH(&standard->options, value);
}

// "--name VALUE", "--name=VALUE" or "--name". False when it is not an option of the command.
static bool take_option(Standard *standard, char **arguments, int count, int *index) {
    char *word = arguments[*index], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const OptionHelp *option = find_option(standard->command, word, length);
    if (!option) return false;
    bool plain = option->argument[0] == '\0';
    char *value = equals ? equals + 1 : plain ? word : NULL;
    (*index)++;
    if (!value && *index == count)
        exit(usage_error(standard->command, "%s needs a value", option->name));
    if (!value) value = arguments[(*index)++];
    if (!fits(option, value))
        exit(usage_error(standard->command, "%s needs %s from 0, but it is \"%s\"", option->name,
                         option->argument[0] == 'N' ? "an integer" : "a number", value));
    keep_option(standard, option, value);
    return true;
}

// What tl's own options say, and what the program is told of them.
static bool take_common(Standard *standard, char **arguments, int count, int *index) {
    int first = *index;
    if (strcmp(arguments[first], "--json") == 0) return false;
    if (!option_read(&standard->line, arguments, count, index)) return false;
    *index = strncmp(arguments[first], "--seed", 6) == 0 ? first : *index;
    return *index > first;
}

// As many words as the command's usage has in capitals; those in brackets may be left out.
static void check_words(const Standard *standard) {
    const char *missing = NULL;
    size_t known = 0;
    for (const char *at = strchr(standard->command->usage, ' '); at; at = strchr(at, ' ')) {
        at++;
        bool optional = *at == '[';
        if (!isupper((unsigned char)at[optional])) continue;
        if (++known > standard->words.count && !optional && !missing) missing = at;
    }
    if (missing)
        exit(
            usage_error(standard->command, "%.*s is missing", (int)strcspn(missing, " "), missing));
    if (standard->words.count > known)
        exit(usage_error(standard->command, "%s is not expected", standard->words.items[known]));
}

static void read_words(Standard *standard, int count, char **arguments) {
    for (int index = 0; index < count;) {
        char *word = arguments[index];
        if (word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0) {
            if (take_common(standard, arguments, count, &index) ||
                take_option(standard, arguments, count, &index))
                continue;
            exit(word_refuse(standard->command, word));
        }
        if (strcmp(word, "--") == 0) index++;
        bool ends = strcmp(word, "--") == 0;
        for (int last = ends ? count : index + 1; index < last; index++)
            VECTOR_PUSH(&standard->words, arguments[index]);
    }
    check_words(standard);
}

// The words follow the options.
static void hand_on(Standard *standard) {
    VECTOR_PUSH(&standard->options, (char *)(uintptr_t) "--");
    for (size_t i = 0; i < standard->words.count; i++)
        VECTOR_PUSH(&standard->options, standard->words.items[i]);
    standard->line.interp.arguments = standard->options.items;
    standard->line.interp.argument_count = (int)standard->options.count;
    standard->line.is_command = true;
}

// What one token takes, as tl check --memory would say it; the caller frees it.
static char *tell_needs(Standard *standard) {
    static const char code[] = "let m = load_model(args()[0])\ngenerate(m, \"a\", 1)";
    CommandLine line = standard->line;
    line.code = code;
    line.interp.arguments = standard->words.items;
    line.interp.argument_count = (int)standard->words.count;
    char *needs = foretell_in_json(&line);
    if (!needs) return NULL;
    VECTOR_PUSH(&standard->options, (char *)(uintptr_t) "--needs");
    VECTOR_PUSH(&standard->options, needs);
    return needs;
}

int command_standard(const Command *command, int count, char **arguments) {
    Standard standard = {.command = command};
    SCOPED_TEXT(path);
    read_words(&standard, count, arguments);
    int status = EXIT_FAILED;
    char *needs = NULL;
    if (program_begin(&standard.line) != STATUS_OK) {
        status = report_current_error();
    } else {
        if (strcmp(command->name, "models") == 0) needs = tell_needs(&standard);
        hand_on(&standard);
        text_format(&path, "std/commands/%s.tl", command->name);
        Program *program = program_load_standard(text_get(&path));
        Tally tally = {0};
        if (program) status = program_end(program_run(&standard.line, program, &tally));
    }
    free(needs);
    VECTOR_FREE(&standard.options);
    VECTOR_FREE(&standard.words);
    return status;
}
