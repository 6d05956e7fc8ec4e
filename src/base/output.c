#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

static int reason; // of the first flush that failed
static bool line_is_open;

void output_flush(void) {
    if (fflush(stdout) != 0 && reason == 0) reason = errno;
}

Status output_finish(void) {
    output_flush();
    if (reason == 0 && !ferror(stdout)) return STATUS_OK;
    // Without a reason, it was lost while something was printed into a full buffer.
    return fail(STATUS_IO, "cannot write the output: %s", strerror(reason ? reason : EIO));
}

void output_note(const char *bytes, size_t length) {
    if (length > 0) line_is_open = bytes[length - 1] != '\n';
}

bool output_line_is_open(void) {
    return line_is_open;
}

int output_columns(int descriptor) {
    struct winsize size;
    return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
