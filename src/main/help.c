// tl help: the overview, the page of a name, and the printed reference.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/variables.h"
#include "check/help.h"
#include "main/command.h"

#define PROGRAMS "run test bench profile"
#define RUNNERS PROGRAMS " repl"
#define TALKERS "generate chat"
#define MODELS " models quantize serve " TALKERS

const OptionHelp option_help[] = {
    {"--device", "NAME", RUNNERS " check" MODELS, "where new tensors are made"},
    {"--memory-check", "[=strict]", RUNNERS MODELS,
     "print the memory report at exit; strict: exit status 3 on a leak; all: the host's memory "
     "too"},
    {"--seed", "N", RUNNERS " " TALKERS, "begin the random numbers with N"},
    {"--max-tokens", "N", TALKERS, "say at most N tokens"},
    {"--temperature", "X", TALKERS, "0: always the likeliest token; 0.7 unless given"},
    {"--top-k", "N", TALKERS, "draw among the N likeliest tokens"},
    {"--top-p", "X", TALKERS, "draw among those that make up the probability X"},
    {"--stop", "TEXT", TALKERS, "end before this text; may be given several times"},
    {"--host", "ADDRESS", "serve", "where to listen; 127.0.0.1 unless given"},
    {"--port", "N", "serve", "8080 unless given; 0: any that is free"},
    {"--key", "TEXT", "serve", "what clients must send as a bearer token"},
    {"--lora", "NAME=FILE", "serve",
     "the model with this adapter, which clients choose as NAME; may be given several times"},
    {"--name", "TEXT", "serve", "how clients name the model; its file's name unless given"},
    {"--batch", "N", "serve", "texts that go on together; 8 unless given"},
    {"--queue", "N", "serve", "more texts that may wait; 64 unless given"},
    {"--body-limit", "N", "serve", "bytes of a request; 4194304 unless given"},
    {"--system", "TEXT", "chat", "what the model is told at the beginning"},
    {"--quiet", "", RUNNERS, "fewer messages"},
    {"--verbose", "", RUNNERS, "say which seed a run uses"},
    {"--ranks", "WHO", RUNNERS, "under mpirun, whose output is seen: first, or all"},
    {"--memory-limit", "SIZE", RUNNERS,
     "at most SIZE (500MB, 2GB) of device memory: the rest is moved out and back"},
    {"--host-limit", "SIZE", PROGRAMS " mcp",
     "at most SIZE (500MB, 2GB) of the process's own memory"},
    {"--disk-limit", "SIZE", PROGRAMS " mcp", "write files of at most SIZE (500MB, 2GB) together"},
    {"--time-limit", "TIME", PROGRAMS " mcp", "end the program after TIME (500ms, 10s, 2m)"},
    {"--sandbox", "FOLDER", RUNNERS " mcp",
     "read and write files in FOLDER only, without the environment"},
    {"--filter", "TEXT", "test bench", "run only blocks with TEXT in their name"},
    {"--json", "", "check models", "print JSON"},
    {"--memory", "[=sure]", "check",
     "foretell the device memory that running FILE takes; sure: once, for what holds whatever "
     "numbers it finds"},
    {"--sums", "", "check", "show where the sums of equations stand, and the sizes of indexes"},
    {"--check", "", "fmt", "change nothing: list what would change, with exit status 1"},
};
const size_t option_help_count = sizeof option_help / sizeof *option_help;

bool option_is_of(const OptionHelp *option, const Command *command) {
    size_t length = strlen(command->name);
    for (const char *at = option->commands; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && memcmp(at, command->name, length) == 0) return true;
    return false;
}

void option_append_head(Text *out, const OptionHelp *option) {
    bool word = isupper((unsigned char)option->argument[0]);
    text_format(out, "%s%s%s", option->name, word ? " " : "", option->argument);
}

static void show_option(const OptionHelp *option) {
    SCOPED_TEXT(head);
    option_append_head(&head, option);
    printf("  %-24s %s\n", text_get(&head), option->summary);
}

