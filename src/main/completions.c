// Completions for bash and zsh: the commands, their options, the builtins that have a page, and
// files.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "main/command.h"

static void options_of(Text *out, const Command *command) {
    for (size_t i = 0; i < option_help_count; i++)
        if (option_is_of(&option_help[i], command))
            text_format(out, "%s%s", out->length > 0 ? " " : "", option_help[i].name);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Every name with a page, in lines that a shell reads as one list of words.
static void print_names(const char *indent) {
    size_t count = catalog_names(NULL, 0);
    SCOPED_MEMORY const char **names = memory_allocate(count * sizeof *names);
    catalog_names(names, count);
    qsort(names, count, sizeof *names, compare_names);
    int column = 0;
    for (size_t i = 0; i < count; i++) {
        if (strstr(names[i], "::") || names[i][0] == '_') continue;
        if (column > 90) column = printf("\n%s", indent) - 1;
        column += printf("%s%s", column > 0 ? " " : "", names[i]);
    }
}

static void print_command_names(void) {
    for (int i = 0; i < command_count; i++) printf("%s%s", i ? " " : "", commands[i].name);
}

void completions_print_bash(void) {
    printf("# bash completion for tl. Printed by `tl help --bash`.\n"
           "_tl() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        words='");
    print_command_names();
    printf("'\n    elif [[ $command == help ]]; then\n        words='");
    print_names("            ");
    printf("'\n    else\n        case $command in\n");
    for (int i = 0; i < command_count; i++) {
        SCOPED_TEXT(options);
        options_of(&options, &commands[i]);
        if (options.length > 0)
            printf("        %s) words='%s' ;;\n", commands[i].name, text_get(&options));
    }
    printf(
        "        esac\n"
        "        [[ $current == -* ]] || words=\n"
        "    fi\n"
        "    local IFS=$' \\t\\n'\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
        "    [[ $command == help && $COMP_CWORD -gt 1 ]] && return\n"
        "    [[ $current == -* ]] && return\n"
        "    local IFS=$'\\n'\n"
        "    compopt -o filenames 2>/dev/null\n"
        "    COMPREPLY+=($(compgen -f -X '!*.tl' -- \"$current\") $(compgen -d -- \"$current\"))\n"
        "}\n"
        "complete -F _tl tl\n");
}

// In single quotes, with what _arguments and _describe take for their own escaped.
static void print_zsh_text(const char *text) {
    for (; *text; text++) {
        if (strchr(":[]", *text)) putchar('\\');
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
}

void completions_print_zsh(void) {
    printf("#compdef tl\n"
           "# zsh completion for tl. Printed by `tl help --zsh`.\n"
           "_tl() {\n"
           "    local -a commands options names\n"
           "    commands=(\n");
    for (int i = 0; i < command_count; i++) {
        printf("        '%s:", commands[i].name);
        print_zsh_text(commands[i].summary);
        printf("'\n");
    }
    printf("    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe command commands\n"
           "        _files -g '*.tl'\n"
           "        return\n"
           "    fi\n"
           "    case $words[2] in\n"
           "    help)\n"
           "        names=(");
    print_names("            ");
    printf(")\n"
           "        _describe builtin names\n"
           "        return\n"
           "        ;;\n");
    for (int i = 0; i < command_count; i++) {
        SCOPED_TEXT(options);
        options_of(&options, &commands[i]);
        if (options.length > 0)
            printf("    %s) options=(%s) ;;\n", commands[i].name, text_get(&options));
    }
    printf("    esac\n"
           "    if [[ $PREFIX == -* ]]; then\n"
           "        compadd -- $options\n"
           "    else\n"
           "        _files -g '*.tl'\n"
           "    fi\n"
           "}\n"
           "_tl \"$@\"\n");
}
