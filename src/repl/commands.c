// The REPL's own commands, one row each, and the older words that mean some of them.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/buffer.h"
#include "device/settings.h"
#include "ranks/ranks.h"
#include "repl/internal.h"

typedef void (*Run)(Repl *repl, const char *argument);

typedef struct ReplCommand {
    const char *name, *usage, *summary;
    enum { TAKES_NOTHING, TAKES_MAYBE, TAKES_ONE } takes;
    Run run;
} ReplCommand;

static void run_help(Repl *repl, const char *argument);

static void run_mem(Repl *repl, const char *argument) {
    (void)argument;
    memory_show(repl);
}

static void run_vars(Repl *repl, const char *argument) {
    (void)argument;
    inspect_variables(repl);
}

static void run_facts(Repl *repl, const char *argument) {
    inspect_facts(repl, argument);
}

static void run_rules(Repl *repl, const char *argument) {
    (void)argument;
    inspect_rules(repl);
}

static void run_save(Repl *repl, const char *argument) {
    if (ranks_own() != 0) return;
    if (spoken_save(repl, argument) != STATUS_OK)
        repl_show_error();
    else
        printf("saved %zu statements to %s\n", repl->spoken.count, argument);
}

static void run_load(Repl *repl, const char *argument) {
    const SourceFile *source;
    if (source_load(argument, &source) != STATUS_OK)
        repl_show_error();
    else
        repl_run_source(repl, source);
}

static void run_clear(Repl *repl, const char *argument) {
    (void)argument;
    input_clear_screen(repl);
}

static void run_reset(Repl *repl, const char *argument) {
    (void)argument;
    session_reset(repl->session);
    spoken_clear(repl);
    printf("every variable is cleared\n");
}

static void run_quit(Repl *repl, const char *argument) {
    (void)argument;
    repl->ended = true;
}

static void show_devices(void) {
    SCOPED_TEXT(text);
    device_list(&text);
    Device *device = device_default_opened();
    printf("%s", text_get(&text));
    if (device) printf("in use: %s (%s)\n", device->name, device->description);
}

// Opens the device, or goes back to the one before. Nothing may lie on that one any more.
static Status change_device(const char *name) {
    const char *before = device_setting_choice(VARIABLE_TL_DEVICE);
    SCOPED_MEMORY char *saved = before ? memory_copy_string(before, strlen(before)) : NULL;
    Device *device;
    device_setting_choose(VARIABLE_TL_DEVICE, name);
    DeviceSettings settings;
    Status status = device_settings_read(&settings);
    if (status == STATUS_OK) {
        device_default_close();
        status = device_default(&device);
    }
    if (status != STATUS_OK) device_setting_choose(VARIABLE_TL_DEVICE, saved);
    return status;
}

static void run_device(Repl *repl, const char *argument) {
    if (argument[0] == '\0') {
        show_devices();
        return;
    }
    SessionName last = session_name(repl->session, 0);
    bool empty = session_name_count(repl->session) == 1 && last.value->kind == VALUE_NONE;
    if (!empty) {
        fail(STATUS_DEVICE, "the session's tensors lie on the present device");
        fail_help(":reset clears them; then :device %s", argument);
        repl_show_error();
    } else if (change_device(argument) != STATUS_OK) {
        repl_show_error();
    } else {
        show_devices();
    }
}

static void run_set(Repl *repl, const char *argument) {
    if (strcmp(argument, "mem on") == 0 || strcmp(argument, "mem off") == 0) {
        repl->memory_line = strcmp(argument, "mem on") == 0;
        return;
    }
    fail(STATUS_SETTING, "there is no setting \"%s\"", argument);
    fail_help(":set mem on, :set mem off");
    repl_show_error();
}

