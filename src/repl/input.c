// Reading units: on a terminal with readline, where Enter ends a unit only when its brackets are
// closed, so that many lines are edited and recalled as one; else line by line.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "parser/parser.h"
#include "ranks/ranks.h"
#include "repl/internal.h"

enum { HISTORY_MAX = 10000, READ_BYTES = 65536 };

static bool unit_is_open(const char *text, size_t length) {
    size_t blank = strspn(text, " \t");
    if (text[blank] == ':' || text[blank] == '?') return false;
    return parse_is_incomplete(text, length);
}

// --- history

static char history_path[4096];

static void history_begin(void) {
    const char *chosen = getenv("TL_HISTORY"), *home = getenv("HOME");
    int length = 0;
    if (chosen)
        length = snprintf(history_path, sizeof history_path, "%s", chosen);
    else if (home)
        length = snprintf(history_path, sizeof history_path, "%s/.tl_history", home);
    if (length < 0 || (size_t)length >= sizeof history_path) history_path[0] = '\0';
    using_history();
    stifle_history(HISTORY_MAX);
    history_comment_char = '#'; // marks the times that keep entries of many lines whole
    history_write_timestamps = 1;
    if (history_path[0]) read_history(history_path);
}

static bool history_has_last(const char *unit) {
    const HIST_ENTRY *previous =
        history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    return previous && strcmp(previous->line, unit) == 0;
}

// Without white space at the end: a paste brings its last newline along.
static void history_note(const char *line) {
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\n", line[length - 1])) length--;
    char *unit = memory_copy_string(line, length);
    bool wanted = length > 0 && !history_has_last(unit);
    if (wanted) add_history(unit);
    free(unit);
    if (!wanted || !history_path[0]) return;
    int file = open(history_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
    append_history(1, history_path);
}

static void history_finish(void) {
    if (history_path[0]) history_truncate_file(history_path, HISTORY_MAX);
    clear_history();
}

// --- the terminal

static char *line_read; // by the handler: malloc'd, NULL at the end of input
static bool line_came;

static void take_line(char *line) {
    line_came = true;
    line_read = line;
    rl_callback_handler_remove();
}

// --- units taller than the screen

// The part of the line that is shown: whole rows, from `begin` to `end`.
typedef struct Window {
    const char *text;
    int begin, end, columns;
} Window;

// At most what the rows from one byte to another take; bytes stand for columns.
static int rows_between(const Window *window, int begin, int end) {
    enum { PROMPT_COLUMNS = 4 };
    return 1 + (end - begin + PROMPT_COLUMNS) / window->columns;
}

static void grow_up(Window *window, int *room) {
    while (window->begin > 0) {
        int start = window->begin - 1;
        while (start > 0 && window->text[start - 1] != '\n') start--;
        int rows = rows_between(window, start, window->begin - 1);
        if (rows > *room) return;
        *room -= rows;
        window->begin = start;
    }
}

static void grow_down(Window *window, int *room) {
    while (window->end < rl_end) {
        int stop = window->end + 1;
        while (stop < rl_end && window->text[stop] != '\n') stop++;
        int rows = rows_between(window, window->end + 1, stop);
        if (rows > *room) return;
        *room -= rows;
        window->end = stop;
    }
}

// As many rows as fit, with the cursor in their middle where there are enough on both sides.
static Window window_around_cursor(int height, int columns) {
    Window window = {rl_line_buffer, rl_point, rl_point, columns};
    while (window.begin > 0 && window.text[window.begin - 1] != '\n') window.begin--;
    while (window.end < rl_end && window.text[window.end] != '\n') window.end++;
    int room = height - 1 - rows_between(&window, window.begin, window.end);
    int below = room / 2, above = room - below;
    grow_down(&window, &below);
    above += below;
    grow_up(&window, &above);
    grow_down(&window, &above);
    return window;
}

// readline draws rows beyond the screen's height over each other, so it is handed a part that fits.
static void redisplay(void) {
    int height, columns;
    rl_get_screen_size(&height, &columns);
    Window window = window_around_cursor(height, columns);
    char *text = rl_line_buffer, cut = text[window.end];
    int point = rl_point, end = rl_end, mark = rl_mark;
    text[window.end] = '\0';
    rl_line_buffer = text + window.begin;
    rl_point = point - window.begin;
    rl_end = window.end - window.begin;
    rl_mark = mark < window.begin || mark > window.end ? rl_point : mark - window.begin;
    rl_redisplay();
    rl_line_buffer = text;
    text[window.end] = cut;
    rl_point = point, rl_end = end, rl_mark = mark;
}

// With readline's own function it clears what the old size left.
static void resize(void) {
    rl_redisplay_function = rl_redisplay;
    rl_resize_terminal();
    rl_redisplay_function = redisplay;
}

// --- reading a unit

// Enter: a new line inside an open bracket, else the end of the unit.
static int accept_line(int count, int key) {
    if (unit_is_open(rl_line_buffer, (size_t)rl_end)) {
        rl_insert_text("\n");
        return 0;
    }
    rl_point = rl_end;
    redisplay();
    return rl_newline(count, key);
}

static void terminal_begin(Repl *repl) {
    rl_readline_name = "tl";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_initialize();
    // Only now: before, readline would take every terminal for one that can do nothing.
    rl_redisplay_function = redisplay;
    rl_bind_key('\r', accept_line);
    rl_bind_key('\n', accept_line);
    complete_begin(repl);
    history_begin();
}

// Ctrl-G leaves a search or a count, and puts back the prompt and the line that stood there.
static void leave_search(void) {
    if (!RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG)) return;
    rl_execute_next(CTRL('G'));
    rl_callback_read_char();
}

