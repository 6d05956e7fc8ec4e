// tl fmt: programs in the one way of writing them; a file is replaced as a whole or not at all.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fmt/fmt.h"
#include "main/command.h"

static Status fail_write(const char *path) {
    return fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
}

static Status write_all(FILE *file, const Text *text, const char *path) {
    bool written = fwrite(text_get(text), 1, text->length, file) == text->length;
    if (fclose(file) != 0 || !written) return fail_write(path);
    return STATUS_OK;
}

// Writes next to the file and renames, so that the file is never half written.
static Status replace_file(const char *path, const Text *text) {
    char target[PATH_MAX];
    struct stat status;
    if (!realpath(path, target) || stat(target, &status) != 0 || access(target, W_OK) != 0)
        return fail_write(path);
    SCOPED_TEXT(adjacent);
    text_format(&adjacent, "%s.XXXXXX", target);
    int descriptor = mkstemp(adjacent.bytes);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    Status result = file ? write_all(file, text, path) : fail_write(path);
    if (result == STATUS_OK &&
        (chmod(adjacent.bytes, status.st_mode) != 0 || rename(adjacent.bytes, target) != 0))
        result = fail_write(path);
    if (result != STATUS_OK && descriptor >= 0) unlink(adjacent.bytes);
    return result;
}

// What becomes of one file's formatted text: shown, compared, or written.
static Status finish(const SourceFile *file, const char *path, const Text *text, bool check,
                     bool *differs) {
    *differs =
        text->length != file->length || memcmp(text_get(text), file->text, text->length) != 0;
    bool standard_input = strcmp(path, "-") == 0;
    if (standard_input && !check) {
        fwrite(text_get(text), 1, text->length, stdout);
        return STATUS_OK;
    }
    if (!*differs) return STATUS_OK;
    printf("%s\n", standard_input ? "<stdin>" : path);
    return check ? STATUS_OK : replace_file(path, text);
}

// False when the file is not, or with --check would not be, in order.
static bool format_path(const char *path, bool check) {
    const SourceFile *file;
    if (source_load(path, &file) != STATUS_OK) {
        report_current_error();
        return false;
    }
    DiagnosticList diagnostics = {0};
    SCOPED_TEXT(text);
    bool differs = false, formatted = format_source(file, &text, &diagnostics);
    if (!formatted) diagnostics_show(&diagnostics, SEVERITY_WARNING);
    if (formatted && finish(file, path, &text, check, &differs) != STATUS_OK) {
        report_current_error();
        formatted = false;
    }
    diagnostic_list_free(&diagnostics);
    source_reset();
    return formatted && !(check && differs);
}

int command_format(const Command *command, int count, char **arguments) {
    PathList paths = {0};
    bool check = false, whole = true;
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--check") == 0) {
            check = true;
        } else if (arguments[i][0] == '-' && arguments[i][1] != '\0') {
            paths_free(&paths);
            return word_refuse(command, arguments[i]);
        } else {
            paths_collect(arguments[i], &paths);
        }
    }
    if (count == check) paths_collect("-", &paths);
    for (size_t i = 0; i < paths.count; i++) whole &= format_path(paths.items[i], check);
    paths_free(&paths);
    return whole ? EXIT_SUCCESS_STATUS : EXIT_FAILED;
}