static const ReplCommand commands[] = {
    {"mem", ":mem", "device memory: live, cached, peak, and which variable holds what",
     TAKES_NOTHING, run_mem},
    {"vars", ":vars", "the names of the session", TAKES_NOTHING, run_vars},
    {"facts", ":facts R", "the facts of a relation", TAKES_ONE, run_facts},
    {"rules", ":rules", "the rules of the session", TAKES_NOTHING, run_rules},
    {"time", ":time EXPR", "how long an expression takes", TAKES_ONE, measure_run},
    {"save", ":save FILE", "write what was entered as a script", TAKES_ONE, run_save},
    {"load", ":load FILE", "run a script in the session", TAKES_ONE, run_load},
    {"reset", ":reset", "clear every variable", TAKES_NOTHING, run_reset},
    {"clear", ":clear", "clear the screen, as Ctrl-L does", TAKES_NOTHING, run_clear},
    {"device", ":device [NAME]", "show the devices, or use another one", TAKES_MAYBE, run_device},
    {"set", ":set mem on|off", "device memory above the prompt", TAKES_ONE, run_set},
    {"help", ":help [NAME]", "this list, or the page of a builtin", TAKES_MAYBE, run_help},
    {"quit", ":quit", "leave, as Ctrl-D does", TAKES_NOTHING, run_quit},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void run_help(Repl *repl, const char *argument) {
    if (argument[0]) {
        inspect_name(repl, argument, strlen(argument));
        return;
    }
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-18s %s\n", commands[i].usage, commands[i].summary);
    printf("  %-18s %s\n", "?name, name?", "a builtin's page, or a tensor in short");
    printf("  %-18s %s\n", "EXPR;", "runs without showing the value; _ is the last value");
    printf("Tab completes, Ctrl-R searches what was entered, Ctrl-C stops a line.\n");
}

size_t command_count_all(void) {
    return COMMANDS;
}

const char *command_name(size_t index) {
    return commands[index].name;
}

static const ReplCommand *find(const char *name, size_t length) {
    for (int i = 0; i < COMMANDS; i++)
        if (strlen(commands[i].name) == length && memcmp(commands[i].name, name, length) == 0)
            return &commands[i];
    return NULL;
}

static void fail_command(const char *name, size_t length) {
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    SCOPED_MEMORY char *word = memory_copy_string(name, length);
    const char *near = catalog_nearest(word, names, COMMANDS);
    fail(STATUS_NAME, "there is no command :%s", word);
    if (near)
        fail_help("did you mean :%s?", near);
    else
        fail_help(":help shows the commands");
    repl_show_error();
}

static void run_command(Repl *repl, const char *text) {
    size_t length = strcspn(text, " \t");
    const ReplCommand *command = find(text, length);
    if (!command) {
        fail_command(text, length);
        return;
    }
    const char *argument = text + length + strspn(text + length, " \t");
    bool given = argument[0] != '\0';
    if ((command->takes == TAKES_ONE && !given) || (command->takes == TAKES_NOTHING && given)) {
        fail(STATUS_SYNTAX, "the command is %s", command->usage);
        repl_show_error();
        return;
    }
    command->run(repl, argument);
}

// Older words, unless the session has a variable of that name.
static const struct {
    const char *word;
    Run run;
} words[] = {
    {"exit", run_quit}, {"quit", run_quit},   {"help", run_help},
    {"vars", run_vars}, {"clear", run_clear},
};

static bool run_word(Repl *repl, const char *text, size_t length) {
    SessionName found;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) != length || memcmp(words[i].word, text, length) != 0) continue;
        if (session_find(repl->session, text, length, &found)) return false;
        words[i].run(repl, "");
        return true;
    }
    return false;
}

// A name with fields, the whole of it.
static bool is_path(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isalnum(c) && c != '_' && c != '.' && c < 0x80) return false;
    }
    return length > 0 && !isdigit((unsigned char)text[0]) && text[0] != '.';
}

static bool run_question(Repl *repl, const char *text, size_t length) {
    bool before = text[0] == '?', after = length > 1 && text[length - 1] == '?';
    if (before == after) return false;
    if (before) text++;
    length--;
    while (length && (*text == ' ' || *text == '\t')) text++, length--;
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
    if (!is_path(text, length)) return false;
    inspect_name(repl, text, length);
    return true;
}

bool command_run_unit(Repl *repl, const char *unit) {
    unit += strspn(unit, " \t\r\n");
    size_t length = strlen(unit);
    while (length && strchr(" \t\r\n", unit[length - 1])) length--;
    if (unit[0] == ':') {
        SCOPED_MEMORY char *text = memory_copy_string(unit + 1, length - 1);
        run_command(repl, text);
        return true;
    }
    return run_word(repl, unit, length) || run_question(repl, unit, length);
}