// What was typed stays on the screen, marked; the handler's removal goes to the row's start.
static void abandon_line(void) {
    leave_search();
    rl_point = rl_end;
    redisplay();
    fputs("^C", rl_outstream);
    rl_callback_sigcleanup();
    rl_callback_handler_remove();
    fputs("\n", rl_outstream);
    fflush(rl_outstream);
}

static InputEvent terminal_read(const char *prompt, Text *unit) {
    line_came = false;
    rl_callback_handler_install(prompt, take_line);
    while (!line_came) {
        if (signals_wait_input()) {
            rl_callback_read_char();
        } else if (signals_ending()) {
            rl_callback_handler_remove();
            return INPUT_END;
        } else if (signals_take_interrupt()) {
            abandon_line();
            return INPUT_INTERRUPTED;
        } else if (signals_take_resize()) {
            resize();
        } else if (signals_take_resume()) { // the shell had the terminal meanwhile
            rl_prep_terminal(1);
            rl_forced_update_display();
        }
    }
    if (!line_read) {
        putchar('\n');
        return INPUT_END;
    }
    text_append_string(unit, line_read);
    history_note(line_read);
    free(line_read);
    return INPUT_UNIT;
}

// --- a pipe

static Text pending; // read and not yet given out
static bool input_over;

static bool read_more(void) {
    char bytes[READ_BYTES];
    if (!signals_wait_input()) return false;
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0) text_append(&pending, bytes, (size_t)count);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) input_over = true;
    return true;
}

// Moves the next line into the unit; false when no whole one has been read.
static bool take_line_read(Text *unit) {
    const char *newline = pending.length ? memchr(pending.bytes, '\n', pending.length) : NULL;
    if (!newline && !(input_over && pending.length)) return false;
    size_t length = newline ? (size_t)(newline - pending.bytes) + 1 : pending.length;
    size_t rest = pending.length - length;
    text_append(unit, pending.bytes, length);
    memmove(pending.bytes, pending.bytes + length, rest);
    pending.length = rest;
    pending.bytes[rest] = '\0';
    return true;
}

static InputEvent pipe_read(Text *unit) {
    for (;;) {
        if (take_line_read(unit)) {
            if (!unit_is_open(text_get(unit), unit->length)) return INPUT_UNIT;
        } else if (input_over) {
            return unit->length ? INPUT_UNIT : INPUT_END;
        } else if (!read_more()) {
            if (signals_ending()) return INPUT_END;
            if (signals_take_interrupt()) return INPUT_INTERRUPTED;
            signals_take_resize();
            signals_take_resume();
        }
    }
}

// ---

void input_begin(Repl *repl) {
    if (repl->interactive) terminal_begin(repl);
}

void input_end(void) {
    if (rl_readline_name && strcmp(rl_readline_name, "tl") == 0) history_finish();
    text_free(&pending);
}

// Of several ranks the first reads, and all run the line.
InputEvent input_read(const Repl *repl, const char *prompt, Text *unit) {
    int event = INPUT_END;
    text_clear(unit);
    if (ranks_own() == 0)
        event = (int)(repl->interactive ? terminal_read(prompt, unit) : pipe_read(unit));
    if (ranks_share_line(&event, unit) == STATUS_OK) return (InputEvent)event;
    if (!signals_ending()) repl_show_error();
    return INPUT_END;
}

void input_clear_screen(const Repl *repl) {
    const char *clear = repl->interactive ? rl_get_termcap("cl") : NULL;
    if (clear) fputs(clear, stdout);
}
