// The command line: tl's options, the file, and the script's own words.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "catalog/catalog.h"
#include "device/settings.h"
#include "main/command.h"

int usage_error(const Command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "error: ");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nusage: %s\n", command->usage);
    return EXIT_USAGE;
}

// The option of the command that a misspelt one means: it begins so, or is the nearest. NULL for
// none.
static const char *option_meant(const Command *command, const char *word) {
    enum { WORD_MAX = 32, NAMES_MAX = 64 };
    const char *names[NAMES_MAX], *bare = word + strspn(word, "-");
    size_t length = strcspn(bare, "="), count = 0;
    if (length < 2 || length > WORD_MAX) return NULL;
    for (size_t i = 0; i < option_help_count && count < NAMES_MAX; i++) {
        if (!option_is_of(&option_help[i], command)) continue;
        names[count++] = option_help[i].name + 2;
        if (strncmp(names[count - 1], bare, length) == 0) return names[count - 1];
    }
    char name[WORD_MAX + 1] = "";
    memcpy(name, bare, length);
    return catalog_nearest(name, names, count);
}

int word_refuse(const Command *command, const char *word) {
    if (word[0] != '-' || word[1] == '\0') return usage_error(command, "%s is not expected", word);
    const char *meant = option_meant(command, word);
    if (!meant) return usage_error(command, "there is no option %s", word);
    return usage_error(command, "there is no option %s; did you mean --%s?", word, meant);
}

int report_current_error(void) {
    Diagnostic diagnostic = diagnostic_from_error(error_current());
    SCOPED_TEXT(text);
    diagnostic_render(&text, &diagnostic, diagnostic_color());
    fputs(text_get(&text), stderr);
    return EXIT_FAILED;
}

static _Noreturn void bad_option(const char *format, const char *value) {
    fprintf(stderr, "error: ");
    fprintf(stderr, format, value);
    fprintf(stderr, "\n");
    exit(EXIT_USAGE);
}

// "--name VALUE" or "--name=VALUE": the value, or NULL when arguments[*index] is another word.
static const char *option_value(const char *name, char **arguments, int count, int *index) {
    const char *word = arguments[*index];
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0) return NULL;
    if (word[length] == '=') {
        (*index)++;
        return word + length + 1;
    }
    if (word[length] != '\0') return NULL;
    if (*index + 1 >= count) bad_option("%s needs a value", name);
    *index += 2;
    return arguments[*index - 1];
}

static bool flag_read(const char *name, char **arguments, int *index) {
    if (strcmp(arguments[*index], name) != 0) return false;
    (*index)++;
    return true;
}

bool option_read(CommandLine *line, char **arguments, int count, int *index) {
    const char *value;
    if (flag_read("--memory-check", arguments, index)) {
        device_setting_choose(VARIABLE_TL_MEMORY_CHECK, "1");
    } else if (strncmp(arguments[*index], "--memory-check=", 15) == 0) {
        device_setting_choose(VARIABLE_TL_MEMORY_CHECK, arguments[(*index)++] + 15);
    } else if ((value = option_value("--device", arguments, count, index))) {
        int number;
        bool by_rank = strcmp(value, LOCAL_RANK_DEVICE) == 0;
        if (!by_rank && !device_name_parse(value, &number))
            bad_option("--device needs cpu, vulkan, vulkan:N, vulkan:local_rank or auto, but it is "
                       "\"%s\"",
                       value);
        device_setting_choose(VARIABLE_TL_DEVICE, value);
    } else if ((value = option_value("--seed", arguments, count, index))) {
        char *end;
        errno = 0;
        line->interp.seed = strtoull(value, &end, 10);
        line->interp.has_seed = true;
        if (*end != '\0' || end == value || errno || *value == '-')
            bad_option("--seed needs an integer from 0, but it is \"%s\"", value);
    } else if (flag_read("--quiet", arguments, index)) {
        line->interp.quiet = true;
    } else if (flag_read("--verbose", arguments, index)) {
        line->interp.verbose = true;
    } else if ((value = option_value("--ranks", arguments, count, index))) {
        if (strcmp(value, "all") != 0 && strcmp(value, "first") != 0)
            bad_option("--ranks needs all or first, but it is \"%s\"", value);
        line->all_ranks_speak = strcmp(value, "all") == 0;
    } else if ((value = option_value("--host-limit", arguments, count, index))) {
        if (!number_read_bytes(value, &line->limits.host_bytes))
            bad_option("--host-limit needs a size such as 500MB or 2GB, but it is \"%s\"", value);
    } else if ((value = option_value("--disk-limit", arguments, count, index))) {
        if (!number_read_bytes(value, &line->limits.disk_bytes))
            bad_option("--disk-limit needs a size such as 500MB or 2GB, but it is \"%s\"", value);
    } else if ((value = option_value("--memory-limit", arguments, count, index))) {
        if (!number_read_bytes(value, &line->memory_limit))
            bad_option("--memory-limit needs a size such as 500MB or 2GB, but it is \"%s\"", value);
        device_setting_choose(VARIABLE_TL_MEMORY_LIMIT, value);
    } else if ((value = option_value("--time-limit", arguments, count, index))) {
        if (!limit_seconds_read(value, &line->limits.seconds))
            bad_option("--time-limit needs a time such as 500ms, 10s or 2m, but it is \"%s\"",
                       value);
    } else if ((value = option_value("--sandbox", arguments, count, index))) {
        line->limits.sandbox = value;
    } else if (flag_read("--memory", arguments, index)) {
        line->memory = true;
    } else if (flag_read("--memory=sure", arguments, index)) {
        line->memory = line->sure = true;
    } else if (flag_read("--sums", arguments, index)) {
        line->sums = true;
    } else if (flag_read("--json", arguments, index)) {
        line->json = true;
    } else if (flag_read("--test", arguments, index)) {
        line->mode = RUN_TESTS;
    } else if (flag_read("--bench", arguments, index)) {
        line->mode = RUN_BENCHES;
    } else if ((value = option_value("--filter", arguments, count, index))) {
        line->filter = value;
    } else {
        return false;
    }
    return true;
}

void command_line_read(CommandLine *line, const Command *command, int count, char **arguments) {
    int index = 0;
    while (index < count && !line->file && !line->code) {
        if (option_read(line, arguments, count, &index)) continue;
        const char *word = arguments[index++];
        if (strcmp(word, "-e") == 0) {
            if (index == count) exit(usage_error(command, "-e needs code"));
            line->code = arguments[index++];
        } else if (word[0] == '-' && word[1] != '\0') {
            exit(word_refuse(command, word));
        } else {
            line->file = word;
        }
    }
    if (!line->file && !line->code) exit(usage_error(command, "a file is missing"));
    while (index < count && option_read(line, arguments, count, &index)) continue;
    if (index < count && strcmp(arguments[index], "--") == 0) index++;
    line->interp.argument_count = count - index;
    line->interp.arguments = arguments + index;
    line->interp.script = line->file;
}