int help_show_command(const Command *command) {
    printf("usage: %s\n%s\n", command->usage, command->summary);
    bool any = false;
    for (size_t i = 0; i < option_help_count; i++) {
        if (!option_is_of(&option_help[i], command)) continue;
        if (!any) printf("\noptions:\n");
        show_option(&option_help[i]);
        any = true;
    }
    return EXIT_SUCCESS_STATUS;
}

static void overview(void) {
    printf("tl: tensors, neural networks and language models in small scripts\n\n");
    for (int i = 0; i < command_count; i++)
        printf("  %-44s %s\n", commands[i].usage, commands[i].summary);
    printf("\noptions:\n");
    for (size_t i = 0; i < option_help_count; i++)
        if (option_is_of(&option_help[i], &commands[0])) show_option(&option_help[i]);
    printf("\ntl COMMAND --help shows those of a command.\n");
    printf(
        "tl help NAME shows the page of a builtin (there are %zu), a keyword, a type, a function "
        "or struct of std,\na TL_ variable or a command.\n",
        catalog_count());
}

static void show_rows_of_section(const char *section) {
    printf("\n## %s\n\n", section);
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        if (strcmp(row->section, section) != 0) continue;
        const char *end = strchr(row->doc, '\n');
        int first_line = end ? (int)(end - row->doc) : (int)strlen(row->doc);
        printf("- `%s` %.*s\n", row->signature_text, first_line, row->doc);
    }
}

// What is found under several spellings is shown under its own.
static void show_older(const char *title, bool parameters) {
    size_t count;
    const OlderSpelling *older = catalog_older(parameters, &count);
    printf("\n%s\n\n| spelling | is |\n|---|---|\n", title);
    for (size_t i = 0; i < count; i++) printf("| `%s` | `%s` |\n", older[i].old, older[i].name);
}

// Sections come in the order of their first rows, but what is for older scripts comes last.
static void reference(void) {
    printf("# Reference\n\nEvery name that a script can call; `tl help NAME` prints one with its "
           "examples. This file is printed by `tl help --reference`.\n");
    for (size_t i = 0; i < catalog_count(); i++) {
        const char *section = catalog_get(i)->section;
        bool seen = strcmp(section, CATALOG_OLDER) == 0;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(catalog_get(j)->section, section) == 0;
        if (!seen) show_rows_of_section(section);
    }
    printf("\n## Environment variables\n\n");
    for (int i = 0; i < VARIABLE_COUNT; i++)
        if (!variables[i].for_tests)
            printf("- `%s=%s` %s\n", variables[i].name, variables[i].form, variables[i].doc);
    show_rows_of_section(CATALOG_OLDER);
    show_older("Other names of functions; with `cndl_` before it every name is what it is without:",
               false);
    show_older("Other names of parameters:", true);
}

// What is printed from the tables of the program, most of it into files of the repository.
static const struct {
    const char *option;
    void (*print)(void);
} printed[] = {
    {"--reference", reference},
    {"--json", listing_print},
    {"--vim-syntax", syntax_print_vim},
    {"--textmate", syntax_print_textmate},
    {"--man", manual_print},
    {"--bash", completions_print_bash},
    {"--zsh", completions_print_zsh},
};

int command_help(const Command *command, int count, char **arguments) {
    if (count == 0) {
        overview();
        return EXIT_SUCCESS_STATUS;
    }
    if (count > 1) return word_refuse(command, arguments[1]);
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        if (strcmp(arguments[0], printed[i].option) != 0) continue;
        printed[i].print();
        return EXIT_SUCCESS_STATUS;
    }
    const Command *named = command_find(arguments[0]);
    if (named) (void)help_show_command(named);
    SCOPED_TEXT(text);
    Status status = help_page(arguments[0], &text);
    if (named && status == STATUS_OK) printf("\n");
    fputs(text_get(&text), stdout);
    source_reset();
    return named || status == STATUS_OK ? EXIT_SUCCESS_STATUS : report_current_error();
}
