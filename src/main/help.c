// tl help: the overview, a builtin's page, and the printed reference.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "main/command.h"

const OptionHelp option_help[] = {
    {"--device", "NAME", "where new tensors are made"},
    {"--memory-check", "[=strict]",
     "print the memory report at exit; strict: exit status 3 on a leak"},
    {"--seed", "N", "begin the random numbers with N"},
    {"--quiet", "", "fewer messages"},
    {"--verbose", "", "say which seed a run uses"},
};
const size_t option_help_count = sizeof option_help / sizeof *option_help;

static void overview(void) {
    printf("tl: tensors, neural networks and language models in small scripts\n\n");
    for (int i = 0; i < command_count; i++)
        printf("  %-44s %s\n", commands[i].usage, commands[i].summary);
    printf("\noptions:");
    for (size_t i = 0; i < option_help_count; i++)
        printf("%s%s%s%s", i ? "  " : " ", option_help[i].name,
               isupper((unsigned char)option_help[i].argument[0]) ? " " : "",
               option_help[i].argument);
    printf("\n");
    printf("%zu builtins have a page: tl help softmax\n", catalog_count());
}

static void show_rows_of_section(const char *section) {
    printf("\n## %s\n\n", section);
    for (size_t i = 0; i < catalog_count(); i++) {
        const Builtin *row = catalog_get(i);
        if (strcmp(row->section, section) != 0) continue;
        Text aliases = {0};
        catalog_aliases(row, &aliases);
        const char *end = strchr(row->doc, '\n');
        int first_line = end ? (int)(end - row->doc) : (int)strlen(row->doc);
        printf("- `%s` %.*s", row->signature_text, first_line, row->doc);
        if (aliases.length) printf(" Also: %s.", text_get(&aliases));
        printf("\n");
        text_free(&aliases);
    }
}

// Sections come in the order of their first rows.
static void reference(void) {
    printf("# Reference\n\nEvery name that a script can call; `tl help NAME` prints one with its "
           "examples. This file is printed by `tl help --reference`.\n");
    for (size_t i = 0; i < catalog_count(); i++) {
        const char *section = catalog_get(i)->section;
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(catalog_get(j)->section, section) == 0;
        if (!seen) show_rows_of_section(section);
    }
}

// Files of the repository that come from the tables of the program.
static const struct {
    const char *option;
    void (*print)(void);
} printed[] = {
    {"--reference", reference},
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
    if (count > 1) return usage_error(command, "%s is not expected", arguments[1]);
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        if (strcmp(arguments[0], printed[i].option) != 0) continue;
        printed[i].print();
        return EXIT_SUCCESS_STATUS;
    }
    Text text = {0};
    Status status = catalog_help(arguments[0], &text);
    fputs(text_get(&text), stdout);
    text_free(&text);
    return status == STATUS_OK ? EXIT_SUCCESS_STATUS : report_current_error();
}
