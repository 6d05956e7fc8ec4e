#include "base/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/runtime.h"

struct Output {
    FILE *stream, *errors;
    int reason; // of the first flush that failed
    bool line_is_open;
    PictureShow show; // NULL: nobody shows pictures
    void *show_context;
};

Output *output_new(void) {
    Output *output = memory_allocate_zeroed(1, sizeof *output);
    output->stream = stdout;
    output->errors = stderr;
    return output;
}

void output_free(Output *output) {
    free(output);
}

FILE *output_stream(void) {
    ASSERT(runtime_current != NULL);
    return runtime_current->output->stream;
}

FILE *output_errors(void) {
    return runtime_current->output->errors;
}

void output_redirect(FILE *stream, FILE *errors) {
    output_flush();
    runtime_current->output->stream = stream ? stream : stdout;
    runtime_current->output->errors = errors ? errors : stderr;
}

void output_flush(void) {
    ASSERT(runtime_current->output != NULL);
    Output *output = runtime_current->output;
    if (fflush(output->stream) != 0 && output->reason == 0) output->reason = errno;
}

void output_flush_open(void) {
    struct stat about;
    int descriptor = fileno(output_stream());
    if (descriptor < 0 || !output_line_is_open()) return;
    if (fstat(descriptor, &about) == 0 && !S_ISREG(about.st_mode)) output_flush();
}

void output_show_pictures(PictureShow show, void *context) {
    runtime_current->output->show = show;
    runtime_current->output->show_context = context;
}

bool output_shows_pictures(void) {
    return runtime_current->output->show != NULL;
}

void output_picture(const char *svg, size_t length) {
    ASSERT(output_shows_pictures());
    output_flush(); // what was printed before it is seen before it
    runtime_current->output->show(runtime_current->output->show_context, svg, length);
}

Status output_finish(void) {
    output_flush();
    const Output *output = runtime_current->output;
    if (output->reason == 0 && !ferror(output->stream)) return STATUS_OK;
    // Without a reason, it was lost while something was printed into a full buffer.
    return fail(STATUS_IO, "cannot write the output: %s",
                strerror(output->reason ? output->reason : EIO));
}

void output_note(const char *bytes, size_t length) {
    if (length > 0) runtime_current->output->line_is_open = bytes[length - 1] != '\n';
}

bool output_line_is_open(void) {
    return runtime_current->output->line_is_open;
}

bool output_is_terminal(FILE *stream) {
    int descriptor = fileno(stream); // -1: a stream without a file, which no terminal is
    return descriptor >= 0 && isatty(descriptor);
}

int output_columns(FILE *stream) {
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
