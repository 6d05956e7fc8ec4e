// tl lsp: the language server on standard input and output.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lsp/lsp.h"
#include "main/command.h"

static bool write_whole(const Text *text) {
    for (size_t at = 0; at < text->length;) {
        ssize_t count = write(STDOUT_FILENO, text->bytes + at, text->length - at);
        if (count < 0 && errno != EINTR) {
            fail(STATUS_IO, "cannot write the output: %s", strerror(errno));
            return false;
        }
        if (count > 0) at += (size_t)count;
    }
    return true;
}

int command_lsp(const Command *command, int count, char **arguments) {
    enum { CHUNK_BYTES = 65536 };
    // Editors like to say which way they talk; this is the one way there is.
    if (count == 1 && strcmp(arguments[0], "--stdio") == 0) count = 0;
    if (count > 0) return word_refuse(command, arguments[0]);
    Server *server = server_new();
    SCOPED_TEXT(out);
    char *chunk = memory_allocate(CHUNK_BYTES);
    bool more = true, written = true;
    while (more && written) {
        ssize_t length = read(STDIN_FILENO, chunk, CHUNK_BYTES);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) break;
        more = server_feed(server, chunk, (size_t)length, &out);
        written = write_whole(&out);
        text_clear(&out);
    }
    int status = written ? server_exit_status(server) : report_current_error();
    free(chunk);
    server_free(server);
    source_reset();
    return status;
}
