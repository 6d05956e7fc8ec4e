// Standard output and error as programs write to them.
#include "learn/output.h"

#include <errno.h>
#include <string.h>

#include "base/output.h"
#include "learn/learn.h"

Status output_write(FILE *stream, const Text *text) {
    if (learn_state()->muted) return STATUS_OK;
    learn_progress_clear();
    if (stream == output_errors()) output_flush();
    output_note(text_get(text), text->length);
    errno = 0;
    bool written = fwrite(text_get(text), 1, text->length, stream) == text->length;
    if (written && stream == output_stream()) output_flush_open();
    if (written && !ferror(stream)) return STATUS_OK;
    clearerr(stream);
    return fail(STATUS_IO, "cannot write the output: %s", strerror(errno ? errno : EIO));
}
