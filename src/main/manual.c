// The man page tl(1): what stands in the tables of commands and options, and what they do not say.
#include <stdio.h>
#include <string.h>

#include "catalog/variables.h"
#include "main/command.h"

// Hyphens that are typed, and dots and backslashes that roff would take for its own.
static void print_roff(const char *text) {
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
    }
}

static void print_entry(const char *head, const char *text) {
    printf(".TP\n.B ");
    print_roff(head);
    printf("\n");
    print_roff(text);
    printf("\n");
}

static const char head[] = ".\\\" Printed by `tl help --man`.\n"
                           ".TH TL 1 \"\" \"tl " TL_VERSION "\" \"User Commands\"\n"
                           ".SH NAME\n"
                           "tl \\- run, check and format tensor scripts\n"
                           ".SH SYNOPSIS\n"
                           ".B tl\n"
                           ".RI [ COMMAND ]\n"
                           ".RI [ OPTION \"...] [\" FILE \"] [\" ARGUMENT ...]\n"
                           ".SH DESCRIPTION\n"
                           "tl is a small language for tensors and its runtime. A script makes "
                           "tensors, does mathematics on\n"
                           "them and runs language models from GGUF files. Options stand before or "
                           "directly after the file;\n"
                           "everything from the first other word, or after\n"
                           ".BR \\-\\- ,\n"
                           "belongs to the script.\n"
                           ".SH COMMANDS\n";

static const char tail[] = ".SH EXIT STATUS\n"
                           ".TP\n.B 0\nsuccess\n"
                           ".TP\n.B 1\nthe program failed: syntax, check or run time\n"
                           ".TP\n.B 2\nwrong command line\n"
                           ".TP\n.B 3\nmemory leaked and the check is strict\n"
                           ".TP\n.B 130\ninterrupted\n"
                           ".SH EXAMPLES\n"
                           ".nf\n"
                           "tl \\-e 'print(sum(ones([2, 3])))'\n"
                           "tl run \\-\\-memory\\-check script.tl\n"
                           "tl check script.tl\n"
                           "tl fmt \\-\\-check .\n"
                           "tl help softmax\n"
                           ".fi\n";

void manual_print(void) {
    fputs(head, stdout);
    for (int i = 0; i < command_count; i++) print_entry(commands[i].usage, commands[i].summary);
    printf(".SH OPTIONS\n");
    for (size_t i = 0; i < option_help_count; i++) {
        const OptionHelp *option = &option_help[i];
        SCOPED_TEXT(entry);
        option_append_head(&entry, option);
        print_entry(text_get(&entry), option->summary);
    }
    printf(".SH ENVIRONMENT\n");
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        if (variables[i].for_tests) continue;
        SCOPED_TEXT(entry);
        text_format(&entry, "%s=%s", variables[i].name, variables[i].form);
        print_entry(text_get(&entry), variables[i].doc);
    }
    fputs(tail, stdout);
}
